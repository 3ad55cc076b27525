//! Folds of the log: a projection is state that follows from the events alone, so that it can be thrown away and built
//! again. Nothing here reads a clock, and nothing here knows what the events mean.

use crate::error::{Error, ErrorKind, Result};
use crate::id::Seq;
use crate::store::{Cursor, Damage, EventStore, Item, Read, Record, View};

/// State that is folded from events. The same events in the same order give the same state, on any machine and at any
/// time: both functions are pure, take any bytes that the log can hold, and never fail.
pub trait Projection {
    /// Takes the next event.
    fn apply(&mut self, record: &Record);

    /// Learns that events are missing here. The same range may be told more than once.
    fn gap(&mut self, damage: &Damage);
}

/// A projection and how far it has come.
#[derive(Clone, Debug, Default)]
pub struct Folded<P> {
    state: P,
    cursor: Option<Cursor>,
    events: u64,
}

impl<P: Projection + Default> Folded<P> {
    /// The fold of everything that a view of the store shows.
    ///
    /// # Errors
    /// Whatever reading meets; damage is no error but a [`Projection::gap`].
    pub fn of(store: &dyn EventStore, view: View) -> Result<Self> {
        let mut folded = Self::default();
        folded.catch_up(store, view)?;
        Ok(folded)
    }

    /// Takes what came since. A fold of lines that were cut from the log since begins again from the start.
    ///
    /// # Errors
    /// Whatever reading meets; what was read before the error is folded, and the next call goes on behind it.
    pub fn catch_up(&mut self, store: &dyn EventStore, view: View) -> Result<()> {
        match self.read_on(store, view) {
            Err(error) if self.cursor.is_some() && *error.kind() == ErrorKind::HistoryChanged => {
                *self = Self::default();
                self.read_on(store, view)
            }
            other => other,
        }
    }

    fn read_on(&mut self, store: &dyn EventStore, view: View) -> Result<()> {
        let id = store.id();
        for item in store.read(Read::after(self.cursor).view(view))? {
            match item? {
                Item::Record(record) => {
                    self.state.apply(&record);
                    self.cursor = Some(record.cursor(id));
                    self.events += 1;
                }
                Item::Gap(damage) => self.state.gap(&damage),
            }
        }
        Ok(())
    }
}

impl<P> Folded<P> {
    /// The state.
    #[must_use]
    pub const fn state(&self) -> &P {
        &self.state
    }

    /// The position up to which the state has seen everything.
    #[must_use]
    pub fn as_of(&self) -> Seq {
        self.cursor.map_or(Seq::ZERO, |cursor| cursor.seq())
    }

    /// The cursor of that position; `None` before the first event.
    #[must_use]
    pub const fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// How many events were folded.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }
}

/// Folds items up to and including a position, or all of them.
///
/// # Errors
/// The first error among the items; `HistoryChanged` never.
pub fn fold_until<P: Projection>(
    state: &mut P,
    items: impl Iterator<Item = Result<Item, Error>>,
    last: Option<Seq>,
) -> Result<()> {
    for item in items {
        match item? {
            Item::Record(record) if last.is_some_and(|last| record.seq > last) => return Ok(()),
            Item::Record(record) => state.apply(&record),
            Item::Gap(damage) => state.gap(&damage),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::{Clock, ManualClock, Timestamp};
    use crate::format::Payload;
    use crate::id::{EventId, EventType, StreamName};
    use crate::store::{Append, MemoryStore, NewEvent};

    /// The positions seen.
    #[derive(Default)]
    struct Seen(Vec<u64>);

    impl Projection for Seen {
        fn apply(&mut self, record: &Record) {
            self.0.push(record.seq.0);
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

    /// Goal: the state as of a position holds that event and nothing later. Method: a stop in the middle, and gaps
    /// told in their place.
    #[test]
    fn stops_at_a_position() {
        let store = store(4);
        let gap = Damage {
            class: crate::store::DamageClass::Corrupt,
            file: String::new(),
            offset: 7,
            bytes: 1,
            seqs: None,
            touched: Vec::new(),
            accepted: false,
            detail: String::new(),
        };
        let mut items: Vec<_> = store.read(Read::default()).unwrap().collect();
        items.insert(1, Ok(Item::Gap(Box::new(gap))));
        let mut state = Seen::default();
        fold_until(&mut state, items.into_iter(), Some(Seq(3))).unwrap();
        assert_eq!(state.0, [1, 1_007, 2, 3]);
    }
}
