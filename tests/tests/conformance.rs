//! Every store keeps the contract of `EventStore`: the checks of `annals_tests::conformance`, one test each.
#![expect(clippy::unwrap_used, reason = "a store that cannot be made fails the test")]

use std::sync::Arc;

use annals_engine::log::{Log, Options};
use annals_engine::storage::Disk;
use annals_engine::store::MemoryStore;
use annals_tests::conformance::Subject;

fn in_memory() -> Subject {
    Subject::new(|clock| Arc::new(MemoryStore::new(clock)))
}

/// A log in a folder of its own, which goes with the subject.
fn in_a_folder(segment_bytes: u64) -> Subject {
    let folder = tempfile::tempdir().unwrap();
    Subject::new(move |clock| {
        let storage = Arc::new(Disk::new(folder.path().join("store")));
        let options =
            Options { segment_bytes, index_bytes: segment_bytes / 3, ..Options::default() };
        Arc::new(Log::open(storage, clock, options).unwrap())
    })
}

fn on_disk() -> Subject {
    in_a_folder(Options::default().segment_bytes)
}

/// Segments so small that every few lines a new one begins.
fn in_small_segments() -> Subject {
    in_a_folder(2_000)
}

annals_tests::conformance!(memory, super::super::in_memory);
annals_tests::conformance!(log, super::super::on_disk);
annals_tests::persistence!(log_reopened, super::super::on_disk);
annals_tests::conformance!(small_segments, super::super::in_small_segments);
annals_tests::persistence!(small_segments_reopened, super::super::in_small_segments);
