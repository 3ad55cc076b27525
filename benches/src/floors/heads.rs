//! Session rows from the heads of lines: every line is verified, its fields are read in their fixed order, and no JSON
//! is parsed.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use memmap2::Mmap;

use super::map;

/// What is known of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// How many events it has.
    pub events: u64,
    /// How many turns it has.
    pub turns: u64,
    /// How many of them were said by users.
    pub by_users: u64,
    /// The tokens of all turns.
    pub tokens: u64,
    /// The version of its last event.
    pub version: u64,
    /// When that was appended.
    pub updated: &'a [u8],
    /// The part of its last turn.
    pub session_id: &'a [u8],
}

/// Rows by stream, with the stream as the line spells it.
pub type Rows<'a> = HashMap<&'a [u8], Row<'a>, BuildHasherDefault<Fold>>;

/// The rows of all segments, folded by so many threads.
#[must_use]
pub fn fold(segments: &[Mmap], threads: usize) -> Rows<'_> {
    let part = segments.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = segments
            .chunks(part)
            .map(|part| {
                scope.spawn(move || {
                    let mut rows = Rows::default();
                    for segment in part {
                        map::lines(segment, |line| {
                            let _ = take(&mut rows, line);
                        });
                    }
                    rows
                })
            })
            .collect();
        parts.into_iter().map(|part| part.join().unwrap()).reduce(join).unwrap_or_default()
    })
}

fn join<'a>(mut rows: Rows<'a>, later: Rows<'a>) -> Rows<'a> {
    for (stream, row) in later {
        let sum = rows.entry(stream).or_default();
        let (turns, by_users) = (sum.turns + row.turns, sum.by_users + row.by_users);
        let events = sum.events + row.events;
        *sum = Row { events, turns, by_users, tokens: sum.tokens + row.tokens, ..row };
    }
    rows
}

fn take<'a>(rows: &mut Rows<'a>, line: &'a [u8]) -> Option<()> {
    let mut head = Head(line);
    head.behind(b"{\"seq\":")?.number();
    let updated = head.behind(b",\"time\":\"")?.text();
    head.behind(b",\"durable\":")?.number();
    head.behind(b",\"prev\":\"")?.text();
    let stream = head.behind(b",\"stream\":\"")?.text();
    let version = head.behind(b",\"version\":")?.number();
    let kind = head.behind(b",\"type\":\"")?.text();
    head.behind(b",\"id\":\"")?.text();
    for optional in [b",\"batch\":\"".as_slice(), b",\"cause\":\"", b",\"flow\":\""] {
        if let Some(head) = head.behind(optional) {
            head.text();
        }
    }
    let row = rows.entry(stream).or_default();
    (row.version, row.updated) = (version, updated);
    row.events += 1;
    if kind != b"turn" {
        return Some(());
    }
    row.turns += 1;
    row.session_id = head.behind(b",\"data\":{\"sessionId\":\"")?.text();
    let role = head.behind(b",\"role\":\"")?.text();
    row.by_users += u64::from(role == b"user");
    head.behind(b",\"from\":\"")?.text();
    for optional in
        [b",\"runId\":\"".as_slice(), b",\"callId\":\"", b",\"toolName\":\"", b",\"model\":\""]
    {
        if let Some(head) = head.behind(optional) {
            head.text();
        }
    }
    if let Some(head) = head.behind(b",\"tokens\":{\"in\":") {
        row.tokens += head.number();
        row.tokens += head.behind(b",\"out\":")?.number();
    }
    Some(())
}

/// What is left of a line.
struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    /// Goes behind these bytes, if they come next.
    fn behind(&mut self, bytes: &[u8]) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(bytes)?;
        Some(self)
    }

    /// The text up to the next quote, which is passed.
    fn text(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == b'"').unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        text
    }

    /// The digits that come next.
    fn number(&mut self) -> u64 {
        let mut sum = 0;
        while let Some((digit @ b'0'..=b'9', rest)) = self.0.split_first() {
            sum = sum * 10 + u64::from(digit - b'0');
            self.0 = rest;
        }
        sum
    }
}

/// A cheap hash of short text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        for word in words.iter().chain([&last]) {
            let mixed = (self.0.rotate_left(5) ^ u64::from_le_bytes(*word))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed ^ (mixed >> 32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::map;
    use crate::floors::point::Places;
    use crate::stored;
    use crate::workload::Shape;

    /// Goal: the floors find what annals finds, or they would be floors of something else. Method: a small store; every
    /// row's tokens and events, the same with one thread and with two, and the streams of the index of offsets.
    #[test]
    fn floors_and_annals_agree() {
        let home = tempfile::tempdir().unwrap();
        stored::make(home.path(), Shape { seed: 5, sessions: 50 }, 2_000);
        let segments = map::segments(home.path());
        let sessions = stored::open(home.path()).sessions().unwrap();
        let rows = fold(&segments, 1);
        assert_eq!(rows, fold(&segments, 2));
        assert_eq!(rows.len(), sessions.state().len() + 1, "and the log's own stream");
        for (name, events) in Places::new(&segments).streams() {
            let theirs = annals_engine::id::StreamName::new(name.as_str()).unwrap();
            let theirs = sessions.state().row(&theirs).unwrap();
            let ours = rows.get(name.as_bytes()).unwrap();
            assert_eq!((ours.tokens, ours.version), (theirs.total_tokens, events), "{name}");
            assert!(ours.turns > 0 && ours.by_users <= ours.turns, "{name}");
        }
        assert_eq!(map::verify(&segments, 2), 2_001);
    }
}
