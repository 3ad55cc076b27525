//! What every store refuses before it looks at its own state: the form of an append. Versions, known ids and the size
//! of lines need the log and are judged by the implementation.

use std::collections::HashSet;
use std::time::Duration;

use super::{Append, NewEvent};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::control;

/// How far the time in a new UUIDv7 may lie from the clock of the append, either way. A repeat of an id that is known
/// may be of any age.
pub(crate) const ID_AGE_MAX: Duration = Duration::from_secs(600);

/// Takes the append if its form is right.
///
/// # Errors
/// `TooLarge` for more than [`Append::EVENTS_MAX`] events; `InvalidInput` for an event that only the log itself may
/// write, and for an id that stands twice.
pub(crate) fn check_form(append: &Append) -> Result<()> {
    let count = append.events.len();
    if count > Append::EVENTS_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("the batch has {count} events; a batch has at most {}", Append::EVENTS_MAX),
        )
        .hint("append it in several batches"));
    }
    let mut ids = HashSet::with_capacity(if count > 1 { count } else { 0 });
    for event in &append.events {
        check_reserved(event)?;
        if count > 1 && !ids.insert(event.id) {
            return Err(Error::invalid(format!("the id {} stands twice in the batch", event.id))
                .field("id"));
        }
    }
    Ok(())
}

/// Takes the id of an event that is not in the log if the index of ids can hold it.
///
/// # Errors
/// `InvalidInput` for a UUIDv7 whose time is more than [`ID_AGE_MAX`] from `now`.
pub(crate) fn check_age(event: &NewEvent, now: Timestamp) -> Result<()> {
    let Some(made) = event.id.embedded_time() else { return Ok(()) };
    if (now.minus(ID_AGE_MAX)..=now.plus(ID_AGE_MAX)).contains(&made) {
        return Ok(());
    }
    Err(Error::invalid(format!("the id {} was made at {made}, and it is {now} now", event.id))
        .field("id")
        .hint("make the id of a new event when it is appended, or derive it (UUIDv8)"))
}

fn check_reserved(event: &NewEvent) -> Result<()> {
    if event.stream.as_str() == control::STREAM {
        return Err(
            Error::invalid("the stream \"log\" is written by the log alone").field("stream")
        );
    }
    if event.kind.as_str().starts_with("log.") {
        return Err(Error::invalid(format!(
            "the type {:?} is written by the log alone",
            event.kind.as_str()
        ))
        .field("type"));
    }
    Ok(())
}
