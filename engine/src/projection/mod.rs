//! Folds of the log: a projection is state that follows from the events alone, so that it can be thrown away and built
//! again. Nothing here reads a clock, and nothing here knows what the events mean.
//!
//! [`Driver`] is the one place that keeps a fold going: it begins with a snapshot if one fits, folds the rest, several
//! stretches of the log at a time, and gives out the state as something that no longer changes.

mod codec;
mod deciding;
mod driver;
mod folded;
mod losses;
mod pair;
mod replay;
mod until;

pub use deciding::Deciding;
pub use driver::Driver;
pub use folded::Folded;
pub use losses::Losses;
pub use until::Until;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::format::Fields;
use crate::store::Damage;

/// State that is folded from events. The same events in the same order give the same state, on any machine and at any
/// time: both functions are pure, take any bytes that the log can hold, and never fail.
pub trait Projection: Default {
    /// Takes the next event.
    fn apply(&mut self, event: &Fields<'_>);

    /// Learns that events are missing here. The same range may be told more than once, and that changes nothing.
    fn gap(&mut self, damage: &Damage);
}

/// A projection whose work can be shared: threads digest stretches of the log, each by itself, and one thread takes the
/// digests in order.
pub trait Digestible: Projection {
    /// What a stretch of the log does to the state, whatever the state is.
    type Digest: Projection + Send;

    /// Takes a digest. This is the same as taking the events and gaps that it was made of one by one.
    fn take(&mut self, digest: Self::Digest);
}

/// A projection that can be kept in a snapshot. The same state serialises to the same bytes, and what is read back is
/// equal in everything that it answers and in all that follows from later events. The form need not describe itself:
/// fields are written and read in their order, and none may be left out.
pub trait Saved: Projection + Serialize + DeserializeOwned {
    /// What its snapshots are called: 1 to 32 bytes of `[a-z0-9]`.
    const NAME: &'static str;

    /// Says which form and which fold a snapshot is of. One with another number is not used.
    fn schema() -> u64;
}

/// A number for the sources that decide how a projection folds and how it is saved: FNV-1a, 64 bits (Fowler, Noll and
/// Vo).
#[must_use]
pub fn schema_of(sources: &[&str]) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let all = std::iter::once(&include_str!("codec.rs")).chain(sources);
    all.flat_map(|text| text.bytes()).fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::{Clock, ManualClock, Timestamp};
    use crate::format::Payload;
    use crate::id::{EventId, EventType, Seq, StreamName};
    use crate::store::{Append, EventStore, MemoryStore, NewEvent, View};

    /// The positions seen.
    #[derive(Default)]
    struct Seen(Vec<u64>);

    impl Projection for Seen {
        fn apply(&mut self, event: &Fields<'_>) {
            self.0.push(event.seq.0);
        }

        fn gap(&mut self, damage: &Damage) {
            self.0.push(1_000 + damage.offset);
        }
    }

    fn store(events: usize) -> MemoryStore {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_000)));
        let store = MemoryStore::new(clock.clone());
        push(&store, &clock, events);
        store
    }

    fn push(store: &MemoryStore, clock: &ManualClock, events: usize) {
        for _ in 0..events {
            let event = NewEvent {
                id: EventId::new(clock.now()),
                stream: StreamName::new("x:1").unwrap(),
                kind: EventType::new("x.acme.note").unwrap(),
                cause: None,
                flow: None,
                data: Payload::from_json("{}").unwrap(),
            };
            store.append(Append::new(vec![event])).unwrap();
        }
    }

    /// Goal: every event is folded once, whenever the fold looks. Method: fold, append more, catch up twice.
    #[test]
    fn catches_up_without_repeating() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000));
        let store = store(3);
        let mut folded = Folded::<Seen>::of(&store, View::Durable).unwrap();
        assert_eq!((folded.as_of(), folded.events()), (Seq(3), 3));
        push(&store, &clock, 2);
        folded.catch_up(&store, View::Durable).unwrap();
        folded.catch_up(&store, View::Durable).unwrap();
        assert_eq!(folded.state().0, [1, 2, 3, 4, 5]);
        assert_eq!(folded.cursor(), store.end(View::Durable).unwrap());
    }

    /// Goal: a fold of another history is never mixed with this one. Method: catch up with a store that does not know
    /// the cursor.
    #[test]
    fn begins_again_when_the_history_is_another() {
        let mut folded = Folded::<Seen>::of(&store(3), View::Durable).unwrap();
        folded.catch_up(&store(2), View::Durable).unwrap();
        assert_eq!((folded.state().0.as_slice(), folded.events()), (&[1, 2][..], 2));
    }
}
