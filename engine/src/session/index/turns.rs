//! Turns of one stream, summed up: what they do to a session, whatever the session is like when they come. Summing up
//! reads nothing but heads, and mostly makes nothing: texts lie one behind the other in the digest.

use std::ops::Range;

use crate::clock::Timestamp;
use crate::id::{Seq, Version};
use crate::session::event::{Ingress, Role, TurnHead};

use super::part::{IdHash, Piece, id_hash};

/// Texts that are named by where they lie.
#[derive(Debug, Default)]
pub(super) struct Texts(String);

/// Where a text lies; an empty one for none.
pub(super) type Place = Range<usize>;

impl Texts {
    pub(super) fn get(&self, place: &Place) -> &str {
        self.0.get(place.clone()).unwrap_or_default()
    }

    fn add(&mut self, text: &str) -> Place {
        let start = self.0.len();
        self.0.push_str(text);
        start..self.0.len()
    }

    /// Puts another text in a place, which mostly holds it already; `None` leaves it.
    fn set(&mut self, place: &mut Option<Place>, text: Option<&str>) {
        let Some(text) = text else { return };
        if place.as_ref().is_none_or(|place| self.get(place) != text) {
            *place = Some(self.add(text));
        }
    }
}

/// Turns that follow each other in one stream, with no other event of it between.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) versions: Versions,
    /// When the first of them happened.
    pub(super) first_at: Timestamp,
    /// The latest time at which one happened.
    pub(super) last_at: Timestamp,
    /// The channel that a person last wrote on.
    pub(super) channel: Option<Place>,
    /// The model of the last answer that names one.
    pub(super) model: Option<Place>,
    /// What went into the part of the first turn.
    pub(super) part: PartTurns,
    /// What went into other parts, in the order in which they came up.
    pub(super) more: Vec<PartTurns>,
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
    pub(super) session_id: Place,
    pub(super) span: (Version, Version),
    /// Where the last of them stands in the log.
    pub(super) last_seq: Seq,
    /// The latest time at which a person wrote in it.
    pub(super) human_at: Option<Timestamp>,
    pub(super) all: Begins,
    pub(super) without_results: Begins,
    /// Turns of users and assistants that name no message.
    pub(super) turns: u64,
    /// Tokens of turns that name no message.
    pub(super) tokens: u64,
    /// Which of these tokens runs have told.
    pub(super) of_runs: Vec<(IdHash, u64)>,
    /// Turns that name a message, in order; neighbours of one message and run are one.
    pub(super) pieces: Vec<Pieces>,
}

/// Pieces of a message.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) message: IdHash,
    /// Whether the first of them counts as a turn when the message is new.
    pub(super) counts: bool,
    /// The tokens of the largest.
    pub(super) tokens: u64,
    pub(super) run: Option<IdHash>,
}

/// How many messages begin with some turns. Whether the first one does depends on what came before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begins {
    /// The pieces that the first and the last turn are; `None` inside for one that is a message of its own.
    ends: Option<(Option<Piece>, Option<Piece>)>,
    inside: u64,
}

impl Begins {
    const NONE: Self = Self { ends: None, inside: 0 };

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
    /// One turn, with its place in the log and in its stream.
    pub(super) fn of(
        head: &TurnHead<'_>,
        place: (Seq, Version),
        at: Timestamp,
        texts: &mut Texts,
    ) -> Self {
        let mut turns = Self {
            versions: Versions::of(place.1),
            first_at: at,
            last_at: at,
            channel: None,
            model: None,
            part: PartTurns::new(texts.add(&head.session_id), place),
            more: Vec::new(),
        };
        turns.take(head, place, at, texts);
        turns
    }

    /// Adds the next turn.
    pub(super) fn push(
        &mut self,
        head: &TurnHead<'_>,
        place: (Seq, Version),
        at: Timestamp,
        texts: &mut Texts,
    ) {
        self.versions.push(place.1);
        self.take(head, place, at, texts);
    }

    /// What went into each part, in the order in which the parts came up.
    pub(super) fn parts(&self) -> impl Iterator<Item = &PartTurns> {
        std::iter::once(&self.part).chain(&self.more)
    }

    /// The latest time at which a person wrote.
    pub(super) fn human_at(&self) -> Option<Timestamp> {
        self.parts().filter_map(|part| part.human_at).max()
    }

    fn take(
        &mut self,
        head: &TurnHead<'_>,
        place: (Seq, Version),
        at: Timestamp,
        texts: &mut Texts,
    ) {
        self.last_at = self.last_at.max(at);
        let human = head.role == Role::User && head.from == Ingress::External;
        if human {
            let from = head.provenance.as_ref().and_then(|p| p.source_channel.as_deref());
            texts.set(&mut self.channel, from);
        }
        if head.role == Role::Assistant {
            texts.set(&mut self.model, head.model.as_deref());
        }
        let part = self.part_of(&head.session_id, place, texts);
        part.push(head, place);
        if human {
            part.human_at = part.human_at.max(Some(at));
        }
    }

    fn part_of(&mut self, id: &str, place: (Seq, Version), texts: &mut Texts) -> &mut PartTurns {
        if texts.get(&self.part.session_id) == id {
            return &mut self.part;
        }
        let known = self.more.iter().rposition(|part| texts.get(&part.session_id) == id);
        let index = known.unwrap_or_else(|| {
            self.more.push(PartTurns::new(texts.add(id), place));
            self.more.len() - 1
        });
        self.more.get_mut(index).unwrap_or(&mut self.part)
    }
}

impl PartTurns {
    const fn new(session_id: Place, (seq, version): (Seq, Version)) -> Self {
        Self {
            session_id,
            span: (version, version),
            last_seq: seq,
            human_at: None,
            all: Begins::NONE,
            without_results: Begins::NONE,
            turns: 0,
            tokens: 0,
            of_runs: Vec::new(),
            pieces: Vec::new(),
        }
    }

    fn push(&mut self, head: &TurnHead<'_>, (seq, version): (Seq, Version)) {
        (self.span.1, self.last_seq) = (version, seq);
        let message = head.message_id.as_deref().map(id_hash);
        let piece = message.map(|id| (id, head.role));
        self.all.push(piece);
        if head.role != Role::ToolResult {
            self.without_results.push(piece);
        }
        let counts = matches!(head.role, Role::User | Role::Assistant);
        let tokens = head.tokens.as_ref().map_or(0, |t| t.r#in.saturating_add(t.out));
        let run = head.run_id.as_deref().map(id_hash);
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

    fn push_piece(&mut self, message: IdHash, counts: bool, tokens: u64, run: Option<IdHash>) {
        match self.pieces.last_mut() {
            Some(last) if last.message == message && last.run == run => {
                last.tokens = last.tokens.max(tokens);
            }
            _ => self.pieces.push(Pieces { message, counts, tokens, run }),
        }
    }

    fn told(&mut self, run: IdHash, tokens: u64) {
        match self.of_runs.last_mut() {
            Some((last, sum)) if *last == run => *sum = sum.saturating_add(tokens),
            _ if tokens == 0 => {}
            _ => self.of_runs.push((run, tokens)),
        }
    }
}
