//! Ends processes of runs whose worker is dead. They are known by the variables that the runner gave them, which every
//! process that they start inherits; one that cleared its environment is not found. Linux only: elsewhere nothing is
//! found.
//!
//! The one who calls is never taken for a process of the run, but whoever starts a process that outlives a run from
//! inside it (a worker) removes [`super::runner::VARIABLES`] from its environment.

use std::path::Path;
use std::time::Duration;

/// How many processes of a run there are. `store` is the folder that the run's `ANNALS_HOME` was.
#[must_use]
pub fn count(run_id: &str, store: &Path) -> usize {
    left::by(run_id, store).len()
}

/// Asks every process of a run to end, and after `grace` ends those that did not. Gives how many were found at first.
/// When it returns none is left that it may end.
pub async fn reap(run_id: &str, store: &Path, grace: Duration) -> usize {
    let found = left::by(run_id, store);
    for process in &found {
        process.ask();
    }
    let until = tokio::time::Instant::now() + grace;
    while !found.is_empty() && tokio::time::Instant::now() < until {
        if left::by(run_id, store).is_empty() {
            return found.len();
        }
        tokio::time::sleep(LOOK_EVERY.min(grace)).await;
    }
    // One that starts others faster than it is found is looked for again.
    for _ in 0..ROUNDS_MAX {
        let rest = left::by(run_id, store);
        if rest.is_empty() {
            break;
        }
        for process in &rest {
            process.end();
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    found.len()
}

const LOOK_EVERY: Duration = Duration::from_millis(50);
const ROUNDS_MAX: usize = 100;

#[cfg(target_os = "linux")]
mod left {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use rustix::fd::OwnedFd;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::super::process::{home, proc};

    /// A process that was looked at, held so that its number cannot become another's.
    pub(super) struct Process(OwnedFd);

    /// The processes of a run.
    pub(super) fn by(run_id: &str, store: &Path) -> Vec<Process> {
        let run = [b"ANNALS_RUN_ID=", run_id.as_bytes()].concat();
        let home = [b"ANNALS_HOME=", home(store).as_os_str().as_bytes()].concat();
        let own = std::process::id().to_string();
        let held = |pid: String| {
            let number = pid.parse().ok().and_then(Pid::from_raw)?;
            let process = Process(pidfd_open(number, PidfdFlags::empty()).ok()?);
            let environ = proc::environ(&pid);
            let says =
                |variable: &[u8]| environ.split(|byte| *byte == 0).any(|one| one == variable);
            (says(&run) && says(&home)).then_some(process)
        };
        proc::pids().filter(|pid| *pid != own).filter_map(held).collect()
    }

    impl Process {
        /// Asks it to end. One that has ended meanwhile is none to ask.
        pub(super) fn ask(&self) {
            let _ = pidfd_send_signal(&self.0, Signal::TERM);
        }

        /// Ends it.
        pub(super) fn end(&self) {
            let _ = pidfd_send_signal(&self.0, Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod left {
    use std::path::Path;

    /// A process that was found: none.
    pub(super) enum Process {}

    pub(super) fn by(_: &str, _: &Path) -> Vec<Process> {
        Vec::new()
    }

    impl Process {
        pub(super) fn ask(&self) {
            match *self {}
        }

        pub(super) fn end(&self) {
            match *self {}
        }
    }
}
