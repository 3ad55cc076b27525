//! Events as CloudEvents 1.0 in structured JSON.

use annals_engine::id::{EventId, StoreId};
use annals_engine::store::Damage;
use serde::Serialize;
use serde_json::value::RawValue;

use super::gap::{self, DamageWire};
use super::{Shown, wire};

/// A CloudEvent (<https://github.com/cloudevents/spec>, version 1.0, JSON format) with the extensions `sequence`,
/// `correlationid`, `causationid` and `recordedtime`.
#[derive(Debug, Serialize)]
pub struct CloudEvent<'a, T> {
    specversion: &'static str,
    id: String,
    source: String,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recordedtime: Option<String>,
    sequence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    streamversion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlationid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causationid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datalost: Option<&'a str>,
    datacontenttype: &'static str,
    data: T,
}

/// An event.
#[must_use]
pub fn of_event(shown: &Shown, store: StoreId) -> CloudEvent<'_, &RawValue> {
    let record = &*shown.record;
    let data: &RawValue = wire::raw(shown.payload().as_str());
    CloudEvent {
        specversion: "1.0",
        id: record.id.to_string(),
        source: source(store),
        kind: record.kind.as_str(),
        subject: Some(record.stream.as_str()),
        time: Some(shown.at.to_string()),
        recordedtime: Some(record.time.to_string()),
        sequence: sequence(record.seq.0),
        streamversion: Some(record.version.to_string()),
        batch: record.batch.map(|(index, count)| format!("{index}/{count}")),
        correlationid: record.flow.map(|id| id.to_string()),
        causationid: record.cause.map(|id| id.to_string()),
        datalost: wire::lost(shown),
        datacontenttype: "application/json",
        data,
    }
}

/// Events that are missing, as one of the type `annals.gap`.
#[must_use]
pub fn of_gap(damage: &Damage, store: StoreId) -> CloudEvent<'_, DamageWire<'_>> {
    let place = format!("{}@{}", damage.file, damage.offset);
    let data: DamageWire<'_> = gap::damage_wire(damage);
    CloudEvent {
        specversion: "1.0",
        id: EventId::derived("gap", &store.to_string(), &place).to_string(),
        source: source(store),
        kind: "annals.gap",
        subject: None,
        time: None,
        recordedtime: None,
        sequence: sequence(damage.seqs.map_or(0, |(first, _)| first.0)),
        streamversion: None,
        batch: None,
        correlationid: None,
        causationid: None,
        datalost: None,
        datacontenttype: "application/json",
        data,
    }
}

fn source(store: StoreId) -> String {
    format!("urn:uuid:{store}")
}

/// A position as text that sorts as the positions do, which is what the extension `sequence` asks for.
fn sequence(seq: u64) -> String {
    format!("{seq:020}")
}
