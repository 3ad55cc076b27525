//! `runs kill`: runs that are to end.

use annals_tools::registry::Tool;
use annals_tools::runs::cancel;
use annals_tools::wire::runs::CancelReply;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;

use super::ids_of;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::Format;
use crate::output::text::one_line;
use crate::seat;
use crate::store::{self, Looked};

/// End runs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The wish is on stable storage when this returns. The worker that has a run asks its process to end, with all \
that it started, and after a grace ends it; a run that nobody has ends at once. One that has ended stays as it is.

Examples:
  annals runs kill 0192f0c1
  annals runs kill 0192f0c1 0192f0c2 --reason 'wrong branch'")]
pub(crate) struct Args {
    /// The runs: their ids, or the beginnings of them, of four characters or more
    #[arg(value_name = "ID", required = true, value_hint = clap::ValueHint::Other)]
    ids: Vec<String>,
    /// Why, as it is recorded
    #[arg(long, value_name = "TEXT", default_value = "cancelled", value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    reason: String,
    /// Start no worker to see to it
    #[arg(long)]
    no_worker: bool,
}

/// The answer as an object.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    runs: Vec<CancelReply>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("runs kill", &[Format::Table, Format::Json])?;
    let engine = store::open_there(&context.global)?;
    let caller = seat::caller(&engine)?;
    let workers = if args.no_worker { Workers::Never } else { Workers::OnCall };
    let office = Office::of(&engine, &context.global, workers)?;
    let desk = office.desk();
    let looked = Looked::at(engine, context.out.now)?;
    let view = looked.view_with(&desk);
    let tool = Tool::of("runs_cancel")?;
    let mut runs = Vec::new();
    for run_id in ids_of(&args.ids, &caller, &view)? {
        let named = Some(run_id.clone());
        let end = || cancel(&caller, &desk, &run_id, &args.reason);
        runs.push(tool.guarded(&caller, &view, named, end)?);
    }
    if context.out.format == Format::Json {
        context.out.object(&Answer { ok: true, runs })?;
        return Ok(Exit::Ok);
    }
    for run in &runs {
        context.out.line(&format!("{} {}", one_line(&run.run_id), told(run.status)))?;
    }
    Ok(Exit::Ok)
}

/// What became of the wish, in words.
pub(crate) fn told(status: &str) -> &'static str {
    match status {
        "killed" => "killed",
        "kill_requested" => "is being ended by its worker",
        _ => "had ended",
    }
}
