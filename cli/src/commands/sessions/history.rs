//! `sessions history`: what was said in a session, oldest to newest, the newest page first.

use annals_engine::clock::Timestamp;
use annals_engine::session::content;
use annals_engine::session::history::{Message, Span};
use annals_engine::session::key::SessionKey;
use annals_tools::Seat;
use annals_tools::history::sessions_history;
use annals_tools::registry::Tool;
use annals_tools::wire::{HistoryArgs, HistoryReply};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::dress;
use crate::output::text::{bytes, count, indented, many_lines, one_line};
use crate::output::{Format, Output, say};
use crate::seat;
use crate::store::Looked;

/// Read what was said in a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What was said is set in by two blanks, so that nothing in it can pass for the head of a message.

In JSON, times are milliseconds since 1970, as the session tools of agents give them.

Examples:
  annals sessions history telegram:42
  annals sessions history main -n 10 --include-tools
  annals sessions history 019a             the beginning of a key is enough")]
pub(crate) struct Args {
    /// The session: its key, the id of one of its parts, or the beginning of either
    #[arg(value_name = "KEY", value_hint = clap::ValueHint::Other)]
    key: String,
    /// How many messages at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 50)]
    limit: usize,
    /// What tools answered too
    #[arg(long)]
    include_tools: bool,
    /// All parts of the session, not only the current one
    #[arg(long)]
    all_parts: bool,
    /// The page before the one that printed this cursor
    #[arg(long, value_name = "CURSOR", value_hint = clap::ValueHint::Other)]
    cursor: Option<String>,
}

/// The reply as an object.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    #[serde(flatten)]
    reply: HistoryReply,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("sessions history", &[Format::Table, Format::Json, Format::Jsonl])?;
    let engine = seat::open(&context.global)?;
    let caller = seat::caller(&engine)?;
    let sessions = match SessionKey::parse(caller.meant_by(&args.key), &caller.agent) {
        Ok(key) if caller.seat == Seat::Operator => engine.sessions_for_history(key.stream())?,
        // Whether a session is seen depends on others.
        _ => engine.sessions()?,
    };
    let looked = Looked::over(engine, sessions, out.now)?;
    let wanted = HistoryArgs {
        session_key: args.key.clone(),
        limit: Some(if args.limit == 0 { usize::MAX } else { args.limit }),
        include_tools: args.include_tools,
        cursor: args.cursor.clone(),
    };
    let span = if args.all_parts { Span::Whole } else { Span::Part };
    let view = looked.view();
    let read = || sessions_history(&caller, &view, &wanted, span);
    let named = Some(args.key.clone());
    let reply = Tool::of("sessions_history")?.guarded(&caller, &view, named, read)?;
    print(reply, out)?;
    Ok(Exit::Ok)
}

/// Prints a page in the form that was asked for.
pub(crate) fn print(reply: HistoryReply, out: &mut Output) -> Result<(), Failure> {
    match out.format {
        Format::Json => out.object(&Answer { ok: true, reply }),
        Format::Jsonl => reply.messages.iter().try_for_each(|message| out.object(message)),
        _ => show(&reply, out),
    }
}

fn show(reply: &HistoryReply, out: &mut Output) -> Result<(), Failure> {
    if reply.damaged {
        let text = "!!!!!!!! events of this session are missing: `annals verify` says which";
        out.line(&dress(text, out.paint.loud()))?;
    }
    for message in &reply.messages {
        for line in lines(message, out) {
            out.line(&line)?;
        }
    }
    out.flush()?;
    if let Some(cursor) = &reply.cursor {
        let shown = u64::try_from(reply.messages.len()).unwrap_or(0);
        say(&format!(
            "{} before these; go back with --cursor {cursor}",
            count(reply.total.saturating_sub(shown), "message")
        ));
    }
    if !reply.other_parts.is_empty() {
        let parts = count(u64::try_from(reply.other_parts.len()).unwrap_or(0), "other part");
        say(&format!("{parts}: {}", one_line(&reply.other_parts.join(", "))));
    }
    Ok(())
}

/// A message: a line that says when, where and who, then what was said, set in so that none of it can be taken for
/// such a line, then a blank line.
fn lines(message: &Message, out: &Output) -> Vec<String> {
    let time = out.time_style().show(Timestamp::from_millis(message.timestamp));
    let sender = message.provenance.as_ref().and_then(|from| from.source_session_key.as_ref());
    let from = sender.map(|key| format!(" from {}", one_line(key))).unwrap_or_default();
    let head = dress(&format!("{}{from}", message.role), out.paint.title());
    let place = dress(&format!("#{} {time}", message.seq), out.paint.faint());
    let text = message.content.as_ref().map(content::plain).unwrap_or_default();
    let mut lines = vec![format!("{head}  {place}")];
    lines.extend(indented(&many_lines(&text)).lines().map(str::to_owned));
    if let Some(lost) = message.lost_bytes {
        lines.push(dress(&format!("[{} of content are lost]", bytes(lost)), out.paint.loud()));
    }
    lines.push(String::new());
    lines
}
