//! What went wrong in the field with logs of other programs, each with its number in the collection of such cases.

use std::sync::{Arc, Mutex};

use annals_engine::ErrorKind;
use annals_engine::format::slot::{self, BLOCK, Written};
use annals_engine::id::{Seq, Version};
use annals_engine::log::{Log, Notice, Options, verify};
use annals_engine::storage::Storage;
use annals_engine::store::{Append, DamageClass, Durability, EventStore, Item, Read, Record, View};

use annals_tests::history::{Found, path, segments};

use super::machine::{Machine, active, event};

/// A store with so many events in one stream.
fn store_of(events: usize) -> Machine {
    let m = Machine::new(1);
    let client = m.open().unwrap();
    for n in 0..events {
        let last = n + 1 == events;
        let durability = if last { Durability::Synced } else { Durability::Buffered };
        client.append_with(vec![event("s1", &n.to_string(), 5)], durability).unwrap();
    }
    drop(client);
    m
}

fn read_all(log: &Log) -> (Vec<Record>, Vec<annals_engine::store::Damage>) {
    let (mut records, mut gaps) = (Vec::new(), Vec::new());
    for item in log.read(Read::default().view(View::Written)).unwrap() {
        match item.unwrap() {
            Item::Record(record) => records.push(*record),
            Item::Gap(damage) => gaps.push(*damage),
        }
    }
    (records, gaps)
}

/// F014: 199 good lines and the beginning of another. The log opens with 199 lines and one notice of 14 torn bytes; line
/// 200 says so, and the next append is 201.
#[test]
fn f014_half_a_last_line() {
    let m = store_of(198);
    let end = m.disk.look(|kernel| kernel.bytes(&active(kernel)).unwrap().len());
    m.disk.meddle(|kernel| kernel.scribble(&active(kernel), b"{\"seq\":200,\"ty"));
    let notices: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let told = Arc::clone(&notices);
    let tell = move |notice: &Notice| told.lock().unwrap().push(notice.clone());
    let options = Options { notices: Some(Arc::new(tell)), ..Options::default() };
    let storage = m.disk.process("f014");
    let report = verify(&(storage.clone() as _), &mut |_| {}).unwrap();
    let [torn] = &report.damages[..] else { panic!("{:?}", report.damages) };
    assert_eq!((torn.class, torn.bytes), (DamageClass::Torn, 14));
    let log = Log::open(storage, Arc::clone(&m.clock) as _, options).unwrap();
    let [Notice::TornTail { segment, offset, bytes, .. }] = &notices.lock().unwrap()[..] else {
        panic!("{notices:?}")
    };
    assert_eq!((*segment, *offset, *bytes), (Seq(1), end as u64, 14));
    let (records, gaps) = read_all(&log);
    assert!(gaps.is_empty());
    assert_eq!(records[198].seq, Seq(199));
    assert_eq!((records[199].seq, records[199].kind.as_str()), (Seq(200), "log.recovered"));
    let appended = log.append(Append::new(vec![event("s1", "next", 5)])).unwrap();
    assert_eq!(appended.positions[0].seq, Seq(201));
}

/// F015: 7,000 lines, one bit of line 3,100 flipped inside a string. All others are read, the damage is reported with
/// its offsets, and the last event is the last event.
#[test]
fn f015_one_bad_line_in_the_middle() {
    let m = store_of(6_999);
    let found = m.disk.look(Found::read);
    let line = &found.lines[3_099];
    m.disk.meddle(|kernel| {
        let name = active(kernel);
        let at = line.offset + line.record.to_line().len() - 25;
        let byte = kernel.bytes(&name).unwrap()[at];
        kernel.damage(&name, at, &[byte ^ 1]);
    });
    let log = m.open().unwrap().log;
    let (records, gaps) = read_all(&log);
    assert_eq!(records.len(), 6_999);
    assert_eq!(records.last(), found.lines.last().map(|line| &line.record));
    let [gap] = &gaps[..] else { panic!("{gaps:?}") };
    let len = line.record.to_line().len() as u64;
    assert_eq!((gap.offset, gap.bytes), (line.offset as u64, len));
    assert_eq!(gap.seqs, Some((Seq(3_100), Seq(3_100))));
    let report = verify(&(m.disk.process("verify") as _), &mut |_| {}).unwrap();
    assert!(!report.is_sound());
    assert_eq!(report.lines, 6_999);
}

/// F022: files of no length, wherever a crash may leave one. The store opens, has the events that it had, and takes more.
#[test]
fn f022_empty_files() {
    let m = store_of(5);
    let empty = [
        "lock.append",
        "lock.sync",
        "store.json.new",
        "log/00000000000000000007.jsonl",
        "log/00000000000000000007.jsonl.new",
        "torn/00000000000000000001@2000.01234567",
    ];
    for name in empty {
        let changed = m.on(m.disk.fork());
        changed.disk.process("mkdir").create_dir("torn").unwrap();
        changed.disk.meddle(|kernel| kernel.put(name, Vec::new()));
        let client = changed.open().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (records, gaps) = read_all(&client.log);
        assert!(gaps.is_empty(), "{name}: {gaps:?}");
        assert_eq!(records.iter().filter(|r| r.stream.as_str() == "s1").count(), 5, "{name}");
        client.append(vec![event("s1", "next", 5)]).unwrap_or_else(|e| panic!("{name}: {e}"));
        let wrong = changed.check(&client.log, None, &[]);
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
    }
}

/// F022: the only segment is empty and nothing was ever acknowledged: a store without events.
#[test]
fn f022_empty_only_segment() {
    let m = Machine::new(1);
    drop(m.open().unwrap());
    m.disk.meddle(|kernel| {
        kernel.put(&active(kernel), Vec::new());
        kernel.take("lock.append");
        kernel.take("lock.sync");
    });
    let client = m.open().unwrap();
    client.append(vec![event("s1", "first", 5)]).unwrap();
    assert!(m.check(&client.log, None, &[]).is_empty());
}

/// F023: a hint about the end of the log that is ahead of it, behind it, of another segment, or noise. The log wins, the
/// next event goes where it belongs, and no number is used twice.
#[test]
fn f023_a_stale_or_broken_hint() {
    let m = store_of(20);
    let end = m.disk.look(Found::read).lines.last().unwrap().record.seq;
    let bytes = m.disk.look(|kernel| kernel.bytes("lock.append").unwrap().to_vec());
    let (generation, known, _): (u64, Written, u64) = slot::newest(&bytes).unwrap();
    let with = |change: &dyn Fn(&mut Written)| {
        let mut hint = known;
        change(&mut hint);
        let mut block = slot::encode(generation + 1, &hint);
        block.resize(2 * BLOCK, 0);
        block
    };
    let hints = [
        ("ahead", with(&|hint| (hint.seq, hint.offset) = (500, hint.offset + 90_000))),
        ("behind", with(&|hint| (hint.seq, hint.offset) = (5, 900))),
        ("of another segment", with(&|hint| hint.segment = 17)),
        ("of another line", with(&|hint| hint.check ^= 1)),
        ("noise", b"nineteen odd bytes!".to_vec()),
    ];
    for (what, hint) in hints {
        let changed = m.on(m.disk.fork());
        changed.disk.meddle(|kernel| kernel.put("lock.append", hint));
        let client = changed.open().unwrap();
        let appended = client.append(vec![event("s1", "next", 5)]).unwrap();
        assert_eq!(appended.positions[0].seq, end.next(), "a hint {what}");
        assert_eq!(appended.positions[0].version, Version(21), "a hint {what}");
        assert!(changed.check(&client.log, None, &[]).is_empty(), "a hint {what}");
    }
}

/// F023: a reader kept a cursor of events that a power loss took. It is told that the history changed, not given others.
#[test]
fn f023_a_cursor_ahead_of_the_log() {
    let m = store_of(5);
    let shorter = m.on(m.disk.fork());
    let client = m.open().unwrap();
    client.append(vec![event("s1", "later", 5)]).unwrap();
    let cursor = client.log.end(View::Written).unwrap();
    let client = shorter.open().unwrap();
    for append in [false, true] {
        if append {
            client.append(vec![event("s1", "other", 50)]).unwrap();
        }
        let read = client
            .log
            .read(Read::after(cursor))
            .map(|items| items.map(|item| item.map(|_| ())).collect::<Result<Vec<()>, _>>());
        let error = match read {
            Err(error) | Ok(Err(error)) => error,
            Ok(Ok(items)) => panic!("{} items behind a cursor of another history", items.len()),
        };
        assert_eq!(*error.kind(), ErrorKind::HistoryChanged, "{error}");
    }
}

/// F026: half a line of an event, a line feed, then the whole line; and the whole line twice. The event is there once,
/// and a repeat of it gets its first position.
#[test]
fn f026_a_line_written_again() {
    let m = store_of(6);
    let found = m.disk.look(Found::read);
    let line = &found.lines[4];
    let text = line.record.to_line();
    let half = [&text[..text.len() / 2], b"\n"].concat();
    for (what, inserted, at) in [
        ("half before it", &half, line.offset),
        ("itself behind it", &text, line.offset + text.len()),
    ] {
        let changed = m.on(m.disk.fork());
        changed.disk.meddle(|kernel| {
            let name = path(&segments(kernel)[0]);
            let mut bytes = kernel.bytes(&name).unwrap().to_vec();
            bytes.splice(at..at, inserted.iter().copied());
            kernel.put(&name, bytes);
        });
        let log = changed.open().unwrap().log;
        let (records, gaps) = read_all(&log);
        let expected: Vec<&Record> = found.lines.iter().map(|line| &line.record).collect();
        assert_eq!(records.iter().collect::<Vec<_>>(), expected, "{what}");
        assert!(gaps.iter().all(|gap| gap.seqs.is_none()), "{what}: {gaps:?}");
        let report = verify(&(changed.disk.process("verify") as _), &mut |_| {}).unwrap();
        assert_eq!(report.damages.len(), 1, "{what}: {report:?}");
    }
}
