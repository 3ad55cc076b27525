//! Damage met by readers and writers of one process: with indexes and without, nothing is lost in silence and nobody
//! waits for ever.

use super::*;
use crate::format::slot::{self, Durable};
use crate::storage::{Access, write_full};
use crate::store::DamageClass;

/// Flips one bit of the `n`-th line of a segment.
pub(in crate::log) fn flip_line(storage: &Arc<dyn Storage>, path: &str, n: usize) {
    let mut bytes = bytes_of(storage, path);
    let start: usize = bytes.split_inclusive(|b| *b == b'\n').take(n).map(<[u8]>::len).sum();
    bytes[start + 40] ^= 1;
    storage.open(path, Access::Write).unwrap().write_at(&bytes, 0).unwrap();
}

pub(in crate::log) fn segments_of(storage: &Arc<dyn Storage>) -> Vec<String> {
    let names = storage.list("log").unwrap().into_iter();
    names.filter(|name| name.ends_with(".jsonl")).map(|name| format!("log/{name}")).collect()
}

/// Records and gaps of a reading.
fn counts(items: Items<'_>) -> (usize, Vec<DamageClass>) {
    let (mut records, mut gaps) = (0, Vec::new());
    for item in items {
        match item.unwrap() {
            Item::Record(_) => records += 1,
            Item::Gap(gap) => gaps.push(gap.class),
        }
    }
    (records, gaps)
}

/// A line that is damaged while its segment is active and has no index yet is a gap when the segment is full and has
/// one: the index is built from what is there, and knows that something is missing.
#[test]
fn damage_before_the_index_is_built() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 6_000);
    for i in 0..10 {
        log.append(Append::new(vec![event("a", &format!("{i}"))])).unwrap();
    }
    flip_line(log.storage(), &segments_of(log.storage())[0], 4);
    for i in 0..50 {
        log.append(Append::new(vec![event("a", &format!("more {i}"))])).unwrap();
    }
    let stream = StreamName::new("a").unwrap();
    let with = counts(log.read_stream(&stream, Version(0)).unwrap());
    assert_eq!(with, (59, vec![DamageClass::Corrupt]));
    for name in log.storage().list("log").unwrap() {
        if name.ends_with(".idx") {
            log.storage().remove(&format!("log/{name}")).unwrap();
        }
    }
    assert_eq!(counts(log.read_stream(&stream, Version(0)).unwrap()), with);
}

/// The header of a full segment is damaged after its index was built: whoever asks for headers gets a gap for it and
/// the others, and an end.
#[test]
fn a_damaged_header_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let log = open(&dir, 6_000);
    let headers = || {
        let types = vec![NamePattern::Exact("log.opened".to_owned())];
        let read = Read::default().filter(Filter { streams: Vec::new(), types });
        counts(log.read(read).unwrap())
    };
    let segments = segments_of(log.storage());
    assert_eq!(headers(), (segments.len(), vec![]));
    flip_line(log.storage(), &segments[1], 0);
    assert_eq!(headers(), (segments.len() - 1, vec![DamageClass::Corrupt]));
}

/// The first segment is gone, then all of them: readers say what is missing.
#[test]
fn missing_segments_are_gaps() {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let log = open(&dir, 6_000);
    let (all, _) = counts(log.read(Read::default()).unwrap());
    let segments = segments_of(log.storage());
    let first = bytes_of(log.storage(), &segments[0]).iter().filter(|b| **b == b'\n').count();
    log.storage().remove(&segments[0]).unwrap();
    let without = counts(log.read(Read::default()).unwrap());
    assert_eq!(without, (all - first, vec![DamageClass::Lost]));
    for path in &segments[1..] {
        log.storage().remove(path).unwrap();
    }
    assert_eq!(counts(log.read(Read::default()).unwrap()), (0, vec![DamageClass::Lost]));
}

/// Goal: however far positions jump behind damage, nothing asks for memory by them. Method: two lines that follow each
/// other at a position for which a segment has no room, near and far, stand in a full segment; it is read, verified and
/// appended behind, with more ids than are looked for one by one.
#[test]
fn positions_that_jump_far() {
    for far in [crate::log::segments::LINES_MAX + 10_000, 1 << 31, 1 << 50] {
        positions_that_jump_to(far);
    }
}

fn positions_that_jump_to(place: u64) {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let storage = open(&dir, 6_000).storage().clone();
    let segment = segments_of(&storage).swap_remove(1);
    let mut bytes = bytes_of(&storage, &segment);
    let end = bytes.iter().take(bytes.len() - 1).rposition(|byte| *byte == b'\n').unwrap() + 1;
    bytes.truncate(end);
    bytes.extend_from_slice(b"?\n");
    let first = crate::format::decode(bytes.split_inclusive(|b| *b == b'\n').nth(3).unwrap());
    let mut fields = crate::format::Fields { batch: None, ..first.unwrap().fields };
    let mut far = Vec::new();
    for seq in [place, place + 1] {
        fields.seq = Seq(seq);
        fields.prev = crate::format::encode(&fields, &mut far);
    }
    bytes.extend_from_slice(&far);
    put(&storage, &segment, &bytes);
    let log = open(&dir, 6_000);
    let report = verify(&storage, &mut |_| {}).unwrap();
    assert!(report.damages.iter().all(|damage| damage.seqs.is_none_or(|(_, last)| last.0 < place)));
    assert!(!report.damages.is_empty());
    let known = event("a", "known");
    for i in 0..300 {
        assert!(!log.append(buffered(event("a", &format!("{i}")))).unwrap().repeated);
        assert_eq!(log.append(buffered(known.clone())).unwrap().repeated, i > 0);
    }
}

/// A lock file of another moment names an offset that the segment does not have: opening writes nothing over what is
/// there.
#[test]
fn a_floor_of_another_moment() {
    let dir = tempfile::tempdir().unwrap();
    several_segments(&dir);
    let storage = open(&dir, 6_000).storage().clone();
    let last = segments_of(&storage).pop().unwrap();
    let before = bytes_of(&storage, &last);
    let segment = crate::format::segment_first(last.trim_start_matches("log/")).unwrap();
    let wrong = Durable { segment: segment.0, offset: 1 << 20, seq: 3, ..Durable::default() };
    let file = storage.open(crate::format::SYNC_LOCK, Access::Write).unwrap();
    file.truncate(0).unwrap();
    write_full(&*file, &slot::encode(1, &wrong), 0).unwrap();
    let log = open(&dir, 6_000);
    log.append(Append::new(vec![event("a", "more")])).unwrap();
    assert!(bytes_of(&storage, &last).starts_with(&before));
    assert_eq!(verify(&storage, &mut |_| {}).unwrap().damages, vec![]);
}

/// Every record that a reader gives behind damage has a cursor from which another reader goes on.
#[test]
fn cursors_behind_damage() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    for i in 0..10 {
        log.append(Append::new(vec![event("a", &format!("{i}"))])).unwrap();
    }
    flip_line(log.storage(), &segments_of(log.storage())[0], 9);
    let records: Vec<Box<Record>> = log
        .read(Read::default())
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Record(record) => Some(record),
            Item::Gap(_) => None,
        })
        .collect();
    assert_eq!(records.len(), 10);
    for (i, record) in records.iter().enumerate() {
        let read = Read::after(Some(record.cursor(log.id())));
        assert_eq!(counts(log.read(read).unwrap()).0, 9 - i, "{}", record.seq);
    }
    let end = log.end(View::Durable).unwrap().unwrap();
    assert_eq!(end, records[9].cursor(log.id()));
}

/// Hundreds of damaged lines in one segment are hundreds of gaps, and the rest is looked at once, not once for each.
#[test]
fn many_breaks() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 4 << 20);
    for i in 0..600 {
        let append = Append::new(vec![event("a", &format!("{i}"))]);
        log.append(append.durability(Durability::Buffered)).unwrap();
    }
    log.append(Append::new(vec![event("a", "synced")])).unwrap();
    let path = segments_of(log.storage()).remove(0);
    for n in (3..600).step_by(3) {
        flip_line(log.storage(), &path, n);
    }
    let (records, gaps) = counts(log.read(Read::default()).unwrap());
    assert_eq!((records, gaps.len()), (602 - 199, 199));
    assert_eq!(verify(log.storage(), &mut |_| {}).unwrap().damages.len(), 199);
}

/// A follower may be asked to wait for longer than any clock shows.
#[test]
fn waiting_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    let mut follower = log.follow(Read::default()).unwrap();
    let step = follower.next(Some(std::time::Duration::MAX)).unwrap();
    assert!(matches!(step, crate::store::Followed::Item(_)));
}

/// An empty file with the name of a far segment is not taken for one.
#[test]
fn a_stray_segment_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    log.append(Append::new(vec![event("a", "one")])).unwrap();
    let storage = log.storage().clone();
    drop(log);
    storage.open("log/00000000000000999999.jsonl", Access::CreateNew).unwrap();
    let log = open(&dir, 1 << 20);
    let error = log.append(Append::new(vec![event("a", "two")])).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Corrupt, "{error}");
    drop(log);
    storage.remove("log/00000000000000999999.jsonl").unwrap();
    open(&dir, 1 << 20).append(Append::new(vec![event("a", "two")])).unwrap();
    assert_eq!(verify(&storage, &mut |_| {}).unwrap().damages, vec![]);
}

pub(super) fn mended(dir: &tempfile::TempDir) -> crate::log::Accepted {
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(dir.path().join("store")));
    let options = Options { segment_bytes: 6_000, ..Options::default() };
    repair(storage, Arc::new(SystemClock), options, "test", &mut |_| {}).unwrap()
}

/// A copy of a segment under a name far behind the end: nothing is appended and no byte of it is moved before an
/// operator says so; then it is taken away, a copy is kept, and no event is recorded as missing.
#[test]
fn a_copy_far_behind_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    log.append(Append::new(vec![event("a", "one")])).unwrap();
    let storage = log.storage().clone();
    drop(log);
    let bytes = bytes_of(&storage, "log/00000000000000000001.jsonl");
    let stray = "log/00000000000000099999.jsonl";
    put(&storage, stray, &bytes);
    let log = open(&dir, 1 << 20);
    let error = log.append(Append::new(vec![event("a", "two")])).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Corrupt, "{error}");
    drop(log);
    assert_eq!(bytes_of(&storage, stray), bytes);
    let found = verify(&storage, &mut |_| {}).unwrap().damages;
    let found: Vec<_> = found.iter().map(|d| (d.class, d.file.as_str(), d.seqs)).collect();
    assert_eq!(found, [(DamageClass::Misplaced, stray, None)]);
    let accepted = mended(&dir);
    assert_eq!(bytes_of(&storage, &accepted.copies[0]), bytes);
    open(&dir, 1 << 20).append(Append::new(vec![event("a", "two")])).unwrap();
    let report = verify(&storage, &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
    assert_eq!(texts_of(&dir), ["one", "two"]);
}

/// A copy of a segment under a name inside the log: every event is given once, nothing counts as missing, and after a
/// repair the log goes on.
#[test]
fn a_copy_inside_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    for i in 0..12 {
        log.append(Append::new(vec![event("a", &format!("{i}"))])).unwrap();
    }
    let storage = log.storage().clone();
    drop(log);
    let bytes = bytes_of(&storage, "log/00000000000000000001.jsonl");
    put(&storage, "log/00000000000000000007.jsonl", &bytes);
    let said: Vec<String> = (0..12).map(|i| format!("{i}")).collect();
    assert_eq!(texts_of(&dir), said);
    let report = verify(&storage, &mut |_| {}).unwrap();
    let found: Vec<_> = report.damages.iter().map(|d| (d.class, d.seqs)).collect();
    assert_eq!(found, [(DamageClass::Misplaced, None)]);
    mended(&dir);
    open(&dir, 1 << 20).append(Append::new(vec![event("a", "more")])).unwrap();
    let report = verify(&storage, &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
    assert_eq!(texts_of(&dir), [said, vec!["more".to_owned()]].concat());
}

/// What is said in a store, gaps passed over.
fn texts_of(dir: &tempfile::TempDir) -> Vec<String> {
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(dir.path().join("store")));
    let log = Log::open_read_only(storage, Options::default()).unwrap();
    let items = log.read(Read::default().view(View::Written)).unwrap();
    items
        .filter_map(|item| match item.unwrap() {
            Item::Record(record) if record.kind.as_str() == "x.test.said" => {
                let data = record.data.read::<serde_json::Value>().unwrap();
                Some(data["text"].as_str()?.to_owned())
            }
            _ => None,
        })
        .collect()
}

/// A damaged line in the middle and a torn tail behind it: one repair is enough.
#[test]
fn damage_and_a_torn_tail() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    for i in 0..12 {
        log.append(Append::new(vec![event("a", &format!("{i}"))])).unwrap();
    }
    let storage = log.storage().clone();
    drop(log);
    let path = "log/00000000000000000001.jsonl";
    flip_line(&storage, path, 5);
    let torn = [bytes_of(&storage, path), b"{\"seq\":99".to_vec()].concat();
    put(&storage, path, &torn);
    let accepted = mended(&dir).accepted;
    let classes: Vec<_> = accepted.iter().map(|damage| damage.class).collect();
    assert_eq!(classes, [DamageClass::Corrupt, DamageClass::Torn]);
    open(&dir, 1 << 20).append(Append::new(vec![event("a", "more")])).unwrap();
    let report = verify(&storage, &mut |_| {}).unwrap();
    assert!(report.damages.iter().all(|damage| damage.accepted), "{:?}", report.damages);
    assert_eq!(texts_of(&dir).len(), 12);
}

/// Without a floor a loss cannot be told from a torn tail: verifying says so, and says nothing once it is there again.
#[test]
fn no_floor_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, 1 << 20);
    log.append(Append::new(vec![event("a", "one")])).unwrap();
    let storage = log.storage().clone();
    drop(log);
    storage.remove(crate::format::SYNC_LOCK).unwrap();
    let notes = verify(&storage, &mut |_| {}).unwrap().notes;
    assert!(notes.len() == 1 && notes[0].starts_with("lock.sync"), "{notes:?}");
    open(&dir, 1 << 20).append(Append::new(vec![event("a", "two")])).unwrap();
    assert_eq!(verify(&storage, &mut |_| {}).unwrap().notes, Vec::<String>::new());
}
