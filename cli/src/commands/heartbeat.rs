//! `heartbeat status`: channel sessions and sub-agents, counted live.

use annals_engine::session::index::{Archived, ListQuery, Row, Shape, Status};
use annals_engine::session::key::{Parts, SessionKey};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::output::text::grouped;
use crate::store::{self, Looked};

/// Count channel sessions and sub-agents
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    Status(Args),
}

/// Count channel sessions and sub-agents
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annals heartbeat status
  annals heartbeat status --json | jq .subagents.running")]
pub(crate) struct Args {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    channel_sessions: Sessions,
    subagents: Subagents,
}

#[derive(Serialize)]
struct Sessions {
    total: usize,
    expired: usize,
    damaged: usize,
}

#[derive(Serialize)]
struct Subagents {
    total: usize,
    running: usize,
    waiting: usize,
    ended: usize,
    archived: usize,
}

pub(crate) fn run(verb: &Verb, context: &mut Context) -> Result<Exit, Failure> {
    let Verb::Status(Args {}) = verb;
    let out = &mut context.out;
    out.only("heartbeat status", &[Format::Table, Format::Json])?;
    let looked = Looked::at(store::open_read_only(&context.global)?, out.now)?;
    let answer = count(&looked);
    if out.format == Format::Json {
        out.object(&answer)?;
        return Ok(Exit::Ok);
    }
    let n = |n: usize| grouped(u64::try_from(n).unwrap_or(u64::MAX));
    let Sessions { total, expired, damaged } = answer.channel_sessions;
    out.line(&format!(
        "channel sessions  {}: {} expired, {} damaged",
        n(total),
        n(expired),
        n(damaged)
    ))?;
    let Subagents { total, running, waiting, ended, archived } = answer.subagents;
    out.line(&format!(
        "sub-agents        {}: {} running, {} waiting, {} ended, {} archived",
        n(total),
        n(running),
        n(waiting),
        n(ended),
        n(archived)
    ))?;
    Ok(Exit::Ok)
}

fn count(looked: &Looked) -> Answer {
    let view = looked.view();
    let state = view.sessions.state();
    let rows = |shape, archived| -> Vec<Row> {
        let query = ListQuery { shape, archived, ..ListQuery::default() };
        let rows = state.list(&query, &view.lens).rows.into_iter();
        rows.filter_map(|row| state.row_at(&row.key, &view.lens)).collect()
    };
    let chats = rows(Shape::ChannelChat, Archived::Without);
    let is_child = |row: &Row| {
        let key = SessionKey::of_stream(&row.key);
        matches!(key.as_ref().map(SessionKey::parts), Some(Parts::Subagent { .. }))
    };
    let children: Vec<Row> =
        rows(Shape::Any, Archived::With).into_iter().filter(is_child).collect();
    let of = |rows: &[Row], status: Status| rows.iter().filter(|row| row.status == status).count();
    let (running, waiting) = (of(&children, Status::Running), of(&children, Status::Waiting));
    let archived = of(&children, Status::Archived);
    Answer {
        ok: true,
        channel_sessions: Sessions {
            total: chats.len(),
            expired: of(&chats, Status::Expired),
            damaged: of(&chats, Status::Damaged),
        },
        subagents: Subagents {
            total: children.len(),
            running,
            waiting,
            ended: children.len() - running - waiting - archived,
            archived,
        },
    }
}
