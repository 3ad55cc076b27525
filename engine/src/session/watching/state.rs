//! What the log knows of a watch rule: the content of each file that was recorded last, how it was fired, and how the rule
//! stands. It is a fold of the rule's own stream.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::format::Fields;
use crate::id::{EventId, Version};
use crate::projection::Projection;
use crate::session::event::{Event, WatchFired, WatchState};
use crate::store::Damage;

/// So many firings, each caused by a file that changed during the run of the one before, stop a rule.
pub const LOOP: u32 = 3;

/// The word of a rule that stopped because it fires itself.
pub const REASON_LOOP: &str = "loop";
/// The word of a rule that an operator started again.
pub const REASON_RESET: &str = "reset";
/// The word of a rule whose notifications come again.
pub const REASON_NOTIFIED: &str = "notified";
/// The word of a rule that is to look from time to time by its configuration.
pub const REASON_POLL: &str = "poll";
/// The word of changes that are recorded and do not fire.
pub const REASON_NOTED: &str = "noted";
/// The word of a part of a baseline that is not the last.
pub(super) const REASON_MORE: &str = "more";

/// A watch rule as the log knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    pub(super) version: Version,
    baseline: bool,
    files: BTreeMap<String, Known>,
    stopped: Option<String>,
    degraded: Option<String>,
    /// The last firings, the newest last: all of the last minute, and some before.
    fired: VecDeque<Fired>,
    /// Whether it is to be stopped, because a firing was one too many in a row.
    loops: bool,
}

/// What is recorded of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// SHA-256 of its content in lower-case hexadecimal; empty when it is gone.
    pub sha256: String,
    /// Its last firing.
    pub firing: Option<EventId>,
    /// The run of that.
    pub run_id: Option<String>,
}

/// A firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The file.
    pub path: String,
    /// The run that it caused.
    pub run_id: String,
    /// When it was recorded.
    pub at: Timestamp,
    /// How many firings in a row, this one counted, came of files that changed during the run of the one before; 0 for one
    /// that did not.
    pub in_a_row: u32,
}

/// The time that [`Rule::runs_per_minute`](super::Rule::runs_per_minute) speaks of.
pub(super) const MINUTE: Duration = Duration::from_secs(60);

/// So many firings are remembered at least: a run that is at work now is among the last.
const FIRED_LEAST: usize = 64;

impl Watched {
    /// The version of the rule's stream that this follows from.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Whether the first look is recorded whole.
    #[must_use]
    pub const fn has_baseline(&self) -> bool {
        self.baseline
    }

    /// What is recorded of a file; `None` for one that was never there.
    #[must_use]
    pub fn known(&self, path: &str) -> Option<&Known> {
        self.files.get(path)
    }

    /// The files that are recorded and not gone, by path.
    pub fn present(&self) -> impl Iterator<Item = (&str, &Known)> {
        let there = self.files.iter().filter(|(_, known)| !known.sha256.is_empty());
        there.map(|(path, known)| (path.as_str(), known))
    }

    /// The paths of those of them that lie below a folder.
    pub fn present_below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let prefix = format!("{folder}/");
        let below = self.files.range(prefix.clone()..);
        let below = below.take_while(move |(path, _)| path.starts_with(&prefix));
        below.filter(|(_, known)| !known.sha256.is_empty()).map(|(path, _)| path.as_str())
    }

    /// Why the rule is stopped.
    #[must_use]
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Why the rule looks from time to time and is not notified.
    #[must_use]
    pub fn degraded(&self) -> Option<&str> {
        self.degraded.as_deref()
    }

    /// Whether it fired itself so often that it is to be stopped.
    #[must_use]
    pub const fn loops(&self) -> bool {
        self.loops
    }

    /// The last firings, the newest last.
    pub fn fired(&self) -> impl DoubleEndedIterator<Item = &Fired> {
        self.fired.iter()
    }

    /// How many firings in a row the one of a run is.
    pub(super) fn in_a_row(&self, run_id: &str) -> u32 {
        let fired = self.fired.iter().rev().find(|fired| fired.run_id == run_id);
        fired.map_or(0, |fired| fired.in_a_row)
    }

    /// Records content without an event: for who looks at what would happen and stores nothing.
    pub fn suppose(&mut self, path: &str, sha256: &str) {
        self.record(path, sha256);
    }

    /// Takes the first look for recorded, likewise.
    pub const fn suppose_baseline(&mut self) {
        self.baseline = true;
    }

    fn record(&mut self, path: &str, sha256: &str) -> &mut Known {
        let absent = || Known { sha256: String::new(), firing: None, run_id: None };
        let known = self.files.entry(path.to_owned()).or_insert_with(absent);
        sha256.clone_into(&mut known.sha256);
        known
    }

    fn fire(&mut self, event: WatchFired, id: EventId, at: Timestamp) {
        let during = event.during_run_id.as_deref();
        let in_a_row = during.map_or(0, |run| self.in_a_row(run).saturating_add(1));
        let known = self.record(&event.path, &event.sha256);
        known.firing = Some(id);
        known.run_id = Some(event.run_id.clone());
        self.loops |= in_a_row >= LOOP;
        self.fired.push_back(Fired { path: event.path, run_id: event.run_id, at, in_a_row });
        let old = at.minus(MINUTE);
        while self.fired.len() > FIRED_LEAST && self.fired.front().is_some_and(|f| f.at <= old) {
            self.fired.pop_front();
        }
    }

    fn rescanned(&mut self, event: &WatchState) {
        for file in &event.files {
            self.record(&file.path, &file.sha256);
        }
        let reason = event.reason.as_deref();
        self.baseline |= event.baseline == Some(true) && reason != Some(REASON_MORE);
        match reason {
            Some(REASON_NOTIFIED | REASON_POLL) => self.degraded = None,
            Some(REASON_RESET) => {
                self.stopped = None;
                self.loops = false;
                self.fired.iter_mut().for_each(|fired| fired.in_a_row = 0);
            }
            _ => {}
        }
    }
}

/// The events of one rule's stream; what was lost leaves the rest as it was told.
impl Projection for Watched {
    fn apply(&mut self, event: &Fields<'_>) {
        self.version = event.version;
        let why = |state: WatchState| state.reason.unwrap_or_else(|| "unknown".to_owned());
        match Event::told_by(event) {
            Some(Event::WatchFired(fired)) => self.fire(fired, event.id, event.time),
            Some(Event::WatchRescanned(state)) => self.rescanned(&state),
            Some(Event::WatchDegraded(state)) => self.degraded = Some(why(state)),
            Some(Event::WatchStopped(state)) => {
                self.stopped = Some(why(state));
                self.loops = false;
            }
            _ => {}
        }
    }

    fn gap(&mut self, _: &Damage) {}
}

/// How all rules stand that the log knows, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllWatched(BTreeMap<String, Watched>);

impl AllWatched {
    /// What the names of the rules' streams begin with.
    pub const STREAMS: &'static str = "watch:";

    /// The rules by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Watched)> {
        self.0.iter().map(|(name, rule)| (name.as_str(), rule))
    }
}

impl Projection for AllWatched {
    fn apply(&mut self, event: &Fields<'_>) {
        if let Some(name) = event.stream.strip_prefix(Self::STREAMS) {
            match self.0.get_mut(name) {
                Some(rule) => rule.apply(event),
                None => self.0.entry(name.to_owned()).or_default().apply(event),
            }
        }
    }

    fn gap(&mut self, _: &Damage) {}
}
