//! The events of a push.

use crate::error::{Error, ErrorKind, Result};
use crate::id::{EventId, Seq};
use crate::session::event::{
    ChatType, Event, Ingress, Json, Links, Members, Origin, Provenance, Role, SessionKind,
    SessionOpened, SessionPatched, Turn,
};
use crate::session::key::{AgentId, ChatSort, Parts};
use crate::session::push::target::{Chat, Target};
use crate::session::push::wanted::Request;
use crate::store::NewEvent;

use super::Pusher;

impl Pusher<'_> {
    pub(super) fn event(&self, event: &Event, id: EventId) -> Result<NewEvent> {
        let ahead = self.push.ahead.as_ref();
        let cause = ahead.map(|ahead| ahead.id).filter(|_| id == self.turn_id);
        event.to_new(self.key.stream().clone(), id, Links { cause, flow: Some(self.flow()) })
    }

    /// What everything here follows from: what caused the turn, or the turn itself.
    fn flow(&self) -> EventId {
        self.push.ahead.as_ref().map_or(self.turn_id, |ahead| ahead.flow.unwrap_or(ahead.id))
    }

    pub(super) fn turn(&self) -> Result<NewEvent> {
        let user = self.push.role == Role::User;
        let human = user && self.push.door.is_human(&self.key);
        let from = if human { Ingress::External } else { Ingress::Internal };
        let content = Json::of(&self.push.text)?;
        let provenance = Provenance {
            source_channel: Some(self.source_channel()),
            sender: self.push.door.sender().map(str::to_owned),
            ..Provenance::default()
        };
        let event = Event::Turn(Turn {
            provenance: user.then_some(provenance),
            ..Turn::new(self.session_id(), self.push.role, from, content)
        });
        self.event(&event, self.turn_id)
    }

    /// The request of the run that is to answer the turn at this position.
    pub(super) fn request(&self, turn_seq: Seq) -> Result<Option<NewEvent>> {
        let Some((id, wanted)) = self.run else { return Ok(None) };
        let of_key = self.key.agent();
        let agent = self.talk.agent.as_deref().or(of_key.as_ref().map(AgentId::as_str));
        let request = Request {
            id,
            key: &self.key,
            session_id: self.session_id(),
            agent: agent.unwrap_or(self.push.agent.as_str()),
            turn_seq,
            idempotency_key: self.push.idempotency_key.as_deref(),
            links: Links { cause: Some(self.turn_id), flow: Some(self.flow()) },
        };
        wanted.request(&request).map(Some)
    }

    /// The event that opens the session.
    ///
    /// # Errors
    /// `NotFound` for a session that no turn opens.
    pub(super) fn opening(&self) -> Result<NewEvent> {
        let push = self.push;
        let kind = push.target.opens(&self.key).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no session {:?}", self.key.as_str()))
                .field("sessionKey")
                .hint("a turn opens main buckets, chats, cron:, hook: and node- sessions alone")
        })?;
        let chat_type = self.chat_type();
        let group = matches!(chat_type, Some(ChatType::Group | ChatType::Channel));
        let of_channel = matches!(self.key.parts(), Parts::Channel { .. });
        let kind = if group && of_channel { SessionKind::Group } else { kind };
        let agent = self.key.agent().unwrap_or_else(|| push.agent.clone());
        let chat = self.chat();
        let event = Event::SessionOpened(SessionOpened {
            channel: chat.as_ref().map(|chat| chat.channel.clone()),
            chat_type,
            origin: chat.as_ref().map(|chat| self.delivery(chat, None)),
            chat_id: chat.map(|chat| chat.id),
            account_id: push.account.clone(),
            thread_id: push.thread.clone(),
            display_name: push.display_name.clone(),
            ..SessionOpened::new(self.ids.part.clone(), kind, agent.as_str())
        });
        self.event(&event, self.ids.opening)
    }

    /// The event that says what has changed about an open session.
    pub(super) fn patch(&self) -> Result<Option<NewEvent>> {
        let mut set = Vec::new();
        if let Some(name) = &self.push.display_name
            && self.talk.display_name.as_ref() != Some(name)
        {
            set.push(("displayName".to_owned(), Json::of(name)?));
        }
        if let Some(sort) = self.chat_type()
            && self.talk.chat_type != Some(sort)
        {
            set.push(("chatType".to_owned(), Json::of(&sort)?));
        }
        let known = self.talk.delivery.as_ref();
        if let Some(chat) = self.chat() {
            let push = self.push;
            let says = push.over.is_some() || push.account.is_some() || push.thread.is_some();
            let delivery = self.delivery(&chat, known);
            if says && known != Some(&delivery) {
                if known.and_then(|known| known.to.as_ref()) != Some(&chat.id) {
                    set.push(("lastTo".to_owned(), Json::of(&chat.id)?));
                }
                set.push(("deliveryContext".to_owned(), Json::of(&delivery)?));
            }
        }
        if set.is_empty() {
            return Ok(None);
        }
        self.patched(Members(set), self.ids.patch).map(Some)
    }

    pub(super) fn patched(&self, set: Members, id: EventId) -> Result<NewEvent> {
        let session_id = self.session_id().to_owned();
        self.event(&Event::SessionPatched(SessionPatched { at: None, session_id, set }), id)
    }

    /// Where answers to this turn go: as it says, and where it says nothing, as it is known of the same chat.
    fn delivery(&self, chat: &Chat, known: Option<&Origin>) -> Origin {
        let is_same = |known: &&Origin| {
            let of = |text: &Option<String>, name: &str| text.as_deref().is_none_or(|t| t == name);
            of(&known.channel, &chat.channel) && of(&known.to, &chat.id)
        };
        let known = known.filter(is_same).cloned().unwrap_or_default();
        Origin {
            channel: Some(chat.channel.clone()),
            to: Some(chat.id.clone()),
            account_id: self.push.account.clone().or(known.account_id),
            thread_id: self.push.thread.clone().or(known.thread_id),
        }
    }

    /// The chat that the turn came over: the one that is said, else the one that the key names.
    fn chat(&self) -> Option<Chat> {
        let of_key = || match (self.key.parts(), &self.push.target) {
            (Parts::Channel { channel, id } | Parts::Chat { channel, id, .. }, _) => {
                Some(Chat { channel: channel.to_string(), id: id.to_owned() })
            }
            (_, Target::Chat(chat)) => Some(chat.clone()),
            _ => None,
        };
        self.push.over.clone().or_else(of_key)
    }

    /// What sort of chat the session has: the one that the key names, else the one that is said.
    fn chat_type(&self) -> Option<ChatType> {
        match self.key.parts() {
            Parts::Chat { sort: ChatSort::Group, .. } => Some(ChatType::Group),
            Parts::Chat { sort: ChatSort::Channel, .. } => Some(ChatType::Channel),
            Parts::Chat { sort: ChatSort::Direct, .. } => Some(ChatType::Direct),
            _ => self.push.chat_type,
        }
    }

    /// What is told as the channel of the turn: that of its chat; of a job's turn `cron`; else the door.
    pub(super) fn source_channel(&self) -> String {
        if let Some(chat) = self.chat() {
            return chat.channel;
        }
        match self.key.parts() {
            Parts::Cron { .. } => "cron".to_owned(),
            _ => self.push.door.name.clone(),
        }
    }

    /// An error in the words of who pushed: he knows keys, not ids.
    pub(in crate::session::push) fn explain(&self, error: Error) -> Error {
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
}
