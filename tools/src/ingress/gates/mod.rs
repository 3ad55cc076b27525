//! Gates on what comes in from outside: turns of people and programs that are no session, and tasks of children. What a
//! session's own agent says is never checked, whatever it quotes.
//!
//! Size and encoding are always looked at; what can be repaired is repaired and says so. Beyond that a gate is a net of
//! rules, each with a stable id, for text that tells an agent what to do: to drop its instructions, to run what is
//! downloaded, to destroy, to give secrets away. Text that speaks *about* such things passes: what is quoted, shown as
//! code, asked about or told in passing is a mention. A net has meshes: it lessens what reaches an agent and replaces
//! neither a sandbox nor a person who looks.
//!
//! Every rule takes time that is linear in the text.

mod encoding;
mod reading;
mod rules;

pub use encoding::{Decoded, Mark, MarkKind, decode, decode_json};

use std::fmt;

use annals_engine::config::Config;
use annals_engine::session::event::{Ingress, Provenance, Role, TurnBlocked};
use serde::Serialize;
use sha2::{Digest, Sha256};

use reading::Readings;
use rules::Rule;

/// Which door a text comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// The task of a child that is to be spawned.
    Task,
    /// A turn from outside.
    Inbound,
}

/// A gate: a family of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// How long a text is.
    Size,
    /// Whether it is text.
    Encoding,
    /// Whether it sets itself above the agent's instructions.
    Injection,
    /// Whether it asks for secrets to be given away.
    Exfiltration,
    /// Whether it asks for commands to be run that nobody should run for a stranger.
    Shell,
}

/// Which gates are shut, and how much may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// The most bytes of a text.
    pub bytes_max: u64,
    /// Whether turns from outside are looked at for injection and exfiltration.
    pub llm: bool,
    /// Whether turns from outside are looked at for shell commands.
    pub actions: bool,
    /// Whether tasks are looked at for what turns are looked at for.
    pub tasks: bool,
}

/// What the gates say to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may come in as it is.
    Pass,
    /// It may come in like this.
    Mended {
        /// The text to store.
        text: String,
        /// What was repaired.
        marks: Vec<Mark>,
    },
    /// It may not come in.
    Blocked(Blocked),
}

/// Why a text may not come in. Nothing of the text is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// The gate.
    pub gate: Gate,
    /// The rule's id, which stays.
    pub rule: &'static str,
    /// What the rule saw, in words.
    pub reason: &'static str,
    /// What the sender can do, in words.
    pub hint: &'static str,
}

impl Gates {
    /// The limit on turns from outside when nobody says, in bytes.
    pub const BYTES_MAX: u64 = 1 << 20;

    /// The gates as the settings have them.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let on = config.is_on("security.enabled");
        Self {
            bytes_max: config.number("security.maxInboundBytes").unwrap_or(Self::BYTES_MAX),
            llm: on && config.is_on("security.llm"),
            actions: on && config.is_on("security.actions"),
            tasks: config.is_on("subagents.security"),
        }
    }

    /// Looks at a text.
    #[must_use]
    pub fn check(&self, text: &str, door: Door) -> Verdict {
        self.check_bytes(text.as_bytes(), door)
    }

    /// Looks at bytes that should be text. After [`Verdict::Pass`] they are UTF-8.
    #[must_use]
    pub fn check_bytes(&self, bytes: &[u8], door: Door) -> Verdict {
        if u64::try_from(bytes.len()).map_or(true, |length| length > self.bytes_max) {
            return Verdict::Blocked(TOO_LARGE);
        }
        let Some(Decoded { text, marks }) = decode(bytes) else {
            return Verdict::Blocked(NOT_TEXT);
        };
        let looked_at = door == Door::Inbound || self.tasks;
        let on = |gate| looked_at && if gate == Gate::Shell { self.actions } else { self.llm };
        if let Some(rule) = Rule::first_hit(&Readings::of(&text), &on) {
            let Rule { gate, id, reason, hint, .. } = *rule;
            return Verdict::Blocked(Blocked { gate, rule: id, reason, hint });
        }
        if marks.is_empty() {
            return Verdict::Pass;
        }
        Verdict::Mended { text: text.into_owned(), marks }
    }
}

const TOO_LARGE: Blocked = Blocked {
    gate: Gate::Size,
    rule: "size.bytes",
    reason: "the text is longer than what may come in",
    hint: "send less, or raise security.maxInboundBytes",
};

const NOT_TEXT: Blocked = Blocked {
    gate: Gate::Encoding,
    rule: "encoding.not-text",
    reason: "too much of it is no UTF-8 for it to be text",
    hint: "send text in UTF-8",
};

impl Blocked {
    /// The fact that a text was kept out: its length and SHA-256, nothing of what it says. `content` is what came in.
    #[must_use]
    pub fn event(
        &self,
        content: &[u8],
        role: Role,
        from: Ingress,
        provenance: Option<Provenance>,
    ) -> TurnBlocked {
        TurnBlocked {
            at: None,
            role,
            from,
            gate: self.gate.to_string(),
            rule: self.rule.to_owned(),
            bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
            sha256: Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect(),
            provenance,
        }
    }
}

impl Gate {
    /// The word as it is stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Encoding => "encoding",
            Self::Injection => "injection",
            Self::Exfiltration => "exfiltration",
            Self::Shell => "shell",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
