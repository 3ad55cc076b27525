//! What the log says about itself: the payloads of the stream `log`, field by field in their order.

use serde::{Deserialize, Serialize};

/// The stream of control lines.
pub const STREAM: &str = "log";
/// First line of every segment.
pub const OPENED: &str = "log.opened";
/// Last line of a full segment.
pub const SEALED: &str = "log.sealed";
/// What recovery took off a tail.
pub const RECOVERED: &str = "log.recovered";
/// Damage that an operator accepted.
pub const GAP: &str = "log.gap";
/// The clock stepped back.
pub const CLOCK: &str = "log.clock";
/// Nothing but a stamp: `durable` covers the line before.
pub const MARK: &str = "log.mark";

/// The number of this format.
pub const FORMAT: u32 = 1;
/// The name of its checksum.
pub const CHECKSUM: &str = "crc32";

/// `log.opened`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opened {
    /// The store's UUID.
    pub store: String,
    /// The format's number.
    pub format: u32,
    /// The checksum's name.
    pub checksum: String,
    /// The position of this very line.
    pub first_seq: u64,
    /// The segment before, if there is one.
    pub previous: Option<Previous>,
    /// Who made the segment.
    pub writer: Writer,
}

/// The segment before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Its file name.
    pub segment: String,
    /// The checksum of its last line, as text.
    pub crc: String,
}

/// Who wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// The process.
    pub pid: u32,
    /// The machine's name.
    pub host: String,
    /// The program and its version.
    pub program: String,
}

/// `log.sealed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// Lines in the segment before this one.
    pub lines: u64,
    /// Bytes in the segment before this line.
    pub bytes: u64,
    /// The first position.
    pub first_seq: u64,
    /// The position of the line before this one.
    pub last_seq: u64,
    /// The time of the first line.
    pub first_time: String,
    /// The time of the line before this one.
    pub last_time: String,
}

/// `log.recovered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// The segment's file name.
    pub segment: String,
    /// Where the bytes were.
    pub offset: u64,
    /// How many they were.
    pub bytes: u64,
    /// Their SHA-256, in hexadecimal.
    pub sha256: String,
    /// Where they lie now, relative to the store.
    pub torn: String,
}

/// `log.gap`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The segment, or the folder of the segments when a whole one is gone, relative to the store.
    pub segment: String,
    /// Where the damage begins.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The first position that is missing.
    pub from_seq: u64,
    /// The last one.
    pub to_seq: u64,
    /// The class of the damage.
    pub class: String,
    /// Why it was accepted.
    pub reason: String,
}

/// `log.clock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStep {
    /// The time of the line before.
    pub before: String,
}

/// `log.mark`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {}
