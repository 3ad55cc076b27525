//! A child: its session, its task, its run and the acceptance, in one batch; or the refusal, which leaves no session.

use crate::error::Result;
use crate::id::StreamName;
use crate::session::event::{
    Attachment, Cleanup, Event, Ingress, Json, Origin, Provenance, Role, RunKind, RunRequested,
    Sandbox, SessionKind, SessionOpened, SpawnAccepted, SpawnMode, Turn, run_stream,
};
use crate::session::index::Row;

use super::send::{Asked, Outcome, Reason, Requester, causing, chain, goes_round, open, refuse};
use super::stage::{Batch, Stage};
use super::way::address;

/// A wish for a child.
#[derive(Clone, Debug)]
pub struct Spawn<'a> {
    /// Who.
    pub from: Requester<'a>,
    /// The agent as the caller named it, or the requester's own.
    pub agent: &'a str,
    /// The child's key.
    pub child: &'a StreamName,
    /// The child's part.
    pub session_id: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// The task.
    pub task: &'a str,
    /// What stands before the task in the prompt and in no transcript.
    pub preamble: Option<&'a str>,
    /// A short name.
    pub label: Option<&'a str>,
    /// The model asked for.
    pub model: Option<&'a str>,
    /// The thinking level asked for.
    pub thinking: Option<&'a str>,
    /// The time limit in seconds; 0 for none.
    pub timeout_seconds: u64,
    /// Whether it has a thread of its own.
    pub thread: bool,
    /// What the child is.
    pub mode: SpawnMode,
    /// What becomes of it after its announce.
    pub cleanup: Cleanup,
    /// Whether it must be confined.
    pub sandbox: Sandbox,
    /// Whether its agent's command confines it.
    pub confined: bool,
    /// The files handed to it.
    pub attachments: &'a [Attachment],
    /// Where they lie.
    pub mount_path: Option<&'a str>,
    /// The caller's idempotency key.
    pub idempotency_key: Option<&'a str>,
    /// The channel that the announce goes to, where it is not the requester's own.
    pub origin: Option<&'a Origin>,
    /// The limits on children.
    pub limits: Limits,
    /// What was refused before anything was looked up: the first that failed of what comes before the depth, and of what
    /// comes after the number of children.
    pub refused: [Option<&'a Reason>; 2],
}

/// How many children there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep children may spawn.
    pub depth: u32,
    /// The most children of one session at a time.
    pub of_one: usize,
    /// The most children at a time.
    pub of_all: usize,
    /// The most requests that cause each other, and the most runs of one chain.
    pub chain: (u32, u32),
}

/// Decides on a spawn.
///
/// # Errors
/// `Conflict` through the store when the run of the idempotency key is there already; `InvalidInput` for content that no
/// event can hold.
pub fn spawn(stage: &Stage<'_>, batch: &mut Batch<'_>, spawn: &Spawn<'_>) -> Result<Asked> {
    let causing = causing(stage, &spawn.from);
    batch.flows(causing.and_then(|run| run.flow.as_ref()?.parse().ok()));
    let from = stage.sessions.row(spawn.from.key);
    if let Some(reason) = refusal(stage, spawn, from) {
        let what = ("sessions_spawn", spawn.agent);
        refuse(batch, &spawn.from, stage, what, &reason, Outcome::Spawn)?;
        return Ok(Asked::Refused(reason));
    }
    open(stage, batch, &spawn.from)?;
    let cause = causing.and_then(|run| run.request.parse().ok());
    let child = spawn.child.as_str();
    let opened = batch.add(child, &Event::SessionOpened(opening(spawn, from)), cause)?;
    let turn = Turn {
        provenance: Some(Provenance {
            source_session_key: Some(spawn.from.key.to_string()),
            source_channel: from.map(|row| row.channel.clone()),
            source_tool: Some("sessions_spawn".to_owned()),
            sender: None,
            run_id: Some(spawn.run_id.to_owned()),
            round: None,
        }),
        ..Turn::new(spawn.session_id, Role::User, Ingress::InterSession, Json::of(spawn.task)?)
    };
    let turn = batch.add(child, &Event::Turn(turn), Some(opened.id))?;
    let (chain_id, hop) = chain(causing, spawn.run_id);
    let request = RunRequested {
        at: None,
        run_id: spawn.run_id.to_owned(),
        session_key: child.to_owned(),
        session_id: spawn.session_id.to_owned(),
        kind: RunKind::Spawn,
        agent_id: spawn.agent.to_owned(),
        requester_key: Some(spawn.from.key.to_string()),
        requester_session_id: from.map(|row| row.session_id.clone()),
        chain_id: chain_id.clone(),
        hop,
        round: None,
        timeout_seconds: spawn.timeout_seconds,
        deliver: false,
        idempotency_key: spawn.idempotency_key.map(str::to_owned),
        follows_run_id: None,
        model: spawn.model.map(str::to_owned),
        thinking: spawn.thinking.map(str::to_owned),
        turn_seq: Some(turn.seq),
        preamble: spawn.preamble.map(str::to_owned),
        imported: None,
    };
    let stream = run_stream(spawn.run_id)?;
    batch.expect_none(stream.as_str())?;
    batch.add(stream.as_str(), &Event::RunRequested(request), Some(turn.id))?;
    let accepted = accepted(spawn, (turn.seq, chain_id, hop), origin(spawn, from));
    batch.add(spawn.from.key.as_str(), &Event::SpawnAccepted(accepted), Some(turn.id))?;
    Ok(Asked::Accepted { turn_seq: turn.seq, session_id: spawn.session_id.to_owned() })
}

/// Where the announce goes, captured here and never looked up again.
fn origin(spawn: &Spawn<'_>, from: Option<&Row>) -> Option<Origin> {
    let of_opening = || spawn.from.opening.and_then(|opening| opening.origin.clone());
    let of_row = || from.and_then(address).map(Origin::from);
    spawn.origin.cloned().or_else(|| if from.is_some() { of_row() } else { of_opening() })
}

fn opening(spawn: &Spawn<'_>, from: Option<&Row>) -> SessionOpened {
    SessionOpened {
        parent_key: Some(spawn.from.key.to_string()),
        parent_session_id: from.map(|row| row.session_id.clone()),
        spawn_depth: from.map_or(0, |row| row.spawn_depth) + 1,
        sandboxed: spawn.confined.then_some(true),
        label: spawn.label.map(str::to_owned),
        origin: origin(spawn, from),
        ..SessionOpened::new(spawn.session_id, SessionKind::Other, spawn.agent)
    }
}

fn accepted(
    spawn: &Spawn<'_>,
    (turn_seq, chain_id, hop): (u64, String, u32),
    origin: Option<Origin>,
) -> SpawnAccepted {
    let text = |text: Option<&str>| text.map(str::to_owned);
    SpawnAccepted {
        at: None,
        run_id: spawn.run_id.to_owned(),
        target_key: Some(spawn.child.to_string()),
        target_session_id: Some(spawn.session_id.to_owned()),
        turn_seq: Some(turn_seq),
        chain_id: Some(chain_id),
        hop,
        round: None,
        label: text(spawn.label),
        agent_id: Some(spawn.agent.to_owned()),
        model: text(spawn.model),
        thinking: text(spawn.thinking),
        run_timeout_seconds: Some(spawn.timeout_seconds),
        thread: Some(spawn.thread),
        mode: Some(spawn.mode),
        cleanup: Some(spawn.cleanup),
        sandbox: Some(spawn.sandbox),
        attachments: spawn.attachments.to_vec(),
        mount_path: text(spawn.mount_path),
        idempotency_key: text(spawn.idempotency_key),
        origin,
    }
}

/// The first check that fails, in the order in which they are documented.
fn refusal(stage: &Stage<'_>, spawn: &Spawn<'_>, from: Option<&Row>) -> Option<Reason> {
    let [before, after] = spawn.refused;
    if let Some(reason) = before {
        return Some(reason.clone());
    }
    let Limits { depth, of_one, of_all, chain } = spawn.limits;
    let at = from.map_or(0, |row| row.spawn_depth);
    if at >= depth {
        let detail = format!(
            "sessions_spawn is not allowed at this depth (current depth: {at}, max: {depth}); \
             agents.defaults.subagents.maxSpawnDepth allows more"
        );
        return Some(Reason::new("depth", detail));
    }
    let (own, all) =
        (stage.work.children(Some(spawn.from.key.as_str())), stage.work.children(None));
    if own >= of_one {
        let detail = format!(
            "sessions_spawn has reached max active children for this session ({own}/{of_one}); \
             agents.defaults.subagents.maxChildrenPerAgent allows more"
        );
        return Some(Reason::new("children", detail));
    }
    if all >= of_all {
        let detail = format!(
            "there are {all} children at work or waiting, and SUBAGENT_MAX (subagents.max) is {of_all}"
        );
        return Some(Reason::new("children_total", detail));
    }
    goes_round(stage, causing(stage, &spawn.from), chain).or_else(|| after.cloned())
}
