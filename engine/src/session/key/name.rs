//! The names of agents and channels: one pattern, folded to lower case, and a few words that no channel may have.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

/// The longest name of an agent or a channel, in bytes.
const BYTES_MAX: usize = 64;

/// What a channel cannot be called, because keys and streams begin so; `node-` and all that begins with it too.
const RESERVED: [&str; 13] = [
    "agent", "main", "global", "unknown", "cron", "hook", "node", "run", "watch", "policy", "log",
    "subagent", "import",
];

/// The name of an agent: `[a-z0-9][a-z0-9_-]{0,63}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// Takes a name; ASCII letters are folded to lower case.
    ///
    /// # Errors
    /// `InvalidInput` when it does not match the pattern then.
    pub fn parse(name: &str) -> Result<Self> {
        fold("an agent", "agentId", name).map(Self)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a channel, of the same pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(Arc<str>);

impl Channel {
    /// Takes the name of a channel whose chats have sessions; ASCII letters are folded to lower case.
    ///
    /// # Errors
    /// `InvalidInput` when it does not match the pattern then; `ReservedChannel`.
    pub fn open(name: &str) -> Result<Self> {
        let channel = Self::any(name)?;
        if channel.is_reserved() {
            return Err(Error::new(
                ErrorKind::ReservedChannel,
                format!("a channel cannot be called {channel}"),
            )
            .field("channel")
            .hint("choose a name that no key begins with, such as cli, telegram or webhook"));
        }
        Ok(channel)
    }

    /// Takes any name of the pattern, reserved ones too.
    pub(super) fn any(name: &str) -> Result<Self> {
        fold("a channel", "channel", name).map(Self)
    }

    fn is_reserved(&self) -> bool {
        RESERVED.contains(&self.as_str()) || self.as_str().starts_with("node-")
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn fold(what: &str, field: &str, name: &str) -> Result<Arc<str>> {
    let folded = name.to_ascii_lowercase();
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    let first = folded.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    if !first || folded.len() > BYTES_MAX || !folded.bytes().all(fits) {
        return Err(Error::invalid(format!("{name:?} is not the name of {what}")).field(field).hint(
            "a name has 1 to 64 letters a to z, digits, '_' and '-', and begins with a letter or a digit",
        ));
    }
    Ok(folded.into())
}
