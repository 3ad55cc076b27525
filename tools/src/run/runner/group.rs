//! A process and all that it starts and that stays with it.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

use crate::run::process::proc;

/// A group of processes. It is ended when this is dropped, unless it was let go.
pub(super) struct Group {
    leader: Option<Pid>,
    ends: bool,
}

impl Group {
    /// The group of a process that was started as its leader.
    pub(super) fn led_by(child: &Child) -> Self {
        let leader = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        Self { leader, ends: true }
    }

    /// The leader's pid.
    pub(super) fn pid(&self) -> u32 {
        self.leader.and_then(|pid| pid.as_raw_pid().try_into().ok()).unwrap_or(0)
    }

    /// Asks all of it to end.
    pub(super) fn ask(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all of it.
    pub(super) fn end(&self) {
        self.signal(Signal::KILL);
    }

    /// Lets what is left of it live.
    pub(super) fn let_go(&mut self) {
        self.ends = false;
    }

    /// Whether anything of it runs. What has ended and is waited for by nobody does not.
    pub(super) fn runs(&self) -> bool {
        let there = self.leader.is_some_and(|leader| test_kill_process_group(leader).is_ok());
        there && proc::group_runs(self.pid())
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone is what was wanted.
        if let Some(leader) = self.leader {
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.ends {
            self.end();
        }
    }
}
