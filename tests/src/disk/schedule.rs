//! Interleaves processes that each run on a thread of their own. Every call to the disk is a point where the thread
//! stops; the test decides which one goes on, so that exactly one runs at any time and the order of calls is the
//! test's.

use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::call::{Call, Op, Pid};
use super::kernel::{Kernel, OpenId};
use super::machine::{Shared, SimDisk, State, run_to_end};
use super::view::View;

/// How long a process may compute between two calls before the test gives up on it.
const STUCK_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) enum Status {
    /// It has no thread of its own: its calls are made at once.
    Free,
    /// It computes; so many calls it may make before it waits for its turn again.
    Running(usize),
    /// It waits for its turn to make a call.
    Waiting(Box<Waiting>),
    /// It was killed, and unwinds or has unwound.
    Dead,
    /// It has returned, or panicked with this text.
    Ended(Result<(), String>),
}

/// A call that a process is about to make.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) call: Call,
    pub(super) open: Option<OpenId>,
    /// What a write would write.
    pub(super) bytes: Vec<u8>,
}

/// Where a process stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What was waited for has come.
    Reached,
    /// It waits for a lock that this process holds.
    Blocked(Pid),
    /// It has returned, or is dead.
    Ended,
}

impl SimDisk {
    /// Starts a process on a thread of its own and lets it run to its first call.
    ///
    /// # Panics
    /// When the process panics.
    pub fn spawn(&self, name: &str, body: impl FnOnce(Arc<View>) + Send + 'static) -> Pid {
        let pid = self.shared.add_process(name, Status::Running(0));
        let shared = self.shared.clone();
        let run = move || {
            let view = Arc::new(View::new(shared.clone(), pid));
            let result = run_to_end(|| body(view));
            let mut state = shared.lock();
            state.end_process(pid);
            state.process(pid).status = match result {
                Ok(true) => Status::Ended(Ok(())),
                Ok(false) => Status::Dead,
                Err(text) => Status::Ended(Err(text)),
            };
            shared.driver.notify_one();
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).expect("a thread");
        let mut state = self.shared.lock();
        state.process(pid).thread = Some(thread);
        drop(self.shared.wait_for_call(state, pid));
        pid
    }

    /// Lets a process make the call that it waits for and run to the next.
    ///
    /// # Panics
    /// When the process panics.
    pub fn step(&self, pid: Pid) -> Stop {
        self.run(pid, 1)
    }

    /// Lets a process make the call that it waits for and the next ones, `calls` in all, and run to the one after; or
    /// until it is blocked or has ended.
    ///
    /// # Panics
    /// When the process panics.
    pub fn run(&self, pid: Pid, calls: usize) -> Stop {
        let mut state = self.shared.lock();
        match state.stop_of(pid) {
            Stop::Reached => {}
            stop => return stop,
        }
        state.process(pid).status = Status::Running(calls.saturating_sub(1));
        state.process(pid).wake.notify_one();
        self.shared.wait_for_call(state, pid).stop_of(pid)
    }

    /// Lets a process run until `until` says yes to the state of the kernel and the call that comes next, which is not
    /// made yet; or until it is blocked or has ended.
    ///
    /// # Panics
    /// When the process panics.
    pub fn run_until(&self, pid: Pid, until: impl Fn(&Kernel, &Call) -> bool) -> Stop {
        loop {
            let state = self.shared.lock();
            if let Status::Waiting(waiting) = &state.processes[pid.0].status
                && until(&state.kernel, &waiting.call)
            {
                return Stop::Reached;
            }
            drop(state);
            match self.step(pid) {
                Stop::Reached => {}
                stop => return self.reached_after_all(pid, stop, &until),
            }
        }
    }

    /// Lets a process run to its end.
    ///
    /// # Panics
    /// When it panics, or waits for a lock.
    pub fn finish(&self, pid: Pid) {
        match self.run_until(pid, |_, _| false) {
            Stop::Ended => {}
            stop => panic!("{} does not come to its end: {stop:?}", self.name(pid)),
        }
    }

    /// Lets one process after the other make a call, as the seeded numbers say, until all have ended; at most
    /// `calls_max`.
    ///
    /// # Panics
    /// When a process panics, when all wait for one another, or after `calls_max` calls.
    pub fn finish_all(&self, rng: &mut Rng, calls_max: usize) {
        for _ in 0..calls_max {
            let Some(pid) = self.draw(rng) else { return };
            self.step(pid);
        }
        panic!("the processes have not ended after {calls_max} calls");
    }

    /// Draws one of the processes that can go on; `None` when all have ended.
    ///
    /// # Panics
    /// When some have not ended and none can go on: a deadlock.
    pub fn draw(&self, rng: &mut Rng) -> Option<Pid> {
        let state = self.shared.lock();
        let (mut ready, mut blocked) = (Vec::new(), Vec::new());
        for (n, process) in state.processes.iter().enumerate() {
            match (&process.status, state.stop_of(Pid(n))) {
                (Status::Waiting(_), Stop::Reached) => ready.push(Pid(n)),
                (Status::Waiting(_), Stop::Blocked(by)) => blocked.push((process.name.clone(), by)),
                _ => {}
            }
        }
        assert!(!ready.is_empty() || blocked.is_empty(), "deadlock: {blocked:?}");
        rng.choice(ready)
    }

    /// Kills a process at the call that it waits for. When that is a write, the first `left` bytes of it are there.
    pub fn kill(&self, pid: Pid, left: usize) {
        let mut state = self.shared.lock();
        if let Status::Waiting(waiting) = &state.processes[pid.0].status {
            let waiting = waiting.clone();
            state.leave_part_of_write(&waiting, left);
        }
        state.end_process(pid);
        state.process(pid).wake.notify_one();
        let thread = state.process(pid).thread.take();
        drop(state);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// How many bytes the write has that a process waits to make; 0 for every other call.
    #[must_use]
    pub fn write_waiting(&self, pid: Pid) -> usize {
        match &self.shared.lock().processes[pid.0].status {
            Status::Waiting(waiting) => waiting.bytes.len(),
            _ => 0,
        }
    }

    /// The call that a process waits to make.
    #[must_use]
    pub fn call_waiting(&self, pid: Pid) -> Option<Call> {
        match &self.shared.lock().processes[pid.0].status {
            Status::Waiting(waiting) => Some(waiting.call.clone()),
            _ => None,
        }
    }

    /// Kills every process.
    pub fn end_all(&self) {
        let count = self.shared.lock().processes.len();
        for n in 0..count {
            self.kill(Pid(n), 0);
        }
    }

    fn name(&self, pid: Pid) -> String {
        self.shared.lock().process(pid).name.clone()
    }

    /// The last call may have brought about what was waited for and blocked the process as well.
    fn reached_after_all(
        &self,
        pid: Pid,
        stop: Stop,
        until: impl Fn(&Kernel, &Call) -> bool,
    ) -> Stop {
        let state = self.shared.lock();
        match &state.processes[pid.0].status {
            Status::Waiting(waiting) if until(&state.kernel, &waiting.call) => Stop::Reached,
            _ => stop,
        }
    }
}

impl Drop for SimDisk {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Shared {
    /// Waits until the driver lets the process make its call; without the call when the process is dead by then.
    pub(super) fn wait_for_turn<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        waiting: Waiting,
    ) -> (MutexGuard<'a, State>, Option<Waiting>) {
        let pid = waiting.call.process;
        match state.processes[pid.0].status {
            Status::Free => return (state, Some(waiting)),
            Status::Dead | Status::Ended(_) => return (state, None),
            Status::Running(calls) if calls > 0 && !state.would_block(&waiting) => {
                state.process(pid).status = Status::Running(calls - 1);
                return (state, Some(waiting));
            }
            Status::Running(_) | Status::Waiting(_) => {}
        }
        let wake = state.process(pid).wake.clone();
        state.process(pid).status = Status::Waiting(Box::new(waiting.clone()));
        self.driver.notify_one();
        while matches!(state.process(pid).status, Status::Waiting(_)) {
            state = wake.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let alive = state.is_alive(pid);
        (state, alive.then_some(waiting))
    }

    /// Waits, as the driver, until the process has come to its next call or has ended.
    fn wait_for_call<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        pid: Pid,
    ) -> MutexGuard<'a, State> {
        while matches!(state.process(pid).status, Status::Running(_)) {
            let (next, waited) = self
                .driver
                .wait_timeout(state, STUCK_AFTER)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                let name = state.process(pid).name.clone();
                drop(state);
                panic!("{name} makes no call and does not end");
            }
        }
        let failure = match &state.processes[pid.0].status {
            Status::Ended(Err(text)) => format!("{}: {text}", state.name_of(pid)),
            _ => return state,
        };
        drop(state);
        panic!("{failure}");
    }
}

impl State {
    fn stop_of(&self, pid: Pid) -> Stop {
        match &self.processes[pid.0].status {
            Status::Waiting(waiting) if self.would_block(waiting) => {
                let holder = waiting.open.and_then(|id| self.kernel.holder_by_open(id));
                Stop::Blocked(holder.unwrap_or(pid))
            }
            Status::Free | Status::Running(_) | Status::Waiting(_) => Stop::Reached,
            Status::Dead | Status::Ended(_) => Stop::Ended,
        }
    }

    /// Whether the call waits for a lock that somebody holds.
    fn would_block(&self, waiting: &Waiting) -> bool {
        waiting.call.op == Op::Lock && waiting.open.is_some_and(|id| self.kernel.lock_is_taken(id))
    }
}
