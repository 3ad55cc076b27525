//! Missing events for programs.

use annals_engine::store::{Damage, Touched};
use serde::Serialize;

/// A gap as an object among events.
#[derive(Debug, Serialize)]
pub struct GapLine<'a> {
    gap: DamageWire<'a>,
}

/// A damaged range as an object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DamageWire<'a> {
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TouchedWire<'a> {
    stream: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_version: Option<u64>,
}

/// A gap for programs.
#[must_use]
pub fn wire(damage: &Damage) -> GapLine<'_> {
    GapLine { gap: damage_wire(damage) }
}

/// A damaged range for programs.
#[must_use]
pub fn damage_wire(damage: &Damage) -> DamageWire<'_> {
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
