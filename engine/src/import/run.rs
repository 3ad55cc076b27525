//! A run of another program, as events: accepted, requested, ended, announced. Nothing here can be claimed or sent: every
//! run has its end, and every announce too.

use super::session::with_source;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{EventId, StreamName};
use crate::session::event::{
    Announce, Cleanup, Event, ImportedRecord, Links, Origin, RunFinished, RunKind, RunRequested,
    RunStatus, SendAccepted, Source, SpawnAccepted, SpawnMode, import_id,
};
use crate::store::NewEvent;

/// Why a run or a message has an end that its program never gave it.
pub(crate) const IMPORTED: &str = "imported";

/// The scope of ids that are made from runs.
const SCOPE: &str = "runs";

/// Whether a run's id can name a stream.
pub(crate) fn is_run_id(id: &str) -> bool {
    (1..=512).contains(&id.len())
}

/// A run that a session asked for.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) kind: RunKind,
    /// The key of the session that asked for it, as the program spells it.
    pub(crate) requester: Option<String>,
    /// The key of the session that it works on, as the program spells it.
    pub(crate) target: Option<String>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
    /// How it ended; `None` when the program has not seen its end.
    pub(crate) status: Option<RunStatus>,
    pub(crate) reason: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) runtime_ms: Option<u64>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) label: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) mode: Option<SpawnMode>,
    pub(crate) cleanup: Option<Cleanup>,
    pub(crate) origin: Option<Origin>,
    /// The hash of what was asked, to know the call by that spawned the session.
    pub(crate) prompt: Option<u64>,
    /// The result as it was told.
    pub(crate) result: Option<String>,
    /// What became of the announce; `None` for a run that has none.
    pub(crate) announce: Option<AnnounceEnd>,
    /// The record that it was read from.
    pub(crate) source: Option<Source>,
}

/// What became of an announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnnounceEnd {
    Delivered(Option<Timestamp>),
    Suppressed(String),
    Failed(String),
}

/// An event that a run, or a message on its way, is told by.
#[derive(Debug)]
pub(crate) struct RunEvent {
    pub(crate) event: Event,
    pub(crate) id: EventId,
    /// The record that the run was read from, in the event that tells of it first.
    pub(crate) source: Option<Source>,
}

impl RunEvent {
    /// The event as a stream takes it.
    pub(crate) fn to_new(&self, stream: &StreamName) -> Result<NewEvent> {
        let event = self.event.to_new(stream.clone(), self.id, Links::default())?;
        match &self.source {
            Some(source) => with_source(event, source),
            None => Ok(event),
        }
    }
}

/// A session as the events of a run name it.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    /// Its key in the store.
    pub(crate) key: String,
    /// Its parts with the time at which each began, oldest first.
    pub(crate) parts: Vec<(Option<Timestamp>, String)>,
    pub(crate) agent_id: String,
}

impl Party {
    /// The part that was current at a time; the last one when the time is not known.
    pub(crate) fn part_at(&self, at: Option<Timestamp>) -> Option<String> {
        let begun = |began: &Option<Timestamp>| match (began, at) {
            (Some(began), Some(at)) => *began <= at,
            _ => true,
        };
        let part = self.parts.iter().rfind(|(began, _)| begun(began));
        part.or(self.parts.first()).map(|(_, id)| id.clone())
    }
}

impl Run {
    pub(crate) fn new(id: String, kind: RunKind) -> Self {
        Self {
            id,
            kind,
            requester: None,
            target: None,
            created: None,
            started: None,
            ended: None,
            status: None,
            reason: None,
            detail: None,
            runtime_ms: None,
            timeout_seconds: None,
            label: None,
            model: None,
            thinking: None,
            mode: None,
            cleanup: None,
            origin: None,
            prompt: None,
            result: None,
            announce: None,
            source: None,
        }
    }

    /// An event of this run, of which there is one for each word.
    fn event(&self, program: &str, word: &str, event: Event) -> RunEvent {
        let id = import_id(program, SCOPE, ImportedRecord::Id(&self.id), word);
        RunEvent { event, id, source: None }
    }

    /// That it was accepted, in the requester's stream.
    pub(crate) fn accepted(&self, program: &str, target: &Party) -> RunEvent {
        let (chain_id, hop) = (Some(self.id.clone()), 0);
        let event = if self.kind == RunKind::Spawn {
            Event::SpawnAccepted(SpawnAccepted {
                at: self.created,
                run_id: self.id.clone(),
                target_key: Some(target.key.clone()),
                target_session_id: target.part_at(self.created),
                turn_seq: None,
                chain_id,
                hop,
                round: None,
                label: self.label.clone(),
                agent_id: Some(target.agent_id.clone()),
                model: self.model.clone(),
                thinking: self.thinking.clone(),
                run_timeout_seconds: self.timeout_seconds,
                thread: None,
                mode: self.mode,
                cleanup: self.cleanup,
                sandbox: None,
                attachments: Vec::new(),
                mount_path: None,
                idempotency_key: None,
                origin: self.origin.clone(),
            })
        } else {
            Event::SendAccepted(SendAccepted {
                at: self.created,
                run_id: self.id.clone(),
                target_key: Some(target.key.clone()),
                target_session_id: target.part_at(self.created),
                turn_seq: None,
                chain_id,
                hop,
                round: None,
                label: self.label.clone(),
                agent_id: Some(target.agent_id.clone()),
                timeout_seconds: self.timeout_seconds,
                idempotency_key: None,
                reply_rounds_max: None,
                origin: self.origin.clone(),
            })
        };
        RunEvent { source: self.source.clone(), ..self.event(program, "accepted", event) }
    }

    /// That it was requested and how it ended, in its own stream.
    pub(crate) fn life(
        &self,
        program: &str,
        target: &Party,
        requester: Option<&Party>,
        turn_seq: Option<u64>,
    ) -> [RunEvent; 2] {
        let requested = Event::RunRequested(RunRequested {
            at: self.created,
            run_id: self.id.clone(),
            session_key: target.key.clone(),
            session_id: target.part_at(self.created).unwrap_or_default(),
            kind: self.kind,
            agent_id: target.agent_id.clone(),
            requester_key: requester.map(|party| party.key.clone()),
            requester_session_id: requester.and_then(|party| party.part_at(self.created)),
            chain_id: self.id.clone(),
            hop: 0,
            round: None,
            timeout_seconds: self.timeout_seconds.unwrap_or(0),
            deliver: false,
            idempotency_key: None,
            follows_run_id: None,
            model: self.model.clone(),
            thinking: self.thinking.clone(),
            turn_seq,
            preamble: None,
            imported: Some(true),
        });
        let span = self.started.or(self.created).zip(self.ended);
        let span = span.map(|(from, to)| to.as_millis().saturating_sub(from.as_millis()));
        let runtime = self.runtime_ms.or_else(|| span.and_then(|ms| u64::try_from(ms).ok()));
        let unseen = self.status.is_none().then(|| IMPORTED.to_owned());
        let finished = Event::RunFinished(RunFinished {
            at: self.ended.or(self.created),
            run_id: self.id.clone(),
            status: self.status.unwrap_or(RunStatus::Interrupted),
            reason: unseen.or_else(|| self.reason.clone()),
            exit: None,
            signal: None,
            runtime_ms: runtime.unwrap_or(0),
            tokens: None,
            cost_micros: None,
            reply_seq: None,
            agent_session_id: None,
            detail: self.detail.clone(),
            stderr_tail: None,
        });
        [self.event(program, "requested", requested), self.event(program, "finished", finished)]
    }

    /// That its announce was requested and how that ended, in the requester's stream; nothing for a run without one.
    pub(crate) fn announced(&self, program: &str, child: &Party) -> Vec<RunEvent> {
        let Some(end) = &self.announce else { return Vec::new() };
        let announce = Announce {
            at: self.ended.or(self.created),
            run_id: self.id.clone(),
            child_key: child.key.clone(),
            attempt_id: None,
            sink: None,
            reason: None,
            turn_seq: None,
            target: self.origin.clone(),
            text: self.result.clone(),
        };
        let ended = |at: Option<Timestamp>, reason: Option<&String>| Announce {
            at: at.or(announce.at),
            reason: reason.cloned(),
            text: None,
            ..announce.clone()
        };
        let end = match end {
            AnnounceEnd::Delivered(at) => Event::AnnounceDelivered(ended(*at, None)),
            AnnounceEnd::Suppressed(reason) => Event::AnnounceSuppressed(ended(None, Some(reason))),
            AnnounceEnd::Failed(reason) => Event::AnnounceFailed(ended(None, Some(reason))),
        };
        vec![
            self.event(program, "announce.requested", Event::AnnounceRequested(announce)),
            self.event(program, "announce.ended", end),
        ]
    }
}
