//! `subagent list`: one row a child, the youngest first.

use annals_engine::session::index::Status;
use annals_tools::registry::Tool;
use serde::Serialize;

use super::child::{Child, all_runs, children};
use crate::commands::Context;
use crate::commands::runs::lasting;
use crate::exit::{Exit, Failure};
use crate::output::table::{Cell, Column};
use crate::output::text::{grouped, one_line};
use crate::output::{Format, Output, say};
use crate::seat;
use crate::store::Looked;

/// List children, the youngest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A child leaves the list some time after its end and its announce; it stays readable by its key and its id.

Examples:
  annals subagent list
  annals subagent list --json | jq '.children[] | select(.status == \"failed\")'")]
pub(crate) struct Args {
    /// Only archived children
    #[arg(long)]
    archived: bool,
    /// How many rows at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 50)]
    limit: usize,
}

/// The answer as an object.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    children: Vec<Child>,
    total: usize,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("subagent list", &[Format::Table, Format::Json, Format::Jsonl, Format::Csv])?;
    let engine = seat::open(&context.global)?;
    let caller = seat::caller(&engine)?;
    let looked = Looked::at(engine, out.now)?;
    let view = looked.view();
    Tool::of("sessions_list")?.guarded(&caller, &view, None, || Ok(()))?;
    let sessions = view.sessions.state();
    let archived = |key| {
        let row = sessions.row_at(key, &view.lens);
        let due = row.is_some_and(|row| row.status == Status::Archived);
        due || sessions.is_archived(key)
    };
    let mut rows = children(sessions, &caller);
    rows.retain(|row| archived(&row.key) == args.archived);
    let total = rows.len();
    rows.truncate(if args.limit == 0 { total } else { args.limit });
    let runs = all_runs(view.store)?;
    let children = rows.into_iter().map(|row| Child::of(row, &caller, &view, &runs));
    let children: Vec<Child> = children.collect::<Result<_, _>>()?;
    match out.format {
        Format::Json => out.object(&Answer { ok: true, children, total })?,
        Format::Jsonl => children.iter().try_for_each(|child| out.object(child))?,
        Format::Csv => csv(&children, out)?,
        _ => table(&children, total, out)?,
    }
    Ok(Exit::Ok)
}

fn table(children: &[Child], total: usize, out: &mut Output) -> Result<(), Failure> {
    if children.is_empty() {
        say("no child fits");
        return Ok(());
    }
    let columns = [
        Column::shrinking("CHILD", 36),
        Column::fixed("STATUS"),
        Column::fixed("AGE").right(),
        Column::shrinking("TASK", 8),
        Column::shrinking("REQUESTER", 12).rank(1),
    ];
    let row = |child: &Child| -> Vec<Cell> {
        let style = match child.status {
            "failed" | "killed" | "timeout" | "interrupted" | "damaged" => out.paint.warning(),
            _ => anstyle::Style::new(),
        };
        let task = match &child.label {
            Some(label) => format!("{}: {}", one_line(label), one_line(&child.task)),
            None => one_line(&child.task),
        };
        let requester = child.requester_key.as_deref().unwrap_or_default();
        vec![
            one_line(&child.id).into(),
            Cell::styled(child.status, style),
            lasting(child.age_ms).into(),
            task.into(),
            Cell::styled(one_line(requester), out.paint.session(requester)),
        ]
    };
    let rows: Vec<Vec<Cell>> = children.iter().map(row).collect();
    out.table(&columns, &rows)?;
    out.flush()?;
    if children.len() < total {
        let number = |n: usize| grouped(u64::try_from(n).unwrap_or(u64::MAX));
        say(&format!("{} of {} shown; -n 0 shows all", number(children.len()), number(total)));
    }
    Ok(())
}

fn csv(children: &[Child], out: &mut Output) -> Result<(), Failure> {
    out.csv(&["key", "status", "ageMs", "requesterKey", "label", "runId", "task"])?;
    for child in children {
        out.csv(&[
            &child.key,
            child.status,
            &child.age_ms.to_string(),
            child.requester_key.as_deref().unwrap_or_default(),
            child.label.as_deref().unwrap_or_default(),
            child.run_id.as_deref().unwrap_or_default(),
            &child.task,
        ])?;
    }
    Ok(())
}
