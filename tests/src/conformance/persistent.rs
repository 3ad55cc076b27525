//! What holds for a store that outlives its handle and may have several.

use std::thread;

use annals_engine::ErrorKind;
use annals_engine::store::{Append, Durability, Expected, Read, View};

use super::deciding::{Counter, next_count};
use super::{Subject, events, kind_of, next_event, stream, until_caught_up, version};

/// After the only handle was closed and the store opened again, every event, version, id and cursor is as it was, and
/// appending goes on from there.
pub fn everything_is_there_again(subject: &mut Subject) {
    let batch = vec![subject.event("a", 1), subject.event("b", 2)];
    let first = subject.store.append(Append::new(batch.clone())).unwrap();
    subject.put("a", 3);
    let buffered = Append::new(vec![subject.event("a", 4)]).durability(Durability::Buffered);
    subject.store.append(buffered).unwrap();
    subject.put("a", 5);
    let (all, id) = (subject.events(), subject.store.id());
    let end = subject.store.end(View::Durable).unwrap();

    subject.reopen();
    assert_eq!((subject.events(), subject.store.id()), (all.clone(), id));
    assert_eq!(subject.store.head(&stream("a")).unwrap(), version(4));
    assert_eq!(events(subject.store.read(Read::after(end)).unwrap()).len(), 0);
    let after = Some(all[1].cursor(id));
    assert_eq!(events(subject.store.read(Read::after(after)).unwrap()), all[2..]);
    let again = subject.store.append(Append::new(batch)).unwrap();
    assert_eq!((again.positions, again.repeated), (first.positions, true));
    let attempt =
        Append::new(vec![subject.event("a", 6)]).expecting(stream("a"), Expected::NoStream);
    subject.refused(attempt, |kind| matches!(kind, ErrorKind::Conflict { .. }));
    assert_eq!(subject.put("a", 7).positions[0].version, version(5));
}

/// What one handle appends, another that was open before reads, counts and decides on.
pub fn handles_see_each_other(subject: &Subject) {
    let other = subject.another();
    assert_eq!(other.id(), subject.store.id());
    for n in 0..10 {
        let on = if n % 2 == 0 { &subject.store } else { &other };
        let append = Append::new(vec![subject.event("a", n)])
            .expecting(stream("a"), Expected::Version(version(n)));
        assert_eq!(on.append(append).unwrap().positions[0].version, version(n + 1));
        for handle in [&subject.store, &other] {
            assert_eq!(handle.head(&stream("a")).unwrap(), version(n + 1));
            let seen = events(handle.read(Read::default()).unwrap());
            assert_eq!(seen.len() as u64, n + 1);
        }
    }
    let end = other.end(View::Durable).unwrap();
    assert_eq!(end, subject.store.end(View::Durable).unwrap());
    assert_eq!(events(subject.store.read_stream(&stream("a"), version(8)).unwrap()).len(), 2);
}

/// A follower of one handle gives what another handle appends, also while it waits.
pub fn a_follower_sees_another_handle(subject: &Subject) {
    let other = subject.another();
    let mut follower = other.follow(Read::default()).unwrap();
    until_caught_up(&mut *follower);
    thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|n| drop(subject.put("a", n))));
        for n in 0..20 {
            assert_eq!(next_event(&mut *follower).data, super::data(n));
        }
    });
}

/// Threads with a handle each raise one counter by decisions: no raise is lost.
pub fn handles_count_without_loss(subject: &Subject) {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = subject.another();
                let mut counter = Counter::new("counter", next_count);
                for _ in 0..20 {
                    store.append_deciding(&mut counter, Durability::Synced).unwrap();
                }
            });
        }
    });
    let counted: Vec<_> = subject.events().into_iter().map(|record| record.data).collect();
    assert_eq!(counted, (1..=80).map(super::data).collect::<Vec<_>>());
}

/// An id that one handle appended is known to the other.
pub fn repeats_through_another_handle(subject: &Subject) {
    let other = subject.another();
    let event = subject.event("a", 1);
    let first = subject.store.append(Append::new(vec![event.clone()])).unwrap();
    let again = other.append(Append::new(vec![event.clone()])).unwrap();
    assert_eq!((again.positions, again.repeated), (first.positions, true));
    let part = Append::new(vec![event, subject.event("a", 2)]);
    assert_eq!(kind_of(other.append(part)), ErrorKind::PartialDuplicate);
}
