//! Context: what of a session goes into a prompt. The current part, trimmed to the last turns, each tool call together
//! with its results. The log is not touched by any of this.
//!
//! - A turn is a message of a user or of the assistant; calls, results and system messages ride along uncounted.
//! - Results stand right behind the call that they answer, in the order of the calls; of two results for one call the
//!   first counts; a result whose call is not there is left out.
//! - A call without a result is shown as interrupted, by a result that is marked synthetic and stands in no log.
//! - A user's turn that nobody has answered is kept: when the window has moved past it, it stands in the place of the
//!   window's oldest turn.
//! - A limit of characters leaves out whole messages, each with its results, the oldest first, and never the question or
//!   the last message: of these the text is shortened, from its beginning, where they alone are too long.

mod fit;
mod trimming;
mod window;

pub use trimming::{LastTrimmed, last_trimmed, trimming};

use crate::error::Result;
use crate::id::{Seq, StreamName, Version};
use crate::store::{EventStore, Item};

use super::content;
use super::event::{Json, Role};
use super::history::{Backwards, HistoryQuery, Message, Scope, Span, ToolResults, missing};
use super::index::{Found, Sessions};

use fit::fit;
use window::{Window, is_turn, turns_in};

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
    /// What of the part was left out for the limit of turns; `None` when nothing was.
    pub trimmed: Option<Trimmed>,
    /// How many messages were left out for the limit of characters.
    pub left_out: u64,
    /// How many characters were left out of the messages that are there.
    pub shortened: u64,
    /// Whether events of the session are known to be missing.
    pub damaged: bool,
}

/// How much a context may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextLimits {
    /// So many turns at the most; at least one.
    pub turns: usize,
    /// So many characters at the most of all messages as text, an empty line between two of them counted; `None` for
    /// any number. Names of roles and of tools are never cut: a limit below these is exceeded by them.
    pub chars: Option<usize>,
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
    /// The session that said it, of what another session said.
    pub said_by: Option<String>,
}

/// The context of a session that [`Sessions::find`] found, as of what `sessions` has seen, within limits.
///
/// # Errors
/// `NotFound` when there is no such session or part; whatever reading meets. Damage is no error: the context says so.
pub fn context(
    store: &dyn EventStore,
    sessions: &Sessions,
    found: &Found,
    limits: &ContextLimits,
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
    let max_turns = limits.turns.max(1);
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
    let trimmed = match (window.left_out_to, part.span) {
        (Some(to), Some((first, _))) => Some(Trimmed {
            turns: part.turns().saturating_sub(turns_of(window.units.iter().flatten())),
            from: position(store, &found.key, first)?.unwrap_or(to),
            to,
        }),
        _ => None,
    };
    let fitted = fit(window.units, window.question, limits.chars);
    Ok(Context {
        key: found.key.clone(),
        session_id: part.session_id.clone(),
        turns: turns_of(fitted.messages.iter()),
        messages: fitted.messages,
        trimmed,
        left_out: fitted.left_out,
        shortened: fitted.shortened,
        damaged: entry.damaged || reader.damaged,
    })
}

fn turns_of<'a>(messages: impl Iterator<Item = &'a ContextMessage>) -> u64 {
    u64::try_from(messages.filter(|message| is_turn(message.role)).count()).unwrap_or(u64::MAX)
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
    /// The message as text: whose it is, and what was said.
    #[must_use]
    pub fn text(&self) -> String {
        let said = self.content.as_ref().map(content::plain).unwrap_or_default();
        format!("{}: {said}", self.role)
    }

    fn of(message: Message) -> Self {
        Self {
            seq: Seq(message.seq),
            role: message.role,
            content: message.content,
            call_id: message.tools.answers,
            tool_name: message.tools.name,
            synthetic: false,
            said_by: message.provenance.and_then(|provenance| provenance.source_session_key),
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
            said_by: None,
        }
    }
}

#[cfg(test)]
mod tests;
