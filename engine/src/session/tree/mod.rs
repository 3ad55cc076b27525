//! One flow as a tree: a session with its parts, its runs, what it sent and whom it spawned, each in its place in the
//! log; the spawned sessions stand where they were spawned, with the same of theirs.

mod build;
mod story;

pub use build::{DEPTH_MAX, tree};
pub use story::Stories;

use serde::Serialize;

use crate::session::event::{ArchiveReason, ExchangeEnd, ResetReason, SessionKind};

use super::index::Status;
use super::moment::Moment;
use super::outbox::Outgoing;
use super::runs::Run;

/// A session of the tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// Its key.
    pub key: String,
    /// What it is for; absent, as the others are, when it never opened.
    pub kind: Option<SessionKind>,
    /// How it is.
    pub status: Option<Status>,
    /// A short name.
    pub label: Option<String>,
    /// The agent that it belongs to.
    pub agent_id: Option<String>,
    /// The sessions above it, the nearest first.
    pub parents: Vec<String>,
    /// Whether its events are shown elsewhere in the tree, or lie too deep, and are left out here.
    pub left_out: bool,
    /// What happened, in the order of the log.
    pub steps: Vec<Step>,
}

/// Something that happened in a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Where and when.
    #[serde(flatten)]
    pub moment: Moment,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum What {
    /// The key has its first part, or one more under a joined name.
    Opened {
        /// The part.
        session_id: String,
    },
    /// The next part began.
    Reset {
        /// The part that began.
        session_id: String,
        /// The part that ended.
        previous_session_id: String,
        /// Why.
        reason: ResetReason,
    },
    /// An earlier part is current again.
    Resumed {
        /// The part.
        session_id: String,
    },
    /// It left the lists.
    Archived {
        /// Why.
        reason: ArchiveReason,
    },
    /// Turns that follow each other with nothing else between.
    Turns(Turns),
    /// A run works on it.
    Run {
        /// The run.
        run: Box<Run>,
    },
    /// It spawned a child.
    Spawn(Box<Spawn>),
    /// It sent a message to another session.
    Send(Box<Sent>),
    /// The rounds after a send are over.
    ExchangeEnded {
        /// The run of the first send.
        run_id: String,
        /// How many rounds there were.
        rounds: u32,
        /// Why.
        reason: ExchangeEnd,
    },
    /// It was not let.
    Refused {
        /// What was tried.
        verb: String,
        /// The target as it was named.
        target: String,
        /// The reason's code.
        reason: String,
    },
    /// An announce or a delivery that belongs to nothing else that is shown.
    Outgoing {
        /// What is on its way.
        outgoing: Box<Outgoing>,
    },
}

/// Turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Turns {
    /// The last of them.
    pub last: Moment,
    /// Those of users.
    pub user: u64,
    /// Those of the assistant.
    pub assistant: u64,
    /// What tools answered.
    pub tool_result: u64,
    /// Instructions and notices.
    pub system: u64,
}

/// A spawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spawn {
    /// The run of the task; absent for a child of which only the opening tells.
    pub run_id: Option<String>,
    /// A short name for the child.
    pub label: Option<String>,
    /// The run.
    pub run: Option<Run>,
    /// What became of its result.
    pub announce: Option<Outgoing>,
    /// The child; absent when an import could not find it.
    pub child: Option<Tree>,
}

/// A send.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sent {
    /// The run that it asked for.
    pub run_id: String,
    /// The session that it went to; absent when an import could not find it.
    pub target_key: Option<String>,
    /// The label that named it.
    pub label: Option<String>,
    /// The round of an exchange, from 1.
    pub round: Option<u32>,
    /// The run.
    pub run: Option<Run>,
}

#[cfg(test)]
mod tests;
