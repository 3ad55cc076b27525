//! `tools`: the session tools of agents, from a shell.

use annals_engine::id::StreamName;
use annals_engine::session::key::{AgentId, SessionKey};
use annals_tools::Caller;
use annals_tools::registry::{TOOLS, Tool};
use annals_tools::visibility::Visibility;
use serde_json::{Value, json};

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::Format;
use crate::output::table::{Cell, Column};
use crate::settings;
use crate::store::{self, Looked};

/// Call the session tools of agents
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    List(List),
    Call(Call),
}

/// List the tools
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In JSON each tool comes with the schema of its arguments.

Examples:
  annals tools list
  annals tools list --json | jq '.tools[].inputSchema'")]
pub(crate) struct List {}

/// Call a tool, and print its answer as JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With --as the call comes from that session: it sees what tools.sessions.visibility lets it see, gets \
answers of the size that agents get, and leaves access.denied when it names what it does not see.

Examples:
  annals tools call sessions_list '{\"limit\": 3}'
  annals tools call sessions_history '{\"sessionKey\": \"current\"}' --as agent:main:main")]
pub(crate) struct Call {
    /// The tool's name
    #[arg(value_hint = clap::ValueHint::Other)]
    name: String,
    /// Its arguments, a JSON object
    #[arg(value_name = "JSON", default_value = "{}", value_hint = clap::ValueHint::Other)]
    args: String,
    /// The session that calls
    #[arg(long = "as", value_name = "KEY", value_hint = clap::ValueHint::Other)]
    session: Option<String>,
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    match verb {
        Verb::List(_) => list(context),
        Verb::Call(args) => call(args, context),
    }
}

fn list(context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("tools list", &[Format::Table, Format::Json])?;
    if out.format == Format::Json {
        let one = |tool: &Tool| json!({ "name": tool.name, "description": tool.about, "inputSchema": tool.schema() });
        let tools: Vec<Value> = TOOLS.iter().map(one).collect();
        out.object(&json!({ "ok": true, "tools": tools }))?;
        return Ok(Exit::Ok);
    }
    let columns = [Column::fixed("TOOL"), Column::shrinking("WHAT IT DOES", 20)];
    let row = |tool: &Tool| -> Vec<Cell> { vec![tool.name.into(), tool.about.into()] };
    let rows: Vec<Vec<Cell>> = TOOLS.iter().map(row).collect();
    out.table(&columns, &rows)?;
    Ok(Exit::Ok)
}

fn call(args: &Call, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("tools call", &[Format::Table, Format::Json])?;
    let tool = Tool::of(&args.name)?;
    let wanted: Value = serde_json::from_str(&args.args).map_err(|error| {
        Failure::usage(format!("the arguments are not JSON: {error}"))
            .hint("write an object, such as '{\"limit\": 3}'")
    })?;
    // A refusal is recorded, and work asked for, where the store takes appends.
    let appends = args.session.is_some() || tool.asks_for_work();
    let engine = match appends {
        true => store::open_read_only(&context.global)
            .and_then(|read_only| store::open(&context.global).or(Ok(read_only)))?,
        false => store::open_read_only(&context.global)?,
    };
    let office = match appends {
        true => Some(Office::of(&engine, &context.global, Workers::OnCall)?),
        false => None,
    };
    let looked = Looked::at(engine, context.out.now)?;
    let desk = office.as_ref().map(Office::desk);
    let view = match &desk {
        Some(desk) => looked.view_with(desk),
        None => looked.view(),
    };
    let operator = store::operator()?;
    let caller = match &args.session {
        None => operator,
        Some(name) => bound(&operator, &view, name)?,
    };
    let answer = tool.call(&caller, &view, wanted)?;
    context.out.object(&answer)?;
    Ok(Exit::Ok)
}

/// The caller in a session.
fn bound(operator: &Caller, view: &annals_tools::View<'_>, name: &str) -> Result<Caller, Failure> {
    let sessions = view.sessions.state();
    let key: StreamName = operator.find(sessions, name)?.key;
    let of_row = sessions.row(&key).and_then(|row| AgentId::parse(&row.agent_id).ok());
    let of_key = || SessionKey::of_stream(&key).and_then(|key| key.agent());
    let agent = of_row.or_else(of_key).unwrap_or_else(|| operator.agent.clone());
    let bound = Caller::session(agent, key, Visibility::of(settings::get()?));
    Ok(Caller { main: operator.main, ..bound })
}
