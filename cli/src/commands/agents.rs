//! `agents`: the commands that the configuration names as agents, and a try of one.

mod attempt;

use annals_engine::config::Config;
use annals_tools::run::AgentSpec;
use annals_tools::run::spec::EXAMPLE;
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::{Cell, Column};
use crate::output::text::one_line;
use crate::output::{Format, Output, say};
use crate::settings;

/// List the agents that are configured, and try one
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(List),
    Try(attempt::Args),
}

/// List the agents that are configured
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The agent with * is the one of sessions that name none. One without a command can be written to and does \
not run.

Examples:
  annals agents list
  annals agents list --json | jq -r '.agents[] | select(.configured) | .id'")]
pub(crate) struct List {}

/// An agent as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Agent<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    default: bool,
    configured: bool,
    #[serde(flatten)]
    runs: Option<Runs<'a>>,
}

/// How an agent with a command runs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Runs<'a> {
    command: String,
    args: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    resume_args: Option<&'a [String]>,
    cwd: String,
    input: &'static str,
    dialect: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    models: &'a [String],
    thinking_levels: &'a [String],
    sandbox: &'static str,
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::List(_) => list(&mut context.out),
        Verb::Try(args) => attempt::run(args, context),
    }
}

fn list(out: &mut Output) -> Result<Exit, Failure> {
    out.only("agents list", &[Format::Table, Format::Json, Format::Jsonl])?;
    let config = settings::get()?;
    let specs = AgentSpec::all(config)?;
    let default = config.default_agent();
    let default = default.as_ref().map(annals_engine::session::key::AgentId::as_str);
    let agents: Vec<Agent<'_>> = config
        .agents()
        .map(|(place, id)| {
            let spec = specs.iter().find(|spec| spec.id == id);
            Agent {
                id,
                name: config.text(&format!("{place}.name")),
                default: default == Some(id),
                configured: spec.is_some(),
                runs: spec.map(Runs::of),
            }
        })
        .collect();
    match out.format {
        Format::Json => out.object(&serde_json::json!({ "ok": true, "agents": agents }))?,
        Format::Jsonl => agents.iter().try_for_each(|agent| out.object(agent))?,
        _ if agents.is_empty() => say(&begin()),
        _ => table(&agents, out)?,
    }
    Ok(Exit::Ok)
}

const COLUMNS: [Column; 6] = [
    Column::fixed("AGENT"),
    Column::shrinking("COMMAND", 12),
    Column::fixed("DIALECT").rank(2),
    Column::fixed("INPUT").rank(4),
    Column::shrinking("MODEL", 8).rank(1),
    Column::shrinking("NAME", 8).rank(3),
];

fn table(agents: &[Agent<'_>], out: &mut Output) -> Result<(), Failure> {
    let row = |agent: &Agent<'_>| -> Vec<Cell> {
        let runs = agent.runs.as_ref();
        let command = runs.map_or("-".to_owned(), |runs| {
            let args = runs.args.iter().map(String::as_str);
            std::iter::once(runs.command.as_str()).chain(args).collect::<Vec<_>>().join(" ")
        });
        vec![
            format!("{}{}", agent.id, if agent.default { " *" } else { "" }).into(),
            one_line(&command).into(),
            runs.map_or("", |runs| runs.dialect).into(),
            runs.map_or("", |runs| runs.input).into(),
            one_line(runs.and_then(|runs| runs.model).unwrap_or_default()).into(),
            one_line(agent.name.unwrap_or_default()).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = agents.iter().map(row).collect();
    out.table(&COLUMNS, &rows)
}

impl<'a> Runs<'a> {
    fn of(spec: &'a AgentSpec) -> Self {
        Self {
            command: spec.command.display().to_string(),
            args: &spec.args,
            resume_args: spec.resume_args.as_deref(),
            cwd: spec.cwd.display().to_string(),
            input: spec.input.as_str(),
            dialect: spec.dialect.as_str(),
            model: spec.model.as_deref(),
            models: &spec.models,
            thinking_levels: &spec.thinking_levels,
            sandbox: spec.sandbox.as_str(),
        }
    }
}

/// How to get an agent.
pub(crate) fn begin() -> String {
    let (place, _) = settings::place();
    let place = place.map_or("the file of --config".to_owned(), |path| path.display().to_string());
    format!("no agent is configured; {place} could say:\n\n{EXAMPLE}")
}

/// The agent of an id.
///
/// # Errors
/// Not found for one that is not configured, with those that are.
fn known(config: &Config, id: &str) -> Result<AgentSpec, Failure> {
    if let Some(spec) = AgentSpec::of(config, id)? {
        return Ok(spec);
    }
    let id = one_line(id);
    let specs = AgentSpec::all(config)?;
    if config.agents().any(|(_, named)| named == id) {
        return Err(Failure::not_found(format!("the agent {id} has no command"))
            .hint(format!("say which program it is: {{ id: \"{id}\", run: {{ command: … }} }}")));
    }
    let failure = Failure::not_found(format!("there is no agent {id}"));
    if specs.is_empty() {
        return Err(failure.hint(begin()));
    }
    let ids: Vec<&str> = specs.iter().map(|spec| spec.id.as_str()).collect();
    Err(failure.hint(format!("agents are {}", ids.join(", "))))
}
