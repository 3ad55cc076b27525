//! `sessions search`: where something was said, the newest first.

use annals_engine::clock::Timestamp;
use annals_engine::session::event::Role;
use annals_tools::registry::Tool;
use annals_tools::search::sessions_search;
use annals_tools::wire::{SearchArgs, SearchReply};
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::{Cell, Column, dress};
use crate::output::text::one_line;
use crate::output::{Format, Output, say};
use crate::seat;
use crate::store::Looked;
use crate::when::{self, Bound};

/// Search what was said in all sessions, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
All words must occur in a turn, in any order and whatever the case of their letters; a word may be part \
of a longer one, so that Chinese and Japanese are searched like everything else. Double quotes keep \
words together. What tools answered is searched too.

Examples:
  annals sessions search ontology
  annals sessions search '\"deploy failed\" staging' --session telegram:42 \\
    --since 7d
  annals sessions search 天气 --role user --json | jq -r '.results[].snippet'")]
pub(crate) struct Args {
    /// The words
    #[arg(value_name = "QUERY", required = true, value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    query: Vec<String>,
    /// Only this session: its key, the id of one of its parts, or the beginning of either
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::Other)]
    session: Option<String>,
    /// Only turns of this role
    #[arg(long, value_name = "ROLE", value_parser = roles())]
    role: Option<String>,
    /// Only what happened at this time or later
    #[arg(long, value_name = "TIME", value_hint = clap::ValueHint::Other)]
    since: Option<String>,
    /// Only what happened before this time
    #[arg(long, value_name = "TIME", value_hint = clap::ValueHint::Other)]
    until: Option<String>,
    /// How many turns at most; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 10)]
    limit: usize,
}

fn roles() -> PossibleValuesParser {
    PossibleValuesParser::new(Role::ALL.iter().map(|role| role.as_str()))
}

/// The reply as an object.
#[derive(Serialize)]
struct Answer {
    ok: bool,
    #[serde(flatten)]
    reply: SearchReply,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("sessions search", &[Format::Table, Format::Json, Format::Jsonl])?;
    let wanted = SearchArgs {
        query: args.query.join(" "),
        limit: Some(if args.limit == 0 { usize::MAX } else { args.limit }),
        session_key: args.session.clone(),
        role: args.role.clone(),
        since: instant("--since", args.since.as_deref(), out)?,
        until: instant("--until", args.until.as_deref(), out)?,
    };
    let engine = seat::open(&context.global)?;
    let caller = seat::caller(&engine)?;
    let looked = Looked::at(engine, out.now)?;
    let view = looked.view();
    let search = || sessions_search(&caller, &view, &wanted);
    let named = args.session.clone();
    let reply = Tool::of("sessions_search")?.guarded(&caller, &view, named, search)?;
    match out.format {
        Format::Json => out.object(&Answer { ok: true, reply })?,
        Format::Jsonl => reply.results.iter().try_for_each(|hit| out.object(hit))?,
        _ => table(&reply, out)?,
    }
    Ok(Exit::Ok)
}

/// An instant in milliseconds.
fn instant(flag: &str, text: Option<&str>, out: &Output) -> Result<Option<i64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match when::parse(text, out.now, &out.zone) {
        Some(Bound::Time(at)) => Ok(Some(at.as_millis())),
        Some(Bound::Seq(_)) | None => {
            Err(Failure::usage(format!("{flag} {text:?} is not a time")).hint(when::FORMS))
        }
    }
}

fn table(reply: &SearchReply, out: &mut Output) -> Result<(), Failure> {
    let columns = [
        Column::fixed("SEQ").right(),
        Column::shrinking("SESSION", 12),
        Column::fixed("ROLE").rank(1),
        Column::fixed("TIME").rank(2),
        Column::shrinking("TEXT", 20),
    ];
    let rows: Vec<Vec<Cell>> = reply
        .results
        .iter()
        .map(|hit| {
            vec![
                format!("#{}", hit.seq).into(),
                Cell::styled(one_line(&hit.key), out.paint.session(&hit.key)),
                hit.role.as_str().into(),
                out.time_style().show(Timestamp::from_millis(hit.time)).into(),
                one_line(&hit.snippet).into(),
            ]
        })
        .collect();
    out.table(&columns, &rows)?;
    out.flush()?;
    if reply.damaged {
        let text = "!!!!!!!! events are missing in what was searched: `annals verify` says which";
        say(&dress(text, out.paint.loud()));
    }
    if reply.results.is_empty() {
        say("nothing was found");
    } else if reply.truncated {
        say("there may be older ones: -n N shows more, --until TIME goes back");
    }
    Ok(())
}
