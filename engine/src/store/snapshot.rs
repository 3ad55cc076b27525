//! What a store keeps for the projections of its events, if it likes to.

use super::Cursor;

/// The state of a projection after an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The cursor of that event.
    pub cursor: Cursor,
    /// Which form the state has; the projection knows.
    pub schema: u64,
    /// The state, opaque to the store.
    pub state: Vec<u8>,
}

impl Snapshot {
    /// The largest state that a store keeps, in bytes.
    pub const BYTES_MAX: usize = 256 << 20;
}
