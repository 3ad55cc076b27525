//! The door through which turns come in from outside, whatever brings them: the command line, a webhook, a watch rule. A
//! turn goes into the session of a chat or of a key, which opens with its first turn, in one batch; a run that is to answer
//! it is asked for in the same batch. A repeat under the same idempotency key is the same turn and the same run. A part
//! whose time is over is closed ahead of the turn, in the same batch.

mod command;
mod door;
mod pusher;
mod talk;
mod target;
mod wanted;

pub use command::{Command, SendSwitch};
pub use door::{Door, Who};
pub use target::{Chat, Target};
pub use wanted::Wanted;

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::id::EventId;
use crate::projection::Folded;
use crate::store::{BLOB_MAX, Durability, EventStore, Expectation, NewEvent, Position};

use super::event::{ChatType, Json, ResetReason, Role, idempotency_id};
use super::index::{Sessions, TimeRules};
use super::key::{AgentId, SessionKey};

use pusher::Pusher;

/// A turn to push.
#[derive(Clone, Debug, PartialEq)]
pub struct Push {
    /// Where it goes.
    pub target: Target,
    /// The chat that it came over, where that is not the target's own: answers go there from now on.
    pub over: Option<Chat>,
    /// The door that it came through.
    pub door: Door,
    /// Whose turn: a user's comes from outside, an assistant's and a system's do not.
    pub role: Role,
    /// What was said.
    pub text: String,
    /// The agent that the session belongs to when it opens and its key names none.
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
    /// An event that stands ahead of the turn in the batch and causes it: what a watch rule has seen. A repeat has the
    /// same one.
    pub ahead: Option<NewEvent>,
    /// What must hold for something new to be pushed: whoever decided on what stands ahead saw this much of its stream. A
    /// repeat is one whatever has come since.
    pub expects: Option<Expectation>,
    /// The run that is to answer a user's turn.
    pub run: Option<Wanted>,
}

/// What a push is decided under.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// When parts end by themselves.
    pub rules: &'a TimeRules,
    /// Who may command, as `<channel>:<sender>`.
    pub owners: &'a [String],
    /// All sessions, which are asked for when a part is over, in case a run is at work in it.
    pub sessions: &'a (dyn Fn() -> Result<Arc<Folded<Sessions>>> + Sync),
}

impl Push {
    /// A turn in a chat with nothing but what must be said, from somebody whom nothing is known of.
    #[must_use]
    pub fn new(channel: &str, chat: &str, role: Role, text: &str, agent: AgentId) -> Self {
        let chat = Chat { channel: channel.to_owned(), id: chat.to_owned() };
        Self::to(Target::Chat(chat), Door::anonymous(channel), role, text, agent)
    }

    /// A turn with nothing but what must be said.
    #[must_use]
    pub fn to(target: Target, door: Door, role: Role, text: &str, agent: AgentId) -> Self {
        Self {
            target,
            over: None,
            door,
            role,
            text: text.to_owned(),
            agent,
            chat_type: None,
            account: None,
            thread: None,
            display_name: None,
            idempotency_key: None,
            ahead: None,
            expects: None,
            run: None,
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
        if self.run.is_some() && self.role != Role::User {
            return Err(Error::invalid(format!("no run answers a turn of {}", self.role))
                .field("role")
                .hint("a run answers a user's turn"));
        }
        if self.text.is_empty() {
            return Err(Error::invalid("the turn says nothing")
                .field("text")
                .hint("push what was said; an empty turn is none"));
        }
        check_size(&self.text)?;
        if let Some(over) = &self.over {
            SessionKey::of_chat(&over.channel, &over.id)?;
        }
        self.target.key()
    }

    /// The id that the run of this push has, if its idempotency key decides it.
    ///
    /// # Errors
    /// `InvalidInput` for an empty idempotency key.
    pub fn keyed_run_id(&self) -> Result<Option<EventId>> {
        let keyed = self.run.as_ref().zip(self.idempotency_key.as_deref());
        keyed.map(|(wanted, given)| wanted.keyed_id(&self.door.name, given)).transpose()
    }

    /// The id that the turn has, if its idempotency key decides it. What asks for a run is one call at its door, whatever
    /// it names; what does not is one of its session.
    fn keyed_turn_id(&self, key: &SessionKey) -> Result<Option<EventId>> {
        let Some(given) = &self.idempotency_key else { return Ok(None) };
        let id = match &self.run {
            Some(wanted) => idempotency_id(wanted.kind.as_str(), &self.door.name, given),
            None => idempotency_id("session.push", key.as_str(), given),
        };
        id.map(Some)
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
    /// The run that was asked for with it.
    pub run_id: Option<String>,
    /// Whether the session opened with it.
    pub opened: bool,
    /// Whether it had been pushed before, so that nothing was written now.
    pub repeated: bool,
    /// Why another part began with it, if one did.
    pub reset: Option<ResetReason>,
    /// The command that was obeyed instead of storing a turn; then no run was asked for.
    pub command: Option<Command>,
}

/// Pushes a turn. When it returns, the turn and the request of its run are on stable storage. `now` is for the ids of what
/// is new.
///
/// # Errors
/// `Conflict` when what the push expects does not hold; `ReservedChannel`; `InvalidInput` for a name that is no channel's, an empty chat, text or idempotency key, a key that is
/// too long or reserved, a role that cannot be pushed; `TooLarge` for more text than a content has room for; `IdReused`
/// when the idempotency key was used for another turn or command; `NotFound` for a session that is not there and that no
/// turn opens, and for a command to one that is not open; `Busy` for a reset by command while a run is at work; what the
/// store says.
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
    let turn = appended.positions.into_iter().find(|position| position.id == pusher.turn_id);
    let position = turn.ok_or_else(|| {
        Error::new(ErrorKind::Indeterminate, "the store gave no position for the turn")
    })?;
    let run = pusher.run.filter(|_| pusher.command.is_none());
    Ok(Pushed {
        key: pusher.key.clone(),
        session_id: pusher.session_id().to_owned(),
        position,
        run_id: run.map(|(id, _)| id.to_string()),
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
