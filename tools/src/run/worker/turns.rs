//! What a runner tells as the log takes it.

use annals_engine::Error;
use annals_engine::session::event::{Ingress, Json, Role, Turn};
use annals_engine::session::run::End;

use super::super::dialect::ReplyTurn;
use super::super::runner::Outcome;

/// The most turns, and about the most bytes of them, that stand in the batch of an end.
const TURNS_MAX: usize = 200;
const BYTES_MAX: usize = 2 << 20;

/// The end of a run that a runner has made.
pub(super) fn end(outcome: Outcome) -> End {
    let Outcome { status, reason, exit, signal, runtime, reply, detail, stderr_tail } = outcome;
    let turns: Vec<Turn> = reply.turns.into_iter().map(turn).collect();
    let text = reply.text.filter(|_| !turns.is_empty());
    let at = turns.len().saturating_sub(1);
    End {
        status,
        reason: reason.map(str::to_owned),
        exit,
        signal,
        runtime_ms: u64::try_from(runtime.as_millis()).unwrap_or(u64::MAX),
        tokens: reply.tokens,
        cost_micros: reply.cost_micros,
        agent_session_id: reply.agent_session_id,
        detail,
        stderr_tail,
        turns,
        reply: text.map(|text| (at, text)),
    }
}

fn turn(told: ReplyTurn) -> Turn {
    Turn {
        message_id: told.message_id,
        calls: told.calls,
        call_id: told.call_id,
        tool_name: told.tool_name,
        is_error: told.is_error,
        model: told.model,
        tokens: told.tokens,
        ..Turn::new("", told.role, Ingress::Internal, told.content)
    }
}

/// Takes the first of very many turns out of an end, in batches.
pub(super) fn ahead(end: &mut End) -> Vec<Vec<Turn>> {
    let size = |turn: &Turn| turn.content.as_ref().map_or(0, |content| content.as_str().len());
    let (mut kept, mut bytes) = (0, 0_usize);
    for turn in end.turns.iter().rev() {
        bytes = bytes.saturating_add(size(turn));
        if kept > 0 && (kept >= TURNS_MAX || bytes > BYTES_MAX) {
            break;
        }
        kept += 1;
    }
    let first = end.turns.len() - kept;
    let early: Vec<Turn> = end.turns.drain(..first).collect();
    if let Some((at, _)) = &mut end.reply {
        *at = at.saturating_sub(first);
    }
    let mut batches: Vec<Vec<Turn>> = Vec::new();
    let mut bytes = 0;
    for turn in early {
        bytes += size(&turn);
        match batches.last_mut() {
            Some(last) if last.len() < TURNS_MAX && bytes <= BYTES_MAX => last.push(turn),
            _ => {
                bytes = size(&turn);
                batches.push(vec![turn]);
            }
        }
    }
    batches
}

/// An end whose turns cannot be stored: the beginning of the reply, and why there is no more.
pub(super) fn without_content(mut end: End, error: &Error) -> End {
    let note = format!("what it said could not be stored: {error}");
    end.detail = Some(match end.detail {
        Some(detail) => format!("{detail}; {note}"),
        None => note,
    });
    end.turns.clear();
    end.stderr_tail = None;
    if let Some((at, text)) = &mut end.reply {
        text.truncate(text.floor_char_boundary(REPLY_LEAST));
        *at = 0;
        let content = Json::of(text).unwrap_or_else(|_| Json::null());
        end.turns.push(Turn::new("", Role::Assistant, Ingress::Internal, content));
    }
    end
}

/// So many bytes of a reply are kept that cannot be stored whole.
const REPLY_LEAST: usize = 64 << 10;
