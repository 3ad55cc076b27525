//! `tools`: the session tools of agents, from a shell.

use annals_tools::caller::Toolset;
use annals_tools::registry::{TOOLS, Tool};
use serde_json::{Value, json};

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::Format;
use crate::output::table::{Cell, Column};
use crate::seat;
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
answers of the size that agents get, and leaves access.denied when it names what it does not see. Inside \
a run (ANNALS_TOKEN) the run's session calls, and --as is refused.

Examples:
  annals tools call sessions_list '{\"limit\": 3}'
  annals tools call sessions_history '{\"sessionKey\": \"current\"}' \\
    --as agent:main:main")]
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
    let tools = match seat::is_operators() {
        true => Toolset::All,
        false => seat::caller(&*seat::open(&context.global)?)?.tools,
    };
    let tools: Vec<&Tool> = TOOLS.iter().filter(|tool| tools.has(tool.name)).collect();
    if out.format == Format::Json {
        let one = |tool: &Tool| json!({ "name": tool.name, "description": tool.about, "inputSchema": tool.schema() });
        let tools: Vec<Value> = tools.into_iter().map(one).collect();
        out.object(&json!({ "ok": true, "tools": tools }))?;
        return Ok(Exit::Ok);
    }
    let columns = [Column::fixed("TOOL"), Column::shrinking("WHAT IT DOES", 20)];
    let row = |tool: &Tool| -> Vec<Cell> { vec![tool.name.into(), tool.about.into()] };
    let rows: Vec<Vec<Cell>> = tools.into_iter().map(row).collect();
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
        true => store::open_if_it_may(&context.global)?,
        false => seat::open(&context.global)?,
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
    let caller = seat::caller_as(looked.engine(), &view, args.session.as_deref())?;
    let answer = tool.call(&caller, &view, wanted)?;
    context.out.object(&answer)?;
    Ok(Exit::Ok)
}
