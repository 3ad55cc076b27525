//! Reading single streams by what is kept open, while the log changes under it: others append and roll, tails are cut,
//! lines and indexes are damaged or gone.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::id::StreamName;
use crate::log::Log;
use crate::log::tests::{bytes_of, event, flip_line, open, put, segments_of, several_segments};
use crate::storage::{Access, write_full};
use crate::store::{Append, DamageClass, Durability, EventStore, Item, Items, Read};

fn a() -> StreamName {
    StreamName::new("a").unwrap()
}

/// A handle that only reads, with nothing known yet.
fn reader(log: &Log) -> Log {
    Log::open_read_only(Arc::clone(log.storage()), log.view.options.clone()).unwrap()
}

/// Versions with their texts, and classes of gaps.
fn said(items: Items<'_>) -> (Vec<(u64, String)>, Vec<DamageClass>) {
    let (mut events, mut gaps) = (Vec::new(), Vec::new());
    for item in items {
        match item.unwrap() {
            Item::Record(record) => {
                events.push((record.version.0, record.data.as_str().to_owned()));
            }
            Item::Gap(gap) => gaps.push(gap.class),
        }
    }
    (events, gaps)
}

/// What a handle gives of the stream `a` behind a version; a reading by what is open and one in order must agree.
fn both_ways(log: &Log, after: u64) -> (Vec<(u64, String)>, Vec<DamageClass>) {
    let found = said(log.read_stream(&a(), Version(after)).unwrap());
    let in_order = log.read(Read::default().view(crate::store::View::Written)).unwrap();
    let wanted = |item: &crate::Result<Item>| match item {
        Ok(Item::Record(record)) => record.stream == a() && record.version.0 > after,
        _ => true,
    };
    let expect = said(Box::new(in_order.filter(wanted)));
    assert_eq!(found.0, expect.0);
    found
}

/// Whether the stream can be read without a reading in order.
fn is_planned(log: &Log) -> bool {
    log.view.catalog.plan(&log.view, "a", Version::ZERO).unwrap().is_some()
}

fn append(log: &Log, text: &str, durability: Durability) {
    let append = Append::new(vec![event("a", text), event("b", text)]).durability(durability);
    log.append(append).unwrap();
}

/// Threads read a stream by two handles while another appends to it and rolls: every reading gives each version once, in
/// order, nothing less than was acknowledged before it began, and no gap.
#[test]
fn others_append_and_roll() {
    const EVENTS: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 6_000);
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for handle in [log.clone(), reader(&log), open(&dir, 6_000)] {
            let acknowledged = &acknowledged;
            scope.spawn(move || {
                let mut after = 0;
                loop {
                    let least = acknowledged.load(Ordering::SeqCst);
                    let (events, gaps) = said(handle.read_stream(&a(), Version(after)).unwrap());
                    assert_eq!(gaps, []);
                    let versions: Vec<u64> = events.iter().map(|(version, _)| *version).collect();
                    let last = versions.last().copied().unwrap_or(after);
                    assert_eq!(versions, Vec::from_iter(after + 1..=last));
                    assert!(last >= least && handle.head(&a()).unwrap().0 >= last);
                    if least == EVENTS {
                        break;
                    }
                    after = last / 2;
                }
            });
        }
        for number in 1..=EVENTS {
            append(&log, &format!("{number}"), Durability::Buffered);
            acknowledged.store(number, Ordering::SeqCst);
        }
    });
    let segments = segments_of(log.storage()).len();
    assert!(segments > 10, "{segments}");
    assert!(is_planned(&reader(&log)));
}

/// The last lines, which nobody acknowledged as durable, are cut at every place of the last stretch that has an index and
/// behind it; another handle settles and appends others in their place. A handle that knew them reads what is there.
#[test]
fn cut_and_settled() {
    for lost in (1..3_000_usize).step_by(223) {
        let dir = tempfile::tempdir().unwrap();
        let log = open(&dir, 30_000);
        for number in 0..10 {
            append(&log, &format!("{number}"), Durability::Synced);
        }
        for number in 10..40 {
            append(&log, &format!("{number}"), Durability::Buffered);
        }
        let reader = reader(&log);
        assert_eq!(both_ways(&reader, 0).0.len(), 40);
        assert!(is_planned(&reader));
        let storage = Arc::clone(log.storage());
        drop(log);
        let path = segments_of(&storage).pop().unwrap();
        let bytes = bytes_of(&storage, &path);
        put(&storage, &path, &bytes[..bytes.len() - lost]);
        let log = open(&dir, 30_000);
        let kept = log.head(&a()).unwrap().0;
        assert!((10..40).contains(&kept), "{kept}");
        for number in 0..20 {
            append(&log, &format!("new {number}"), Durability::Synced);
        }
        let (events, gaps) = both_ways(&reader, 0);
        assert_eq!(gaps, [], "{lost} bytes lost");
        let expect = |version: &u64| match version.checked_sub(kept + 1) {
            None => format!(r#"{{"text":"{}"}}"#, version - 1),
            Some(new) => format!(r#"{{"text":"new {new}"}}"#),
        };
        let expect: Vec<_> = (1..=kept + 20).map(|version| (version, expect(&version))).collect();
        assert_eq!(events, expect, "{lost} bytes lost");
        assert!(is_planned(&reader), "{lost} bytes lost");
    }
}

/// A durable stretch of the active segment is mapped together with pages of half a line behind it, and those are cut
/// while a reading goes on: it ends well, since nothing behind the stretch is looked at.
#[test]
fn pages_behind_a_mapped_stretch_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 30_000);
    for number in 0..50 {
        append(&log, &format!("{number}"), Durability::Synced);
    }
    let path = segments_of(log.storage()).pop().unwrap();
    let file = log.storage().open(&path, Access::Write).unwrap();
    let end = file.size().unwrap();
    write_full(&*file, &[b'x'; 64 << 10], end).unwrap();
    let reader = reader(&log);
    let plan = reader.view.catalog.plan(&reader.view, "a", Version::ZERO).unwrap().unwrap();
    let mapped = |(held, _): &(Arc<Held>, std::ops::Range<u64>)| match &held.source {
        Source::Mapped(bytes) => bytes.len() as u64 > end,
        Source::File(_) => false,
    };
    assert!(!plan.stretches.is_empty() && plan.stretches.iter().all(mapped));
    let reading = reader.read_stream(&a(), Version::ZERO).unwrap();
    append(&log, "50", Durability::Synced);
    assert!(file.size().unwrap() < end + 4_096);
    assert_eq!(said(reading).0.len(), 50);
    assert_eq!(both_ways(&reader, 0).0.len(), 51);
}

/// A line is damaged, in a full segment and in the active one, while a handle keeps both open: the events before and
/// behind it are given, and a gap between them.
#[test]
fn damage_under_an_open_handle() {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let log = open(&dir, 6_000);
    let reader = reader(&log);
    let (whole, _) = both_ways(&reader, 0);
    for path in segments_of(log.storage()) {
        let before = bytes_of(log.storage(), &path);
        let lines: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
        let is_last = |line: &&&[u8]| {
            let line = crate::format::decode(line).unwrap();
            line.fields.stream == "a" && line.fields.batch.is_none()
        };
        let Some(at) = lines.iter().position(|line| is_last(&line)) else { continue };
        flip_line(log.storage(), &path, at);
        let (events, gaps) = both_ways(&reader, 0);
        assert_eq!(gaps, [DamageClass::Corrupt], "line {at} of {path}");
        assert_eq!(events.len(), whole.len() - 1);
        put(log.storage(), &path, &before);
        assert_eq!(both_ways(&reader, 0), (whole.clone(), vec![]));
    }
}

/// Indexes vanish, are damaged or take each other's places under a handle that has them open and before one opens them:
/// each gives the same events.
#[test]
fn indexes_change_under_an_open_handle() {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let log = open(&dir, 6_000);
    let storage = log.storage();
    let expect = both_ways(&log, 0);
    let open_one = reader(&log);
    both_ways(&open_one, 0);
    let names = storage.list("log").unwrap().into_iter();
    let indexes = names.filter(|name| name.ends_with(".idx")).map(|name| format!("log/{name}"));
    let indexes: Vec<(String, Vec<u8>)> =
        indexes.map(|path| (path.clone(), bytes_of(storage, &path))).collect();
    let replace = |path: &str, bytes: &[u8]| {
        put(storage, "log/other", bytes);
        storage.rename("log/other", path).unwrap();
    };
    for (at, (path, bytes)) in indexes.iter().enumerate() {
        let mut flipped = bytes.clone();
        let middle = bytes.len() / 2;
        flipped[middle] ^= 1;
        let other = &indexes[(at + 1) % indexes.len()].1;
        for changed in [&flipped, &bytes[..middle], &[], other] {
            replace(path, changed);
            assert_eq!(both_ways(&open_one, 0), expect, "{path}");
            assert_eq!(both_ways(&reader(&log), 0), expect, "{path}");
        }
        storage.remove(path).unwrap();
        assert_eq!(both_ways(&open_one, 0), expect, "{path}");
        assert_eq!(both_ways(&reader(&log), 0), expect, "{path}");
        replace(path, bytes);
    }
    assert!(is_planned(&open_one) && is_planned(&reader(&log)));
}

/// An index with a damaged page is left as soon as a whole one has taken its place.
#[test]
fn a_damaged_index_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let log = open(&dir, 6_000);
    let storage = log.storage();
    let path = crate::log::index::whole_name(Seq(1));
    let path = format!("log/{path}");
    let bytes = bytes_of(storage, &path);
    let mut damaged = bytes.clone();
    // Behind the header and the one checksum: all pages.
    damaged[200..].iter_mut().for_each(|byte| *byte ^= 1);
    put(storage, &path, &damaged);
    let reader = reader(&log);
    assert!(!is_planned(&reader));
    put(storage, "log/other", &bytes);
    storage.rename("log/other", &path).unwrap();
    assert!(is_planned(&reader));
}

/// A segment that was left without its seal may be cut once what stands behind it is taken away: it is not mapped.
#[test]
fn only_sealed_segments_are_mapped() {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let storage = Arc::clone(open(&dir, 6_000).storage());
    let all = segments::list(&*storage).unwrap();
    let (active, sealed) = all.split_last().unwrap();
    let is_mapped = |first: &Seq| {
        matches!(segments::map(&*storage, *first).unwrap(), segments::Bytes::Mapped(_))
    };
    assert!(sealed.len() > 5 && sealed.iter().all(is_mapped));
    assert!(!is_mapped(active));
    let path = crate::format::segment_path(sealed[0]);
    let bytes = bytes_of(&storage, &path);
    for left in [0, 1, 500, bytes.len() - 1] {
        put(&storage, &path, &bytes[..left]);
        assert!(!is_mapped(&sealed[0]), "{left} bytes");
    }
}
