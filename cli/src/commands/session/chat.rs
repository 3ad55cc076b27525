//! The session of a chat, as the verbs of `session` name it: a channel and a chat on it.

use annals_engine::session::index::Found;
use annals_engine::session::key::SessionKey;
use annals_tools::View;

use crate::exit::Failure;
use crate::store;

/// A chat on a channel.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Chat {
    /// The channel: cli, telegram, webhook, or any other
    #[arg(value_hint = clap::ValueHint::Other)]
    channel: String,
    /// The chat on that channel
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    chat: String,
}

impl Chat {
    /// A chat of this name.
    pub(crate) fn new(channel: &str, chat: &str) -> Self {
        Self { channel: channel.to_owned(), chat: chat.to_owned() }
    }

    /// The session's key.
    ///
    /// # Errors
    /// Usage, for a channel or a chat that cannot be.
    pub(crate) fn key(&self) -> Result<SessionKey, Failure> {
        Ok(SessionKey::of_chat(&self.channel, &self.chat)?)
    }

    /// The session, or one of its parts.
    ///
    /// # Errors
    /// Not found when it is not there; ambiguous when the beginning of an id fits several parts.
    pub(crate) fn find(&self, view: &View<'_>, part: Option<&str>) -> Result<Found, Failure> {
        let sessions = view.sessions.state();
        let operator = store::operator()?;
        let found = operator.find(sessions, self.key()?.as_str())?;
        match part {
            Some(part) => Ok(sessions.find_part(&found.key, part, operator.names)?),
            None => Ok(found),
        }
    }
}
