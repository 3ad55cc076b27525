//! `replay --check`: what the newest snapshot and the rest give, against what all events give.

use std::collections::BTreeSet;

use annals_engine::Engine;
use annals_engine::projection::{Folded, Saved};
use annals_engine::session::index::Sessions;
use annals_engine::store::View;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output::text::{bytes, count, one_line};
use crate::output::{Format, Output};

/// So often both are brought up to the same end of a log that grows.
const ATTEMPTS: usize = 1_000;

/// How many of those that differ are named.
const NAMED_MAX: usize = 10;

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    /// The position of the snapshot; absent when there is none that fits.
    snapshot: Option<u64>,
    as_of: u64,
    events: u64,
    sessions: usize,
    bytes: usize,
}

pub(super) fn run(engine: &Engine, out: &mut Output) -> Result<Exit, Failure> {
    let newest = engine.snapshot(Sessions::NAME, Sessions::schema(), None);
    let snapshot = newest.map(|snapshot| snapshot.cursor.seq().0);
    let mut from_nothing = Folded::<Sessions>::of(engine.store(), View::Durable)?;
    let mut kept = engine.sessions()?;
    for _ in 0..ATTEMPTS {
        if kept.cursor() == from_nothing.cursor() {
            break;
        }
        from_nothing.catch_up(engine.store(), View::Durable)?;
        kept = engine.sessions()?;
    }
    if kept.cursor() != from_nothing.cursor() {
        let message = "others append faster than two folds meet at one end of the log";
        return Err(Failure::new(Exit::Busy, "busy", message).hint("check a store at rest"));
    }
    let saved = from_nothing.saved();
    if saved.is_none() || kept.saved() != saved {
        return Err(differ(&kept, &from_nothing, snapshot));
    }
    let answer = Answer {
        ok: true,
        snapshot,
        as_of: kept.as_of().0,
        events: kept.events(),
        sessions: kept.state().len(),
        bytes: saved.map_or(0, |saved| saved.len()),
    };
    if out.format == Format::Json {
        out.object(&answer)?;
    } else {
        show(&answer, out)?;
    }
    Ok(Exit::Ok)
}

fn show(answer: &Answer, out: &mut Output) -> Result<(), Failure> {
    let sessions = count(u64::try_from(answer.sessions).unwrap_or(u64::MAX), "session");
    let size = bytes(u64::try_from(answer.bytes).unwrap_or(u64::MAX));
    let from = match answer.snapshot {
        Some(seq) => format!("the snapshot at #{seq} and the rest give what all events give"),
        None => "no snapshot fits, and a fold in stretches gives what one event after the other \
                 gives"
            .to_owned(),
    };
    out.line(&format!("same: {from}"))?;
    out.line(&format!("{sessions} from {}, {size} as saved", count(answer.events, "event")))
}

/// What differs, in words.
fn differ(
    kept: &Folded<Sessions>,
    from_nothing: &Folded<Sessions>,
    snapshot: Option<u64>,
) -> Failure {
    let (one, other) = (kept.state(), from_nothing.state());
    let keys: BTreeSet<_> = one.rows().chain(other.rows()).map(|row| &row.key).collect();
    let differs = |key: &&_| one.row(key) != other.row(key) || one.parts(key) != other.parts(key);
    let differing: Vec<_> = keys.into_iter().filter(differs).collect();
    let mut named: Vec<String> =
        differing.iter().take(NAMED_MAX).map(|key| one_line(key.as_str())).collect();
    if let Some(more) = differing.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        named.push(format!("and {more} more"));
    }
    let from = snapshot.map_or("no snapshot".to_owned(), |seq| format!("the snapshot at #{seq}"));
    let (kept, all) = (kept.events(), from_nothing.events());
    let what = match named.is_empty() {
        true => "no row differs, but what is kept behind them does".to_owned(),
        false => format!("what differs: {}", named.join(", ")),
    };
    let message = format!(
        "{from} and the rest hold {}, {} can be read; {what}",
        count(kept, "event"),
        count(all, "event")
    );
    Failure::new(Exit::Failed, "different", message).hint(
        "`annals verify` says whether the log is damaged; a snapshot is only a cache: the folder \
         snapshots/ can be deleted while nobody appends",
    )
}
