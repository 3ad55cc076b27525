//! What a setting may be, and how its text in the environment reads.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::session::key::{AgentId, Channel};
use crate::session::policy::SendPolicy;
use crate::session::reset::Zone;

use super::strict;

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// On or off.
    Switch,
    /// A whole number, both ends included.
    Whole(u64, u64),
    /// One of these words, whatever the case of its letters.
    Word(&'static [&'static str]),
    /// Text that is not empty.
    Text,
    /// Text that is never shown.
    Secret,
    /// Text that is never shown and may be empty: a variable of an agent's environment.
    Variable,
    /// A list of texts.
    Texts,
    /// A list of texts that are never shown.
    Secrets,
    /// A path.
    Path,
    /// A time zone.
    Zone,
    /// An agent's id.
    AgentId,
    /// A channel that sessions may be opened on.
    Channel,
    /// A send policy.
    SendPolicy,
    /// Anything: it is accepted and has no effect.
    Ignored,
}

impl Kind {
    /// What is legal, in words.
    pub(super) fn legal(self) -> String {
        match self {
            Self::Switch => "true or false (in the environment 1 or 0)".to_owned(),
            Self::Whole(low, high) => format!("a whole number from {low} to {high}"),
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Text | Self::Secret => "a text that is not empty".to_owned(),
            Self::Variable => "a text".to_owned(),
            Self::Texts | Self::Secrets => "a list of texts".to_owned(),
            Self::Path => "a path".to_owned(),
            Self::Zone => "a time zone such as Europe/Berlin or UTC".to_owned(),
            Self::AgentId => "an agent id: a-z, 0-9, _ and -, at most 64".to_owned(),
            Self::Channel => "the name of a channel: a-z, 0-9, _ and -, none reserved".to_owned(),
            Self::SendPolicy => {
                "{default: \"allow\"|\"deny\", rules: [{match: {channel, chatType, keyPrefix, rawKeyPrefix}, action}]}"
                    .to_owned()
            }
            Self::Ignored => "anything".to_owned(),
        }
    }

    /// A value in the form in which it is kept; the error has no place yet.
    pub(super) fn check(self, value: &Value) -> Result<Value> {
        let taken = match self {
            Self::Switch => value.is_boolean().then(|| value.clone()),
            Self::Whole(low, high) => {
                value.as_u64().filter(|n| (low..=high).contains(n)).map(Value::from)
            }
            Self::Word(words) => value.as_str().and_then(|text| word(words, text)),
            Self::Text | Self::Secret | Self::Path => {
                value.as_str().filter(|text| !text.is_empty()).map(Value::from)
            }
            Self::Variable => value.is_string().then(|| value.clone()),
            Self::Texts | Self::Secrets => value
                .as_array()
                .filter(|all| all.iter().all(Value::is_string))
                .map(|_| value.clone()),
            Self::Zone => value
                .as_str()
                .and_then(|name| Zone::named(name).ok())
                .map(|zone| Value::from(zone.name())),
            Self::AgentId => value
                .as_str()
                .and_then(|id| AgentId::parse(id).ok())
                .map(|id| Value::from(id.as_str())),
            Self::Channel => value
                .as_str()
                .and_then(|name| Channel::open(name).ok())
                .map(|name| Value::from(name.as_str())),
            Self::SendPolicy => return send_policy(value),
            Self::Ignored => Some(value.clone()),
        };
        taken.ok_or_else(|| {
            let hidden = matches!(self, Self::Secret | Self::Secrets | Self::Variable);
            let shown = if hidden { "its value".to_owned() } else { value.to_string() };
            Error::invalid(format!("{shown} is not {}", self.legal()))
        })
    }

    /// The value that a text of the environment or of the command line stands for.
    pub(super) fn read(self, text: &str) -> Result<Value> {
        let value = match self {
            Self::Switch => match text.to_ascii_lowercase().as_str() {
                "1" | "true" | "on" | "yes" => Value::Bool(true),
                "0" | "false" | "off" | "no" => Value::Bool(false),
                _ => Value::from(text),
            },
            Self::Whole(..) => {
                text.trim().parse::<u64>().map_or_else(|_| Value::from(text), Value::from)
            }
            Self::Texts | Self::Secrets => {
                text.split(',').map(str::trim).filter(|t| !t.is_empty()).collect()
            }
            Self::SendPolicy | Self::Ignored => {
                strict::value(text).unwrap_or_else(|_| Value::from(text))
            }
            _ => Value::from(text),
        };
        self.check(&value)
    }
}

fn word(words: &[&str], text: &str) -> Option<Value> {
    let found = words.iter().find(|word| word.eq_ignore_ascii_case(text.trim()))?;
    Some(Value::from(*found))
}

fn send_policy(value: &Value) -> Result<Value> {
    let unfit = |e: serde_json::Error| {
        Error::invalid(format!("the send policy cannot be read: {e}"))
            .hint(Kind::SendPolicy.legal())
    };
    let policy: SendPolicy = serde_json::from_value(value.clone()).map_err(unfit)?;
    serde_json::to_value(policy).map_err(unfit)
}
