//! What a policy file says anew is told ahead of whatever is decided under it, in the same batch.

use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::id::{EventId, Seq, StreamName, Version};
use crate::projection::Projection;
use crate::session::event::{Event, Links, PolicyChanged};
use crate::store::{
    Append, Appended, Cursor, Decider, Durability, EventStore, Item, NewEvent, View,
};

use super::{POLICY_SETTINGS, POLICY_STREAM, PolicyFile, PolicyState};

/// The policy in force, as far as somebody has looked: who looks again reads what came since.
#[derive(Debug, Default)]
pub struct KnownPolicy(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    state: Arc<PolicyState>,
    version: Version,
}

impl KnownPolicy {
    /// The policy as of now. Only what cannot be lost any more is kept for the next call.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub fn now(&self, store: &dyn EventStore) -> Result<Arc<PolicyState>> {
        let stream = StreamName::new(POLICY_STREAM)?;
        let head = store.head(&stream)?;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if head < held.version {
            *held = Held::default();
        }
        if head == held.version {
            return Ok(Arc::clone(&held.state));
        }
        let durable = store.end(View::Durable)?.map_or(Seq::ZERO, |end| end.seq());
        let mut state = PolicyState::clone(&held.state);
        for item in store.read_stream(&stream, held.version)? {
            let Item::Record(record) = item? else { continue };
            state.apply(&record.fields());
            if record.seq <= durable {
                *held = Held { state: Arc::new(state.clone()), version: record.version };
            }
        }
        Ok(Arc::new(state))
    }
}

/// Appends what is decided, and ahead of it what the file says anew, under the same lock. The positions are those of what
/// was decided alone. A decision to append nothing tells nothing; neither does a batch that was appended before, or that
/// has no room for more.
///
/// # Errors
/// What [`EventStore::append_deciding`] says.
pub fn append_under(
    store: &dyn EventStore,
    (known, file): (&KnownPolicy, &PolicyFile),
    decider: &mut (dyn Decider + Send),
    durability: Durability,
) -> Result<Appended> {
    let state = known.now(store)?;
    let mut ahead = Ahead { decider, file, state, ids: Vec::new(), told: 0, steps_back: false };
    let mut appended = store.append_deciding(&mut ahead, durability);
    if ahead.told > 0 && appended.as_ref().is_err_and(|e| is_for_want_of_room(e.kind())) {
        ahead.steps_back = true;
        appended = store.append_deciding(&mut ahead, durability);
    }
    let mut appended = appended?;
    appended.positions.drain(..ahead.told.min(appended.positions.len()));
    Ok(appended)
}

/// Whether an append may have been refused for what was put ahead of it.
const fn is_for_want_of_room(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::PartialDuplicate | ErrorKind::TooLarge)
}

/// A decision with what the file says anew ahead of it.
struct Ahead<'a> {
    decider: &'a mut (dyn Decider + Send),
    file: &'a PolicyFile,
    /// The policy as of what the decision has seen, or later.
    state: Arc<PolicyState>,
    ids: Vec<EventId>,
    /// How many events were put ahead of the last decision.
    told: usize,
    /// Whether nothing is put ahead.
    steps_back: bool,
}

impl Ahead<'_> {
    fn changes(&self) -> Vec<PolicyChanged> {
        if self.steps_back { Vec::new() } else { self.state.changes(self.file) }
    }
}

impl Decider for Ahead<'_> {
    fn seen(&self) -> Option<Cursor> {
        self.decider.seen()
    }

    /// The policy may have seen it before: taking the last events of a stream again, in order, changes nothing.
    fn apply(&mut self, item: &Item, cursor: &Cursor) {
        if let Item::Record(record) = item
            && record.stream.as_str() == POLICY_STREAM
        {
            Arc::make_mut(&mut self.state).apply(&record.fields());
        }
        self.decider.apply(item, cursor);
    }

    fn restart(&mut self) {
        self.state = Arc::default();
        self.decider.restart();
    }

    fn begins(&mut self, first: Seq) {
        let ahead = u64::try_from(self.changes().len()).unwrap_or(0);
        self.decider.begins(Seq(first.0.saturating_add(ahead)));
    }

    fn decide(&mut self, now: Timestamp) -> Result<Append> {
        self.told = 0;
        let mut append = self.decider.decide(now)?;
        let Some(first) = append.events.first() else { return Ok(append) };
        let changes = self.changes();
        if changes.is_empty() {
            return Ok(append);
        }
        if self.ids.is_empty() {
            self.ids = POLICY_SETTINGS.iter().map(|_| EventId::new(now)).collect();
        }
        let links = Links { cause: None, flow: first.flow };
        let stream = StreamName::new(POLICY_STREAM)?;
        let told = changes
            .into_iter()
            .zip(&self.ids)
            .map(|(change, id)| Event::PolicyChanged(change).to_new(stream.clone(), *id, links));
        let told: Vec<NewEvent> = told.collect::<Result<_>>()?;
        self.told = told.len();
        append.events.splice(..0, told);
        Ok(append)
    }
}
