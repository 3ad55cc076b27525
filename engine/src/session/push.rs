//! Pushing a turn into the session of a chat on a channel: the session opens with its first turn, in one batch, and a
//! repeat under the same idempotency key is the same turn.

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::id::{EventId, Version};
use crate::store::{
    Append, BLOB_MAX, Cursor, Decider, Durability, EventStore, Item, NewEvent, Position, Record,
    View,
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
/// `InvalidInput` for a name that is no channel's or reserved, an empty chat, text or idempotency key, a key that is too
/// long, a role that cannot be pushed; `TooLarge` for more text than a content has room for; `IdReused` when the
/// idempotency key was used for another turn; what the store says.
pub fn push(store: &dyn EventStore, push: &Push, now: Timestamp) -> Result<Pushed> {
    let mut pusher = Pusher::new(push, now)?;
    pusher.load(store)?;
    let mut appended = store.append_deciding(&mut pusher, Durability::Synced);
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
    })
}

/// The types of the events that tell of a session's parts and of its chat.
const TELLING: [&str; 4] =
    ["session.opened", "session.patched", "session.reset", "session.resumed"];

/// What a session is known to be: what a push may say anew.
#[derive(Clone, Debug, Default)]
struct Chat {
    display_name: Option<String>,
    chat_type: Option<ChatType>,
    /// Where answers go.
    delivery: Option<Origin>,
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
    known: Chat,
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
        if push.text.is_empty() {
            return Err(Error::invalid("the turn says nothing")
                .field("text")
                .hint("push what was said; an empty turn is none"));
        }
        check_size(&push.text)?;
        let key = SessionKey::of_chat(&push.channel, &push.chat)?;
        let turn_id = match &push.idempotency_key {
            Some(given) => idempotency_id("session.push", key.as_str(), given)?,
            None => EventId::new(now),
        };
        Ok(Self {
            push,
            key,
            turn_id,
            other_id: EventId::new(now),
            first_part: EventId::new(now).to_string(),
            seen: None,
            current: None,
            known: Chat::default(),
            pushed_in: None,
            opens: false,
        })
    }

    /// Sees what the session's own stream tells of its parts and its chat, so that the store need not show it the whole
    /// log. Turns are passed over: a repeat of one in the current part is known by the store, and any other is found by
    /// [`Pusher::load_turns`].
    ///
    /// # Errors
    /// Whatever reading meets.
    pub fn load(&mut self, store: &dyn EventStore) -> Result<()> {
        let Some(end) = store.end(View::Durable)? else { return Ok(()) };
        let stream = self.key.stream().clone();
        for item in store.read_stream_of(&stream, &TELLING)? {
            self.see(&item?, end);
        }
        if self.current.is_none() && store.head(&stream)? > Version::ZERO {
            // What opened it is lost: the part of its first turn is the current one.
            for item in store.read_stream(&stream, Version::ZERO)? {
                self.see(&item?, end);
                if self.current.is_some() {
                    break;
                }
            }
        }
        self.seen = Some(end);
        Ok(())
    }

    /// Sees the whole stream, for a turn that may stand in a part that is not the current one any more.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub fn load_turns(&mut self, store: &dyn EventStore) -> Result<()> {
        self.restart();
        let Some(end) = store.end(View::Durable)? else { return Ok(()) };
        let stream = self.key.stream().clone();
        for item in store.read_stream(&stream, Version::ZERO)? {
            self.see(&item?, end);
        }
        self.seen = Some(end);
        Ok(())
    }

    fn see(&mut self, item: &Item, end: Cursor) {
        if let Item::Record(record) = item
            && record.seq <= end.seq()
        {
            self.take(record);
        }
    }

    /// Whether an append was refused because the turn, or another under its key, is there already.
    fn may_repeat(&self, error: &Error) -> bool {
        let known = matches!(error.kind(), ErrorKind::IdReused | ErrorKind::PartialDuplicate);
        known && self.push.idempotency_key.is_some() && self.pushed_in.is_none()
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
                let known = &mut self.known;
                known.display_name = known.display_name.take().or(e.display_name);
                known.chat_type = known.chat_type.or(e.chat_type);
                known.delivery = known.delivery.take().or(e.origin);
            }
            Ok(Event::SessionReset(e)) => self.current = Some(e.session_id),
            Ok(Event::SessionResumed(e)) => self.current = Some(e.session_id),
            Ok(Event::SessionPatched(e)) => {
                let known = &mut self.known;
                for (field, value) in &e.set.0 {
                    match field.as_str() {
                        "displayName" => known.display_name = value.read(),
                        "chatType" => known.chat_type = value.read(),
                        "deliveryContext" => known.delivery = value.read(),
                        _ => {}
                    }
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
            origin: Some(self.delivery(None)),
            ..SessionOpened::new(self.first_part.clone(), kind, push.agent.as_str())
        });
        self.event(&event, self.other_id)
    }

    /// The event that says what has changed about an open session.
    fn patch(&self) -> Result<Option<NewEvent>> {
        let mut set = Vec::new();
        if let Some(name) = &self.push.display_name
            && self.known.display_name.as_ref() != Some(name)
        {
            set.push(("displayName".to_owned(), Json::of(name)?));
        }
        if let Some(sort) = self.push.chat_type
            && self.known.chat_type != Some(sort)
        {
            set.push(("chatType".to_owned(), Json::of(&sort)?));
        }
        let known = self.known.delivery.as_ref();
        let delivery = self.delivery(known);
        if (self.push.account.is_some() || self.push.thread.is_some()) && known != Some(&delivery) {
            set.push(("deliveryContext".to_owned(), Json::of(&delivery)?));
        }
        if set.is_empty() {
            return Ok(None);
        }
        let event = Event::SessionPatched(SessionPatched {
            at: None,
            session_id: self.session_id().to_owned(),
            set: Members(set),
        });
        self.event(&event, self.other_id).map(Some)
    }

    /// Where answers to this turn go: as it says, and where it says nothing, as it is known.
    fn delivery(&self, known: Option<&Origin>) -> Origin {
        let push = self.push;
        let known = known.cloned().unwrap_or_default();
        Origin {
            channel: Some(self.channel()),
            to: Some(push.chat.clone()),
            account_id: push.account.clone().or(known.account_id),
            thread_id: push.thread.clone().or(known.thread_id),
        }
    }

    /// An error in the words of who pushed: he knows keys, not ids.
    fn explain(&self, error: Error) -> Error {
        let Some(key) = self.push.idempotency_key.as_ref() else { return error };
        if *error.kind() != ErrorKind::IdReused {
            return error;
        }
        let message =
            format!("the idempotency key {key:?} was used for another turn of {}", self.key);
        let explained = Error::new(ErrorKind::IdReused, message)
            .field("idempotencyKey")
            .hint("a repeat has the same role and text; give another turn a key of its own");
        match error.place().seq {
            Some(seq) => explained.seq(seq),
            None => explained,
        }
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
        self.known = Chat::default();
        self.pushed_in = None;
    }

    fn decide(&mut self, _now: Timestamp) -> Result<Append> {
        let mut events = Vec::new();
        self.opens = self.current.is_none();
        if self.opens {
            events.push(self.opening()?);
        } else if self.pushed_in.is_none() {
            events.extend(self.patch()?);
        }
        events.push(self.turn()?);
        Ok(Append::new(events))
    }
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
