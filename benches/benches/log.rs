//! The log on the real disk, each beside the least that the machine must do for the same effect. Every name says what
//! is durable when the call returns and how big it is; only ratios within one run mean anything.
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up ends")]
#![expect(clippy::disallowed_methods, reason = "the floors are written without the engine")]

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use annals_benches::floors::point::Places;
use annals_benches::floors::{heads, map};
use annals_benches::stored;
use annals_benches::workload::{Events, Shape};
use annals_engine::clock::{Clock, SystemClock};
use annals_engine::engine::{self, Engine, Options};
use annals_engine::format::scan::{Piece, Scan};
use annals_engine::id::Version;
use annals_engine::store::EventStore;
use annals_engine::store::{Append, Durability, Item, MemoryStore, Read};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;

/// One caller, one event a call; the floor is one `write` of a line of the same workload, with the same sync.
fn append(c: &mut Criterion) {
    let lines = lines(2_000);
    let mut group = c.benchmark_group("append, 1 caller, 1 event of 700 B");
    group.throughput(Throughput::Elements(1));
    for (name, durability) in [("synced", Durability::Synced), ("buffered", Durability::Buffered)] {
        group.bench_function(format!("annals, {name}"), |b| {
            let (_home, engine) = store();
            let mut turns = events();
            b.iter_batched(
                || Append::new(vec![turns.next().unwrap()]).durability(durability),
                |append| engine.append(append).unwrap(),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(format!("floor, {name}"), |b| {
            let home = tempfile::tempdir().unwrap();
            let mut file = File::create(home.path().join("floor")).unwrap();
            let mut next = lines.iter().cycle();
            b.iter(|| {
                file.write_all(next.next().unwrap()).unwrap();
                if durability == Durability::Synced {
                    file.sync_data().unwrap();
                }
            });
        });
    }
    group.finish();
}

/// Cutting and checking lines in memory; the floor finds line feeds and computes the checksums.
fn scan(c: &mut Criterion) {
    let segment = lines(20_000).concat();
    let mut group = c.benchmark_group("scan in memory, 20,000 lines");
    group.throughput(Throughput::Bytes(segment.len() as u64));
    group.bench_function("annals", |b| {
        b.iter(|| {
            Scan::new(&segment).filter(|(_, _, piece)| matches!(piece, Piece::Line(_))).count()
        });
    });
    group.bench_function("floor: memchr and crc32fast", |b| {
        b.iter(|| {
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', &segment) {
                black_box(crc32fast::hash(&segment[start..end - 18]));
                start = end + 1;
            }
        });
    });
    group.finish();
}

/// Verifying a store whose files are in the page cache; the floor reads, cuts and sums the same bytes.
fn verify(c: &mut Criterion) {
    let (home, engine) = store();
    let mut turns = events();
    for _ in 0..40 {
        let batch = turns.by_ref().take(500).collect();
        engine.append(Append::new(batch).durability(Durability::Buffered)).unwrap();
    }
    engine.append(Append::new(vec![turns.next().unwrap()])).unwrap();
    drop(engine);
    let bytes = engine::verify(home.path(), &mut |_| {}).unwrap().bytes;
    let mut group = c.benchmark_group("verify, 20,000 lines, page cache");
    group.throughput(Throughput::Bytes(bytes));
    group.bench_function("annals", |b| {
        b.iter(|| engine::verify(home.path(), &mut |_| {}).unwrap());
    });
    let segment = home.path().join("log/00000000000000000001.jsonl");
    group.bench_function("floor: read, memchr and crc32fast", |b| {
        b.iter(|| {
            let bytes = std::fs::read(&segment).unwrap();
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', &bytes) {
                black_box(crc32fast::hash(&bytes[start..end - 18]));
                start = end + 1;
            }
        });
    });
    group.finish();
}

/// Session rows from nothing, and the last 40 turns of the session that has the most; the floors read heads, and know
/// where each line is.
fn sessions(c: &mut Criterion) {
    let home = tempfile::tempdir().unwrap();
    let shape = Shape::default();
    stored::make(home.path(), shape, 20_000);
    let segments = map::segments(home.path());
    let mut group = c.benchmark_group("sessions, 20,000 events, page cache");
    group.throughput(Throughput::Elements(20_000));
    group.bench_function("annals, rows from nothing", |b| {
        b.iter(|| stored::open(home.path()).sessions().unwrap());
    });
    group.bench_function("floor, heads to rows", |b| {
        b.iter(|| heads::fold(&segments, 1).len());
    });
    group.throughput(Throughput::Elements(40));
    let places = Places::new(&segments);
    let (engine, stream) = (stored::open(home.path()), shape.stream(0));
    let last = engine.head(&stream).unwrap();
    group.bench_function("annals, last 40 turns", |b| {
        b.iter(|| engine.read_stream(&stream, Version(last.0 - 40)).unwrap().count());
    });
    group.bench_function("floor, last 40 turns by offset", |b| {
        b.iter(|| places.last(stream.as_str(), 40).count());
    });
    group.finish();
}

fn events() -> Events {
    Events::at(Shape::default(), SystemClock.now())
}

fn store() -> (TempDir, Engine) {
    let home = tempfile::tempdir().unwrap();
    let engine = Engine::open(home.path(), Options::default()).unwrap();
    (home, engine)
}

/// Lines of the workload as the log holds them.
fn lines(count: usize) -> Vec<Vec<u8>> {
    let store = MemoryStore::new(Arc::new(SystemClock));
    let mut turns = events();
    for _ in 0..count / 500 {
        store.append(Append::new(turns.by_ref().take(500).collect())).unwrap();
    }
    let items = store.read(Read::default()).unwrap();
    items
        .map(|item| match item.unwrap() {
            Item::Record(record) => record.to_line(),
            Item::Gap(damage) => panic!("{damage:?}"),
        })
        .collect()
}

criterion_group! {
    name = log;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20);
    targets = append, scan, verify, sessions
}
criterion_main!(log);
