//! The callers of appends that wait. One of them leads; the others are taken along by it, or lead later. Answers are
//! given to a whole group at once: waking its callers one by one would cost more than the disk does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::Result;
use crate::store::{Appended, Durability};

use super::draft::Batch;
use super::locked;

/// What somebody else may append for a caller.
type Brought = (Batch, Durability);

/// The callers that wait for their answer or their turn.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Entry>,
    led: bool,
    /// What those wait for who come now and are not the first.
    bell: Bell,
}

/// A caller in the queue.
#[derive(Debug)]
struct Entry {
    ticket: Arc<Ticket>,
    /// The bell that the ticket says.
    bell: Bell,
    /// `None` for one that decides, which only it can do itself.
    brought: Option<Brought>,
}

/// What a caller looks at that waits.
#[derive(Debug)]
struct Ticket(Mutex<Turn>);

#[derive(Debug)]
enum Turn {
    /// Until this rings, and longer when there is another one then.
    Waits(Bell),
    Leads(Option<Brought>),
    Done(Result<Appended>),
}

/// Rings once, for all that wait for it, with one call into the kernel, and who is woken takes no lock that others of
/// them want too. It rings when each ticket that has it says something else: an answer, the lead, or another bell.
#[derive(Clone, Debug, Default)]
struct Bell(Arc<OnceLock<()>>);

impl Bell {
    fn ring(&self) {
        // Somebody may have rung it for others that waited for the same.
        let _ = self.0.set(());
    }

    fn wait(&self) {
        self.0.wait();
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What a caller is to do.
#[derive(Debug)]
pub(super) enum Role<'q> {
    /// Nobody led: it leads.
    Leads(Lead<'q>),
    /// It waited, and it leads now; what it brought is its own again, unless it decides.
    LeadsNow(Lead<'q>, Option<Brought>),
    /// Somebody else appended for it.
    Done(Result<Appended>),
}

impl Queue {
    /// Joins the callers, and waits unless nobody leads. `bring` gives what somebody else may append for this caller;
    /// it is asked only when the caller has to wait.
    pub(super) fn join(&self, bring: impl FnOnce() -> Option<Brought>) -> Role<'_> {
        let mut state = locked(&self.state);
        if !state.led {
            state.led = true;
            return Role::Leads(Lead(self));
        }
        let brought = bring();
        // Who comes first is likely to lead next and who decides has to lead: neither is woken with others.
        let alone = state.waiting.is_empty() || brought.is_none();
        let bell = if alone { Bell::default() } else { state.bell.clone() };
        let ticket = Arc::new(Ticket(Mutex::new(Turn::Waits(bell.clone()))));
        state.waiting.push_back(Entry { ticket: Arc::clone(&ticket), bell: bell.clone(), brought });
        if alone {
            state.bell = Bell::default();
        }
        drop(state);
        self.wait(&ticket, bell)
    }

    fn wait(&self, ticket: &Ticket, mut bell: Bell) -> Role<'_> {
        loop {
            bell.wait();
            let mut turn = locked(&ticket.0);
            match std::mem::replace(&mut *turn, Turn::Waits(bell.clone())) {
                Turn::Waits(other) => {
                    *turn = Turn::Waits(other.clone());
                    bell = other;
                }
                Turn::Leads(brought) => return Role::LeadsNow(Lead(self), brought),
                Turn::Done(result) => return Role::Done(result),
            }
        }
    }

    /// Takes those along who wait, up to so many bytes of lines or the first one that decides.
    pub(super) fn take(&self, bytes: usize) -> Vec<(Waiting, Brought)> {
        let mut state = locked(&self.state);
        let mut sum = 0;
        let mut taken = Vec::with_capacity(state.waiting.len());
        while sum < bytes
            && let Some(mut entry) = state.waiting.pop_front_if(|entry| entry.brought.is_some())
        {
            let Some(brought) = entry.brought.take() else { break };
            sum += brought.0.bytes;
            taken.push((entry, brought));
        }
        if let Some((last, _)) = taken.last()
            && let Some(old) = state.part_from(&last.bell)
        {
            let bell = Bell::default();
            for (entry, _) in taken.iter().filter(|(entry, _)| entry.bell.is(&old)) {
                *locked(&entry.ticket.0) = Turn::Waits(bell.clone());
            }
            old.ring();
        } else {
            state.bell = Bell::default();
        }
        drop(state);
        taken.into_iter().map(|(entry, brought)| (Waiting(Some(entry.ticket)), brought)).collect()
    }
}

impl State {
    /// Gives those who wait another bell when they have this one; returns it then, to be rung.
    fn part_from(&mut self, bell: &Bell) -> Option<Bell> {
        let old = self.waiting.front().map(|entry| &entry.bell).filter(|other| other.is(bell))?;
        let old = old.clone();
        let rest = Bell::default();
        if self.bell.is(&old) {
            // They are the last group: who comes joins it. Behind another group its bell stays that of the last.
            self.bell = rest.clone();
        }
        // The first of them leads next.
        let mut next = Bell::default();
        for entry in self.waiting.iter_mut().filter(|entry| entry.bell.is(&old)) {
            entry.bell = std::mem::replace(&mut next, rest.clone());
            *locked(&entry.ticket.0) = Turn::Waits(entry.bell.clone());
        }
        Some(old)
    }
}

/// Gives each caller its answer, and wakes them all.
pub(super) fn answer(answers: Vec<(Waiting, Result<Appended>)>) {
    let mut bells: Vec<Bell> = Vec::new();
    for (mut waiting, answer) in answers {
        let Some(ticket) = waiting.0.take() else { continue };
        let before = std::mem::replace(&mut *locked(&ticket.0), Turn::Done(answer));
        if let Turn::Waits(bell) = before
            && !bells.last().is_some_and(|last| last.is(&bell))
        {
            bells.push(bell);
        }
    }
    bells.iter().for_each(Bell::ring);
}

/// A caller that was taken along. Dropped without an answer, it gets one all the same.
#[derive(Debug)]
pub(super) struct Waiting(Option<Arc<Ticket>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(ticket) = self.0.take() {
            let error = Err(super::writer::indeterminate(super::writer::unplanned()));
            answer(vec![(Waiting(Some(ticket)), error)]);
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
        *locked(&next.ticket.0) = Turn::Leads(next.brought);
        state.part_from(&next.bell);
        drop(state);
        next.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const CALLERS: usize = 8;

    /// One call: who leads takes two others along and answers them. Tells whether it led.
    fn call(queue: &Queue) -> bool {
        let batch = Batch { bytes: 1, ..Batch::new(Vec::new(), Vec::new(), Vec::new()) };
        let (Role::Leads(lead) | Role::LeadsNow(lead, _)) =
            queue.join(|| Some((batch, Durability::Buffered)))
        else {
            return false;
        };
        let answer_of =
            |(waiting, _)| (waiting, Ok(Appended { positions: Vec::new(), repeated: false }));
        answer(queue.take(2).into_iter().map(answer_of).collect());
        drop(lead);
        true
    }

    /// Goal: nobody is forgotten when a group is cut in the middle, nor when the lead goes to one that waits with
    /// others. Method: eight callers that all wait before the first of them leads, in groups of three.
    #[test]
    fn groups_that_are_cut() {
        let queue = Queue::default();
        let Role::Leads(lead) = queue.join(|| None) else { panic!("somebody leads already") };
        let led = thread::scope(|scope| {
            let callers = [(); CALLERS].map(|()| scope.spawn(|| call(&queue)));
            while locked(&queue.state).waiting.len() < CALLERS {
                thread::yield_now();
            }
            drop(lead);
            callers.into_iter().filter_map(|caller| caller.join().ok()).filter(|led| *led).count()
        });
        assert_eq!(led, CALLERS.div_ceil(3));
        assert!(!locked(&queue.state).led);
    }

    fn waiting(bells: &[&Bell]) -> VecDeque<Entry> {
        let entry = |bell: &&Bell| Entry {
            ticket: Arc::new(Ticket(Mutex::new(Turn::Waits((*bell).clone())))),
            bell: (*bell).clone(),
            brought: None,
        };
        bells.iter().map(entry).collect()
    }

    /// Goal: a bell belongs to one group of neighbours, so that whoever hears it has been told something. Method: a group
    /// is cut that stands at the end of the queue, and one that others stand behind: who comes then joins the last.
    #[test]
    fn a_bell_belongs_to_one_group() {
        let [cut, decider, last] = [(); 3].map(|()| Bell::default());
        let mut behind = State {
            waiting: waiting(&[&cut, &cut, &decider, &last]),
            led: true,
            bell: last.clone(),
        };
        assert!(behind.part_from(&cut).is_some_and(|old| old.is(&cut)));
        assert!(behind.bell.is(&last));
        let told: Vec<bool> =
            behind.waiting.iter().map(|entry| entry.bell.is(&behind.bell)).collect();
        assert_eq!(told, [false, false, false, true]);
        let mut end = State { waiting: waiting(&[&cut, &cut]), led: true, bell: cut.clone() };
        assert!(end.part_from(&cut).is_some());
        let told: Vec<bool> = end.waiting.iter().map(|entry| entry.bell.is(&end.bell)).collect();
        assert_eq!(told, [false, true]);
    }
}
