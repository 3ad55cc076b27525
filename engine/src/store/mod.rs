//! What the layers above may rely on, whatever keeps the events: [`EventStore`] and the words it is spoken in. Nothing
//! here, and nothing above, knows a file or assumes a lock.

pub(crate) mod admit;
pub(crate) mod blob;
mod event;
mod memory;
mod read;

pub use blob::BLOB_MAX;
pub use event::{Append, Appended, Decider, Durability, Expectation, Expected, NewEvent, Position};
pub use memory::MemoryStore;
pub use read::{
    Cursor, Damage, DamageClass, Filter, Follow, Followed, Health, Item, Items, NamePattern, Read,
    Record, Touched, View,
};

use crate::error::Result;
use crate::format::Payload;
use crate::id::{StoreId, StreamName, Version};

/// An append-only store of events in one order, with a contiguous version per stream.
///
/// All calls block. Every error says by its kind whether something may have been written: only `Indeterminate` may,
/// and then the same append, repeated with the same ids, finds out.
pub trait EventStore: Send + Sync {
    /// The store's identity.
    fn id(&self) -> StoreId;

    /// Appends a batch: whole or not at all, also across streams. On return the events are in the log at the
    /// positions given, and with [`Durability::Synced`] on stable storage. Ids that are all known already, with equal
    /// stream, type and data, give their first positions (durable under the same rule) and append nothing.
    ///
    /// # Errors
    /// `Conflict`, `IdReused`, `PartialDuplicate`, `TooLarge`, `InvalidInput`, `Full`, `Unavailable`, `ReadOnly`, `Io`,
    /// `NotFound` (a file of the store is gone), `Corrupt` (damage waits for the operator): nothing written.
    /// `Indeterminate`: perhaps.
    fn append(&self, append: Append) -> Result<Appended>;

    /// Lets `decider` see everything that is in the log and then decide what to append, with nothing in between. The
    /// decision is pure and may be asked for more than once.
    ///
    /// # Errors
    /// What [`EventStore::append`] and the decision itself say; `HistoryChanged` when the decider was fed from another
    /// store. One that has seen lines that are gone from this one is restarted instead.
    fn append_deciding(
        &self,
        decider: &mut (dyn Decider + Send),
        durability: Durability,
    ) -> Result<Appended>;

    /// Reads events in order.
    ///
    /// # Errors
    /// `HistoryChanged` when the cursor is not of this history.
    fn read(&self, read: Read) -> Result<Items<'_>>;

    /// Reads one stream in order, from the version after the one given.
    ///
    /// # Errors
    /// Whatever reading meets.
    fn read_stream(&self, stream: &StreamName, after: Version) -> Result<Items<'_>>;

    /// The whole payload of a record: its `data`, and the content that lies apart when it is too big for a line.
    ///
    /// # Errors
    /// `Corrupt` when that content is absent or is not what the line names.
    fn payload(&self, record: &Record) -> Result<Payload>;

    /// The version of a stream's last event, durable or not; [`Version::ZERO`] when it has none.
    ///
    /// # Errors
    /// Whatever reading meets.
    fn head(&self, stream: &StreamName) -> Result<Version>;

    /// The cursor of the last event that a view shows; `None` when it shows none.
    ///
    /// # Errors
    /// Whatever reading meets.
    fn end(&self, view: View) -> Result<Option<Cursor>>;

    /// Follows events in order as they come, from the place that `read` names.
    ///
    /// # Errors
    /// `HistoryChanged` when the cursor is not of this history.
    fn follow(&self, read: Read) -> Result<Box<dyn Follow + '_>>;

    /// How the store is.
    ///
    /// # Errors
    /// Whatever looking meets.
    fn health(&self) -> Result<Health>;
}
