//! The worker: looks at the work at hand, does what it says, and records what came of it. All decisions are the
//! engine's; what this adds is processes, sinks, and waiting.
//!
//! Any number of workers share a store. One of them has the worker's role and looks after what belongs to nobody:
//! deliveries, announces, runs whose workers are gone, what time archives. All of them claim runs.
//!
//! Reading and appending block, and are done on threads for that; nothing here blocks the runtime.

mod carrier;
mod job;
mod outbox;
mod recovery;
mod shift;
mod turns;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::Timestamp;
use annals_engine::engine::Engine;
use annals_engine::id::{EventId, StreamName};
use annals_engine::session::run::{Batch, Claimer, Stage};
use annals_engine::{Error, ErrorKind, Result};
use tokio::sync::watch;

pub use carrier::{Carrier, Parcel};
pub use job::{before_the_end, hash_of};

use super::fate::{Machine, host};
use super::process::ProcessIdentity;
use super::runner::Runner;
use super::setup::Setup;
use shift::Shift;
use wake::Wake;

/// How long a worker works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until it is stopped.
    Stopped,
    /// Until nothing is at hand that it could do.
    Idle,
    /// Until this run has ended, and what followed from it that could be done at once. While the run is at work others look
    /// after what belongs to nobody: what its agent asks for must not wait for it.
    Ended(String),
}

/// Who hears of errors that a worker waits to be over.
type Tell = Arc<dyn Fn(&Error) + Send + Sync>;

/// A worker of one store.
#[derive(Clone)]
pub struct Worker {
    engine: Engine,
    setup: Arc<Setup>,
    runner: Runner,
    carrier: Arc<dyn Carrier>,
    name: String,
    identity: ProcessIdentity,
    machine: Machine,
    tell: Option<Tell>,
    /// Says when to stop, to one that stays until then.
    stays: Option<watch::Receiver<bool>>,
}

/// A claim stands so long beyond the time limit of its run without a sign of life; that of a run without a limit for a
/// day. It matters for workers on other machines alone: of those on this one it is known whether they live.
const LEASE_BEYOND: Duration = Duration::from_secs(600);
const LEASE_OPEN: Duration = Duration::from_secs(24 * 60 * 60);

/// How long after a fact could not be recorded it is tried again; a worker that stays goes on with the last.
const ASK_AGAIN: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(20),
];

/// How long after a shift broke off the next one begins; further ones come as late as the last.
const BEGINS_ANEW: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(10)];

/// How long a store is waited for that had said no so many times before; not at all if that was enough.
fn wait_after(failed: usize, stays: bool) -> Option<Duration> {
    let last = ASK_AGAIN.last().filter(|_| stays);
    ASK_AGAIN.get(failed).or(last).copied()
}

/// Whether an append that failed so was certainly not taken, and may be later.
const fn was_not_taken(kind: &ErrorKind) -> bool {
    kind.may_pass() && !matches!(kind, ErrorKind::Indeterminate)
}

impl Worker {
    /// A worker.
    ///
    /// # Errors
    /// `Io` where the system does not tell which process this is.
    pub fn new(engine: Engine, setup: Arc<Setup>, carrier: Arc<dyn Carrier>) -> Result<Self> {
        let identity = ProcessIdentity::own()?;
        let name = EventId::new(engine.clock().now()).to_string();
        let machine = Machine { host: host(), boot_id: identity.boot_id.clone() };
        let runner = Runner::default();
        let (tell, stays) = (None, None);
        Ok(Self { engine, setup, runner, carrier, name, identity, machine, tell, stays })
    }

    /// The same, which tells of errors of the store that it waits to be over.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.tell = Some(Arc::new(tell));
        self
    }

    fn tell(&self, error: &Error) {
        if let Some(tell) = &self.tell {
            tell(error);
        }
    }

    /// Works. When `stop` becomes true it claims nothing more, ends its runs as interrupted, and returns. A store that takes
    /// nothing for a while is waited for: as long as it takes by a worker that stays, a few seconds by others.
    ///
    /// # Errors
    /// What the store says. Runs that were at work then end with their processes, and the next worker finds them.
    pub async fn work(&self, until: Until, stop: watch::Receiver<bool>) -> Result<()> {
        let (woken, wakes) = Wake::start(&self.engine)?;
        let stays = (until == Until::Stopped).then(|| stop.clone());
        let worker = Self { stays, ..self.clone() };
        let result = Shift::new(&worker, (until, stop), wakes).until_over().await;
        drop(woken);
        result
    }

    /// Works until it is stopped, whatever the store says meanwhile: that a shift broke off is told, and after a while the
    /// next one begins. What the one before had claimed is this worker's own still: it is ended, or taken on.
    pub async fn stay(&self, mut stop: watch::Receiver<bool>, broke_off: impl Fn(&Error)) {
        let mut waits = BEGINS_ANEW.into_iter();
        let mut wait = Duration::ZERO;
        while let Err(error) = self.work(Until::Stopped, stop.clone()).await {
            broke_off(&error);
            wait = waits.next().unwrap_or(wait);
            tokio::select! {
                Ok(_) = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Decides on a thread that may block.
    async fn decide<T: Send + 'static>(
        &self,
        keys: Vec<StreamName>,
        rule: impl FnMut(&Stage<'_>, &mut Batch<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let engine = self.engine.clone();
        blocking(move || {
            let keys: Vec<&StreamName> = keys.iter().collect();
            engine.decide(&keys, rule).map(|(found, _)| found)
        })
        .await
    }

    /// Decides on what has happened and cannot be had again: what an agent said, what became of a try. A store that takes
    /// nothing for a while is asked again, and so is one that does not know whether it took it: `rule` appends nothing
    /// when it did.
    async fn record<T: Send + 'static>(
        &self,
        keys: Vec<StreamName>,
        rule: impl FnMut(&Stage<'_>, &mut Batch<'_>) -> Result<T> + Clone + Send + 'static,
    ) -> Result<T> {
        self.again(ErrorKind::may_pass, move || self.decide(keys.clone(), rule.clone())).await
    }

    /// Asks until the answer is another than one of these errors: as long as it takes if this worker stays, else a few times.
    async fn again<T, F: Future<Output = Result<T>>>(
        &self,
        passes: fn(&ErrorKind) -> bool,
        mut ask: impl FnMut() -> F,
    ) -> Result<T> {
        let mut failed = 0;
        loop {
            match ask().await {
                Err(error) if passes(error.kind()) => {
                    self.tell(&error);
                    if !self.may_ask_again(failed).await {
                        return Err(error);
                    }
                    failed += 1;
                }
                other => return other,
            }
        }
    }

    /// Waits for a store that had said no so many times before it did now. Whether it may be asked again.
    async fn may_ask_again(&self, failed: usize) -> bool {
        let stays = self.stays.clone().filter(|stop| !*stop.borrow());
        let Some(wait) = wait_after(failed, stays.is_some()) else { return false };
        match stays {
            // Who is told to leave meanwhile asks at once, and then as one that leaves.
            Some(mut stop) => tokio::select! {
                Ok(_) = stop.wait_for(|stop| *stop) => {}
                () = tokio::time::sleep(wait) => {}
            },
            None => tokio::time::sleep(wait).await,
        }
        true
    }

    fn claimer(&self, now: Timestamp, token_sha256: &str, limit_seconds: u64) -> Claimer {
        let stands = match limit_seconds {
            0 => LEASE_OPEN,
            seconds => Duration::from_secs(seconds).saturating_add(LEASE_BEYOND),
        };
        Claimer {
            worker: self.name.clone(),
            pid: self.identity.pid,
            process_start: self.identity.start.clone(),
            boot_id: self.identity.boot_id.clone(),
            host: self.machine.host.clone(),
            lease_until: now.plus(stands),
            token_sha256: token_sha256.to_owned(),
        }
    }
}

/// Does what may block on a thread for that.
async fn blocking<T: Send + 'static>(
    what: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(what).await;
    done.unwrap_or_else(|e| {
        Err(Error::new(ErrorKind::Unavailable, "a thread of the worker broke off").caused_by(e))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a worker that stays waits for the store as long as it takes, and another one a few seconds. Method: the waits
    /// after so many refusals.
    #[test]
    fn waits() {
        let waits = |stays| [0, 3, 4, 1_000].map(|failed| wait_after(failed, stays));
        let [first, .., last] = ASK_AGAIN.map(Some);
        assert_eq!(waits(true), [first, last, last, last]);
        assert_eq!(waits(false), [first, last, None, None]);
    }
}
