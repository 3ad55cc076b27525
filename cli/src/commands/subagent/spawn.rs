//! `subagent spawn`: a child that works on a task for the chat of the command line, or for another one.

use std::time::Duration;

use annals_engine::session::context::{ContextLimits, context};
use annals_engine::session::index::Found;
use annals_engine::session::reset::Standing;
use annals_tools::desk::OperatorSession;
use annals_tools::wire::runs::SpawnReply;
use serde::Serialize;
use serde_json::Value;

use crate::attend::{End, attend};
use crate::commands::Context;
use crate::commands::sessions::spawn::{Task, refusal, spawn, tell};
use crate::exit::{Exit, Failure};
use crate::office::{Office, operator_of, own_chat};
use crate::output::{FailedError, Format};
use crate::store::{self, Looked};
use crate::{seat, settings};

/// Give a task to a child
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The child, its task and the request for its run are on stable storage when this returns; a worker does the \
rest. Printed is the child's key. What comes of the task is announced to the chat that asks. With \
--session-channel or --session-chat-id another chat asks: what was said there goes before the task in the \
child's prompt, and the announce goes there. With --sync, or SUBAGENT_SYNC=1, the work is done here, and its \
result is printed. Without --timeout and settings of it the time limit is 600 seconds.

Exit codes: 0 accepted, or done well; 1 it did not end well; 2 something is wrong with the call; 4 it reached \
its time limit; 5 it is not allowed; 7 the key was used for another task.

Examples:
  annals subagent spawn 'Read the changelog and tell what breaks.'
  annals subagent spawn 'Answer.' --session-channel sms --session-chat-id 42
  annals subagent spawn 'Count the words.' --attach report.txt --sync")]
pub(crate) struct Args {
    #[command(flatten)]
    task: Task,
    /// Do the work here, and print its result
    #[arg(long)]
    sync: bool,
    /// The channel of the chat that asks [default: session.channel]
    #[arg(long, value_name = "CHANNEL", value_hint = clap::ValueHint::Other)]
    session_channel: Option<String>,
    /// The chat that asks [default: session.chatId]
    #[arg(long, value_name = "CHAT", allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    session_chat_id: Option<String>,
}

/// The most characters of what was said before that goes before a task.
const CONTEXT_CHARS: usize = 12_000;

/// The time limit where nobody sets one.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The answer as an object: the tool's, and with it how the work ended.
#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    #[serde(flatten)]
    reply: Value,
    #[serde(flatten)]
    end: Option<End<'a>>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("subagent spawn", &[Format::Table, Format::Json])?;
    let other = args.session_channel.is_some() || args.session_chat_id.is_some();
    if other {
        seat::operators("for whom a child works")?;
    }
    let wanted = args.task.wanted()?;
    let engine = store::open(&context.global)?;
    let mut office =
        Office::of(&engine, &context.global, args.task.ways.workers())?.with_child_timeout(TIMEOUT);
    let looked = Looked::at(engine, context.out.now)?;
    if other {
        let asks = asks(args)?;
        let before = said_before(&looked, &asks)?;
        office = office.for_session(asks, before);
    }
    let sync = args.sync || settings::get()?.is_on("subagents.sync");
    let desk = if sync { office.desk_here() } else { office.desk() };
    let view = looked.view_with(&desk);
    let caller = seat::caller(looked.engine())?;
    let reply = spawn(&caller, &view, &desk, &wanted)?;
    match (&reply.run_id, &reply.child_session_key) {
        (Some(run_id), Some(child)) if sync => {
            let attended = attend(&office, (run_id, child), &mut context.out)?;
            if context.out.format != Format::Json {
                return attended.verdict(run_id);
            }
            let exit = attended.exit();
            // How it ended, and not that it was accepted.
            let mut told = as_json(&reply)?;
            told.as_object_mut().map(|told| told.remove("status"));
            let answer = Answer { ok: exit == Exit::Ok, reply: told, end: Some(attended.told()) };
            context.out.object(&answer)?;
            Ok(exit)
        }
        (Some(_), Some(_)) if context.out.format == Format::Json => {
            context.out.object(&Answer { ok: true, reply: as_json(&reply)?, end: None })?;
            Ok(Exit::Ok)
        }
        _ if context.out.format == Format::Json => refused(&reply, context),
        _ => tell(&reply, desk.requester(&caller).as_str(), &mut context.out),
    }
}

/// A refusal as an object: that of every failure, and what the tool has answered beside it.
fn refused(reply: &SpawnReply, context: &mut Context) -> Result<Exit, Failure> {
    let Failure::Told(told) = refusal(reply) else { return Err(Failure::Closed) };
    let error = FailedError { code: &told.code, message: &told.message, hint: None };
    let error = serde_json::to_value(error).map_err(unspoken)?;
    let mut object = as_json(reply)?;
    object.as_object_mut().map(|object| object.insert("error".to_owned(), error));
    context.out.object(&Answer { ok: false, reply: object, end: None })?;
    Ok(told.exit)
}

fn as_json(reply: &SpawnReply) -> Result<Value, Failure> {
    serde_json::to_value(reply).map_err(unspoken)
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn unspoken(error: serde_json::Error) -> Failure {
    Failure::new(Exit::Failed, "io", format!("the answer does not serialise: {error}"))
}

/// The chat that asks.
fn asks(args: &Args) -> Result<OperatorSession, Failure> {
    let (channel, chat) = own_chat()?;
    let channel = args.session_channel.as_deref().unwrap_or(&channel);
    let chat = args.session_chat_id.as_deref().unwrap_or(&chat);
    operator_of(channel, chat)
}

/// What was said in a chat, as its own prompts have it; nothing of one whose time is over.
fn said_before(looked: &Looked, asks: &OperatorSession) -> Result<Option<String>, Failure> {
    let view = looked.view();
    let sessions = view.sessions.state();
    let over = matches!(looked.standing(&asks.key), Standing::Expired { .. });
    if sessions.row(&asks.key).is_none() || over {
        return Ok(None);
    }
    let turns = settings::get()?.number("session.maxTurns").unwrap_or(40);
    let limits = ContextLimits {
        turns: usize::try_from(turns).unwrap_or(usize::MAX),
        chars: Some(CONTEXT_CHARS),
    };
    let found = Found { key: asks.key.clone(), part: None };
    let context = context(view.store, sessions, &found, &limits)?;
    let texts: Vec<String> = context.messages.iter().map(|message| message.text()).collect();
    Ok(Some(texts.join("\n\n")).filter(|text| !text.is_empty()))
}
