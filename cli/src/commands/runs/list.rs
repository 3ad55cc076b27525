//! `runs list`: one row a run, the newest first.

use annals_engine::clock::Timestamp;
use annals_engine::session::moment::Moment;
use annals_engine::session::runs::{Run, RunState, Runs};
use annals_tools::Seat;
use annals_tools::registry::Tool;
use serde::Serialize;

use super::{Told, lasting, read, sees, warn};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::{Cell, Column};
use crate::output::text::{grouped, one_line};
use crate::output::{Format, Output, say};
use crate::seat;
use crate::store::Looked;
use crate::when::{self, Bound};

/// List runs, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A run is open until it has its one end. AGE is how long an open one has been asked for, and how long an \
ended one took. The owner is the worker that claimed it last; when its lease is over, the worker has \
given no sign of life since.

Examples:
  annals runs list --open
  annals runs list --open --since yesterday --until 2h
  annals runs list --open --json | jq '.runs[] | select(.ageMs > 600000)'")]
pub(crate) struct Args {
    /// Only runs that have not ended
    #[arg(long)]
    open: bool,
    /// Only runs asked for since then: 2h, 3d, yesterday, 14:30, an ISO time, or #42 for a place in the log
    #[arg(long, value_name = "WHEN", value_hint = clap::ValueHint::Other)]
    since: Option<String>,
    /// Only runs asked for until then; the same forms
    #[arg(long, value_name = "WHEN", value_hint = clap::ValueHint::Other)]
    until: Option<String>,
    /// How many rows at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 50)]
    limit: usize,
}

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    runs: Vec<Told<'a>>,
    total: usize,
    open: usize,
    now: Timestamp,
    gaps: u64,
    missing: u64,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("runs list", &[Format::Table, Format::Json, Format::Jsonl, Format::Csv])?;
    let window = when::range(args.since.as_ref(), args.until.as_ref(), out.now, &out.zone)?;
    let engine = seat::open(&context.global)?;
    let caller = seat::caller(&engine)?;
    let (runs, losses) = read::<Runs>(engine.store(), &["run."])?;
    let mut wanted = runs.state().in_order();
    if caller.seat != Seat::Operator {
        let looked = Looked::at(engine, out.now)?;
        let view = looked.view();
        // Whoever may wait for runs may see which there are.
        Tool::of("runs_wait")?.guarded(&caller, &view, None, || Ok(()))?;
        wanted.retain(|run| sees(&caller, view.sessions.state(), run));
    }
    wanted.retain(|run| was_asked_for(run, window));
    let open = wanted.iter().filter(|run| run.state.is_open()).count();
    wanted.retain(|run| run.state.is_open() || !args.open);
    wanted.reverse();
    let total = wanted.len();
    wanted.truncate(if args.limit == 0 { total } else { args.limit });
    let answer = Answer {
        ok: true,
        runs: wanted.iter().map(|run| Told::of(run, out.now)).collect(),
        total,
        open,
        now: out.now,
        gaps: losses.ranges(),
        missing: losses.events(),
    };
    match out.format {
        Format::Json => out.object(&answer)?,
        Format::Jsonl => answer.runs.iter().try_for_each(|told| out.object(told))?,
        Format::Csv => csv(&answer, out)?,
        _ => table(&answer, args.open, out)?,
    }
    if answer.runs.len() < total && !out.is_json() {
        out.flush()?;
        let number = |n: usize| grouped(u64::try_from(n).unwrap_or(u64::MAX));
        let (shown, all) = (number(answer.runs.len()), number(total));
        say(&format!("{shown} of {all} shown; -n 0 shows all"));
    }
    warn(&losses, out)?;
    Ok(Exit::Ok)
}

/// Whether a run was asked for between these bounds; of one whose request is not known its first sign counts.
fn was_asked_for(run: &Run, (since, until): (Option<Bound>, Option<Bound>)) -> bool {
    let moment =
        [run.requested, run.claimed, run.started, run.finished].into_iter().flatten().next();
    let Some(Moment { seq, at }) = moment else { return since.is_none() && until.is_none() };
    let after = |bound| match bound {
        Bound::Time(since) => at >= since,
        Bound::Seq(first) => seq >= first.0,
    };
    let before = |bound| match bound {
        Bound::Time(until) => at <= until,
        Bound::Seq(last) => seq <= last.0,
    };
    since.is_none_or(after) && until.is_none_or(before)
}

const COLUMNS: [Column; 7] = [
    // As wide as the ids that runs have; other programs may give longer ones.
    Column::shrinking("RUN", 36),
    Column::fixed("STATE"),
    Column::fixed("AGE").right(),
    Column::shrinking("SESSION", 12).rank(1),
    Column::shrinking("OWNER", 8).rank(2),
    Column::fixed("KIND").rank(3),
    Column::shrinking("REQUESTER", 12).rank(4),
];

fn table(answer: &Answer<'_>, only_open: bool, out: &mut Output) -> Result<(), Failure> {
    if answer.runs.is_empty() {
        say(if only_open { "no run is open" } else { "there is no run" });
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = answer.runs.iter().map(|told| row(told, out)).collect();
    out.table(&COLUMNS, &rows)
}

fn row(told: &Told<'_>, out: &Output) -> Vec<Cell> {
    let run = told.run;
    let style = match run.state {
        RunState::Ok | RunState::Requested | RunState::Claimed | RunState::Running => {
            anstyle::Style::new()
        }
        _ => out.paint.warning(),
    };
    let session = run.session_key.as_deref().unwrap_or_default();
    vec![
        one_line(&run.run_id).into(),
        Cell::styled(run.state.as_str(), style),
        lasting(told.age_ms).into(),
        Cell::styled(one_line(session), out.paint.session(session)),
        owner(run, out.now).into(),
        run.kind.map_or("", |kind| kind.as_str()).into(),
        run.requester_key.as_deref().map(one_line).unwrap_or_default().into(),
    ]
}

/// `worker@host`, and whether its lease is over.
fn owner(run: &Run, now: Timestamp) -> String {
    let Some(owner) = &run.owner else { return "-".to_owned() };
    let over = run.state.is_open() && owner.lease_until < now;
    let over = if over { " (lease over)" } else { "" };
    format!("{}@{}{over}", one_line(&owner.worker), one_line(&owner.host))
}

fn csv(answer: &Answer<'_>, out: &mut Output) -> Result<(), Failure> {
    out.csv(&[
        "runId",
        "state",
        "ageMs",
        "sessionKey",
        "worker",
        "host",
        "kind",
        "requesterKey",
        "agentId",
        "requested",
        "finished",
    ])?;
    for told in &answer.runs {
        let run = told.run;
        let owner = run.owner.as_ref();
        out.csv(&[
            &run.run_id,
            run.state.as_str(),
            &told.age_ms.to_string(),
            run.session_key.as_deref().unwrap_or_default(),
            owner.map_or("", |owner| &owner.worker),
            owner.map_or("", |owner| &owner.host),
            run.kind.map_or("", |kind| kind.as_str()),
            run.requester_key.as_deref().unwrap_or_default(),
            run.agent_id.as_deref().unwrap_or_default(),
            &run.requested.map_or(String::new(), |moment| moment.at.to_string()),
            &run.finished.map_or(String::new(), |moment| moment.at.to_string()),
        ])?;
    }
    Ok(())
}
