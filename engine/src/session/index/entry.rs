//! What the sessions view keeps of one session beside its row: its parts, its open runs, its announces. The row is
//! brought up to date from these after every event.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::{StreamName, Version};
use crate::session::event::{
    Announce, Cleanup, Members, Origin, RunFinished, RunStatus, SessionKind, SessionOpened,
    SpawnMode,
};

use super::part::{IdHash, Part};
use super::row::{Row, Status};
use super::turns::{Place, Texts, Turns, Versions};

/// One session.
#[derive(Clone, Debug)]
pub(in crate::session) struct Entry {
    pub(in crate::session) row: Row,
    /// The parts by the order in which they came.
    pub(in crate::session) parts: Vec<Part>,
    pub(super) current: usize,
    /// The version of the last event seen in its stream.
    pub(in crate::session) version: Version,
    pub(in crate::session) damaged: bool,
    pub(super) archived: bool,
    pub(super) last_run: Option<RunStatus>,
    pub(super) runs: BTreeMap<String, RunAtWork>,
    pub(super) announces: BTreeSet<String>,
    /// Whether the event that opens it was seen, and the channel that it named.
    pub(super) opened: bool,
    pub(super) opened_channel: Option<String>,
    /// The model that it was set to, and the one that answered last.
    pub(super) own_model: Option<String>,
    pub(super) last_model: Option<String>,
    /// When its current part became current.
    pub(super) entered_at: Timestamp,
    /// When a person last wrote in it since then.
    pub(super) human_at: Option<Timestamp>,
    pub(super) in_thread: bool,
    pub(super) sandboxed: bool,
    /// What becomes of it after its end, if it was spawned here.
    pub(super) fate: Option<Fate>,
    /// Runs of its own whose announces are not settled.
    pub(super) own_announces: BTreeSet<String>,
    /// When its last run ended, or its last announce was settled.
    pub(super) ended_at: Option<Timestamp>,
}

/// What becomes of a spawned child after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fate {
    /// It leaves the lists when its time is over.
    Expires,
    /// It leaves them at once.
    LeavesAtOnce,
    /// It stays open.
    Stays,
}

/// A run that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunAtWork {
    pub(super) phase: RunPhase,
    /// When it was asked for.
    pub(super) since: Timestamp,
}

/// How far a run is that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RunPhase {
    Requested,
    Claimed,
}

impl Entry {
    pub(super) fn new(key: StreamName, kind: SessionKind, at: Timestamp) -> Self {
        Self {
            row: Row::new(key, kind, at),
            parts: Vec::new(),
            current: 0,
            version: Version::ZERO,
            damaged: false,
            archived: false,
            last_run: None,
            runs: BTreeMap::new(),
            announces: BTreeSet::new(),
            opened: false,
            opened_channel: None,
            own_model: None,
            last_model: None,
            entered_at: at,
            human_at: None,
            in_thread: false,
            sandboxed: false,
            fate: None,
            own_announces: BTreeSet::new(),
            ended_at: None,
        }
    }

    /// Notes that events of its stream were seen; a version left out is damage.
    pub(super) fn saw(&mut self, versions: Versions) {
        self.damaged |= !versions.dense || versions.first != self.version.next();
        self.version = versions.last;
    }

    /// Takes what opening says. A key that opens again, because two names of it were joined, gets a part and keeps what
    /// it is.
    pub(super) fn opened(&mut self, event: SessionOpened, at: Timestamp) {
        let index = self.enter(&event.session_id);
        if let Some(part) = self.parts.get_mut(index) {
            part.source_path = event.source_path;
        }
        self.archived = false;
        (self.entered_at, self.human_at) = (at, None);
        self.in_thread |= event.thread_id.is_some_and(|id| !id.is_empty());
        self.touched(at);
        let row = &mut self.row;
        row.label = row.label.take().or(event.label);
        row.display_name = row.display_name.take().or(event.display_name);
        row.chat_type = row.chat_type.or(event.chat_type);
        if self.opened {
            return;
        }
        self.opened = true;
        self.sandboxed = event.sandboxed == Some(true);
        row.created_at = at;
        row.kind = event.kind;
        row.agent_id = event.agent_id;
        row.spawn_depth = event.spawn_depth;
        row.parent_key = event.parent_key.or(row.parent_key.take());
        if row.parent_key.is_none() {
            let origin = event.origin.unwrap_or_default();
            row.last_channel = origin.channel.clone().or_else(|| event.channel.clone());
            row.last_to = origin.to.clone().or(event.chat_id);
            row.delivery_context = (origin != Origin::default()).then_some(origin);
        }
        self.opened_channel = event.channel;
    }

    pub(super) fn patched(&mut self, session_id: &str, set: &Members) {
        self.enter_first(session_id);
        let row = &mut self.row;
        for (field, value) in &set.0 {
            match field.as_str() {
                "label" => value.patch(&mut row.label),
                "displayName" => value.patch(&mut row.display_name),
                "sendPolicy" => value.patch(&mut row.send_policy),
                "model" => value.patch(&mut self.own_model),
                "contextTokens" => value.patch(&mut row.context_tokens),
                "thinkingLevel" => value.patch(&mut row.thinking_level),
                "verboseLevel" => value.patch(&mut row.verbose_level),
                "lastChannel" => value.patch(&mut row.last_channel),
                "lastTo" => value.patch(&mut row.last_to),
                "deliveryContext" => value.patch(&mut row.delivery_context),
                "chatType" => value.patch(&mut row.chat_type),
                // What another program knew of runs that it did not keep.
                "systemSent" => {
                    if let Some(part) = self.parts.get_mut(self.current) {
                        part.run_started |= value.read() == Some(true);
                    }
                }
                "abortedLastRun" if value.read() == Some(true) => {
                    self.last_run = self.last_run.or(Some(RunStatus::Interrupted));
                }
                _ => {}
            }
        }
    }

    /// A part becomes the current one, new or again.
    pub(super) fn entered(&mut self, session_id: &str, at: Timestamp) {
        self.enter(session_id);
        self.archived = false;
        (self.entered_at, self.human_at) = (at, None);
        self.touched(at);
    }

    /// It was spawned here.
    pub(super) fn spawned(&mut self, mode: Option<SpawnMode>, cleanup: Option<Cleanup>) {
        self.fate = Some(match (mode, cleanup) {
            (Some(SpawnMode::Session), _) => Fate::Stays,
            (_, Some(Cleanup::Delete)) => Fate::LeavesAtOnce,
            _ => Fate::Expires,
        });
    }

    /// Its announce is on the way to its requester.
    pub(super) fn announces(&mut self, run_id: &str) {
        self.own_announces.insert(run_id.to_owned());
    }

    /// Its announce came to an end.
    pub(super) fn announced(&mut self, run_id: &str, at: Timestamp) {
        self.own_announces.remove(run_id);
        self.ended_at = self.ended_at.max(Some(at));
    }

    pub(super) fn archived(&mut self, session_id: &str) {
        self.enter_first(session_id);
        self.archived = true;
    }

    /// Takes turns; `told` learns which runs have told how many tokens.
    pub(super) fn turns(
        &mut self,
        turns: &Turns,
        texts: &Texts,
        told: &mut dyn FnMut(IdHash, u64),
    ) {
        self.enter_first(texts.get(&turns.part.session_id));
        if let Some(at) = turns.human_at() {
            self.archived = false;
            self.row.last_human_at = self.row.last_human_at.max(Some(at));
        }
        let text = |place: &Option<Place>| place.as_ref().map(|place| texts.get(place));
        set(&mut self.row.last_channel, text(&turns.channel));
        set(&mut self.last_model, text(&turns.model));
        self.touched(turns.last_at);
        for of_part in turns.parts() {
            let index = self.part_of(texts.get(&of_part.session_id));
            if index == self.current {
                self.human_at = self.human_at.max(of_part.human_at);
            }
            if let Some(part) = self.parts.get_mut(index) {
                part.take(of_part, told);
            }
        }
    }

    /// A run has come so far at this moment.
    pub(super) fn run(&mut self, run_id: &str, phase: RunPhase, at: Timestamp) {
        let asked_for = RunAtWork { phase, since: at };
        self.runs.entry(run_id.to_owned()).or_insert(asked_for).phase = phase;
    }

    pub(super) fn run_started(&mut self, run_id: &str, at: Timestamp) {
        self.run(run_id, RunPhase::Claimed, at);
        self.row.started_at = Some(at);
        if let Some(part) = self.parts.get_mut(self.current) {
            part.run_started = true;
        }
        self.touched(at);
    }

    /// A run ended.
    pub(super) fn run_finished(&mut self, session_id: &str, run: &RunFinished, at: Timestamp) {
        let phase = self.runs.remove(&run.run_id).map(|run| run.phase);
        if phase == Some(RunPhase::Requested) && run.runtime_ms > 0 {
            // It was started where nobody recorded that.
            let started_at = at.minus(Duration::from_millis(run.runtime_ms));
            self.row.started_at = self.row.started_at.max(Some(started_at));
            if let Some(part) = self.parts.iter_mut().find(|part| part.session_id == session_id) {
                part.run_started = true;
            }
        }
        self.last_run = Some(run.status);
        self.ended_at = self.ended_at.max(Some(at));
        self.touched(at);
    }

    /// Adds tokens of a run that no turn of it has told.
    pub(super) fn add_tokens(&mut self, session_id: &str, tokens: u64) {
        if let Some(part) = self.parts.iter_mut().rfind(|part| part.session_id == session_id) {
            part.tokens = part.tokens.saturating_add(tokens);
        }
    }

    /// Takes the id that an agent gives its own session. A run that failed and told none may have met a session that is
    /// gone; one that was ended from outside says nothing.
    pub(super) fn agent_told(&mut self, session_id: &str, agent: &str, run: &RunFinished) {
        let Some(part) = self.parts.iter_mut().rfind(|part| part.session_id == session_id) else {
            return;
        };
        match (&run.agent_session_id, run.status) {
            (Some(id), _) => part.agent_session = Some((agent.to_owned(), id.clone())),
            (None, RunStatus::Error) => part.agent_session = None,
            (None, _) => {}
        }
    }

    pub(super) fn announce_requested(&mut self, announce: &Announce) {
        self.announces.insert(announce.run_id.clone());
    }

    pub(super) fn announce_settled(&mut self, announce: &Announce) {
        self.announces.remove(&announce.run_id);
    }

    pub(super) fn touched(&mut self, at: Timestamp) {
        self.row.updated_at = self.row.updated_at.max(at);
    }

    /// Whether nothing is at work in it and nothing is on its way to it or from it.
    pub(super) fn is_at_rest(&self) -> bool {
        self.runs.is_empty() && self.announces.is_empty() && self.own_announces.is_empty()
    }

    /// Whether it has left the lists.
    pub(super) const fn is_archived(&self) -> bool {
        self.archived
    }

    /// The current part; `None` before the first.
    pub(in crate::session) fn current(&self) -> Option<&Part> {
        self.parts.get(self.current)
    }

    /// Brings the row up to date with everything else.
    pub(super) fn settle(&mut self) {
        if self.row.channel != self.channel() {
            self.row.channel = self.channel().to_owned();
        }
        let status = self.status();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let row = &mut self.row;
        let model = self.own_model.as_ref().or(self.last_model.as_ref());
        if row.model.as_ref() != model {
            row.model = model.cloned();
        }
        row.status = status;
        row.open_runs = count(self.runs.len());
        row.pending_announces = count(self.announces.len());
        row.parts = count(self.parts.len());
        row.aborted_last_run =
            self.last_run.is_some_and(|s| !matches!(s, RunStatus::Ok | RunStatus::Error));
        if let Some(part) = self.parts.get(self.current) {
            row.session_id.clone_from(&part.session_id);
            row.turns = part.turns;
            row.total_tokens = part.tokens;
            row.system_sent = part.run_started;
            row.transcript_path.clone_from(&part.source_path);
        }
    }

    fn status(&self) -> Status {
        if self.damaged {
            Status::Damaged
        } else if self.runs.values().any(|run| run.phase == RunPhase::Claimed) {
            Status::Running
        } else if !self.runs.is_empty() {
            Status::Waiting
        } else if self.archived {
            Status::Archived
        } else {
            self.last_run.map_or(Status::Idle, Status::after)
        }
    }

    fn channel(&self) -> &str {
        let known = match self.row.kind {
            SessionKind::Cron | SessionKind::Hook | SessionKind::Node => Some("internal"),
            SessionKind::Group => self.opened_channel.as_deref(),
            SessionKind::Main | SessionKind::Other => {
                self.row.last_channel.as_deref().or(self.opened_channel.as_deref())
            }
        };
        known.unwrap_or("unknown")
    }

    /// Of a session whose opening is lost, the first part that is named is the current one.
    fn enter_first(&mut self, session_id: &str) {
        if self.parts.is_empty() {
            self.enter(session_id);
        }
    }

    fn enter(&mut self, session_id: &str) -> usize {
        self.current = self.part_of(session_id);
        self.current
    }

    /// The place of a part, which is made when there is none of that id.
    fn part_of(&mut self, session_id: &str) -> usize {
        let known = self.parts.iter().rposition(|part| part.session_id == session_id);
        known.unwrap_or_else(|| {
            self.parts.push(Part { session_id: session_id.to_owned(), ..Part::default() });
            self.parts.len() - 1
        })
    }
}

/// Sets a field that mostly holds the same text already; `None` leaves it.
fn set(field: &mut Option<String>, text: Option<&str>) {
    if text.is_some() && field.as_deref() != text {
        *field = text.map(str::to_owned);
    }
}
