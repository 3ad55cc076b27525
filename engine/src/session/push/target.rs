//! Where a turn goes: the session of a chat, or one whose key is given whole; and which of these a turn opens.

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::id::EventId;
use crate::session::event::{SessionKind, idempotency_id};
use crate::session::key::{AgentId, Channel, MainBucket, Parts, SessionKey};

/// A chat on a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chat {
    /// The channel.
    pub channel: String,
    /// The chat on that channel.
    pub id: String,
}

/// Where a turn goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The session of a chat.
    Chat(Chat),
    /// The session of a key. Main buckets, chats of agents, jobs, webhooks, nodes and chats of channels open with their
    /// first turn; any other must be there.
    Key(SessionKey),
    /// The bucket that all share, where the configuration says that they do.
    Shared,
}

impl Target {
    /// The target that a text names: any key, and `main` as the main bucket of the current agent or as the one that all
    /// share.
    ///
    /// # Errors
    /// What [`SessionKey::parse`] and [`Target::key`] say.
    pub fn named(text: &str, current: &AgentId, main: MainBucket) -> Result<Self> {
        let key = SessionKey::parse(text, current)?;
        let shared = text.eq_ignore_ascii_case("main") || key.parts() == Parts::Global;
        let target = match main {
            MainBucket::Shared if shared => Self::Shared,
            _ => Self::Key(key),
        };
        target.key()?;
        Ok(target)
    }

    /// A webhook's session of its own. Calls with the same idempotency key have the same one.
    ///
    /// # Errors
    /// `InvalidInput` for an empty idempotency key.
    pub fn hook(door: &str, idempotency_key: Option<&str>, now: Timestamp) -> Result<Self> {
        let id = match idempotency_key {
            Some(given) => idempotency_id("hook", door, given)?,
            None => EventId::new(now),
        };
        let id = id.to_string();
        SessionKey::of(&Parts::Hook { id: &id }).map(Self::Key)
    }

    /// The key.
    ///
    /// # Errors
    /// `ReservedChannel`; `InvalidInput` for a name that is no channel's, an empty chat, a key that is too long, and the
    /// reserved keys, which are nobody's.
    pub fn key(&self) -> Result<SessionKey> {
        let key = match self {
            Self::Chat(chat) => return SessionKey::of_chat(&chat.channel, &chat.id),
            Self::Shared => return SessionKey::of(&Parts::Global),
            Self::Key(key) => key,
        };
        if key.is_reserved() {
            return Err(Error::invalid(format!("no turn goes into {key}"))
                .field("sessionKey")
                .hint("name a session; with session.scope \"global\", `main` is the one that all share"));
        }
        if let Parts::Chat { channel, .. } = key.parts() {
            Channel::open(channel.as_str())?;
        }
        Ok(key.clone())
    }

    /// The kind of session that opens with its first turn; `None` when none does.
    pub(super) fn opens(&self, key: &SessionKey) -> Option<SessionKind> {
        match (self, key.parts()) {
            (Self::Shared, _) => Some(SessionKind::Main),
            (_, Parts::Subagent { .. } | Parts::Own { .. } | Parts::Global | Parts::Unknown) => {
                None
            }
            _ => Some(key.kind_at_opening()),
        }
    }
}
