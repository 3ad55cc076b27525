//! fjall, persisted with `SyncAll` after every insert; it synchronises threads by itself.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Entry, Keeping, Loaded, Outcome, Rival, text};
use crate::floors::commit::Appender;

/// fjall.
pub const RIVAL: Rival =
    Rival { name: "fjall, SyncAll", appender, keeping: Some(Keeping { load, open: opened }) };

struct Open {
    db: Database,
    events: Keyspace,
    seq: AtomicU64,
}

fn open(folder: &Path) -> Outcome<Open> {
    let db = Database::builder(folder.join("fjall")).open().map_err(text)?;
    let events = db.keyspace("events", KeyspaceCreateOptions::default).map_err(text)?;
    Ok(Open { db, events, seq: AtomicU64::new(0) })
}

fn key(stream: u64, version: u64) -> [u8; 16] {
    (u128::from(stream) << 64 | u128::from(version)).to_be_bytes()
}

impl Appender for Open {
    fn append(&self, line: &[u8]) -> Outcome<()> {
        let seq = self.seq.fetch_add(1, Ordering::Relaxed);
        self.events.insert(key(0, seq), line).map_err(text)?;
        self.db.persist(PersistMode::SyncAll).map_err(text)
    }
}

fn appender(folder: &Path, _callers: usize) -> Outcome<Box<dyn Appender>> {
    Ok(Box::new(open(folder)?))
}

fn load(folder: &Path, entries: &mut dyn Iterator<Item = Entry<'_>>) -> Outcome<()> {
    let store = open(folder)?;
    for Entry { stream, version, line } in entries {
        store.events.insert(key(stream, version), line).map_err(text)?;
    }
    store.db.persist(PersistMode::SyncAll).map_err(text)
}

fn opened(folder: &Path) -> Outcome<Box<dyn Loaded>> {
    Ok(Box::new(open(folder)?))
}

impl Loaded for Open {
    fn each(&self, take: &mut dyn FnMut(&[u8])) -> Outcome<()> {
        for guard in self.events.iter() {
            take(&guard.value().map_err(text)?);
        }
        Ok(())
    }

    fn last(&self, stream: u64, from: u64, to: u64) -> Outcome<usize> {
        let range = self.events.range(key(stream, from)..=key(stream, to));
        let found: Vec<_> =
            range.map(|guard| guard.value().map_err(text)).collect::<Outcome<_>>()?;
        Ok(std::hint::black_box(found).len())
    }
}
