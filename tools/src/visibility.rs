//! Which sessions a caller sees: the one guard that every tool asks, whichever way a session is named.

use annals_engine::Result;
use annals_engine::config::Config;
use annals_engine::id::StreamName;
use annals_engine::session::index::{Found, Row, Sessions};
use serde::Serialize;

use crate::caller::{Caller, GLOBAL, MainBucket, Seat};

/// How far a session sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Itself.
    #[serde(rename = "self")]
    Own,
    /// Itself and what it spawned, and what these spawned.
    #[default]
    Tree,
    /// All sessions of its agent.
    Agent,
    /// All sessions; those of other agents only as far as agents may see each other.
    All,
}

/// The settings of the guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visibility {
    /// How far a session sees.
    pub mode: Mode,
    /// Whether agents may see each other.
    pub agents_see_each_other: bool,
    /// Which agents may, both ends; `*` stands for any text.
    pub agents: Vec<String>,
    /// Whether a confined session sees no further than what it spawned.
    pub confined_to_tree: bool,
}

/// How much of the sessions an answer could be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The mode in force.
    pub mode: Mode,
    /// Whether there may be sessions that the caller does not see.
    pub restricted: bool,
}

impl Mode {
    /// The mode of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "self" => Some(Self::Own),
            "tree" => Some(Self::Tree),
            "agent" => Some(Self::Agent),
            "all" => Some(Self::All),
            _ => None,
        }
    }
}

impl Visibility {
    /// What a configuration says.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let mode = config.text("tools.sessions.visibility").and_then(Mode::from_word);
        let clamp = config.text("agents.defaults.sandbox.sessionToolsVisibility");
        Self {
            mode: mode.unwrap_or_default(),
            agents_see_each_other: config.is_on("tools.agentToAgent.enabled"),
            agents: config
                .texts("tools.agentToAgent.allow")
                .into_iter()
                .map(str::to_owned)
                .collect(),
            confined_to_tree: clamp != Some("all"),
        }
    }

    /// Whether all agents may see each other, whichever there are.
    fn all_agents_may(&self) -> bool {
        let fits_all = |pattern: &String| !pattern.is_empty() && pattern.chars().all(|c| c == '*');
        self.agents_see_each_other && self.agents.iter().any(fits_all)
    }

    /// Whether two agents may see each other.
    #[must_use]
    pub fn agents_may(&self, one: &str, other: &str) -> bool {
        let allowed = |agent: &str| self.agents.iter().any(|pattern| fits(pattern, agent));
        one == other || self.agents_see_each_other && allowed(one) && allowed(other)
    }
}

impl Caller {
    /// The mode in force: `None` for the operator, who sees everything.
    #[must_use]
    pub fn mode(&self, sessions: &Sessions) -> Option<Mode> {
        let Seat::Session { key, visibility } = &self.seat else { return None };
        let confined = visibility.confined_to_tree && sessions.is_sandboxed(key);
        Some(if confined { visibility.mode.min(Mode::Tree) } else { visibility.mode })
    }

    /// Whether the caller sees a session.
    #[must_use]
    pub fn sees(&self, sessions: &Sessions, row: &Row) -> bool {
        let Seat::Session { key, visibility } = &self.seat else { return true };
        let Some(mode) = self.mode(sessions) else { return true };
        row.key == *key
            || match mode {
                Mode::Own => false,
                Mode::Tree => descends(sessions, row, key),
                Mode::Agent => row.agent_id == self.agent.as_str(),
                Mode::All => visibility.agents_may(self.agent.as_str(), &row.agent_id),
            }
    }

    /// Finds a session that the caller sees. One that he does not see and one that does not exist give the same answer.
    ///
    /// # Errors
    /// As [`Sessions::find`].
    pub fn find(&self, sessions: &Sessions, name: &str) -> Result<Found> {
        let sees = |key: &StreamName| match sessions.row(key) {
            Some(row) => self.sees(sessions, row),
            None => self.seat == Seat::Operator,
        };
        sessions.find_among(self.meant_by(name), &self.agent, self.names, &sees)
    }

    /// The name that stands behind those that depend on who is asking: `current`, and `main` where all share one bucket.
    #[must_use]
    pub fn meant_by<'a>(&'a self, name: &'a str) -> &'a str {
        match &self.seat {
            Seat::Session { key, .. } if name == "current" => key.as_str(),
            _ if self.main == MainBucket::Shared && name.eq_ignore_ascii_case("main") => GLOBAL,
            _ => name,
        }
    }

    /// What an answer says about how much the caller sees; `None` for the operator.
    #[must_use]
    pub fn told(&self, sessions: &Sessions) -> Option<Told> {
        let Seat::Session { visibility, .. } = &self.seat else { return None };
        let mode = self.mode(sessions)?;
        let sees_all = mode == Mode::All && visibility.all_agents_may();
        Some(Told { mode, restricted: !sees_all })
    }
}

/// Whether a session was spawned by another, or by one that was spawned by it, and so on.
fn descends(sessions: &Sessions, row: &Row, from: &StreamName) -> bool {
    let mut at = row;
    // A chain that is longer than there are sessions goes round.
    for _ in 0..=sessions.len() {
        let Some(parent) = at.parent_key.as_deref() else { return false };
        if parent == from.as_str() {
            return true;
        }
        let parent = StreamName::new(parent).ok();
        let Some(row) = parent.as_ref().and_then(|parent| sessions.row(parent)) else {
            return false;
        };
        at = row;
    }
    false
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    rest.is_empty()
        || text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .any(|at| text.get(at..).is_some_and(|tail| fits(rest, tail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: both ends of a pair must be allowed, by name or by pattern. Method: pairs.
    #[test]
    fn pairs_of_agents() {
        let of = |enabled, agents: &[&str]| Visibility {
            agents_see_each_other: enabled,
            agents: agents.iter().map(|a| (*a).to_owned()).collect(),
            ..Visibility::default()
        };
        let some = of(true, &["ops-*", "main"]);
        assert!(some.agents_may("ops-a", "ops-b") && some.agents_may("main", "ops-a"));
        assert!(!some.agents_may("guest", "ops-a") && some.agents_may("guest", "guest"));
        assert!(!of(false, &["*"]).agents_may("a", "b") && of(true, &["*"]).agents_may("a", "b"));
        assert!(!of(true, &[]).agents_may("a", "b"));
        assert!(fits("a*c*e", "abcde") && fits("*", "") && !fits("a*c", "abd") && !fits("", "a"));
    }
}
