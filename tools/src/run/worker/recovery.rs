//! Runs whose workers are gone: they are ended, or taken on.

use std::sync::Arc;
use std::time::Duration;

use annals_engine::Result;
use annals_engine::session::event::RunStatus;
use annals_engine::session::run::{Batch, Claimed, End, Stage, claim_again};
use annals_engine::session::work::{Claim, Job as Wanted, Work};

use super::super::reaper;
use super::super::spec::OnLost;
use super::job;
use super::shift::Shift;

/// How long processes that a dead worker left have to end by themselves.
const GRACE: Duration = Duration::from_secs(2);

/// So often a run may be claimed.
const CLAIMS_MAX: u32 = 2;

/// Whose runs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Those that this worker claimed itself, in a shift that broke off: its process lives, so that nobody else would take
    /// them for lost.
    Own,
    /// Those of all, which only one may do at a time: what a run left running is ended first.
    Anybodys,
}

impl Shift<'_> {
    /// Ends runs that nobody is at any more, or takes them on, as their agents are configured. Whether there were any.
    pub(super) async fn recover(&mut self, work: &Arc<Work>, whose: Lost) -> Result<bool> {
        let mut did = false;
        for run in work.runs() {
            let Some(claim) = run.claim.as_ref() else { continue };
            let own = self.is_own(claim);
            if own && self.runs.contains_key(&run.run_id) || !own && whose == Lost::Own {
                continue;
            }
            let Some(status) = self.fate(claim) else { continue };
            did = true;
            reaper::reap(&run.run_id, &self.worker.setup.store, GRACE).await;
            self.take_or_end(run, claim, status).await?;
        }
        Ok(did)
    }

    /// Whether it was this worker that claimed.
    pub(super) fn is_own(&self, claim: &Claim) -> bool {
        claim.worker == self.worker.name
    }

    /// How a claimed run ended, if nobody is at it any more.
    pub(super) fn fate(&self, claim: &Claim) -> Option<RunStatus> {
        if self.is_own(claim) {
            // It was this worker's, and is not among its runs.
            return Some(RunStatus::Interrupted);
        }
        self.worker.machine.fate(claim, self.worker.engine.clock().now())
    }

    async fn take_or_end(
        &mut self,
        run: &Arc<Wanted>,
        claim: &Claim,
        status: RunStatus,
    ) -> Result<()> {
        let spec = self.worker.setup.agents.get(&run.agent_id);
        let again = spec.is_some_and(|spec| spec.on_lost == OnLost::Retry);
        if again && run.claims < CLAIMS_MAX && run.kill.is_none() {
            let (token, hash) = job::token();
            let now = self.worker.engine.clock().now();
            let who = self.worker.claimer(now, &hash, run.timeout_seconds);
            let (id, seq) = (run.run_id.clone(), claim.seq);
            let rule = move |stage: &Stage<'_>, batch: &mut Batch<'_>| {
                claim_again(stage, batch, &who, (&id, seq))
            };
            if let Some(claimed) = self.worker.decide(Vec::new(), rule).await? {
                self.begin(claimed, token);
            }
            return Ok(());
        }
        let reason = match (&run.kill, status) {
            (Some(_), _) => "kill",
            (None, RunStatus::Interrupted) => "restart",
            (None, _) => "worker_gone",
        };
        let status = if run.kill.is_some() { RunStatus::Killed } else { status };
        let started = run.started_at.map_or(0, |at| {
            let now = self.worker.engine.clock().now();
            u64::try_from(now.as_millis().saturating_sub(at.as_millis())).unwrap_or(0)
        });
        let end = End { runtime_ms: started, ..End::without_output(status, reason) };
        let claimed = Claimed { run: Arc::clone(run), claim: claim.seq };
        self.worker.finish(&claimed, end).await
    }
}
