//! Context: what of a session goes into a prompt. The current part, trimmed to the last turns, each tool call together
//! with its results. The log is not touched by any of this.
//!
//! - A turn is a message of a user or of the assistant; calls, results and system messages ride along uncounted.
//! - Results stand right behind the call that they answer, in the order of the calls; of two results for one call the
//!   first counts; a result whose call is not there is left out.
//! - A call without a result is shown as interrupted, by a result that is marked synthetic and stands in no log.
//! - A user's turn that nobody has answered is kept: when the window has moved past it, it stands in the place of the
//!   window's oldest turn.

mod window;

use crate::error::Result;
use crate::id::{Seq, StreamName, Version};
use crate::store::{EventStore, Item};

use super::event::{Json, Role};
use super::history::{Backwards, HistoryQuery, Message, Scope, Span, ToolResults, missing};
use super::index::{Found, Sessions};

use window::{Window, turns_in};

/// The context of a session's part.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// The session.
    pub key: StreamName,
    /// The part.
    pub session_id: String,
    /// What goes into the prompt, the oldest first.
    pub messages: Vec<ContextMessage>,
    /// How many turns that are: messages of users and of the assistant.
    pub turns: u64,
    /// What of the part was left out; `None` when nothing was.
    pub trimmed: Option<Trimmed>,
    /// Whether events of the session are known to be missing.
    pub damaged: bool,
}

/// What a context leaves out of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// How many turns.
    pub turns: u64,
    /// The part's first position in the log.
    pub from: Seq,
    /// The last position that is left out.
    pub to: Seq,
}

/// A message of a context.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextMessage {
    /// The position of its first turn in the log; of a synthetic one that of the call.
    pub seq: Seq,
    /// Whose it is.
    pub role: Role,
    /// What was said; `None` where that is lost.
    pub content: Option<Json>,
    /// The call that it answers, of a tool's result.
    pub call_id: Option<String>,
    /// The tool that it answers for.
    pub tool_name: Option<String>,
    /// Whether it stands in no log: the result of a call that was interrupted.
    pub synthetic: bool,
}

/// The context of a session that [`Sessions::find`] found, as of what `sessions` has seen, with at most `max_turns`
/// turns; at least one.
///
/// # Errors
/// `NotFound` when there is no such session or part; whatever reading meets. Damage is no error: the context says so.
pub fn context(
    store: &dyn EventStore,
    sessions: &Sessions,
    found: &Found,
    max_turns: usize,
) -> Result<Context> {
    let entry = sessions.entry(&found.key).ok_or_else(|| missing(found.key.as_str()))?;
    let query = HistoryQuery {
        span: Span::Part,
        tool_results: ToolResults::Shown,
        ..HistoryQuery::default()
    };
    let scope = Scope::of(entry, found, &query)?;
    let part = found
        .part
        .as_ref()
        .map_or_else(|| entry.current(), |id| entry.parts.iter().find(|p| p.session_id == *id))
        .ok_or_else(|| missing(found.key.as_str()))?;
    let max_turns = max_turns.max(1);
    let mut reader = Backwards { store, scope, damaged: false };
    let mut wanted = max_turns.saturating_mul(2).saturating_add(1);
    let window = loop {
        let messages = reader.last(wanted)?;
        let whole = messages.len() < wanted;
        let settled = turns_in(&messages) > max_turns && window::holds_the_question(&messages);
        if whole || settled {
            break Window::of(messages, max_turns);
        }
        wanted = wanted.saturating_mul(4);
    };
    let turns = u64::try_from(window.turns).unwrap_or(u64::MAX);
    let trimmed = match (window.left_out_to, part.span) {
        (Some(to), Some((first, _))) => Some(Trimmed {
            turns: part.turns().saturating_sub(turns),
            from: position(store, &found.key, first)?.unwrap_or(to),
            to,
        }),
        _ => None,
    };
    Ok(Context {
        key: found.key.clone(),
        session_id: part.session_id.clone(),
        messages: window.messages,
        turns,
        trimmed,
        damaged: entry.damaged || reader.damaged,
    })
}

/// Where an event of a stream stands in the log.
fn position(store: &dyn EventStore, stream: &StreamName, version: Version) -> Result<Option<Seq>> {
    for item in store.read_stream(stream, Version(version.0.saturating_sub(1)))? {
        if let Item::Record(record) = item? {
            return Ok(Some(record.seq));
        }
    }
    Ok(None)
}

impl ContextMessage {
    fn of(message: Message) -> Self {
        Self {
            seq: Seq(message.seq),
            role: message.role,
            content: message.content,
            call_id: message.tools.answers,
            tool_name: message.tools.name,
            synthetic: false,
        }
    }

    fn interrupted(seq: Seq, call_id: &str) -> Self {
        Self {
            seq,
            role: Role::ToolResult,
            content: Json::of("interrupted").ok(),
            call_id: Some(call_id.to_owned()),
            tool_name: None,
            synthetic: true,
        }
    }
}

#[cfg(test)]
mod tests;
