//! A store whose appends fail without telling whether they happened.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use annals_engine::format::Payload;
use annals_engine::id::{StoreId, StreamName, Version};
use annals_engine::store::{
    Append, Appended, Cursor, Decider, Durability, EventStore, Follow, Health, Items, MemoryStore,
    Read, Record, View,
};
use annals_engine::{Error, ErrorKind, Result};

/// What becomes of the next append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It happens, and says so.
    Told = 0,
    /// It happens, and nobody knows.
    Untold = 1,
    /// It does not happen, and nobody knows.
    Undone = 2,
    /// It does not happen, and there is no room.
    Full = 3,
    /// It does not happen, and no other one will for now.
    Refused = 4,
}

pub(crate) struct Flaky {
    store: MemoryStore,
    next: AtomicU8,
    /// How many appends come before that one.
    before: AtomicU64,
}

impl Flaky {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { store, next: AtomicU8::new(Fate::Told as u8), before: AtomicU64::new(0) }
    }

    /// Decides on the next append.
    pub(crate) fn next(&self, fate: Fate) {
        self.next.store(fate as u8, Ordering::SeqCst);
    }

    /// Decides on the append after so many others.
    pub(crate) fn after(&self, appends: u64, fate: Fate) {
        self.before.store(appends, Ordering::SeqCst);
        self.next(fate);
    }

    fn happens(&self, append: impl FnOnce(&MemoryStore) -> Result<Appended>) -> Result<Appended> {
        let less = |n: u64| n.checked_sub(1);
        let fate = match self.before.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
            Ok(_) => Fate::Told as u8,
            Err(_) => self.next.swap(Fate::Told as u8, Ordering::SeqCst),
        };
        let unclear = || Error::new(ErrorKind::Indeterminate, "nobody knows whether it happened");
        if fate == Fate::Undone as u8 {
            return Err(unclear());
        }
        if fate == Fate::Full as u8 {
            return Err(Error::new(ErrorKind::Full, "there is no room"));
        }
        if fate == Fate::Refused as u8 {
            return Err(Error::new(ErrorKind::ReadOnly, "writes are refused"));
        }
        let appended = append(&self.store)?;
        if fate == Fate::Untold as u8 { Err(unclear()) } else { Ok(appended) }
    }
}

impl EventStore for Flaky {
    fn id(&self) -> StoreId {
        self.store.id()
    }

    fn append(&self, append: Append) -> Result<Appended> {
        self.happens(|store| store.append(append))
    }

    fn append_deciding(
        &self,
        decider: &mut (dyn Decider + Send),
        durability: Durability,
    ) -> Result<Appended> {
        self.happens(|store| store.append_deciding(decider, durability))
    }

    fn read(&self, read: Read) -> Result<Items<'_>> {
        self.store.read(read)
    }

    fn read_stream(&self, stream: &StreamName, after: Version) -> Result<Items<'_>> {
        self.store.read_stream(stream, after)
    }

    fn payload(&self, record: &Record) -> Result<Payload> {
        self.store.payload(record)
    }

    fn head(&self, stream: &StreamName) -> Result<Version> {
        self.store.head(stream)
    }

    fn end(&self, view: View) -> Result<Option<Cursor>> {
        self.store.end(view)
    }

    fn follow(&self, read: Read) -> Result<Box<dyn Follow + '_>> {
        self.store.follow(read)
    }

    fn health(&self) -> Result<Health> {
        self.store.health()
    }
}
