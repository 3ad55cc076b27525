//! Pushing a turn into the session of a chat on a channel: the session opens with its first turn, in one batch, and a
//! repeat under the same idempotency key is the same turn.

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::id::{EventId, Version};
use crate::store::{
    Append, Cursor, Decider, Durability, EventStore, Item, NewEvent, Position, Record, View,
};

use super::event::{
    ChatType, Event, Ingress, Json, Links, Members, Origin, Provenance, Role, SessionKind,
    SessionOpened, SessionPatched, Turn, TurnHead, idempotency_id,
};
use super::key::{AgentId, Parts, SessionKey};

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
        }
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
}

/// Pushes a turn. When it returns, the turn is on stable storage. `now` is for the ids of what is new.
///
/// # Errors
/// `InvalidInput` for a name that is no channel's or reserved, an empty chat, a key that is too long, a role that
/// cannot be pushed; `IdReused` when the idempotency key was used for another turn; what the store says.
pub fn push(store: &dyn EventStore, push: &Push, now: Timestamp) -> Result<Pushed> {
    let mut pusher = Pusher::new(push, now)?;
    pusher.load(store)?;
    let appended = store.append_deciding(&mut pusher, Durability::Synced)?;
    let position = appended.positions.last().cloned().ok_or_else(|| {
        Error::new(crate::ErrorKind::Indeterminate, "the store gave no position for the turn")
    })?;
    Ok(Pushed {
        key: pusher.key.clone(),
        session_id: pusher.session_id().to_owned(),
        position,
        opened: pusher.opens && !appended.repeated,
        repeated: appended.repeated,
    })
}

/// The decision, with as much of the session's state as it needs: which part is current, what it is called, and
/// whether this very turn is there.
#[derive(Clone, Debug)]
pub struct Pusher<'a> {
    push: &'a Push,
    key: SessionKey,
    turn_id: EventId,
    /// The ids of what opens or patches the session, and of its first part.
    other_id: EventId,
    first_part: String,
    seen: Option<Cursor>,
    current: Option<String>,
    display_name: Option<String>,
    /// The part that this turn is in already.
    pushed_in: Option<String>,
    /// Whether the last decision was to open.
    opens: bool,
}

impl<'a> Pusher<'a> {
    /// A decision that has seen nothing.
    ///
    /// # Errors
    /// `InvalidInput` for what cannot be pushed.
    pub fn new(push: &'a Push, now: Timestamp) -> Result<Self> {
        if push.role == Role::ToolResult {
            return Err(Error::invalid("a turn is pushed as user, assistant or system")
                .field("role")
                .hint("results of tools come with the runs that call them"));
        }
        let key = SessionKey::of_chat(&push.channel, &push.chat)?;
        let turn_id = push.idempotency_key.as_ref().map_or_else(
            || EventId::new(now),
            |given| idempotency_id("session.push", key.as_str(), given),
        );
        Ok(Self {
            push,
            key,
            turn_id,
            other_id: EventId::new(now),
            first_part: EventId::new(now).to_string(),
            seen: None,
            current: None,
            display_name: None,
            pushed_in: None,
            opens: false,
        })
    }

    /// Sees the session's own stream, so that the store need not show it the whole log.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub fn load(&mut self, store: &dyn EventStore) -> Result<()> {
        let Some(end) = store.end(View::Durable)? else { return Ok(()) };
        for item in store.read_stream(self.key.stream(), Version::ZERO)? {
            match item? {
                Item::Record(record) if record.seq > end.seq() => break,
                Item::Record(record) => self.take(&record),
                Item::Gap(_) => {}
            }
        }
        self.seen = Some(end);
        Ok(())
    }

    fn take(&mut self, record: &Record) {
        if record.stream != *self.key.stream() {
            return;
        }
        if record.kind.as_str() == "turn" {
            if self.current.is_some() && record.id != self.turn_id {
                return;
            }
            let Some(head) = TurnHead::read(record.data.as_str()) else { return };
            let part = head.session_id.to_string();
            if record.id == self.turn_id {
                self.pushed_in = Some(part.clone());
            }
            self.current.get_or_insert(part);
            return;
        }
        match Event::of(record) {
            Ok(Event::SessionOpened(e)) => {
                self.current = Some(e.session_id);
                self.display_name = self.display_name.take().or(e.display_name);
            }
            Ok(Event::SessionReset(e)) => self.current = Some(e.session_id),
            Ok(Event::SessionResumed(e)) => self.current = Some(e.session_id),
            Ok(Event::SessionPatched(e)) => {
                if let Some(name) = e.set.get("displayName") {
                    self.display_name = name.read();
                }
            }
            _ => {}
        }
    }

    /// The part that the turn is in, or goes into.
    fn session_id(&self) -> &str {
        let known = self.pushed_in.as_deref().or(self.current.as_deref());
        known.unwrap_or(&self.first_part)
    }

    fn event(&self, event: &Event, id: EventId) -> Result<NewEvent> {
        let links = Links { cause: None, flow: Some(self.turn_id) };
        event.to_new(self.key.stream().clone(), id, links)
    }

    fn turn(&self) -> Result<NewEvent> {
        let external = self.push.role == Role::User;
        let from = if external { Ingress::External } else { Ingress::Internal };
        let content = Json::of(&self.push.text)?;
        let provenance =
            Provenance { source_channel: Some(self.channel()), ..Provenance::default() };
        let event = Event::Turn(Turn {
            provenance: external.then_some(provenance),
            ..Turn::new(self.session_id(), self.push.role, from, content)
        });
        self.event(&event, self.turn_id)
    }

    fn opening(&self) -> Result<NewEvent> {
        let push = self.push;
        let group = matches!(push.chat_type, Some(ChatType::Group | ChatType::Channel));
        let kind = if group { SessionKind::Group } else { self.key.kind_at_opening() };
        let event = Event::SessionOpened(SessionOpened {
            channel: Some(self.channel()),
            chat_type: push.chat_type,
            chat_id: Some(push.chat.clone()),
            account_id: push.account.clone(),
            thread_id: push.thread.clone(),
            display_name: push.display_name.clone(),
            origin: Some(Origin {
                channel: Some(self.channel()),
                to: Some(push.chat.clone()),
                account_id: push.account.clone(),
                thread_id: push.thread.clone(),
            }),
            ..SessionOpened::new(self.first_part.clone(), kind, push.agent.as_str())
        });
        self.event(&event, self.other_id)
    }

    /// The event that renames a session which is called otherwise.
    fn renaming(&self) -> Result<Option<NewEvent>> {
        let Some(name) = self.push.display_name.as_ref() else { return Ok(None) };
        if self.display_name.as_ref() == Some(name) {
            return Ok(None);
        }
        let event = Event::SessionPatched(SessionPatched {
            at: None,
            session_id: self.session_id().to_owned(),
            set: Members(vec![("displayName".to_owned(), Json::of(name)?)]),
        });
        self.event(&event, self.other_id).map(Some)
    }

    fn channel(&self) -> String {
        match self.key.parts() {
            Parts::Channel { channel, .. } => channel.to_string(),
            _ => self.push.channel.clone(),
        }
    }
}

impl Decider for Pusher<'_> {
    fn seen(&self) -> Option<Cursor> {
        self.seen
    }

    fn apply(&mut self, item: &Item, cursor: &Cursor) {
        if let Item::Record(record) = item {
            self.take(record);
        }
        self.seen = Some(*cursor);
    }

    fn restart(&mut self) {
        self.seen = None;
        self.current = None;
        self.display_name = None;
        self.pushed_in = None;
    }

    fn decide(&mut self, _now: Timestamp) -> Result<Append> {
        let mut events = Vec::new();
        self.opens = self.current.is_none();
        if self.opens {
            events.push(self.opening()?);
        } else if self.pushed_in.is_none() {
            events.extend(self.renaming()?);
        }
        events.push(self.turn()?);
        Ok(Append::new(events))
    }
}

#[cfg(test)]
mod tests;
