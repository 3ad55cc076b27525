//! `session context`: what of a session goes into a prompt. It changes nothing.

use annals_engine::session::context::{
    Context as Prompt, ContextLimits, LastTrimmed, Trimmed, context, last_trimmed,
};
use annals_engine::session::event::Json;
use annals_engine::session::reset::{Expiry, Standing};
use serde::Serialize;

use super::chat::Chat;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::{count, many_lines};
use crate::output::{Format, say};
use crate::settings;
use crate::store::{self, Looked};

/// Print what of a session goes into a prompt
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The last turns of the current part, as many as session.maxTurns says; each tool call with its results. \
What is over the limit of characters is left out from the beginning, whole messages at a time; a \
question that nobody has answered and the last message stay, and are shortened where they alone are \
too long. When the session's time is over (`annals session status` says the rule) the context is empty. Nothing is \
changed by this.

Examples:
  annals session context cli default
  annals session context telegram 42 --turns 10 --limit-chars 4000
  annals session context cli default --json | jq -r '.messages[].role'")]
pub(crate) struct Args {
    #[command(flatten)]
    chat: Chat,
    /// At most so many characters; 0 for no limit
    #[arg(long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 12_000)]
    limit_chars: usize,
    /// At most so many turns, instead of what session.maxTurns says
    #[arg(long, value_name = "N", value_hint = clap::ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..))]
    turns: Option<u32>,
    /// This part of the session, instead of the current one
    #[arg(long, value_name = "ID", value_hint = clap::ValueHint::Other)]
    part: Option<String>,
}

/// The context as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    session_key: &'a str,
    session_id: &'a str,
    turns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trimmed: Option<TrimmedWire>,
    /// What the last run's context left out of the part, as its event says.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_trimmed: Option<LastTrimmedWire>,
    /// Messages that are not there for the limit of characters.
    left_out: u64,
    /// Characters that the messages lack for it.
    shortened: u64,
    damaged: bool,
    messages: Vec<MessageWire<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TrimmedWire {
    turns: u64,
    from_seq: u64,
    to_seq: u64,
}

/// What a run's context left out, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LastTrimmedWire {
    /// The event's position.
    seq: u64,
    kept: u64,
    from_seq: u64,
    to_seq: u64,
}

impl From<LastTrimmed> for LastTrimmedWire {
    fn from(LastTrimmed { seq, event }: LastTrimmed) -> Self {
        let (kept, from_seq, to_seq) = (event.kept, event.from_seq, event.to_seq);
        Self { seq: seq.0, kept, from_seq, to_seq }
    }
}

impl std::fmt::Display for LastTrimmedWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seq, kept, from_seq, to_seq } = self;
        let kept = count(*kept, "turn");
        write!(f, "the last run had {kept} and none of #{from_seq} to #{to_seq} (#{seq})")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageWire<'a> {
    seq: u64,
    role: &'static str,
    content: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    synthetic: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("session context", &[Format::Table, Format::Json])?;
    let engine = store::open_read_only(&context.global)?;
    let key = args.chat.key()?;
    let sessions = engine.sessions_for_history(key.stream())?;
    let mut looked = Looked::over(engine, sessions, out.now)?;
    if matches!(looked.standing(key.stream()), Standing::Expired { .. }) {
        // A run may be at work in it: that is seen in the whole view alone.
        looked = looked.whole()?;
    }
    let found = args.chat.find(&looked.view(), args.part.as_deref())?;
    let expiry = match looked.standing(&found.key) {
        Standing::Expired { expiry, .. } if found.part.is_none() => Some(expiry),
        _ => None,
    };
    let view = looked.view();
    let mut prompt = context_of(args, &view, &found)?;
    if expiry.is_some() {
        prompt.messages.clear();
        (prompt.turns, prompt.trimmed) = (0, None);
        (prompt.left_out, prompt.shortened) = (0, 0);
    }
    let last = match prompt.trimmed {
        Some(_) => last_trimmed(view.store, &prompt.key, &prompt.session_id)?,
        None => None,
    };
    let last = last.map(LastTrimmedWire::from);
    if out.format == Format::Json {
        out.object(&Answer { last_trimmed: last, ..answer(&prompt, expiry) })?;
    } else {
        for (index, message) in prompt.messages.iter().enumerate() {
            if index > 0 {
                out.line("")?;
            }
            out.line(&many_lines(&message.text()))?;
        }
        out.flush()?;
        if let Some(last) = last {
            say(&format!("note: {last}"));
        }
    }
    out.flush()?;
    tell(&prompt, expiry);
    Ok(Exit::Ok)
}

fn context_of(
    args: &Args,
    view: &annals_tools::View<'_>,
    found: &annals_engine::session::index::Found,
) -> Result<Prompt, Failure> {
    let turns = match args.turns {
        Some(turns) => u64::from(turns),
        None => settings::get()?.number("session.maxTurns").unwrap_or(40),
    };
    let limits = ContextLimits {
        turns: usize::try_from(turns).unwrap_or(usize::MAX),
        chars: (args.limit_chars > 0).then_some(args.limit_chars),
    };
    Ok(context(view.store, view.sessions.state(), found, &limits)?)
}

fn answer(prompt: &Prompt, expiry: Option<Expiry>) -> Answer<'_> {
    let trimmed = |t: Trimmed| TrimmedWire { turns: t.turns, from_seq: t.from.0, to_seq: t.to.0 };
    Answer {
        ok: true,
        session_key: prompt.key.as_str(),
        session_id: &prompt.session_id,
        turns: prompt.turns,
        expired_at: expiry.map(|expiry| expiry.at.as_millis()),
        trimmed: prompt.trimmed.map(trimmed),
        last_trimmed: None,
        left_out: prompt.left_out,
        shortened: prompt.shortened,
        damaged: prompt.damaged,
        messages: prompt
            .messages
            .iter()
            .map(|message| MessageWire {
                seq: message.seq.0,
                role: message.role.as_str(),
                content: message.content.as_ref(),
                call_id: message.call_id.as_deref(),
                tool_name: message.tool_name.as_deref(),
                synthetic: message.synthetic,
            })
            .collect(),
    }
}

/// What the text does not say.
fn tell(prompt: &Prompt, expiry: Option<Expiry>) {
    if let Some(expiry) = expiry {
        say(&format!("note: the session expired at {} ({})", expiry.at, expiry.reason));
    }
    if let Some(Trimmed { turns, from, to }) = prompt.trimmed {
        say(&format!("note: trimmed: {} before these, #{from} to #{to}", count(turns, "turn")));
    }
    if prompt.left_out > 0 {
        let out = count(prompt.left_out, "message");
        say(&format!("note: {out} left out for the limit of characters"));
    }
    if prompt.shortened > 0 {
        let cut = count(prompt.shortened, "character");
        say(&format!("note: {cut} left out of messages that are too long"));
    }
    if prompt.damaged {
        say("!!!!!!!! events of this session are missing: `annals verify` says which");
    }
}
