//! Between sessions, in the requester's stream: sends and spawns that were accepted or refused, and how an exchange ended.

use crate::clock::Timestamp;

use super::define::{payload, words};
use super::lifecycle::Origin;

payload! {
    /// `send.accepted`: a message goes to another session. What an import could not find is absent.
    pub struct SendAccepted {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run that was requested.
        run_id: String,
        /// The session that it goes to.
        target_key: Option<String>,
        /// The part that it goes to.
        target_session_id: Option<String>,
        /// The position of the message in the log.
        turn_seq: Option<u64>,
        /// The chain of sends that it belongs to.
        chain_id: Option<String>,
        /// How many sends lie before it in the chain.
        hop: u32,
        /// The round of an exchange, from 1.
        round: Option<u32>,
        /// The label that named the target.
        label: Option<String>,
        /// The agent whose session was named by the label.
        agent_id: Option<String>,
        /// How long the caller waits, in seconds.
        timeout_seconds: Option<u64>,
        /// The caller's idempotency key.
        idempotency_key: Option<String>,
        /// The most rounds that both sides may answer each other after the first reply.
        reply_rounds_max: Option<u32>,
        /// Where the requester's answers go.
        origin: Option<Origin>,
    }
}

words! {
    /// What a spawned child is.
    pub enum SpawnMode {
        /// One run.
        Run = "run",
        /// A session that stays open for sends.
        Session = "session",
    }
}

words! {
    /// What becomes of a child after its announce.
    pub enum Cleanup {
        /// It is archived at once.
        Delete = "delete",
        /// It stays until its time is over.
        Keep = "keep",
    }
}

words! {
    /// Whether a child must be confined.
    pub enum Sandbox {
        /// As its requester is.
        Inherit = "inherit",
        /// In any case.
        Require = "require",
    }
}

payload! {
    /// A file handed to a child.
    pub struct Attachment {
        /// Its name.
        name: String,
        /// How long it is, in bytes.
        bytes: u64,
        /// SHA-256 of its bytes, in lower-case hexadecimal.
        sha256: String,
        /// Its media type.
        mime_type: Option<String>,
    }
}

payload! {
    /// `spawn.accepted`: a child works on a task. What an import could not find is absent.
    pub struct SpawnAccepted {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run that was requested.
        run_id: String,
        /// The child.
        target_key: Option<String>,
        /// The child's part.
        target_session_id: Option<String>,
        /// The position of the task in the log.
        turn_seq: Option<u64>,
        /// The chain of sends that it belongs to.
        chain_id: Option<String>,
        /// How many sends lie before it in the chain.
        hop: u32,
        /// The round of an exchange, from 1.
        round: Option<u32>,
        /// A short name for the child.
        label: Option<String>,
        /// The child's agent.
        agent_id: Option<String>,
        /// The model asked for.
        model: Option<String>,
        /// The thinking level asked for.
        thinking: Option<String>,
        /// The time limit of the run in seconds; 0 for none.
        run_timeout_seconds: Option<u64>,
        /// Whether it has a thread of its own.
        thread: Option<bool>,
        /// What the child is.
        mode: Option<SpawnMode>,
        /// What becomes of it.
        cleanup: Option<Cleanup>,
        /// Whether it is confined.
        sandbox: Option<Sandbox>,
        /// The files handed to it.
        attachments: Vec<Attachment>,
        /// Where they lie, under the child's folder.
        mount_path: Option<String>,
        /// The caller's idempotency key.
        idempotency_key: Option<String>,
        /// Where the announce goes, captured once.
        origin: Option<Origin>,
    }
}

payload! {
    /// `send.refused`, `spawn.refused`, `access.denied`: it was not done.
    pub struct Refusal {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// What was tried.
        verb: String,
        /// The target as the caller named it.
        target: String,
        /// The reason's code.
        reason: String,
        /// More, in words.
        detail: Option<String>,
    }
}

words! {
    /// Why an exchange ended.
    pub enum ExchangeEnd {
        /// One side said so.
        ReplySkip = "reply_skip",
        /// The limit of rounds was reached.
        MaxTurns = "max_turns",
        /// A reply was a silent token.
        Silent = "silent",
        /// A reply was empty.
        Empty = "empty",
        /// A run failed.
        Error = "error",
    }
}

payload! {
    /// `exchange.ended`: the rounds after a send are over.
    pub struct ExchangeEnded {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The run of the first send.
        run_id: String,
        /// How many rounds there were.
        rounds: u32,
        /// Why.
        reason: ExchangeEnd,
    }
}
