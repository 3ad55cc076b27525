//! The workload as a store on disk: made once, then used by every run that asks for the same events.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::engine::{Engine, Options};
use annals_engine::log::Log;
use annals_engine::projection::Saved;
use annals_engine::session::index::Sessions;
use annals_engine::storage::Disk;
use annals_engine::store::{Append, Durability, NewEvent};

use crate::workload::{Events, Shape};

/// Changes when the workload does, so that stores made before are not taken for it.
const EDITION: u32 = 3;

/// How many events are appended before a store is opened again.
const EVENTS_AN_OPENING: usize = 10_000;

/// The folder where stores are kept: `ANNALS_BENCH_DATA`, or `bench-data` in the target folder of the project.
#[must_use]
pub fn data_folder() -> PathBuf {
    std::env::var_os("ANNALS_BENCH_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data"),
        PathBuf::from,
    )
}

/// A store with so many events of the workload below `data`: the one that is there, or a new one. It is not to be
/// written to; see [`copy`].
///
/// Snapshots of another schema than this program's would be passed over, and everything measured as if there were none:
/// a store that has such ones is made anew.
#[must_use]
pub fn store(data: &Path, shape: Shape, events: usize) -> PathBuf {
    let folder = data.join(name(shape, events));
    let (marker, schema) = (folder.with_extension("schema"), Sessions::schema().to_string());
    if !fs::read_to_string(&marker).is_ok_and(|made| made == schema) {
        let _ = fs::remove_dir_all(&folder);
        let making = folder.with_extension(format!("making-{}", std::process::id()));
        make(&making, shape, events);
        fs::rename(&making, &folder).unwrap();
        fs::write(&marker, schema).unwrap();
    }
    folder
}

fn name(shape: Shape, events: usize) -> String {
    format!("events-{events}-seed-{}-{}-v{EDITION}", shape.seed, shape.sessions)
}

/// Makes a store of the first `events` events, one append each, as if they had come one by one. It is opened again and
/// again, as by processes that come and go over days: snapshots are due by how the log grows then, and are not put off
/// because it grows fast.
pub fn make(folder: &Path, shape: Shape, events: usize) {
    fs::create_dir_all(folder).unwrap();
    let clock = Arc::new(ManualClock::default());
    let mut events = Events::new(shape).take(events).peekable();
    while let Some(first) = events.peek() {
        clock.set(time(first));
        let disk = Arc::new(Disk::new(folder));
        let log = Log::open(disk, Arc::clone(&clock) as _, Options::default()).unwrap();
        let engine = Engine::over(Arc::new(log), Arc::clone(&clock) as _);
        for _ in 0..EVENTS_AN_OPENING {
            let Some(event) = events.next() else { break };
            clock.set(time(&event));
            let last = events.peek().is_none();
            let durability = if last { Durability::Synced } else { Durability::Buffered };
            engine.append(Append::new(vec![event]).durability(durability)).unwrap();
        }
    }
}

fn time(event: &NewEvent) -> Timestamp {
    event.id.embedded_time().unwrap_or_default()
}

/// A copy of a store that may be written to. Sealed segments are linked and not copied: nobody writes them again.
pub fn copy(store: &Path, to: &Path) {
    for folder in [store.to_owned(), store.join("log"), store.join("snapshots")] {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let target = to.join(folder.strip_prefix(store).unwrap());
        fs::create_dir_all(&target).unwrap();
        for entry in entries.map(Result::unwrap).filter(|e| e.file_type().unwrap().is_file()) {
            let target = target.join(entry.file_name());
            if entry.metadata().unwrap().permissions().readonly() {
                fs::hard_link(entry.path(), target).unwrap();
            } else {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

/// The same without the snapshots, so that views are folded from nothing.
pub fn copy_without_snapshots(store: &Path, to: &Path) {
    copy(store, to);
    let _ = fs::remove_dir_all(to.join("snapshots"));
}

/// The segments of a store, in the order of the log.
#[must_use]
pub fn segments(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store.join("log")).unwrap();
    let mut segments: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    segments.sort();
    segments
}

/// Opens a store for reading.
#[must_use]
pub fn open(store: &Path) -> Engine {
    Engine::open_read_only(store, Options::default()).unwrap()
}
