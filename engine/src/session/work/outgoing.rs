//! What is on its way out: announces to sessions and deliveries to channels.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::session::event::Origin;

/// An address, in a form without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The channel.
    pub channel: Option<String>,
    /// The recipient there.
    pub to: Option<String>,
    /// The account on that channel.
    pub account_id: Option<String>,
    /// The thread.
    pub thread_id: Option<String>,
}

impl From<Origin> for Address {
    fn from(origin: Origin) -> Self {
        let Origin { channel, to, account_id, thread_id } = origin;
        Self { channel, to, account_id, thread_id }
    }
}

impl From<Address> for Origin {
    fn from(address: Address) -> Self {
        let Address { channel, to, account_id, thread_id } = address;
        Self { channel, to, account_id, thread_id }
    }
}

/// What makes two steps those of one thing: an announce is one a requester and run, a delivery one a session, run and
/// turn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Waybill {
    /// A child's result.
    Announce {
        /// The session that it goes to.
        requester: String,
        /// The child's run.
        run_id: String,
    },
    /// A reply, an error or a notice.
    Delivery {
        /// The session that it leaves.
        session: String,
        /// The run that it belongs to.
        run_id: Option<String>,
        /// The position of the turn that it carries.
        turn_seq: Option<u64>,
    },
}

impl Waybill {
    /// The stream in which its steps stand.
    #[must_use]
    pub fn stream(&self) -> &str {
        match self {
            Self::Announce { requester, .. } => requester,
            Self::Delivery { session, .. } => session,
        }
    }

    /// The run that it belongs to.
    #[must_use]
    pub fn run_id(&self) -> Option<&str> {
        match self {
            Self::Announce { run_id, .. } => Some(run_id),
            Self::Delivery { run_id, .. } => run_id.as_deref(),
        }
    }
}

/// Something that is on its way out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outgoing {
    /// The position of the event that asked for it.
    pub seq: u64,
    /// When it was asked for.
    pub at: Timestamp,
    /// The flow that it belongs to.
    pub flow: Option<String>,
    /// The child whose result it is, of an announce.
    pub child_key: Option<String>,
    /// Where it goes.
    pub target: Address,
    /// Why it is sent, of a delivery: what it carries when that is no turn.
    pub reason: Option<String>,
    /// The position of the turn that carries it; of an announce known from the first try on.
    pub turn_seq: Option<u64>,
    /// The announce step that it waits for, or that has ended.
    pub step: Option<Step>,
    /// How many tries there were.
    pub tries: u32,
    /// The try that is going on, or whose end nobody has told.
    pub trying: Option<Try>,
    /// When the last try failed.
    pub deferred_at: Option<Timestamp>,
}

/// A child's own words on its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The run that finds them.
    pub run_id: String,
    /// Whether it has ended.
    pub ended: bool,
}

/// A try that is going on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Try {
    /// Its id.
    pub attempt_id: String,
    /// The sink that it goes through.
    pub sink: String,
    /// Its position in the log.
    pub seq: u64,
    /// When it began.
    pub at: Timestamp,
}
