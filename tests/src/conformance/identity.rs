//! Ids: a repeat is the first append again, and another event is never taken for it.

use std::time::Duration;

use annals_engine::ErrorKind;
use annals_engine::clock::Clock;
use annals_engine::id::{EventId, EventType};
use annals_engine::store::{Append, Durability, Expected, NewEvent};

use super::{Subject, data, event, stream, version};

/// The same append again, under either durability and with an expectation that held only the first time, gives the
/// first positions and writes nothing.
pub fn repeats(subject: &Subject) {
    let batch = vec![subject.event("a", 1), subject.event("b", 2)];
    let append = Append::new(batch).expecting(stream("a"), Expected::NoStream);
    let first = subject.store.append(append.clone()).unwrap();
    subject.put("a", 3);
    let before = subject.events();
    for durability in [Durability::Synced, Durability::Buffered] {
        let again = subject.store.append(append.clone().durability(durability)).unwrap();
        assert_eq!((again.positions, again.repeated), (first.positions.clone(), true));
    }
    assert_eq!(subject.events(), before);
}

/// Some events of an earlier batch, in another order, are a repeat too: each has its own first position.
pub fn repeats_of_parts(subject: &Subject) {
    let batch = vec![subject.event("a", 1), subject.event("b", 2), subject.event("a", 3)];
    let first = subject.store.append(Append::new(batch.clone())).unwrap();
    let part = Append::new(vec![batch[2].clone(), batch[0].clone()]);
    let again = subject.store.append(part).unwrap();
    assert!(again.repeated);
    assert_eq!(again.positions, [first.positions[2].clone(), first.positions[0].clone()]);
}

/// A known id with another stream, type or payload is refused; another cause is not another event.
pub fn reused_ids(subject: &Subject) {
    let first = subject.event("a", 1);
    subject.store.append(Append::new(vec![first.clone()])).unwrap();
    for other in [
        NewEvent { stream: stream("b"), ..first.clone() },
        NewEvent { kind: EventType::new("x.test.other").unwrap(), ..first.clone() },
        NewEvent { data: data(2), ..first.clone() },
    ] {
        subject.refused(Append::new(vec![other]), |kind| *kind == ErrorKind::IdReused);
    }
    let cause = Some(EventId::derived("key", "test", "cause"));
    let same = subject.store.append(Append::new(vec![NewEvent { cause, ..first }])).unwrap();
    assert!(same.repeated);
}

/// A batch of which some events are known and some are not is refused whole.
pub fn partly_known_batches(subject: &Subject) {
    let known = subject.event("a", 1);
    subject.store.append(Append::new(vec![known.clone()])).unwrap();
    for batch in [vec![known.clone(), subject.event("a", 2)], vec![subject.event("b", 3), known]] {
        subject.refused(Append::new(batch), |kind| *kind == ErrorKind::PartialDuplicate);
    }
}

/// One id twice in a batch is no batch.
pub fn an_id_twice_in_a_batch(subject: &Subject) {
    let event = subject.event("a", 1);
    let twice = Append::new(vec![event.clone(), event]);
    subject.refused(twice, |kind| *kind == ErrorKind::InvalidInput);
}

/// A new id that carries a time must carry one near the clock; a repeat may be of any age, and derived ids have none.
pub fn age_of_ids(subject: &Subject) {
    let now = subject.clock.now();
    let minutes = |n: u64| Duration::from_secs(n * 60);
    for far in [now.minus(minutes(11)), now.plus(minutes(11))] {
        let attempt = Append::new(vec![event(EventId::new(far), "a", 1)]);
        subject.refused(attempt, |kind| *kind == ErrorKind::InvalidInput);
    }
    let mut known = Vec::new();
    for near in [now.minus(minutes(9)), now, now.plus(minutes(9))] {
        let event = event(EventId::new(near), "a", 2);
        subject.store.append(Append::new(vec![event.clone()])).unwrap();
        known.push(event);
    }
    let derived = event(EventId::derived("key", "test", "1"), "a", 3);
    subject.store.append(Append::new(vec![derived.clone()])).unwrap();
    known.push(derived);

    subject.clock.advance(minutes(60 * 24));
    for (event, n) in known.into_iter().zip(1..) {
        let again = subject.store.append(Append::new(vec![event])).unwrap();
        assert_eq!((again.repeated, again.positions[0].version), (true, version(n)));
    }
}
