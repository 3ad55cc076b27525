//! The window itself: messages in, the last turns out, as units: a message together with the results of its calls.

use std::collections::HashMap;

use crate::id::Seq;
use crate::session::event::Role;
use crate::session::history::Message;

use super::ContextMessage;

/// What is left of messages.
pub(super) struct Window {
    /// Messages, each together with the results of the calls that it opens.
    pub(super) units: Vec<Vec<ContextMessage>>,
    /// Which of them is the question that nobody has answered.
    pub(super) question: Option<usize>,
    /// The position of the last message that was left out.
    pub(super) left_out_to: Option<Seq>,
}

/// A message with the results of the calls that it opens.
struct Unit {
    head: Message,
    /// Call and result, in the order of the calls.
    results: Vec<(String, Option<Message>)>,
}

/// How many turns messages are.
pub(super) fn turns_in(messages: &[Message]) -> usize {
    messages.iter().filter(|message| is_turn(message.role)).count()
}

/// Whether the last turn of a user is among the messages, or an answer that makes it dispensable.
pub(super) fn holds_the_question(messages: &[Message]) -> bool {
    messages.iter().any(|message| message.role == Role::User || is_answer(message))
}

impl Window {
    /// The last turns, at most so many, of messages that end where the part ends.
    pub(super) fn of(messages: Vec<Message>, max_turns: usize) -> Self {
        let units = paired(messages);
        let counted: Vec<usize> = (0..units.len())
            .filter(|index| units.get(*index).is_some_and(|unit| is_turn(unit.head.role)))
            .collect();
        let over = counted.len().saturating_sub(max_turns);
        let begin = match over {
            0 => 0,
            _ => counted.get(over).copied().unwrap_or(units.len()),
        };
        let question = unanswered(&units);
        // The question takes the place of the oldest turn of the window, which goes with everything up to the next.
        let begin_behind_question = match question.filter(|index| *index < begin) {
            None => begin,
            Some(_) => counted.get(over + 1).copied().unwrap_or(units.len()),
        };
        let mut kept = Self { units: Vec::new(), question: None, left_out_to: None };
        for (index, unit) in units.into_iter().enumerate() {
            let asks = question == Some(index);
            if index >= begin_behind_question || asks {
                kept.question = kept.question.or(asks.then_some(kept.units.len()));
                kept.units.push(unit.shown());
            } else {
                kept.left_out_to = Some(Seq(unit.last_seq()));
            }
        }
        kept
    }
}

impl Unit {
    /// As messages of a context.
    fn shown(self) -> Vec<ContextMessage> {
        let seq = Seq(self.head.seq);
        let result = |(call, result): (String, Option<Message>)| match result {
            Some(result) => ContextMessage { call_id: Some(call), ..ContextMessage::of(result) },
            None => ContextMessage::interrupted(seq, &call),
        };
        let results: Vec<_> = self.results.into_iter().map(result).collect();
        std::iter::once(ContextMessage::of(self.head)).chain(results).collect()
    }

    fn last_seq(&self) -> u64 {
        let results = self.results.iter().filter_map(|(_, result)| Some(result.as_ref()?.seq));
        results.fold(self.head.seq, u64::max)
    }
}

/// Puts results to the calls that they answer. A result that names no call answers the oldest open call of the message
/// with calls that came last.
fn paired(messages: Vec<Message>) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut last_caller = None;
    for message in messages {
        if message.role == Role::ToolResult {
            let caller = match &message.tools.answers {
                Some(call) => open.get(call).copied(),
                None => last_caller,
            };
            if let Some(unit) = caller.and_then(|index| units.get_mut(index)) {
                unit.answer(message);
            }
            continue;
        }
        let results: Vec<_> = message.tools.calls.iter().map(|call| (call.clone(), None)).collect();
        if !results.is_empty() {
            last_caller = Some(units.len());
            open.extend(results.iter().map(|(call, _)| (call.clone(), units.len())));
        }
        units.push(Unit { head: message, results });
    }
    units
}

impl Unit {
    fn answer(&mut self, result: Message) {
        let named = result.tools.answers.as_deref();
        let free = self
            .results
            .iter_mut()
            .find(|(call, known)| known.is_none() && named.is_none_or(|name| name == call));
        if let Some((_, place)) = free {
            *place = Some(result);
        }
    }
}

/// The last turn of a user, when no answer follows it.
fn unanswered(units: &[Unit]) -> Option<usize> {
    let question = units.iter().rposition(|unit| unit.head.role == Role::User)?;
    let answered = units.get(question..)?.iter().any(|unit| is_answer(&unit.head));
    (!answered).then_some(question)
}

/// The assistant's turn that calls no tool is its answer.
fn is_answer(message: &Message) -> bool {
    message.role == Role::Assistant && message.tools.calls.is_empty()
}

/// Whether a message counts as a turn.
pub(super) fn is_turn(role: Role) -> bool {
    matches!(role, Role::User | Role::Assistant)
}
