//! A part of a session: what lies between two resets. It counts turns, messages and tokens, and holds nothing that was
//! said.

use crate::id::{Seq, Version};
use crate::session::event::Role;

use super::hash;
use super::turns::PartTurns;

/// A part.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Part {
    pub(in crate::session) session_id: String,
    /// The versions of its first and last turn.
    pub(in crate::session) span: Option<(Version, Version)>,
    /// Where its last turn stands in the log.
    pub(super) last_seq: Option<Seq>,
    /// Messages, tool results counted and not.
    pub(in crate::session) messages: Messages,
    pub(super) turns: u64,
    pub(super) tokens: u64,
    pub(super) recent: Recent<u64>,
    pub(super) run_started: bool,
    pub(super) source_path: Option<String>,
    /// The agent whose run last told the id of its own session, and that id.
    pub(super) agent_session: Option<(String, String)>,
}

/// How many messages a part has: neighbouring pieces of one message are one.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Messages {
    pub(in crate::session) all: u64,
    pub(in crate::session) without_results: u64,
    pub(super) last: Option<Piece>,
    pub(super) last_without_results: Option<Piece>,
}

/// What makes neighbouring turns pieces of one message.
pub(super) type Piece = (IdHash, Role);

/// What stands for the id of a message or a run: a view of a million turns must be small. Two ids that fall together
/// within one part's recent messages, or among the open runs, would cost one message's or one run's numbers; they
/// practically never do.
pub(in crate::session) type IdHash = u64;

/// The same for the same id, in every process.
pub(in crate::session) fn id_hash(id: &str) -> IdHash {
    hash::fixed(id.as_bytes())
}

/// The messages with ids that came last, each with what is told of its largest piece: of these more pieces may come.
/// Programs write the pieces of one message next to each other, with little between; pieces that lie further apart than
/// [`Recent::MESSAGES_MAX`] messages count as two.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct Recent<T>(pub(super) Vec<(IdHash, T)>);

/// What a piece is to what was known of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Met<T> {
    /// The first of it.
    New,
    /// Larger than the largest, which is this.
    Larger(T),
    /// No larger.
    NoLarger,
}

impl<T: PartialOrd + Clone> Recent<T> {
    /// So many messages are remembered.
    pub(super) const MESSAGES_MAX: usize = 16;

    /// Takes a piece of a message, or the largest of several.
    pub(in crate::session) fn take(&mut self, message: IdHash, piece: &T) -> Met<T> {
        let known = self.0.iter_mut().rev().find(|(hash, _)| *hash == message);
        if let Some((_, known)) = known {
            return match *piece > *known {
                true => Met::Larger(std::mem::replace(known, piece.clone())),
                false => Met::NoLarger,
            };
        }
        if self.0.len() >= Self::MESSAGES_MAX {
            self.0.remove(0);
        }
        self.0.push((message, piece.clone()));
        Met::New
    }
}

impl Part {
    /// Turns of users and of the assistant; pieces of one message are one.
    pub(in crate::session) const fn turns(&self) -> u64 {
        self.turns
    }

    /// Tokens of input and output.
    #[cfg(test)]
    pub(in crate::session) const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Takes turns; `told` learns which runs have told how many tokens.
    pub(super) fn take(&mut self, turns: &PartTurns, told: &mut dyn FnMut(IdHash, u64)) {
        let (first, last) = turns.span;
        self.span = Some((self.span.map_or(first, |(known, _)| known), last));
        self.last_seq = Some(turns.last_seq);
        self.messages.take(turns);
        self.turns = self.turns.saturating_add(turns.turns);
        self.tokens = self.tokens.saturating_add(turns.tokens);
        for (run, tokens) in &turns.of_runs {
            told(*run, *tokens);
        }
        for pieces in &turns.pieces {
            let (added, new) = match self.recent.take(pieces.message, &pieces.tokens) {
                Met::New => (pieces.tokens, true),
                Met::Larger(known) => (pieces.tokens.saturating_sub(known), false),
                Met::NoLarger => (0, false),
            };
            self.turns = self.turns.saturating_add(u64::from(new && pieces.counts));
            self.tokens = self.tokens.saturating_add(added);
            if let Some(run) = pieces.run {
                told(run, added);
            }
        }
    }
}

impl Messages {
    fn take(&mut self, turns: &PartTurns) {
        self.all += turns.all.begins_after(&mut self.last);
        self.without_results += turns.without_results.begins_after(&mut self.last_without_results);
    }
}
