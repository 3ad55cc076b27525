//! What was heard, put together until it is told: ten times a second, and sooner only when there is much of it.

use std::collections::VecDeque;
use std::time::Duration;

use annals_engine::session::event::OutputStream;
use tokio::time::Instant;

use super::Heard;

/// The shortest time between two tellings.
pub(super) const EVERY: Duration = Duration::from_millis(100);
/// The most bytes of one piece.
const PIECE_BYTES: usize = 64 << 10;
/// So many bytes do not wait for their time.
const HELD_BYTES: usize = 256 << 10;

/// Pieces of output that wait, neighbours on one stream as one.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    held: VecDeque<(OutputStream, String)>,
    bytes: usize,
    told: Option<Instant>,
    due: Option<Instant>,
}

impl Pieces {
    /// Adds text.
    pub(super) fn add(&mut self, stream: OutputStream, text: &str, now: Instant) {
        if text.is_empty() {
            return;
        }
        self.bytes += text.len();
        match self.held.back_mut() {
            Some((last, held)) if *last == stream => held.push_str(text),
            _ => self.held.push_back((stream, text.to_owned())),
        }
        let next = self.told.map_or(now, |told| now.max(told + EVERY));
        self.due.get_or_insert(next);
    }

    /// When they are to be told; `None` when there are none.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether there are so many that they cannot wait.
    pub(super) const fn is_much(&self) -> bool {
        self.bytes >= HELD_BYTES
    }

    /// Takes the first piece, of a bounded size.
    pub(super) fn take(&mut self, late: bool, now: Instant) -> Option<Heard> {
        let (stream, mut text) = self.held.pop_front()?;
        if text.len() > PIECE_BYTES {
            let rest = text.split_off(text.ceil_char_boundary(PIECE_BYTES));
            if !rest.is_empty() {
                self.held.push_front((stream, rest));
            }
        }
        self.bytes = self.bytes.saturating_sub(text.len());
        self.told = Some(now);
        if self.held.is_empty() {
            self.due = None;
        }
        Some(Heard::Output { stream, text, late })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &mut Pieces, now: Instant) -> Vec<(OutputStream, String)> {
        let take = || match pieces.take(false, now)? {
            Heard::Output { stream, text, .. } => Some((stream, text)),
            Heard::Started { .. } => None,
        };
        std::iter::from_fn(take).collect()
    }

    /// Goal: what comes close together is told together, in its order, and no piece is too large. Method: streams that
    /// take turns, and a text of more than two pieces with a character on the edge.
    #[test]
    fn together() {
        let now = Instant::now();
        let mut pieces = Pieces::default();
        assert_eq!(pieces.due(), None);
        for (stream, text) in [
            (OutputStream::Stdout, "a"),
            (OutputStream::Stdout, "b"),
            (OutputStream::Stderr, ""),
            (OutputStream::Stderr, "c"),
            (OutputStream::Stdout, "d"),
        ] {
            pieces.add(stream, text, now);
        }
        assert_eq!(pieces.due(), Some(now));
        let told = all(&mut pieces, now);
        assert_eq!(
            told,
            [
                (OutputStream::Stdout, "ab".to_owned()),
                (OutputStream::Stderr, "c".to_owned()),
                (OutputStream::Stdout, "d".to_owned()),
            ]
        );
        pieces.add(OutputStream::Stdout, "e", now);
        assert_eq!(pieces.due(), Some(now + EVERY));
        let much = format!("x{}", "ä".repeat(HELD_BYTES));
        pieces.add(OutputStream::Stderr, &much, now);
        assert!(pieces.is_much());
        let told = all(&mut pieces, now);
        assert!(told.iter().all(|(_, text)| text.len() <= PIECE_BYTES + 3));
        assert_eq!(told[1..].iter().map(|(_, text)| text.as_str()).collect::<String>(), much);
        assert!(!pieces.is_much() && pieces.due().is_none());
    }
}
