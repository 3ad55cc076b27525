//! `worker`: claims runs and has them made.

use annals_tools::run::Until;
use tokio::sync::watch;

use crate::commands::Context;
use crate::commands::watch::Watching;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::Format;
use crate::{settings, signal, store};

/// Work on the runs that were asked for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A worker claims runs, starts the commands of their agents, records what came of them, and delivers \
replies and announces, and runs the watch rules (`annals watch --help`). Verbs that ask for a run start one with --until-idle where none is. Several \
may share a store; none runs a run that another has. The configuration is read once: a change of it \
is told, and holds from the next start on.

The first SIGTERM or SIGINT ends its runs as interrupted, the second ends it at once.

Examples:
  annals worker                 work until it is stopped
  annals worker --until-idle    work until nothing is left to do")]
pub(crate) struct Args {
    /// Stop when nothing is left to do
    #[arg(long)]
    until_idle: bool,
    /// Do not run the watch rules
    #[arg(long)]
    no_watch: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("worker", &[Format::Table, Format::Json])?;
    let engine = store::open(&context.global)?;
    let office = Office::of(&engine, &context.global, Workers::Never)?;
    let (stop, stopped) = watch::channel(false);
    signal::instead(move || {
        stop.send_replace(true);
    });
    if !args.until_idle {
        settings::tell_when_changed();
    }
    let until = if args.until_idle { Until::Idle } else { Until::Stopped };
    // One that goes home soon is no good at waiting for files to change.
    let watchers = match args.no_watch || args.until_idle {
        true => None,
        false => Some(Watching::start(&engine, &context.global)?),
    };
    let worked = office.work(until, stopped);
    drop(watchers);
    worked?;
    Ok(signal::came().map_or(Exit::Ok, Exit::Signal))
}
