//! Sinks: they take what they are given, or do not, and tell it, or do not.

use std::collections::BTreeMap;

use annals_engine::session::run::Tried;
use annals_engine::session::work::{Address, Waybill};

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
