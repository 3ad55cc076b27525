//! Sinks: they take what they are given, or do not, and tell it, or do not.

use std::collections::BTreeMap;

use annals_engine::session::run::Tried;
use annals_engine::session::work::{Address, Waybill};
use annals_engine::store::Record;

use super::check::{self, Wrong};
use super::world::World;

/// What was handed over.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub(crate) attempt_id: String,
    pub(crate) target: Address,
    /// Whether it reached somebody.
    pub(crate) arrived: bool,
    pub(crate) tried: Tried,
}

/// All that was handed over, by what it was.
#[derive(Debug, Default)]
pub(crate) struct Sinks(pub(crate) BTreeMap<Waybill, Vec<Handed>>);

impl World {
    /// Hands something over.
    pub(crate) fn carry(&mut self, waybill: &Waybill, attempt_id: &str, target: &Address) -> Tried {
        let (arrived, tried) = match self.rng.usize(0..10) {
            0 | 1 => (false, Tried::Retry("sink_error".to_owned())),
            2 => (false, Tried::Refused("gone".to_owned())),
            3 => (self.rng.bool(), Tried::Unknown("unconfirmed".to_owned())),
            _ => (true, Tried::Delivered),
        };
        let (attempt_id, target) = (attempt_id.to_owned(), target.clone());
        let handed = Handed { attempt_id, target, arrived, tried: tried.clone() };
        self.sinks.0.entry(waybill.clone()).or_default().push(handed);
        tried
    }
}

/// Nothing is handed over that was not said to be, nothing again that may have arrived, and nothing arrives twice.
pub(crate) fn given(sinks: &Sinks, records: &[Record]) -> Wrong {
    let mut wrong = Wrong::new();
    let attempts = check::attempts(records);
    for (name, handed) in &sinks.0 {
        let known_to_fail = |tried: &Tried| matches!(tried, Tried::Retry(_));
        if handed.iter().rev().skip(1).any(|one| !known_to_fail(&one.tried)) {
            wrong.push(format!("{name:?} was sent again: {handed:?}"));
        }
        if handed.iter().filter(|one| one.arrived).count() > 1 {
            wrong.push(format!("{name:?} arrived twice: {handed:?}"));
        }
        for one in handed {
            if attempts.iter().filter(|id| **id == one.attempt_id).count() != 1 {
                wrong.push(format!("{one:?} was not recorded beforehand"));
            }
        }
    }
    // What goes to one place from one run, however it is named, arrives once.
    let mut arrived: BTreeMap<(String, String), u32> = BTreeMap::new();
    for (name, handed) in &sinks.0 {
        for one in handed.iter().filter(|one| one.arrived) {
            let run = name.run_id().unwrap_or_default().to_owned();
            *arrived.entry((run, format!("{:?}", one.target))).or_default() += 1;
        }
    }
    wrong.extend(arrived.iter().filter(|(_, n)| **n > 1).map(|(of, n)| format!("{of:?}: {n}")));
    wrong
}
