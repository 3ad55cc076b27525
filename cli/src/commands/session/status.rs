//! `session status`: whether channel sessions are on, what there is, and which limits are in force.

use annals_engine::clock::Timestamp;
use annals_engine::session::context::last_trimmed;
use annals_engine::session::event::ResetRule;
use annals_engine::session::index::{Archived, ListQuery, Row, Shape, Status};
use annals_engine::session::policy::{Outbound, SendAction};
use serde::Serialize;

use super::chat::Chat;
use super::context::LastTrimmedWire;
use crate::commands::Context;
use crate::commands::watch::Trouble;
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::output::text::{count, grouped, one_line};
use crate::settings;
use crate::store::{self, Looked};

/// Show what there is of channel sessions, and the limits in force
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With a channel and a chat: how that session stands, whether its time is over, and what a reset waits for.

Examples:
  annals session status
  annals session status telegram 42
  annals session status --json | jq .deferred")]
pub(crate) struct Args {
    /// The channel
    #[arg(requires = "chat", value_hint = clap::ValueHint::Other)]
    channel: Option<String>,
    /// The chat on that channel
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    chat: Option<String>,
}

/// The state of all, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    enabled: bool,
    store: String,
    sessions: usize,
    channel_sessions: usize,
    archived: usize,
    expired: usize,
    max_turns: u64,
    reset: ResetRule,
    /// Resets that wait for a run.
    deferred: Vec<Deferred>,
    /// Sessions over limits that are not enforced.
    over_limits: usize,
    /// Watch rules that do not look as they should.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watch_trouble: Vec<Trouble>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deferred {
    session_key: String,
    run_id: String,
}

/// Whether anything may go out of a session, and what says so.
#[derive(Serialize)]
struct Sending {
    action: SendAction,
    by: String,
}

/// The state of one, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OneAnswer {
    ok: bool,
    #[serde(flatten)]
    row: Row,
    reset: ResetRule,
    max_turns: u64,
    /// Turns of the part that a context leaves out.
    trimmed: u64,
    /// What the last run's context left out of the part, as its event says.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_trimmed: Option<LastTrimmedWire>,
    sending: Sending,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("session status", &[Format::Table, Format::Json])?;
    match args.channel.as_ref().zip(args.chat.as_ref()) {
        Some((channel, chat)) => one(&Chat::new(channel, chat), context),
        None => all(context),
    }
}

fn all(context: &mut Context) -> Result<Exit, Failure> {
    let config = settings::get()?;
    let out = &mut context.out;
    let looked = Looked::at(store::open_read_only(&context.global)?, out.now)?;
    let view = looked.view();
    let state = view.sessions.state();
    let list = |shape, archived| {
        state.list(&ListQuery { shape, archived, ..ListQuery::default() }, &view.lens).rows
    };
    let rows: Vec<Row> = list(Shape::Any, Archived::Without)
        .into_iter()
        .filter_map(|row| state.row_at(&row.key, &view.lens))
        .collect();
    let deferred = |row: &Row| {
        let run_id = row.reset_deferred_by.clone()?;
        Some(Deferred { session_key: row.key.to_string(), run_id })
    };
    let limits = config.limits();
    let answer = Answer {
        ok: true,
        enabled: config.is_on("session.enabled"),
        store: store::folder(&context.global)?.display().to_string(),
        sessions: rows.len(),
        channel_sessions: list(Shape::ChannelChat, Archived::Without).len(),
        archived: list(Shape::Any, Archived::Only).len(),
        expired: rows.iter().filter(|row| row.status == Status::Expired).count(),
        max_turns: config.number("session.maxTurns").unwrap_or(40),
        reset: looked.channel_rule().to_event(),
        deferred: rows.iter().filter_map(deferred).collect(),
        over_limits: if limits.enforce { 0 } else { state.over_limits(&view.lens, limits).len() },
        watch_trouble: Trouble::read(view.store)?,
    };
    if out.format == Format::Json {
        out.object(&answer)?;
        return Ok(Exit::Ok);
    }
    out.line(&format!("channel sessions  {}", if answer.enabled { "on" } else { "off" }))?;
    out.line(&format!("store             {}", one_line(&answer.store)))?;
    let number = |n: usize| grouped(u64::try_from(n).unwrap_or(u64::MAX));
    out.line(&format!(
        "sessions          {} ({} of channels), {} expired, {} archived",
        number(answer.sessions),
        number(answer.channel_sessions),
        number(answer.expired),
        number(answer.archived)
    ))?;
    out.line(&format!("context           at most {}", count(answer.max_turns, "turn")))?;
    out.line(&format!("reset             {}", sentence(&answer.reset)))?;
    for Deferred { session_key, run_id } in &answer.deferred {
        let (key, run) = (one_line(session_key), one_line(run_id));
        out.line(&format!("{key}: reset deferred by run {run}"))?;
    }
    if answer.over_limits > 0 {
        let over = number(answer.over_limits);
        out.line(&format!("maintenance       {over} over the limits, which are not enforced"))?;
    }
    for trouble in &answer.watch_trouble {
        out.line(&format!("watch             {}", trouble.sentence()))?;
    }
    Ok(Exit::Ok)
}

fn one(chat: &Chat, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    let looked = Looked::at(store::open_read_only(&context.global)?, out.now)?;
    let view = looked.view();
    let found = chat.find(&view, None)?;
    let state = view.sessions.state();
    let (Some(mut row), Some(rule)) =
        (state.row_at(&found.key, &view.lens), state.reset_rule(&found.key, view.lens.rules))
    else {
        return Err(Failure::not_found(format!("there is no session {}", found.key)));
    };
    state.locate(&mut row, &view.store.files()?);
    let max_turns = settings::get()?.number("session.maxTurns").unwrap_or(40);
    let trimmed = row.turns.saturating_sub(max_turns);
    let reset = rule.to_event();
    let sending = sending(&row)?;
    let last_trimmed = match trimmed {
        0 => None,
        _ => last_trimmed(view.store, &row.key, &row.session_id)?.map(LastTrimmedWire::from),
    };
    if out.format == Format::Json {
        out.object(&OneAnswer { ok: true, row, reset, max_turns, trimmed, last_trimmed, sending })?;
        return Ok(Exit::Ok);
    }
    let time = |at: Timestamp| out.time_style().show(at);
    let mut lines = vec![
        format!("session   {}", one_line(row.key.as_str())),
        format!("status    {}", row.status),
        format!("part      {} of {}", one_line(&row.session_id), grouped(row.parts)),
        format!("turns     {}, {trimmed} of them left out of the context", grouped(row.turns)),
        format!("updated   {}", time(row.updated_at)),
        format!("reset     {}", sentence(&reset)),
        format!("sending   {} (by {})", sending.action, sending.by),
    ];
    lines.extend(last_trimmed.map(|last| format!("trimmed   {last}")));
    if let Some(at) = row.expired_at {
        lines.push(format!("expired   {}", time(at)));
    }
    if let Some(run) = &row.reset_deferred_by {
        lines.push(format!("reset deferred by run {}", one_line(run)));
    }
    lines.iter().try_for_each(|line| out.line(line))?;
    Ok(Exit::Ok)
}

/// What the send policy in force says of a session.
fn sending(row: &Row) -> Result<Sending, Failure> {
    let own = row.send_policy.as_deref().and_then(SendAction::from_word);
    let (key, channel) = (row.key.as_str(), row.channel.as_str());
    let policy = settings::get()?.send_policy();
    let verdict = policy.decide(Outbound { key, channel, chat_type: row.chat_type, own });
    Ok(Sending { action: verdict.action, by: verdict.by.to_string() })
}

/// A rule in words.
fn sentence(rule: &ResetRule) -> String {
    let daily = rule.at_hour.map(|hour| {
        format!("daily at {hour}:00 {}", rule.time_zone.as_deref().unwrap_or_default())
    });
    let idle = rule.idle_minutes.filter(|minutes| *minutes > 0);
    let idle =
        idle.map(|minutes| format!("after {} without a human turn", count(minutes, "minute")));
    let said: Vec<String> = daily.into_iter().chain(idle).collect();
    if said.is_empty() { "never".to_owned() } else { said.join(", or ") }
}
