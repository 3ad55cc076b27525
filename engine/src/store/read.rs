//! What is read: records, cursors, gaps, filters, and the follower's contract.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::format::{self, BlobRef, Fields, Line, Payload};
use crate::id::{Crc, EventId, EventType, Seq, StoreId, StreamName, Version};

/// An event of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its position in the log.
    pub seq: Seq,
    /// When it was appended.
    pub time: Timestamp,
    /// The highest position that the writer knew to be on stable storage.
    pub durable: Seq,
    /// Its stream.
    pub stream: StreamName,
    /// Its position in the stream.
    pub version: Version,
    /// What happened.
    pub kind: EventType,
    /// Its identity.
    pub id: EventId,
    /// `(i, n)` when it is the i-th of a batch of n.
    pub batch: Option<(u32, u32)>,
    /// The event that caused it.
    pub cause: Option<EventId>,
    /// What it belongs to.
    pub flow: Option<EventId>,
    /// Where its `content` lies when that is too big for a line.
    pub blob: Option<BlobRef>,
    /// The payload.
    pub data: Payload,
    /// The checksum of the line before.
    pub prev: Crc,
    /// The checksum of its line.
    pub crc: Crc,
}

impl Record {
    /// The record of a verified line.
    ///
    /// # Errors
    /// `InvalidInput` never for a line that the codec wrote; the limits of names are checked again here.
    pub fn from_line(line: &Line<'_>) -> Result<Self> {
        let stream = StreamName::new(line.fields.stream.as_ref())?;
        Ok(Self::named(line, stream, EventType::new(line.fields.kind)?))
    }

    /// The record of a verified line whose names are known already.
    pub(crate) fn named(line: &Line<'_>, stream: StreamName, kind: EventType) -> Self {
        let f = &line.fields;
        Self {
            seq: f.seq,
            time: f.time,
            durable: f.durable,
            stream,
            version: f.version,
            kind,
            id: f.id,
            batch: f.batch,
            cause: f.cause,
            flow: f.flow,
            blob: f.blob,
            data: Payload::verified(f.data),
            prev: f.prev,
            crc: line.crc,
        }
    }

    /// The line of this record as it stands in the log, its line feed included: the same bytes that it was read from.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data.as_str().len() + 512);
        format::encode(&self.fields(), &mut out);
        out
    }

    /// What its line says.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            seq: self.seq,
            time: self.time,
            durable: self.durable,
            prev: self.prev,
            stream: Cow::Borrowed(self.stream.as_str()),
            version: self.version,
            kind: self.kind.as_str(),
            id: self.id,
            batch: self.batch,
            cause: self.cause,
            flow: self.flow,
            blob: self.blob,
            data: self.data.as_str(),
        }
    }

    /// The cursor that stands after this record.
    #[must_use]
    pub fn cursor(&self, store: StoreId) -> Cursor {
        Cursor { store, seq: self.seq, crc: self.crc }
    }
}

/// A place in one history: after the event at `seq`, whose line has the checksum `crc`. Opaque outside; its text form
/// is what command lines and protocols carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cursor {
    pub(crate) store: StoreId,
    pub(crate) seq: Seq,
    pub(crate) crc: Crc,
}

impl Cursor {
    /// The position after which reading goes on.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.seq, self.crc, self.store.0.simple())
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split('.').collect();
        let read = |parts: &[&str]| {
            let [seq, crc, store] = parts else { return None };
            Some(Self {
                seq: Seq(seq.parse().ok()?),
                crc: Crc(u32::from_str_radix(crc, 16).ok()?),
                store: StoreId(Uuid::try_parse(store).ok()?),
            })
        };
        read(&parts).ok_or_else(|| {
            Error::invalid(format!("{text:?} is not a cursor"))
                .field("cursor")
                .hint("take the cursor as an earlier answer printed it")
        })
    }
}

/// What kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DamageClass {
    /// Bytes after the last whole batch that were never acknowledged.
    Torn,
    /// Bytes below the watermark that do not verify.
    Corrupt,
    /// The file ends before events that were acknowledged.
    Lost,
    /// Whole lines that belong to another place or another log, or stand twice.
    Misplaced,
    /// A line with a good checksum that is not in the form of this format, or bytes after a seal.
    Foreign,
    /// A format that this program does not know.
    Unsupported,
    /// A payload file that is absent or has other content.
    Blob,
}

impl DamageClass {
    /// The stable word.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Torn => "torn",
            Self::Corrupt => "corrupt",
            Self::Lost => "lost",
            Self::Misplaced => "misplaced",
            Self::Foreign => "foreign",
            Self::Unsupported => "unsupported",
            Self::Blob => "blob",
        }
    }
}

/// A stream that damage touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The stream.
    pub stream: String,
    /// The versions that are missing, first and last, where later events tell.
    pub versions: Option<(Version, Version)>,
}

/// A range of the log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What kind.
    pub class: DamageClass,
    /// The file, relative to the store.
    pub file: String,
    /// Where it begins in that file, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The positions that should be there, first and last; `None` when none is missing.
    pub seqs: Option<(Seq, Seq)>,
    /// The streams that lost something, as far as later events and legible text tell.
    pub touched: Vec<Touched>,
    /// Whether an operator has accepted it (`log.gap`).
    pub accepted: bool,
    /// What was seen, in words.
    pub detail: String,
}

/// One step of reading.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An event.
    Record(Box<Record>),
    /// Events that should be here cannot be read. Reading goes on behind them.
    Gap(Box<Damage>),
}

/// Items in order; an error ends them.
pub type Items<'a> = Box<dyn Iterator<Item = Result<Item>> + Send + 'a>;

/// How far reading goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Up to what is known to be on stable storage: the only view that may cause anything.
    #[default]
    Durable,
    /// Up to the last whole verified batch: for eyes.
    Written,
}

/// A name, or the beginning of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamePattern {
    /// Exactly this.
    Exact(String),
    /// Everything that begins so.
    Prefix(String),
}

impl NamePattern {
    /// Whether the name fits.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => name == exact,
            Self::Prefix(prefix) => name.starts_with(prefix.as_str()),
        }
    }
}

/// Which events are wanted. An empty list wants all. A gap comes wherever a wanted event may be missing; where the store
/// knows that none is, damage to other events need not be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Streams, any of these.
    pub streams: Vec<NamePattern>,
    /// Types, any of these.
    pub types: Vec<NamePattern>,
}

impl Filter {
    /// Whether an event of this stream and type is wanted.
    #[must_use]
    pub fn matches(&self, stream: &str, kind: &str) -> bool {
        let any = |patterns: &[NamePattern], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name))
        };
        any(&self.types, kind) && any(&self.streams, stream)
    }
}

/// What to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Where to begin: after this cursor, or at the start of the log.
    pub after: Option<Cursor>,
    /// How far.
    pub view: View,
    /// Which events.
    pub filter: Filter,
}

impl Read {
    /// Reads after the cursor.
    #[must_use]
    pub fn after(cursor: Option<Cursor>) -> Self {
        Self { after: cursor, ..Self::default() }
    }

    /// Sets the view.
    #[must_use]
    pub fn view(mut self, view: View) -> Self {
        self.view = view;
        self
    }

    /// Sets the filter.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }
}

/// What a follower gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Followed {
    /// The next item.
    Item(Item),
    /// There is nothing more now; everything up to the cursor was looked at (`None`: the log is empty).
    CaughtUp(Option<Cursor>),
    /// The time given passed and nothing came.
    Quiet,
}

/// Follows a log: every event once and in order, or an explicit gap. Batches come whole.
pub trait Follow: Send {
    /// The next step. After [`Followed::CaughtUp`] it waits, at most `timeout`; `None` waits for ever.
    ///
    /// # Errors
    /// `HistoryChanged` when lines that this follower has given were cut from the log; whatever reading meets.
    fn next(&mut self, timeout: Option<Duration>) -> Result<Followed>;

    /// The cursor to go on from: everything up to it has been given or filtered out. `None` before the first event.
    fn cursor(&self) -> Option<Cursor>;
}

/// How a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Well.
    Ok,
    /// Damaged ranges are known; those marked accepted do not hinder appends.
    Damaged(Vec<Damage>),
    /// It takes no appends, for this reason.
    Unsafe(String),
}
