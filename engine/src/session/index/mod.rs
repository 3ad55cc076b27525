//! The sessions view: one row a key, folded from the log. It holds heads and counts, never what was said.

mod entry;
mod find;
mod list;
mod row;

pub use find::{Found, Names};
pub use list::{Archived, List, ListQuery, Shape};
pub use row::{Row, Status};

pub(in crate::session) use entry::{Entry, Part};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::clock::Timestamp;
use crate::id::{StreamName, Version};
use crate::projection::Projection;
use crate::store::{Damage, Record};

use super::event::{
    Event, RunFinished, RunRequested, SessionKind, SpawnAccepted, TurnHead, happened_at,
};
use super::key::SessionKey;
use entry::RunPhase;

/// All sessions of a log.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    entries: HashMap<StreamName, Entry>,
    /// Every part's id with its key, in order.
    ids: BTreeMap<String, BTreeSet<StreamName>>,
    /// Every key, in order.
    keys: BTreeSet<StreamName>,
    /// Runs that have not ended.
    runs: HashMap<String, OpenRun>,
    /// Children that were spawned and not opened yet, with their parents.
    spawned: HashMap<String, StreamName>,
    /// Streams that lost events, also those of which nothing is left.
    damaged: BTreeSet<String>,
    losses_of_unknown_streams: u64,
    /// How far the streams have come that have no row, because only refusals stand in them.
    rowless: HashMap<StreamName, Version>,
    passed_over: u64,
}

#[derive(Clone, Debug)]
struct OpenRun {
    key: StreamName,
    session_id: String,
    /// Tokens that turns of the run have told.
    tokens: u64,
}

impl Sessions {
    /// The row of a key.
    #[must_use]
    pub fn row(&self, key: &StreamName) -> Option<&Row> {
        self.entries.get(key).map(|entry| &entry.row)
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

    /// How many damaged ranges could not be put to any stream: some session may lack events without being marked.
    #[must_use]
    pub const fn losses_of_unknown_streams(&self) -> u64 {
        self.losses_of_unknown_streams
    }

    /// How many events of a known type were passed over because their payload is not of its
    /// shape, or is of a later version.
    #[must_use]
    pub const fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// The ids of a session's parts, in the order in which they came.
    #[must_use]
    pub fn parts(&self, key: &StreamName) -> Vec<&str> {
        let entry = self.entries.get(key);
        entry.map_or(Vec::new(), |e| e.parts.iter().map(|part| part.session_id.as_str()).collect())
    }

    pub(super) fn entry(&self, key: &StreamName) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The keys that begin so.
    pub(super) fn keys_from<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a StreamName> {
        let from = StreamName::new(prefix).ok();
        let keys = from.into_iter().flat_map(|from| self.keys.range(from..));
        keys.take_while(move |key| key.as_str().starts_with(prefix))
    }

    /// The ids of parts that begin so, each with every key that has it.
    pub(super) fn ids_from<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a StreamName)> {
        self.ids
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(id, _)| id.starts_with(prefix))
            .flat_map(|(id, keys)| keys.iter().map(|key| (id.as_str(), key)))
    }

    /// Whether events of this stream are known to be missing.
    pub(super) fn is_damaged(&self, stream: &str) -> bool {
        self.damaged.contains(stream)
    }

    /// Takes an event; returns whether a session of the stream has taken it.
    fn take(&mut self, record: &Record) -> bool {
        let at = happened_at(record);
        if record.kind.as_str() == "turn" {
            let head = TurnHead::read(&record.data);
            self.passed_over += u64::from(head.is_none());
            return head.is_some_and(|head| self.turn(record, &head, at));
        }
        if matches!(record.kind.as_str(), "run.output" | "turn.blocked") {
            return false;
        }
        match Event::of(record) {
            Ok(event) => self.session_event(record, event, at),
            Err(_) => {
                self.passed_over += 1;
                false
            }
        }
    }

    fn session_event(&mut self, record: &Record, event: Event, at: Timestamp) -> bool {
        match event {
            Event::SessionOpened(e) => self.session(record, at, |entry| entry.opened(e, at)),
            Event::SessionReset(e) => {
                self.session(record, at, |entry| entry.entered(&e.session_id, at))
            }
            Event::SessionResumed(e) => {
                self.session(record, at, |entry| entry.entered(&e.session_id, at))
            }
            Event::SessionPatched(e) => self.row_of(record, |entry| entry.patched(&e.set)),
            Event::SessionArchived(_) => self.row_of(record, Entry::archived),
            Event::AnnounceRequested(e) => {
                self.row_of(record, |entry| entry.announce_requested(&e))
            }
            Event::AnnounceDelivered(e)
            | Event::AnnounceSuppressed(e)
            | Event::AnnounceFailed(e)
            | Event::AnnounceUnknown(e) => self.row_of(record, |entry| entry.announce_settled(&e)),
            other => {
                self.run_event(record, other, at);
                false
            }
        }
    }

    fn run_event(&mut self, record: &Record, event: Event, at: Timestamp) {
        match event {
            Event::RunRequested(e) => self.run_requested(e),
            Event::RunClaimed(e) => {
                self.run(&e.run_id, |entry| entry.run(&e.run_id, RunPhase::Claimed));
            }
            Event::RunStarted(e) => self.run(&e.run_id, |entry| entry.run_started(&e.run_id, at)),
            Event::RunFinished(e) => self.run_finished(&e, at),
            Event::SpawnAccepted(e) => self.spawned(record, &e),
            _ => {}
        }
    }

    fn turn(&mut self, record: &Record, head: &TurnHead<'_>, at: Timestamp) -> bool {
        let mut tokens = 0;
        self.session(record, at, |entry| tokens = entry.turn(head, record.version, at));
        if let Some(run) = head.run_id.as_deref().and_then(|id| self.runs.get_mut(id)) {
            run.tokens = run.tokens.saturating_add(tokens);
        }
        true
    }

    fn run_requested(&mut self, event: RunRequested) {
        let Ok(key) = StreamName::new(event.session_key) else { return };
        let run = OpenRun { key, session_id: event.session_id, tokens: 0 };
        self.runs.insert(event.run_id.clone(), run);
        self.run(&event.run_id, |entry| entry.run(&event.run_id, RunPhase::Requested));
    }

    fn run_finished(&mut self, event: &RunFinished, at: Timestamp) {
        let told = event.tokens.as_ref().map_or(0, |t| t.r#in.saturating_add(t.out));
        let Some(run) = self.runs.get(&event.run_id).cloned() else { return };
        self.run(&event.run_id, |entry| {
            entry.run_finished(&event.run_id, event.status, at);
            entry.add_tokens(&run.session_id, told.saturating_sub(run.tokens));
        });
        self.runs.remove(&event.run_id);
    }

    fn spawned(&mut self, record: &Record, event: &SpawnAccepted) {
        let Some(child) = &event.target_key else { return };
        match StreamName::new(child.as_str()).ok().and_then(|key| self.entries.get_mut(&key)) {
            Some(entry) if entry.row.parent_key.is_some() => {}
            Some(entry) => entry.row.parent_key = Some(record.stream.to_string()),
            None => {
                self.spawned.insert(child.clone(), record.stream.clone());
            }
        }
    }

    /// Changes the session that owns the record's stream, which is made when there is none.
    fn session(&mut self, record: &Record, at: Timestamp, change: impl FnOnce(&mut Entry)) -> bool {
        if !self.entries.contains_key(&record.stream) {
            let entry = self.unseen(&record.stream, at);
            self.entries.insert(record.stream.clone(), entry);
        }
        self.row_of(record, change)
    }

    fn unseen(&mut self, key: &StreamName, at: Timestamp) -> Entry {
        self.keys.insert(key.clone());
        let kind = SessionKey::of_stream(key).map(|key| key.kind_at_opening());
        let mut entry = Entry::new(key.clone(), kind.unwrap_or(SessionKind::Other), at);
        entry.damaged = self.damaged.contains(key.as_str());
        entry.version = self.rowless.remove(key).unwrap_or_default();
        let parent = self.spawned.remove(key.as_str());
        entry.row.parent_key = parent.map(|parent| parent.to_string());
        entry
    }

    /// Changes the session that owns the record's stream, if there is one.
    fn row_of(&mut self, record: &Record, change: impl FnOnce(&mut Entry)) -> bool {
        let Some(entry) = self.entries.get_mut(&record.stream) else { return false };
        let parts = entry.parts.len();
        change(entry);
        for part in entry.parts.iter().skip(parts) {
            self.ids.entry(part.session_id.clone()).or_default().insert(record.stream.clone());
        }
        entry.saw(record.version);
        entry.settle();
        true
    }

    /// Changes the session that an open run works on.
    fn run(&mut self, run_id: &str, change: impl FnOnce(&mut Entry)) {
        let key = self.runs.get(run_id).map(|run| &run.key);
        if let Some(entry) = key.and_then(|key| self.entries.get_mut(key)) {
            change(entry);
            entry.settle();
        }
    }
}

impl Projection for Sessions {
    fn apply(&mut self, record: &Record) {
        if self.take(record) || self.row_of(record, |_| {}) {
            return;
        }
        let of_run = record.kind.as_str().starts_with("run.");
        if !of_run && SessionKey::of_stream(&record.stream).is_some() {
            self.rowless.insert(record.stream.clone(), record.version);
        }
    }

    fn gap(&mut self, damage: &Damage) {
        if damage.touched.is_empty() && damage.seqs.is_some() {
            self.losses_of_unknown_streams += 1;
        }
        for touched in &damage.touched {
            self.damaged.insert(touched.stream.clone());
            let key = StreamName::new(touched.stream.as_str()).ok();
            if let Some(entry) = key.and_then(|key| self.entries.get_mut(&key)) {
                entry.damaged = true;
                entry.settle();
            }
        }
    }
}

#[cfg(test)]
mod tests;
