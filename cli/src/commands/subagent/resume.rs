//! `subagent resume`: what there is of a child, or a message to it.

use annals_engine::session::history::Span;
use annals_engine::session::run::announce;
use annals_engine::session::runs::Run;
use annals_tools::history::sessions_history;
use annals_tools::registry::Tool;
use annals_tools::wire::runs::SendArgs;
use annals_tools::wire::{HistoryArgs, HistoryReply};
use serde::Serialize;

use super::child::{Child, all_runs, find, last_run, seen};
use crate::commands::runs::lasting;
use crate::commands::sessions::send::{Ways, send, tell};
use crate::commands::{Context, sessions};
use crate::exit::{Exit, Failure};
use crate::office::Office;
use crate::output::text::{indented, many_lines, one_line};
use crate::output::{Format, Output};
use crate::shown::mask::MaskArgs;
use crate::store::{self, Looked};
use crate::{seat, typed};

/// Show a child with its result and its last turns, or say something to it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without TEXT nothing is changed. With it the child is sent a message from the chat of the command line, and its \
reply is printed, as with `annals sessions send`.

Examples:
  annals subagent resume 3fa9
  annals subagent resume 3fa9 'And the second chapter?' --timeout 120")]
pub(crate) struct Args {
    /// The child: its key, its id, or the beginning of either, of four characters or more
    #[arg(value_name = "ID", value_hint = clap::ValueHint::Other)]
    id: String,
    /// What is said to it; `-` reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    text: Option<String>,
    /// How many messages at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 12)]
    limit: usize,
    /// How long to wait for the reply; 0 to go on at once
    #[arg(long, value_name = "SECONDS", value_hint = clap::ValueHint::Other, default_value_t = 30)]
    timeout: u64,
    #[command(flatten)]
    ways: Ways,
    #[command(flatten)]
    mask: MaskArgs,
}

/// The answer as an object.
#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    child: &'a Child,
    run: Option<&'a Run>,
    /// What its last run answered.
    result: &'a str,
    #[serde(flatten)]
    history: HistoryReply,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("subagent resume", &[Format::Table, Format::Json])?;
    match &args.text {
        Some(text) => say(args, text, context),
        None => show(args, context),
    }
}

fn say(args: &Args, text: &str, context: &mut Context) -> Result<Exit, Failure> {
    args.mask.on(&mut context.out)?;
    let message = typed::text(text)?;
    let engine = store::open_there(&context.global)?;
    let office = Office::of(&engine, &context.global, args.ways.workers())?;
    let caller = seat::caller(&engine)?;
    let key = find(engine.sessions()?.state(), &caller, &args.id)?.key.to_string();
    let wanted = SendArgs {
        session_key: Some(key),
        message,
        timeout_seconds: Some(args.timeout),
        idempotency_key: args.ways.idempotency_key.clone(),
        ..SendArgs::default()
    };
    let reply = send(&wanted, None, &office, engine, context)?;
    tell(&reply, &mut context.out)
}

fn show(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    let engine = seat::open(&context.global)?;
    let caller = seat::caller(&engine)?;
    let looked = Looked::at(engine, out.now)?;
    let view = looked.view();
    let row = find(view.sessions.state(), &caller, &args.id)?;
    let runs = all_runs(view.store)?;
    let child = Child::of(row, &caller, &view, &runs)?;
    let run = last_run(&runs, &child.key);
    let reply = run.and_then(|run| run.end.as_ref()?.reply_seq);
    let result = announce::text_at(view.store, &child.key, reply)?;
    let result = seen(&result, &child.key, &caller, &view);
    let wanted = HistoryArgs {
        session_key: child.key.clone(),
        limit: Some(if args.limit == 0 { usize::MAX } else { args.limit }),
        ..HistoryArgs::default()
    };
    let read = || sessions_history(&caller, &view, &wanted, Span::Part);
    let named = Some(args.id.clone());
    let history = Tool::of("sessions_history")?.guarded(&caller, &view, named, read)?;
    if out.format == Format::Json {
        out.object(&Answer { ok: true, child: &child, run, result: &result, history })?;
        return Ok(Exit::Ok);
    }
    record(&child, run, out)?;
    if !result.is_empty() {
        out.line("result")?;
        out.bytes(indented(&many_lines(&result)).as_bytes())?;
    }
    out.line("")?;
    sessions::history::print(history, out)?;
    Ok(Exit::Ok)
}

/// What is known of a child, field by field.
pub(super) fn record(child: &Child, run: Option<&Run>, out: &mut Output) -> Result<(), Failure> {
    let mut field = |name: &str, value: &str| out.line(&format!("{name:<10} {value}"));
    field("child", &one_line(&child.key))?;
    field("status", child.status)?;
    for (name, value) in
        [("label", &child.label), ("requester", &child.requester_key), ("run", &child.run_id)]
    {
        if let Some(value) = value {
            field(name, &one_line(value))?;
        }
    }
    field("age", &lasting(child.age_ms))?;
    if let Some(end) = run.and_then(|run| run.end.as_ref()) {
        let reason = end.reason.as_ref().map(|reason| format!(" ({})", one_line(reason)));
        let state = run.map_or("", |run| run.state.as_str());
        let after = lasting(end.runtime_ms);
        field("ended", &format!("{state}{} after {after}", reason.unwrap_or_default()))?;
        if let Some(detail) = &end.detail {
            field("detail", &one_line(detail))?;
        }
    }
    field("task", &one_line(&child.task))
}
