//! Whether anything may go out of a session: its own override, then rules over channel, type of chat and key.

mod ahead;
mod state;

pub use ahead::{KnownPolicy, append_under};
pub use state::{POLICY_SETTINGS, POLICY_STREAM, PolicyFile, PolicyState};

use serde::{Deserialize, Serialize};

use super::event::{ChatType, words};

words! {
    /// What a send policy says.
    pub enum SendAction {
        /// Answers, notices and announces go out.
        Allow = "allow",
        /// Nothing goes out.
        Deny = "deny",
    }
}

/// The rules on what goes out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendPolicy {
    /// What holds where no rule fits; `allow` when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<SendAction>,
    /// The rules. A rule that denies is stronger than one that allows, wherever they stand.
    #[serde(default)]
    pub rules: Vec<SendRule>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendRule {
    /// What it is for; a rule without conditions fits everything.
    #[serde(default, rename = "match")]
    pub fits: SendMatch,
    /// What it says.
    pub action: SendAction,
}

/// The conditions of a rule: all that are said must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendMatch {
    /// The channel, whatever the case of its letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The type of chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<ChatType>,
    /// The beginning of the key, with `agent:<id>:` or without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
    /// The beginning of the whole key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_key_prefix: Option<String>,
}

/// What a policy looks at.
#[derive(Clone, Copy, Debug)]
pub struct Outbound<'a> {
    /// The session's key.
    pub key: &'a str,
    /// Its channel.
    pub channel: &'a str,
    /// The type of chat behind it.
    pub chat_type: Option<ChatType>,
    /// The session's own policy, if it has one.
    pub own: Option<SendAction>,
}

/// What a policy says of a session, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What holds.
    pub action: SendAction,
    /// What decided.
    pub by: DecidedBy,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The session's own policy.
    Session,
    /// The rule at this index, counted from 0.
    Rule(usize),
    /// The default.
    Default,
}

impl SendPolicy {
    /// Decides: the session's own policy, then a rule that denies, then one that allows, then the default, then allow.
    #[must_use]
    pub fn decide(&self, of: Outbound<'_>) -> Verdict {
        if let Some(action) = of.own {
            return Verdict { action, by: DecidedBy::Session };
        }
        let first = |action| {
            self.rules.iter().position(|rule| rule.action == action && rule.fits.holds(of))
        };
        for action in [SendAction::Deny, SendAction::Allow] {
            if let Some(index) = first(action) {
                return Verdict { action, by: DecidedBy::Rule(index) };
            }
        }
        Verdict { action: self.default.unwrap_or(SendAction::Allow), by: DecidedBy::Default }
    }
}

impl std::fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Session => f.write_str("session"),
            Self::Rule(index) => write!(f, "rule {index}"),
            Self::Default => f.write_str("default"),
        }
    }
}

impl SendMatch {
    fn holds(&self, of: Outbound<'_>) -> bool {
        let key = |prefix: &str| of.key.starts_with(prefix) || bare(of.key).starts_with(prefix);
        self.channel.as_deref().is_none_or(|channel| channel.eq_ignore_ascii_case(of.channel))
            && self.chat_type.is_none_or(|sort| of.chat_type == Some(sort))
            && self.key_prefix.as_deref().is_none_or(key)
            && self.raw_key_prefix.as_deref().is_none_or(|prefix| of.key.starts_with(prefix))
    }
}

/// A key without `agent:<id>:`.
fn bare(key: &str) -> &str {
    let rest = key.strip_prefix("agent:").and_then(|rest| rest.split_once(':'));
    rest.map_or(key, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> SendPolicy {
        serde_json::from_str(&json.replace('\'', "\"")).unwrap()
    }

    fn check(policy: &SendPolicy, key: &str, channel: &str, own: Option<SendAction>, expect: &str) {
        let chat_type = key.contains(":group:").then_some(ChatType::Group);
        let verdict = policy.decide(Outbound { key, channel, chat_type, own });
        assert_eq!(format!("{} by {}", verdict.action, verdict.by), expect, "{key} {channel}");
    }

    /// Goal: the order of what decides. Method: one policy in which everything contradicts everything.
    #[test]
    fn the_order_of_what_decides() {
        let policy = policy(
            "{'default':'deny','rules':[
                {'match':{'channel':'discord'},'action':'allow'},
                {'match':{'channel':'Discord','chatType':'group'},'action':'deny'}]}",
        );
        check(&policy, "agent:main:discord:direct:1", "discord", None, "allow by rule 0");
        check(&policy, "agent:main:discord:group:1", "discord", None, "deny by rule 1");
        let own = Some(SendAction::Allow);
        check(&policy, "agent:main:discord:group:1", "discord", own, "allow by session");
        check(&policy, "telegram:1", "telegram", None, "deny by default");
        check(&SendPolicy::default(), "telegram:1", "telegram", None, "allow by default");
    }

    /// Goal: a prefix is tried on the key with its agent and without; a raw one on the whole key alone. Method: the same
    /// prefixes both ways.
    #[test]
    fn prefixes() {
        let prefix = policy("{'rules':[{'match':{'keyPrefix':'demo:'},'action':'deny'}]}");
        check(&prefix, "agent:main:demo:group:1", "demo", None, "deny by rule 0");
        check(&prefix, "demo:1", "demo", None, "deny by rule 0");
        let raw =
            policy("{'rules':[{'match':{'rawKeyPrefix':'agent:main:demo:'},'action':'deny'}]}");
        check(&raw, "agent:main:demo:group:1", "demo", None, "deny by rule 0");
        check(&raw, "demo:1", "demo", None, "allow by default");
        check(&raw, "agent:main:other:group:1", "other", None, "allow by default");
    }
}
