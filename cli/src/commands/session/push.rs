//! `session push`: one turn into the session of a chat, which opens with its first turn. It starts no run.

use annals_engine::session::event::{ChatType, ResetReason, Role};
use annals_engine::session::push::{Chat, Command, Door, Push, Pushed, SendSwitch, Target};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::output::text::one_line;
use crate::{settings, store, typed};

/// Append a turn to the session of a chat
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The turn is on stable storage when this returns, and no agent is started by it. A user's turn counts \
as one from outside; an assistant's and a system's do not. What the options say of the chat is kept \
when the session opens, and recorded as a change when it is open and says something else. A user's \
text that is nothing but /send on, /send off, /send inherit, /new or /reset is a command: it is obeyed \
and not stored. When the session's time was over (`annals session status` says the rule), a user's turn \
begins another part. From \
standard input a byte order mark and the last line feed are no part of the text; an empty text is \
refused. A text has at most 64 MiB as JSON.

Examples:
  annals session push cli default user 'hello'
  annals session push telegram 987654321 user 'hi' --display-name Ana
  git log -1 | annals session push cli default user -")]
pub(crate) struct Args {
    /// The channel: cli, telegram, webhook, or any other
    #[arg(value_hint = clap::ValueHint::Other)]
    channel: String,
    /// The chat on that channel
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    chat: String,
    /// Whose turn
    #[arg(value_parser = PossibleValuesParser::new(ROLES))]
    role: String,
    /// What was said; `-` reads it from standard input
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    text: String,
    /// What sort of chat
    #[arg(long, value_name = "TYPE", value_parser = chat_types())]
    chat_type: Option<String>,
    /// The account on the channel
    #[arg(long, value_name = "ID", value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    account: Option<String>,
    /// The thread
    #[arg(long, value_name = "ID", value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    thread: Option<String>,
    /// The name that the channel shows
    #[arg(long, value_name = "NAME", value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    display_name: Option<String>,
    /// Pushes with the same key push once
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    idempotency_key: Option<String>,
}

const ROLES: [&str; 3] = [Role::User.as_str(), Role::Assistant.as_str(), Role::System.as_str()];

/// A push that opens no session looks for what is to be archived at one position of the log in so many: to see all
/// sessions takes longer than a push.
const UPKEEP_EVERY: u64 = 64;

/// The switch of channel sessions.
pub(crate) const SWITCH: &str = "session.enabled";

fn chat_types() -> PossibleValuesParser {
    PossibleValuesParser::new(ChatType::ALL.iter().map(|sort| sort.as_str()))
}

/// Where the turn went, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    session_key: String,
    session_id: String,
    seq: u64,
    version: u64,
    id: String,
    opened: bool,
    repeated: bool,
    /// Why another part began with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<&'static str>,
    /// The command that was obeyed instead of storing a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("session push", &[Format::Table, Format::Json])?;
    must_be_on()?;
    let chat = Chat { channel: args.channel.clone(), id: args.chat.clone() };
    let role = Role::from_word(&args.role).unwrap_or(Role::User);
    let agent = store::operator()?.agent;
    let turn = Push {
        chat_type: args.chat_type.as_deref().and_then(ChatType::from_word),
        account: args.account.clone(),
        thread: args.thread.clone(),
        display_name: args.display_name.clone(),
        idempotency_key: args.idempotency_key.clone(),
        ..Push::to(Target::Chat(chat), Door::cli(), role, &typed::text(&args.text)?, agent)
    };
    turn.check()?;
    let engine = store::open(&context.global)?;
    let config = settings::get()?;
    let pushed = engine.push(&turn, &config.time_rules())?;
    if context.out.format == Format::Json {
        context.out.object(&answer(&pushed))?;
    } else {
        let Pushed { key, position, .. } = &pushed;
        let what = match (command(&pushed), pushed.repeated, pushed.opened, pushed.reset) {
            (Some(command), ..) => format!("obeyed {command}"),
            (_, true, ..) => "was pushed before".to_owned(),
            (_, _, true, _) => "opened the session".to_owned(),
            (.., Some(reason)) => format!("pushed into a new part ({reason} reset)"),
            _ => "pushed".to_owned(),
        };
        context.out.line(&format!("{} #{} {what}", one_line(key.as_str()), position.seq))?;
    }
    if pushed.opened || pushed.position.seq.0 % UPKEEP_EVERY == 0 {
        store::keep_up(&engine, &mut context.out)?;
    }
    Ok(Exit::Ok)
}

fn answer(pushed: &Pushed) -> Answer {
    Answer {
        ok: true,
        session_key: pushed.key.as_str().to_owned(),
        session_id: pushed.session_id.clone(),
        seq: pushed.position.seq.0,
        version: pushed.position.version.0,
        id: pushed.position.id.to_string(),
        opened: pushed.opened,
        repeated: pushed.repeated,
        reset: pushed.reset.map(ResetReason::as_str),
        command: command(pushed),
    }
}

/// The command that was obeyed.
pub(crate) fn command(pushed: &Pushed) -> Option<&'static str> {
    Some(match pushed.command? {
        Command::Reset => "/reset",
        Command::Send(Some(SendSwitch::On)) => "/send on",
        Command::Send(Some(SendSwitch::Off)) => "/send off",
        Command::Send(None) => "/send inherit",
    })
}

/// Channel sessions can be switched off; a push is then refused and not lost in silence.
fn must_be_on() -> Result<(), Failure> {
    let Some(held) = settings::get()?.get(SWITCH).filter(|held| held.value == false) else {
        return Ok(());
    };
    let message = format!("{SWITCH} is off ({}): channel sessions are switched off", held.origin);
    Err(Failure::new(Exit::Denied, "switched_off", message).hint("set MESSAGE_SESSIONS=1 to push"))
}
