//! Runs: every run that was ever asked for, how far it came, who has it, and its one end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::format::Fields;
use crate::projection::Projection;
use crate::store::Damage;

use super::event::{
    Event, RunClaimed, RunFinished, RunKind, RunRequested, RunStatus, Tokens, words,
};
use super::moment::Moment;

words! {
    /// How far a run came.
    pub enum RunState {
        /// It is wanted, and nobody has it.
        Requested = "requested",
        /// A worker has it.
        Claimed = "claimed",
        /// Its process was started.
        Running = "running",
        /// It ended well.
        Ok = "ok",
        /// It ended with an error.
        Error = "error",
        /// It went past its time limit.
        Timeout = "timeout",
        /// It was killed on request.
        Killed = "killed",
        /// It was stopped with its worker or its machine.
        Interrupted = "interrupted",
        /// Its process was gone.
        Lost = "lost",
    }
}

impl RunState {
    /// Whether it has not ended.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Claimed | Self::Running)
    }
}

impl From<RunStatus> for RunState {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Ok => Self::Ok,
            RunStatus::Error => Self::Error,
            RunStatus::Timeout => Self::Timeout,
            RunStatus::Killed => Self::Killed,
            RunStatus::Interrupted => Self::Interrupted,
            RunStatus::Lost => Self::Lost,
        }
    }
}

/// A run. What an event would say that cannot be read is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub run_id: String,
    /// How far it came.
    pub state: RunState,
    /// What caused it.
    pub kind: Option<RunKind>,
    /// The session that it works on.
    pub session_key: Option<String>,
    /// The part that it works on.
    pub session_id: Option<String>,
    /// The agent that does it.
    pub agent_id: Option<String>,
    /// The session that asked for it.
    pub requester_key: Option<String>,
    /// The chain of sends that it belongs to.
    pub chain_id: Option<String>,
    /// How many sends lie before it in the chain.
    pub hop: Option<u32>,
    /// The round of an exchange, from 1.
    pub round: Option<u32>,
    /// The run that it follows up.
    pub follows_run_id: Option<String>,
    /// The time limit in seconds; 0 for none.
    pub timeout_seconds: Option<u64>,
    /// Whether it is history of another program.
    pub imported: bool,
    /// When it was asked for.
    pub requested: Option<Moment>,
    /// When it was claimed last.
    pub claimed: Option<Moment>,
    /// How often it was claimed.
    pub claims: u64,
    /// Who claimed it last.
    pub owner: Option<Owner>,
    /// When its process was started last.
    pub started: Option<Moment>,
    /// How often it told something.
    pub outputs: u64,
    /// How often it told something after its end, which changes nothing.
    pub late_outputs: u64,
    /// Who first wanted it to end.
    pub kill: Option<Kill>,
    /// When it ended.
    pub finished: Option<Moment>,
    /// How it ended.
    pub end: Option<End>,
    /// Ends that were told after the first, which is the one that counts.
    pub later_ends: u64,
}

/// The worker that claimed a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The worker.
    pub worker: String,
    /// The machine's name.
    pub host: String,
    /// The worker's process.
    pub pid: u32,
    /// Until when the claim stands without a sign of life.
    pub lease_until: Timestamp,
}

/// A wish that a run end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kill {
    /// When.
    #[serde(flatten)]
    pub moment: Moment,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// A code that says more.
    pub reason: Option<String>,
    /// The process's exit code.
    pub exit: Option<i32>,
    /// The number of the signal that ended the process.
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds.
    pub runtime_ms: u64,
    /// Tokens used.
    pub tokens: Option<Tokens>,
    /// What it cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
    /// The position of the turn that is the reply.
    pub reply_seq: Option<u64>,
    /// What went wrong, in words.
    pub detail: Option<String>,
}

impl Run {
    fn new(run_id: String) -> Self {
        Self {
            run_id,
            state: RunState::Requested,
            kind: None,
            session_key: None,
            session_id: None,
            agent_id: None,
            requester_key: None,
            chain_id: None,
            hop: None,
            round: None,
            follows_run_id: None,
            timeout_seconds: None,
            imported: false,
            requested: None,
            claimed: None,
            claims: 0,
            owner: None,
            started: None,
            outputs: 0,
            late_outputs: 0,
            kill: None,
            finished: None,
            end: None,
            later_ends: 0,
        }
    }

    /// The first that is known of it.
    #[must_use]
    pub fn began(&self) -> Option<Moment> {
        let kill = self.kill.as_ref().map(|kill| kill.moment);
        [self.requested, self.claimed, self.started, kill, self.finished]
            .into_iter()
            .flatten()
            .min()
    }

    /// How long it took from the first that is known of it to its end, or takes up to a moment.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        let Some(began) = self.began() else { return Duration::ZERO };
        let end = self.finished.map_or(now, |end| end.at);
        let micros = end.as_micros().saturating_sub(began.at.as_micros());
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    fn reaches(&mut self, state: RunState) {
        if self.state.is_open() {
            self.state = self.state.max(state);
        }
    }

    fn requested(&mut self, event: RunRequested, moment: Moment) {
        if self.requested.is_some() {
            return;
        }
        self.requested = Some(moment);
        self.kind = Some(event.kind);
        self.session_key = Some(event.session_key);
        self.session_id = Some(event.session_id);
        self.agent_id = Some(event.agent_id);
        self.requester_key = event.requester_key;
        self.chain_id = Some(event.chain_id);
        self.hop = Some(event.hop);
        self.round = event.round;
        self.follows_run_id = event.follows_run_id;
        self.timeout_seconds = Some(event.timeout_seconds);
        self.imported = event.imported == Some(true);
    }

    fn claimed(&mut self, event: RunClaimed, moment: Moment) {
        self.claims += 1;
        self.claimed = Some(moment);
        let RunClaimed { worker, host, pid, lease_until, .. } = event;
        self.owner = Some(Owner { worker, host, pid, lease_until });
        self.reaches(RunState::Claimed);
    }

    fn finished(&mut self, event: RunFinished, moment: Moment) {
        if self.finished.is_some() {
            self.later_ends += 1;
            return;
        }
        self.finished = Some(moment);
        self.state = event.status.into();
        self.end = Some(End {
            reason: event.reason,
            exit: event.exit,
            signal: event.signal,
            runtime_ms: event.runtime_ms,
            tokens: event.tokens,
            cost_micros: event.cost_micros,
            reply_seq: event.reply_seq,
            detail: event.detail,
        });
    }
}

/// All runs, by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs(BTreeMap<String, Run>);

impl Runs {
    /// The types of the events that it is folded from.
    pub const TYPES: [&'static str; 6] = [
        "run.requested",
        "run.claimed",
        "run.started",
        "run.output",
        "run.kill_requested",
        "run.finished",
    ];

    /// The run of an id.
    #[must_use]
    pub fn get(&self, run_id: &str) -> Option<&Run> {
        self.0.get(run_id)
    }

    /// The runs whose ids begin so, by id.
    pub fn beginning<'a>(&'a self, with: &'a str) -> impl Iterator<Item = &'a Run> {
        let from =
            self.0.range::<str, _>((std::ops::Bound::Included(with), std::ops::Bound::Unbounded));
        from.take_while(move |(id, _)| id.starts_with(with)).map(|(_, run)| run)
    }

    /// All runs in the order in which they began.
    #[must_use]
    pub fn in_order(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.0.values().collect();
        runs.sort_by_key(|run| run.began().map_or(u64::MAX, |moment| moment.seq));
        runs
    }

    fn change(&mut self, run_id: String, change: impl FnOnce(&mut Run)) {
        change(self.0.entry(run_id.clone()).or_insert_with(|| Run::new(run_id)));
    }
}

impl Projection for Runs {
    fn apply(&mut self, fields: &Fields<'_>) {
        if !Self::TYPES.contains(&fields.kind) {
            return;
        }
        let moment = Moment::of(fields);
        match Event::told_by(fields) {
            Some(Event::RunRequested(e)) => {
                self.change(e.run_id.clone(), |run| run.requested(e, moment));
            }
            Some(Event::RunClaimed(e)) => {
                self.change(e.run_id.clone(), |run| run.claimed(e, moment));
            }
            Some(Event::RunStarted(e)) => self.change(e.run_id, |run| {
                run.started = Some(moment);
                run.reaches(RunState::Running);
            }),
            Some(Event::RunOutput(e)) => self.change(e.run_id, |run| {
                run.outputs += 1;
                run.late_outputs += u64::from(run.finished.is_some());
            }),
            Some(Event::RunKillRequested(e)) => self.change(e.run_id, |run| {
                run.kill.get_or_insert(Kill { moment, by: e.by, reason: e.reason });
            }),
            Some(Event::RunFinished(e)) => {
                self.change(e.run_id.clone(), |run| run.finished(e, moment));
            }
            _ => {}
        }
    }

    fn gap(&mut self, _: &Damage) {}
}

#[cfg(test)]
mod tests;
