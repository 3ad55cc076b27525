//! An event for programs: the log's own names and its payload as it is, and the cursor to go on from.

use annals_engine::id::StoreId;
use annals_engine::session::audit::Message;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Apart, Shown};

/// An event as an object.
#[derive(Debug, Serialize)]
pub struct EventWire<'a> {
    seq: u64,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    stream: &'a str,
    version: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<BlobWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a Message>,
    data: &'a RawValue,
    cursor: String,
}

#[derive(Debug, Serialize)]
struct BlobWire {
    sha256: String,
    bytes: u64,
}

/// The object of an event.
#[must_use]
pub fn wire(shown: &Shown, store: StoreId) -> EventWire<'_> {
    let record = &*shown.record;
    EventWire {
        seq: record.seq.0,
        time: record.time.to_string(),
        at: (shown.at != record.time).then(|| shown.at.to_string()),
        stream: record.stream.as_str(),
        version: record.version.0,
        kind: record.kind.as_str(),
        id: record.id.to_string(),
        batch: record.batch.map(|(index, count)| format!("{index}/{count}")),
        cause: record.cause.map(|id| id.to_string()),
        flow: record.flow.map(|id| id.to_string()),
        blob: record.blob.map(|blob| BlobWire { sha256: blob.sha256_hex(), bytes: blob.bytes }),
        lost: lost(shown),
        message: shown.message.as_ref(),
        data: raw(shown.payload().as_str()),
        cursor: record.cursor(store).to_string(),
    }
}

/// What is said in the place of content that is lost.
#[must_use]
pub fn lost(shown: &Shown) -> Option<&str> {
    match &shown.apart {
        Apart::Lost(why) => Some(why),
        _ => None,
    }
}

/// A payload as it is: it was checked when it was appended.
#[must_use]
pub fn raw(data: &str) -> &RawValue {
    serde_json::from_str(data).unwrap_or(RawValue::NULL)
}
