//! Missing events: loud for eyes, an object for programs.

use annals_engine::store::{Damage, DamageClass, Touched};
use serde::Serialize;

use crate::output::text::{count, one_line};

/// A gap as an object among events.
#[derive(Serialize)]
pub(crate) struct GapLine<'a> {
    gap: DamageWire<'a>,
}

/// A damaged range as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DamageWire<'a> {
    class: &'static str,
    file: &'a str,
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_seq: Option<u64>,
    touched: Vec<TouchedWire<'a>>,
    accepted: bool,
    detail: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TouchedWire<'a> {
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_version: Option<u64>,
}

/// A gap for programs.
pub(crate) fn wire(damage: &Damage) -> GapLine<'_> {
    GapLine { gap: damage_wire(damage) }
}

/// A damaged range for programs.
pub(crate) fn damage_wire(damage: &Damage) -> DamageWire<'_> {
    DamageWire {
        class: damage.class.code(),
        file: &damage.file,
        offset: damage.offset,
        bytes: damage.bytes,
        from_seq: damage.seqs.map(|(from, _)| from.0),
        to_seq: damage.seqs.map(|(_, to)| to.0),
        touched: damage.touched.iter().map(touched_wire).collect(),
        accepted: damage.accepted,
        detail: &damage.detail,
    }
}

fn touched_wire(touched: &Touched) -> TouchedWire<'_> {
    TouchedWire {
        stream: &touched.stream,
        from_version: touched.versions.map(|(from, _)| from.0),
        to_version: touched.versions.map(|(_, to)| to.0),
    }
}

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
