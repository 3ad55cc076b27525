//! The sessions view: one row a key, folded from the log. It holds heads and counts, never what was said.

mod digest;
mod entry;
mod find;
mod fold;
mod hash;
mod lens;
mod list;
mod part;
mod row;
mod saved;
mod turns;

pub use digest::Digest;
pub use find::{Found, Names};
pub use lens::{Lens, TimeRules};
pub use list::{Archived, List, ListQuery, Shape};
pub use row::{Row, Status};

pub(in crate::session) use entry::Entry;
pub(in crate::session) use part::{IdHash, Met, Part, Recent, id_hash};

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use crate::clock::Timestamp;
use crate::id::{Seq, StreamName, Version};

use crate::session::key::SessionKey;

use find::Directory;

/// All sessions of a log. A clone shares the sessions with its original, and what changes in one of the two is copied
/// then, session by session.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    entries: HashMap<StreamName, Arc<Entry>>,
    /// Keys and ids in order, once somebody has looked for the beginning of one.
    directory: OnceLock<Arc<Directory>>,
    /// Runs that have not ended.
    runs: HashMap<IdHash, OpenRun>,
    /// Children that were spawned and not opened yet, with their parents.
    spawned: HashMap<String, StreamName>,
    /// Streams that lost events, also those of which nothing is left.
    damaged: BTreeSet<String>,
    /// Ranges that could not be put to any stream.
    losses: BTreeSet<(Seq, Seq)>,
    /// How far the streams have come that have no row, because only refusals stand in them.
    rowless: HashMap<StreamName, Version>,
    passed_over: u64,
}

#[derive(Clone, Debug)]
struct OpenRun {
    key: StreamName,
    session_id: String,
    agent_id: String,
    /// Tokens that turns of the run have told.
    tokens: u64,
}

impl Sessions {
    /// The row of a key.
    #[must_use]
    pub fn row(&self, key: &StreamName) -> Option<&Row> {
        self.entries.get(key).map(|entry| &entry.row)
    }

    /// All rows, as events alone say, in no order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.entries.values().map(|entry| &entry.row)
    }

    /// Whether a session has left the lists, as far as events say.
    #[must_use]
    pub fn is_archived(&self, key: &StreamName) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_archived())
    }

    /// The runs of a session that have not ended, by id, and when each was asked for.
    pub fn open_runs(&self, key: &StreamName) -> impl Iterator<Item = (&str, Timestamp)> {
        let entry = self.entries.get(key);
        entry
            .into_iter()
            .flat_map(|entry| entry.runs.iter().map(|(id, run)| (id.as_str(), run.since)))
    }

    /// The model that a session was set to, whichever answered last.
    #[must_use]
    pub fn own_model(&self, key: &StreamName) -> Option<&str> {
        self.entries.get(key)?.own_model.as_deref()
    }

    /// The id that an agent gives its own session for a part of a session: what its last run there told. One that failed
    /// without telling any may have met a session that is gone, so that the next begins anew.
    #[must_use]
    pub fn agent_session(&self, key: &StreamName, part: &str, agent: &str) -> Option<&str> {
        let parts = &self.entries.get(key)?.parts;
        let part = parts.iter().find(|known| known.session_id == part)?;
        let (of, id) = part.agent_session.as_ref()?;
        (of == agent).then_some(id.as_str())
    }

    /// Whether a session said at its opening that its agent is confined.
    #[must_use]
    pub fn is_sandboxed(&self, key: &StreamName) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.sandboxed)
    }

    /// How many sessions there are, archived ones counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many sessions are known of alone by the damage that took all their events: they have no row.
    #[must_use]
    pub fn lost_whole(&self) -> usize {
        let named = self.damaged.iter().filter_map(|name| StreamName::new(name.as_str()).ok());
        let sessions = named.filter(|name| SessionKey::of_stream(name).is_some());
        sessions.filter(|name| !self.entries.contains_key(name)).count()
    }

    /// How many damaged ranges could not be put to any stream: some session may lack events without being marked.
    #[must_use]
    pub fn losses_of_unknown_streams(&self) -> usize {
        self.losses.len()
    }

    /// How many events of a known type were passed over because their payload is not of its
    /// shape, or is of a later version.
    #[must_use]
    pub const fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// These sessions alone, as they are here: for a decision that looks at no other. What happens to others later makes
    /// rows of what happened later.
    #[must_use]
    pub fn only(&self, keys: &[&StreamName]) -> Self {
        let found = keys.iter().filter_map(|key| {
            self.entries.get(*key).map(|entry| ((*key).clone(), Arc::clone(entry)))
        });
        let named = |run: &&OpenRun| keys.contains(&&run.key);
        let runs = self.runs.iter().filter(|(_, run)| named(run));
        Self {
            entries: found.collect(),
            runs: runs.map(|(id, run)| (*id, run.clone())).collect(),
            ..Self::default()
        }
    }

    /// The ids of a session's parts, in the order in which they came.
    #[must_use]
    pub fn parts(&self, key: &StreamName) -> Vec<&str> {
        let entry = self.entries.get(key);
        entry.map_or(Vec::new(), |e| e.parts.iter().map(|part| part.session_id.as_str()).collect())
    }

    pub(super) fn entry(&self, key: &StreamName) -> Option<&Entry> {
        self.entries.get(key).map(|entry| &**entry)
    }

    /// Whether events of this stream are known to be missing.
    pub(super) fn is_damaged(&self, stream: &str) -> bool {
        self.damaged.contains(stream)
    }
}

#[cfg(test)]
mod tests;
