//! Segments that are verified at the same time say what they say one after the other.

use std::sync::Arc;

use super::*;
use crate::clock::SystemClock;
use crate::format::Payload;
use crate::id::{EventId, EventType, StreamName};
use crate::log::{Log, Options};
use crate::storage::{Access, Disk, write_full};
use crate::store::{Append, EventStore, NewEvent};

/// Numbers that are the same for the same seed (Marsaglia, "Xorshift RNGs").
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 8).unwrap() % bound.max(1)
    }
}

/// A store of a dozen small segments: batches and single events of a few streams.
fn store(dir: &tempfile::TempDir, random: &mut Random) -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(dir.path().join("store")));
    let options = Options { segment_bytes: 4_000, ..Options::default() };
    let log = Log::open(Arc::clone(&storage), Arc::new(SystemClock), options).unwrap();
    for number in 0..60 {
        let events = (0..1 + random.below(3)).map(|i| NewEvent {
            id: EventId::derived("test", "verify", &format!("{number}-{i}")),
            stream: StreamName::new(format!("s{}", random.below(7))).unwrap(),
            kind: EventType::new("x.test.said").unwrap(),
            cause: None,
            flow: None,
            data: Payload::of(&serde_json::json!({ "text": "x".repeat(random.below(300)) }))
                .unwrap(),
        });
        log.append(Append::new(events.collect())).unwrap();
    }
    storage
}

/// One random thing that happens to the files of a store.
fn damage(storage: &dyn Storage, random: &mut Random) {
    let names: Vec<String> =
        segments::list(storage).unwrap().into_iter().map(segment_path).collect();
    let one = |random: &mut Random| names[random.below(names.len())].clone();
    let path = one(random);
    let mut bytes = storage.open(&path, Access::Read).unwrap().map().unwrap().to_vec();
    let lines: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    if lines.len() < 2 {
        return;
    }
    let ends = [0, lines[0], lines[lines.len() - 2], bytes.len()];
    match random.below(8) {
        0 => bytes[random.below(lines[0])] ^= 1,
        1 => *bytes.last_mut().unwrap() ^= 1,
        2 => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        3 => bytes.truncate(ends[random.below(4)]),
        4 => {
            let from = random.below(lines.len() - 1);
            bytes.drain(lines[from]..lines[from + 1]);
        }
        5 => {
            let other = storage.open(&one(random), Access::Read).unwrap().map().unwrap().to_vec();
            bytes = other;
        }
        6 => {
            storage.remove(&path).unwrap();
            return;
        }
        _ => bytes.extend_from_slice(b"echo >> log\n"),
    }
    // A sealed segment cannot be written, but replaced.
    storage.remove(&path).unwrap();
    let file = storage.open(&path, Access::CreateNew).unwrap();
    write_full(&*file, &bytes, 0).unwrap();
}

/// Stores with one to three damages of every kind, at the borders of segments as well as inside, are verified by one
/// worker and by several: the reports are equal to the byte, and so is the progress.
#[test]
fn workers_change_no_report() {
    for seed in 1..80_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let dir = tempfile::tempdir().unwrap();
        let storage = store(&dir, &mut random);
        for _ in 0..random.below(4) {
            if segments::list(&*storage).unwrap().len() > 1 {
                damage(&*storage, &mut random);
            }
        }
        let verify = |workers| {
            let mut seen = Vec::new();
            let workers = NonZero::new(workers).unwrap();
            let report = verify_with(&storage, workers, &mut |progress| seen.push(progress));
            (report.unwrap(), seen)
        };
        let alone = verify(1);
        assert!(alone.0.segments > 1, "seed {seed}");
        for workers in [2, 3, 16] {
            assert_eq!(verify(workers), alone, "seed {seed}, {workers} workers");
        }
    }
}
