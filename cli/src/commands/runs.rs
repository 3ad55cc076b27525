//! `runs`: what agents were asked to do, who does it, and how it ended.

pub(crate) mod kill;
mod list;
mod show;
mod wait;

use annals_engine::clock::Timestamp;
use annals_engine::projection::{Folded, Losses, Projection};
use annals_engine::session::index::Sessions;
use annals_engine::session::runs::{Run, Runs};
use annals_engine::store::{EventStore, Filter, NamePattern, Read};
use annals_tools::runs::sees_run;
use annals_tools::{Caller, View};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::{count, one_line};
use crate::output::{Output, say};

/// List runs, show one, wait for some or end them
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(list::Args),
    Show(show::Args),
    Wait(wait::Args),
    Kill(kill::Args),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::List(args) => list::run(args, context),
        Verb::Show(args) => show::run(args, context),
        Verb::Wait(args) => wait::run(args, context),
        Verb::Kill(args) => kill::run(args, context),
    }
}

/// A run as it is told: with how long it took, or takes by now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(flatten)]
    run: &'a Run,
    open: bool,
    age_ms: u64,
}

impl<'a> Told<'a> {
    fn of(run: &'a Run, now: Timestamp) -> Self {
        let age_ms = u64::try_from(run.age(now).as_millis()).unwrap_or(u64::MAX);
        Self { run, open: run.state.is_open(), age_ms }
    }
}

/// Folds the events of these families from nothing.
pub(crate) fn read<P: Projection>(
    store: &dyn EventStore,
    families: &[&str],
) -> Result<(Folded<P>, Losses), Failure> {
    let types = families.iter().map(|name| NamePattern::Prefix((*name).to_owned())).collect();
    let read = Read::default().filter(Filter { types, ..Filter::default() });
    Ok(Folded::until(<(P, Losses)>::default(), store, read, None)?.split())
}

/// Says that runs may lack something, if they may.
fn warn(losses: &Losses, out: &mut Output) -> Result<(), Failure> {
    if losses.ranges() > 0 && !out.is_json() {
        out.flush()?;
        let (gaps, missing) = (count(losses.ranges(), "gap"), count(losses.events(), "event"));
        say(&format!("{gaps} in the log, {missing} missing: `annals verify` says more"));
    }
    Ok(())
}

/// The shortest beginning that is looked up, in characters.
const PREFIX_LEAST: usize = 4;

/// How many of several matches are named.
const NAMED_MAX: usize = 10;

/// The run of an id, or of the beginning of one, among those that somebody sees.
fn find<'a>(runs: &'a Runs, id: &'a str, sees: &dyn Fn(&Run) -> bool) -> Result<&'a Run, Failure> {
    if let Some(run) = runs.get(id).filter(|run| sees(run)) {
        return Ok(run);
    }
    let fit: Vec<&Run> = match id.chars().count() >= PREFIX_LEAST {
        true => runs.beginning(id).filter(|run| sees(run)).take(NAMED_MAX + 1).collect(),
        false => Vec::new(),
    };
    match fit.as_slice() {
        [] => Err(Failure::not_found(format!("there is no run {id:?}"))
            .hint("`annals runs list` lists them")),
        [run] => Ok(run),
        several => {
            let ids: Vec<String> =
                several.iter().take(NAMED_MAX).map(|run| one_line(&run.run_id)).collect();
            let more = if several.len() > NAMED_MAX { ", and more" } else { "" };
            let message = format!("{id:?} is ambiguous: it fits {}{more}", ids.join(", "));
            Err(Failure::new(Exit::Usage, "ambiguous", message).hint("give more of the id"))
        }
    }
}

/// Whether a caller sees a run.
fn sees(caller: &Caller, sessions: &Sessions, run: &Run) -> bool {
    sees_run(caller, sessions, run.session_key.as_deref(), run.requester_key.as_deref())
}

/// The whole ids of runs that a caller names.
fn ids_of(names: &[String], caller: &Caller, view: &View<'_>) -> Result<Vec<String>, Failure> {
    let (runs, _) = read::<Runs>(view.store, &["run."])?;
    let seen = |run: &Run| sees(caller, view.sessions.state(), run);
    let found = names.iter().map(|name| Ok(find(runs.state(), name, &seen)?.run_id.clone()));
    found.collect()
}

/// `7s`, `2m 5s`, `3h 20m`, `4d 2h`.
pub(crate) fn lasting(millis: u64) -> String {
    let seconds = millis / 1_000;
    let two = |large: u64, unit: &str, small: u64, below: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit} {small}{below}"),
    };
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => two(seconds / 60, "m", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two units at the most, and none that is zero.
    #[test]
    fn durations() {
        let check = |seconds: u64, expect: &str| assert_eq!(lasting(seconds * 1_000), expect);
        check(0, "0s");
        check(59, "59s");
        check(60, "1m");
        check(125, "2m 5s");
        check(12_059, "3h 20m");
        check(86_400 * 4 + 7_200, "4d 2h");
    }
}
