//! `sessions send`: a message to a session, and its reply: the tool with flags.

use annals_engine::session::event::RunStatus;
use annals_tools::registry::Tool;
use annals_tools::send::sessions_send;
use annals_tools::wire::runs::{SendArgs, SendReply};
use clap::builder::NonEmptyStringValueParser;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::text::{many_lines, one_line};
use crate::output::{Format, Output, say};
use crate::shown::mask::MaskArgs;
use crate::store::{self, Looked};
use crate::{seat, typed};

/// Send a message to a session, and print its reply
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "annals sessions send [OPTIONS] KEY TEXT\n       annals sessions send [OPTIONS] --label LABEL TEXT",
    after_help = "\
The message and the request for its run are on stable storage before anything starts. It comes from the chat \
of the command line, or with --as from another session. After a timeout the message is with the session all \
the same and the work goes on: wait with `annals runs wait`, or repeat with the same idempotency key.

Exit codes: 0 answered or accepted, 1 the run did not end well, 3 there is no such session, 4 there was no \
reply in time, 5 it is not allowed, 7 the two would wait for each other, or the key was used for another message.

Examples:
  annals sessions send agent:ops:main 'Is the deploy through?'
  annals sessions send --label nightly 'Stop after this one.' --timeout 0
  annals sessions send main - --as cron:nightly --json < report.md"
)]
pub(crate) struct Args {
    /// The session: its key, the id of one of its parts, or the beginning of either; left out with --label
    #[arg(value_name = "KEY", allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    first: String,
    /// What is said to it; `-` reads it from standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    second: Option<String>,
    /// The label of the session, instead of its key
    #[arg(long, value_name = "LABEL", value_hint = clap::ValueHint::Other)]
    label: Option<String>,
    /// The agent whose session has the label
    #[arg(long, value_name = "ID", requires = "label", value_hint = clap::ValueHint::Other)]
    agent: Option<String>,
    /// How long to wait for the reply; 0 to go on at once
    #[arg(long, value_name = "SECONDS", value_hint = clap::ValueHint::Other, default_value_t = 30)]
    timeout: u64,
    #[command(flatten)]
    ways: Ways,
    /// The session that sends
    #[arg(long = "as", value_name = "KEY", value_hint = clap::ValueHint::Other)]
    session: Option<String>,
    #[command(flatten)]
    mask: MaskArgs,
}

/// What a verb that asks for work may be told about the way.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Ways {
    /// Calls with the same key are one call
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) idempotency_key: Option<String>,
    /// Start no worker where none is
    #[arg(long)]
    pub(crate) no_worker: bool,
}

impl Ways {
    pub(crate) fn workers(&self) -> Workers {
        if self.no_worker { Workers::Never } else { Workers::OnCall }
    }
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("sessions send", &[Format::Table, Format::Json])?;
    args.mask.on(&mut context.out)?;
    let (session_key, text) = match (&args.second, &args.label) {
        (None, Some(_)) => (None, &args.first),
        (Some(text), None) => (Some(args.first.clone()), text),
        (None, None) => return Err(Failure::usage("it takes a session and a text: KEY TEXT")),
        (Some(_), Some(_)) => {
            return Err(Failure::usage("name the session by its key or by its label, not by both"));
        }
    };
    let wanted = SendArgs {
        session_key,
        label: args.label.clone(),
        agent_id: args.agent.clone(),
        message: typed::text(text)?,
        timeout_seconds: Some(args.timeout),
        idempotency_key: args.ways.idempotency_key.clone(),
    };
    let engine = store::open_there(&context.global)?;
    let office = Office::of(&engine, &context.global, args.ways.workers())?;
    let reply = send(&wanted, args.session.as_deref(), &office, engine, context)?;
    tell(&reply, &mut context.out)
}

/// Sends.
///
/// # Errors
/// What the tool says.
pub(crate) fn send(
    wanted: &SendArgs,
    from: Option<&str>,
    office: &Office,
    engine: store::Opened,
    context: &Context,
) -> Result<SendReply, Failure> {
    let desk = office.desk();
    let looked = Looked::at(engine, context.out.now)?;
    let view = looked.view_with(&desk);
    let caller = seat::caller_as(looked.engine(), &view, from)?;
    let named = wanted.session_key.clone().or_else(|| wanted.label.clone());
    let send = || sessions_send(&caller, &view, &desk, wanted);
    Ok(Tool::of("sessions_send")?.guarded(&caller, &view, named, send)?)
}

/// Tells what the tool has answered.
///
/// # Errors
/// A message that was not answered is a failure, except as JSON.
pub(crate) fn tell(reply: &SendReply, out: &mut Output) -> Result<Exit, Failure> {
    let exit = exit_of(reply);
    if out.format == Format::Json {
        out.object(reply)?;
        return Ok(exit);
    }
    let run_id = reply.run_id.as_deref().map(one_line).unwrap_or_default();
    match reply.status {
        "accepted" => out.line(&run_id)?,
        "ok" if reply.no_reply => say("note: it ended well and said nothing"),
        "ok" => {
            let said = reply.reply.as_deref().filter(|said| !said.is_empty());
            said.map_or(Ok(()), |said| out.text(said))?;
        }
        _ => {
            let code = reply.reason.clone().unwrap_or_else(|| reply.status.to_owned());
            let why = reply.error.as_deref().map(|why| many_lines(&out.seen(why)));
            let why = why.unwrap_or_default();
            let failure = Failure::new(exit, code, why);
            let hint =
                (!run_id.is_empty()).then(|| format!("`annals runs show {run_id}` says more"));
            return Err(hint.into_iter().fold(failure, Failure::hint));
        }
    }
    out.flush()?;
    if let Some(worker) = &reply.worker {
        say(&format!("note: worker: {worker}"));
    }
    Ok(exit)
}

fn exit_of(reply: &SendReply) -> Exit {
    match (reply.status, reply.reason.as_deref(), reply.run_status) {
        ("ok" | "accepted", ..) => Exit::Ok,
        ("timeout", ..) | (_, _, Some(RunStatus::Timeout)) => Exit::Timeout,
        ("forbidden", ..) | (_, Some("blocked" | "loop"), None) => Exit::Denied,
        (_, Some("would_deadlock"), None) => Exit::Busy,
        _ => Exit::Failed,
    }
}
