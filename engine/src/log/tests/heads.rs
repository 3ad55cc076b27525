//! The table of heads changes no answer: absent, damaged, stale, of another store, and after damage to the log itself.

use super::damage::{flip_line, mended};
use super::*;
use crate::log::index::{Gathered, HEADS_FILE, Heads, Index};
use crate::storage::Access;

fn path() -> String {
    format!("log/{HEADS_FILE}")
}

fn table(storage: &Arc<dyn Storage>, store: StoreId) -> Option<Heads> {
    Heads::open(&**storage, store, &segments::list(&**storage).unwrap())
}

/// How many segments the table of a store covers, if that is one that fits, and how many it could.
fn covered(log: &Log) -> (usize, usize) {
    let sealed = segments::list(&**log.storage()).unwrap().len() - 1;
    (table(log.storage(), log.id()).map_or(0, |heads| heads.segments().len()), sealed)
}

/// What a process that opens the store knows by the table, where there is one: versions, positions of ids.
fn known(log: &Log, ids: &[EventId]) -> String {
    let storage = log.storage();
    let mut tail = Tail::new(storage, log.id());
    tail.catch_up(&**storage).unwrap();
    let streams = ["a", "b", "c", "log", "none"];
    let versions = streams.map(|name| tail.version(name).unwrap());
    let positions: Vec<_> = ids.iter().map(|id| tail.position(*id).unwrap()).collect();
    let headers = tail.events_of(&**storage, "log", &["log.opened"]).unwrap();
    let headers = headers.map(|headers| headers.len());
    format!("{:?} {versions:?} {positions:?} {headers:?}", tail.end)
}

/// A store over many segments with its table, the ids of some of its events, and one that it has not.
fn sample(dir: &tempfile::TempDir) -> (Log, Vec<EventId>) {
    let ids = several_segments(dir);
    let ids = ids.iter().step_by(60).chain(ids.last()).copied().collect();
    let log = open(dir, 6_000);
    let (covered, sealed) = covered(&log);
    assert!(sealed > 6 && covered == sealed, "{covered} of {sealed}");
    (log, ids)
}

/// Goal: whatever stands in the place of the table, a process that opens the store knows the same. Method: each byte of it
/// with a bit flipped, every length of it, none at all, that of another store, one of a newer format, and each that stood
/// there before, with fewer segments.
#[test]
fn no_table_is_believed_that_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ids) = sample(&dir);
    let storage = log.storage();
    let bytes = bytes_of(storage, &path());
    storage.remove(&path()).unwrap();
    let expect = known(&log, &ids);
    put(storage, &path(), &bytes);
    assert_eq!(known(&log, &ids), expect);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        put(storage, &path(), &flipped);
        assert!(table(storage, log.id()).is_none_or(|heads| {
            let _ = heads.head("a");
            heads.is_damaged()
        }));
        assert_eq!(known(&log, &ids), expect, "byte {at}");
        put(storage, &path(), &bytes[..at]);
        assert!(table(storage, log.id()).is_none());
        assert_eq!(known(&log, &ids), expect, "{at} bytes");
    }
    let others = tempfile::tempdir().unwrap();
    let (other, _) = sample(&others);
    let mut newer = bytes.clone();
    newer[7] = b'2';
    let sum = crate::format::crc32(&newer[..92]).0.to_le_bytes();
    newer[92..96].copy_from_slice(&sum);
    for wrong in [bytes_of(other.storage(), &path()), newer, [&bytes[..], b"x"].concat()] {
        put(storage, &path(), &wrong);
        assert!(table(storage, log.id()).is_none());
        assert_eq!(known(&log, &ids), expect);
    }
}

/// Goal: a table that does not fit, or none, is made anew by the next process that appends, and one that does is kept.
/// Method: the table absent, damaged, of another store; a process opens, which changes nothing, and appends.
#[test]
fn the_next_append_makes_it_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ids) = sample(&dir);
    let storage = Arc::clone(log.storage());
    let mut flipped = bytes_of(&storage, &path());
    *flipped.last_mut().unwrap() ^= 1;
    for (n, wrong) in [None, Some(flipped), Some(b"annals".to_vec())].into_iter().enumerate() {
        storage.remove(&path()).unwrap();
        wrong.iter().for_each(|wrong| put(&storage, &path(), wrong));
        let log = open(&dir, 6_000);
        assert!(known(&log, &ids).contains("Version(0)"));
        log.append(buffered(event("b", &format!("more {n}")))).unwrap();
        let (covered, sealed) = covered(&log);
        assert_eq!(covered, sealed);
    }
    let before = (storage.stat(&path()).unwrap().id, segments_of(&storage));
    open(&dir, 60_000).append(buffered(event("b", "again"))).unwrap();
    assert_eq!((storage.stat(&path()).unwrap().id, segments_of(&storage)), before);
}

/// Goal: an older table serves with what came since. Method: the first table that a store has is put back whenever the
/// store has grown by some segments; a process that opens it knows what one knows without a table.
#[test]
fn an_older_table_serves() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ids) = sample(&dir);
    let storage = Arc::clone(log.storage());
    let old = bytes_of(&storage, &path());
    for round in 0..4 {
        for i in 0..20 {
            let name = ["a", "b", "log2", "c"][i % 4];
            log.append(buffered(event(name, &format!("{round} {i}")))).unwrap();
        }
        put(&storage, "log/other", &old);
        storage.rename("log/other", &path()).unwrap();
        let (covered, sealed) = covered(&log);
        assert!(covered < sealed);
        let with = known(&log, &ids);
        storage.remove(&path()).unwrap();
        assert_eq!(with, known(&log, &ids));
    }
}

/// Goal: versions are dense across processes, tables and segments. Method: two handles of one store, and one that is opened
/// anew for each round, append in turn to two streams until a dozen segments are full.
#[test]
fn versions_go_on_across_handles() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(&dir, 3_000), open(&dir, 3_000));
    let mut expect = [0, 0];
    for round in 0..60 {
        let third = open(&dir, 3_000);
        for (log, stream) in [(&one, 0), (&two, 1), (&third, 0), (&two, 0)] {
            // The second stream rests for a while, so that only the table knows it.
            let stream = if (20..50).contains(&round) { 0 } else { stream };
            let event = event(["x", "y"][stream], &format!("{round}"));
            let appended = log.append(buffered(event)).unwrap();
            expect[stream] += 1;
            assert_eq!(appended.positions[0].version, Version(expect[stream]), "round {round}");
        }
    }
    let (covered, sealed) = covered(&one);
    assert!(sealed > 12 && covered + 1 >= sealed, "{covered} of {sealed}");
    assert!(verify(one.storage(), &mut |_| {}).unwrap().is_sound());
}

/// Goal: a table is right about segments in which lines are missing. Method: a line of the active segment is damaged, the
/// damage is accepted, and segments are filled behind it until the table covers them all; then heads, events and gaps of
/// every stream are what they are without the table.
#[test]
fn accepted_damage_is_covered() {
    let dir = tempfile::tempdir().unwrap();
    let (log, mut ids) = sample(&dir);
    let storage = Arc::clone(log.storage());
    let active = segments_of(&storage).pop().unwrap();
    for i in 0..6 {
        log.append(Append::new(vec![event("only here", &format!("{i}"))])).unwrap();
    }
    flip_line(&storage, &active, 3);
    drop(log);
    assert!(!mended(&dir).accepted.is_empty());
    let log = open(&dir, 6_000);
    for i in 0..60 {
        let event = event(["a", "c"][i % 2], &format!("behind {i}"));
        ids.push(event.id);
        log.append(buffered(event)).unwrap();
    }
    let heads = table(&storage, log.id()).unwrap();
    let broken = heads.segments().iter().filter(|known| known.stretch.broken).count();
    assert!(broken == 1 && covered(&log).0 == covered(&log).1);
    let with = (known(&log, &ids), answers(&dir, &ids));
    let only = StreamName::new("only here").unwrap();
    let head = open(&dir, 6_000).head(&only).unwrap();
    storage.remove(&path()).unwrap();
    assert_eq!((known(&log, &ids), answers(&dir, &ids)), with);
    assert_eq!(open(&dir, 6_000).head(&only).unwrap(), head);
    assert!(head > Version::ZERO && head <= Version(6));
}

/// Goal: an index that is gone or damaged is missed when something asks for it, and made anew. Method: with a table that
/// fits, every index is taken away, or has its pages damaged; ids are found, and after the next append the index that was
/// asked is there again.
#[test]
fn indexes_behind_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let (log, ids) = sample(&dir);
    let storage = Arc::clone(log.storage());
    let expect = known(&log, &ids);
    // Without the end, which moves.
    let before = expect.split_once('[').unwrap().1;
    let names: Vec<String> = storage.list("log").unwrap();
    let indexes: Vec<String> = names
        .into_iter()
        .filter(|name| name.ends_with(".idx") && name.matches('.').count() == 1)
        .filter(|name| name != HEADS_FILE)
        .map(|name| format!("log/{name}"))
        .collect();
    drop(log);
    let sound = |path: &String| {
        let file = storage.open(path, crate::storage::Access::Read).ok();
        let index = file.and_then(|file| Index::new(file.map().unwrap()));
        index.is_some_and(|index| Gathered::default().add(&index).is_some())
    };
    for damaged in [false, true] {
        for path in &indexes {
            let mut bytes = bytes_of(&storage, path);
            storage.remove(path).unwrap();
            if damaged {
                bytes[200..].iter_mut().for_each(|byte| *byte ^= 1);
                put(&storage, path, &bytes);
            }
        }
        assert!(!indexes.iter().any(sound));
        let log = open(&dir, 6_000);
        assert!(known(&log, &ids).ends_with(before));
        // An id without a time is looked for everywhere.
        let id = EventId::derived("test", "asks", &damaged.to_string());
        log.append(buffered(NewEvent { id, ..event("other", "") })).unwrap();
        assert!(indexes.iter().all(sound), "damaged: {damaged}");
    }
}

/// Goal: an id is known however it is looked for: one by one, by a filter over the ids that may still be appended, or by one
/// over all. Method: two hours after some segments were filled a process appends more events than are looked for one by
/// one; then old ids, with a time and without, are appended again, and new ones without a time.
#[test]
fn old_ids_are_known_behind_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let begin = Timestamp::from_millis(1_775_001_600_000);
    let clock = Arc::new(ManualClock::new(begin));
    let open = || {
        let storage = Arc::new(Disk::new(dir.path().join("store")));
        let options = Options { segment_bytes: 6_000, index_bytes: 2_000, ..Options::default() };
        Log::open(storage, clock.clone(), options).unwrap()
    };
    let keyed = |n: usize| EventId::derived("test", "key", &n.to_string());
    let made = |n: usize| {
        let id = if n.is_multiple_of(2) { keyed(n) } else { EventId::new(clock.now()) };
        NewEvent { id, ..event("a", &n.to_string()) }
    };
    let log = open();
    let old: Vec<NewEvent> = (0..200).map(made).collect();
    old.iter().for_each(|event| drop(log.append(buffered(event.clone())).unwrap()));
    clock.set(begin.plus(std::time::Duration::from_secs(7_200)));
    let log = open();
    let (covered, sealed) = covered(&log);
    assert!(covered > 5 && covered + 1 >= sealed, "{covered} of {sealed}");
    for n in 0..300 {
        let id = EventId::new(clock.now());
        assert!(!log.append(buffered(NewEvent { id, ..event("b", "") })).unwrap().repeated, "{n}");
    }
    for round in 0..2 {
        for (n, event) in old.iter().enumerate().filter(|(n, _)| n % 9 == 1) {
            assert!(log.append(buffered(event.clone())).unwrap().repeated, "{round}: {n}");
            let id = keyed(1_000 + 1_000 * round + n);
            let new = NewEvent { id, ..event.clone() };
            assert!(!log.append(buffered(new.clone())).unwrap().repeated, "{round}: {n}");
            assert!(log.append(buffered(new)).unwrap().repeated, "{round}: {n}");
        }
    }
}

/// Goal: damage lowers no stream's version: a number that was given is not given again, whatever the last line of the
/// stream can still be read to say. Method: a stream with history in an old segment and one line in a later one, whose
/// version reads lower or not at all; all that is derived is taken away, and with it come back; the next event and, once
/// a table holds all of it, the one after.
#[test]
fn a_damaged_line_lowers_no_version() {
    for spoiled in ["11", "1x", "xx"] {
        let dir = tempfile::tempdir().unwrap();
        let log = open(&dir, 6_000);
        let fill = |log: &Log, from: usize| {
            for i in from..from + 60 {
                log.append(buffered(event("filler", &format!("{i}")))).unwrap();
            }
        };
        for i in 0..14 {
            log.append(buffered(event("old", &format!("{i}")))).unwrap();
        }
        fill(&log, 0);
        log.append(Append::new(vec![event("old", "the last")])).unwrap();
        fill(&log, 60);
        let storage = Arc::clone(log.storage());
        drop(log);
        let shown = b"\"stream\":\"old\",\"version\":15,";
        let digits = shown.len() - 3;
        let find = |bytes: &[u8]| bytes.windows(shown.len()).position(|part| part == shown);
        let segments = segments_of(&storage).into_iter();
        let (path, mut bytes, at) = segments
            .filter_map(|path| {
                let bytes = bytes_of(&storage, &path);
                find(&bytes).map(|at| (path, bytes, at))
            })
            .next()
            .unwrap();
        bytes[at + digits..at + digits + 2].copy_from_slice(spoiled.as_bytes());
        storage.open(&path, Access::Write).unwrap().write_at(&bytes, 0).unwrap();
        for name in storage.list("log").unwrap().into_iter().filter(|name| name.ends_with(".idx")) {
            storage.remove(&format!("log/{name}")).unwrap();
        }
        let log = open(&dir, 6_000);
        let next = log.append(Append::new(vec![event("old", "behind")])).unwrap();
        let next = next.positions[0].version;
        assert!(next > Version(14), "{spoiled}: {next}");
        fill(&log, 120);
        fill(&log, 180);
        assert!(table(&storage, log.id()).is_some());
        drop(log);
        let old = StreamName::new("old").unwrap();
        assert_eq!(open(&dir, 6_000).head(&old).unwrap(), next, "{spoiled}");
    }
}
