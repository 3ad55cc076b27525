//! Session keys: the one canonicaliser, which every path uses that names a session.
//!
//! | shape | kind | what |
//! |---|---|---|
//! | `main` | main | alias of the current agent's main bucket |
//! | `agent:<agent>:main` | main | an agent's main bucket |
//! | `agent:<agent>:<channel>:group:<id>`, `…:channel:<id>` | group | group chats |
//! | `agent:<agent>:<channel>:direct:<id>` | other | direct chats kept apart |
//! | `agent:<agent>:subagent:<id>` | other | a spawned child |
//! | `agent:<agent>:<name>` | other | anything else that an agent has |
//! | `cron:<id>`, `hook:<id>`, `node-<id>` | cron, hook, node | jobs, webhooks, nodes |
//! | `<channel>:<id>` | other | a chat on a channel |
//! | `global`, `unknown` | none | reserved |
//!
//! Case folds in the structural parts only; ids and names are opaque: the bytes decide, no Unicode form is preferred
//! over another, and colons belong to them. A key is raw text. It is never a path and nothing is escaped here.

mod bucket;
mod name;

pub use bucket::MainBucket;
pub use name::{AgentId, Channel};

use std::fmt;

use crate::error::{Error, Result};
use crate::id::StreamName;

use super::event::SessionKind;

/// A session key in its canonical form, which is also the name of the session's stream. At most
/// [`SessionKey::BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(StreamName);

/// What a key says, part by part. Ids and names are not empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Parts<'a> {
    /// An agent's main bucket.
    Main {
        /// The agent.
        agent: AgentId,
    },
    /// A chat of an agent.
    Chat {
        /// The agent.
        agent: AgentId,
        /// The channel; reserved names are taken here as they come.
        channel: Channel,
        /// What sort of chat.
        sort: ChatSort,
        /// The chat on that channel.
        id: &'a str,
    },
    /// A spawned child.
    Subagent {
        /// The agent.
        agent: AgentId,
        /// The child.
        id: &'a str,
    },
    /// Anything else that an agent has.
    Own {
        /// The agent.
        agent: AgentId,
        /// All that follows the agent.
        name: &'a str,
    },
    /// A scheduled job.
    Cron {
        /// The job.
        id: &'a str,
    },
    /// A webhook.
    Hook {
        /// The call.
        id: &'a str,
    },
    /// A node.
    Node {
        /// The node.
        id: &'a str,
    },
    /// A chat on a channel.
    Channel {
        /// The channel; no reserved name.
        channel: Channel,
        /// The chat on that channel.
        id: &'a str,
    },
    /// The bucket that all share.
    Global,
    /// What belongs nowhere.
    Unknown,
}

/// The kind word of an agent's chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChatSort {
    /// `group`.
    Group,
    /// `channel`.
    Channel,
    /// `direct`.
    Direct,
}

impl SessionKey {
    /// The longest key, in bytes of raw text.
    pub const BYTES_MAX: usize = StreamName::BYTES_MAX;

    /// Makes a key canonical. `current` is the agent that `main` stands for.
    ///
    /// # Errors
    /// `InvalidInput` when the text has no shape of a key, names no agent or channel, names a reserved channel, lacks
    /// the id, or is too long.
    pub fn parse(text: &str, current: &AgentId) -> Result<Self> {
        if text.eq_ignore_ascii_case("main") {
            return Self::of(&Parts::Main { agent: current.clone() });
        }
        Self::of(&Parts::read(text)?)
    }

    /// The key of a chat on a channel.
    ///
    /// # Errors
    /// `InvalidInput` when the channel is none or reserved, the chat is empty, or the key is too long.
    pub fn of_chat(channel: &str, chat: &str) -> Result<Self> {
        Self::of(&Parts::Channel { channel: Channel::open(channel)?, id: chat })
    }

    /// The key of these parts.
    ///
    /// # Errors
    /// `InvalidInput` when an id is empty, the key is too long, or its text would read as other parts.
    pub fn of(parts: &Parts<'_>) -> Result<Self> {
        let text = parts.to_string();
        if text.len() > Self::BYTES_MAX {
            return Err(invalid(format!(
                "a session key has at most {} bytes, this one has {}",
                Self::BYTES_MAX,
                text.len()
            )));
        }
        if Parts::read(&text)? != *parts {
            return Err(invalid(format!("the parts of {text:?} read as another key")));
        }
        Ok(Self(StreamName::new(text)?))
    }

    /// The key that a stream is named by; `None` for the streams of runs, rules and the log itself, and for text that
    /// is not canonical.
    #[must_use]
    pub fn of_stream(stream: &StreamName) -> Option<Self> {
        let parts = Parts::read(stream.as_str()).ok()?;
        (parts.to_string() == stream.as_str()).then(|| Self(stream.clone()))
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The session's stream.
    #[must_use]
    pub fn stream(&self) -> &StreamName {
        &self.0
    }

    /// What it says, part by part.
    #[must_use]
    pub fn parts(&self) -> Parts<'_> {
        Parts::read(self.as_str()).unwrap_or(Parts::Unknown)
    }

    /// The agent that the key names.
    #[must_use]
    pub fn agent(&self) -> Option<AgentId> {
        match self.parts() {
            Parts::Main { agent }
            | Parts::Chat { agent, .. }
            | Parts::Subagent { agent, .. }
            | Parts::Own { agent, .. } => Some(agent),
            _ => None,
        }
    }

    /// The kind that a session of this key has when it opens and nobody says otherwise. From then on the stored field
    /// counts.
    #[must_use]
    pub fn kind_at_opening(&self) -> SessionKind {
        match self.parts() {
            Parts::Main { .. } => SessionKind::Main,
            Parts::Chat { sort: ChatSort::Group | ChatSort::Channel, .. } => SessionKind::Group,
            Parts::Cron { .. } => SessionKind::Cron,
            Parts::Hook { .. } => SessionKind::Hook,
            Parts::Node { .. } => SessionKind::Node,
            _ => SessionKind::Other,
        }
    }

    /// How it is shown to a caller of this agent: its own main bucket as `main`, everything else as it is.
    #[must_use]
    pub fn shown_to(&self, agent: &AgentId) -> &str {
        match self.parts() {
            Parts::Main { agent: of } if of == *agent => "main",
            _ => self.as_str(),
        }
    }

    /// Whether it is one of the reserved keys that no list shows.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        matches!(self.parts(), Parts::Global | Parts::Unknown)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<'a> Parts<'a> {
    fn read(text: &'a str) -> Result<Self> {
        if let Some((head, id)) = text.split_at_checked(5)
            && head.eq_ignore_ascii_case("node-")
        {
            return Ok(Self::Node { id: filled(text, id)? });
        }
        if text.eq_ignore_ascii_case("global") {
            return Ok(Self::Global);
        }
        if text.eq_ignore_ascii_case("unknown") {
            return Ok(Self::Unknown);
        }
        let Some((head, rest)) = text.split_once(':') else {
            return Err(invalid(format!("{text:?} is not a session key"))
                .hint("keys look like main, cli:default, telegram:42 or agent:main:main"));
        };
        if head.eq_ignore_ascii_case("agent") {
            return Self::read_agent(text, rest);
        }
        let id = filled(text, rest)?;
        match head.to_ascii_lowercase().as_str() {
            "cron" => Ok(Self::Cron { id }),
            "hook" => Ok(Self::Hook { id }),
            _ => Ok(Self::Channel { channel: Channel::open(head)?, id }),
        }
    }

    fn read_agent(text: &'a str, rest: &'a str) -> Result<Self> {
        let (agent, name) = rest.split_once(':').unwrap_or((rest, ""));
        let agent = AgentId::parse(agent)?;
        let name = filled(text, name)?;
        if name.eq_ignore_ascii_case("main") {
            return Ok(Self::Main { agent });
        }
        let Some((word, rest)) = name.split_once(':') else {
            return Ok(Self::Own { agent, name });
        };
        if word.eq_ignore_ascii_case("subagent") {
            return Ok(Self::Subagent { agent, id: filled(text, rest)? });
        }
        if let Some((sort, id)) = rest.split_once(':')
            && let Some(sort) = ChatSort::read(sort)
            && let Ok(channel) = Channel::any(word)
        {
            return Ok(Self::Chat { agent, channel, sort, id: filled(text, id)? });
        }
        Ok(Self::Own { agent, name })
    }
}

impl fmt::Display for Parts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main { agent } => write!(f, "agent:{agent}:main"),
            Self::Chat { agent, channel, sort, id } => {
                write!(f, "agent:{agent}:{channel}:{}:{id}", sort.as_str())
            }
            Self::Subagent { agent, id } => write!(f, "agent:{agent}:subagent:{id}"),
            Self::Own { agent, name } => write!(f, "agent:{agent}:{name}"),
            Self::Cron { id } => write!(f, "cron:{id}"),
            Self::Hook { id } => write!(f, "hook:{id}"),
            Self::Node { id } => write!(f, "node-{id}"),
            Self::Channel { channel, id } => write!(f, "{channel}:{id}"),
            Self::Global => f.write_str("global"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl ChatSort {
    const ALL: [Self; 3] = [Self::Group, Self::Channel, Self::Direct];

    /// The word in a key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Channel => "channel",
            Self::Direct => "direct",
        }
    }

    fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| word.eq_ignore_ascii_case(sort.as_str()))
    }
}

fn filled<'a>(key: &str, id: &'a str) -> Result<&'a str> {
    if id.is_empty() {
        return Err(invalid(format!("the session key {key:?} ends before its id")));
    }
    Ok(id)
}

fn invalid(message: String) -> Error {
    Error::invalid(message).field("sessionKey")
}

#[cfg(test)]
mod tests;
