//! Decisions under the append lock: the fold has seen everything, and nothing comes between it and the append.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use annals_engine::clock::{Clock, ManualClock, Timestamp};
use annals_engine::id::{EventId, Seq};
use annals_engine::store::{
    Append, Cursor, Decider, Durability, EventStore, Expected, Item, MemoryStore, NewEvent,
};
use annals_engine::{Error, ErrorKind, Result};

use super::{Subject, event, own, rewritten, stream, version};

/// A fold that counts the events of one stream and decides with a given rule.
pub(super) struct Counter<F> {
    on: &'static str,
    seen: Option<Cursor>,
    count: u64,
    applied: u64,
    restarts: u64,
    first: Seq,
    rule: F,
}

impl<F: FnMut(u64, Timestamp) -> Result<Append>> Counter<F> {
    pub(super) fn new(on: &'static str, rule: F) -> Self {
        Self { on, seen: None, count: 0, applied: 0, restarts: 0, first: Seq::ZERO, rule }
    }
}

impl<F: FnMut(u64, Timestamp) -> Result<Append>> Decider for Counter<F> {
    fn seen(&self) -> Option<Cursor> {
        self.seen
    }

    fn apply(&mut self, item: &Item, cursor: &Cursor) {
        if let Some(record) = own(item.clone()) {
            self.applied += 1;
            self.count += u64::from(record.stream.as_str() == self.on);
        }
        self.seen = Some(*cursor);
    }

    fn restart(&mut self) {
        (self.seen, self.count, self.applied) = (None, 0, 0);
        self.restarts += 1;
    }

    fn begins(&mut self, first: Seq) {
        self.first = first;
    }

    fn decide(&mut self, now: Timestamp) -> Result<Append> {
        (self.rule)(self.count, now)
    }
}

/// The event that makes a count one higher.
pub(super) fn next_count(count: u64, now: Timestamp) -> Result<Append> {
    Ok(Append::new(vec![event(EventId::new(now), "counter", count + 1)]))
}

/// A fold that has seen nothing is fed everything, one that was used before only the rest.
pub fn sees_everything_first(subject: &Subject) {
    subject.put("counter", 1);
    subject.put("other", 2);
    let mut counter = Counter::new("counter", next_count);
    subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
    assert_eq!((counter.count, counter.applied), (1, 2));
    subject.put("counter", 3);
    subject.store.append_deciding(&mut counter, Durability::Buffered).unwrap();
    assert_eq!((counter.count, counter.applied, counter.restarts), (3, 4, 0));
    assert_eq!(subject.store.head(&stream("counter")).unwrap(), version(4));
}

/// Threads raise one counter by decisions: no raise is lost, each event carries the next number.
pub fn counts_without_loss(subject: &Subject) {
    let raise = || {
        let mut counter = Counter::new("counter", next_count);
        for _ in 0..25 {
            subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
        }
    };
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(raise);
        }
    });
    let counted: Vec<_> = subject.events().into_iter().map(|record| record.data).collect();
    assert_eq!(counted, (1..=150).map(super::data).collect::<Vec<_>>());
}

/// A refusal is handed to the caller as it was made, and nothing is written.
pub fn refusals(subject: &Subject) {
    subject.put("counter", 1);
    let before = subject.events();
    let mut counter = Counter::new("counter", |count, _| {
        Err(Error::new(ErrorKind::Refused, format!("{count} is enough")).field("count"))
    });
    let refused = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap_err();
    assert_eq!((refused.kind(), refused.message()), (&ErrorKind::Refused, "1 is enough"));
    assert_eq!(refused.place().field.as_deref(), Some("count"));
    assert_eq!(subject.events(), before);
    subject.put("counter", 2);
}

/// To decide to append nothing is no error.
pub fn deciding_nothing(subject: &Subject) {
    subject.put("counter", 1);
    let mut counter = Counter::new("counter", |_, _| Ok(Append::new(Vec::new())));
    let appended = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
    assert!(appended.positions.is_empty() && !appended.repeated);
    assert_eq!((counter.count, subject.events().len()), (1, 1));
}

/// A fold that has seen a line that is not in the log forgets everything and is fed from the start.
pub fn folds_of_lost_lines_begin_again(subject: &Subject) {
    subject.put("counter", 1);
    subject.put("counter", 2);
    let mut counter = Counter::new("counter", next_count);
    subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
    assert_eq!(counter.count, 2);
    counter.seen = counter.seen.map(|cursor| rewritten(&cursor));
    let appended = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
    assert_eq!((counter.restarts, counter.count, counter.applied), (1, 3, 3));
    assert_eq!(appended.positions[0].version, version(4));
}

/// A fold that was fed from another store is a mistake of the caller's, and nothing is written.
pub fn folds_of_another_store(subject: &Subject) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
    let other = MemoryStore::new(clock);
    let mut counter = Counter::new("counter", next_count);
    for _ in 0..3 {
        other.append_deciding(&mut counter, Durability::Synced).unwrap();
    }
    subject.put("counter", 1);
    let refused = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap_err();
    assert_eq!((refused.kind(), counter.restarts), (&ErrorKind::HistoryChanged, 0));
    assert_eq!(subject.events().len(), 1);
}

/// What a decision expects is checked like any expectation.
pub fn decided_conflicts(subject: &Subject) {
    subject.put("policy", 1);
    let mut counter = Counter::new("counter", |count, now| {
        Ok(next_count(count, now)?.expecting(stream("policy"), Expected::NoStream))
    });
    let error = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Conflict { .. }), "{error}");
    assert_eq!(subject.events().len(), 1);
}

/// A decision for events that are in the log already gives their first positions.
pub fn decided_repeats(subject: &Subject) {
    let once = NewEvent { ..event(EventId::derived("key", "test", "once"), "counter", 1) };
    let mut counter = Counter::new("counter", |_, _| Ok(Append::new(vec![once.clone()])));
    let first = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
    let again = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
    assert_eq!((first.repeated, again.repeated), (false, true));
    assert_eq!(first.positions, again.positions);
    assert_eq!(subject.events().len(), 1);
}

/// A decision is told the position that its first event gets: at the start, further on, and behind a line that says
/// that the clock went back.
pub fn told_its_position(subject: &Subject) {
    let mut counter = Counter::new("counter", next_count);
    for back in [0, 0, 3_600, 0, 1] {
        subject.clock.set(subject.clock.now().minus(Duration::from_secs(back)));
        let appended = subject.store.append_deciding(&mut counter, Durability::Synced).unwrap();
        assert_eq!(appended.positions[0].seq, counter.first, "{back} s back");
    }
}
