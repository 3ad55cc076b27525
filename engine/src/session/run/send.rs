//! A message from one session to another: the turn in the target, the run that answers it, and the acceptance, in one
//! batch; or the refusal, in the requester's stream.

use crate::error::{Error, ErrorKind, Result};
use crate::id::{EventId, StreamName};
use crate::session::event::{
    Event, Ingress, Json, Provenance, Refusal, Role, RunKind, RunRequested, SendAccepted,
    SessionOpened, Turn, run_stream,
};
use crate::session::index::Row;
use crate::session::work::Job;

use super::prompt::{self, Round, Speaker};
use super::stage::{Batch, Stage};
use super::way::address;

/// Who asks for a run.
#[derive(Clone, Debug)]
pub struct Requester<'a> {
    /// Its session, in whose stream the request is recorded.
    pub key: &'a StreamName,
    /// The run from inside which it asks, if it is one.
    pub run_id: Option<&'a str>,
    /// How its session opens, should it not be open: the chat of the command line, with its first request.
    pub opening: Option<&'a SessionOpened>,
}

/// A message to another session, checked as far as that goes without the log.
#[derive(Clone)]
pub struct Send<'a> {
    /// The tool that sends.
    pub verb: &'a str,
    /// Who.
    pub from: Requester<'a>,
    /// To which session.
    pub to: &'a StreamName,
    /// The target as the caller named it.
    pub named: &'a str,
    /// The label that named it, and the agent whose label it is.
    pub label: Option<(&'a str, Option<&'a str>)>,
    /// What.
    pub message: &'a str,
    /// How long the caller waits, in seconds; 0 for not at all.
    pub wait_seconds: u64,
    /// The run that the request makes; derived from the idempotency key if there is one.
    pub run_id: &'a str,
    /// The caller's idempotency key.
    pub idempotency_key: Option<&'a str>,
    /// The most rounds after the first reply.
    pub rounds_max: u32,
    /// The most sends that cause each other.
    pub hops_max: u32,
    /// The most runs of one chain: rounds, announce steps and children are counted.
    pub runs_max: u32,
    /// Whether the agent of the target can be run.
    pub can_run: &'a (dyn Fn(&str) -> bool + Sync),
    /// Why a gate keeps it out.
    pub blocked: Option<(&'a str, &'a str)>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is accepted, and durable.
    Accepted {
        /// The position of the turn.
        turn_seq: u64,
        /// The part that it works on.
        session_id: String,
    },
    /// It is refused, which is recorded.
    Refused(Reason),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The code.
    pub code: &'static str,
    /// More, in words.
    pub detail: String,
}

impl Reason {
    pub(super) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// Decides on a send.
///
/// # Errors
/// `NotFound` when the target is not there; `Conflict` through the store when the run of the idempotency key is there
/// already; `InvalidInput` for content that no event can hold.
pub fn send(stage: &Stage<'_>, batch: &mut Batch<'_>, send: &Send<'_>) -> Result<Asked> {
    let target = stage.sessions.row(send.to).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no session {:?}", send.named))
            .field("sessionKey")
    })?;
    let causing = causing(stage, &send.from);
    batch.flows(causing.and_then(|run| run.flow.as_ref()?.parse().ok()));
    if let Some(reason) = refusal(stage, send, target, causing) {
        refuse(batch, &send.from, stage, (send.verb, send.named), &reason, Outcome::Send)?;
        return Ok(Asked::Refused(reason));
    }
    open(stage, batch, &send.from)?;
    let from = stage.sessions.row(send.from.key);
    let cause = causing.and_then(|run| run.request.parse().ok());
    let turn = batch.add(send.to.as_str(), &turn(send, target, from)?, cause)?;
    let (chain_id, hop) = chain(causing, send.run_id);
    let speaker = Speaker {
        key: send.from.key.as_str(),
        agent: from.map_or("main", |row| &row.agent_id),
        channel: from.map_or("unknown", |row| &row.channel),
    };
    let round = Round { run_id: send.run_id, number: 1, of: send.rounds_max + 1 };
    let request = RunRequested {
        at: None,
        run_id: send.run_id.to_owned(),
        session_key: send.to.to_string(),
        session_id: target.session_id.clone(),
        kind: RunKind::Send,
        agent_id: target.agent_id.clone(),
        requester_key: Some(send.from.key.to_string()),
        requester_session_id: from.map(|row| row.session_id.clone()),
        chain_id: chain_id.clone(),
        hop,
        round: Some(1),
        timeout_seconds: 0,
        deliver: false,
        idempotency_key: send.idempotency_key.map(str::to_owned),
        follows_run_id: None,
        model: None,
        thinking: None,
        turn_seq: Some(turn.seq),
        preamble: Some(prompt::message(speaker, round)),
        imported: None,
    };
    let stream = run_stream(send.run_id)?;
    batch.expect_none(stream.as_str())?;
    batch.add(stream.as_str(), &Event::RunRequested(request), Some(turn.id))?;
    let accepted = SendAccepted {
        at: None,
        run_id: send.run_id.to_owned(),
        target_key: Some(send.to.to_string()),
        target_session_id: Some(target.session_id.clone()),
        turn_seq: Some(turn.seq),
        chain_id: Some(chain_id),
        hop,
        round: Some(1),
        label: send.label.map(|(label, _)| label.to_owned()),
        agent_id: send.label.and_then(|(_, agent)| agent.map(str::to_owned)),
        timeout_seconds: Some(send.wait_seconds),
        idempotency_key: send.idempotency_key.map(str::to_owned),
        reply_rounds_max: Some(send.rounds_max),
        origin: from.and_then(address).map(Into::into),
    };
    batch.add(send.from.key.as_str(), &Event::SendAccepted(accepted), Some(turn.id))?;
    Ok(Asked::Accepted { turn_seq: turn.seq, session_id: target.session_id.clone() })
}

/// The run that causes a request: the one from inside which it comes, else the one at work on the requester's session.
pub(super) fn causing<'a>(stage: &Stage<'a>, from: &Requester<'_>) -> Option<&'a Job> {
    if let Some(run_id) = from.run_id {
        return stage.work.run(run_id).map(|run| &**run);
    }
    stage.work.runs_on(from.key.as_str()).find(|run| run.is_claimed()).map(|run| &**run)
}

/// The chain that a request belongs to, and how many sends lie before it.
pub(super) fn chain(causing: Option<&Job>, run_id: &str) -> (String, u32) {
    match causing {
        Some(run) => (run.chain_id.clone(), run.hop.saturating_add(1)),
        None => (run_id.to_owned(), 0),
    }
}

fn refusal(
    stage: &Stage<'_>,
    send: &Send<'_>,
    target: &Row,
    causing: Option<&Job>,
) -> Option<Reason> {
    let (from, to) = (send.from.key.as_str(), send.to.as_str());
    if from == to {
        return Some(Reason::new("self", "a session does not send to itself"));
    }
    if stage.sessions.is_archived(send.to) {
        return Some(Reason::new(
            "archived",
            "the session is archived; read it, or resume it first",
        ));
    }
    if !(send.can_run)(&target.agent_id) {
        let agent = &target.agent_id;
        return Some(Reason::new(
            "no_agent",
            format!("no command is configured for agent {agent:?}"),
        ));
    }
    if let Some(reason) = goes_round(stage, causing, (send.hops_max, send.runs_max)) {
        return Some(reason);
    }
    if send.wait_seconds > 0 && stage.work.waits_for(to, from, stage.now) {
        let detail = "that session waits for this one; send with timeoutSeconds 0 and go on";
        return Some(Reason::new("would_deadlock", detail));
    }
    let (rule, why) = send.blocked?;
    Some(Reason::new("blocked", format!("{rule}: {why}")))
}

/// Why what a run causes goes no further: too many requests lie before it, or its chain has had too many runs. Hops bound
/// how deep a chain gets, runs how wide.
pub(super) fn goes_round(
    stage: &Stage<'_>,
    causing: Option<&Job>,
    (hops_max, runs_max): (u32, u32),
) -> Option<Reason> {
    let causing = causing?;
    let (hop, runs) = (causing.hop.saturating_add(1), stage.work.runs_in(&causing.chain_id));
    if hop > hops_max {
        let detail =
            format!("{hop} requests caused each other; session.agentToAgent.maxHops is {hops_max}");
        return Some(Reason::new("loop", detail));
    }
    (runs >= runs_max).then(|| {
        let detail = format!(
            "{runs} runs follow from one request; session.agentToAgent.maxRuns is {runs_max}"
        );
        Reason::new("loop", detail)
    })
}

fn turn(send: &Send<'_>, target: &Row, from: Option<&Row>) -> Result<Event> {
    let provenance = Provenance {
        source_session_key: Some(send.from.key.to_string()),
        source_channel: from.map(|row| row.channel.clone()),
        source_tool: Some(send.verb.to_owned()),
        sender: None,
        run_id: Some(send.run_id.to_owned()),
        round: Some(1),
    };
    Ok(Event::Turn(Turn {
        provenance: Some(provenance),
        ..Turn::new(
            target.session_id.clone(),
            Role::User,
            Ingress::InterSession,
            Json::of(send.message)?,
        )
    }))
}

/// Opens the requester's session with its first request, if it says how.
pub(super) fn open(stage: &Stage<'_>, batch: &mut Batch<'_>, from: &Requester<'_>) -> Result<()> {
    let Some(opening) = from.opening.filter(|_| stage.sessions.row(from.key).is_none()) else {
        return Ok(());
    };
    batch.add(from.key.as_str(), &Event::SessionOpened(opening.clone()), None)?;
    Ok(())
}

/// Which request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A send.
    Send,
    /// A spawn.
    Spawn,
}

/// Records a refusal.
pub(super) fn refuse(
    batch: &mut Batch<'_>,
    from: &Requester<'_>,
    stage: &Stage<'_>,
    (verb, named): (&str, &str),
    reason: &Reason,
    outcome: Outcome,
) -> Result<()> {
    open(stage, batch, from)?;
    let refusal = Refusal {
        at: None,
        verb: verb.to_owned(),
        target: named.to_owned(),
        reason: reason.code.to_owned(),
        detail: Some(reason.detail.clone()),
    };
    let event = match outcome {
        Outcome::Send => Event::SendRefused(refusal),
        Outcome::Spawn => Event::SpawnRefused(refusal),
    };
    let cause: Option<EventId> = causing(stage, from).and_then(|run| run.request.parse().ok());
    batch.add(from.key.as_str(), &event, cause)?;
    Ok(())
}
