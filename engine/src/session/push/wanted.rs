//! A run that is wanted with a turn: it answers that turn, and is asked for in the same batch.

use crate::error::Result;
use crate::id::{EventId, Seq};
use crate::session::event::{Event, Links, RunKind, RunRequested, idempotency_id, run_stream};
use crate::session::key::{AgentId, SessionKey};
use crate::store::{NewEvent, Record};

/// A run that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it is: `ask`, `webhook`, `watch`.
    pub kind: RunKind,
    /// The agent that does it; the session's own when it is not said.
    pub agent: Option<AgentId>,
    /// The time limit in seconds; 0 for none.
    pub timeout_seconds: u64,
    /// Whether the reply goes to the session's channel.
    pub deliver: bool,
    /// The model asked for.
    pub model: Option<String>,
    /// The thinking level asked for.
    pub thinking: Option<String>,
}

impl Wanted {
    /// A run with nothing but what must be said.
    #[must_use]
    pub const fn new(kind: RunKind) -> Self {
        let (timeout_seconds, deliver) = (0, false);
        Self { kind, agent: None, timeout_seconds, deliver, model: None, thinking: None }
    }

    /// The id of the run that a call with an idempotency key asks for, which is also that of its request.
    ///
    /// # Errors
    /// `InvalidInput` for an empty key.
    pub(super) fn keyed_id(&self, door: &str, given: &str) -> Result<EventId> {
        idempotency_id(&format!("{}.run", self.kind), door, given)
    }

    /// The request.
    pub(super) fn request(&self, of: &Request<'_>) -> Result<NewEvent> {
        let run_id = of.id.to_string();
        let stream = run_stream(&run_id)?;
        let event = Event::RunRequested(RunRequested {
            at: None,
            session_key: of.key.as_str().to_owned(),
            session_id: of.session_id.to_owned(),
            kind: self.kind,
            agent_id: self.agent.as_ref().map_or(of.agent, AgentId::as_str).to_owned(),
            requester_key: None,
            requester_session_id: None,
            chain_id: run_id.clone(),
            hop: 0,
            round: None,
            timeout_seconds: self.timeout_seconds,
            deliver: self.deliver,
            idempotency_key: of.idempotency_key.map(str::to_owned),
            model: self.model.clone(),
            thinking: self.thinking.clone(),
            turn_seq: Some(of.turn_seq.0),
            follows_run_id: None,
            preamble: None,
            imported: None,
            run_id,
        });
        event.to_new(stream, of.id, of.links)
    }

    /// Whether a request that is there asks for the same. How long it may take and where its reply goes are the
    /// configuration's: they may have changed since.
    fn is_asked_for_by(&self, request: &RunRequested) -> bool {
        request.kind == self.kind
            && self.agent.as_ref().is_none_or(|agent| agent.as_str() == request.agent_id)
            && request.model == self.model
            && request.thinking == self.thinking
    }

    /// The event of a record, when it is the request of this run.
    pub(super) fn requested_by(&self, record: &Record) -> Option<NewEvent> {
        match Event::of(record) {
            Ok(Event::RunRequested(request)) if self.is_asked_for_by(&request) => {
                Some(as_new(record))
            }
            _ => None,
        }
    }
}

/// What a request says beside what is wanted.
pub(super) struct Request<'a> {
    pub(super) id: EventId,
    pub(super) key: &'a SessionKey,
    pub(super) session_id: &'a str,
    /// The agent of the session.
    pub(super) agent: &'a str,
    pub(super) turn_seq: Seq,
    pub(super) idempotency_key: Option<&'a str>,
    pub(super) links: Links,
}

/// An event that is there, as it was appended.
pub(super) fn as_new(record: &Record) -> NewEvent {
    NewEvent {
        id: record.id,
        stream: record.stream.clone(),
        kind: record.kind.clone(),
        cause: record.cause,
        flow: record.flow,
        data: record.data.clone(),
    }
}
