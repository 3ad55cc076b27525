//! A store that has its views kept: after appends, when enough has come together, it has a snapshot made.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use crate::error::Result;
use crate::format::Payload;
use crate::id::{Seq, StoreId, StreamName, Version};
use crate::projection::{Driver, Folded, Saved};
use crate::session::index::Sessions;
use crate::session::policy::{KnownPolicy, PolicyFile, append_under};
use crate::session::work::Work;
use crate::store::{
    Append, Appended, Cursor, Decider, Durability, EventStore, Follow, Health, Items, Read, Record,
    Snapshot, Stretch, View,
};

/// Making snapshots takes one part in so many of the time, however fast the log grows.
const SHARE: u32 = 20;

/// A store with its views.
pub(super) struct Keeping {
    store: Arc<dyn EventStore>,
    sessions: Driver<Sessions>,
    work: Driver<Work>,
    /// No snapshot is made before this moment.
    rests_until: Mutex<Option<Instant>>,
    /// The policy file in force, and what of it was told.
    policy: RwLock<Option<Arc<PolicyFile>>>,
    told: KnownPolicy,
}

impl Keeping {
    pub(super) fn new(store: Arc<dyn EventStore>) -> Self {
        Self {
            store,
            sessions: Driver::new(),
            work: Driver::new(),
            rests_until: Mutex::new(None),
            policy: RwLock::new(None),
            told: KnownPolicy::default(),
        }
    }

    /// Puts a policy file in force.
    pub(super) fn govern(&self, file: PolicyFile) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
    }

    /// The policy file in force.
    pub(super) fn policy(&self) -> Option<Arc<PolicyFile>> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The sessions as of the last durable event.
    pub(super) fn sessions(&self) -> Result<Arc<Folded<Sessions>>> {
        self.sessions.published(&*self.store)
    }

    /// The work at hand as of the last durable event.
    pub(super) fn work(&self) -> Result<Arc<Folded<Work>>> {
        self.work.published(&*self.store)
    }

    /// Has a snapshot made if one is due and no other thread is at it. The append that it follows is answered whatever
    /// becomes of it.
    fn keep_snapshots(&self) {
        let Ok(mut rests_until) = self.rests_until.try_lock() else { return };
        if rests_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let began = Instant::now();
        let mut made = false;
        let mut sessions = || {
            made = true;
            self.sessions.snapshot(&*self.store)
        };
        let kept = self.store.keep_snapshot(Sessions::NAME, Sessions::schema(), &mut sessions);
        let mut work = || {
            made = true;
            self.work.snapshot(&*self.store)
        };
        let kept = kept.and(self.store.keep_snapshot(Work::NAME, Work::schema(), &mut work));
        // What failed or was too big to keep had its price all the same.
        if made || kept.is_err() {
            *rests_until = Some(Instant::now() + began.elapsed() * SHARE);
        }
    }
}

impl fmt::Debug for Keeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping").field("store", &self.store.id()).finish_non_exhaustive()
    }
}

impl EventStore for Keeping {
    fn id(&self) -> StoreId {
        self.store.id()
    }

    fn append(&self, append: Append) -> Result<Appended> {
        let appended = self.store.append(append)?;
        self.keep_snapshots();
        Ok(appended)
    }

    fn append_deciding(
        &self,
        decider: &mut (dyn Decider + Send),
        durability: Durability,
    ) -> Result<Appended> {
        let appended = match self.policy() {
            Some(file) => append_under(&*self.store, (&self.told, &file), decider, durability)?,
            None => self.store.append_deciding(decider, durability)?,
        };
        self.keep_snapshots();
        Ok(appended)
    }

    fn read(&self, read: Read) -> Result<Items<'_>> {
        self.store.read(read)
    }

    fn read_stream(&self, stream: &StreamName, after: Version) -> Result<Items<'_>> {
        self.store.read_stream(stream, after)
    }

    fn read_stream_of(&self, stream: &StreamName, types: &[&str]) -> Result<Items<'_>> {
        self.store.read_stream_of(stream, types)
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

    fn files(&self) -> Result<Vec<(Seq, PathBuf)>> {
        self.store.files()
    }

    fn stretches(&self, after: Option<Cursor>, view: View) -> Result<Vec<Box<dyn Stretch + '_>>> {
        self.store.stretches(after, view)
    }

    fn snapshot(&self, projection: &str, schema: u64, below: Option<Seq>) -> Option<Snapshot> {
        self.store.snapshot(projection, schema, below)
    }

    fn keep_snapshot(
        &self,
        projection: &str,
        schema: u64,
        make: &mut dyn FnMut() -> Result<Option<Snapshot>>,
    ) -> Result<bool> {
        self.store.keep_snapshot(projection, schema, make)
    }
}
