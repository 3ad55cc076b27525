//! `subagent kill`: what a child works on is to end.

use annals_tools::registry::Tool;
use annals_tools::runs::cancel;
use annals_tools::wire::runs::CancelReply;
use serde::Serialize;

use super::child::find;
use crate::commands::Context;
use crate::commands::runs::kill::told;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::Format;
use crate::output::text::one_line;
use crate::seat;
use crate::store::{self, Looked};

/// End what a child works on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All runs of the child that have not ended are ended, as with `annals runs kill`. What came of it is announced \
as killed. A child that has ended stays as it is.

Examples:
  annals subagent kill 3fa9")]
pub(crate) struct Args {
    /// The child: its key, its id, or the beginning of either, of four characters or more
    #[arg(value_name = "ID", value_hint = clap::ValueHint::Other)]
    id: String,
    /// Start no worker to see to it
    #[arg(long)]
    no_worker: bool,
}

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    child_session_key: &'a str,
    runs: Vec<CancelReply>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("subagent kill", &[Format::Table, Format::Json])?;
    let engine = store::open_there(&context.global)?;
    let caller = seat::caller(&engine)?;
    let workers = if args.no_worker { Workers::Never } else { Workers::OnCall };
    let office = Office::of(&engine, &context.global, workers)?;
    let work = engine.work()?;
    let desk = office.desk();
    let looked = Looked::at(engine, context.out.now)?;
    let view = looked.view_with(&desk);
    let key = find(view.sessions.state(), &caller, &args.id)?.key.to_string();
    let tool = Tool::of("runs_cancel")?;
    let mut runs = Vec::new();
    for run in work.state().runs_on(&key) {
        let end = || cancel(&caller, &desk, &run.run_id, "cancelled");
        runs.push(tool.guarded(&caller, &view, Some(run.run_id.clone()), end)?);
    }
    if context.out.format == Format::Json {
        context.out.object(&Answer { ok: true, child_session_key: &key, runs })?;
        return Ok(Exit::Ok);
    }
    if runs.is_empty() {
        context.out.line(&format!("{} had ended", one_line(&key)))?;
    }
    for run in &runs {
        let (key, run_id) = (one_line(&key), one_line(&run.run_id));
        context.out.line(&format!("{key} run {run_id} {}", told(run.status)))?;
    }
    Ok(Exit::Ok)
}
