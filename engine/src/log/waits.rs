//! Waits for locks that grow long: a person is told who holds the lock. Nothing is taken from anybody.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::storage::{File, LockWait};

use super::{Notice, Tell, locked};

/// When a wait counts as long, and how often it is looked for.
const LONG: Duration = Duration::from_secs(2);

/// The watch over this process's waits ends after so many looks at none.
const IDLE_LOOKS: u32 = 30;

/// The waits of one log that are told about.
#[derive(Clone)]
pub(super) struct Waits {
    tell: Tell,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    watched: bool,
    waits: Vec<Wait>,
    next: u64,
}

struct Wait {
    number: u64,
    name: &'static str,
    file: Arc<dyn File>,
    since: Instant,
    told: bool,
}

impl Waits {
    pub(super) fn new(tell: Tell) -> Self {
        Self { tell, state: Arc::default() }
    }

    /// Counts a wait until the value is dropped.
    pub(super) fn begin(&self, name: &'static str, file: &Arc<dyn File>) -> Waiting<'_> {
        let mut state = locked(&self.state.0);
        let number = state.next;
        state.next += 1;
        let file = Arc::clone(file);
        state.waits.push(Wait { number, name, file, since: Instant::now(), told: false });
        if !std::mem::replace(&mut state.watched, true) {
            let watch = self.clone();
            let started =
                thread::Builder::new().name("annals-waits".into()).spawn(move || watch.watch());
            state.watched = started.is_ok();
        }
        Waiting { waits: self, number }
    }

    fn watch(&self) {
        let mut idle = 0;
        while idle < IDLE_LOOKS {
            // Nothing rings this bell: a contended lock is not made dearer by waking anybody.
            let looked = self.state.1.wait_timeout(locked(&self.state.0), LONG / 2);
            let (mut state, _) = looked.unwrap_or_else(PoisonError::into_inner);
            idle = if state.waits.is_empty() { idle + 1 } else { 0 };
            if idle == IDLE_LOOKS {
                state.watched = false;
            }
            let mut long = Vec::new();
            for wait in state.waits.iter_mut().filter(|w| !w.told && w.since.elapsed() >= LONG) {
                wait.told = true;
                long.push((wait.name, wait.since.elapsed(), Arc::clone(&wait.file)));
            }
            drop(state);
            for (name, waited, file) in long {
                let holder = file.lock_holder();
                (self.tell)(&Notice::LockWait(LockWait { name: name.to_owned(), waited, holder }));
            }
        }
    }
}

impl std::fmt::Debug for Waits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waits")
            .field("waits", &locked(&self.state.0).waits.len())
            .finish_non_exhaustive()
    }
}

/// A wait that goes on.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    waits: &'a Waits,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        locked(&self.waits.state.0).waits.retain(|wait| wait.number != self.number);
    }
}
