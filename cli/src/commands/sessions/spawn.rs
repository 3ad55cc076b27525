//! `sessions spawn`: a child that works on a task: the tool with flags.

use std::path::PathBuf;

use annals_tools::registry::Tool;
use annals_tools::run::attachments::of_file;
use annals_tools::spawn::sessions_spawn;
use annals_tools::wire::runs::{AttachAs, SpawnArgs, SpawnReply};
use annals_tools::{Caller, Desk, View};
use clap::builder::PossibleValuesParser;

use super::send::Ways;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::Office;
use crate::output::text::{many_lines, one_line};
use crate::output::{Format, Output, say};
use crate::store::{self, Looked};
use crate::{seat, typed};

/// Give a task to a child
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The child, its task and the request for its run are on stable storage when this returns; a worker does the \
rest. Printed is the child's key. What comes of the task is announced to the session that asked: the chat of \
the command line, or with --as another one. A refusal leaves no session behind.

Exit codes: 0 accepted, 2 something is wrong with the call, 5 it is not allowed, 7 the key was used for another task.

Examples:
  annals sessions spawn 'Read the changelog and tell what breaks.'
  annals sessions spawn - --agent ops --timeout 600 < task.md
  annals sessions spawn 'Count the words.' --attach report.txt --json \\
    | jq -r .runId")]
pub(crate) struct Args {
    #[command(flatten)]
    task: Task,
    /// The session that asks
    #[arg(long = "as", value_name = "KEY", value_hint = clap::ValueHint::Other)]
    session: Option<String>,
}

/// A task, and how it is to be done.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Task {
    /// What is to be done; `-` reads it from standard input
    #[arg(value_name = "TASK", allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    task: String,
    /// The agent that does it [default: the one of the session that asks]
    #[arg(long, value_name = "ID", value_hint = clap::ValueHint::Other)]
    agent: Option<String>,
    /// A short name for the child
    #[arg(long, value_name = "LABEL", value_hint = clap::ValueHint::Other)]
    label: Option<String>,
    /// The model that does it
    #[arg(long, value_name = "MODEL", value_hint = clap::ValueHint::Other)]
    model: Option<String>,
    /// How hard it thinks
    #[arg(long, value_name = "LEVEL", value_hint = clap::ValueHint::Other)]
    thinking: Option<String>,
    /// The time limit of the run; 0 for none
    #[arg(long, value_name = "SECONDS", value_hint = clap::ValueHint::Other)]
    timeout: Option<u64>,
    /// Whether the child leaves the lists at once after its announce
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["keep", "delete"]))]
    cleanup: Option<String>,
    /// Whether the child must be confined
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["inherit", "require"]))]
    sandbox: Option<String>,
    /// Give the child a thread of its own on the channel
    #[arg(long)]
    thread: bool,
    /// Whether it is one run or a session that stays open, which needs --thread
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["run", "session"]))]
    mode: Option<String>,
    /// Hand over a file; again for more
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    attach: Vec<PathBuf>,
    /// Where the files lie, below the child's own folder for them
    #[arg(long, value_name = "PATH", requires = "attach", value_hint = clap::ValueHint::Other)]
    mount: Option<String>,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

impl Task {
    /// The arguments of the tool.
    ///
    /// # Errors
    /// What reading standard input and the files says.
    pub(crate) fn wanted(&self) -> Result<SpawnArgs, Failure> {
        let attachments = self.attach.iter().map(|path| of_file(path));
        Ok(SpawnArgs {
            task: typed::text(&self.task)?,
            label: self.label.clone(),
            agent_id: self.agent.clone(),
            model: self.model.clone(),
            thinking: self.thinking.clone(),
            run_timeout_seconds: self.timeout,
            thread: self.thread,
            mode: self.mode.clone(),
            cleanup: self.cleanup.clone(),
            sandbox: self.sandbox.clone(),
            attachments: attachments.collect::<Result<_, _>>()?,
            attach_as: self.mount.clone().map(|mount_path| AttachAs { mount_path }),
            idempotency_key: self.ways.idempotency_key.clone(),
        })
    }
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("sessions spawn", &[Format::Table, Format::Json])?;
    let wanted = args.task.wanted()?;
    let engine = store::open(&context.global)?;
    let office = Office::of(&engine, &context.global, args.task.ways.workers())?;
    let desk = office.desk();
    let looked = Looked::at(engine, context.out.now)?;
    let view = looked.view_with(&desk);
    let caller = seat::caller_as(looked.engine(), &view, args.session.as_deref())?;
    let reply = spawn(&caller, &view, &desk, &wanted)?;
    let out = &mut context.out;
    if out.format == Format::Json {
        out.object(&reply)?;
        return Ok(exit_of(&reply));
    }
    tell(&reply, desk.requester(&caller).as_str(), out)
}

/// Spawns.
///
/// # Errors
/// What the tool says; that it refuses is none.
pub(crate) fn spawn(
    caller: &Caller,
    view: &View<'_>,
    desk: &Desk<'_>,
    wanted: &SpawnArgs,
) -> Result<SpawnReply, Failure> {
    let spawn = || sessions_spawn(caller, view, desk, wanted);
    Ok(Tool::of("sessions_spawn")?.guarded(caller, view, None, spawn)?)
}

/// The exit code of what the tool has answered.
pub(crate) fn exit_of(reply: &SpawnReply) -> Exit {
    match reply.status {
        "accepted" => Exit::Ok,
        "forbidden" => Exit::Denied,
        _ => Exit::Usage,
    }
}

/// A refusal as a failure.
pub(crate) fn refusal(reply: &SpawnReply) -> Failure {
    let why = reply.error.as_deref().map(many_lines).unwrap_or_default();
    Failure::new(exit_of(reply), reply.reason.unwrap_or("refused"), why)
}

/// Tells what the tool has answered.
///
/// # Errors
/// A refusal.
pub(crate) fn tell(reply: &SpawnReply, requester: &str, out: &mut Output) -> Result<Exit, Failure> {
    let (Some(child), Some(run_id)) = (&reply.child_session_key, &reply.run_id) else {
        return Err(refusal(reply));
    };
    out.line(&one_line(child))?;
    out.flush()?;
    let (run_id, requester) = (one_line(run_id), one_line(requester));
    say(&format!("run {run_id}; what comes of it is announced to {requester}"));
    for receipt in &reply.attachments {
        say(&format!("handed over: {} ({} bytes)", one_line(&receipt.path), receipt.bytes));
    }
    if let Some(worker) = &reply.worker {
        say(&format!("note: worker: {worker}"));
    }
    Ok(Exit::Ok)
}
