//! The end of a run: what it said, its one end, and what follows from it, all in one batch. Nothing that follows can get
//! lost between, and nothing follows twice.

use crate::error::Result;
use crate::id::{EventId, StreamName};
use crate::session::event::{
    Announce, Event, Json, RunFinished, RunKind, RunRequested, RunStatus, Tokens as Usage, Turn,
    run_stream,
};
use crate::session::silent::{ControlWord, Lane, Silence};
use crate::session::work::Job;

use super::exchange;
use super::prompt;
use super::rules::{AnnounceWay, Rules};
use super::stage::{Batch, Stage};
use super::way::{Carried, deliver};

/// How a run ended, from facts.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// How.
    pub status: RunStatus,
    /// A code that says more.
    pub reason: Option<String>,
    /// The process's exit code.
    pub exit: Option<i32>,
    /// The number of the signal that ended the process.
    pub signal: Option<i32>,
    /// How long it ran, in milliseconds.
    pub runtime_ms: u64,
    /// Tokens used.
    pub tokens: Option<Usage>,
    /// What it cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
    /// The id that the agent gives its own session.
    pub agent_session_id: Option<String>,
    /// What went wrong, in words.
    pub detail: Option<String>,
    /// The end of the diagnostics.
    pub stderr_tail: Option<String>,
    /// What was said, in order: turns of the assistant, and what tools answered. Their part and run are filled in.
    pub turns: Vec<Turn>,
    /// The reply as text, and which of the turns holds it.
    pub reply: Option<(usize, String)>,
}

impl End {
    /// An end without any output.
    #[must_use]
    pub fn without_output(status: RunStatus, reason: &str) -> Self {
        Self {
            status,
            reason: Some(reason.to_owned()),
            exit: None,
            signal: None,
            runtime_ms: 0,
            tokens: None,
            cost_micros: None,
            agent_session_id: None,
            detail: None,
            stderr_tail: None,
            turns: Vec::new(),
            reply: None,
        }
    }

    /// A reply in one turn.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        use crate::session::event::{Ingress, Role};
        let content = Json::of(text).unwrap_or_else(|_| Json::null());
        self.turns.push(Turn::new("", Role::Assistant, Ingress::Internal, content));
        self.reply = Some((self.turns.len() - 1, text.to_owned()));
        self
    }
}

/// What was said before, for those that are told it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// The message or the task that began it.
    pub request: String,
    /// The first reply.
    pub first_reply: String,
    /// The last reply before this run's.
    pub last_reply: String,
}

/// What a reply means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// There is none, or it says nothing.
    Nothing,
    /// Nothing, on purpose.
    Silent,
    /// No further round, or no announce.
    Skips(ControlWord),
    /// Something.
    Text(&'a str),
}

impl<'a> Said<'a> {
    pub(super) fn of(reply: Option<&'a str>, rules: &Rules, kind: RunKind) -> Self {
        let Some(text) = reply else { return Self::Nothing };
        if let Some(word) = ControlWord::of(text) {
            return Self::Skips(word);
        }
        match Silence::of(text, &rules.silent, lane(kind)) {
            Silence::Silent { .. } => Self::Silent,
            Silence::Empty => Self::Nothing,
            Silence::Says { .. } => Self::Text(text),
        }
    }

    /// The code of why nothing is told.
    pub(super) const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Nothing => Some("empty"),
            Self::Silent => Some("silent"),
            Self::Skips(ControlWord::ReplySkip) => Some("reply_skip"),
            Self::Skips(ControlWord::AnnounceSkip) => Some("announce_skip"),
            Self::Text(_) => None,
        }
    }
}

const fn lane(kind: RunKind) -> Lane {
    match kind {
        RunKind::Watch => Lane::Background,
        _ => Lane::Foreground,
    }
}

/// Whether a run came to its end now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// With this batch.
    Now,
    /// Before, or somebody else has it: nothing is appended.
    Before,
}

/// Ends a run. `claim` is the position of the claim under which it ran; `None` for a run that nobody had claimed.
///
/// # Errors
/// `InvalidInput` for content that no event can hold.
pub fn finish(
    stage: &Stage<'_>,
    batch: &mut Batch<'_>,
    rules: &Rules,
    (run_id, claim): (&str, Option<u64>),
    (end, earlier): (&End, &Earlier),
) -> Result<Finished> {
    let Some(run) = stage.work.run(run_id) else { return Ok(Finished::Before) };
    if run.claim.as_ref().map(|claim| claim.seq) != claim {
        return Ok(Finished::Before);
    }
    batch.flows(flow_of(run));
    let cause = run.request.parse().ok();
    let reply = end.reply.as_ref().map(|(_, text)| text.as_str());
    let said = Said::of(reply, rules, run.kind);
    let reply_seq = turns(batch, run, end, rules, cause)?;
    let finished = RunFinished {
        at: None,
        run_id: run.run_id.clone(),
        status: end.status,
        reason: end.reason.clone(),
        exit: end.exit,
        signal: end.signal,
        runtime_ms: end.runtime_ms,
        tokens: end.tokens.clone(),
        cost_micros: end.cost_micros,
        reply_seq,
        agent_session_id: end.agent_session_id.clone(),
        detail: end.detail.clone(),
        stderr_tail: end.stderr_tail.clone(),
    };
    let stream = run_stream(&run.run_id)?;
    let ended = batch.add(stream.as_str(), &Event::RunFinished(finished), cause)?;
    let cause = Some(ended.id);
    let close = Close { stage, rules, run, end, earlier, said, reply_seq, cause };
    match run.kind {
        RunKind::Ask | RunKind::Webhook | RunKind::Watch if run.deliver => close.deliver(batch)?,
        RunKind::Ask | RunKind::Webhook | RunKind::Watch => {}
        RunKind::Send | RunKind::Reply => exchange::next(&close, batch)?,
        RunKind::Spawn => close.announce(batch)?,
        RunKind::Announce if close.is_step() => {}
        RunKind::Announce => close.deliver(batch)?,
    }
    Ok(Finished::Now)
}

/// The flow of a run.
pub(super) fn flow_of(run: &Job) -> Option<EventId> {
    run.flow.as_ref().and_then(|flow| flow.parse().ok())
}

/// Adds what was said; returns the position of the reply.
fn turns(
    batch: &mut Batch<'_>,
    run: &Job,
    end: &End,
    rules: &Rules,
    cause: Option<EventId>,
) -> Result<Option<u64>> {
    let mut reply_seq = None;
    for (index, turn) in end.turns.iter().enumerate() {
        let mut turn = turn.clone();
        turn.session_id.clone_from(&run.session_id);
        turn.run_id = Some(run.run_id.clone());
        let reply = end.reply.as_ref().filter(|(at, _)| *at == index);
        if let Some((_, text)) = reply {
            let silence = Silence::of(text, &rules.silent, lane(run.kind));
            turn.silent = silence.token().map(str::to_owned);
        }
        let added = batch.add(&run.session_key, &Event::Turn(turn), cause)?;
        if reply.is_some() {
            reply_seq = Some(added.seq);
        }
    }
    Ok(reply_seq)
}

/// A run that is coming to its end, for what follows.
pub(super) struct Close<'a> {
    pub(super) stage: &'a Stage<'a>,
    pub(super) rules: &'a Rules,
    pub(super) run: &'a Job,
    pub(super) end: &'a End,
    pub(super) earlier: &'a Earlier,
    pub(super) said: Said<'a>,
    pub(super) reply_seq: Option<u64>,
    pub(super) cause: Option<EventId>,
}

impl Close<'_> {
    /// The reply, or that there is none, goes to the channel of the session.
    fn deliver(&self, batch: &mut Batch<'_>) -> Result<()> {
        let Ok(key) = StreamName::new(self.run.session_key.as_str()) else { return Ok(()) };
        let carried = match self.end.status {
            RunStatus::Ok => Carried::Reply { seq: self.reply_seq, said: self.said },
            // Nobody has asked for an announce: that there is none is nothing to tell people.
            _ if self.run.kind == RunKind::Announce => Carried::Nothing("error"),
            _ => Carried::Failure,
        };
        deliver(self.stage, batch, self.rules, &key, (&self.run.run_id, carried, self.cause))
    }

    /// Whether it was the step in which a child words its announce.
    fn is_step(&self) -> bool {
        let outgoing = self.stage.work.outgoing();
        let steps = outgoing.iter().filter_map(|(_, outgoing)| outgoing.step.as_ref());
        steps.into_iter().any(|step| step.run_id == self.run.run_id)
    }

    /// A child tells its requester what came of its task.
    fn announce(&self, batch: &mut Batch<'_>) -> Result<()> {
        let Some(terms) = &self.run.terms else { return Ok(()) };
        let announce = Announce {
            at: None,
            run_id: self.run.run_id.clone(),
            child_key: self.run.session_key.clone(),
            attempt_id: None,
            sink: None,
            reason: None,
            turn_seq: None,
            target: terms.origin.clone().map(Into::into),
            text: None,
        };
        batch.add(&terms.requester, &Event::AnnounceRequested(announce), self.cause)?;
        if !self.words_it_itself() {
            return Ok(());
        }
        let step = batch.id(0).to_string();
        let result = self.end.reply.as_ref().map_or("", |(_, text)| text.as_str());
        let outcome = self.end.status.as_str();
        let preamble = prompt::result(&step, &self.earlier.request, outcome, result);
        let request = RunRequested {
            kind: RunKind::Announce,
            timeout_seconds: self.rules.announce_timeout,
            preamble: Some(preamble),
            ..follow_up(self.run, &step, &self.run.run_id)
        };
        let stream = run_stream(&step)?;
        batch.add(stream.as_str(), &Event::RunRequested(request), self.cause)?;
        Ok(())
    }

    fn words_it_itself(&self) -> bool {
        let over = matches!(self.end.status, RunStatus::Ok | RunStatus::Error | RunStatus::Timeout);
        let resumes = self.rules.agents.get(&self.run.agent_id) == Some(&true);
        over && match self.rules.announce {
            AnnounceWay::Step => self.rules.agents.contains_key(&self.run.agent_id),
            AnnounceWay::Auto => resumes && self.end.agent_session_id.is_some(),
            AnnounceWay::Result => false,
        }
    }
}

/// A run on the same session that follows another up.
pub(super) fn follow_up(run: &Job, run_id: &str, follows: &str) -> RunRequested {
    RunRequested {
        at: None,
        run_id: run_id.to_owned(),
        session_key: run.session_key.clone(),
        session_id: run.session_id.clone(),
        kind: run.kind,
        agent_id: run.agent_id.clone(),
        requester_key: run.requester_key.clone(),
        requester_session_id: None,
        chain_id: run.chain_id.clone(),
        hop: run.hop,
        round: None,
        timeout_seconds: 0,
        deliver: false,
        idempotency_key: None,
        follows_run_id: Some(follows.to_owned()),
        model: run.model.clone(),
        thinking: run.thinking.clone(),
        turn_seq: None,
        preamble: None,
        imported: None,
    }
}
