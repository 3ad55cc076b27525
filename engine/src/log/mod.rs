//! The file log: records in order, payloads opaque, several processes and no daemon.
//!
//! What stands in [`crate::format`] about the bytes is kept here. [`Log`] is an [`EventStore`]; what maps to files only
//! (`verify`, `repair`) stands beside it.

mod blobs;
mod catalog;
mod create;
mod draft;
mod follow;
mod gaps;
mod index;
mod indexing;
mod jump;
mod known;
mod mark;
mod marks;
mod queue;
mod reader;
mod recover;
mod repair;
mod rest;
mod roll;
mod seek;
mod segments;
mod slots;
mod snapshots;
mod stretch;
mod tail;
mod verify;
mod visit;
mod waits;
mod walk;
mod writer;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::format::slot::Durable;
use crate::format::{APPEND_LOCK, Payload, SYNC_LOCK, control, segment_path};
use crate::id::{Seq, StoreId, StreamName, Version};
use crate::storage::{File, LockWait, Storage};
use crate::store::{
    Append, Appended, Cursor, Decider, Durability, EventStore, Follow, Health, Item, Items, Read,
    Record, Snapshot, Stretch, View, only_of,
};

pub use repair::{Accepted, Remedy, remedies, repair};
pub use verify::{Progress, Report, verify, verify_with};

use catalog::{Catalog, StreamReader};
use draft::Room;
use marks::Marks;
use queue::Queue;
use rest::Rest;
use slots::LockFile;
use tail::Tail;
use waits::Waits;

/// How a log is opened.
#[derive(Clone)]
pub struct Options {
    /// A segment that has reached this many bytes is sealed, at most [`Options::SEGMENT_BYTES_MAX`]. 64 MiB.
    pub segment_bytes: u64,
    /// So many bytes of the active segment are known in memory alone before they get an index on disk. 4 MiB.
    pub index_bytes: u64,
    /// The log grows by so many bytes at least before a snapshot is made again of what is folded from it. 16 MiB.
    pub snapshot_bytes: u64,
    /// Whoever folds the log with several threads reads it in stretches of about so many bytes, each of which takes a
    /// few megabytes of memory. 64 MiB.
    pub stretch_bytes: u64,
    /// The program and its version, for the headers of segments.
    pub program: String,
    /// Who is told what a person should know; nobody by default. It is called with locks held: it must not use the log.
    pub notices: Option<Tell>,
    /// Whether this process lives long: then it marks the log after a quiet spell, so that the log itself says that its
    /// last line is durable.
    pub long_lived: bool,
}

impl Options {
    /// The most that `segment_bytes` may be: 512 MiB.
    pub const SEGMENT_BYTES_MAX: u64 = 512 << 20;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            index_bytes: 4 << 20,
            snapshot_bytes: 16 << 20,
            stretch_bytes: 64 << 20,
            program: concat!("annals-engine ", env!("CARGO_PKG_VERSION")).to_owned(),
            notices: None,
            long_lived: false,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("segment_bytes", &self.segment_bytes)
            .field("index_bytes", &self.index_bytes)
            .field("snapshot_bytes", &self.snapshot_bytes)
            .field("stretch_bytes", &self.stretch_bytes)
            .field("program", &self.program)
            .field("long_lived", &self.long_lived)
            .finish_non_exhaustive()
    }
}

/// Who is told a [`Notice`].
pub type Tell = Arc<dyn Fn(&Notice) + Send + Sync>;

/// What a person should know and no caller asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Bytes that were never acknowledged were taken off the end of a segment and kept.
    TornTail {
        /// The segment's first position.
        segment: Seq,
        /// Where they were.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Where they lie now, relative to the store.
        kept: String,
    },
    /// A wait for a lock has grown long.
    LockWait(LockWait),
    /// File notification does not work here; followers look again from time to time.
    Polling(String),
}

/// A log that is open. Clones share it.
#[derive(Clone, Debug)]
pub struct Log {
    view: Arc<LogView>,
    writer: Option<Arc<Writer>>,
}

/// What reading needs: nothing here makes a file, takes a lock or changes a byte.
#[derive(Debug)]
struct LogView {
    storage: Arc<dyn Storage>,
    id: StoreId,
    marks: Marks,
    catalog: Catalog,
    rest: Rest,
    options: Options,
}

/// What appending needs.
#[derive(Debug)]
struct Writer {
    view: Arc<LogView>,
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    id: StoreId,
    /// Who writes, for the headers of segments.
    who: control::Writer,
    /// The second sync failures in a row that happened before this handle was opened.
    halts: AtomicU64,
    queue: Queue,
    /// The order of these two, and of the kernel's locks inside them, is append, then sync.
    append: Mutex<AppendSide>,
    sync: Mutex<SyncSide>,
    /// Whether an index should be written.
    index_due: AtomicBool,
    /// How often indexes were written: then snapshots may be due as well.
    closed: AtomicU64,
    /// That number when snapshots of a projection were last asked for.
    seen_closed: Mutex<HashMap<String, u64>>,
    /// Whether somebody writes indexes now.
    indexing: AtomicBool,
    /// The active segment by its first position, opened before the lines of this process were written.
    active: Mutex<Option<(Seq, Arc<dyn File>)>>,
}

/// What belongs to the append lock.
#[derive(Debug)]
struct AppendSide {
    lock: LockFile,
    /// The slots of the sync lock, for reading.
    durable: LockFile,
    tail: Tail,
    /// Whether others had written when this process last looked: then it looks before it takes the lock, too.
    crowded: bool,
    /// Room for lines, used again.
    room: Room,
}

/// What belongs to the sync lock.
#[derive(Debug)]
struct SyncSide {
    lock: LockFile,
    /// The slots of the append lock, for reading.
    written: LockFile,
}

impl Log {
    /// Opens the store in a folder for reading and appending, and makes it when the folder is empty or absent. On
    /// return the log is settled: every whole batch in it is on stable storage, and a torn tail is set aside. Damage
    /// below the watermark does not hinder opening: appends are refused with it, reads go on around it.
    ///
    /// # Errors
    /// `Unsupported` on a network file system or for another format; `InvalidInput` when the folder holds something
    /// else; `ReadOnly`, `Full` and `Io` as the disk says.
    pub fn open(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self> {
        create::check_sharing(&*storage)?;
        if options.segment_bytes > Options::SEGMENT_BYTES_MAX {
            let most = Options::SEGMENT_BYTES_MAX;
            return Err(Error::invalid(format!(
                "a segment is sealed at {most} bytes at the latest"
            ))
            .field("segment_bytes"));
        }
        let id = create::open_or_create(&storage, &*clock)?;
        let view = Arc::new(LogView::new(Arc::clone(&storage), id, options));
        let waits = view.options.notices.clone().map(Waits::new);
        let waits = waits.as_ref();
        let writer = Arc::new(Writer {
            who: create::writer(&view.options),
            append: Mutex::new(AppendSide {
                lock: LockFile::open(&storage, APPEND_LOCK)?.telling(waits),
                durable: LockFile::open(&storage, SYNC_LOCK)?,
                tail: Tail::new(&storage, id),
                crowded: false,
                room: Room::default(),
            }),
            sync: Mutex::new(SyncSide {
                lock: LockFile::open(&storage, SYNC_LOCK)?.telling(waits),
                written: LockFile::open(&storage, APPEND_LOCK)?,
            }),
            view: Arc::clone(&view),
            storage,
            clock,
            id,
            halts: AtomicU64::new(u64::MAX),
            queue: Queue::default(),
            index_due: AtomicBool::new(false),
            closed: AtomicU64::new(0),
            seen_closed: Mutex::default(),
            indexing: AtomicBool::new(false),
            active: Mutex::default(),
        });
        writer.open()?;
        let log = Self { view, writer: Some(writer) };
        if log.view.options.long_lived {
            log.mark_when_quiet();
        }
        Ok(log)
    }

    /// Opens a store for reading alone: no lock is taken, no file made, no byte changed, and a read-only mount will do.
    ///
    /// # Errors
    /// `NotFound` when there is no store; `Unsupported` for another format.
    pub fn open_read_only(storage: Arc<dyn Storage>, options: Options) -> Result<Self> {
        let id = create::read_store(&*storage)?;
        let view = Arc::new(LogView::new(storage, id, options));
        Ok(Self { view, writer: None })
    }

    /// The folder's storage, for what maps to files only.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.view.storage
    }

    fn writer(&self) -> Result<&Writer> {
        self.writer.as_deref().ok_or_else(|| {
            Error::new(ErrorKind::ReadOnly, "the store was opened for reading")
                .path(self.view.storage.display(""))
                .hint("who appends needs a folder that he may write to")
        })
    }
}

impl Writer {
    /// Settles a log that was just opened. Damage is left for the first append to report.
    fn open(&self) -> Result<()> {
        let mut append = locked(&self.append);
        let held = append.lock.acquire()?;
        let mut sync = locked(&self.sync);
        let also_held = sync.lock.acquire()?;
        let settled = self.settle(&mut append, &mut sync);
        let floor: Durable = sync.lock.read()?.unwrap_or_default();
        drop(also_held);
        drop(held);
        match settled {
            Err(e) if *e.kind() == ErrorKind::Corrupt => {}
            other => {
                other?;
                self.remove_unnamed_snapshots();
                blobs::remove_unnamed(&*self.storage);
            }
        }
        self.halts.store(floor.halts, Ordering::SeqCst);
        Ok(())
    }

    fn notice(&self, notice: &Notice) {
        self.view.notice(notice);
    }
}

impl LogView {
    fn new(storage: Arc<dyn Storage>, id: StoreId, options: Options) -> Self {
        Self {
            storage,
            id,
            marks: Marks::new(),
            catalog: Catalog::default(),
            rest: Rest::default(),
            options,
        }
    }

    fn notice(&self, notice: &Notice) {
        if let Some(tell) = &self.options.notices {
            tell(notice);
        }
    }
}

impl EventStore for Log {
    fn id(&self) -> StoreId {
        self.view.id
    }

    fn append(&self, append: Append) -> Result<Appended> {
        self.writer()?.append_batch(append)
    }

    fn append_deciding(
        &self,
        decider: &mut (dyn Decider + Send),
        durability: Durability,
    ) -> Result<Appended> {
        self.writer()?.append_decided(decider, durability)
    }

    fn read(&self, read: Read) -> Result<Items<'_>> {
        Ok(Box::new(reader::Reader::new(Arc::clone(&self.view), read)?))
    }

    fn read_stream(&self, stream: &StreamName, after: Version) -> Result<Items<'_>> {
        Ok(Box::new(StreamReader::new(Arc::clone(&self.view), stream, after)?))
    }

    fn read_stream_of(&self, stream: &StreamName, types: &[&str]) -> Result<Items<'_>> {
        if let Some(writer) = &self.writer
            && let Some(known) = writer.known_of(stream.as_str(), types)?
        {
            return Ok(Box::new(known.into_iter().map(|r| Ok(Item::Record(Box::new(r))))));
        }
        let read = self.read_stream(stream, Version::ZERO)?;
        Ok(only_of(read, types))
    }

    fn payload(&self, record: &Record) -> Result<Payload> {
        blobs::payload(&*self.view.storage, record)
    }

    fn head(&self, stream: &StreamName) -> Result<Version> {
        if let Some(writer) = &self.writer
            && let Some(known) = writer.known_version(stream.as_str())?
        {
            return Ok(known);
        }
        if let Some(version) = self.view.catalog.head(&self.view, stream.as_str())? {
            return Ok(version);
        }
        let mut tail = Tail::new(&self.view.storage, self.view.id);
        tail.catch_up(&*self.view.storage)?;
        tail.version(stream.as_str())
    }

    fn end(&self, view: View) -> Result<Option<Cursor>> {
        if let Some(writer) = &self.writer
            && let Some(known) = writer.known_end(view)?
        {
            return Ok(Some(known));
        }
        reader::end(&self.view, view)
    }

    fn follow(&self, read: Read) -> Result<Box<dyn Follow + '_>> {
        Ok(Box::new(follow::Follower::new(Arc::clone(&self.view), read)?))
    }

    fn files(&self) -> Result<Vec<(Seq, PathBuf)>> {
        let storage = &*self.view.storage;
        let file = |first: Seq| (first, storage.display(&segment_path(first)));
        Ok(segments::list(storage)?.into_iter().map(file).collect())
    }

    fn stretches(&self, after: Option<Cursor>, view: View) -> Result<Vec<Box<dyn Stretch + '_>>> {
        stretch::stretches(&self.view, after, view)
    }

    fn snapshot(&self, projection: &str, schema: u64, below: Option<Seq>) -> Option<Snapshot> {
        self.view.snapshot(projection, schema, below)
    }

    fn keep_snapshot(
        &self,
        projection: &str,
        schema: u64,
        make: &mut dyn FnMut() -> Result<Option<Snapshot>>,
    ) -> Result<bool> {
        match &self.writer {
            Some(writer) => writer.keep_snapshot(projection, schema, make),
            None => Ok(false),
        }
    }

    fn health(&self) -> Result<Health> {
        let report = verify(&self.view.storage, &mut |_| {})?;
        let open: Vec<_> = report.damages.into_iter().filter(|damage| !damage.accepted).collect();
        Ok(if open.is_empty() { Health::Ok } else { Health::Damaged(open) })
    }
}

/// Locks; a caller that panicked inside has left nothing half done that a later one would not look at again.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
