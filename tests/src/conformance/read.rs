//! Reading: order, places, filters and views.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use annals_engine::ErrorKind;
use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::format::decode;
use annals_engine::id::EventType;
use annals_engine::store::{
    Append, Cursor, Durability, Filter, Item, MemoryStore, NamePattern, NewEvent, Read, Record,
    View,
};

use super::{Subject, events, kind_of, rewritten, stream, told, version};

/// From the place after each event, reading gives exactly the events behind it.
pub fn from_every_cursor(subject: &Subject) {
    fill(subject);
    let all = subject.events();
    let store = subject.store.id();
    for (index, record) in all.iter().enumerate() {
        let rest = subject.store.read(Read::after(Some(record.cursor(store)))).unwrap();
        assert_eq!(events(rest), all[index + 1..], "after seq {}", record.seq);
    }
}

/// A cursor survives its text form, and text that is none is refused.
pub fn cursors_as_text(subject: &Subject) {
    fill(subject);
    let end = subject.store.end(View::Durable).unwrap().unwrap();
    assert_eq!(end.to_string().parse::<Cursor>().unwrap(), end);
    for text in ["", "1", "1.2", "x.00000000.0", &format!("{end}.1"), &format!("-{end}")] {
        assert_eq!(kind_of(text.parse::<Cursor>()), ErrorKind::InvalidInput, "{text:?}");
    }
}

/// A cursor of another store, of a position that is not there, or of another line at its position is no place here.
pub fn cursors_of_another_history(subject: &Subject) {
    fill(subject);
    let end = subject.store.end(View::Durable).unwrap().unwrap();
    let text = end.to_string();
    let (seq, rest) = text.split_once('.').unwrap();
    let beyond = format!("{}.{rest}", seq.parse::<u64>().unwrap() + 1).parse().unwrap();
    for cursor in [beyond, rewritten(&end)] {
        let read = Read::after(Some(cursor));
        assert_eq!(kind_of(subject.store.read(read)), ErrorKind::HistoryChanged, "{cursor}");
    }
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
    let other = Subject::new(move |_| Arc::new(MemoryStore::new(clock.clone())));
    fill(&other);
    let foreign = other.store.end(View::Durable).unwrap();
    assert_eq!(kind_of(subject.store.read(Read::after(foreign))), ErrorKind::HistoryChanged);
}

/// Streams and types, exact or by their beginning; both must fit, and an empty list fits all.
pub fn filters(subject: &Subject) {
    for (on, kind) in [("a", "x.one"), ("a:b", "x.two"), ("b", "x.one"), ("ab", "y.one")] {
        let kind = EventType::new(kind).unwrap();
        let event = NewEvent { kind, ..subject.event(on, 1) };
        subject.store.append(Append::new(vec![event])).unwrap();
    }
    let exact = |name: &str| NamePattern::Exact(name.to_owned());
    let prefix = |name: &str| NamePattern::Prefix(name.to_owned());
    for (streams, types, expected) in [
        (vec![], vec![], vec!["a", "a:b", "b", "ab"]),
        (vec![exact("a")], vec![], vec!["a"]),
        (vec![prefix("a")], vec![], vec!["a", "a:b", "ab"]),
        (vec![exact("b"), prefix("a:")], vec![], vec!["a:b", "b"]),
        (vec![], vec![exact("x.one")], vec!["a", "b"]),
        (vec![prefix("a")], vec![prefix("x.")], vec!["a", "a:b"]),
        (vec![exact("nobody")], vec![], vec![]),
    ] {
        let filter = Filter { streams, types };
        let read = Read::default().filter(filter.clone());
        let found = events(subject.store.read(read).unwrap());
        let streams: Vec<&str> = found.iter().map(|record| record.stream.as_str()).collect();
        assert_eq!(streams, expected, "{filter:?}");
    }
}

/// One stream from after each of its versions; nothing of other streams, and nothing of a stream that is not there.
pub fn one_stream(subject: &Subject) {
    fill(subject);
    let all: Vec<Record> =
        subject.events().into_iter().filter(|record| record.stream.as_str() == "a").collect();
    for after in 0..=all.len() {
        let rest = subject.store.read_stream(&stream("a"), version(after as u64)).unwrap();
        assert_eq!(events(rest), all[after..], "after version {after}");
    }
    for (name, after) in [("a", 1_000), ("a", u64::MAX), ("nobody", 0)] {
        let rest = subject.store.read_stream(&stream(name), version(after)).unwrap();
        assert_eq!(told(&events(rest)), Vec::<String>::new(), "{name} after {after}");
    }
}

/// Of one stream the events of some types, in order: those that a look at all of them finds. Batches that go over streams
/// and hold several types, and types that are not there.
pub fn one_stream_of_some_types(subject: &Subject) {
    let kinds = ["x.one", "x.two", "x.three"];
    for n in 0..24_u64 {
        let event = |on: &str, kind: u64| NewEvent {
            kind: EventType::new(kinds[usize::try_from(kind % 3).unwrap()]).unwrap(),
            ..subject.event(on, n)
        };
        let mut batch = vec![event("a", n)];
        batch.extend((0..n % 4).map(|i| event(["b", "a"][(i % 2) as usize], n + i * i)));
        subject.store.append(Append::new(batch)).unwrap();
    }
    for types in [&[][..], &["x.one"], &["x.three", "x.one"], &["x.none", "x.two"], &kinds] {
        for name in ["a", "b", "nobody"] {
            let all = subject.events().into_iter();
            let expected: Vec<Record> = all
                .filter(|r| r.stream.as_str() == name && types.contains(&r.kind.as_str()))
                .collect();
            let found = subject.store.read_stream_of(&stream(name), types).unwrap();
            assert_eq!(events(found), expected, "{types:?} of {name}");
        }
    }
}

/// The head of a stream and the end of the log, before, between and after appends.
pub fn heads_and_ends(subject: &Subject) {
    let start = subject.store.end(View::Durable).unwrap();
    assert_eq!(subject.store.head(&stream("a")).unwrap(), version(0));
    assert!(subject.events().is_empty());
    let appended = subject.put("a", 1);
    let end = subject.store.end(View::Durable).unwrap().unwrap();
    assert_eq!(end.seq(), appended.positions[0].seq);
    assert_eq!(subject.store.head(&stream("a")).unwrap(), version(1));
    assert_eq!(events(subject.store.read(Read::after(start)).unwrap()).len(), 1);
    assert_eq!(events(subject.store.read(Read::after(Some(end))).unwrap()).len(), 0);
}

/// A buffered append is at once in the written view, and in the durable one at the latest with the next synced append.
pub fn written_and_durable(subject: &Subject) {
    subject.put("a", 1);
    let buffered = Append::new(vec![subject.event("a", 2)]).durability(Durability::Buffered);
    subject.store.append(buffered).unwrap();
    let written = subject.store.read(Read::default().view(View::Written)).unwrap();
    assert_eq!(events(written).len(), 2);
    assert_eq!(subject.store.head(&stream("a")).unwrap(), version(2));
    let durable = events(subject.store.read(Read::default()).unwrap());
    assert!((1..=2).contains(&durable.len()));
    subject.put("a", 3);
    let versions: Vec<u64> = subject.events().iter().map(|record| record.version.0).collect();
    assert_eq!(versions, [1, 2, 3]);
}

/// While another thread appends batches of three, no read in either view ends inside one.
pub fn batches_come_whole(subject: &Subject) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..60 {
                let batch = (0..3).map(|i| subject.event("a", n * 3 + i)).collect();
                let durability = if n % 2 == 0 { Durability::Synced } else { Durability::Buffered };
                subject.store.append(Append::new(batch).durability(durability)).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            for view in [View::Durable, View::Written] {
                let seen = events(subject.store.read(Read::default().view(view)).unwrap());
                assert_eq!(seen.len() % 3, 0, "{view:?}");
            }
        }
    });
}

/// Every record is its line and back, and each names the checksum of the one before.
pub fn lines_and_chain(subject: &Subject) {
    fill(subject);
    let mut before: Option<Record> = None;
    for item in subject.store.read(Read::default()).unwrap() {
        let Item::Record(record) = item.unwrap() else { panic!("a gap") };
        let line = record.to_line();
        assert_eq!(Record::from_line(&decode(&line).unwrap()).unwrap(), *record);
        if let Some(before) = before {
            assert_eq!(record.prev, before.crc);
            assert!(record.seq > before.seq && record.durable < record.seq);
        }
        before = Some(*record);
    }
}

/// A few batches on two streams.
fn fill(subject: &Subject) {
    for n in 0..6 {
        let batch = (0..=n % 3).map(|i| subject.event(["a", "b"][(i % 2) as usize], n)).collect();
        subject.store.append(Append::new(batch)).unwrap();
    }
}
