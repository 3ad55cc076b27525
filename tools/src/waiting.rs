//! Waiting for the ends of runs, by following the log: who asks again after a break finds what has happened meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use annals_engine::Result;
use annals_engine::session::event::{Event, RunFinished, run_stream};
use annals_engine::session::run::announce;
use annals_engine::store::{Filter, Followed, Item, NamePattern, Read, View};

use crate::desk::Desk;

/// So soon it is noticed that whoever waits has gone.
const NOTICES: Duration = Duration::from_millis(250);

/// The ends of runs, as far as they come in time and somebody is there to hear of them; of a run that does not exist there
/// is none.
///
/// # Errors
/// Whatever reading meets.
pub(crate) fn ends(
    desk: &Desk<'_>,
    run_ids: &[&str],
    within: Duration,
) -> Result<BTreeMap<String, RunFinished>> {
    let store = desk.engine.store();
    let gone = || desk.gone.is_some_and(|gone: &AtomicBool| gone.load(Ordering::SeqCst));
    let until = Instant::now().checked_add(within);
    // Where to follow from is taken before looking, so that no end comes between the two.
    let after = store.end(View::Durable)?;
    let mut ends = BTreeMap::new();
    let mut open = Vec::new();
    for run_id in run_ids.iter().collect::<BTreeSet<_>>() {
        let told = announce::told(store, run_id)?;
        match told.finished {
            Some(end) => drop(ends.insert((*run_id).to_owned(), end)),
            None if told.requested.is_some() => open.push(run_stream(run_id)?),
            None => {}
        }
    }
    if open.is_empty() || within.is_zero() {
        return Ok(ends);
    }
    let streams = open.iter().map(|stream| NamePattern::Exact(stream.to_string())).collect();
    let types = vec![NamePattern::Exact("run.finished".to_owned())];
    let filter = Filter { streams, types };
    let mut left = open.len();
    let mut follower = store.follow(Read::after(after).filter(filter))?;
    while left > 0 && !gone() {
        let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
        if rest.is_some_and(|rest| rest.is_zero()) {
            break;
        }
        let rest = if desk.gone.is_some() {
            rest.map(|rest| rest.min(NOTICES)).or(Some(NOTICES))
        } else {
            rest
        };
        let Followed::Item(Item::Record(record)) = follower.next(rest)? else { continue };
        if let Ok(Event::RunFinished(end)) = Event::of(&record)
            && !ends.contains_key(&end.run_id)
        {
            ends.insert(end.run_id.clone(), end);
            left -= 1;
        }
    }
    Ok(ends)
}
