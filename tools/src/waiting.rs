//! Waiting for the ends of runs, by following the log: who asks again after a break finds what has happened meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use annals_engine::Result;
use annals_engine::id::StreamName;
use annals_engine::session::event::{Event, OutputStream, RunFinished, run_stream};
use annals_engine::session::run::announce;
use annals_engine::session::work::Job;
use annals_engine::store::{Filter, Followed, Item, NamePattern, Read, View};

use crate::desk::Desk;
use crate::wire::runs::AtWork;

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

/// The most characters of a sign of work.
const SIGN_CHARS: usize = 300;

/// How far a run on a session is that has not ended; `None` when it has.
///
/// # Errors
/// Whatever reading meets.
pub(crate) fn at_work(desk: &Desk<'_>, on: &StreamName, run_id: &str) -> Result<Option<AtWork>> {
    let work = desk.engine.work()?;
    let work = work.state();
    let Some(run) = work.run(run_id) else { return Ok(None) };
    // Runs of one session come one after the other.
    let before =
        || work.runs_on(on.as_str()).filter(|run| run.is_claimed()).min_by_key(|run| run.seq);
    let waits_for = if run.is_claimed() { None } else { before().map(|run| run.run_id.clone()) };
    let last_sign = last_sign(desk, waits_for.as_deref().unwrap_or(run_id))?;
    Ok(Some(AtWork { state: state_of(run), waits_for, last_sign }))
}

/// The word for how far a run is that has not ended.
pub(crate) fn state_of(run: &Job) -> &'static str {
    match (run.started_at, run.is_claimed()) {
        (Some(_), _) => "running",
        (None, true) => "claimed",
        (None, false) => "requested",
    }
}

/// What a run told last of itself, beside what it answers.
fn last_sign(desk: &Desk<'_>, run_id: &str) -> Result<Option<String>> {
    let mut last = None;
    for item in desk.engine.store().read_stream_of(&run_stream(run_id)?, &["run.output"])? {
        let Item::Record(record) = item? else { continue };
        if let Ok(Event::RunOutput(output)) = Event::of(&record)
            && output.stream != OutputStream::Stdout
            && let Some(line) = last_line(&output.text)
        {
            last = Some(line.to_owned());
        }
    }
    Ok(last)
}

/// The last line of a text that says something, its beginning.
pub(crate) fn last_line(text: &str) -> Option<&str> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let end = line.char_indices().nth(SIGN_CHARS).map_or(line.len(), |(end, _)| end);
    line.get(..end)
}
