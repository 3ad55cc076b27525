//! Turns as they grow: rows of one message that follow each other are one turn.

use std::collections::HashMap;

use annals_engine::session::event::{Json, Role, Tokens};

use super::ReplyTurn;
use super::fields::{storable, string};

/// The turns told so far.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turns: Vec<Growing>,
    /// The tools by the calls that were opened.
    names: HashMap<String, String>,
}

/// A turn whose content may still grow.
#[derive(Debug)]
pub(super) struct Growing {
    turn: ReplyTurn,
    blocks: Vec<Json>,
    text: String,
}

impl Growing {
    pub(super) fn new(role: Role) -> Self {
        let turn = ReplyTurn {
            role,
            message_id: None,
            calls: Vec::new(),
            call_id: None,
            tool_name: None,
            is_error: None,
            model: None,
            tokens: None,
            content: Json::null(),
        };
        Self { turn, blocks: Vec::new(), text: String::new() }
    }

    /// All of it but its content.
    pub(super) fn turn_mut(&mut self) -> &mut ReplyTurn {
        &mut self.turn
    }

    /// Adds text. Of a turn without blocks it is the content as one string.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Adds a block as it was spelled.
    pub(super) fn block(mut self, block: &Json) -> Self {
        self.blocks.push(storable(block));
        self
    }

    fn whole(self) -> ReplyTurn {
        let Self { mut turn, blocks, text } = self;
        turn.content = match blocks.is_empty() {
            true => string(&text),
            false => Json::of(&blocks).unwrap_or_else(|_| string(&text)),
        };
        turn
    }
}

impl Turns {
    /// Adds a turn; to the last one, when both are pieces of one message.
    pub(super) fn push(&mut self, next: Growing) {
        let same = |last: &Growing| {
            last.turn.role == Role::Assistant
                && next.turn.role == Role::Assistant
                && last.turn.message_id.is_some()
                && last.turn.message_id == next.turn.message_id
        };
        let Some(last) = self.turns.last_mut().filter(|last| same(last)) else {
            self.turns.push(next);
            return;
        };
        last.turn.calls.extend(next.turn.calls);
        last.turn.model = next.turn.model.or(last.turn.model.take());
        last.turn.tokens = larger(last.turn.tokens.take(), next.turn.tokens);
        last.blocks.extend(next.blocks);
        last.text.push_str(&next.text);
    }

    /// Notes the tool that a call is of.
    pub(super) fn called(&mut self, call: &str, tool: &str) {
        self.names.insert(call.to_owned(), tool.to_owned());
    }

    /// The tool that a call was of.
    pub(super) fn tool_of(&self, call: &str) -> Option<String> {
        self.names.get(call).cloned()
    }

    pub(super) fn finish(self) -> Vec<ReplyTurn> {
        self.turns.into_iter().map(Growing::whole).collect()
    }
}

/// The larger of two counts of one message.
fn larger(one: Option<Tokens>, other: Option<Tokens>) -> Option<Tokens> {
    let size = |t: &Tokens| {
        [Some(t.r#in), Some(t.out), t.cache_read, t.cache_write]
            .into_iter()
            .flatten()
            .fold(0_u64, u64::saturating_add)
    };
    match (one, other) {
        (Some(one), Some(other)) if size(&one) > size(&other) => Some(one),
        (one, other) => other.or(one),
    }
}
