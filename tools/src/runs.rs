//! `runs_wait` and `runs_cancel`: what becomes of runs that a caller has asked for.

use std::time::Duration;

use annals_engine::id::StreamName;
use annals_engine::session::event::RunStatus;
use annals_engine::session::index::Sessions;
use annals_engine::session::run::announce::{self, Told};
use annals_engine::session::run::{Killed, kill};
use annals_engine::session::silent::{Lane, Silence};
use annals_engine::{Error, ErrorKind, Result};

use crate::caller::{Caller, Seat};
use crate::desk::Desk;
use crate::run::worker::before_the_end;
use crate::view::View;
use crate::waiting::{ends, state_of};
use crate::wire::runs::{CancelArgs, CancelReply, WaitArgs, WaitReply, WaitedRun};

/// The most runs of one call.
pub const RUNS_MAX: usize = 32;

/// The longest wait of a session, in seconds.
const WAIT_MAX: u64 = 60;
const WAIT_SECONDS: u64 = 30;

/// Waits until runs have ended, as long as the caller wants. A run that he does not see is not found.
///
/// # Errors
/// `InvalidInput` for none, or for too many; whatever reading meets.
pub fn runs_wait(
    caller: &Caller,
    view: &View<'_>,
    desk: &Desk<'_>,
    args: &WaitArgs,
) -> Result<WaitReply> {
    if args.run_ids.is_empty() || args.run_ids.len() > RUNS_MAX {
        return Err(Error::invalid(format!("{} runs; it is 1 to {RUNS_MAX}", args.run_ids.len()))
            .field("runIds"));
    }
    let store = desk.engine.store();
    let sessions = view.sessions.state();
    let mut seen = Vec::new();
    for run_id in &args.run_ids {
        if sees(caller, sessions, &announce::told(store, run_id)?) {
            seen.push(run_id.as_str());
        }
    }
    let most = if caller.seat == Seat::Operator { u64::MAX } else { WAIT_MAX };
    let within = Duration::from_secs(args.timeout_seconds.unwrap_or(WAIT_SECONDS).min(most));
    ends(desk, &seen, within)?;
    let work = desk.engine.work()?;
    let mut runs = Vec::new();
    for run_id in &args.run_ids {
        let told = announce::told(store, run_id)?;
        if !seen.contains(&run_id.as_str()) {
            runs.push(WaitedRun::not_found(run_id));
            continue;
        }
        let mut run = waited(desk, run_id, &told)?;
        if told.finished.is_none() {
            run.status = work.state().run(run_id).map_or("requested", |run| state_of(run));
        }
        runs.push(run);
    }
    let all_ended =
        runs.iter().all(|run| !matches!(run.status, "requested" | "claimed" | "running"));
    Ok(WaitReply { runs, all_ended })
}

fn waited(desk: &Desk<'_>, run_id: &str, told: &Told) -> Result<WaitedRun> {
    let session_key = told.requested.as_ref().map(|requested| requested.session_key.clone());
    let mut run = WaitedRun { session_key, ..WaitedRun::not_found(run_id) };
    let Some(end) = &told.finished else { return Ok(run) };
    run.status = end.status.as_str();
    run.reason.clone_from(&end.reason);
    run.runtime_ms = Some(end.runtime_ms);
    if end.status == RunStatus::Ok
        && let Some(key) = &run.session_key
    {
        let text = announce::text_at(desk.engine.store(), key, end.reply_seq)?;
        let silence = Silence::of(&text, &desk.setup.rules.silent, Lane::Foreground);
        run.reply = Some(silence.outbound().to_owned());
    }
    Ok(run)
}

impl WaitedRun {
    fn not_found(run_id: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            session_key: None,
            status: "not_found",
            reason: None,
            reply: None,
            runtime_ms: None,
        }
    }
}

/// Whether a caller has asked for a run, or sees the session that it works on.
fn sees(caller: &Caller, sessions: &Sessions, told: &Told) -> bool {
    told.requested.as_ref().is_some_and(|requested| {
        let requester = requested.requester_key.as_deref();
        sees_run(caller, sessions, Some(&requested.session_key), requester)
    })
}

/// Whether a caller has asked for a run, or sees the session that it works on.
#[must_use]
pub fn sees_run(
    caller: &Caller,
    sessions: &Sessions,
    session: Option<&str>,
    requester: Option<&str>,
) -> bool {
    let Seat::Session { key, .. } = &caller.seat else { return true };
    let row = || sessions.row(&StreamName::new(session?).ok()?);
    requester == Some(key.as_str()) || row().is_some_and(|row| caller.sees(sessions, row))
}

/// Asks for the end of a run that the caller has asked for.
///
/// # Errors
/// What [`cancel`] says.
pub fn runs_cancel(caller: &Caller, desk: &Desk<'_>, args: &CancelArgs) -> Result<CancelReply> {
    cancel(caller, desk, &args.run_id, "cancelled")
}

/// The same, with a reason that is recorded.
///
/// # Errors
/// `NotFound` for a run that is not there or not the caller's; what the store says.
pub fn cancel(caller: &Caller, desk: &Desk<'_>, run_id: &str, reason: &str) -> Result<CancelReply> {
    let told = announce::told(desk.engine.store(), run_id)?;
    let own = match (&caller.seat, &told.requested) {
        (_, None) => false,
        (Seat::Operator, Some(_)) => true,
        (Seat::Session { key, .. }, Some(requested)) => {
            requested.requester_key.as_deref() == Some(key.as_str())
        }
    };
    if !own {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no run {run_id:?} of yours"),
        )
        .field("runId")
        .hint("a session ends runs that it has spawned or sent itself"));
    }
    let by = match &caller.seat {
        Seat::Operator => "operator",
        Seat::Session { key, .. } => key.as_str(),
    };
    let status = end_run(desk, run_id, (by, reason))?;
    Ok(CancelReply { run_id: run_id.to_owned(), status })
}

/// Asks for the end of a run; what became of that, in a word.
///
/// # Errors
/// What the store says.
pub fn end_run(desk: &Desk<'_>, run_id: &str, wish: (&str, &str)) -> Result<&'static str> {
    let engine = desk.engine;
    let work = engine.work()?;
    let Some(run) = work.state().run(run_id) else { return Ok("ended") };
    let (earlier, keys) = before_the_end(engine, run)?;
    let keys: Vec<_> = keys.iter().collect();
    let rules = &desk.setup.rules;
    let (killed, _) =
        engine.decide(&keys, |stage, batch| kill(stage, batch, rules, run_id, wish, &earlier))?;
    // Its worker ends it, or if that is gone, the next one; what follows from its end is to be done as well.
    drop(desk.called(run_id));
    Ok(match killed {
        Killed::Ended => "killed",
        Killed::Asked | Killed::AskedBefore => "kill_requested",
        Killed::NotOpen => "ended",
    })
}
