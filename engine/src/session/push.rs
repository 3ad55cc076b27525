//! Pushing a turn into the session of a chat on a channel: the session opens with its first turn, in one batch, and a
//! repeat under the same idempotency key is the same turn. A part whose time is over is closed ahead of the turn, in the
//! same batch; so is a policy file that says something new made known.

mod command;
mod pusher;
mod talk;

pub use command::{Command, SendSwitch};

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::projection::Folded;
use crate::store::{BLOB_MAX, Durability, EventStore, Position};

use super::event::{ChatType, Json, ResetReason, Role};
use super::index::{Sessions, TimeRules};
use super::key::{AgentId, SessionKey};
use super::policy::PolicyFile;

use pusher::Pusher;

/// A turn to push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The channel.
    pub channel: String,
    /// The chat on that channel.
    pub chat: String,
    /// Whose turn: a user's comes from outside, an assistant's and a system's do not.
    pub role: Role,
    /// What was said.
    pub text: String,
    /// The agent that the session belongs to when it opens.
    pub agent: AgentId,
    /// What sort of chat.
    pub chat_type: Option<ChatType>,
    /// The account on the channel.
    pub account: Option<String>,
    /// The thread.
    pub thread: Option<String>,
    /// The name that the channel shows.
    pub display_name: Option<String>,
    /// Repeats with the same key push once.
    pub idempotency_key: Option<String>,
    /// Whether who pushes is an owner: then a user's turn that is a command is obeyed instead of stored.
    pub owner: bool,
}

/// What a push is decided under.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// When parts end by themselves.
    pub rules: &'a TimeRules,
    /// What the configuration says about policy; `None` when there is no file.
    pub policy: Option<&'a PolicyFile>,
    /// All sessions, which are asked for when a part is over, in case a run is at work in it.
    pub sessions: &'a (dyn Fn() -> Result<Arc<Folded<Sessions>>> + Sync),
}

impl Push {
    /// A turn with nothing but what must be said.
    #[must_use]
    pub fn new(channel: &str, chat: &str, role: Role, text: &str, agent: AgentId) -> Self {
        Self {
            channel: channel.to_owned(),
            chat: chat.to_owned(),
            role,
            text: text.to_owned(),
            agent,
            chat_type: None,
            account: None,
            thread: None,
            display_name: None,
            idempotency_key: None,
            owner: false,
        }
    }

    /// The key that it goes to.
    ///
    /// # Errors
    /// `InvalidInput` and `TooLarge` for what cannot be pushed.
    pub fn check(&self) -> Result<SessionKey> {
        if self.role == Role::ToolResult {
            return Err(Error::invalid("a turn is pushed as user, assistant or system")
                .field("role")
                .hint("results of tools come with the runs that call them"));
        }
        if self.text.is_empty() {
            return Err(Error::invalid("the turn says nothing")
                .field("text")
                .hint("push what was said; an empty turn is none"));
        }
        check_size(&self.text)?;
        SessionKey::of_chat(&self.channel, &self.chat)
    }
}

/// Where a turn went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The session.
    pub key: SessionKey,
    /// The part.
    pub session_id: String,
    /// The turn's place.
    pub position: Position,
    /// Whether the session opened with it.
    pub opened: bool,
    /// Whether it had been pushed before, so that nothing was written now.
    pub repeated: bool,
    /// Why another part began with it, if one did.
    pub reset: Option<ResetReason>,
    /// The command that was obeyed instead of storing a turn.
    pub command: Option<Command>,
}

/// Pushes a turn. When it returns, the turn is on stable storage. `now` is for the ids of what is new.
///
/// # Errors
/// `ReservedChannel`; `InvalidInput` for a name that is no channel's, an empty chat, text or idempotency key, a key that is
/// too long, a role that cannot be pushed; `TooLarge` for more text than a content has room for; `IdReused` when the
/// idempotency key was used for another turn or command; `NotFound` for a command to a session that is not open; `Busy`
/// for a reset by command while a run is at work; what the store says.
pub fn push(
    store: &dyn EventStore,
    push: &Push,
    terms: &Terms<'_>,
    now: Timestamp,
) -> Result<Pushed> {
    let mut pusher = Pusher::new(push, terms, now)?;
    pusher.load(store, now)?;
    let mut appended = store.append_deciding(&mut pusher, Durability::Synced);
    if appended.is_err() && pusher.wants_runs {
        pusher.load_runs()?;
        appended = store.append_deciding(&mut pusher, Durability::Synced);
    }
    if appended.as_ref().is_err_and(|e| pusher.may_repeat(e)) {
        pusher.load_turns(store)?;
        appended = store.append_deciding(&mut pusher, Durability::Synced);
    }
    let appended = appended.map_err(|e| pusher.explain(e))?;
    let position = appended.positions.last().cloned().ok_or_else(|| {
        Error::new(ErrorKind::Indeterminate, "the store gave no position for the turn")
    })?;
    Ok(Pushed {
        key: pusher.key.clone(),
        session_id: pusher.session_id().to_owned(),
        position,
        opened: pusher.opens && !appended.repeated,
        repeated: appended.repeated,
        reset: pusher.reset.filter(|_| !appended.repeated),
        command: pusher.command,
    })
}

/// Refuses text that no content has room for, in terms of the text: as JSON it is longer.
fn check_size(text: &str) -> Result<()> {
    // A byte is at most six as JSON.
    if text.len() < BLOB_MAX / 6 {
        return Ok(());
    }
    let size = Json::of(text)?.as_str().len();
    if size <= BLOB_MAX {
        return Ok(());
    }
    let message = format!(
        "the text has {} bytes and {size} as JSON; a turn has at most {BLOB_MAX} as JSON",
        text.len()
    );
    Err(Error::new(ErrorKind::TooLarge, message).field("text").hint("push it in several turns"))
}

#[cfg(test)]
mod tests;
