//! What is folded from the log is the same however it is folded: at once, in stretches, from a snapshot, after damage.
#![expect(clippy::unwrap_used, reason = "a store that cannot be used fails the test")]
#![expect(clippy::disallowed_methods, reason = "what others do to the files of a store")]

mod digests;
mod past;
mod snapshots;

use std::fs;
use std::path::{Path, PathBuf};

use annals_engine::Engine;
use annals_engine::engine::Options;
use annals_engine::projection::Folded;
use annals_engine::session::index::Sessions;
use annals_engine::store::{Append, Durability, EventStore, View};
use annals_tests::sessions::Sessions as Events;

/// Small in all its parts, so that a few hundred events make many of them.
fn small() -> Options {
    Options {
        segment_bytes: 24 << 10,
        index_bytes: 4 << 10,
        snapshot_bytes: 6 << 10,
        stretch_bytes: 5 << 10,
        ..Options::default()
    }
}

fn open(folder: &Path) -> Engine {
    Engine::open(folder, small()).unwrap()
}

fn open_read_only(folder: &Path) -> Engine {
    Engine::open_read_only(folder, small()).unwrap()
}

/// The bytes of a view: the same for the same state, and for no other.
fn bytes(folded: &Folded<Sessions>) -> String {
    let state = serde_json::to_string(folded.state()).unwrap();
    format!("{} {} {state}", folded.as_of(), folded.events())
}

/// The bytes of the view folded from nothing, one event after the other.
fn one_by_one(store: &dyn EventStore) -> String {
    bytes(&Folded::of(store, View::Durable).unwrap())
}

/// The view that an engine gives out, against the one that is folded from nothing.
fn check(engine: &Engine, what: &str) {
    same(&bytes(&engine.sessions().unwrap()), &one_by_one(engine.store()), what);
}

/// Fails when the two differ, and shows where.
fn same(got: &str, expected: &str, what: &str) {
    if got != expected {
        let bytes = got.bytes().zip(expected.bytes());
        let at = bytes.take_while(|(a, b)| a == b).count();
        let around = |text: &str| {
            let near = text.as_bytes().iter().skip(at.saturating_sub(80)).take(160);
            String::from_utf8_lossy(&near.copied().collect::<Vec<_>>()).into_owned()
        };
        panic!(
            "{what}: the same up to {at}\n     got {}\nexpected {}",
            around(got),
            around(expected)
        );
    }
}

fn append(engine: &Engine, events: &mut Events, batches: usize) {
    for _ in 0..batches {
        let append = Append::new(events.batch()).durability(Durability::Buffered);
        engine.append(append).unwrap();
    }
    let append = Append::new(events.batch());
    engine.append(append).unwrap();
}

fn files(folder: PathBuf, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().ends_with(end));
    files.sort();
    files
}

fn snapshots(folder: &Path) -> Vec<PathBuf> {
    files(folder.join("snapshots"), ".snap")
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    files(folder.join("log"), ".jsonl")
}

/// Writes bytes over a file, whatever its mode.
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::OpenOptions::new().create_new(true).write(true).open(path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    std::io::Write::write_all(&mut &file, bytes).unwrap();
}
