//! A store whose appends fail, some without telling whether they happened, and that cannot read everything.

use std::collections::VecDeque;
use std::sync::Mutex;

use annals_engine::format::Payload;
use annals_engine::id::{StoreId, StreamName, Version};
use annals_engine::store::{
    Append, Appended, Cursor, Decider, Durability, EventStore, Follow, Health, Items, MemoryStore,
    Read, Record, View,
};
use annals_engine::{Error, ErrorKind, Result};

/// What becomes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It happens, and says so.
    Told,
    /// It happens, and nobody knows.
    Untold,
    /// It does not happen, and nobody knows.
    Undone,
    /// It does not happen, and there is no room.
    Full,
    /// It does not happen, and no other one will for now.
    Refused,
}

/// What reading a payload meets, if anything.
type Reading = Box<dyn FnMut(&Record) -> Option<ErrorKind> + Send>;

pub(crate) struct Flaky {
    store: MemoryStore,
    /// What becomes of the next appends. Those behind them happen.
    next: Mutex<VecDeque<Fate>>,
    reading: Mutex<Reading>,
}

impl Flaky {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self { store, next: Mutex::default(), reading: Mutex::new(Box::new(|_| None)) }
    }

    /// Decides on the next append.
    pub(crate) fn next(&self, fate: Fate) {
        self.after(0, &[fate]);
    }

    /// Decides on the appends after so many others.
    pub(crate) fn after(&self, appends: usize, fates: &[Fate]) {
        let before = std::iter::repeat_n(Fate::Told, appends);
        *self.next.lock().unwrap() = before.chain(fates.iter().copied()).collect();
    }

    /// Decides on what reading payloads meets.
    pub(crate) fn reading(&self, meets: impl FnMut(&Record) -> Option<ErrorKind> + Send + 'static) {
        *self.reading.lock().unwrap() = Box::new(meets);
    }

    fn happens(&self, append: impl FnOnce(&MemoryStore) -> Result<Appended>) -> Result<Appended> {
        let unclear = || Error::new(ErrorKind::Indeterminate, "nobody knows whether it happened");
        let fate = self.next.lock().unwrap().pop_front().unwrap_or(Fate::Told);
        match fate {
            Fate::Told => append(&self.store),
            Fate::Untold => append(&self.store).and_then(|_| Err(unclear())),
            Fate::Undone => Err(unclear()),
            Fate::Full => Err(Error::new(ErrorKind::Full, "there is no room")),
            Fate::Refused => Err(Error::new(ErrorKind::ReadOnly, "writes are refused")),
        }
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
        match (self.reading.lock().unwrap())(record) {
            Some(kind) => Err(Error::new(kind, "the bytes are not what they were")),
            None => self.store.payload(record),
        }
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
