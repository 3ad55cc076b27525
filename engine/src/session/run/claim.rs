//! Who has a run: the claim that only one worker wins, the start, and the wish that it end.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::session::event::{
    Event, RunClaimed, RunKillRequested, RunStarted, RunStatus, SessionTrimmed, run_stream,
};
use crate::session::work::{Job, Work};

use super::end::{Earlier, End, Finished, finish, flow_of};
use super::rules::Rules;
use super::stage::{Batch, Stage};

/// A worker that claims.
#[derive(Clone, Debug)]
pub struct Claimer {
    /// Its name.
    pub worker: String,
    /// Its process.
    pub pid: u32,
    /// When that process started.
    pub process_start: String,
    /// Which boot of which system.
    pub boot_id: String,
    /// The machine's name.
    pub host: String,
    /// Until when the claim stands without a sign of life.
    pub lease_until: Timestamp,
    /// SHA-256 of the token that the run will call tools with.
    pub token_sha256: String,
}

/// A run that was claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The run as it was before.
    pub run: Arc<Job>,
    /// The position of the claim.
    pub claim: u64,
}

impl Work {
    /// The run that is to be claimed next: the one that was asked for first, of a session that no worker is at work on.
    /// `fits` says which a worker may take.
    #[must_use]
    pub fn next_claim(&self, fits: impl Fn(&Job) -> bool) -> Option<&Arc<Job>> {
        let waiting = self.runs().into_iter().filter(|run| !run.is_claimed());
        // The first of each session goes before its others, whoever may take it.
        let mut sessions = Vec::new();
        for run in waiting {
            if sessions.contains(&run.session_key.as_str()) {
                continue;
            }
            if fits(run) && !self.is_busy(&run.session_key) {
                return Some(run);
            }
            sessions.push(&run.session_key);
        }
        None
    }
}

/// Claims the next run that fits. `None`, and nothing is appended, when there is none.
///
/// # Errors
/// `InvalidInput` for an id that names no stream.
pub fn claim(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    who: &Claimer,
    fits: impl Fn(&Job) -> bool,
) -> Result<Option<Claimed>> {
    let Some(run) = stage.work.next_claim(fits) else { return Ok(None) };
    let claim = add_claim(batch, run, who)?;
    Ok(Some(Claimed { run: Arc::clone(run), claim }))
}

/// Claims a run again whose worker is gone, if it is still the claim at this position that stands.
///
/// # Errors
/// `InvalidInput` for an id that names no stream.
pub fn claim_again(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    who: &Claimer,
    (run_id, claim): (&str, u64),
) -> Result<Option<Claimed>> {
    let Some(run) = stage.work.run(run_id) else { return Ok(None) };
    if run.claim.as_ref().is_none_or(|standing| standing.seq != claim) {
        return Ok(None);
    }
    let claim = add_claim(batch, run, who)?;
    Ok(Some(Claimed { run: Arc::clone(run), claim }))
}

fn add_claim(batch: &mut Batch<'_>, run: &Job, who: &Claimer) -> Result<u64> {
    batch.flows(flow_of(run));
    let claimed = RunClaimed {
        at: None,
        run_id: run.run_id.clone(),
        worker: who.worker.clone(),
        pid: who.pid,
        process_start: who.process_start.clone(),
        boot_id: who.boot_id.clone(),
        host: who.host.clone(),
        lease_until: who.lease_until,
        token_sha256: Some(who.token_sha256.clone()),
    };
    let stream = run_stream(&run.run_id)?;
    let added =
        batch.add(stream.as_str(), &Event::RunClaimed(claimed), run.request.parse().ok())?;
    Ok(added.seq)
}

/// What is recorded before a process is started.
#[derive(Clone, Debug)]
pub struct Starting {
    /// The command and its arguments, secrets masked.
    pub command: Vec<String>,
    /// The folder that it runs in.
    pub cwd: String,
    /// How the window of its context moved.
    pub trimmed: Option<SessionTrimmed>,
}

/// Records that the process of a claimed run is about to start. Returns whether it may: not when the claim does not
/// stand any more, or somebody wants the run to end.
///
/// # Errors
/// `InvalidInput` for a command that no event can hold.
pub fn start(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    (run_id, claim): (&str, u64),
    starting: &Starting,
) -> Result<bool> {
    let run = stage.work.run(run_id);
    let stands = |run: &&Arc<Job>| run.claim.as_ref().is_some_and(|own| own.seq == claim);
    let Some(run) = run.filter(stands).filter(|run| run.kill.is_none()) else { return Ok(false) };
    batch.flows(flow_of(run));
    let cause = run.request.parse().ok();
    if let Some(trimmed) = &starting.trimmed {
        batch.add(&run.session_key, &Event::SessionTrimmed(trimmed.clone()), cause)?;
    }
    let started = RunStarted {
        at: None,
        run_id: run_id.to_owned(),
        command: starting.command.clone(),
        cwd: starting.cwd.clone(),
    };
    batch.add(run_stream(run_id)?.as_str(), &Event::RunStarted(started), cause)?;
    Ok(true)
}

/// What became of the wish that a run end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// Nobody had it: it ended with the wish.
    Ended,
    /// Its worker ends it.
    Asked,
    /// Somebody had asked before.
    AskedBefore,
    /// It had ended before, or was never there.
    NotOpen,
}

/// Asks for the end of a run.
///
/// # Errors
/// `InvalidInput` for a reason that no event can hold.
pub fn kill(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    rules: &Rules,
    run_id: &str,
    (by, reason): (&str, &str),
    earlier: &Earlier,
) -> Result<Killed> {
    let Some(run) = stage.work.run(run_id) else { return Ok(Killed::NotOpen) };
    if run.kill.is_some() {
        return Ok(Killed::AskedBefore);
    }
    batch.flows(flow_of(run));
    let wish = RunKillRequested {
        at: None,
        run_id: run_id.to_owned(),
        by: by.to_owned(),
        reason: reason.to_owned(),
    };
    let stream = run_stream(run_id)?;
    batch.add(stream.as_str(), &Event::RunKillRequested(wish), run.request.parse().ok())?;
    if run.is_claimed() {
        return Ok(Killed::Asked);
    }
    let end = End::without_output(RunStatus::Killed, "kill");
    let ended = finish(stage, batch, rules, (run_id, None), (&end, earlier))?;
    Ok(if ended == Finished::Now { Killed::Ended } else { Killed::NotOpen })
}
