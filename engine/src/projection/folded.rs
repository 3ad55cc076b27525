//! A projection and how far it has come.

use std::sync::Arc;

use crate::error::{ErrorKind, Result};
use crate::format::{Fields, control};
use crate::id::{Seq, StreamName, Version};
use crate::store::{Cursor, EventStore, Item, Read, Snapshot, View};

use super::{Digestible, Projection, Saved, Until, codec, replay};

/// A projection and how far it has come.
#[derive(Clone, Debug, Default)]
pub struct Folded<P> {
    pub(super) state: P,
    pub(super) cursor: Option<Cursor>,
    pub(super) events: u64,
}

/// How a fold went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Went {
    /// On, to the end.
    On,
    /// Up to an event that says that some of what was folded before is not to be read any more: the fold has to begin
    /// again.
    Void,
}

impl<P: Projection> Folded<P> {
    /// The fold of everything that a view of the store shows.
    ///
    /// # Errors
    /// Whatever reading meets; damage is no error but a [`Projection::gap`].
    pub fn of(store: &dyn EventStore, view: View) -> Result<Self> {
        let mut folded = Self::default();
        folded.catch_up(store, view)?;
        Ok(folded)
    }

    /// Takes what came since. A fold of lines that were cut from the log since, or given up by an operator, begins
    /// again from the start.
    ///
    /// # Errors
    /// Whatever reading meets; what was read before the error is folded, and the next call goes on behind it.
    pub fn catch_up(&mut self, store: &dyn EventStore, view: View) -> Result<()> {
        self.or_again(|folded| folded.read_on(store, view))
    }

    /// Goes on, and begins again where what was folded is not the beginning of the log any more.
    pub(super) fn or_again(
        &mut self,
        mut go_on: impl FnMut(&mut Self) -> Result<Went>,
    ) -> Result<()> {
        let went = match go_on(self) {
            Err(error) if self.cursor.is_some() && *error.kind() == ErrorKind::HistoryChanged => {
                Went::Void
            }
            other => other?,
        };
        if went == Went::Void {
            *self = Self::default();
            go_on(self)?;
        }
        Ok(())
    }

    fn read_on(&mut self, store: &dyn EventStore, view: View) -> Result<Went> {
        let (id, base) = (store.id(), self.as_of());
        for item in store.read(Read::after(self.cursor).view(view))? {
            match item? {
                Item::Record(record) => {
                    let fields = record.fields();
                    if voids(&fields, base) {
                        return Ok(Went::Void);
                    }
                    self.state.apply(&fields);
                    self.cursor = Some(record.cursor(id));
                    self.events += 1;
                }
                Item::Gap(damage) => self.state.gap(&damage),
            }
        }
        Ok(Went::On)
    }
}

impl<P: Projection> Folded<P> {
    /// A state that has seen nothing, with what is asked for folded into it, one event after the other, up to where it
    /// ends.
    ///
    /// # Errors
    /// Whatever reading meets; damage is no error but a [`Projection::gap`].
    pub fn until(
        state: P,
        store: &dyn EventStore,
        read: Read,
        until: Option<Until>,
    ) -> Result<Self> {
        let id = store.id();
        let mut folded = Self { state, cursor: None, events: 0 };
        for item in store.read(read)? {
            let item = item?;
            if until.is_some_and(|until| until.is_before(&item)) {
                match item {
                    Item::Record(_) => break,
                    Item::Gap(_) => continue,
                }
            }
            match item {
                Item::Record(record) => {
                    folded.state.apply(&record.fields());
                    folded.reached(record.cursor(id), 1);
                }
                Item::Gap(damage) => folded.state.gap(&damage),
            }
        }
        Ok(folded)
    }
}

impl<P: Digestible + Clone> Folded<P> {
    /// The same fold, from nothing, with several threads where the store can be read by several.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub fn replayed(store: &dyn EventStore, view: View) -> Result<Self> {
        let mut folded = Arc::default();
        replay::catch_up(&mut folded, store, view)?;
        Ok(Arc::unwrap_or_clone(folded))
    }
}

impl<P: Projection> Folded<P> {
    /// The fold of one stream alone, as of the last durable event; `None` when it is empty, has more than `events_max`
    /// events, or lacks some, so that only a fold of everything tells how it is.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(crate) fn of_stream(
        store: &dyn EventStore,
        stream: &StreamName,
        events_max: u64,
    ) -> Result<Option<Self>> {
        let Some(end) = store.end(View::Durable)? else { return Ok(None) };
        if !(1..=events_max).contains(&store.head(stream)?.0) {
            return Ok(None);
        }
        let mut folded = Self { cursor: Some(end), ..Self::default() };
        for item in store.read_stream(stream, Version::ZERO)? {
            match item? {
                Item::Record(record) if record.seq > end.seq() => break,
                Item::Record(record) => {
                    folded.state.apply(&record.fields());
                    folded.events += 1;
                }
                Item::Gap(_) => return Ok(None),
            }
        }
        Ok(Some(folded))
    }
}

/// Whether an event says that lines up to `base`, which were folded when they could be read, are given up as damaged.
/// Who folds the log now does not see them.
pub(super) fn voids(event: &Fields<'_>, base: Seq) -> bool {
    if base == Seq::ZERO || event.kind != control::GAP || event.stream != control::STREAM {
        return false;
    }
    let gap = serde_json::from_str::<control::Gap>(event.data);
    gap.is_ok_and(|gap| gap.from_seq <= base.0)
}

impl<P: Saved> Folded<P> {
    /// The state of a snapshot, or of the newest older one that can be read; a fold that has seen nothing when there is
    /// none.
    pub(super) fn restored(store: &dyn EventStore, snapshot: Snapshot) -> Self {
        let mut next = Some(snapshot);
        while let Some(snapshot) = next {
            if let Some((events, state)) = codec::decode(&snapshot.state) {
                return Self { state, cursor: Some(snapshot.cursor), events };
            }
            next = store.snapshot(P::NAME, P::schema(), Some(snapshot.cursor.seq()));
        }
        Self::default()
    }

    /// The state as a snapshot holds it, with the number of its events: the same bytes for the same state, and for no
    /// other. `None` when it cannot be saved.
    #[must_use]
    pub fn saved(&self) -> Option<Vec<u8>> {
        codec::encode(&(self.events, &self.state))
    }

    /// The snapshot of this state; `None` before the first event.
    pub(super) fn snapshot(&self) -> Option<Snapshot> {
        Some(Snapshot { cursor: self.cursor?, schema: P::schema(), state: self.saved()? })
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

    /// Notes that so many events were folded, up to the one at a position with a checksum.
    pub(super) fn reached(&mut self, cursor: Cursor, events: u64) {
        self.cursor = Some(cursor);
        self.events += events;
    }
}
