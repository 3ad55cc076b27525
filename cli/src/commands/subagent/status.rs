//! `subagent status`: how one child is, or how many there are and may be.

use annals_engine::config::Config;
use annals_engine::session::event::RunKind;
use annals_tools::registry::Tool;
use serde::Serialize;

use super::child::{Child, all_runs, children, find, last_run};
use super::resume::record;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::output::text::grouped;
use crate::store::Looked;
use crate::{seat, settings};

/// Show how a child is, or how many there are and may be
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annals subagent status
  annals subagent status 3fa9 --json | jq -r .child.status")]
pub(crate) struct Args {
    /// The child: its key, its id, or the beginning of either, of four characters or more
    #[arg(value_name = "ID", value_hint = clap::ValueHint::Other)]
    id: Option<String>,
}

/// All of them, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    enabled: bool,
    /// At work, or waiting for a worker.
    running: usize,
    waiting: usize,
    max: u64,
    timeout_seconds: u64,
    max_chars: u64,
    children: usize,
    archived: usize,
}

/// One, as an object.
#[derive(Serialize)]
struct One<'a> {
    ok: bool,
    child: &'a Child,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("subagent status", &[Format::Table, Format::Json])?;
    let engine = seat::open(&context.global)?;
    let caller = seat::caller(&engine)?;
    let work = engine.work()?;
    let looked = Looked::at(engine, out.now)?;
    let view = looked.view();
    let sessions = view.sessions.state();
    Tool::of("session_status")?.guarded(&caller, &view, args.id.clone(), || Ok(()))?;
    if let Some(id) = &args.id {
        let row = find(sessions, &caller, id)?;
        let runs = all_runs(view.store)?;
        let child = Child::of(row, &caller, &view, &runs)?;
        match out.format {
            Format::Json => out.object(&One { ok: true, child: &child })?,
            _ => record(&child, last_run(&runs, &child.key), out)?,
        }
        return Ok(Exit::Ok);
    }
    let rows = children(sessions, &caller);
    let seen = |key: &str| rows.iter().any(|row| row.key.as_str() == key);
    let at_work = work.state().runs();
    let at_work: Vec<_> = at_work
        .into_iter()
        .filter(|run| run.kind == RunKind::Spawn && seen(&run.session_key))
        .collect();
    let running = at_work.iter().filter(|run| run.is_claimed()).count();
    let archived = rows.iter().filter(|row| sessions.is_archived(&row.key)).count();
    let answer = Answer {
        children: rows.len(),
        running,
        waiting: at_work.len() - running,
        archived,
        ..Answer::of(settings::get()?)
    };
    if out.format == Format::Json {
        out.object(&answer)?;
        return Ok(Exit::Ok);
    }
    let n = |n: usize| grouped(u64::try_from(n).unwrap_or(u64::MAX));
    let off = if answer.enabled { "on" } else { "off: SUBAGENT_ENABLED" };
    let (running, waiting) = (n(answer.running), n(answer.waiting));
    let max = grouped(answer.max);
    out.line(&format!("spawning   {off}"))?;
    out.line(&format!("at work    {running} running, {waiting} waiting; at most {max}"))?;
    out.line(&format!("children   {}, {} archived", n(answer.children), n(answer.archived)))?;
    out.line(&format!("time limit {} s", grouped(answer.timeout_seconds)))?;
    out.line(&format!("task       {} characters at most", grouped(answer.max_chars)))?;
    Ok(Exit::Ok)
}

impl Answer {
    /// What the settings say.
    fn of(config: &Config) -> Self {
        let number = |path: &str, unset: u64| config.number(path).unwrap_or(unset);
        Self {
            ok: true,
            enabled: config.is_on("subagents.enabled"),
            running: 0,
            waiting: 0,
            max: number("subagents.max", 3),
            timeout_seconds: number("subagents.timeoutSeconds", 600),
            max_chars: number("subagents.maxChars", 4_000),
            children: 0,
            archived: 0,
        }
    }
}
