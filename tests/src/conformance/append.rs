//! Versions, expectations, batches and limits.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use annals_engine::ErrorKind;
use annals_engine::clock::Clock;
use annals_engine::format::{LINE_MAX, Payload, control};
use annals_engine::id::{EventId, EventType, Seq};
use annals_engine::store::{Append, Expected, Item, NewEvent, Read};

use super::{Subject, kind_of, stream, told, version};

/// Each stream counts from 1 without a hole, and positions in the log rise.
pub fn versions_are_dense(subject: &Subject) {
    let mut last = Seq::ZERO;
    for (on, n, expected) in [("a", 1, 1), ("b", 2, 1), ("a", 3, 2), ("a", 4, 3), ("b", 5, 2)] {
        let event = subject.event(on, n);
        let id = event.id;
        let appended = subject.store.append(Append::new(vec![event])).unwrap();
        let [position] = appended.positions.as_slice() else { panic!("{appended:?}") };
        assert_eq!((position.id, position.version), (id, version(expected)));
        assert!(position.seq > last && !appended.repeated);
        assert_eq!(subject.store.head(&stream(on)).unwrap(), version(expected));
        last = position.seq;
    }
    let text = |n: u64, on: &str, v: u64| format!(r#"{on}@{v} {{"text":"{n}"}}"#);
    assert_eq!(
        told(&subject.events()),
        [text(1, "a", 1), text(2, "b", 1), text(3, "a", 2), text(4, "a", 3), text(5, "b", 2)]
    );
}

/// An append goes ahead at the version expected, and on a stream that is expected to be new.
pub fn expectations_that_hold(subject: &Subject) {
    let on_new =
        Append::new(vec![subject.event("a", 1)]).expecting(stream("a"), Expected::NoStream);
    subject.store.append(on_new).unwrap();
    let at_zero = Append::new(vec![subject.event("b", 2)])
        .expecting(stream("b"), Expected::Version(version(0)));
    subject.store.append(at_zero).unwrap();
    let at_one = Append::new(vec![subject.event("a", 3)])
        .expecting(stream("a"), Expected::Version(version(1)))
        .expecting(stream("b"), Expected::Version(version(1)))
        .expecting(stream("c"), Expected::NoStream);
    let appended = subject.store.append(at_one).unwrap();
    assert_eq!(appended.positions[0].version, version(2));
}

/// An expectation that fails names the stream and both versions, and nothing is written.
pub fn conflicts(subject: &Subject) {
    subject.put("a", 1);
    subject.put("a", 2);
    for (expected, stated) in [
        (Expected::NoStream, 0),
        (Expected::Version(version(1)), 1),
        (Expected::Version(version(3)), 3),
    ] {
        let attempt = Append::new(vec![subject.event("a", 9)]).expecting(stream("a"), expected);
        subject.refused(attempt, |kind| {
            let (stream, expected, actual) = ("a".to_owned(), version(stated), version(2));
            *kind == ErrorKind::Conflict { stream, expected, actual }
        });
    }
    assert_eq!(subject.store.head(&stream("a")).unwrap(), version(2));
}

/// An expectation of a stream that the batch does not write counts as much.
pub fn conflict_on_a_stream_not_written(subject: &Subject) {
    subject.put("policy", 1);
    let attempt = Append::new(vec![subject.event("a", 2)])
        .expecting(stream("a"), Expected::NoStream)
        .expecting(stream("policy"), Expected::Version(version(0)));
    subject.refused(attempt, |kind| {
        let (expected, actual) = (version(0), version(1));
        *kind == ErrorKind::Conflict { stream: "policy".to_owned(), expected, actual }
    });
}

/// A batch may touch several streams; each line says which of how many it is, a lone event says nothing.
pub fn batches_over_streams(subject: &Subject) {
    subject.put("b", 1);
    let batch = vec![subject.event("a", 2), subject.event("b", 3), subject.event("a", 4)];
    let ids: Vec<EventId> = batch.iter().map(|event| event.id).collect();
    let appended = subject.store.append(Append::new(batch)).unwrap();
    let at: Vec<_> = appended.positions.iter().map(|p| (p.id, p.version.0)).collect();
    assert_eq!(at, [(ids[0], 1), (ids[1], 2), (ids[2], 2)]);
    let batches: Vec<_> = subject.events().iter().map(|record| record.batch).collect();
    assert_eq!(batches, [None, Some((1, 3)), Some((2, 3)), Some((3, 3))]);
}

/// One event that cannot be stored keeps the whole batch out.
pub fn all_or_nothing(subject: &Subject) {
    subject.put("a", 1);
    let huge = NewEvent { data: text_of(LINE_MAX), ..subject.event("b", 3) };
    let batch = vec![subject.event("a", 2), huge, subject.event("c", 4)];
    subject.refused(Append::new(batch), |kind| *kind == ErrorKind::TooLarge);
    assert_eq!(subject.store.head(&stream("a")).unwrap(), version(1));
    assert_eq!(subject.put("c", 5).positions[0].version, version(1));
}

/// 1,000 events are taken and 1,001 are not; 8 lines of a million bytes are and 9 are not.
pub fn limits_of_a_batch(subject: &Subject) {
    let of = |count: u64| (0..count).map(|n| subject.event("a", n)).collect::<Vec<_>>();
    let appended = subject.store.append(Append::new(of(1_000))).unwrap();
    assert_eq!(appended.positions[999].version, version(1_000));
    subject.refused(Append::new(of(1_001)), |kind| *kind == ErrorKind::TooLarge);

    let data = text_of(1_000_000);
    let big = |count: u64| {
        let events = (0..count).map(|n| NewEvent { data: data.clone(), ..subject.event("b", n) });
        Append::new(events.collect())
    };
    subject.refused(big(9), |kind| *kind == ErrorKind::TooLarge);
    subject.store.append(big(8)).unwrap();
}

/// A line that just fits is stored as it is; one byte more does not fit.
pub fn limit_of_a_line(subject: &Subject) {
    let filled = |bytes: usize| NewEvent { data: text_of(bytes), ..subject.event("a", 0) };
    let appended = subject.store.append(Append::new(vec![filled(LINE_MAX - 1_000)])).unwrap();
    let record = subject.events().pop().unwrap();
    assert_eq!(record.seq, appended.positions[0].seq);
    // The next lines are as long as this one but for the digits of three numbers below ten.
    let over = LINE_MAX - record.to_line().len();
    subject.refused(Append::new(vec![filled(LINE_MAX - 1_000 + over + 1)]), |kind| {
        *kind == ErrorKind::TooLarge
    });
    subject.store.append(Append::new(vec![filled(LINE_MAX - 1_000 + over)])).unwrap();
    assert_eq!(subject.events().pop().unwrap().to_line().len(), LINE_MAX);
}

/// A content that is too big for a line is no part of the record, and the whole payload is what was given, byte for
/// byte. Such an event is known by its id like any other, and is another one when only the content differs.
pub fn contents_too_big_for_a_line(subject: &Subject) {
    let with = |text: &str| {
        let json = format!(r#"{{"role":"user","content":["{}","{text}"]}}"#, "é".repeat(LINE_MAX));
        NewEvent { data: Payload::from_json(&json).unwrap(), ..subject.event("a", 1) }
    };
    let first = with("one");
    let id = first.id;
    let batch = vec![subject.event("b", 1), first.clone()];
    let appended = subject.store.append(Append::new(batch)).unwrap();
    let record = subject.events().pop().unwrap();
    assert_eq!((record.data.as_str(), record.blob.is_some()), (r#"{"role":"user"}"#, true));
    assert!(record.to_line().len() < 1_000);
    assert_eq!(subject.store.payload(&record).unwrap(), first.data);
    let again = subject.store.append(Append::new(vec![first])).unwrap();
    assert_eq!((again.repeated, &again.positions[0]), (true, &appended.positions[1]));
    let other = NewEvent { id, ..with("two") };
    subject.refused(Append::new(vec![other]), |kind| *kind == ErrorKind::IdReused);
}

/// The stream and the types of the log itself are not for callers; names that only begin alike are.
pub fn reserved_names(subject: &Subject) {
    let invalid = |kind: &ErrorKind| *kind == ErrorKind::InvalidInput;
    subject.refused(Append::new(vec![subject.event("log", 1)]), invalid);
    for kind in ["log.opened", "log.clock", "log.anything"] {
        let kind = EventType::new(kind).unwrap();
        let event = NewEvent { kind, ..subject.event("a", 1) };
        subject.refused(Append::new(vec![event]), invalid);
    }
    let kind = EventType::new("logged").unwrap();
    let event = NewEvent { kind, ..subject.event("log:1", 1) };
    subject.store.append(Append::new(vec![event])).unwrap();
}

/// An append of nothing writes nothing and is no error; what it expects still counts.
pub fn nothing_to_append(subject: &Subject) {
    subject.put("a", 1);
    let before = subject.events();
    let appended = subject.store.append(Append::new(Vec::new())).unwrap();
    assert!(appended.positions.is_empty() && !appended.repeated);
    let expecting = Append::new(Vec::new()).expecting(stream("a"), Expected::NoStream);
    let kind = kind_of(subject.store.append(expecting));
    assert!(matches!(kind, ErrorKind::Conflict { .. }), "{kind:?}");
    assert_eq!(subject.events(), before);
}

/// Names that a line cannot carry raw, text in any script, and the two references come back as they were given.
pub fn content_survives(subject: &Subject) {
    let cause = subject.put("a", 1).positions[0].id;
    let flow = EventId::derived("key", "test", "flow");
    let text = "{\"t\":\"日本語 \\u00e9 é \\\" \\n 🎛\",\"n\":-0.5e-3,\"deep\":[[{}],null,true]}";
    for name in ["telegram:!Room 1", "x:é\"\\\n\0%", &"y".repeat(1_024), "雲"] {
        let event = NewEvent {
            data: Payload::from_json(text).unwrap(),
            cause: Some(cause),
            flow: Some(flow),
            ..subject.event(name, 0)
        };
        let given = event.clone();
        subject.store.append(Append::new(vec![event])).unwrap();
        let record = subject.events().pop().unwrap();
        assert_eq!(record.stream, given.stream);
        assert_eq!((record.id, record.cause, record.flow), (given.id, Some(cause), Some(flow)));
        assert_eq!((record.kind, record.data.as_str()), (given.kind, text));
        assert_eq!(subject.store.head(&given.stream).unwrap(), version(1));
    }
}

/// Times are the clock's. A small step back holds the time still; a larger one is written down before the event that
/// carries the earlier time.
pub fn times_follow_the_order(subject: &Subject) {
    subject.put("a", 1);
    let first = subject.clock.now();
    subject.clock.set(first.minus(Duration::from_millis(900)));
    subject.put("a", 2);
    subject.clock.set(first.minus(Duration::from_secs(3_600)));
    let back = subject.clock.now();
    subject.put("a", 3);
    subject.clock.set(first.plus(Duration::from_secs(60)));
    let later = subject.clock.now();
    subject.put("a", 4);
    let times: Vec<_> = subject.events().iter().map(|record| record.time).collect();
    assert_eq!(times, [first, first, back, later]);

    let mut last = None;
    let mut stepped = false;
    for item in subject.store.read(Read::default()).unwrap() {
        let Item::Record(record) = item.unwrap() else { panic!("a gap") };
        let step = record.kind.as_str() == control::CLOCK;
        assert!(step || last.is_none_or(|last| last <= record.time), "seq {}", record.seq);
        stepped |= step;
        last = Some(record.time);
    }
    assert!(stepped, "no line says that the clock stepped back");
}

/// Eight threads race for each next version of one stream: one of them wins it, the others are told of the conflict.
pub fn one_winner_per_version(subject: &Subject) {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 20;
    let barrier = Barrier::new(8);
    let race = |me: u64| {
        let mut won = Vec::new();
        for round in 0..ROUNDS {
            barrier.wait();
            let attempt = Append::new(vec![subject.event("a", me)])
                .expecting(stream("a"), Expected::Version(version(round)));
            match subject.store.append(attempt) {
                Ok(appended) => won.push(appended.positions[0].version.0),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Conflict { .. }), "{error}");
                }
            }
        }
        won
    };
    let mut won: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|me| scope.spawn(move || race(me))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    won.sort_unstable();
    assert_eq!(won, (1..=ROUNDS).collect::<Vec<_>>());
    assert_eq!(subject.events().len() as u64, ROUNDS);
}

/// Threads append batches to their own stream and to a shared one: every event is in the log once, at the position
/// that its caller was told, and each caller's events are in the caller's order.
pub fn appends_from_many_threads(subject: &Subject) {
    const THREADS: u64 = 4;
    const BATCHES: u64 = 25;
    let append = |me: u64| {
        let own = format!("own:{me}");
        let batches = (0..BATCHES).map(|n| {
            let batch = vec![subject.event(&own, n), subject.event("shared", me * BATCHES + n)];
            subject.store.append(Append::new(batch)).unwrap().positions
        });
        batches.flatten().collect::<Vec<_>>()
    };
    let told: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|me| scope.spawn(move || append(me))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let records = subject.events();
    assert_eq!(records.len() as u64, THREADS * BATCHES * 2);
    let stored: HashSet<_> = records.iter().map(|r| (r.id, r.seq, r.version)).collect();
    assert_eq!(stored, told.iter().map(|p| (p.id, p.seq, p.version)).collect());
    for me in 0..THREADS {
        let own = format!("own:{me}");
        let texts: Vec<_> =
            records.iter().filter(|r| r.stream.as_str() == own).map(|r| r.data.clone()).collect();
        assert_eq!(texts, (0..BATCHES).map(super::data).collect::<Vec<_>>());
    }
}

/// A payload of `bytes` bytes.
fn text_of(bytes: usize) -> Payload {
    let frame = r#"{"text":""}"#.len();
    Payload::from_json(&format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes - frame))).unwrap()
}
