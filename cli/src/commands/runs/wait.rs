//! `runs wait`: until runs have ended.

use annals_tools::Seat;
use annals_tools::registry::Tool;
use annals_tools::runs::{RUNS_MAX, runs_wait};
use annals_tools::wire::runs::{WaitArgs, WaitReply, WaitedRun};
use serde::Serialize;

use super::{ids_of, lasting};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::table::{Cell, Column};
use crate::output::text::one_line;
use crate::output::{Format, Output, say};
use crate::seat;
use crate::shown::mask::MaskArgs;
use crate::store::{self, Looked};

/// Wait until runs have ended
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Waiting starts no worker: runs that nobody works on are waited for until somebody does.

Exit codes: 0 all ended well, 1 one did not, 3 there is no such run, 4 the time was over first.

Examples:
  annals runs wait 0192f0c1
  annals runs wait 0192f0c1 0192f0c2 --timeout 60 --json | jq -r '.runs[].reply'")]
pub(crate) struct Args {
    /// The runs: their ids, or the beginnings of them, of four characters or more
    #[arg(value_name = "ID", required = true, num_args = 1..=RUNS_MAX, value_hint = clap::ValueHint::Other)]
    ids: Vec<String>,
    /// How long to wait at most [default: for ever]
    #[arg(long, value_name = "SECONDS", value_hint = clap::ValueHint::Other)]
    timeout: Option<u64>,
    #[command(flatten)]
    mask: MaskArgs,
}

/// The answer as an object.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    #[serde(flatten)]
    reply: WaitReply,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("runs wait", &[Format::Table, Format::Json, Format::Jsonl])?;
    args.mask.on(&mut context.out)?;
    let engine = store::open_if_it_may(&context.global)?;
    let caller = seat::caller(&engine)?;
    let office = Office::of(&engine, &context.global, Workers::Never)?;
    let desk = office.desk();
    let looked = Looked::at(engine, context.out.now)?;
    let view = looked.view_with(&desk);
    let run_ids = ids_of(&args.ids, &caller, &view)?;
    // A session waits no longer at a time than the tool lets it.
    let unset = (caller.seat == Seat::Operator).then_some(u64::MAX);
    let wanted = WaitArgs { run_ids, timeout_seconds: args.timeout.or(unset) };
    let wait = || runs_wait(&caller, &view, &desk, &wanted);
    let reply = Tool::of("runs_wait")?.guarded(&caller, &view, None, wait)?;
    let exit = exit_of(&reply);
    let out = &mut context.out;
    match out.format {
        Format::Json => out.object(&Answer { ok: exit == Exit::Ok, reply })?,
        Format::Jsonl => reply.runs.iter().try_for_each(|run| out.object(run))?,
        _ => table(&reply, out)?,
    }
    Ok(exit)
}

fn exit_of(reply: &WaitReply) -> Exit {
    match reply {
        WaitReply { all_ended: false, .. } => Exit::Timeout,
        WaitReply { runs, .. } if runs.iter().all(|run| run.status == "ok") => Exit::Ok,
        _ => Exit::Failed,
    }
}

fn table(reply: &WaitReply, out: &mut Output) -> Result<(), Failure> {
    let columns = [
        Column::shrinking("RUN", 36),
        Column::fixed("STATE"),
        Column::fixed("TIME").right(),
        Column::shrinking("SESSION", 12).rank(1),
        Column::shrinking("REPLY", 20),
    ];
    let row = |run: &WaitedRun| -> Vec<Cell> {
        let said = run.reply.as_deref().or(run.reason.as_deref()).unwrap_or_default();
        let session = run.session_key.as_deref().unwrap_or_default();
        vec![
            one_line(&run.run_id).into(),
            run.status.into(),
            run.runtime_ms.map(lasting).unwrap_or_default().into(),
            Cell::styled(one_line(session), out.paint.session(session)),
            one_line(said).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = reply.runs.iter().map(row).collect();
    out.table(&columns, &rows)?;
    out.flush()?;
    let open = reply.runs.iter().filter(|run| run.status == "requested").count();
    if open > 0 {
        say("nobody works on what is requested: `annals worker` does, if no worker is there");
    }
    Ok(())
}
