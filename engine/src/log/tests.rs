//! The log on a real disk, in one process: what every caller relies on. Kills, cuts and several processes are tested
//! from outside, on the simulated disk.

mod damage;
mod heads;
mod waking;

use std::sync::Arc;

use super::*;
use crate::clock::{ManualClock, SystemClock, Timestamp};
use crate::format::Payload;
use crate::id::{EventId, EventType};
use crate::storage::Disk;
use crate::store::{Expected, Filter, Item, NamePattern, NewEvent, Snapshot};

pub(super) use damage::{flip_line, segments_of};

pub(super) fn event(stream: &str, text: &str) -> NewEvent {
    NewEvent {
        id: EventId::new(SystemClock.now()),
        stream: StreamName::new(stream).unwrap(),
        kind: EventType::new("x.test.said").unwrap(),
        cause: None,
        flow: None,
        data: Payload::of(&serde_json::json!({ "text": text })).unwrap(),
    }
}

pub(super) fn open(dir: &tempfile::TempDir, segment_bytes: u64) -> Log {
    let storage = Arc::new(Disk::new(dir.path().join("store")));
    let options = Options { segment_bytes, index_bytes: segment_bytes / 3, ..Options::default() };
    Log::open(storage, Arc::new(SystemClock), options).unwrap()
}

fn texts(log: &Log) -> Vec<String> {
    log.read(Read::default())
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Record(record) if record.kind.as_str() == "x.test.said" => {
                Some(record.data.read::<serde_json::Value>().unwrap()["text"].as_str()?.to_owned())
            }
            Item::Record(_) => None,
            Item::Gap(gap) => panic!("{gap:?}"),
        })
        .collect()
}

/// What is appended is read back in order, across segments and across a reopening.
#[test]
fn append_roll_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let mut expect = Vec::new();
    for round in 0..3 {
        let log = open(&dir, 2_000);
        for i in 0..20 {
            let text = format!("{round}-{i}");
            let appended = log.append(Append::new(vec![event("a", &text)])).unwrap();
            assert_eq!(appended.positions[0].version, Version(expect.len() as u64 + 1));
            expect.push(text);
        }
        assert_eq!(texts(&log), expect);
    }
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(dir.path().join("store")));
    let report = verify(&storage, &mut |_| {}).unwrap();
    assert_eq!((report.damages, report.notes), (vec![], vec![]));
    assert!(report.segments > 5, "{}", report.segments);
}

/// Goal: a handle that appends says of the log's end what a reading says. Method: two handles append in turn, synced and
/// buffered, over several segments; after each append both ends are compared with those of a handle that only reads.
#[test]
fn ends_are_known_as_read() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (open(&dir, 3_000), open(&dir, 3_000));
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(dir.path().join("store")));
    let reads = Log::open_read_only(storage, Options::default()).unwrap();
    for i in 0..40 {
        let log = if i % 3 == 0 { &b } else { &a };
        let append = Append::new(vec![event("a", &i.to_string())]);
        let durability = if i % 5 < 2 { Durability::Synced } else { Durability::Buffered };
        log.append(append.durability(durability)).unwrap();
        for view in [View::Durable, View::Written] {
            let read = reads.end(view).unwrap();
            assert_eq!((a.end(view).unwrap(), b.end(view).unwrap()), (read, read), "{i} {view:?}");
        }
    }
}

/// Goal: a snapshot is due for each projection by itself, and one that is too big to keep is not said to be kept. Method:
/// two projections are asked about in turn after the log has grown, the first with a state beyond the limit.
#[test]
fn snapshots_of_two_projections() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Arc::new(Disk::new(dir.path().join("store")));
    let options = Options { index_bytes: 1_000, snapshot_bytes: 1, ..Options::default() };
    let log = Log::open(storage, Arc::new(SystemClock), options).unwrap();
    let keep = |name: &str, state: Vec<u8>| {
        let mut made = false;
        let kept = log.keep_snapshot(name, 7, &mut || {
            made = true;
            let cursor = log.end(View::Durable)?.unwrap();
            Ok(Some(Snapshot { schema: 7, cursor, state: state.clone() }))
        });
        (kept.unwrap(), made)
    };
    assert_eq!(keep("small", vec![1]), (false, false));
    for i in 0..20 {
        log.append(Append::new(vec![event("a", &i.to_string())])).unwrap();
    }
    assert_eq!(keep("big", vec![0; Snapshot::BYTES_MAX + 1]), (false, true));
    assert_eq!(keep("small", vec![1]), (true, true));
    assert_eq!(keep("small", vec![1]), (false, false));
    assert!(log.snapshot("big", 7, None).is_none());
    assert_eq!(log.snapshot("small", 7, None).unwrap().state, [1]);
}

/// A decision that looks at the end of the log.
struct Looks(Log);

impl Decider for Looks {
    fn seen(&self) -> Option<Cursor> {
        None
    }

    fn apply(&mut self, _: &Item, _: &Cursor) {}

    fn restart(&mut self) {}

    fn decide(&mut self, _: Timestamp) -> Result<Append> {
        let [durable, written] = [View::Durable, View::Written].map(|view| self.0.end(view));
        assert_eq!(durable?.map(|end| end.seq()), Some(Seq(2)));
        assert_eq!(written?.map(|end| end.seq()), Some(Seq(3)));
        assert_eq!(self.0.head(&StreamName::new("a").unwrap())?, Version(2));
        Ok(Append::new(vec![event("a", "decided")]))
    }
}

/// Goal: the end of the log and the version of a stream are told while an append is under way. Method: the append itself
/// asks for them, with one line that is durable and one that is not.
#[test]
fn the_end_waits_for_no_append() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    log.append(Append::new(vec![event("a", "durable")])).unwrap();
    log.append(buffered(event("a", "written"))).unwrap();
    log.append_deciding(&mut Looks(log.clone()), Durability::Synced).unwrap();
    assert_eq!(log.head(&StreamName::new("a").unwrap()).unwrap(), Version(3));
}

/// Goal: a repeat is known however many ids were asked for, in every stretch and after a reopening. Method: a thousand
/// events over many indexes; while they come, and afterwards, ones from before are appended again.
#[test]
fn repeats_are_known_among_many_ids() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(&dir, 60_000);
    let again = |log: &Log, event: &NewEvent, seq: Seq| {
        let appended = log.append(buffered(event.clone())).unwrap();
        assert!(appended.repeated);
        assert_eq!(appended.positions[0].seq, seq);
    };
    let mut known: Vec<(NewEvent, Seq)> = Vec::new();
    for i in 0..1_000 {
        if i == 700 {
            log = open(&dir, 60_000);
        }
        let event = event("a", &i.to_string());
        let appended = log.append(buffered(event.clone())).unwrap();
        assert!(!appended.repeated);
        known.push((event, appended.positions[0].seq));
        let (event, seq) = &known[i * 7 % known.len()];
        again(&log, event, *seq);
    }
    known.iter().for_each(|(event, seq)| again(&log, event, *seq));
    assert!(dir.path().join("store/log").read_dir().unwrap().count() > 6);
}

fn buffered(event: NewEvent) -> Append {
    Append::new(vec![event]).durability(Durability::Buffered)
}

/// Many threads append to one stream: every version once, and nobody waits for ever.
#[test]
fn threads_share_groups() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let log = log.clone();
            scope.spawn(move || {
                for i in 0..50 {
                    log.append(Append::new(vec![event("a", &format!("{thread}-{i}"))])).unwrap();
                }
            });
        }
    });
    assert_eq!(log.head(&StreamName::new("a").unwrap()).unwrap(), Version(400));
    assert_eq!(texts(&log).len(), 400);
}

/// Two handles of one store see each other's events and conflict as two processes do.
#[test]
fn two_handles() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (open(&dir, 1 << 20), open(&dir, 1 << 20));
    let stream = StreamName::new("a").unwrap();
    let first = Append::new(vec![event("a", "one")]).expecting(stream.clone(), Expected::NoStream);
    a.append(first.clone()).unwrap();
    let second = Append::new(vec![event("a", "two")]).expecting(stream, Expected::NoStream);
    let error = b.append(second).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Conflict { actual: Version(1), .. }), "{error}");
    assert!(b.append(first).unwrap().repeated);
    b.append(Append::new(vec![event("a", "three")])).unwrap();
    assert_eq!(texts(&a), ["one", "three"]);
}

/// Everything that a log answers by its indexes, as text.
fn answers(dir: &tempfile::TempDir, ids: &[EventId]) -> String {
    let log = open(dir, 6_000);
    let storage = Arc::clone(log.storage());
    let mut out = String::new();
    for name in ["a", "b", "c", "none"] {
        let stream = StreamName::new(name).unwrap();
        let head = log.head(&stream).unwrap();
        out += &format!("{name} {head}:");
        for after in [0, head.0.saturating_sub(3), head.0] {
            for item in log.read_stream(&stream, Version(after)).unwrap() {
                match item.unwrap() {
                    Item::Record(r) => out += &format!(" {} {} {}", r.seq, r.version, r.id),
                    Item::Gap(gap) => out += &format!(" {gap:?}"),
                }
            }
        }
    }
    let mut tail = Tail::new(&storage, log.id());
    tail.catch_up(&*storage).unwrap();
    for id in ids {
        let seq = tail.position(*id).unwrap();
        let record = seq.map(|seq| tail.read(&*storage, seq).unwrap().0);
        assert_eq!(record.map(|record| record.id), seq.and(Some(*id)));
        out += &format!(" {seq:?}");
    }
    out
}

/// A store with three streams over many segments, with the ids of its events and two that it has not.
pub(super) fn several_segments(dir: &tempfile::TempDir) -> Vec<EventId> {
    let log = open(dir, 6_000);
    let mut ids: Vec<EventId> = Vec::new();
    for i in 0..126 {
        let events: Vec<NewEvent> = (0..=i % 3)
            .map(|n| event(["a", "b", "c"][(i / 7 + n) % 3], &format!("{i}.{n}")))
            .collect();
        ids.extend(events.iter().map(|event| event.id));
        log.append(Append::new(events)).unwrap();
    }
    ids.extend([EventId::new(SystemClock.now()), EventId::derived("test", "no", "such")]);
    ids
}

/// Indexes are there after a while, for full segments and for stretches of the active one; without them, with damaged
/// ones, with those of another store and with stale ones every answer is the same.
#[test]
fn indexes_change_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let ids = several_segments(&dir);
    let storage = open(&dir, 6_000).storage().clone();
    let index_files = |storage: &Arc<dyn Storage>| -> Vec<String> {
        let names = storage.list("log").unwrap().into_iter();
        names.filter(|name| name.ends_with(".idx")).map(|name| format!("log/{name}")).collect()
    };
    let kept = index_files(&storage);
    let parts = kept.iter().filter(|name| name.matches('.').count() > 1).count();
    assert!(kept.len() > 8 && (1..=3).contains(&parts), "{kept:?}");
    let expect = answers(&dir, &ids);
    assert!(!expect.contains("Corrupt"), "{expect}");

    let first = bytes_of(&storage, &kept[0]);
    for path in &kept {
        let bytes = bytes_of(&storage, path);
        let mut flipped = bytes.clone();
        let middle = flipped.len() - 40;
        flipped[middle] ^= 4;
        for damaged in [&flipped, &bytes[..bytes.len() / 2], &[], &first] {
            put(&storage, path, damaged);
            assert_eq!(answers(&dir, &ids), expect, "{path}");
            put(&storage, path, &bytes);
        }
    }
    let others = tempfile::tempdir().unwrap();
    several_segments(&others);
    let theirs = open(&others, 6_000).storage().clone();
    for path in index_files(&theirs) {
        put(&storage, &path, &bytes_of(&theirs, &path));
    }
    assert_eq!(answers(&dir, &ids), expect, "indexes of another store");
    for path in index_files(&storage) {
        storage.remove(&path).unwrap();
    }
    assert_eq!(answers(&dir, &ids), expect, "no indexes");
}

pub(super) fn bytes_of(storage: &Arc<dyn Storage>, path: &str) -> Vec<u8> {
    storage.open(path, crate::storage::Access::Read).unwrap().map().unwrap().to_vec()
}

pub(super) fn put(storage: &Arc<dyn Storage>, path: &str, bytes: &[u8]) {
    let file = storage.open(path, crate::storage::Access::WriteOrCreate).unwrap();
    file.truncate(0).unwrap();
    crate::storage::write_full(&*file, bytes, 0).unwrap();
}

/// A clock that goes back an hour makes one line that says so; one that stutters makes none.
#[test]
fn clock_steps() {
    let dir = tempfile::tempdir().unwrap();
    let start = Timestamp::from_millis(1_775_001_600_000);
    let clock = Arc::new(ManualClock::new(start));
    let storage = Arc::new(Disk::new(dir.path().join("store")));
    let log = Log::open(storage, clock.clone(), Options::default()).unwrap();
    let say = |text: &str| {
        let mut event = event("a", text);
        event.id = EventId::new(clock.now());
        log.append(Append::new(vec![event])).unwrap();
    };
    say("one");
    clock.set(start.minus(std::time::Duration::from_millis(500)));
    say("two");
    clock.set(start.minus(std::time::Duration::from_secs(3_600)));
    say("three");
    let times: Vec<(String, Timestamp)> = log
        .read(Read::default())
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Record(r) if r.seq > Seq(1) => Some((r.kind.to_string(), r.time)),
            _ => None,
        })
        .collect();
    let back = start.minus(std::time::Duration::from_secs(3_600));
    let said = |time| ("x.test.said".to_owned(), time);
    assert_eq!(times, [said(start), said(start), ("log.clock".to_owned(), back), said(back)]);
}

/// A mark follows an event and not another mark, and the log says by itself that the event is durable.
#[test]
fn marks() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    let appended = log.append(Append::new(vec![event("a", "one")])).unwrap();
    log.mark().unwrap();
    log.mark().unwrap();
    let records: Vec<_> = log
        .read(Read::default())
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Record(r) if r.seq > Seq(1) => Some((r.kind.to_string(), r.durable)),
            _ => None,
        })
        .collect();
    let seq = appended.positions[0].seq;
    let expect = [("x.test.said".to_owned(), Seq(1)), ("log.mark".to_owned(), seq)];
    assert_eq!(records, expect);
}

/// A wait for a lock that somebody holds for long is told about, with the holder, and ends well.
#[test]
fn long_waits_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let holder = open(&dir, 1 << 20);
    let lock = holder.storage().open(APPEND_LOCK, crate::storage::Access::Write).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let notices: Tell = Arc::new(move |notice| tell.send(notice.clone()).unwrap());
    let storage = Arc::clone(holder.storage());
    let options = Options { notices: Some(notices), ..Options::default() };
    let waiter = Log::open(storage, Arc::new(SystemClock), options).unwrap();
    let held = crate::storage::lock(&lock).unwrap();
    std::thread::scope(|scope| {
        let append = scope.spawn(|| waiter.append(Append::new(vec![event("a", "one")])));
        let Notice::LockWait(wait) = told.recv().unwrap() else { panic!("another notice") };
        assert_eq!(wait.name, APPEND_LOCK);
        let me = format!("process {}", std::process::id());
        assert!(wait.holder.is_some_and(|who| who.starts_with(&me)));
        drop(held);
        append.join().unwrap().unwrap();
    });
}

/// A content that is too big for a line lies in a file of its own and comes back as it was; a repeat finds it; a changed
/// file is its own class of damage, and the event is not given with another content.
#[test]
fn big_contents_lie_apart() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 64 << 20);
    let mut big = event("a", "");
    big.data =
        Payload::of(&serde_json::json!({ "a": 1, "content": "é\"x".repeat(1 << 20) })).unwrap();
    let append = Append::new(vec![event("a", "small"), big.clone()]);
    log.append(append.clone()).unwrap();
    assert!(log.append(append).unwrap().repeated);
    let records: Vec<Box<Record>> = log
        .read(Read::default())
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Record(record) if record.blob.is_some() => Some(record),
            _ => None,
        })
        .collect();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(record.data.as_str(), r#"{"a":1}"#);
    assert_eq!(log.payload(record).unwrap(), big.data);

    let path = crate::format::blob_path(&record.blob.unwrap().sha256_hex());
    let file = log.storage().open(&path, crate::storage::Access::Write).unwrap();
    file.write_at(b"?", 7).unwrap();
    assert_eq!(*log.payload(record).unwrap_err().kind(), ErrorKind::Corrupt);
    let report = verify(log.storage(), &mut |_| {}).unwrap();
    let found: Vec<_> = report.damages.iter().map(|d| (d.class, d.file.as_str(), d.seqs)).collect();
    let seqs = Some((record.seq, record.seq));
    assert_eq!(found, [(crate::store::DamageClass::Blob, path.as_str(), seqs)]);
    // The same content appended again is written again where it was damaged.
    let again = NewEvent { id: EventId::new(SystemClock.now()), ..big.clone() };
    log.append(Append::new(vec![again])).unwrap();
    assert_eq!(log.payload(record).unwrap(), big.data);
}
