//! What became of a run whose worker gives no sign. Whether a worker lives is known of this machine: its process, the moment
//! that it started, the boot. Of other machines only the lease tells.

use annals_engine::clock::Timestamp;
use annals_engine::session::event::RunStatus;
use annals_engine::session::work::Claim;

use super::process::ProcessIdentity;

/// A machine, as claims name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// Its boot.
    pub boot_id: String,
}

impl Machine {
    /// The one that this process is on.
    ///
    /// # Errors
    /// What the system says when it does not tell who this process is.
    pub fn here() -> annals_engine::Result<Self> {
        Ok(Self { host: host(), boot_id: ProcessIdentity::own()?.boot_id })
    }

    /// How a claimed run ended, if nobody is at it any more.
    #[must_use]
    pub fn fate(&self, claim: &Claim, now: Timestamp) -> Option<RunStatus> {
        if claim.host != self.host {
            return (claim.lease_until < now).then_some(RunStatus::Lost);
        }
        if claim.boot_id != self.boot_id {
            return Some(RunStatus::Interrupted);
        }
        let process = ProcessIdentity {
            pid: claim.pid,
            start: claim.process_start.clone(),
            boot_id: claim.boot_id.clone(),
        };
        (!process.is_alive()).then_some(RunStatus::Lost)
    }
}

/// The name of this machine.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
