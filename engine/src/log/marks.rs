//! Where this process knows the log to end, and the bell that wakes its followers. Waking carries no content: who is
//! woken looks for itself.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::id::Seq;

use super::locked;

#[derive(Debug, Default)]
struct State {
    durable: Seq,
    written: Seq,
    rung: u64,
    /// Who waits: a bell that nobody hears is not rung, since each ring is a call into the kernel.
    waiting: usize,
}

/// The marks of one store in one process.
#[derive(Debug, Default)]
pub(super) struct Marks {
    state: Mutex<State>,
    bell: Condvar,
}

impl Marks {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Raises what is known and rings. A mark never sinks.
    pub(super) fn raise(&self, durable: Seq, written: Seq) {
        let mut state = locked(&self.state);
        state.durable = state.durable.max(durable);
        state.written = state.written.max(written);
        state.rung += 1;
        let heard = state.waiting > 0;
        drop(state);
        if heard {
            self.bell.notify_all();
        }
    }

    /// The highest position that this process knows to be durable.
    pub(super) fn durable(&self) -> Seq {
        locked(&self.state).durable
    }

    /// How often the bell has rung. Taken before looking, so that no ring between looking and waiting is missed.
    pub(super) fn rung(&self) -> u64 {
        locked(&self.state).rung
    }

    /// Waits until the bell has rung more often than `heard`, or for `timeout`; tells whether it has.
    pub(super) fn wait(&self, heard: u64, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut state = locked(&self.state);
        state.waiting += 1;
        while state.rung == heard {
            let Some(left) = end.checked_duration_since(Instant::now()).filter(|d| !d.is_zero())
            else {
                break;
            };
            state = self.bell.wait_timeout(state, left).map_or_else(|e| e.into_inner().0, |w| w.0);
        }
        state.waiting -= 1;
        state.rung != heard
    }
}
