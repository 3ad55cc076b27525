//! The events that decisions become.

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{EventId, Version};
use crate::session::event::{
    Event, Links, Role, RunKind, WatchFired, WatchState, WatchedFile, watch_stream,
};
use crate::session::key::{AgentId, MainBucket};
use crate::session::push::{Door, Push, Target, Wanted, Who};
use crate::store::{Append, Expectation, Expected};

use super::decide::{Firing, Seen};
use super::rule::Rule;
use super::state::{REASON_MORE, Watched};

/// The door of watch rules.
const DOOR: &str = "watch";

/// The most files of one event.
const FILES_MOST: usize = 500;

/// The most events of one batch: with the longest of usual paths they stay far below what a batch holds.
const EVENTS_MOST: usize = 20;

/// The push of a firing. It goes through once, and only while the log knows no more of the rule than the decision did.
///
/// # Errors
/// `InvalidInput` and `ReservedChannel` for a session that cannot be.
pub fn push_of(
    rule: &Rule,
    watched: &Watched,
    seen: &Seen,
    firing: &Firing,
    agent: &AgentId,
) -> Result<Push> {
    let agent = rule.agent.as_ref().unwrap_or(agent);
    let session = rule.session_for(&seen.path, firing.change);
    let target = Target::named(&session, agent, MainBucket::OfAgent)?;
    let door = Door { name: DOOR.to_owned(), who: Who::Program };
    let prompt = rule.prompt_for(&seen.path, firing.change);
    let mut push = Push::to(target, door, Role::User, &prompt, agent.clone());
    push.run = Some(Wanted { agent: rule.agent.clone(), ..Wanted::new(RunKind::Watch) });
    push.idempotency_key = Some(firing.id.to_string());
    let run_id = push.keyed_run_id()?.map(|id| id.to_string()).unwrap_or_default();
    let event = Event::WatchFired(WatchFired {
        at: None,
        rule: rule.name.clone(),
        path: seen.path.clone(),
        change: firing.change,
        sha256: seen.sha256.clone(),
        previous_firing: firing.previous.map(|id| id.to_string()),
        run_id,
        during_run_id: firing.during.clone(),
    });
    let stream = watch_stream(&rule.name)?;
    let links = Links { cause: None, flow: Some(firing.id) };
    push.ahead = Some(event.to_new(stream, firing.id, links)?);
    push.expects = Some(expectation(rule, watched)?);
    Ok(push)
}

/// The appends of a first look, in order: the last one completes it.
///
/// # Errors
/// `InvalidInput` never for a rule that the configuration took.
pub fn baseline(
    rule: &Rule,
    watched: &Watched,
    mut files: Vec<WatchedFile>,
    now: Timestamp,
) -> Result<Vec<Append>> {
    let mut chunks = Vec::new();
    while files.len() > FILES_MOST {
        let rest = files.split_off(FILES_MOST);
        chunks.push((Some(REASON_MORE), files));
        files = rest;
    }
    chunks.push((None, files));
    let mut appends = Vec::new();
    let mut version = watched.version();
    while !chunks.is_empty() {
        let rest = chunks.split_off(chunks.len().min(EVENTS_MOST));
        let mut append = Append::default();
        let before = version;
        for (reason, files) in chunks {
            let state = WatchState { files, ..state(rule, Some(true), reason) };
            append.events.push(Event::WatchRescanned(state).to_new(
                watch_stream(&rule.name)?,
                EventId::new(now),
                Links::default(),
            )?);
            version = version.next();
        }
        appends.push(append.expecting(watch_stream(&rule.name)?, expected(before)));
        chunks = rest;
    }
    Ok(appends)
}

/// What is told of how a rule looks at its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It was looked at everything anew.
    Rescanned,
    /// It looks from time to time.
    Degraded,
    /// It does not look any more.
    Stopped,
}

/// The append of an event about how a rule looks at its files, with what was seen of some.
///
/// # Errors
/// As [`baseline`].
pub fn told(
    rule: &Rule,
    watched: &Watched,
    (told, reason): (Told, &str),
    files: Vec<WatchedFile>,
    now: Timestamp,
) -> Result<Append> {
    let state = WatchState { files, ..state(rule, None, Some(reason)) };
    let event = match told {
        Told::Rescanned => Event::WatchRescanned(state),
        Told::Degraded => Event::WatchDegraded(state),
        Told::Stopped => Event::WatchStopped(state),
    };
    let new = event.to_new(watch_stream(&rule.name)?, EventId::new(now), Links::default())?;
    let Expectation { stream, expected } = expectation(rule, watched)?;
    Ok(Append::new(vec![new]).expecting(stream, expected))
}

fn state(rule: &Rule, baseline: Option<bool>, reason: Option<&str>) -> WatchState {
    WatchState {
        at: None,
        rule: rule.name.clone(),
        baseline,
        reason: reason.map(str::to_owned),
        files: Vec::new(),
    }
}

fn expectation(rule: &Rule, watched: &Watched) -> Result<Expectation> {
    let stream = watch_stream(&rule.name)?;
    Ok(Expectation { stream, expected: expected(watched.version()) })
}

fn expected(version: Version) -> Expected {
    if version == Version::ZERO { Expected::NoStream } else { Expected::Version(version) }
}
