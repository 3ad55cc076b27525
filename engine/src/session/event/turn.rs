//! Turns: what was said in a session, by whom, and through which door it came.

use crate::clock::Timestamp;

use super::define::{payload, words};
use super::json::{Json, Members};

words! {
    /// Whose turn it is.
    pub enum Role {
        /// Whoever talks to the agent: a person, or another session.
        User = "user",
        /// The agent.
        Assistant = "assistant",
        /// Instructions and notices.
        System = "system",
        /// What a tool answered.
        ToolResult = "toolResult",
    }
}

words! {
    /// The door that a turn came through; only the ingress sets it.
    pub enum Ingress {
        /// Ingress outside. A user's turn from outside is human activity, and nothing else is.
        External = "external",
        /// Ingress another session.
        InterSession = "inter_session",
        /// Ingress the session's own work.
        Internal = "internal",
    }
}

payload! {
    /// Tokens used.
    pub struct Tokens {
        /// Tokens of the input.
        r#in: u64,
        /// Tokens of the output.
        out: u64,
        /// Tokens read from a cache.
        cache_read: Option<u64>,
        /// Tokens written to a cache.
        cache_write: Option<u64>,
    }
}

payload! {
    /// Where a turn came from; only the ingress sets it.
    #[derive(Default)]
    pub struct Provenance {
        /// The key of the session that sent it.
        source_session_key: Option<String>,
        /// The channel that it came over.
        source_channel: Option<String>,
        /// The tool that sent it.
        source_tool: Option<String>,
        /// The person or program, as the channel names it.
        sender: Option<String>,
        /// The run that sent it.
        run_id: Option<String>,
        /// The round of an exchange, from 1.
        round: Option<u32>,
    }
}

payload! {
    /// The record of another program that a turn was imported from.
    pub struct Source {
        /// The file.
        file: String,
        /// Where the record begins in it, in bytes.
        offset: u64,
        /// How long it is, in bytes.
        bytes: u64,
        /// SHA-256 of these bytes, in lower-case hexadecimal.
        sha256: String,
        /// The fields of the record that the event does not carry.
        rest: Option<Members>,
    }
}

payload! {
    /// `turn`: something was said in a session.
    pub struct Turn {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The part that it belongs to.
        session_id: String,
        /// Whose turn it is.
        role: Role,
        /// The door that it came through.
        from: Ingress,
        /// The run that produced it.
        run_id: Option<String>,
        /// The message of the model's interface that it is a piece of; pieces with one id are one message.
        message_id: Option<String>,
        /// The tool calls that it opens.
        calls: Vec<String>,
        /// The tool call that it answers.
        call_id: Option<String>,
        /// The tool that it answers for.
        tool_name: Option<String>,
        /// Whether the tool failed.
        is_error: Option<bool>,
        /// The silent token that it consists of.
        silent: Option<String>,
        /// The model that produced it.
        model: Option<String>,
        /// Tokens used.
        tokens: Option<Tokens>,
        /// What it cost, in millionths of a dollar.
        cost_micros: Option<u64>,
        /// Where it came from.
        provenance: Option<Provenance>,
        /// The record that it was imported from.
        source: Option<Source>,
        /// What was said: a JSON string, or the blocks verbatim. `None` only where it lies in a payload file.
        content: Option<Json>,
    }
}

impl Turn {
    /// A turn with nothing but what every turn has.
    #[must_use]
    pub fn new(session_id: impl Into<String>, role: Role, from: Ingress, content: Json) -> Self {
        Self {
            at: None,
            session_id: session_id.into(),
            role,
            from,
            run_id: None,
            message_id: None,
            calls: Vec::new(),
            call_id: None,
            tool_name: None,
            is_error: None,
            silent: None,
            model: None,
            tokens: None,
            cost_micros: None,
            provenance: None,
            source: None,
            content: Some(content),
        }
    }
}

payload! {
    /// `turn.blocked`: a gate kept a turn out. Its content is not stored.
    pub struct TurnBlocked {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// Whose turn it was.
        role: Role,
        /// The door that it came to.
        from: Ingress,
        /// The gate.
        gate: String,
        /// The rule of that gate.
        rule: String,
        /// How long the content was, in bytes.
        bytes: u64,
        /// SHA-256 of the content, in lower-case hexadecimal.
        sha256: String,
        /// Where it came from.
        provenance: Option<Provenance>,
    }
}
