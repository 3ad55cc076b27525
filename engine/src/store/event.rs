//! What is appended, and what an append answers.

use crate::clock::Timestamp;
use crate::error::Result;
use crate::format::Payload;
use crate::id::{EventId, EventType, Seq, StreamName, Version};

use super::{Cursor, Item};

/// An event that is not in the log yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// Its identity; a repeat with the same id and content is the same event.
    pub id: EventId,
    /// The stream that it belongs to.
    pub stream: StreamName,
    /// What happened.
    pub kind: EventType,
    /// The event that directly caused it.
    pub cause: Option<EventId>,
    /// One id for everything that follows from one outside stimulus.
    pub flow: Option<EventId>,
    /// The payload, an object.
    pub data: Payload,
}

/// What a stream must be at for an append to go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It has no event.
    NoStream,
    /// Its last event has this version.
    Version(Version),
}

impl Expected {
    /// The version that is expected; [`Version::ZERO`] for no stream.
    #[must_use]
    pub const fn version(self) -> Version {
        match self {
            Self::NoStream => Version::ZERO,
            Self::Version(version) => version,
        }
    }
}

/// An expectation of a stream, written to or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The stream.
    pub stream: StreamName,
    /// What it must be at before the append.
    pub expected: Expected,
}

/// When an append returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the bytes are on stable storage.
    #[default]
    Synced,
    /// After the operating system has the bytes: they survive the process, not the machine.
    Buffered,
}

/// One append: events that are visible together or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Append {
    /// The events, at most [`Append::EVENTS_MAX`], in order.
    pub events: Vec<NewEvent>,
    /// What must hold for it to go ahead; empty means anything.
    pub expectations: Vec<Expectation>,
    /// When it returns.
    pub durability: Durability,
}

impl Append {
    /// The most events of one batch.
    pub const EVENTS_MAX: usize = 1_000;
    /// The most bytes of one batch, all lines together.
    pub const BYTES_MAX: usize = 8 << 20;

    /// An append of these events that expects nothing and returns when they are on stable storage.
    #[must_use]
    pub fn new(events: Vec<NewEvent>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Adds an expectation.
    #[must_use]
    pub fn expecting(mut self, stream: StreamName, expected: Expected) -> Self {
        self.expectations.push(Expectation { stream, expected });
        self
    }

    /// Sets when it returns.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }
}

/// Where an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The event's id.
    pub id: EventId,
    /// Its position in the log.
    pub seq: Seq,
    /// Its position in its stream.
    pub version: Version,
}

/// What an append answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Where each event of the batch is, in the batch's order; empty when a decision was to append nothing.
    pub positions: Vec<Position>,
    /// Whether they were in the log before, so that nothing was written now.
    pub repeated: bool,
}

/// A fold with a decision: the store brings the fold up to date and then asks for the decision, with no event in
/// between. Both parts are pure: they read no clock and do no I/O.
pub trait Decider {
    /// The cursor up to which this fold has seen everything; `None` for a fold that has seen nothing.
    fn seen(&self) -> Option<Cursor>;

    /// Takes the next item of the log, as of `cursor`.
    fn apply(&mut self, item: &Item, cursor: &Cursor);

    /// Forgets everything: the fold has seen lines that were cut from the log, and is fed again from the start.
    fn restart(&mut self);

    /// Learns the position that the first event of the batch gets which is decided next: the others follow it, one by
    /// one, so that events of one batch can name each other's.
    fn begins(&mut self, first: Seq) {
        let _ = first;
    }

    /// What to append at `now`. An empty list appends nothing and is no error.
    ///
    /// # Errors
    /// A refusal, of kind `Refused` or any other: it is handed to the caller of `append_deciding` and nothing is
    /// written.
    fn decide(&mut self, now: Timestamp) -> Result<Append>;
}
