//! Missing events, loud for eyes; for programs they are an object of the tools.

use annals_engine::store::{Damage, DamageClass, Touched};

pub(crate) use annals_tools::shown::gap::{DamageWire, GapLine, damage_wire, wire};

use crate::output::text::{count, one_line};

/// A gap in one sentence.
pub(crate) fn sentence(damage: &Damage) -> String {
    let mut text = missing(damage).unwrap_or_else(|| "no event is missing".to_owned());
    let Damage { file, offset, bytes, .. } = damage;
    text.push_str(&format!(
        ": {}, {file} offset {offset}, {}",
        damage.class.code(),
        count(*bytes, "byte")
    ));
    if !damage.touched.is_empty() {
        let names: Vec<String> = damage.touched.iter().map(touched_text).collect();
        text.push_str(&format!("; touched: {}", names.join(", ")));
    }
    if damage.accepted {
        text.push_str("; accepted");
    }
    text
}

/// What a damage costs; `None` when no event is missing.
pub(crate) fn missing(damage: &Damage) -> Option<String> {
    let (from, to) = damage.seqs?;
    Some(match (damage.class, from == to) {
        (DamageClass::Blob, _) => format!("the content of event #{from} is missing"),
        (_, true) => format!("event #{from} is missing"),
        (_, false) => {
            format!("{} missing, #{from} to #{to}", count(to.0.saturating_sub(from.0) + 1, "event"))
        }
    })
}

/// A touched stream with the versions that it lost.
pub(crate) fn touched_text(touched: &Touched) -> String {
    let stream = one_line(&touched.stream);
    match touched.versions {
        Some((from, to)) if from == to => format!("{stream} version {from}"),
        Some((from, to)) => format!("{stream} versions {from} to {to}"),
        None => stream,
    }
}
