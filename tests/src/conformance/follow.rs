//! Following: every event once and in order, whatever happens between looking and waiting.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use annals_engine::ErrorKind;
use annals_engine::id::Seq;
use annals_engine::store::{
    Append, Durability, Filter, Follow, Followed, NamePattern, Read, Record, View,
};

use super::{Subject, events, kind_of, next_event, own, told, until_caught_up};

/// A follower first gives what is there, then what comes.
pub fn old_then_new(subject: &Subject) {
    subject.put("a", 1);
    subject.put("b", 2);
    let mut follower = subject.store.follow(Read::default()).unwrap();
    let (old, at) = until_caught_up(&mut *follower);
    assert_eq!(old, subject.events());
    assert_eq!(at, follower.cursor());
    subject.put("a", 3);
    let new = next_event(&mut *follower);
    assert_eq!(subject.events().last(), Some(&new));
}

/// At the end it says so, with the place of the end; when nothing comes in the time given it says that.
pub fn the_end_is_told(subject: &Subject) {
    let mut follower = subject.store.follow(Read::default()).unwrap();
    let (none, start) = until_caught_up(&mut *follower);
    assert!(none.is_empty());
    assert_eq!(start, subject.store.end(View::Durable).unwrap());
    subject.put("a", 1);
    let (one, end) = until_caught_up(&mut *follower);
    assert_eq!(one, subject.events());
    assert!(end.is_some() && end != start);
    loop {
        // Control lines may still come; an event may not.
        match follower.next(Some(Duration::ZERO)).unwrap() {
            Followed::Quiet => break,
            Followed::CaughtUp(_) => {}
            Followed::Item(item) => assert_eq!(own(item), None),
        }
    }
}

/// A follower that wants one stream moves on over the others: after it has caught up, nothing of what was filtered out
/// lies before it.
pub fn filtered_places_count(subject: &Subject) {
    let wanted = Filter { streams: vec![NamePattern::Exact("a".to_owned())], ..Filter::default() };
    subject.put("a", 1);
    subject.put("b", 2);
    let mut follower = subject.store.follow(Read::default().filter(wanted.clone())).unwrap();
    let (found, at) = until_caught_up(&mut *follower);
    assert_eq!(found, subject.events()[..1]);
    assert_eq!(events(subject.store.read(Read::after(at)).unwrap()).len(), 0);
    subject.put("b", 3);
    subject.put("a", 4);
    assert_eq!(Some(&next_event(&mut *follower)), subject.events().last());
    let resumed = Read::after(follower.cursor()).filter(wanted);
    let (rest, _) = until_caught_up(&mut *subject.store.follow(resumed).unwrap());
    assert_eq!(told(&rest), Vec::<String>::new());
}

/// A follower that stops after each event and goes on from its cursor misses nothing and gives nothing twice.
pub fn resumed_at_every_place(subject: &Subject) {
    for n in 0..5 {
        let batch = (0..2).map(|i| subject.event("a", n * 2 + i)).collect();
        subject.store.append(Append::new(batch)).unwrap();
    }
    let all = subject.events();
    let mut cursor = None;
    let mut given = Vec::new();
    for _ in &all {
        let mut follower = subject.store.follow(Read::after(cursor)).unwrap();
        given.push(next_event(&mut *follower));
        cursor = follower.cursor();
    }
    assert_eq!(given, all);
}

/// Two threads answer each other's events and wait without a limit: a lost wake-up would stop both for ever.
pub fn no_gap_between_looking_and_waiting(subject: &Subject) {
    const ROUNDS: u64 = 150;
    let hear = |follower: &mut (dyn Follow + '_)| loop {
        match follower.next(None).unwrap() {
            Followed::Item(item) => {
                if let Some(record) = own(item) {
                    return record.version.0;
                }
            }
            Followed::CaughtUp(_) => {}
            Followed::Quiet => panic!("quiet where no limit was given"),
        }
    };
    let following = |on: &str| {
        let streams = vec![NamePattern::Exact(on.to_owned())];
        let filter = Filter { streams, ..Filter::default() };
        subject.store.follow(Read::default().filter(filter)).unwrap()
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut pings = following("ping");
            for n in 1..=ROUNDS {
                assert_eq!(hear(&mut *pings), n);
                subject.put("pong", n);
            }
        });
        let mut pongs = following("pong");
        for n in 1..=ROUNDS {
            subject.put("ping", n);
            assert_eq!(hear(&mut *pongs), n);
        }
    });
}

/// While threads append batches of mixed size and durability, two followers see what the log holds at the end, in its
/// order, each event once; a batch is never cut by the end that a follower is told.
pub fn whole_batches_from_many_threads(subject: &Subject) {
    const THREADS: u64 = 3;
    const BATCHES: u64 = 30;
    let append = |me: u64| {
        for n in 0..BATCHES {
            let batch = (0..=(me + n) % 4).map(|_| subject.event(&format!("s:{me}"), n)).collect();
            let durability = if n % 3 == 0 { Durability::Buffered } else { Durability::Synced };
            subject.store.append(Append::new(batch).durability(durability)).unwrap();
        }
    };
    let (stop_at, ends) = mpsc::channel::<Seq>();
    let follow = |ends: mpsc::Receiver<Seq>| {
        let mut follower = subject.store.follow(Read::default()).unwrap();
        let mut given: Vec<Record> = Vec::new();
        let mut stop = None;
        while stop.is_none() || given.last().map(|record| record.seq) < stop {
            let (more, _) = until_caught_up(&mut *follower);
            given.extend(more);
            let whole = given.last().and_then(|record| record.batch);
            assert!(whole.is_none_or(|(index, count)| index == count), "a batch was cut");
            stop = stop.or_else(|| ends.try_recv().ok());
        }
        given
    };
    let given = thread::scope(|scope| {
        let following = scope.spawn(move || follow(ends));
        let threads: Vec<_> = (0..THREADS).map(|me| scope.spawn(move || append(me))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let last = subject.put("end", 0);
        stop_at.send(last.positions[0].seq).unwrap();
        // Only an event wakes a follower that has caught up before the end was known to it.
        subject.put("end", 1);
        following.join().unwrap()
    });
    let all = subject.events();
    assert_eq!(told(&given), told(&all[..given.len()]));
    assert!(all.len() - given.len() <= 1);
}

/// A follower does not begin at a place of another history.
pub fn foreign_cursors(subject: &Subject) {
    subject.put("a", 1);
    let end = subject.store.end(View::Durable).unwrap().unwrap();
    let text = end.to_string();
    let (seq, rest) = text.split_once('.').unwrap();
    let beyond = format!("{}.{rest}", seq.parse::<u64>().unwrap() + 1_000).parse().unwrap();
    let read = Read::after(Some(beyond));
    assert_eq!(kind_of(subject.store.follow(read)), ErrorKind::HistoryChanged);
}
