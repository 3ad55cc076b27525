//! What is read from the log for a decision about a run: earlier texts, the session that an agent resumes, the words of
//! an announce. All of it stands in events that never change, so that it can be read before the decision.

mod wording;

pub use wording::wording;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::{StreamName, Version};
use crate::session::content;
use crate::session::event::{Event, RunFinished, RunRequested, Tokens as Usage, Turn, run_stream};
use crate::session::work::{Exchange, Job};
use crate::store::{EventStore, Item, Record};

use super::end::Earlier;

/// How many events of a session are looked at first for one of them.
const STEP: u64 = 32;

/// What the log says about one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Its request.
    pub requested: Option<RunRequested>,
    /// When it was asked for.
    pub at: Option<Timestamp>,
    /// Its end.
    pub finished: Option<RunFinished>,
}

/// What the log says about a run; nothing of one that is not there.
///
/// # Errors
/// Whatever reading meets.
pub fn told(store: &dyn EventStore, run_id: &str) -> Result<Told> {
    let mut told = Told::default();
    let stream = run_stream(run_id)?;
    for item in store.read_stream_of(&stream, &["run.requested", "run.finished"])? {
        let Item::Record(record) = item? else { continue };
        match Event::parse(&record.kind, &store.payload(&record)?) {
            Ok(Event::RunRequested(e)) if told.requested.is_none() => {
                told.at = Some(e.at.unwrap_or(record.time));
                told.requested = Some(e);
            }
            Ok(Event::RunFinished(e)) if told.finished.is_none() => told.finished = Some(e),
            _ => {}
        }
    }
    Ok(told)
}

/// The records of the turns of a session, the last first, as long as `more` wants them.
fn records_backwards(
    store: &dyn EventStore,
    key: &str,
    more: &mut dyn FnMut(&Record) -> Result<bool>,
) -> Result<()> {
    let stream = StreamName::new(key)?;
    let mut last = store.head(&stream)?;
    let mut step = STEP;
    while last > Version::ZERO {
        let begin = Version(last.0.saturating_sub(step));
        let mut records = Vec::new();
        for item in store.read_stream(&stream, begin)? {
            match item? {
                Item::Record(record) if record.version > last => break,
                Item::Record(record) => records.push(record),
                Item::Gap(_) => {}
            }
        }
        for record in records.into_iter().rev().filter(|r| r.kind.as_str() == "turn") {
            if !more(&record)? {
                return Ok(());
            }
        }
        last = begin;
        step = step.saturating_mul(4);
    }
    Ok(())
}

/// What the last turns of a session say, the last first, as long as `more` wants them.
fn backwards(
    store: &dyn EventStore,
    key: &str,
    more: &mut dyn FnMut(&Record, Turn) -> bool,
) -> Result<()> {
    records_backwards(store, key, &mut |record| {
        Ok(turn_of(store, record)?.is_none_or(|turn| more(record, turn)))
    })
}

fn turn_of(store: &dyn EventStore, record: &Record) -> Result<Option<Turn>> {
    Ok(match Event::parse(&record.kind, &store.payload(record)?) {
        Ok(Event::Turn(turn)) => Some(turn),
        _ => None,
    })
}

/// The text of the turn at a position; empty when it is not there. Of the turns behind it nothing is read but where they
/// stand: that one of them is damaged does not matter.
///
/// # Errors
/// Whatever reading meets.
pub fn text_at(store: &dyn EventStore, key: &str, seq: Option<u64>) -> Result<String> {
    let Some(seq) = seq else { return Ok(String::new()) };
    let mut found = String::new();
    records_backwards(store, key, &mut |record| {
        if record.seq.0 == seq
            && let Some(turn) = turn_of(store, record)?
        {
            found = turn.content.as_ref().map(content::plain).unwrap_or_default();
        }
        Ok(record.seq.0 > seq)
    })?;
    Ok(found)
}

/// The same for one that is told again: where it cannot be read, it says that.
fn told_again(store: &dyn EventStore, key: &str, seq: Option<u64>) -> Result<String> {
    text_at(store, key, seq).or_else(|error| match error.kind().is_about_one_thing() {
        true => Ok(format!("[unreadable: {}]", error.kind().code())),
        false => Err(error),
    })
}

/// What was said before, for the end of a run: its task, or what its exchange began with. Of a text that cannot be read it
/// says that: it is no reason that the run has no end.
///
/// # Errors
/// Whatever reading meets.
pub fn earlier(store: &dyn EventStore, run: &Job, exchange: Option<&Exchange>) -> Result<Earlier> {
    let Some(exchange) = exchange else {
        let request = told_again(store, &run.session_key, run.turn_seq)?;
        return Ok(Earlier { request, ..Earlier::default() });
    };
    let target = &exchange.target;
    let last_in = |key: &str| told_again(store, key, exchange.last_reply);
    let last = match exchange.last_reply {
        Some(_) => match last_in(target)? {
            text if text.is_empty() => last_in(&exchange.requester)?,
            text => text,
        },
        None => String::new(),
    };
    Ok(Earlier {
        request: told_again(store, target, exchange.turn_seq)?,
        first_reply: told_again(store, target, exchange.first_reply)?,
        last_reply: last,
    })
}

/// What earlier runs of a session used in the session of the agent's own with this id.
///
/// # Errors
/// Whatever reading meets.
pub fn used_before(store: &dyn EventStore, run: &Job, agent_session_id: &str) -> Result<Usage> {
    let mut runs: Vec<String> = Vec::new();
    backwards(store, &run.session_key, &mut |_, turn| {
        if let Some(id) = turn.run_id.filter(|id| *id != run.run_id && !runs.contains(id)) {
            runs.push(id);
        }
        true
    })?;
    let mut used = Usage { r#in: 0, out: 0, cache_read: None, cache_write: None };
    for id in runs {
        let Some(end) = told(store, &id)?.finished else { continue };
        if end.agent_session_id.as_deref() != Some(agent_session_id) {
            continue;
        }
        let Some(tokens) = end.tokens else { continue };
        used.r#in = used.r#in.saturating_add(tokens.r#in);
        used.out = used.out.saturating_add(tokens.out);
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        used.cache_read = sum(used.cache_read, tokens.cache_read);
        used.cache_write = sum(used.cache_write, tokens.cache_write);
    }
    Ok(used)
}
