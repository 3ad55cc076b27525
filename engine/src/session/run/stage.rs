//! Where decisions about work are made: under the append lock, on all that is at hand and on the sessions that it
//! touches, as they are in that moment.

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{EventId, Seq, StreamName};
use crate::projection::{Folded, Projection};
use crate::session::event::{Event, Links};
use crate::session::index::Sessions;
use crate::session::work::Work;
use crate::store::{
    Append, Appended, Cursor, Decider, Durability, EventStore, Expected, Item, NewEvent,
};

/// Views of a store, each as of some moment: decisions go on from there.
#[derive(Clone, Copy, Debug)]
pub struct Views<'a> {
    /// The sessions.
    pub sessions: &'a Folded<Sessions>,
    /// The work at hand.
    pub work: &'a Folded<Work>,
}

/// What a decision looks at.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// The sessions that were named beforehand; of others only what happened a moment ago.
    pub sessions: &'a Sessions,
    /// The work at hand.
    pub work: &'a Work,
    /// The moment.
    pub now: Timestamp,
}

/// The events of a decision. Each gets the position that it will have.
#[derive(Debug)]
pub struct Batch<'a> {
    first: Seq,
    flow: Option<EventId>,
    events: Vec<NewEvent>,
    streams: Vec<(StreamName, Expected)>,
    ids: &'a mut Vec<EventId>,
    now: Timestamp,
}

/// An event of a batch, by which others refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// Its id.
    pub id: EventId,
    /// The position that it gets.
    pub seq: u64,
}

impl Batch<'_> {
    /// Everything that follows belongs to this flow.
    pub fn flows(&mut self, flow: Option<EventId>) {
        self.flow = flow.or(self.flow);
    }

    /// An id for the next thing that is made: the same one if the decision is made again.
    pub fn id(&mut self, index: usize) -> EventId {
        while self.ids.len() <= index {
            self.ids.push(EventId::new(self.now));
        }
        self.ids.get(index).copied().unwrap_or_else(|| EventId::new(self.now))
    }

    /// Adds an event. The first one begins a flow if none was named.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no stream can have.
    pub fn add(&mut self, stream: &str, event: &Event, cause: Option<EventId>) -> Result<Added> {
        // The first ids of the pool are for what is named inside the events.
        let id = self.id(NAMED + self.events.len());
        self.add_as(id, stream, event, cause)
    }

    /// Adds an event under an id that was made before. What is decided on again because nobody knew whether it was taken is
    /// there once if all of its batch is the same.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no stream can have.
    pub fn add_as(
        &mut self,
        id: EventId,
        stream: &str,
        event: &Event,
        cause: Option<EventId>,
    ) -> Result<Added> {
        let flow = *self.flow.get_or_insert(id);
        let links = Links { cause, flow: Some(flow) };
        let new = event.to_new(StreamName::new(stream)?, id, links)?;
        let seq = self.first.0 + self.events.len() as u64;
        self.events.push(new);
        Ok(Added { id, seq })
    }

    /// The batch is appended only if this stream has no event.
    ///
    /// # Errors
    /// `InvalidInput` for a name that no stream can have.
    pub fn expect_none(&mut self, stream: &str) -> Result<()> {
        self.streams.push((StreamName::new(stream)?, Expected::NoStream));
        Ok(())
    }
}

/// So many ids of a decision are for parts, runs and attempts that it makes.
const NAMED: usize = 8;

/// Decides and appends: `rule` puts events into the batch and returns what it found. It is pure, and is asked again when
/// an append has to be tried again. `keys` are the sessions that it looks at. On return what it put in is on stable
/// storage.
///
/// # Errors
/// What `rule` says, and then nothing is appended; what the store says.
pub fn decide<T: Send>(
    store: &dyn EventStore,
    views: Views<'_>,
    keys: &[&StreamName],
    rule: impl FnMut(&Stage<'_>, &mut Batch<'_>) -> Result<T> + Send,
) -> Result<(T, Appended)> {
    let mut deciding = Deciding {
        sessions: Part { state: views.sessions.state().only(keys), seen: views.sessions.cursor() },
        work: Part { state: views.work.state().clone(), seen: views.work.cursor() },
        first: Seq::ZERO,
        ids: Vec::new(),
        found: None,
        rule,
    };
    let appended = store.append_deciding(&mut deciding, Durability::Synced)?;
    let found = deciding.found.take().ok_or_else(|| {
        crate::error::Error::new(
            crate::error::ErrorKind::Unavailable,
            "the store appended without asking for the decision",
        )
    })?;
    Ok((found, appended))
}

/// A fold that is part of a decision, and how far it has come.
struct Part<P> {
    state: P,
    seen: Option<Cursor>,
}

impl<P: Projection> Part<P> {
    fn take(&mut self, item: &Item, cursor: &Cursor) {
        if self.seen.is_some_and(|seen| cursor.seq() <= seen.seq()) {
            return;
        }
        match item {
            Item::Record(record) => self.state.apply(&record.fields()),
            Item::Gap(damage) => self.state.gap(damage),
        }
        self.seen = Some(*cursor);
    }
}

struct Deciding<T, F> {
    sessions: Part<Sessions>,
    work: Part<Work>,
    first: Seq,
    ids: Vec<EventId>,
    found: Option<T>,
    rule: F,
}

impl<T, F: FnMut(&Stage<'_>, &mut Batch<'_>) -> Result<T>> Decider for Deciding<T, F> {
    fn seen(&self) -> Option<Cursor> {
        let (sessions, work) = (self.sessions.seen?, self.work.seen?);
        Some(if sessions.seq() < work.seq() { sessions } else { work })
    }

    fn apply(&mut self, item: &Item, cursor: &Cursor) {
        self.sessions.take(item, cursor);
        self.work.take(item, cursor);
    }

    fn restart(&mut self) {
        self.sessions = Part { state: Sessions::default(), seen: None };
        self.work = Part { state: Work::default(), seen: None };
    }

    fn begins(&mut self, first: Seq) {
        self.first = first;
    }

    fn decide(&mut self, now: Timestamp) -> Result<Append> {
        let stage = Stage { sessions: &self.sessions.state, work: &self.work.state, now };
        let mut batch = Batch {
            first: self.first,
            flow: None,
            events: Vec::new(),
            streams: Vec::new(),
            ids: &mut self.ids,
            now,
        };
        self.found = Some((self.rule)(&stage, &mut batch)?);
        let mut expected: BTreeMap<StreamName, Expected> = BTreeMap::new();
        expected.extend(batch.streams);
        let append = Append::new(batch.events);
        Ok(expected.into_iter().fold(append, |append, (name, at)| append.expecting(name, at)))
    }
}
