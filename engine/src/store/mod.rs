//! What the layers above may rely on, whatever keeps the events: [`EventStore`] and the words it is spoken in. Nothing
//! here, and nothing above, knows a file or assumes a lock.

pub(crate) mod admit;
pub(crate) mod blob;
mod event;
mod memory;
mod read;
mod snapshot;
mod stretch;

pub use blob::BLOB_MAX;
pub use event::{Append, Appended, Decider, Durability, Expectation, Expected, NewEvent, Position};
pub use memory::MemoryStore;
pub use read::{
    Cursor, Damage, DamageClass, Filter, Follow, Followed, Health, Item, Items, NamePattern, Read,
    Record, Touched, View,
};
pub use snapshot::Snapshot;
pub use stretch::{Chain, Stretch};

use std::path::PathBuf;

use crate::error::Result;
use crate::format::Payload;
use crate::id::{Seq, StoreId, StreamName, Version};

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

    /// Reads those events of one stream in order that are of one of these types. A gap comes wherever one of them may be
    /// missing. A store may find them without looking at the others.
    ///
    /// # Errors
    /// Whatever reading meets.
    fn read_stream_of(&self, stream: &StreamName, types: &[&str]) -> Result<Items<'_>> {
        Ok(only_of(self.read_stream(stream, Version::ZERO)?, types))
    }

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

    /// The files that hold the events, each with the position of its first, in order; none where there are no files.
    ///
    /// # Errors
    /// Whatever looking meets.
    fn files(&self) -> Result<Vec<(Seq, PathBuf)>> {
        Ok(Vec::new())
    }

    /// Neighbouring stretches of what lies behind a cursor, in order, for whoever reads with several threads. They need
    /// not reach to the end of the view, and a store that has none to give loses nothing but time: what they do not tell
    /// is read with [`EventStore::read`].
    ///
    /// # Errors
    /// `HistoryChanged` when the cursor is not of this history.
    fn stretches(&self, after: Option<Cursor>, view: View) -> Result<Vec<Box<dyn Stretch + '_>>> {
        let _ = (after, view);
        Ok(Vec::new())
    }

    /// The newest snapshot of a projection in a form that is whole, of this store, of this schema, not ahead of the
    /// durable events, and of a position below the one given. Whether its cursor is of the present history is found out
    /// by reading on from it. A store need not keep any, and one that cannot be read is as good as none.
    fn snapshot(&self, projection: &str, schema: u64, below: Option<Seq>) -> Option<Snapshot> {
        let _ = (projection, schema, below);
        None
    }

    /// Keeps a snapshot if the store has grown so much that one is wanted and nobody else is at it; then `make` is
    /// called, once. Returns whether one was kept. It may be called after every append: mostly it does nothing. It must
    /// not be called with a lock held that `make` wants.
    ///
    /// # Errors
    /// What `make` and the disk say. No answer of the store depends on it.
    fn keep_snapshot(
        &self,
        projection: &str,
        schema: u64,
        make: &mut dyn FnMut() -> Result<Option<Snapshot>>,
    ) -> Result<bool> {
        let _ = (projection, schema, make);
        Ok(false)
    }
}

/// The gaps and errors among items, and the events of these types.
pub(crate) fn only_of<'a>(items: Items<'a>, types: &[&str]) -> Items<'a> {
    let types: Vec<String> = types.iter().map(|kind| (*kind).to_owned()).collect();
    Box::new(items.filter(move |item| match item {
        Ok(Item::Record(record)) => types.iter().any(|kind| kind == record.kind.as_str()),
        _ => true,
    }))
}
