//! What this process keeps open of a log to read single streams of it: the indexes and the bytes of the segments that it
//! has met, and the last stretch of the active segment, which has no index yet. A reading through it looks at nothing
//! but the lines that it gives. Wherever something is not as it should be there is no such reading, and the log is read
//! in order instead.

mod held;
mod recent;
mod stream;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::format::slot::{Durable, Written};
use crate::format::{APPEND_LOCK, SYNC_LOCK};
use crate::id::{Seq, StoreId, Version};
use crate::storage::Storage;

use super::index::{Heads, whole};
use super::slots::Peeked;
use super::{LogView, locked, segments};

use held::Held;
use recent::Active;

pub(super) use held::Source;
pub(super) use stream::StreamReader;

/// So many sealed segments are kept open at most.
const SEGMENTS_MAX: usize = 1_024;

/// What is kept open, shared by all readers of a log in one process.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    state: Mutex<Option<State>>,
    locks: Mutex<[Peeked; 2]>,
}

#[derive(Debug)]
struct State {
    /// The segments that have a successor, in order.
    sealed: Vec<Slot>,
    /// What is known of the first of them together.
    heads: Option<Heads>,
    active: Active,
}

#[derive(Debug)]
struct Slot {
    first: Seq,
    next: Seq,
    held: Option<Arc<Held>>,
}

/// Where the events of a stream behind some version are.
#[derive(Debug)]
struct Plan {
    /// Stretches that have an index, in order, each with the places of the stream's rows there.
    stretches: Vec<(Arc<Held>, Range<u64>)>,
    /// The lines behind them, one after the other.
    recent: Vec<u8>,
    /// The last version of the stream.
    head: Version,
    /// Whether there may be more before what was found.
    open: bool,
    /// Whether every index could be read.
    sound: bool,
}

/// The sealed segments that the table of heads makes it needless to ask for a stream.
#[derive(Debug, Default)]
struct Passed {
    /// Their numbers.
    slots: Range<usize>,
    /// The last version of the stream in and before them, when none of its events there are wanted.
    head: Option<Version>,
    /// The number of the last segment of the table in which lines are missing.
    broken: Option<usize>,
}

/// What a stream has in a stretch.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// Its last version there.
    last: Version,
    /// How many events it has there.
    count: u64,
}

impl Reach {
    /// The version before its first event there, if none is missing.
    fn before(self) -> Version {
        Version(self.last.0.saturating_sub(self.count))
    }
}

impl Catalog {
    /// Where the events of a stream behind `after` are; `None` when only a reading in order can tell.
    fn plan(&self, view: &LogView, stream: &str, after: Version) -> Result<Option<Plan>> {
        let mut state = locked(&self.state);
        if !refresh(&mut state, view)? {
            *state = None;
            return Ok(None);
        }
        let Some(state) = state.as_mut() else { return Ok(None) };
        let mut plan = Plan::default();
        if let Some(reach) = state.active.recent.reach(stream) {
            plan.head = reach.last;
            plan.open = reach.before() > after;
            plan.recent = state.active.recent.lines(stream, after);
        }
        for held in state.active.parts.iter().rev() {
            plan.take(held, stream, after);
        }
        let passed = if plan.open { state.passed(stream, after) } else { Passed::default() };
        for (at, slot) in state.sealed.iter_mut().enumerate().rev() {
            if !plan.open {
                break;
            }
            if passed.slots.contains(&at) {
                plan.pass(at, &passed);
                continue;
            }
            let Some(held) = slot.held(&*view.storage, view.id) else { return Ok(None) };
            plan.take(&held, stream, after);
        }
        plan.stretches.reverse();
        // A stream that does not begin with its first version has lost events.
        let begins = state.sealed.first().map_or(state.active.segment, |slot| slot.first);
        let none = plan.head == Version::ZERO && begins == Seq(1);
        Ok((plan.sound && (none || !plan.open)).then_some(plan))
    }

    /// The last version of a stream; `None` when only a reading in order can tell.
    pub(super) fn head(&self, view: &LogView, stream: &str) -> Result<Option<Version>> {
        let plan = self.plan(view, stream, Version(u64::MAX))?;
        Ok(plan.map(|plan| plan.head))
    }
}

/// Brings what is known up to the end of the log; `false` when it cannot be known without a reading in order.
fn refresh(state: &mut Option<State>, view: &LogView) -> Result<bool> {
    let storage = &*view.storage;
    let [sync_lock, append_lock] = &mut *locked(&view.catalog.locks);
    let floor: Durable = sync_lock.read(storage, SYNC_LOCK)?.unwrap_or_default();
    let durable = Seq(floor.seq).max(view.marks.durable());
    // A hint, and a wrong one costs a look at the folder.
    let written: Option<Written> = append_lock.read(storage, APPEND_LOCK).ok().flatten();
    let current = |known: &State| written.is_some_and(|w| w.segment == known.active.segment.0);
    let grown = match state.as_mut().filter(|known| current(known)) {
        Some(known) => known.active.grow(view, &floor)?,
        None => false,
    };
    if !grown {
        let known = state.take().map_or_else(Vec::new, |known| known.sealed);
        *state = State::open(view, known, &floor)?;
    }
    Ok(state.as_ref().is_some_and(|known| {
        !known.active.recent.is_ragged() && known.active.recent.end().seq >= durable
    }))
}

impl State {
    /// Looks at the folder, and keeps what is known of the segments that are still there.
    fn open(view: &LogView, mut known: Vec<Slot>, floor: &Durable) -> Result<Option<Self>> {
        let segments = segments::list(&*view.storage)?;
        let Some(last) = segments.last().copied() else { return Ok(None) };
        if known.iter().filter(|slot| slot.held.is_some()).count() > SEGMENTS_MAX {
            known.clear();
        }
        let pairs = segments.iter().zip(segments.iter().skip(1));
        let sealed: Vec<Slot> = pairs
            .map(|(first, next)| {
                let at = known.binary_search_by_key(first, |slot| slot.first).ok();
                let slot = at.and_then(|at| known.get_mut(at)).filter(|slot| slot.next == *next);
                Slot { first: *first, next: *next, held: slot.and_then(|slot| slot.held.take()) }
            })
            .collect();
        let before = sealed.last().map(|slot| slot.first);
        let active =
            Active::open(view, segments::link_behind(&*view.storage, before, last), floor)?;
        let heads = Heads::open(&*view.storage, view.id, &segments);
        Ok(active.map(|active| Self { sealed, heads, active }))
    }

    /// Which sealed segments need not be asked for the events of a stream behind `after`.
    fn passed(&mut self, stream: &str, after: Version) -> Passed {
        let Some(heads) = &self.heads else { return Passed::default() };
        let head = heads.head(stream);
        if heads.is_damaged() {
            self.heads = None;
            return Passed::default();
        }
        let known = heads.segments();
        let broken = known.iter().rposition(|known| known.stretch.broken);
        let at = |seq| known.partition_point(|known| known.stretch.last < seq);
        let (start, head) = match head {
            Some(head) if head.version <= after => (at(head.seq), Some(head.version)),
            Some(head) => (at(head.seq) + 1, None),
            None => (0, None),
        };
        Passed { slots: start..known.len(), head, broken }
    }
}

impl Slot {
    /// The segment with its index, if it has one that fits and is still the file that it was.
    fn held(&mut self, storage: &dyn Storage, store: StoreId) -> Option<Arc<Held>> {
        let fits = |held: &Arc<Held>| !held.index.is_damaged() && held.is_in_place(storage);
        if !self.held.as_ref().is_some_and(fits) {
            self.held = whole(storage, store, self.first, self.next)
                .filter(|index| !index.stretch.broken)
                .and_then(|index| Held::sealed(storage, index))
                .map(Arc::new);
        }
        self.held.clone()
    }
}

impl Plan {
    /// Passes over a segment that has nothing of the stream that is wanted.
    fn pass(&mut self, at: usize, passed: &Passed) {
        self.sound &= passed.broken.is_none_or(|broken| broken < at);
        if at == passed.slots.start
            && let Some(head) = passed.head
        {
            self.head = self.head.max(head);
            self.open = false;
        }
    }

    /// Takes what a stream has in the stretch before those that were taken.
    fn take(&mut self, held: &Arc<Held>, stream: &str, after: Version) {
        if !self.open {
            return;
        }
        let posted = held.index.posted(stream);
        self.sound &= !held.index.is_damaged();
        let Some(posted) = posted else { return };
        let reach = Reach { last: posted.version, count: posted.count };
        self.head = self.head.max(reach.last);
        if reach.last > after {
            let skip = after.0.saturating_sub(reach.before().0);
            let end = posted.start.saturating_add(posted.count);
            let places = posted.start.saturating_add(skip)..end;
            self.stretches.push((Arc::clone(held), places));
        }
        self.open = reach.before() > after;
    }
}

impl Default for Plan {
    fn default() -> Self {
        let (stretches, recent) = (Vec::new(), Vec::new());
        Self { stretches, recent, head: Version::ZERO, open: true, sound: true }
    }
}

#[cfg(test)]
mod tests;
