//! `runs`: what agents were asked to do, who does it, and how it ended.

mod list;
mod show;

use annals_engine::clock::Timestamp;
use annals_engine::projection::{Folded, Losses, Projection};
use annals_engine::session::runs::Run;
use annals_engine::store::{EventStore, Filter, NamePattern, Read};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::count;
use crate::output::{Output, say};

/// List runs and show one: who has it, since when, and how it ended
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(list::Args),
    Show(show::Args),
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::List(args) => list::run(args, context),
        Verb::Show(args) => show::run(args, context),
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
fn read<P: Projection>(
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

/// `7s`, `2m 5s`, `3h 20m`, `4d 2h`.
fn lasting(millis: u64) -> String {
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
