//! What a settled file means: pure, from what the log knows of the rule and what the file is.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::id::EventId;
use crate::session::event::{Change, firing_id};

use super::rule::Rule;
use super::state::{MINUTE, Watched};

/// A file as it was found when it had settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The file.
    pub path: String,
    /// SHA-256 of its content in lower-case hexadecimal; empty when it is gone.
    pub sha256: String,
    /// When it changed, as far as can be told.
    pub at: Timestamp,
}

/// From when to when a run was at work; one that has not ended is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it was claimed.
    pub from: Timestamp,
    /// When it ended.
    pub to: Option<Timestamp>,
}

/// The runs of a rule that were claimed, by id.
pub type Spans = BTreeMap<String, Span>;

/// What a settled file means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it is as it is recorded.
    Nothing,
    /// It is to be recorded, and does not fire.
    Note,
    /// It fires.
    Fire(Firing),
    /// It would fire, but first something must be over; then it is to be looked at again.
    Wait(Wait),
}

/// What a file waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The end of the run that it caused last.
    Run(String),
    /// A moment at which the rule may start runs again.
    Until(Timestamp),
}

/// A firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// Its id, which follows from the rule, the file, its content and the firing before.
    pub id: EventId,
    /// What happened to the file.
    pub change: Change,
    /// The firing before.
    pub previous: Option<EventId>,
    /// The run of the rule that was at work when the file changed.
    pub during: Option<String>,
}

/// Decides what a settled file means at `now`. A rule that is stopped is not asked.
#[must_use]
pub fn decide(
    rule: &Rule,
    watched: &Watched,
    seen: &Seen,
    spans: &Spans,
    now: Timestamp,
) -> Verdict {
    let known = watched.known(&seen.path);
    let was = known.map_or("", |known| known.sha256.as_str());
    let change = match (was.is_empty(), seen.sha256.is_empty()) {
        _ if was == seen.sha256 => return Verdict::Nothing,
        (true, _) => Change::Create,
        (false, true) => Change::Remove,
        (false, false) => Change::Change,
    };
    if !rule.on.contains(&change) {
        return Verdict::Note;
    }
    let own = known.and_then(|known| known.run_id.as_ref());
    if let Some(run) = own
        && spans.get(run).is_some_and(|span| span.to.is_none())
    {
        return Verdict::Wait(Wait::Run(run.clone()));
    }
    if let Some(until) = rule.runs_per_minute.and_then(|most| full_until(watched, most, now)) {
        return Verdict::Wait(Wait::Until(until));
    }
    let previous = known.and_then(|known| known.firing);
    Verdict::Fire(Firing {
        id: firing_id(&rule.name, &seen.path, &seen.sha256, previous),
        change,
        previous,
        during: at_work(watched, spans, seen.at),
    })
}

/// The run of the rule that was at work at a moment: of several the one that has the most firings in a row behind it, so
/// that a circle of files is seen as well as one file.
fn at_work(watched: &Watched, spans: &Spans, at: Timestamp) -> Option<String> {
    let covers = |span: &Span| span.from <= at.plus(TICK) && span.to.is_none_or(|to| at <= to);
    let runs = watched.fired().map(|fired| &fired.run_id);
    let at_work = runs.filter(|run| spans.get(*run).is_some_and(covers));
    at_work.max_by_key(|run| watched.in_a_row(run)).cloned()
}

/// The stamp of a file may be that much older than its change: file systems take the time of the last tick of the kernel's
/// clock, 1 to 10 ms ago, and virtual ones are later still. A run that writes at once would have written before it began.
const TICK: Duration = Duration::from_millis(100);

/// When a rule may fire again that fired `most` times in the last minute; `None` when it may now.
fn full_until(watched: &Watched, most: usize, now: Timestamp) -> Option<Timestamp> {
    let oldest = watched.fired().rev().nth(most.checked_sub(1)?)?;
    Some(oldest.at.plus(MINUTE)).filter(|until| *until > now)
}
