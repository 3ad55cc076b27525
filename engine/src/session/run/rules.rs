//! The settings that decisions about runs go by.

use std::collections::BTreeMap;

use crate::session::event::words;
use crate::session::policy::SendPolicy;
use crate::session::silent::Tokens;

words! {
    /// Who words the announce of a child.
    pub enum AnnounceWay {
        /// The child, if it resumes its own session; else its last reply is taken.
        Auto = "auto",
        /// The child, in one more run.
        Step = "step",
        /// Nobody: its last reply is taken.
        Result = "result",
    }
}

/// The settings.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What may go out of which sessions.
    pub policy: SendPolicy,
    /// What keeps a reply silent.
    pub silent: Tokens,
    /// Who words the announce of a child.
    pub announce: AnnounceWay,
    /// The time limit of an announce step, in seconds.
    pub announce_timeout: u64,
    /// Whether an announce starts a run of the session that it comes to.
    pub announce_wakes: bool,
    /// The most runs of one chain: beyond it nobody answers any more in an exchange.
    pub runs_max: u32,
    /// The agents that can be run, and whether each resumes its own session.
    pub agents: BTreeMap<String, bool>,
    /// The sinks, by channel; `*` for any other.
    pub sinks: BTreeMap<String, String>,
}

impl Rules {
    /// The sink of a channel: `log` where none is configured.
    #[must_use]
    pub fn sink(&self, channel: &str) -> &str {
        self.sinks.get(channel).or_else(|| self.sinks.get("*")).map_or(LOG, String::as_str)
    }
}

/// The sink that is the log itself: the event is the delivery.
pub const LOG: &str = "log";
