//! `session push`: one turn into the session of a chat, which opens with its first turn. It starts no run.

use std::io::Read;

use annals_engine::session::event::{ChatType, Role};
use annals_engine::session::push::{Push, Pushed, Pusher, push};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::output::text::one_line;
use crate::store;

/// Append a turn to the session of a chat
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The turn is on stable storage when this returns, and no agent is started by it. A user's turn counts \
as one from outside; an assistant's and a system's do not. What the options say of the chat is kept \
when the session opens, and recorded as a change when it is open and says something else. From \
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

/// The switch of channel sessions, and its older name.
const SWITCH: [&str; 2] = ["MESSAGE_SESSIONS", "HERMES_SESSIONS"];

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
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("session push", &[Format::Table, Format::Json])?;
    must_be_on()?;
    let turn = Push {
        channel: args.channel.clone(),
        chat: args.chat.clone(),
        role: Role::from_word(&args.role).unwrap_or(Role::User),
        text: text(args)?,
        agent: store::operator()?.agent,
        chat_type: args.chat_type.as_deref().and_then(ChatType::from_word),
        account: args.account.clone(),
        thread: args.thread.clone(),
        display_name: args.display_name.clone(),
        idempotency_key: args.idempotency_key.clone(),
    };
    drop(Pusher::new(&turn, context.out.now)?);
    let engine = store::open(&context.global)?;
    let pushed = push(engine.store(), &turn, context.out.now)?;
    if context.out.format == Format::Json {
        context.out.object(&answer(&pushed))?;
    } else {
        let Pushed { key, position, .. } = &pushed;
        let what = match (pushed.repeated, pushed.opened) {
            (true, _) => "was pushed before",
            (_, true) => "opened the session",
            _ => "pushed",
        };
        context.out.line(&format!("{} #{} {what}", one_line(key.as_str()), position.seq))?;
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
    }
}

fn text(args: &Args) -> Result<String, Failure> {
    if args.text != "-" {
        return Ok(args.text.clone());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| {
        Failure::usage(format!("standard input cannot be read as text: {error}"))
    })?;
    let said = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let said = said.strip_suffix('\n').map_or(said, |said| said.strip_suffix('\r').unwrap_or(said));
    if said.is_empty() {
        return Err(Failure::usage("standard input is empty: the turn would say nothing"));
    }
    Ok(said.to_owned())
}

/// Channel sessions can be switched off; a push is then refused and not lost in silence.
fn must_be_on() -> Result<(), Failure> {
    for name in SWITCH {
        let value = std::env::var_os(name).unwrap_or_default();
        match value.to_str() {
            Some("") => {}
            Some("1") => return Ok(()),
            Some("0") => {
                let message = format!("{name} is 0: channel sessions are switched off");
                return Err(Failure::new(Exit::Denied, "switched_off", message)
                    .hint(format!("set {name}=1 to push")));
            }
            _ => {
                let message = format!("{name} is {value:?}");
                return Err(Failure::usage(message).hint("it is 1 for on or 0 for off"));
            }
        }
    }
    Ok(())
}
