//! The rounds that follow a send: the requester and the target answer each other, the requester first, until one of them
//! stops or the limit is reached; then the target may tell its own channel what came of it.

use crate::error::Result;
use crate::id::StreamName;
use crate::session::event::{
    Event, ExchangeEnd, ExchangeEnded, Ingress, Json, Provenance, Role, RunKind, RunRequested,
    RunStatus, Turn, run_stream,
};
use crate::session::index::Row;
use crate::session::silent::ControlWord;
use crate::session::work::Exchange;

use super::end::{Close, Said, follow_up};
use super::prompt::{self, Round, Speaker, Told};
use super::stage::Batch;
use super::way::{Carried, Way, deliver, way};

/// What comes after a reply: the next round, or the end of the exchange and the announce step.
pub(super) fn next(close: &Close<'_>, batch: &mut Batch<'_>) -> Result<()> {
    let first = close.run.follows.as_deref().unwrap_or(&close.run.run_id);
    let Some(exchange) = close.stage.work.exchange(first) else { return Ok(()) };
    let stops = match (close.end.status, close.said) {
        (RunStatus::Ok, Said::Text(_))
            if exchange.rounds >= exchange.rounds_max
                || close.stage.work.runs_in(&close.run.chain_id) >= close.rules.runs_max =>
        {
            Some(ExchangeEnd::MaxTurns)
        }
        // The word that keeps an announce silent is none in a round.
        (RunStatus::Ok, Said::Text(_) | Said::Skips(ControlWord::AnnounceSkip)) => None,
        (RunStatus::Ok, Said::Skips(ControlWord::ReplySkip)) => Some(ExchangeEnd::ReplySkip),
        (RunStatus::Ok, Said::Silent) => Some(ExchangeEnd::Silent),
        (RunStatus::Ok, Said::Nothing) => Some(ExchangeEnd::Empty),
        _ => Some(ExchangeEnd::Error),
    };
    let listener = open_row(close, other_side(close, exchange));
    let reason = match (stops, listener) {
        (None, Some(listener)) => return round(close, exchange, listener, batch),
        // Who is to answer has no session any more, or one that was put away.
        (None, None) => ExchangeEnd::Error,
        (Some(reason), _) => reason,
    };
    let ended = ExchangeEnded {
        at: None,
        run_id: exchange.run_id.clone(),
        rounds: exchange.rounds + 1,
        reason,
    };
    batch.add(&exchange.requester, &Event::ExchangeEnded(ended), close.cause)?;
    announce_step(close, exchange, batch)
}

/// Who has not spoken last.
fn other_side<'a>(close: &Close<'_>, exchange: &'a Exchange) -> &'a str {
    let target_spoke = close.run.session_key == exchange.target;
    if target_spoke { &exchange.requester } else { &exchange.target }
}

/// The other side answers.
fn round(
    close: &Close<'_>,
    exchange: &Exchange,
    listener: &Row,
    batch: &mut Batch<'_>,
) -> Result<()> {
    let run = close.run;
    let to = other_side(close, exchange);
    let speaker = row(close, &run.session_key);
    let run_id = batch.id(0).to_string();
    let number = exchange.rounds + 2;
    let text = close.end.reply.as_ref().map_or("", |(_, text)| text.as_str());
    let turn = Turn {
        provenance: Some(Provenance {
            source_session_key: Some(run.session_key.clone()),
            source_channel: speaker.map(|row| row.channel.clone()),
            source_tool: Some("sessions_send".to_owned()),
            sender: None,
            run_id: Some(run.run_id.clone()),
            round: Some(number),
        }),
        ..Turn::new(listener.session_id.clone(), Role::User, Ingress::InterSession, Json::of(text)?)
    };
    let turn = batch.add(to, &Event::Turn(turn), close.cause)?;
    let round = Round { run_id: &run_id, number, of: exchange.rounds_max + 1 };
    let request = RunRequested {
        session_key: to.to_owned(),
        session_id: listener.session_id.clone(),
        kind: RunKind::Reply,
        agent_id: listener.agent_id.clone(),
        requester_key: Some(run.session_key.clone()),
        round: Some(number),
        model: None,
        thinking: None,
        turn_seq: Some(turn.seq),
        preamble: Some(prompt::message(said_by(run, speaker), round)),
        ..follow_up(run, &run_id, &exchange.run_id)
    };
    let stream = run_stream(&run_id)?;
    batch.add(stream.as_str(), &Event::RunRequested(request), Some(turn.id))?;
    Ok(())
}

/// The target may tell its channel. Where nothing could go out there is nothing to ask it for.
fn announce_step(close: &Close<'_>, exchange: &Exchange, batch: &mut Batch<'_>) -> Result<()> {
    let run = close.run;
    let is_first = run.run_id == exchange.run_id;
    let failed = is_first && close.end.status != RunStatus::Ok;
    let says_nothing = is_first && close.said.reason().is_some();
    let target = StreamName::new(exchange.target.as_str())?;
    if failed || says_nothing {
        let carried = if failed {
            Carried::Nothing("error")
        } else {
            Carried::Reply { seq: close.reply_seq, said: close.said }
        };
        return deliver(
            close.stage,
            batch,
            close.rules,
            &target,
            (&run.run_id, carried, close.cause),
        );
    }
    let is_archived = close.stage.sessions.is_archived(&target);
    let way = way(close.stage, close.rules, &target);
    let (Way::Open(address), false) = (way, is_archived) else {
        let carried = Carried::Nothing(if is_archived { "archived" } else { "no_route" });
        return deliver(
            close.stage,
            batch,
            close.rules,
            &target,
            (&run.run_id, carried, close.cause),
        );
    };
    let Some(of_target) = row(close, &exchange.target) else { return Ok(()) };
    let run_id = batch.id(1).to_string();
    let requester = row(close, &exchange.requester);
    let last = match close.said {
        Said::Text(text) => text,
        _ => &close.earlier.last_reply,
    };
    let first_reply = if is_first { last } else { &close.earlier.first_reply };
    let from = Speaker {
        key: &exchange.requester,
        agent: requester.map_or("", |row| &row.agent_id),
        channel: requester.map_or("unknown", |row| &row.channel),
    };
    let told =
        Told { run_id: &run_id, request: &close.earlier.request, first_reply, last_reply: last };
    let channel = address.channel.as_deref().unwrap_or_default();
    let request = RunRequested {
        session_key: exchange.target.clone(),
        session_id: of_target.session_id.clone(),
        kind: RunKind::Announce,
        agent_id: of_target.agent_id.clone(),
        requester_key: Some(exchange.requester.clone()),
        timeout_seconds: close.rules.announce_timeout,
        deliver: true,
        model: None,
        thinking: None,
        preamble: Some(prompt::announce(from, channel, told)),
        ..follow_up(run, &run_id, &exchange.run_id)
    };
    let stream = run_stream(&run_id)?;
    batch.add(stream.as_str(), &Event::RunRequested(request), close.cause)?;
    Ok(())
}

/// The row of a session that was not put away.
fn open_row<'a>(close: &Close<'a>, key: &str) -> Option<&'a Row> {
    row(close, key).filter(|row| !close.stage.sessions.is_archived(&row.key))
}

fn row<'a>(close: &Close<'a>, key: &str) -> Option<&'a Row> {
    StreamName::new(key).ok().and_then(|key| close.stage.sessions.row(&key))
}

fn said_by<'a>(run: &'a crate::session::work::Job, row: Option<&'a Row>) -> Speaker<'a> {
    Speaker {
        key: &run.session_key,
        agent: &run.agent_id,
        channel: row.map_or("unknown", |row| &row.channel),
    }
}
