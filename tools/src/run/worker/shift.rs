//! One time that a worker works: the loop that looks at the work at hand, and what it keeps meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::Timestamp;
use annals_engine::engine::Role;
use annals_engine::session::event::RunKind;
use annals_engine::session::run::{Batch, Stage, claim};
use annals_engine::session::work::{Job, Waybill, Work};
use annals_engine::{Error, ErrorKind, Result};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::super::runner::Stop;
use super::recovery::Lost;
use super::{Until, Worker, blocking, job};

/// So often a worker looks, whether anything woke it or not.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What a task of a shift tells when it is done.
#[derive(Debug)]
pub(super) enum Done {
    Run(String),
    Sending(Waybill),
}

/// One time that a worker works.
pub(super) struct Shift<'a> {
    pub(super) worker: &'a Worker,
    pub(super) until: Until,
    stop: watch::Receiver<bool>,
    wakes: watch::Receiver<u64>,
    pub(super) role: Option<Role>,
    /// The runs that are at work here, and how each is told to stop.
    pub(super) runs: BTreeMap<String, watch::Sender<Option<Stop>>>,
    /// What is being sent.
    pub(super) sending: BTreeSet<Waybill>,
    pub(super) tasks: JoinSet<Result<()>>,
    pub(super) done: mpsc::UnboundedSender<Done>,
    finished: mpsc::UnboundedReceiver<Done>,
    next_upkeep: Option<Timestamp>,
    /// Whether a try may stand that a task of this shift made and could not tell the end of.
    pub(super) settles: bool,
}

/// So long a shift waits when the store said no, the first time and the next ones; further ones as long as the last.
const REST: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_secs(1), Duration::from_secs(5)];

/// What a look at the work at hand came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    /// There may be more.
    On,
    /// The shift is over.
    Over,
}

impl<'a> Shift<'a> {
    pub(super) fn new(
        worker: &'a Worker,
        (until, stop): (Until, watch::Receiver<bool>),
        wakes: watch::Receiver<u64>,
    ) -> Self {
        let (done, finished) = mpsc::unbounded_channel();
        Self {
            worker,
            until,
            stop,
            wakes,
            role: None,
            runs: BTreeMap::new(),
            sending: BTreeSet::new(),
            tasks: JoinSet::new(),
            done,
            finished,
            next_upkeep: None,
            settles: false,
        }
    }

    /// Works until the shift is over; tasks that are at work then end with it.
    pub(super) async fn until_over(mut self) -> Result<()> {
        let result = self.work().await;
        self.tasks.shutdown().await;
        result
    }
}

impl Shift<'_> {
    async fn work(&mut self) -> Result<()> {
        let mut failed = 0;
        loop {
            match self.pass().await {
                Ok(Passed::On) => failed = 0,
                Ok(Passed::Over) => return Ok(()),
                Err(error) => {
                    let leaves = self.until != Until::Stopped || *self.stop.borrow();
                    let enough = leaves && failed >= REST.len();
                    if enough || !error.kind().may_pass() {
                        return Err(error);
                    }
                    self.worker.tell(&error);
                    self.rest(failed).await;
                    failed += 1;
                }
            }
        }
    }

    /// Waits for a store that said no. What tasks could not record stands open: it is looked after in the next pass.
    async fn rest(&mut self, failed: usize) {
        self.hear();
        self.settles = true;
        let wait = REST.get(failed).or(REST.last()).copied().unwrap_or_default();
        let may_stop = self.stop.has_changed().is_ok();
        tokio::select! {
            _ = self.stop.changed(), if may_stop => {}
            () = tokio::time::sleep(wait) => {}
        }
    }

    /// Looks at the work at hand once, and does what can be done.
    async fn pass(&mut self) -> Result<Passed> {
        let stopping = *self.stop.borrow();
        let seen = *self.wakes.borrow_and_update();
        self.take_role().await?;
        let work = self.work_at_hand().await?;
        self.pass_on_wishes(&work, stopping);
        let mut did = false;
        if !stopping {
            did |= self.look_after(&work).await?;
            did |= self.claim_runs(&work).await?;
        }
        if stopping && self.runs.is_empty() && self.sending.is_empty() {
            return Ok(Passed::Over);
        }
        if did {
            self.collect().await?;
            return Ok(Passed::On);
        }
        if !stopping && self.takes_what_is_left(&work).await? {
            return Ok(Passed::On);
        }
        let had_role = self.role.is_some();
        if !stopping && self.may_go_home(&work, had_role) {
            // Whoever asks for work, or leaves some, from here on finds nobody home; who did before is seen below.
            self.role = None;
            let again = self.work_at_hand().await?;
            let over = *self.wakes.borrow() == seen && self.may_go_home(&again, had_role);
            return Ok(if over { Passed::Over } else { Passed::On });
        }
        self.wait(&work).await?;
        Ok(Passed::On)
    }

    pub(super) async fn work_at_hand(&self) -> Result<Arc<Work>> {
        let engine = self.worker.engine.clone();
        blocking(move || Ok(Arc::new(engine.work()?.state().clone()))).await
    }

    async fn take_role(&mut self) -> Result<()> {
        if self.role.is_some() || self.waits().await? {
            return Ok(());
        }
        let engine = self.worker.engine.clone();
        self.role = blocking(move || engine.take_worker_role()).await?;
        self.settles |= self.role.is_some();
        Ok(())
    }

    /// Takes the role after all, where something is on its way out that it would else leave to others. A process that died
    /// just as it started another has it for a moment longer, and so has who only looks whether anybody has it.
    async fn takes_what_is_left(&mut self, work: &Work) -> Result<bool> {
        let leaves =
            self.until == Until::Idle && self.role.is_none() && !work.outgoing().is_empty();
        if !leaves || !self.runs.is_empty() {
            return Ok(false);
        }
        for _ in 0..LOOKS {
            tokio::time::sleep(BETWEEN_LOOKS).await;
            self.take_role().await?;
            if self.role.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the run that this worker is here for has not ended.
    async fn waits(&self) -> Result<bool> {
        match &self.until {
            Until::Ended(run_id) => Ok(self.work_at_hand().await?.run(run_id).is_some()),
            Until::Stopped | Until::Idle => Ok(false),
        }
    }

    /// Tells runs at work here that somebody wants them to end.
    fn pass_on_wishes(&self, work: &Work, stopping: bool) {
        for (run_id, stop) in &self.runs {
            let killed = work.run(run_id).is_some_and(|run| run.kill.is_some());
            let wish = match (killed, stopping) {
                (true, _) => Some(Stop::Kill),
                (false, true) => Some(Stop::Shutdown),
                (false, false) => None,
            };
            if wish.is_some() && stop.borrow().is_none() {
                stop.send_replace(wish);
            }
        }
    }

    /// What belongs to nobody else: its own runs that nobody is at, and with the role all the rest. Whether anything was
    /// done.
    async fn look_after(&mut self, work: &Arc<Work>) -> Result<bool> {
        if self.role.is_none() {
            return Ok(self.recover(work, Lost::Own).await? || self.clear_the_way(work).await?);
        }
        if self.settles {
            self.settle_tries_of_nobody().await?;
            self.settles = false;
        }
        let mut did = self.recover(work, Lost::Anybodys).await?;
        did |= self.send_what_is_due(work);
        let now = self.worker.engine.clock().now();
        if self.next_upkeep.is_none_or(|at| at <= now) && self.until == Until::Stopped {
            self.next_upkeep = Some(now.plus(UPKEEP_EVERY));
            let (engine, setup) = (self.worker.engine.clone(), Arc::clone(&self.worker.setup));
            let kept = blocking(move || {
                engine.keep_up(&setup.config.time_rules(), setup.config.limits()).map(drop)
            });
            match kept.await {
                // What cannot be archived is left alone, and the next time it is told again.
                Err(error) if error.kind().is_about_one_thing() => self.worker.tell(&error),
                other => other?,
            }
        }
        Ok(did)
    }

    /// Ends what a dead worker left on the session of the run that is waited for, be it that run, where nobody else does.
    /// Whether there was any.
    async fn clear_the_way(&mut self, work: &Arc<Work>) -> Result<bool> {
        let Until::Ended(run_id) = &self.until else { return Ok(false) };
        let Some(run) = work.run(run_id) else { return Ok(false) };
        let claims = work.runs_on(&run.session_key).filter_map(|run| run.claim.as_ref());
        if !claims.into_iter().any(|claim| !self.is_own(claim) && self.fate(claim).is_some()) {
            return Ok(false);
        }
        let engine = self.worker.engine.clone();
        let Some(role) = blocking(move || engine.take_worker_role()).await? else {
            return Ok(false);
        };
        let did = self.recover(work, Lost::Anybodys).await;
        drop(role);
        did
    }

    /// Claims runs as long as there is room for them.
    async fn claim_runs(&mut self, work: &Work) -> Result<bool> {
        let until = match &self.until {
            Until::Ended(run_id) => match wanted(work, run_id) {
                Some(run) => Some((run.session_key.clone(), run.seq)),
                None => return Ok(false),
            },
            Until::Stopped | Until::Idle => None,
        };
        // Runs of a session are serial: those before the one that is waited for have to be made as well.
        let fits = move |run: &Job| {
            until.as_ref().is_none_or(|(key, seq)| run.session_key == *key && run.seq <= *seq)
        };
        let mut did = false;
        while self.runs.len() < self.worker.setup.runs_max {
            // The look without the lock spares an append that would find nothing.
            let next = work.next_claim(|run| fits(run) && !self.runs.contains_key(&run.run_id));
            if next.is_none() {
                return Ok(did);
            }
            let (token, hash) = job::token();
            let (worker, wanted) = (self.worker.clone(), fits.clone());
            // The lease is that of the run which comes first under the lock.
            let rule = move |stage: &Stage<'_>, batch: &mut Batch<'_>| {
                let next = stage.work.next_claim(&wanted);
                let limit = next.map_or(0, |run| run.timeout_seconds);
                let who = worker.claimer(stage.now, &hash, limit);
                claim(stage, batch, &who, &wanted)
            };
            let Some(claimed) = self.worker.decide(Vec::new(), rule).await? else { return Ok(did) };
            did = true;
            self.begin(claimed, token);
            if self.until != Until::Stopped && self.until != Until::Idle {
                break;
            }
            if self.work_at_hand().await?.next_claim(&fits).is_none() {
                break;
            }
        }
        Ok(did)
    }

    /// Whether nothing is left that this worker is here for.
    fn may_go_home(&self, work: &Work, has_role: bool) -> bool {
        let at_rest = self.runs.is_empty() && self.sending.is_empty();
        match &self.until {
            Until::Stopped => false,
            // Runs that others have are theirs, and so is what goes out when another has the role.
            Until::Idle => {
                // One that nobody is at is ended by the one with the role: that there is one is seen when it has ended.
                let nobodys = |run: &&Arc<Job>| match &run.claim {
                    None => true,
                    Some(claim) => !self.is_own(claim) && self.fate(claim).is_some(),
                };
                let ours = work.runs().iter().any(nobodys);
                let goes_out = has_role && !work.outgoing().is_empty();
                at_rest && !ours && !goes_out
            }
            Until::Ended(run_id) => at_rest && wanted(work, run_id).is_none(),
        }
    }

    /// Waits until something has happened, or it is time for the next try, or to look again.
    async fn wait(&mut self, work: &Work) -> Result<()> {
        let now = self.worker.engine.clock().now();
        let tries = work.outgoing().into_iter().filter_map(|(_, out)| work.next_try(out));
        let next = tries.min().map_or(LOOK_EVERY, |at| {
            let micros = at.as_micros().saturating_sub(now.as_micros()).max(MICROS_LEAST);
            Duration::from_micros(micros.unsigned_abs()).min(LOOK_EVERY)
        });
        // Who cannot say any more that it is to stop does not wake it.
        let may_stop = self.stop.has_changed().is_ok();
        tokio::select! {
            _ = self.wakes.changed() => {}
            _ = self.stop.changed(), if may_stop => {}
            Some(done) = self.finished.recv() => self.forget(&done),
            () = tokio::time::sleep(next) => {}
        }
        self.collect().await
    }

    /// Takes what tasks have told.
    fn hear(&mut self) {
        while let Ok(done) = self.finished.try_recv() {
            self.forget(&done);
        }
    }

    /// Takes what tasks have told, and the error of the first that has one.
    async fn collect(&mut self) -> Result<()> {
        self.hear();
        while let Some(joined) = self.tasks.try_join_next() {
            joined.unwrap_or_else(|e| {
                Err(Error::new(ErrorKind::Unavailable, "a task of the worker broke off")
                    .caused_by(e))
            })?;
        }
        Ok(())
    }

    fn forget(&mut self, done: &Done) {
        match done {
            Done::Run(run_id) => drop(self.runs.remove(run_id)),
            Done::Sending(waybill) => drop(self.sending.remove(waybill)),
        }
    }
}

/// The run that is waited for, and behind it the step in which a child words what it announces.
fn wanted<'a>(work: &'a Work, run_id: &str) -> Option<&'a Arc<Job>> {
    let step =
        |run: &&Arc<Job>| run.kind == RunKind::Announce && run.follows.as_deref() == Some(run_id);
    work.run(run_id).or_else(|| work.runs().into_iter().find(step))
}

/// A try that is due and was not made waits for something else: it is looked at again after this time.
const MICROS_LEAST: i64 = 200_000;

/// So often is looked whether the role is free after all, before something is left to whoever has it.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// So often what time and the limits archive is recorded.
const UPKEEP_EVERY: Duration = Duration::from_secs(60);
