//! Files of a store that other programs rewrite, and segments that roll fast, on the real disk: a follower sees every
//! event once and in order, or is told that the history is another one.

#![expect(clippy::unwrap_used, reason = "what cannot be set up fails the test")]
#![expect(clippy::disallowed_methods, reason = "the test is the other program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use annals_engine::ErrorKind;
use annals_engine::clock::{Clock, SystemClock};
use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::log::{Log, Options};
use annals_engine::storage::Disk;
use annals_engine::store::{Append, EventStore, Follow, Followed, Item, NewEvent, Read, View};

fn open(dir: &Path) -> Log {
    Log::open(Arc::new(Disk::new(dir)), Arc::new(SystemClock), Options::default()).unwrap()
}

fn reader(dir: &Path) -> Log {
    Log::open_read_only(Arc::new(Disk::new(dir)), Options::default()).unwrap()
}

fn event(text: &str) -> NewEvent {
    NewEvent {
        id: EventId::new(SystemClock.now()),
        stream: StreamName::new("a").unwrap(),
        kind: EventType::new("x.test.said").unwrap(),
        cause: None,
        flow: None,
        data: Payload::of(&serde_json::json!({ "text": text })).unwrap(),
    }
}

fn first_segment(dir: &Path) -> PathBuf {
    dir.join("log/00000000000000000001.jsonl")
}

/// The positions that a follower gives until it has caught up.
fn drain(follower: &mut dyn Follow) -> Vec<u64> {
    let mut seqs = Vec::new();
    loop {
        match follower.next(None).unwrap() {
            Followed::Item(Item::Record(record)) => seqs.push(record.seq.0),
            Followed::Item(Item::Gap(gap)) => panic!("{gap:?}"),
            Followed::CaughtUp(_) => return seqs,
            Followed::Quiet => {}
        }
    }
}

/// What the follower says next, over all that is quiet.
fn next_error(follower: &mut dyn Follow) -> ErrorKind {
    loop {
        match follower.next(None) {
            Err(e) => return e.kind().clone(),
            Ok(Followed::Item(item)) => panic!("given again: {item:?}"),
            Ok(_) => {}
        }
    }
}

/// A store of a hundred events with a follower that has seen them all is changed by another program: an older copy is
/// copied over the live segment, or the segment is emptied in place and filled with lines of the same or of another
/// length. The follower says that the history has changed and gives nothing twice, and the writer that is open refuses
/// to go on.
#[test]
fn a_segment_that_is_rewritten_in_place() {
    let copy_over: fn(&Path, &[u8]) = |path, older| fs::write(path, older).unwrap();
    let lines: fn(&Path, &[u8]) = |path, _| {
        let lines: String = (0..100).map(|i| format!("{{\"line\":{i}}}\n")).collect();
        fs::write(path, lines).unwrap();
    };
    let as_long: fn(&Path, &[u8]) = |path, _| {
        let len = fs::metadata(path).unwrap().len();
        fs::write(path, "x\n".repeat(usize::try_from(len / 2 + 1).unwrap())).unwrap();
    };
    for rewrite in [copy_over, lines, as_long] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let writer = open(&store);
        writer.append(Append::new((0..50).map(|i| event(&format!("{i}"))).collect())).unwrap();
        let older = fs::read(first_segment(&store)).unwrap();
        for i in 50..100 {
            writer.append(Append::new(vec![event(&format!("{i}"))])).unwrap();
        }
        let readers = reader(&store);
        let mut follower = readers.follow(Read::default()).unwrap();
        assert_eq!(drain(&mut *follower), (1..=101).collect::<Vec<u64>>());
        rewrite(&first_segment(&store), &older);
        assert_eq!(next_error(&mut *follower), ErrorKind::HistoryChanged);
        let refused = writer.append(Append::new(vec![event("more")])).unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::Corrupt, "{refused}");
    }
}

/// A live segment is put in its own place by another program, byte for byte: by a rename from beside, and by removing and
/// making it anew, in the same inode where the file system gives the number out again. Half a line is written behind its
/// end by a shell. The follower goes on with what is appended after that, each event once, and is told of no damage.
#[test]
fn a_segment_that_is_put_in_its_own_place() {
    let renamed: fn(&Path) = |path| {
        let beside = path.with_extension("beside");
        fs::copy(path, &beside).unwrap();
        fs::rename(beside, path).unwrap();
    };
    let made_anew: fn(&Path) = |path| {
        let bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let half_a_line: fn(&Path) = |path| {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, b"{\"seq\":99,\"time").unwrap();
    };
    for change in [renamed, made_anew, half_a_line] {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let writer = open(&store);
        writer.append(Append::new(vec![event("one")])).unwrap();
        let readers = reader(&store);
        let mut follower = readers.follow(Read::default()).unwrap();
        assert_eq!(drain(&mut *follower), [1, 2]);
        change(&first_segment(&store));
        assert!(matches!(follower.next(Some(Duration::ZERO)).unwrap(), Followed::Quiet));
        writer.append(Append::new(vec![event("two")])).unwrap();
        drop(writer);
        open(&store).append(Append::new(vec![event("three")])).unwrap();
        assert_eq!(follow(&mut *follower, 2).len(), drain_count(&store) - 2);
    }
}

/// How many lines the log has.
fn drain_count(store: &Path) -> usize {
    reader(store).read(Read::default()).unwrap().count()
}

/// A process appends two thousand events and rolls more than twenty times. Followers that begin at once, later, and from
/// the cursor of one that stopped in the middle see every position once and in order, across all the files.
#[test]
fn segments_that_roll_under_a_follower() {
    const EVENTS: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    drop(open(&store));
    let mut writer = scribe(&["append", store.to_str().unwrap(), "a", "2000", "20000"]);
    let readers = reader(&store);
    let mut from_start = readers.follow(Read::default().view(View::Written)).unwrap();
    let mut stopped = readers.follow(Read::default().view(View::Written)).unwrap();
    let half = follow(&mut *stopped, EVENTS / 2);
    let mut resumed = readers.follow(Read::after(stopped.cursor()).view(View::Written)).unwrap();
    let mut late = readers.follow(Read::default().view(View::Written)).unwrap();
    let all = follow(&mut *from_start, EVENTS);
    let rest = follow(&mut *resumed, EVENTS - EVENTS / 2);
    assert_eq!(follow(&mut *late, EVENTS), all);
    assert_eq!([half, rest].concat(), all);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    assert!(writer.wait().unwrap().success());
    let files = fs::read_dir(store.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let segments = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).count();
    assert!(segments > 20, "{segments} segments");
}

fn scribe(words: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribe"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The positions up to that of the so-manieth event that the test appends.
fn follow(follower: &mut dyn Follow, events: usize) -> Vec<u64> {
    let (mut seqs, mut count) = (Vec::new(), 0);
    while count < events {
        match follower.next(None).unwrap() {
            Followed::Item(Item::Record(record)) => {
                seqs.push(record.seq.0);
                count += usize::from(record.stream.as_str() == "a");
            }
            Followed::Item(Item::Gap(gap)) => panic!("{gap:?}"),
            Followed::CaughtUp(_) | Followed::Quiet => {}
        }
    }
    seqs
}
