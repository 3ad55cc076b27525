//! The work at hand: every run that has not ended, every announce and delivery on its way, every exchange that goes on.
//! What has come to its end is not here, so that the view stays as small as the work is, however long the log.
//!
//! History of other programs is none of it: imported runs, announces and deliveries are never worked on.

mod fold;
mod outgoing;
mod saved;

pub use fold::Digest;
pub use outgoing::{Address, Outgoing, Step, Try, Waybill};

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

use super::event::{Cleanup, RunKind, SpawnMode};

/// The work at hand. A clone shares it with its original.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    runs: BTreeMap<String, Arc<Job>>,
    outgoing: BTreeMap<Waybill, Arc<Outgoing>>,
    exchanges: BTreeMap<String, Arc<Exchange>>,
    /// How many runs each chain has had that has a run at hand.
    chains: BTreeMap<String, u32>,
    /// Whether a run has ended in the batch that is being taken.
    ended: bool,
}

/// A run that has not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub run_id: String,
    /// The position of its request in the log.
    pub seq: u64,
    /// When it was asked for.
    pub at: Timestamp,
    /// The event that asked for it.
    pub request: String,
    /// The flow that it belongs to.
    pub flow: Option<String>,
    /// The session that it works on.
    pub session_key: String,
    /// The part that it works on.
    pub session_id: String,
    /// What caused it.
    pub kind: RunKind,
    /// The agent that does it.
    pub agent_id: String,
    /// The session that asked for it.
    pub requester_key: Option<String>,
    /// The chain of sends that it belongs to.
    pub chain_id: String,
    /// How many sends lie before it in the chain.
    pub hop: u32,
    /// The round of an exchange, from 1.
    pub round: Option<u32>,
    /// The time limit in seconds; 0 for none.
    pub timeout_seconds: u64,
    /// Whether the reply goes to the session's channel.
    pub deliver: bool,
    /// The run that it follows up.
    pub follows: Option<String>,
    /// The model asked for.
    pub model: Option<String>,
    /// The thinking level asked for.
    pub thinking: Option<String>,
    /// The position of the turn to answer.
    pub turn_seq: Option<u64>,
    /// Who has it.
    pub claim: Option<Claim>,
    /// How often it was claimed.
    pub claims: u32,
    /// When its process was started.
    pub started_at: Option<Timestamp>,
    /// Who first wanted it to end, and why.
    pub kill: Option<(String, String)>,
    /// What was agreed when it was accepted, of a send or a spawn.
    pub terms: Option<Terms>,
}

/// A claim on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its position in the log: another claim has another.
    pub seq: u64,
    /// The worker.
    pub worker: String,
    /// The worker's process.
    pub pid: u32,
    /// When that process started.
    pub process_start: String,
    /// Which boot of which system.
    pub boot_id: String,
    /// The machine's name.
    pub host: String,
    /// Until when the claim stands without a sign of life.
    pub lease_until: Timestamp,
    /// SHA-256 of the token that the run calls tools with.
    pub token_sha256: Option<String>,
}

/// What was agreed when a send or a spawn was accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// The session that asked, in whose stream it stands.
    pub requester: String,
    /// Until when the requester waits for the end.
    pub waits_until: Option<Timestamp>,
    /// Of a spawn: what the child is, and what becomes of it.
    pub spawn: Option<(Option<SpawnMode>, Option<Cleanup>)>,
    /// Where the announce goes.
    pub origin: Option<Address>,
}

/// The rounds that follow a send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The run of the send.
    pub run_id: String,
    /// The flow that it belongs to.
    pub flow: Option<String>,
    /// The session that sent.
    pub requester: String,
    /// The session that was sent to.
    pub target: String,
    /// The position of the message.
    pub turn_seq: Option<u64>,
    /// The most rounds after the first reply.
    pub rounds_max: u32,
    /// The rounds after the first reply that have begun.
    pub rounds: u32,
    /// The position of the first reply.
    pub first_reply: Option<u64>,
    /// The position of the last reply that said something.
    pub last_reply: Option<u64>,
}

impl Job {
    /// Whether a worker has it.
    #[must_use]
    pub const fn is_claimed(&self) -> bool {
        self.claim.is_some()
    }
}

impl Work {
    /// A run that has not ended.
    #[must_use]
    pub fn run(&self, run_id: &str) -> Option<&Arc<Job>> {
        self.runs.get(run_id)
    }

    /// The runs that have not ended, in the order in which they were asked for.
    #[must_use]
    pub fn runs(&self) -> Vec<&Arc<Job>> {
        let mut runs: Vec<_> = self.runs.values().collect();
        runs.sort_by_key(|run| run.seq);
        runs
    }

    /// The runs on one session that have not ended.
    pub fn runs_on<'a, 'k>(
        &'a self,
        session: &'k str,
    ) -> impl Iterator<Item = &'a Arc<Job>> + use<'a, 'k> {
        self.runs.values().filter(move |run| run.session_key == session)
    }

    /// Whether a worker is at work on a session.
    #[must_use]
    pub fn is_busy(&self, session: &str) -> bool {
        self.runs_on(session).any(|run| run.is_claimed())
    }

    /// The children at work or waiting for it: of one requester, or of all.
    #[must_use]
    pub fn children(&self, of: Option<&str>) -> usize {
        let children = self.runs.values().filter(|run| run.kind == RunKind::Spawn);
        children
            .filter(|run| of.is_none_or(|key| run.requester_key.as_deref() == Some(key)))
            .count()
    }

    /// How many runs a chain has had so far; none of one that has no run at hand.
    #[must_use]
    pub fn runs_in(&self, chain_id: &str) -> u32 {
        self.chains.get(chain_id).copied().unwrap_or_default()
    }

    /// The run at work that calls tools with a token, by its hash.
    #[must_use]
    pub fn holder_of(&self, token_sha256: &str) -> Option<&Arc<Job>> {
        let holds = |run: &&Arc<Job>| {
            let claim = run.claim.as_ref();
            claim.and_then(|claim| claim.token_sha256.as_deref()) == Some(token_sha256)
        };
        self.runs.values().find(holds)
    }

    /// What is on its way out, in the order in which it was asked for.
    #[must_use]
    pub fn outgoing(&self) -> Vec<(&Waybill, &Arc<Outgoing>)> {
        let mut all: Vec<_> = self.outgoing.iter().collect();
        all.sort_by_key(|(_, outgoing)| outgoing.seq);
        all
    }

    /// One thing on its way out.
    #[must_use]
    pub fn on_its_way(&self, waybill: &Waybill) -> Option<&Arc<Outgoing>> {
        self.outgoing.get(waybill)
    }

    /// The exchange that a run belongs to: the run of the send itself, or one that follows it up.
    #[must_use]
    pub fn exchange(&self, run_id: &str) -> Option<&Arc<Exchange>> {
        self.exchanges.get(run_id)
    }

    /// Whether nothing is at hand.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.outgoing.is_empty()
    }

    /// Whether a session waits for another, directly or through others, for longer than until `now`: a run at work on it
    /// sent a message there and waits for its end.
    #[must_use]
    pub fn waits_for(&self, session: &str, other: &str, now: Timestamp) -> bool {
        let mut seen = vec![session];
        let mut next = 0;
        while let Some(waiting) = seen.get(next).copied() {
            next += 1;
            if !self.is_busy(waiting) {
                continue;
            }
            for run in self.runs.values() {
                let terms = run.terms.as_ref().filter(|terms| terms.requester == waiting);
                let waits = terms.and_then(|terms| terms.waits_until).is_some_and(|end| end > now);
                if !waits {
                    continue;
                }
                if run.session_key == other {
                    return true;
                }
                if !seen.contains(&run.session_key.as_str()) {
                    seen.push(&run.session_key);
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
