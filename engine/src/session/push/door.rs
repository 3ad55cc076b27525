//! The door that a turn came through, and who stood there. A door says it; no body and no text can.

use crate::session::key::{Parts, SessionKey};

/// A door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// What it is called: `cli`, `webhook`, `watch`. It is told as the channel of turns that came over no chat, and calls
    /// with the same idempotency key are the same call at the same door alone.
    pub name: String,
    /// Who stands there.
    pub who: Who,
}

/// Who stands at a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The owner of the store, at the command line.
    Operator,
    /// Somebody on a channel.
    Person {
        /// As the channel names him.
        sender: Option<String>,
        /// Whether the door knows that he is the one he is called.
        vouched: bool,
    },
    /// A program that nobody watches: a job, a watch rule. What it says is no human activity.
    Program,
}

impl Door {
    /// The command line.
    #[must_use]
    pub fn cli() -> Self {
        Self { name: "cli".to_owned(), who: Who::Operator }
    }

    /// A door at which somebody stands whom nothing is known of.
    #[must_use]
    pub fn anonymous(name: &str) -> Self {
        Self { name: name.to_owned(), who: Who::Person { sender: None, vouched: false } }
    }

    /// The sender, as the channel names him.
    pub(super) fn sender(&self) -> Option<&str> {
        match &self.who {
            Who::Person { sender, .. } => sender.as_deref().filter(|sender| !sender.is_empty()),
            Who::Operator | Who::Program => None,
        }
    }

    /// Whether whoever stands here may command: the operator, and an owner (`<channel>:<sender>`) for whom the door
    /// vouches.
    pub(super) fn is_owners(&self, channel: &str, owners: &[String]) -> bool {
        match &self.who {
            Who::Operator => true,
            Who::Person { vouched: true, .. } => self.sender().is_some_and(|sender| {
                owners.iter().filter_map(|owner| owner.split_once(':')).any(|(of, name)| {
                    of.trim().eq_ignore_ascii_case(channel) && name.trim() == sender
                })
            }),
            Who::Person { vouched: false, .. } | Who::Program => false,
        }
    }

    /// Whether what a user says here is said by a person. A job's turns are not, whoever brings them.
    pub(super) fn is_human(&self, key: &SessionKey) -> bool {
        let job = matches!(key.parts(), Parts::Cron { .. });
        self.who != Who::Program && !job
    }
}
