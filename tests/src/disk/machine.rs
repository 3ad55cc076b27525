//! The simulated machine: one kernel, the processes that use it, what is to go wrong, and a record of every call.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use super::call::{Call, Done, Op, Pid};
use super::choose::Loss;
use super::fault::{Chances, EIO, Effect, Rule, SyncFault};
use super::kernel::{Kernel, OpenId};
use super::schedule::{Status, Waiting};
use super::view::View;

/// A simulated machine. Its processes reach the disk through their own [`View`]; dropping it ends them all.
#[derive(Debug)]
pub struct SimDisk {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// A process has come to its next call or has ended.
    pub(super) driver: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) kernel: Kernel,
    pub(super) processes: Vec<Process>,
    rules: Vec<Rule>,
    chances: Chances,
    trace: Vec<Done>,
    images: Option<Vec<Image>>,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) status: Status,
    /// The process may go on.
    pub(super) wake: Arc<Condvar>,
    pub(super) thread: Option<thread::JoinHandle<()>>,
}

/// The machine as it was when a process was about to make a call.
#[derive(Clone, Debug)]
pub struct Image {
    /// The call.
    pub call: Call,
    /// How many calls there were before it.
    pub number: usize,
    kernel: Kernel,
    write: Option<(OpenId, u64, Vec<u8>)>,
}

impl Image {
    /// The state before the call.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// How many bytes the call would write.
    #[must_use]
    pub fn write_len(&self) -> usize {
        self.write.as_ref().map_or(0, |(_, _, bytes)| bytes.len())
    }

    /// The state when the call is a write and got no further than so many bytes.
    #[must_use]
    pub fn partly(&self, bytes: usize) -> Kernel {
        let mut kernel = self.kernel.clone();
        if let Some((id, offset, data)) = &self.write {
            let _ = kernel.write_at(*id, &data[..bytes.min(data.len())], *offset);
        }
        kernel
    }
}

/// What fate lays down for one call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub(super) short: Option<usize>,
    pub(super) sync: Option<SyncFault>,
}

/// The payload with which a killed process unwinds.
struct Killed;

impl SimDisk {
    /// A machine with an empty disk. The seed decides everything that happens by chance.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::booted(Kernel::new(seed))
    }

    /// A machine with this state; the processes of the state it was taken from are gone.
    #[must_use]
    pub fn booted(mut kernel: Kernel) -> Self {
        kernel.end_all_processes();
        let state = State {
            kernel,
            processes: Vec::new(),
            rules: Vec::new(),
            chances: Chances::default(),
            trace: Vec::new(),
            images: None,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), driver: Condvar::new() }) }
    }

    /// A process on the caller's own thread: its calls are made at once. A lock that somebody else holds is an error
    /// for it, since nobody would ever give it back.
    #[must_use]
    pub fn process(&self, name: &str) -> Arc<View> {
        let process = self.shared.add_process(name, Status::Free);
        Arc::new(View::new(self.shared.clone(), process))
    }

    /// Runs something on the caller's own thread; `None` when a rule killed the process that it ran as.
    pub fn unless_killed<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Killed>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Adds a rule. The first rule that takes effect on a call decides it.
    pub fn rule(&self, rule: Rule) {
        self.shared.lock().rules.push(rule);
    }

    /// Drops all rules.
    pub fn clear_rules(&self) {
        self.shared.lock().rules.clear();
    }

    /// Sets what goes wrong by chance.
    pub fn set_chances(&self, chances: Chances) {
        self.shared.lock().chances = chances;
    }

    /// Keeps the state of the machine before every call that changes something, from now on.
    pub fn keep_images(&self) {
        self.shared.lock().images = Some(Vec::new());
    }

    /// The states kept so far, and keeps no more.
    #[must_use]
    pub fn take_images(&self) -> Vec<Image> {
        self.shared.lock().images.take().unwrap_or_default()
    }

    /// Every call so far.
    #[must_use]
    pub fn trace(&self) -> Vec<Done> {
        self.shared.lock().trace.clone()
    }

    /// The calls from the n-th on, counted from 0.
    #[must_use]
    pub fn trace_from(&self, n: usize) -> Vec<Done> {
        self.shared.lock().trace.get(n..).unwrap_or_default().to_vec()
    }

    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.shared.lock().trace.len()
    }

    /// Looks at the kernel.
    pub fn look<T>(&self, look: impl FnOnce(&Kernel) -> T) -> T {
        look(&self.shared.lock().kernel)
    }

    /// Changes the kernel's state from outside every process.
    pub fn meddle<T>(&self, meddle: impl FnOnce(&mut Kernel) -> T) -> T {
        meddle(&mut self.shared.lock().kernel)
    }

    /// Another machine in the same state, without processes.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::booted(self.look(Kernel::clone))
    }

    /// The power fails and comes back: every process is gone, and of what was not synced, what `loss` leaves is there.
    pub fn power_loss(&self, loss: &Loss) {
        self.end_all();
        let mut state = self.shared.lock();
        state.kernel = state.kernel.after_power_loss(loss);
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_process(&self, name: &str, status: Status) -> Pid {
        let mut state = self.lock();
        let pid = Pid(state.processes.len());
        let wake = Arc::new(Condvar::new());
        state.processes.push(Process { name: name.to_owned(), status, wake, thread: None });
        pid
    }

    /// Makes one call when its process's turn has come.
    pub(super) fn call<T>(
        &self,
        waiting: Waiting,
        act: impl FnOnce(&mut Kernel, Bounds) -> io::Result<T>,
    ) -> io::Result<T> {
        let pid = waiting.call.process;
        let (mut state, waiting) = self.wait_for_turn(self.lock(), waiting);
        let Some(waiting) = waiting else {
            drop(state);
            return Err(die());
        };
        state.keep_image(&waiting);
        let effect = state.effect_on(&waiting);
        if let Some(Effect::Kill(left)) = effect {
            state.leave_part_of_write(&waiting, left);
            state.end_process(pid);
            state.record(waiting.call, Err(io::ErrorKind::BrokenPipe));
            drop(state);
            return Err(die());
        }
        let bounds = Bounds {
            short: if let Some(Effect::Short(n)) = effect { Some(n) } else { None },
            sync: if let Some(Effect::Sync(fault)) = effect { Some(fault) } else { None },
        };
        let result = match effect {
            Some(Effect::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
            _ => act(&mut state.kernel, bounds),
        };
        let outcome = result.as_ref().map(|_| ()).map_err(io::Error::kind);
        state.record(waiting.call, outcome);
        result
    }

    pub(super) fn close(&self, process: Pid, id: OpenId) {
        let mut state = self.lock();
        if state.is_alive(process) {
            state.kernel.close(id);
        }
    }
}

impl State {
    pub(super) fn process(&mut self, pid: Pid) -> &mut Process {
        &mut self.processes[pid.0]
    }

    pub(super) fn is_alive(&self, pid: Pid) -> bool {
        !matches!(self.processes[pid.0].status, Status::Dead | Status::Ended(_))
    }

    /// Of a write that was under way, so many bytes are there.
    pub(super) fn leave_part_of_write(&mut self, waiting: &Waiting, bytes: usize) {
        if let (Op::WriteAt { offset, .. }, Some(id)) = (&waiting.call.op, waiting.open) {
            let bytes = &waiting.bytes[..bytes.min(waiting.bytes.len())];
            let _ = self.kernel.write_at(id, bytes, *offset);
        }
    }

    /// The process makes no call any more, and its descriptors and locks are gone.
    pub(super) fn end_process(&mut self, pid: Pid) {
        if self.is_alive(pid) {
            self.process(pid).status = Status::Dead;
        }
        self.kernel.end_process(pid);
    }

    pub(super) fn name_of(&self, pid: Pid) -> &str {
        &self.processes[pid.0].name
    }

    fn record(&mut self, call: Call, outcome: Result<(), io::ErrorKind>) {
        self.trace.push(Done { call, outcome });
    }

    fn keep_image(&mut self, waiting: &Waiting) {
        let Some(images) = &mut self.images else { return };
        if !waiting.call.changes() {
            return;
        }
        let write = match (&waiting.call.op, waiting.open) {
            (Op::WriteAt { offset, .. }, Some(id)) => Some((id, *offset, waiting.bytes.clone())),
            _ => None,
        };
        let (call, kernel) = (waiting.call.clone(), self.kernel.clone());
        images.push(Image { call, number: self.trace.len(), kernel, write });
    }

    fn effect_on(&mut self, waiting: &Waiting) -> Option<Effect> {
        let met = self.rules.iter_mut().filter_map(|rule| rule.meet(&waiting.call));
        if let Some(effect) = met.fold(None, |first, next| first.or(Some(next))) {
            return Some(effect);
        }
        let Chances {
            sync_fails,
            write_back,
            write_back_fails,
            read_fails,
            short_read,
            short_write,
        } = self.chances;
        let kernel = &mut self.kernel;
        if kernel.happens(write_back) {
            kernel.write_back(write_back_fails);
        }
        match (&waiting.call.op, waiting.open) {
            (Op::SyncData, Some(id)) if kernel.has_dirty_data(id) && kernel.happens(sync_fails) => {
                Some(Effect::Sync(SyncFault::draw(&mut kernel.rng)))
            }
            (Op::ReadAt { .. } | Op::Map, _) if kernel.happens(read_fails) => {
                Some(Effect::Fail(EIO))
            }
            (Op::ReadAt { len, .. }, _) if *len > 1 && kernel.happens(short_read) => {
                Some(Effect::Short(kernel.rng.usize(1..*len)))
            }
            (Op::WriteAt { len, .. }, _) if *len > 1 && kernel.happens(short_write) => {
                Some(Effect::Short(kernel.rng.usize(1..*len)))
            }
            _ => None,
        }
    }
}

/// What a call of a dead process does: it unwinds to the top of the process. While it unwinds already, destructors may
/// call again; they get an error and do nothing.
fn die() -> io::Error {
    if thread::panicking() {
        return io::Error::other("this process was killed");
    }
    resume_unwind(Box::new(Killed))
}

/// What came of a process that ran to its end.
pub(super) fn run_to_end(run: impl FnOnce()) -> Result<bool, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => Ok(true),
        Err(payload) if payload.is::<Killed>() => Ok(false),
        Err(payload) => Err(payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "a panic without text".to_owned())),
    }
}
