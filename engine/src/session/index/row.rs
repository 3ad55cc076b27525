//! One row of the sessions view: what a list shows of a session, and nothing bulky.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::StreamName;
use crate::session::event::{ChatType, Origin, RunStatus, SessionKind, words};

words! {
    /// How a session is.
    pub enum Status {
        /// Nothing happens.
        Idle = "idle",
        /// A run is wanted and nobody has it yet.
        Waiting = "waiting",
        /// A run is at work.
        Running = "running",
        /// The last run ended well.
        Done = "done",
        /// The last run ended with an error.
        Failed = "failed",
        /// The last run was killed.
        Killed = "killed",
        /// The last run went past its time limit.
        Timeout = "timeout",
        /// The last run was stopped from outside, or got lost.
        Interrupted = "interrupted",
        /// Its time is over: the next turn from outside begins another part.
        Expired = "expired",
        /// It left the lists.
        Archived = "archived",
        /// Events of it are missing.
        Damaged = "damaged",
    }
}

impl Status {
    /// The status of a session whose last run ended so.
    #[must_use]
    pub const fn after(run: RunStatus) -> Self {
        match run {
            RunStatus::Ok => Self::Done,
            RunStatus::Error => Self::Failed,
            RunStatus::Timeout => Self::Timeout,
            RunStatus::Killed => Self::Killed,
            RunStatus::Interrupted | RunStatus::Lost => Self::Interrupted,
        }
    }
}

/// A row. Numbers of turns and tokens are those of the current part.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The session's key.
    #[serde(serialize_with = "text")]
    pub key: StreamName,
    /// What it is for.
    pub kind: SessionKind,
    /// The channel: of a group the one recorded when it opened, of others the last one used; `internal` for jobs,
    /// webhooks and nodes; `unknown` when there is none.
    pub channel: String,
    /// The name that its channel shows.
    pub display_name: Option<String>,
    /// When something last happened in it, in milliseconds since 1970.
    #[serde(serialize_with = "millis")]
    pub updated_at: Timestamp,
    /// The id of the current part.
    pub session_id: String,
    /// The model in use.
    pub model: Option<String>,
    /// The size of the model's context, in tokens.
    pub context_tokens: Option<u64>,
    /// Tokens of input and output, each message counted once.
    pub total_tokens: u64,
    /// The thinking level.
    pub thinking_level: Option<String>,
    /// How much the agent tells.
    pub verbose_level: Option<String>,
    /// Whether a run of the part has started.
    pub system_sent: bool,
    /// Whether the last run ended before its time.
    pub aborted_last_run: bool,
    /// The session's own send policy.
    pub send_policy: Option<String>,
    /// The channel of the last turn from outside.
    pub last_channel: Option<String>,
    /// Where answers to it go.
    pub last_to: Option<String>,
    /// The whole address of that.
    pub delivery_context: Option<Origin>,
    /// The file that it was imported from; else, in rows with their files, the one that holds its last turn.
    pub transcript_path: Option<String>,
    /// How it is.
    pub status: Status,
    /// A short name.
    pub label: Option<String>,
    /// The agent that it belongs to; empty when the event that says so is missing.
    pub agent_id: String,
    /// What sort of chat is behind it.
    pub chat_type: Option<ChatType>,
    /// The session that spawned it.
    pub parent_key: Option<String>,
    /// How many spawns lie above it.
    pub spawn_depth: u32,
    /// Turns of users and assistants; pieces of one message are one turn.
    pub turns: u64,
    /// How many parts it has.
    pub parts: u64,
    /// When it opened, in milliseconds since 1970.
    #[serde(serialize_with = "millis")]
    pub created_at: Timestamp,
    /// When its last run started, in milliseconds since 1970.
    #[serde(serialize_with = "some_millis")]
    pub started_at: Option<Timestamp>,
    /// When a person last wrote, in milliseconds since 1970.
    #[serde(serialize_with = "some_millis")]
    pub last_human_at: Option<Timestamp>,
    /// Runs that are wanted or at work.
    pub open_runs: u64,
    /// Announces to it that have not come to an end.
    pub pending_announces: u64,
    /// When the current part expired, in milliseconds since 1970; only in rows as of a moment.
    #[serde(serialize_with = "some_millis", skip_serializing_if = "Option::is_none")]
    pub expired_at: Option<Timestamp>,
    /// The run that a reset waits for; only in rows as of a moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_deferred_by: Option<String>,
}

impl Row {
    pub(super) fn new(key: StreamName, kind: SessionKind, at: Timestamp) -> Self {
        Self {
            key,
            kind,
            channel: String::new(),
            display_name: None,
            updated_at: at,
            session_id: String::new(),
            model: None,
            context_tokens: None,
            total_tokens: 0,
            thinking_level: None,
            verbose_level: None,
            system_sent: false,
            aborted_last_run: false,
            send_policy: None,
            last_channel: None,
            last_to: None,
            delivery_context: None,
            transcript_path: None,
            status: Status::Idle,
            label: None,
            agent_id: String::new(),
            chat_type: None,
            parent_key: None,
            spawn_depth: 0,
            turns: 0,
            parts: 0,
            created_at: at,
            started_at: None,
            last_human_at: None,
            open_runs: 0,
            pending_announces: 0,
            expired_at: None,
            reset_deferred_by: None,
        }
    }
}

fn text<S: serde::Serializer>(name: &StreamName, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name.as_str())
}

fn millis<S: serde::Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64(at.as_millis())
}

#[expect(clippy::ref_option, reason = "serde hands the field over by reference")]
fn some_millis<S: serde::Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => millis(at, to),
        None => to.serialize_none(),
    }
}
