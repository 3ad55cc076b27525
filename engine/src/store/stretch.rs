//! Reading a log in stretches, each by itself and on any thread.

use crate::error::Result;
use crate::format::Fields;

use super::Cursor;

/// A stretch of a log that can be read by itself. It shows events that are not yet known to belong to the log's one
/// order: only where a stretch follows on the one before it, they do.
pub trait Stretch: Send + Sync {
    /// Shows every event of the stretch in order, and tells then what they are worth.
    ///
    /// # Errors
    /// Whatever reading meets.
    fn read(&self, show: &mut dyn FnMut(&Fields<'_>)) -> Result<Chain>;
}

/// What a stretch turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Events in an unbroken chain, batches whole.
    Whole {
        /// The cursor that the first one follows.
        follows: Cursor,
        /// The cursor of the last one.
        last: Cursor,
        /// How many there are.
        events: u64,
    },
    /// No event begins in it.
    Empty,
    /// Something that only reading in order can judge: what was shown does not count.
    Broken,
}
