//! Turns of one stream, summed up: what they do to a session, whatever the session is like when they come. Summing up
//! reads nothing but heads.

use crate::clock::Timestamp;
use crate::id::Version;
use crate::session::event::{Ingress, Role, TurnHead};

use super::part::{MessageHash, Piece, message_hash};

/// Turns that follow each other in one stream, with no other event of it between.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) versions: Versions,
    /// When the first of them happened.
    pub(super) first_at: Timestamp,
    /// The latest time at which one happened.
    pub(super) last_at: Timestamp,
    /// The latest time at which a person wrote.
    pub(super) human_at: Option<Timestamp>,
    /// The channel that a person last wrote on.
    pub(super) channel: Option<Box<str>>,
    /// The model of the last answer that names one.
    pub(super) model: Option<Box<str>>,
    /// What went into each part, in the order in which the parts came up.
    pub(super) parts: Vec<PartTurns>,
}

/// The versions of some events of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Versions {
    pub(super) first: Version,
    pub(super) last: Version,
    /// Whether none is missing between.
    pub(super) dense: bool,
}

impl Versions {
    pub(super) const fn of(version: Version) -> Self {
        Self { first: version, last: version, dense: true }
    }

    pub(super) fn push(&mut self, version: Version) {
        self.dense &= version == self.last.next();
        self.last = version;
    }
}

/// Turns of one part.
#[derive(Debug)]
pub(super) struct PartTurns {
    pub(super) session_id: Box<str>,
    pub(super) span: (Version, Version),
    pub(super) all: Begins,
    pub(super) without_results: Begins,
    /// Turns of users and assistants that name no message.
    pub(super) turns: u64,
    /// Tokens of turns that name no message.
    pub(super) tokens: u64,
    /// Which of these tokens runs have told.
    pub(super) of_runs: Vec<(Box<str>, u64)>,
    /// Turns that name a message, in order; neighbours of one message and run are one.
    pub(super) pieces: Vec<Pieces>,
}

/// Pieces of a message.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) message: MessageHash,
    /// Whether the first of them counts as a turn when the message is new.
    pub(super) counts: bool,
    /// The tokens of the largest.
    pub(super) tokens: u64,
    pub(super) run: Option<Box<str>>,
}

/// How many messages begin with some turns. Whether the first one does depends on what came before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begins {
    /// The pieces that the first and the last turn are; `None` inside for one that is a message of its own.
    ends: Option<(Option<Piece>, Option<Piece>)>,
    inside: u64,
}

impl Begins {
    fn push(&mut self, piece: Option<Piece>) {
        match &mut self.ends {
            Some((_, last)) => {
                self.inside += u64::from(begins(*last, piece));
                *last = piece;
            }
            none => *none = Some((piece, piece)),
        }
    }

    /// How many messages begin when `last` came before; `last` is then the last of these.
    pub(super) fn begins_after(&self, last: &mut Option<Piece>) -> u64 {
        let Some((first, end)) = self.ends else { return 0 };
        let count = u64::from(begins(*last, first)) + self.inside;
        *last = end;
        count
    }
}

/// Whether a piece begins a message and does not go on with the last one.
fn begins(last: Option<Piece>, piece: Option<Piece>) -> bool {
    piece.is_none() || last != piece
}

impl Turns {
    /// One turn.
    pub(super) fn of(head: &TurnHead<'_>, version: Version, at: Timestamp) -> Self {
        let mut turns = Self {
            versions: Versions::of(version),
            first_at: at,
            last_at: at,
            human_at: None,
            channel: None,
            model: None,
            parts: Vec::with_capacity(1),
        };
        turns.take(head, version, at);
        turns
    }

    /// Adds the next turn.
    pub(super) fn push(&mut self, head: &TurnHead<'_>, version: Version, at: Timestamp) {
        self.versions.push(version);
        self.take(head, version, at);
    }

    fn take(&mut self, head: &TurnHead<'_>, version: Version, at: Timestamp) {
        self.last_at = self.last_at.max(at);
        if head.role == Role::User && head.from == Ingress::External {
            self.human_at = self.human_at.max(Some(at));
            let from = head.provenance.as_ref().and_then(|p| p.source_channel.as_deref());
            set(&mut self.channel, from);
        }
        if head.role == Role::Assistant {
            set(&mut self.model, head.model.as_deref());
        }
        let known = self.parts.iter_mut().rfind(|part| *part.session_id == *head.session_id);
        match known {
            Some(part) => part.push(head, version),
            None => {
                let mut part = PartTurns::new(&head.session_id, version);
                part.push(head, version);
                self.parts.push(part);
            }
        }
    }
}

/// Sets a text that mostly is the same already; `None` leaves it.
fn set(text: &mut Option<Box<str>>, new: Option<&str>) {
    if new.is_some() && text.as_deref() != new {
        *text = new.map(Into::into);
    }
}

impl PartTurns {
    fn new(session_id: &str, version: Version) -> Self {
        Self {
            session_id: session_id.into(),
            span: (version, version),
            all: Begins::default(),
            without_results: Begins::default(),
            turns: 0,
            tokens: 0,
            of_runs: Vec::new(),
            pieces: Vec::new(),
        }
    }

    fn push(&mut self, head: &TurnHead<'_>, version: Version) {
        self.span.1 = version;
        let message = message_hash(head);
        let piece = message.map(|id| (id, head.role));
        self.all.push(piece);
        if head.role != Role::ToolResult {
            self.without_results.push(piece);
        }
        let counts = matches!(head.role, Role::User | Role::Assistant);
        let tokens = head.tokens.as_ref().map_or(0, |t| t.r#in.saturating_add(t.out));
        let run = head.run_id.as_deref();
        match message {
            Some(message) => self.push_piece(message, counts, tokens, run),
            None => {
                self.turns += u64::from(counts);
                self.tokens = self.tokens.saturating_add(tokens);
                if let Some(run) = run {
                    self.told(run, tokens);
                }
            }
        }
    }

    fn push_piece(&mut self, message: MessageHash, counts: bool, tokens: u64, run: Option<&str>) {
        match self.pieces.last_mut() {
            Some(last) if last.message == message && last.run.as_deref() == run => {
                last.tokens = last.tokens.max(tokens);
            }
            _ => self.pieces.push(Pieces { message, counts, tokens, run: run.map(Into::into) }),
        }
    }

    fn told(&mut self, run: &str, tokens: u64) {
        match self.of_runs.last_mut() {
            Some((last, sum)) if **last == *run => *sum = sum.saturating_add(tokens),
            _ => self.of_runs.push((run.into(), tokens)),
        }
    }
}
