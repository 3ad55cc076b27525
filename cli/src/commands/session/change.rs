//! `session reset`, `patch` and `archive`: a session changed by an event.

use annals_engine::session::change::{Change, Changed};
use annals_engine::session::event::Json;
use serde::Serialize;

use super::chat::Chat;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::output::text::one_line;
use crate::store::{self, Looked};

/// Begin another part of a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The part that ends stays readable under the session's key and by its own id; `annals session resume \
--part ID` makes it current again.

Examples:
  annals session reset telegram 123456789")]
pub(crate) struct Reset {
    #[command(flatten)]
    chat: Chat,
}

/// Set fields of a session's row
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Fields are label, displayName, sendPolicy (allow or deny), model, contextTokens, thinkingLevel, \
verboseLevel, chatType and deliveryContext. A value is text, or JSON; null takes a field back. What is \
so already is not recorded again.

Examples:
  annals session patch telegram 42 sendPolicy=deny label='night shift'
  annals session patch telegram 42 sendPolicy=null")]
pub(crate) struct Patch {
    #[command(flatten)]
    chat: Chat,
    /// Fields and their values
    #[arg(value_name = "FIELD=VALUE", required = true, value_hint = clap::ValueHint::Other)]
    set: Vec<String>,
}

/// Take a session out of the lists
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It stays readable by its key and by the ids of its parts, is listed with --archived, and comes back with \
its next turn from outside. Nothing is removed.

Examples:
  annals session archive telegram 123456789")]
pub(crate) struct Archive {
    #[command(flatten)]
    chat: Chat,
}

/// What became of it, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    session_key: &'a str,
    session_id: &'a str,
    changed: bool,
    seq: Option<u64>,
}

pub(crate) fn reset(args: &Reset, context: &mut Context) -> Result<Exit, Failure> {
    run(&args.chat, &Change::Reset, "reset", context)
}

pub(crate) fn archive(args: &Archive, context: &mut Context) -> Result<Exit, Failure> {
    run(&args.chat, &Change::Archive, "archived", context)
}

pub(crate) fn patch(args: &Patch, context: &mut Context) -> Result<Exit, Failure> {
    let field = |text: &String| {
        let (field, value) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!("{text:?} is not a field with a value"))
                .hint("write FIELD=VALUE, such as sendPolicy=deny")
        })?;
        let json = match field {
            // Numbers and objects are JSON; every other field is text, however it looks.
            "contextTokens" | "deliveryContext" => Json::from_text(value)?,
            _ if value == "null" => Json::null(),
            _ => Json::of(value)?,
        };
        Ok::<_, Failure>((field.to_owned(), json))
    };
    let fields = args.set.iter().map(field).collect::<Result<_, _>>()?;
    run(&args.chat, &Change::Patch(fields), "patched", context)
}

fn run(chat: &Chat, change: &Change, done: &str, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("session", &[Format::Table, Format::Json])?;
    chat.key()?;
    // A change opens no session, and so makes no store.
    store::open_read_only(&context.global)?;
    let engine = store::open(&context.global)?;
    let looked = Looked::at(engine.clone(), context.out.now)?;
    let found = chat.find(&looked.view(), None)?;
    let changed = engine.change(&found, change)?;
    show(&changed, done, context)?;
    store::keep_up(&engine, &mut context.out)?;
    Ok(Exit::Ok)
}

/// Says what became of a change.
pub(super) fn show(changed: &Changed, done: &str, context: &mut Context) -> Result<Exit, Failure> {
    let Changed { key, session_id, seq } = changed;
    if context.out.format == Format::Json {
        context.out.object(&Answer {
            ok: true,
            session_key: key.as_str(),
            session_id,
            changed: seq.is_some(),
            seq: seq.map(|seq| seq.0),
        })?;
        return Ok(Exit::Ok);
    }
    let key = one_line(key.as_str());
    let line = match seq {
        Some(seq) => format!("{key} #{seq} {done}"),
        None => format!("{key} is so already"),
    };
    context.out.line(&line)?;
    Ok(Exit::Ok)
}
