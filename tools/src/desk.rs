//! What a tool works with that makes agents work: a store that takes appends, the settings that runs go by, and whoever
//! sees to it that somebody does the work.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use annals_engine::Result;
use annals_engine::engine::Engine;
use annals_engine::id::StreamName;
use annals_engine::session::event::SessionOpened;

use crate::caller::{Caller, Seat};
use crate::run::Setup;

/// What a tool works with that makes agents work.
#[derive(Clone, Copy)]
pub struct Desk<'a> {
    /// The store.
    pub engine: &'a Engine,
    /// The settings that runs go by.
    pub setup: &'a Setup,
    /// Who sees to it that somebody works.
    pub staff: &'a dyn Staff,
    /// The session in whose name the operator asks.
    pub operator: &'a OperatorSession,
    /// The time limit of a child, where neither the call nor the configuration says one.
    pub child_timeout: Duration,
    /// What a child is told before its task, in its prompt and in no transcript: where the conversation stands in which
    /// the operator asks for it.
    pub before_task: Option<&'a str>,
    /// Becomes true when whoever asks has gone: a tool that waits then answers as if its time were up.
    pub gone: Option<&'a AtomicBool>,
}

/// The session in whose name the operator asks: the chat of the command line.
#[derive(Clone, Debug)]
pub struct OperatorSession {
    /// Its key.
    pub key: StreamName,
    /// How it opens, should it not be open.
    pub opening: SessionOpened,
}

/// Sees to it that work which was asked for is done.
pub trait Staff: Sync {
    /// Work was asked for, and is durable: `run_id` is the run.
    ///
    /// # Errors
    /// What starting a worker says; the work stays asked for.
    fn called(&self, run_id: &str) -> Result<Presence>;
}

/// Who is there to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// A worker.
    Home,
    /// A worker that was started now.
    Started,
    /// Nobody: how somebody could be.
    Nobody(String),
}

impl Presence {
    /// What an answer says of it.
    pub(crate) fn told(self) -> Option<String> {
        match self {
            Self::Home | Self::Started => None,
            Self::Nobody(how) => Some(format!("none: {how}")),
        }
    }
}

impl Desk<'_> {
    /// Sees to it that somebody works on a run that is accepted; what an answer says when nobody does. That nobody could be
    /// called takes nothing back.
    #[must_use]
    pub fn called(&self, run_id: &str) -> Option<String> {
        let presence = self.staff.called(run_id);
        presence.unwrap_or_else(|error| Presence::Nobody(error.to_string())).told()
    }

    /// The session in whose name a caller asks.
    #[must_use]
    pub fn requester<'c>(&'c self, caller: &'c Caller) -> &'c StreamName {
        match &caller.seat {
            Seat::Operator => &self.operator.key,
            Seat::Session { key, .. } => key,
        }
    }

    /// How that session opens, should it not be open.
    #[must_use]
    pub const fn opening(&self, caller: &Caller) -> Option<&SessionOpened> {
        match &caller.seat {
            Seat::Operator => Some(&self.operator.opening),
            Seat::Session { .. } => None,
        }
    }
}

impl fmt::Debug for Desk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("operator", &self.operator.key).finish_non_exhaustive()
    }
}
