//! `sessions list`: one row a session, the last changed first.

use annals_engine::clock::Timestamp;
use annals_engine::session::content;
use annals_engine::session::event::SessionKind;
use annals_engine::session::index::{Shape, Status};
use annals_tools::list::list;
use annals_tools::registry::Tool;
use annals_tools::wire::{ArchivedArg, ListArgs, ListReply, Listed};
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::{Cell, Column, cut};
use crate::output::text::{count, grouped, one_line};
use crate::output::{Format, Output, say};
use crate::seat;
use crate::store::Looked;

/// List sessions, the last changed first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In JSON, times are milliseconds since 1970, as the session tools of agents give them.

Examples:
  annals sessions list
  annals sessions list --kind main,cron --active 60
  annals sessions list --messages 1 --json | jq -r '.sessions[].key'")]
pub(crate) struct Args {
    /// Kinds of sessions
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    kind: Vec<String>,
    /// Only sessions in which something happened in the last so many minutes
    #[arg(long, value_name = "MINUTES", value_hint = clap::ValueHint::Other)]
    active: Option<u64>,
    /// How many of the last messages to show with each
    #[arg(long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 0)]
    messages: usize,
    /// Only archived sessions
    #[arg(long, conflicts_with = "all")]
    archived: bool,
    /// Archived sessions too
    #[arg(long)]
    all: bool,
    /// How many rows at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 50)]
    limit: usize,
    /// Go on where an earlier answer ended
    #[arg(long, value_name = "CURSOR", value_hint = clap::ValueHint::Other)]
    cursor: Option<String>,
}

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(SessionKind::ALL.iter().map(|kind| kind.as_str()))
}

/// The reply as an object.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    #[serde(flatten)]
    reply: ListReply,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    run_for(args, Shape::Any, context)
}

/// The same for keys of one shape.
pub(crate) fn run_for(args: &Args, shape: Shape, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("sessions list", &[Format::Table, Format::Json, Format::Jsonl, Format::Csv])?;
    let engine = seat::open(&context.global)?;
    let caller = seat::caller(&engine)?;
    let looked = Looked::at(engine, out.now)?;
    let wanted = ListArgs {
        kinds: args.kind.clone(),
        limit: Some(if args.limit == 0 { usize::MAX } else { args.limit }),
        active_minutes: args.active,
        message_limit: Some(args.messages),
        archived: match (args.archived, args.all) {
            (true, _) => ArchivedArg::Only,
            (_, true) => ArchivedArg::All,
            _ => ArchivedArg::Without,
        },
        cursor: args.cursor.clone(),
    };
    let view = looked.view();
    let tool = Tool::of("sessions_list")?;
    let reply = tool.guarded(&caller, &view, None, || list(&caller, &view, &wanted, shape))?;
    match out.format {
        Format::Json => out.object(&Answer { ok: true, reply })?,
        Format::Jsonl => reply.sessions.iter().try_for_each(|listed| out.object(listed))?,
        Format::Csv => csv(&reply, out)?,
        _ => table(&reply, out)?,
    }
    Ok(Exit::Ok)
}

const COLUMNS: [Column; 8] = [
    Column::shrinking("SESSION", 20),
    Column::fixed("STATUS"),
    Column::fixed("TURNS").right(),
    Column::fixed("UPDATED").right(),
    Column::shrinking("NAME", 8).rank(1),
    Column::shrinking("MODEL", 8).rank(2),
    Column::fixed("KIND").rank(3),
    Column::fixed("ID").rank(4),
];

/// The rows for eyes.
pub(crate) fn table(reply: &ListReply, out: &mut Output) -> Result<(), Failure> {
    let rows: Vec<Vec<Cell>> = reply.sessions.iter().map(|listed| row(listed, out)).collect();
    if rows.is_empty() {
        say("no session fits");
        return Ok(());
    }
    out.table(&COLUMNS, &rows)?;
    for listed in &reply.sessions {
        for message in listed.messages.iter().flatten() {
            let text = message.content.as_ref().map(content::plain).unwrap_or_default();
            let key = one_line(listed.row.key.as_str());
            let line = format!("{key}  {}: {}", message.role, one_line(&text));
            out.line(&out.width.map_or(line.clone(), |width| cut(&line, width)))?;
        }
    }
    more(reply, out)
}

fn more(reply: &ListReply, out: &mut Output) -> Result<(), Failure> {
    out.flush()?;
    if reply.lost > 0 {
        let lost = count(u64::try_from(reply.lost).unwrap_or(0), "session");
        say(&format!("!!!!!!!! all events of {lost} more are missing: `annals verify` says which"));
    }
    if let Some(cursor) = &reply.cursor {
        let shown = u64::try_from(reply.sessions.len()).unwrap_or(0);
        let total = u64::try_from(reply.total).unwrap_or(0);
        let (shown, total) = (grouped(shown), grouped(total));
        say(&format!("{shown} of {total} shown; go on with --cursor '{}'", one_line(cursor)));
    }
    Ok(())
}

fn row(listed: &Listed, out: &Output) -> Vec<Cell> {
    let row = &listed.row;
    let key = one_line(row.key.as_str());
    let status = match row.status {
        Status::Damaged => out.paint.loud(),
        Status::Failed | Status::Killed | Status::Timeout | Status::Interrupted => {
            out.paint.warning()
        }
        _ => anstyle::Style::new(),
    };
    let name = row.display_name.as_ref().or(row.label.as_ref());
    vec![
        Cell::styled(key, out.paint.session(row.key.as_str())),
        Cell::styled(row.status.as_str(), status),
        grouped(row.turns).into(),
        out.time_style().show(row.updated_at).into(),
        name.map(|name| one_line(name)).unwrap_or_default().into(),
        row.model.as_deref().map(one_line).unwrap_or_default().into(),
        row.kind.as_str().into(),
        one_line(&row.session_id).into(),
    ]
}

/// The rows as values.
pub(crate) fn csv(reply: &ListReply, out: &mut Output) -> Result<(), Failure> {
    out.csv(&["key", "kind", "status", "sessionId", "agentId", "turns", "updatedAt", "name"])?;
    for Listed { row, .. } in &reply.sessions {
        let name = row.display_name.as_ref().or(row.label.as_ref());
        let updated: Timestamp = row.updated_at;
        out.csv(&[
            row.key.as_str(),
            row.kind.as_str(),
            row.status.as_str(),
            &row.session_id,
            &row.agent_id,
            &row.turns.to_string(),
            &updated.to_string(),
            name.map_or("", String::as_str),
        ])?;
    }
    more(reply, out)
}
