//! What a process costs that opens a store, appends one event and ends: what lies in the segments that are full does
//! not count.

use std::path::Path;
use std::sync::Arc;

use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName, Version};
use annals_engine::log::{Log, Options};
use annals_engine::store::{Append, Durability, EventStore, NewEvent};

use super::chat::files;
use super::meter::Meter;

const BEGIN: Timestamp = Timestamp::from_millis(1_775_001_600_000);

fn options() -> Options {
    Options { segment_bytes: 16 << 10, index_bytes: 1 << 20, ..Options::default() }
}

fn event(stream: &str, bytes: usize, now: Timestamp) -> NewEvent {
    NewEvent {
        id: EventId::new(now),
        stream: StreamName::new(stream).unwrap(),
        kind: EventType::new("x.test.said").unwrap(),
        cause: None,
        flow: None,
        data: Payload::of(&serde_json::json!({ "text": "x".repeat(bytes) })).unwrap(),
    }
}

fn sealed(store: &Path) -> usize {
    files(store).iter().filter(|(name, _)| name.ends_with(".jsonl")).count() - 1
}

/// A store with so many full segments. Bytes behind its end were once taken for a torn tail and set aside.
fn store(store: &Path, segments: usize) {
    let open = || {
        let storage = Arc::new(annals_engine::storage::Disk::new(store));
        Log::open(storage, Arc::new(ManualClock::new(BEGIN)), options()).unwrap()
    };
    let append = |log: &Log, stream: &str| {
        let batch = (0..4).map(|_| event(stream, 3_000, BEGIN)).collect();
        log.append(Append::new(batch).durability(Durability::Buffered)).unwrap();
    };
    append(&open(), "old");
    let active = store.join("log/00000000000000000001.jsonl");
    let mut bytes = std::fs::read(&active).unwrap();
    bytes.extend_from_slice(b"{\"seq\":");
    std::fs::write(&active, bytes).unwrap();
    let log = open();
    while sealed(store) < segments {
        append(&log, "busy");
    }
    log.append(Append::new(vec![event("busy", 10, BEGIN)])).unwrap();
    assert_eq!(sealed(store), segments);
    assert_eq!(files(store).iter().filter(|(name, _)| name.starts_with("torn/")).count(), 1);
}

/// Goal: the calls of a process that opens a store and appends one event do not grow with the store, whether the event's
/// stream is new, was last seen in the first segment, or is in all of them. Method: two stores with 3 and with 200 full
/// segments, and a torn tail once set aside in both; an hour later one event is appended to each such stream by a process
/// of its own, and its calls are counted.
#[test]
fn an_append_opens_no_full_segment() {
    let home = tempfile::tempdir().unwrap();
    let sizes = [3, 200];
    let stores = sizes.map(|segments| home.path().join(segments.to_string()));
    stores.iter().zip(sizes).for_each(|(path, segments)| store(path, segments));
    let now = BEGIN.plus(std::time::Duration::from_secs(3_600));
    for stream in ["new", "old", "busy"] {
        let mut calls = stores.iter().map(|path| {
            let meter = Meter::default();
            let log = meter.open_log(path, Arc::new(ManualClock::new(now)), options());
            let appended = log.append(Append::new(vec![event(stream, 10, now)])).unwrap();
            let first = appended.positions[0].version == Version(1);
            assert_eq!(first, stream == "new");
            drop(log);
            meter.take()
        });
        let (few, many) = (calls.next().unwrap(), calls.next().unwrap());
        println!(
            "{stream}: {} calls in the small store, {} in the big one",
            few.count(),
            many.count()
        );
        assert!(many.count() <= few.count(), "{stream}: {many:?}\nafter {few:?}");
        assert!(many.bytes() <= few.bytes() + (16 << 10), "{stream}: {} bytes", many.bytes());
    }
}

/// Goal: a process that opens a store and appends reads what lies behind the last index, once, and asks no more of each
/// index than that it fits. Method: an active segment with three indexes and 40 kilobytes behind them; the bytes of it
/// that are read, and how often each index is mapped.
#[test]
fn what_has_no_index_is_read_once() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let clock = || Arc::new(ManualClock::new(BEGIN));
    let options = Options { index_bytes: 64 << 10, ..Options::default() };
    let indexes = || files(&store).iter().filter(|(name, _)| name.ends_with(".idx")).count();
    let storage = Arc::new(annals_engine::storage::Disk::new(&store));
    let log = Log::open(storage, clock(), options.clone()).unwrap();
    let append = || log.append(Append::new(vec![event("busy", 3_000, BEGIN)])).unwrap();
    while indexes() < 3 {
        append();
    }
    (0..13).for_each(|_| drop(append()));
    assert_eq!(indexes(), 3);
    let meter = Meter::default();
    let log = meter.open_log(&store, clock(), options);
    log.append(Append::new(vec![event("new", 10, BEGIN)])).unwrap();
    let calls = meter.take();
    let (read, mapped) = (calls.bytes_of(".jsonl"), calls.mapped());
    println!("{read} bytes of the segment, maps: {mapped:?}");
    assert!((40_000..48_000).contains(&read), "{read} bytes of the segment");
    assert_eq!(mapped.len(), 3, "{mapped:?}");
}
