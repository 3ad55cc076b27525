//! The callers of appends that wait. One of them leads; the others are taken along by it, or lead later. Answers are
//! given to a whole group at once: waking its callers one by one would cost more than the disk does.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::store::{Appended, Durability};

use super::draft::Batch;
use super::locked;

/// What a line has beside its payload, about.
const HEAD_BYTES: usize = 300;

/// The callers that wait for their answer or their turn.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Where those wait that came when nobody else did: they are likely to lead next.
    first: Condvar,
    /// Where the others wait, by the parity of their group.
    others: [Condvar; 2],
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Arc<Ticket>>,
    led: bool,
    /// How often all that waited were taken along.
    group: usize,
}

/// A caller that waits.
#[derive(Debug)]
pub(super) struct Ticket {
    /// What it appends, until somebody takes it; `None` for one that decides, which only it can do itself.
    batch: Mutex<Option<(Batch, Durability)>>,
    decides: bool,
    place: Place,
    turn: Mutex<Turn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    Other(usize),
}

#[derive(Debug)]
enum Turn {
    Waits,
    Leads,
    Done(Result<Appended>),
}

/// What a caller is to do.
#[derive(Debug)]
pub(super) enum Role<'q> {
    /// Nobody led: it leads.
    Leads(Lead<'q>),
    /// It waited, and it leads now; what it brought is its own again, unless it decides.
    LeadsNow(Lead<'q>, Option<(Batch, Durability)>),
    /// Somebody else appended for it.
    Done(Result<Appended>),
}

impl Queue {
    /// Joins the callers, and waits unless nobody leads. `bring` gives what somebody else may append for this caller;
    /// it is asked only when the caller has to wait.
    pub(super) fn join(&self, bring: impl FnOnce() -> Option<(Batch, Durability)>) -> Role<'_> {
        let mut state = locked(&self.state);
        if !state.led {
            state.led = true;
            return Role::Leads(Lead(self));
        }
        let alone = state.waiting.is_empty();
        let place = if alone { Place::First } else { Place::Other(state.group) };
        let batch = bring();
        let ticket = Arc::new(Ticket {
            decides: batch.is_none(),
            batch: Mutex::new(batch),
            place,
            turn: Mutex::new(Turn::Waits),
        });
        state.waiting.push_back(Arc::clone(&ticket));
        self.wait(state, &ticket)
    }

    fn wait<'q>(&'q self, mut state: MutexGuard<'q, State>, ticket: &Ticket) -> Role<'q> {
        loop {
            match std::mem::replace(&mut *locked(&ticket.turn), Turn::Waits) {
                Turn::Waits => {}
                Turn::Leads => return Role::LeadsNow(Lead(self), locked(&ticket.batch).take()),
                Turn::Done(result) => return Role::Done(result),
            }
            let bell = self.bell(ticket.place);
            state = bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn bell(&self, place: Place) -> &Condvar {
        let [even, odd] = &self.others;
        match place {
            Place::First => &self.first,
            Place::Other(group) if group % 2 == 0 => even,
            Place::Other(_) => odd,
        }
    }

    /// Takes those along who wait, up to so many bytes of lines or the first one that decides.
    pub(super) fn take(&self, bytes: usize) -> Vec<Waiting<'_>> {
        let mut state = locked(&self.state);
        let mut sum = 0;
        let count = state.waiting.iter().take_while(|ticket| {
            let fits = !ticket.decides && sum < bytes;
            sum += ticket.bytes();
            fits
        });
        let count = count.count();
        if count > 0 && count == state.waiting.len() {
            state.group += 1;
        }
        let taken = state.waiting.drain(..count);
        taken.map(|ticket| Waiting { queue: self, ticket: Some(ticket) }).collect()
    }

    /// Gives each caller its answer, and wakes them all.
    pub(super) fn answer(&self, answers: Vec<(Waiting<'_>, Result<Appended>)>) {
        let mut bells = [false; 3];
        for (mut waiting, answer) in answers {
            if let Some(ticket) = waiting.ticket.take() {
                *locked(&ticket.turn) = Turn::Done(answer);
                let [first, even, odd] = &mut bells;
                match ticket.place {
                    Place::First => *first = true,
                    Place::Other(group) if group % 2 == 0 => *even = true,
                    Place::Other(_) => *odd = true,
                }
            }
        }
        // A caller that has seen no answer yet waits once this lock was free.
        drop(locked(&self.state));
        for (bell, place) in bells.into_iter().zip([Place::First, Place::Other(0), Place::Other(1)])
        {
            if bell {
                self.bell(place).notify_all();
            }
        }
    }
}

impl Ticket {
    fn bytes(&self) -> usize {
        let batch = locked(&self.batch);
        let events = batch.iter().flat_map(|(batch, _)| &batch.events);
        events.map(|event| event.data.as_str().len() + HEAD_BYTES).sum()
    }
}

/// A caller that was taken along. Dropped without an answer, it gets one all the same.
#[derive(Debug)]
pub(super) struct Waiting<'q> {
    queue: &'q Queue,
    ticket: Option<Arc<Ticket>>,
}

impl Waiting<'_> {
    /// What it appends.
    pub(super) fn batch(&self) -> Option<(Batch, Durability)> {
        self.ticket.as_ref().and_then(|ticket| locked(&ticket.batch).take())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let again = Waiting { queue: self.queue, ticket: Some(ticket) };
            let answer = Err(super::writer::indeterminate(super::writer::unplanned()));
            self.queue.answer(vec![(again, answer)]);
        }
    }
}

/// The lead, given on when it is dropped, whatever happened.
#[derive(Debug)]
pub(super) struct Lead<'q>(&'q Queue);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        let Some(next) = state.waiting.pop_front() else {
            state.led = false;
            return;
        };
        *locked(&next.turn) = Turn::Leads;
        drop(state);
        self.0.bell(next.place).notify_all();
    }
}
