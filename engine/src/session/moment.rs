//! Where and when something stands in the log.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::format::Fields;

use super::event::happened_at;

/// The position of an event, and when what it tells happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment {
    /// The position in the log.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
}

impl Moment {
    /// That of an event.
    #[must_use]
    pub fn of(event: &Fields<'_>) -> Self {
        Self { seq: event.seq.0, at: happened_at(event.time, event.data) }
    }
}
