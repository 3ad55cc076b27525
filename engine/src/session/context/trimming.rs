//! The event that says that a context leaves out turns, and which: told when the window has moved, not with every run.

use crate::error::Result;
use crate::id::{Seq, StreamName, Version};
use crate::session::event::{Event, SessionTrimmed};
use crate::store::{EventStore, Item, Record};

use super::{Context, Trimmed};

/// What the last event of a part said that its context left out.
#[derive(Clone, Debug, PartialEq)]
pub struct LastTrimmed {
    /// Where the event stands.
    pub seq: Seq,
    /// What it said.
    pub event: SessionTrimmed,
}

/// The event that says what the context of a run leaves out for the limit of turns; `None` when it leaves out nothing, and
/// when the last such event of the part said the same.
#[must_use]
pub fn trimming(context: &Context, last: Option<&SessionTrimmed>) -> Option<Event> {
    let Trimmed { from, to, .. } = context.trimmed?;
    let event = SessionTrimmed {
        at: None,
        session_id: context.session_id.clone(),
        kept: context.turns,
        from_seq: from.0,
        to_seq: to.0,
    };
    (last != Some(&event)).then_some(Event::SessionTrimmed(event))
}

/// So many events from the end are looked at first; it mostly stands behind the last turn but one.
const STEP: u64 = 64;

/// The last event of a part that says what its context left out, looked for from the end of the session.
///
/// # Errors
/// Whatever reading meets. What is lost is no error: the event before it is the last one then.
pub fn last_trimmed(
    store: &dyn EventStore,
    key: &StreamName,
    session_id: &str,
) -> Result<Option<LastTrimmed>> {
    let mut end = store.head(key)?;
    let mut step = STEP;
    while end > Version::ZERO {
        let begin = Version(end.0.saturating_sub(step));
        let mut last = None;
        for item in store.read_stream(key, begin)? {
            match item? {
                Item::Record(record) if record.version > end => break,
                Item::Record(record) => last = told_by(&record, session_id).or(last),
                Item::Gap(_) => {}
            }
        }
        if last.is_some() {
            return Ok(last);
        }
        (end, step) = (begin, step.saturating_mul(4));
    }
    Ok(None)
}

fn told_by(record: &Record, session_id: &str) -> Option<LastTrimmed> {
    if record.kind.as_str() != "session.trimmed" {
        return None;
    }
    match Event::of(record) {
        Ok(Event::SessionTrimmed(event)) if event.session_id == session_id => {
            Some(LastTrimmed { seq: record.seq, event: SessionTrimmed { at: None, ..event } })
        }
        _ => None,
    }
}
