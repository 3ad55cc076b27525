//! The verbs, one file each: every one takes its arguments and the context, and answers with an exit code or a failure.

pub(crate) mod agents;
pub(crate) mod ask;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod graph;
pub(crate) mod heartbeat;
pub(crate) mod import;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod quickstart;
pub(crate) mod repair;
pub(crate) mod replay;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod stats;
pub(crate) mod subagent;
pub(crate) mod tail;
pub(crate) mod timeline;
pub(crate) mod tools;
pub(crate) mod usage;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod worker;

use std::ffi::OsString;

use annals_engine::clock::{Clock, SystemClock};
use clap::error::ErrorKind;

use crate::args::{self, Cli, Global, Verb};
use crate::exit::{Exit, Failure};
use crate::output::color::ColorWhen;
use crate::output::{Format, Output};
use crate::{seat, settings, signal};

/// What every verb works with.
pub(crate) struct Context {
    pub(crate) global: Global,
    pub(crate) out: Output,
}

/// Runs the program: the arguments, its own name first.
pub(crate) fn run(args: &[OsString]) -> Exit {
    let now = SystemClock.now();
    let cli = match args::parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            let format = if args::ask_for_json(args) { Format::Json } else { Format::Table };
            return refuse(&error, Output::stdout(format, ColorWhen::Auto, now));
        }
    };
    let out = Output::stdout(cli.global.format(), cli.global.color, now);
    // Without it the signals still end the program, only by the system's own means.
    drop(signal::listen());
    settings::take(&cli.global);
    let mut context = Context { global: cli.global.clone(), out };
    let result = dispatch(&cli, &mut context);
    context.out.finish(result)
}

fn dispatch(cli: &Cli, context: &mut Context) -> Result<Exit, Failure> {
    seat::admit(&cli.verb)?;
    match &cli.verb {
        Verb::Agents(verb) => agents::run(verb, context),
        Verb::Ask(args) => ask::run(args, context),
        Verb::Quickstart(args) => quickstart::run(args, context),
        Verb::Tail(args) => tail::run(args, context),
        Verb::Graph(args) => graph::run(args, context),
        Verb::Timeline(args) => timeline::run(args, context),
        Verb::Log(args) => log::run(args, context),
        Verb::Session(verb) => session::run(verb, context),
        Verb::Sessions(verb) => sessions::run(verb, context),
        Verb::Import(args) => import::run(args, context),
        Verb::Export(args) => export::run(args, context),
        Verb::Doctor(args) => doctor::run(args, context),
        Verb::Verify(args) => verify::run(args, context),
        Verb::Repair(args) => repair::run(args, context),
        Verb::Stats(args) => stats::run(args, context),
        Verb::Subagent(verb) => subagent::run(verb, context),
        Verb::Tools(verb) => tools::run(verb, context),
        Verb::Usage(args) => usage::run(args, context),
        Verb::Replay(args) => replay::run(args, context),
        Verb::Runs(verb) => runs::run(verb, context),
        Verb::Heartbeat(verb) => heartbeat::run(verb, context),
        Verb::Config(verb) => config::run(verb, context),
        Verb::Watch(args) => watch::run(args, context),
        Verb::Worker(args) => worker::run(args, context),
        Verb::Serve(args) => serve::run(args, context),
        Verb::Mcp(args) => mcp::run(args, context),
        Verb::Completions(args) => completions::run(args, context),
    }
}

/// Help and version go to standard output; anything else that does not parse is a usage failure.
fn refuse(error: &clap::Error, mut out: Output) -> Exit {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let printed = out.bytes(text.as_bytes()).map(|()| Exit::Ok);
        return out.finish(printed);
    }
    if out.is_json() {
        // What is missing, or what could have been, stands on lines of its own below the first.
        let said: Vec<&str> =
            text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let said = said.join(" ");
        let message = said.strip_prefix("error: ").unwrap_or(&said);
        let tips: Vec<&str> =
            text.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).collect();
        let hint = match tips.is_empty() {
            true => "`annals --help` lists the verbs".to_owned(),
            false => tips.join("; "),
        };
        let failure = Failure::usage(message).hint(hint);
        return out.finish(Err(failure));
    }
    crate::output::say(text.trim_end());
    Exit::Usage
}
