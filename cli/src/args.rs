//! The command line: what can be typed and what it means, turned into values before any work begins. The arguments of
//! a verb stand beside the verb, in `commands`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands;
use crate::output::color::ColorWhen;
use crate::output::{Format, terminal_width};

/// A durable, append-only event log under AI agents: watch it, query it, check it, feed it.
#[derive(Debug, Parser)]
#[command(
    name = "annals",
    version,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What every verb takes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The store's folder [env: ANNALS_HOME; default: annals in the XDG data folder]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, global = true)]
    pub(crate) store: Option<PathBuf>,
    /// The file of settings [env: ANNALS_CONFIG; default: annals/annals.json5 in the XDG config folder]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, global = true)]
    pub(crate) config: Option<PathBuf>,
    /// The form of the output
    #[arg(short, long, value_name = "FORM", value_enum, global = true)]
    pub(crate) output: Option<Format>,
    /// Short for `-o json`: one object, or one a line for a stream; failures too
    #[arg(long, global = true, conflicts_with = "output")]
    pub(crate) json: bool,
    /// When to use colour; `auto` minds NO_COLOR
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, global = true)]
    pub(crate) color: ColorWhen,
    /// Answer yes to every question
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// Print help
    #[arg(short, long, action = clap::ArgAction::HelpShort, global = true)]
    help: Option<bool>,
    /// Print the version
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

impl Global {
    /// The form of the output that was asked for.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.output.unwrap_or_default() }
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    #[command(subcommand)]
    Agents(commands::agents::Verb),
    Ask(commands::ask::Args),
    Quickstart(commands::quickstart::Args),
    Tail(commands::tail::Args),
    Log(commands::log::Args),
    Timeline(commands::timeline::Args),
    Graph(commands::graph::Args),
    #[command(subcommand)]
    Session(commands::session::Verb),
    #[command(subcommand)]
    Sessions(commands::sessions::Verb),
    Import(commands::import::Args),
    Export(commands::export::Args),
    Verify(commands::verify::Args),
    Doctor(commands::doctor::Args),
    Repair(commands::repair::Args),
    Stats(commands::stats::Args),
    Usage(commands::usage::Args),
    Replay(commands::replay::Args),
    #[command(subcommand)]
    Runs(commands::runs::Verb),
    #[command(subcommand)]
    Subagent(commands::subagent::Verb),
    #[command(subcommand)]
    Tools(commands::tools::Verb),
    Worker(commands::worker::Args),
    Serve(commands::serve::Args),
    Mcp(commands::mcp::Args),
    Watch(commands::watch::Args),
    #[command(subcommand)]
    Heartbeat(commands::heartbeat::Verb),
    #[command(subcommand)]
    Config(commands::config::Verb),
    Completions(commands::completions::Args),
}

/// The verbs as the help groups them. A test holds it against [`Verb`].
const GROUPS: &[(&str, &[&str])] = &[
    ("First steps", &["quickstart"]),
    ("Watch and ask", &["tail", "log", "timeline", "graph", "stats", "usage", "replay"]),
    ("Sessions", &["sessions", "session", "tools", "heartbeat"]),
    ("Agents at work", &["ask", "subagent", "agents", "runs", "worker", "serve", "mcp", "watch"]),
    ("In and out", &["import", "export"]),
    ("Care", &["doctor", "verify", "repair", "config"]),
    ("Shell", &["completions"]),
];

const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n{before-help}{options}{after-help}";

const AFTER: &str = "\
Examples:
  annals quickstart                         make a store and fill it
  annals tail -f                            watch every session as it speaks
  annals tail -f -m                         only what sessions say to each other
  annals log --type spawn,error --since 2h  what was spawned and what failed
  annals log --session 'agent:*:subagent:*' --json | jq .next
  annals verify && annals stats

Exit codes:
  0 done   1 failed   2 usage   3 not found   4 timeout   5 denied
  6 damage found   7 busy or conflict   130 interrupted   143 terminated

`annals VERB --help` or `annals help VERB` says more about a verb.";

/// The command line as clap knows it, with its help put together.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command().term_width(width());
    let verbs = verbs_text(&command);
    command.help_template(TEMPLATE).before_help(verbs).after_help(AFTER)
}

/// How wide help is where nobody says how wide the screen is, and at most.
const WIDTH: usize = 80;
const WIDTH_MOST: usize = 100;

fn width() -> usize {
    let stdout = std::io::stdout();
    if stdout.is_terminal() { terminal_width(&stdout).min(WIDTH_MOST) } else { WIDTH }
}

fn verbs_text(command: &clap::Command) -> String {
    let mut text = String::new();
    for (group, verbs) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for verb in *verbs {
            let about = command.find_subcommand(verb).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {verb:<12} {about}\n"));
        }
    }
    text
}

/// Reads the arguments, the program's name first.
///
/// # Errors
/// What clap says, help and version included.
pub(crate) fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches_from(spelled_out(args))?;
    Cli::from_arg_matches(&matches)
}

/// `annals help VERB` is `annals VERB --help`.
fn spelled_out(args: &[OsString]) -> Vec<OsString> {
    let mut args = args.to_vec();
    if args.get(1).is_some_and(|arg| arg == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args
}

/// Whether the arguments ask for JSON, for a failure to be told in it although they do not parse.
pub(crate) fn ask_for_json(args: &[OsString]) -> bool {
    let texts = || args.iter().filter_map(|arg| arg.to_str()).take_while(|arg| *arg != "--");
    let after_o = texts()
        .zip(texts().skip(1))
        .any(|(flag, form)| matches!(flag, "-o" | "--output") && matches!(form, "json" | "jsonl"));
    let one = |arg: &str| {
        matches!(
            arg,
            "--json" | "-ojson" | "-ojsonl" | "-o=json" | "--output=json" | "--output=jsonl"
        )
    };
    after_o || texts().any(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap's own checks of the whole command line.
    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// Every verb stands in one group of the help and nothing else does.
    #[test]
    fn every_verb_is_grouped() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let mut verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    /// JSON is noticed however it is spelled, and not behind `--`.
    #[test]
    fn json_is_noticed() {
        let ask =
            |args: &[&str]| ask_for_json(&args.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(ask(&["annals", "log", "--json", "--nonsense"]));
        assert!(ask(&["annals", "-o", "jsonl", "log"]));
        assert!(ask(&["annals", "--output=json"]));
        assert!(!ask(&["annals", "-o", "csv", "log"]));
        assert!(!ask(&["annals", "session", "push", "--", "--json"]));
    }
}
