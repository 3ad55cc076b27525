//! Walks the lines of one segment along their chain, and finds the way back to it behind damage. It judges bytes, not
//! what to do about them: whether a break is a torn tail or corruption depends on the watermark, which it does not know.

use std::collections::VecDeque;

use crate::format::scan::{Piece, Scan};
use crate::format::{Line, LineFault, control};
use crate::id::{Crc, Seq, Version};
use crate::store::DamageClass;

use super::segments::LINES_MAX;

/// What the next line must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The position before it.
    pub(super) seq: Seq,
    /// The checksum that it must name; `None` behind damage, where nobody knows it.
    pub(super) crc: Option<Crc>,
}

impl Link {
    /// What the very first line of a store follows.
    pub(super) const START: Self = Self { seq: Seq::ZERO, crc: Some(Crc::NONE) };

    fn leads_to(self, line: &Line<'_>) -> bool {
        line.fields.seq == self.seq.next() && self.crc.is_none_or(|crc| crc == line.fields.prev)
    }

    const fn behind(line: &Line<'_>) -> Self {
        Self { seq: line.fields.seq, crc: Some(line.crc) }
    }
}

/// Where a line lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The offset of its first byte.
    pub(super) offset: u64,
    /// Its length with the line feed.
    pub(super) len: u64,
}

impl Span {
    pub(super) const fn end(self) -> u64 {
        self.offset + self.len
    }
}

/// A place where the chain is broken and goes on behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Break {
    pub(super) class: DamageClass,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The positions that are missing.
    pub(super) seqs: Option<(Seq, Seq)>,
    /// Streams, with the versions where they can be read, that the damaged bytes still name.
    pub(super) legible: Vec<Legible>,
    pub(super) detail: String,
}

/// One step along a segment.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A line that follows the one before and belongs to a whole batch.
    Line(Span, &'a Line<'a>),
    /// Damage with readable lines behind it.
    Break(Break),
}

/// A walk over the bytes of a segment. It ends at the last whole batch that can be reached; [`Walk::rest`] is what lies
/// behind.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    scan: Scan<'a>,
    base: u64,
    link: Link,
    /// A line that stands alone behind damage is believed up to this position.
    bound: Seq,
    /// No line behind damage is believed beyond this position: a segment has no room for so many.
    limit: Seq,
    /// Lines of the present batch that are known to follow.
    ahead: u32,
    /// Those of them that were read already, with their lengths.
    batch: VecDeque<(usize, Line<'a>)>,
    sealed: bool,
    /// What lies behind the first damage, by its offset: looked at once, however much damage there is.
    pieces: Option<Vec<(usize, usize, Piece<'a>)>>,
}

impl<'a> Walk<'a> {
    /// Walks `bytes`, which begin at offset `base` of their segment and must continue `link`.
    pub(super) const fn new(bytes: &'a [u8], base: u64, link: Link, bound: Seq) -> Self {
        Self {
            scan: Scan::new(bytes),
            base,
            link,
            bound,
            limit: Seq(link.seq.0.saturating_add(LINES_MAX)),
            ahead: 0,
            batch: VecDeque::new(),
            sealed: false,
            pieces: None,
        }
    }

    /// Begins inside a batch of which so many lines are still to come.
    pub(super) fn inside_batch(mut self, ahead: u32) -> Self {
        self.ahead = ahead;
        self
    }

    /// How many lines of the present batch are still to come.
    pub(super) const fn ahead(&self) -> u32 {
        self.ahead
    }

    /// What the next line has to follow.
    pub(super) const fn link(&self) -> Link {
        self.link
    }

    /// Where the walk stands, as an offset of the segment.
    pub(super) const fn offset(&self) -> u64 {
        self.base + self.scan.offset() as u64
    }

    /// Whether the last line was the seal.
    pub(super) const fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// The bytes behind the last step.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.scan.rest()
    }

    /// The next line if the chain leads to it without a break; the walk stays where it is otherwise.
    pub(super) fn next_unbroken(&mut self) -> Option<(Span, Line<'a>)> {
        if self.sealed {
            return None;
        }
        if let Some((len, line)) = self.next_of_batch() {
            let offset = self.offset();
            self.scan.go_to(self.scan.offset() + len);
            return Some((self.stepped(offset, &line), line));
        }
        let mut scan = self.scan.clone();
        let raw = scan.raw()?;
        let line = raw.decode().ok()?;
        if !self.link.leads_to(&line) || !self.batch_allows(&line, &scan) {
            return None;
        }
        let offset = self.offset();
        self.scan = scan;
        Some((self.stepped(offset, &line), line))
    }

    /// Notes that a line was passed which began at an offset of the segment.
    fn stepped(&mut self, offset: u64, line: &Line<'a>) -> Span {
        self.link = Link::behind(line);
        self.sealed = is_seal(line);
        Span { offset, len: self.offset() - offset }
    }

    /// The damage where no line follows; `None` at the end, and where nothing behind the damage can be believed.
    pub(super) fn next_break(&mut self) -> Option<Break> {
        if self.sealed || self.rest().is_empty() || self.is_unfinished() {
            return None;
        }
        self.resume()
    }

    fn next_of_batch(&mut self) -> Option<(usize, Line<'a>)> {
        let known = self.batch.pop_front()?;
        self.ahead = self.ahead.saturating_sub(1);
        Some(known)
    }

    /// Whether a line may stand here: alone, or in a batch that is here as a whole.
    fn batch_allows(&mut self, line: &Line<'_>, behind: &Scan<'a>) -> bool {
        if self.ahead > 0 {
            self.ahead -= 1;
            return true;
        }
        match line.fields.batch {
            None => true,
            Some((1, count)) => {
                let mut batch = std::mem::take(&mut self.batch);
                let whole = batch_reach(line, behind, count, &mut batch).0 == count;
                if whole {
                    self.ahead = count - 1;
                } else {
                    batch.clear();
                }
                self.batch = batch;
                whole
            }
            Some(_) => false,
        }
    }

    /// Whether what is left is the beginning of one line or of one batch and nothing else.
    pub(super) fn is_unfinished(&self) -> bool {
        let mut behind = self.scan.clone();
        let Some((_, _, piece)) = behind.next() else { return true };
        match piece {
            Piece::Rest => true,
            Piece::Bad(_) => false,
            Piece::Line(line) => {
                let Some((1, count)) = line.fields.batch else { return false };
                self.link.leads_to(&line) && {
                    let (reach, ended) = batch_reach(&line, &behind, count, &mut VecDeque::new());
                    reach < count && ended
                }
            }
        }
    }

    /// Looks for the place where the chain goes on: the very line that is expected, else the first line that its
    /// successor or the bound vouches for.
    fn resume(&mut self) -> Option<Break> {
        let at = self.scan.offset();
        let mut all = self.pieces.take().unwrap_or_else(|| self.scan.clone().collect());
        all.drain(..all.partition_point(|(offset, ..)| *offset < at));
        let found = self.resumption(&all).and_then(|index| {
            let (offset, _, Piece::Line(line)) = all.get(index)? else { return None };
            Some((
                *offset,
                line.fields.seq,
                self.describe(&all, index, offset - at, line.fields.seq),
            ))
        });
        self.pieces = Some(all);
        let (offset, seq, found) = found?;
        self.scan.go_to(offset);
        self.link = Link { seq: Seq(seq.0 - 1), crc: None };
        self.ahead = 0;
        Some(found)
    }

    fn resumption(&self, pieces: &[(usize, usize, Piece<'a>)]) -> Option<usize> {
        // A first line that follows but whose batch is broken is no place to go on from.
        let skip = usize::from(matches!(
            pieces.first(), Some((_, _, Piece::Line(line))) if self.link.leads_to(line)
        ));
        let candidates = || pieces.iter().enumerate().skip(skip);
        let exact = candidates().find(|(_, (_, _, piece))| {
            matches!(piece, Piece::Line(line)
                if self.link.crc.is_some() && self.link.leads_to(line) && begins(line))
        });
        let believed = || {
            candidates().find(|(i, (_, _, piece))| {
                let Piece::Line(line) = piece else { return false };
                let vouched = match pieces.get(i + 1) {
                    Some((_, _, Piece::Line(next))) => Link::behind(line).leads_to(next),
                    _ => false,
                };
                let seq = line.fields.seq;
                // The line before knows its successor: what stands in that place and names another belongs elsewhere,
                // unless the line behind names it.
                let denied = seq == self.link.seq.next() && self.link.crc.is_some();
                let bounded = seq <= self.bound && !denied;
                let fits = seq > self.link.seq && seq <= self.limit;
                fits && begins(line) && (vouched || bounded)
            })
        };
        exact.or_else(believed).map(|(index, _)| index)
    }

    fn describe(
        &self,
        pieces: &[(usize, usize, Piece<'a>)],
        index: usize,
        bytes: usize,
        resumed: Seq,
    ) -> Break {
        let damaged = pieces.get(..index).unwrap_or_default();
        let missing =
            (resumed > self.link.seq.next()).then(|| (self.link.seq.next(), Seq(resumed.0 - 1)));
        let raw = self.rest().get(..bytes).unwrap_or_default();
        let (class, detail) = classify(damaged, missing.is_some(), raw);
        Break {
            class,
            offset: self.offset(),
            bytes: bytes as u64,
            seqs: missing,
            legible: legible(raw),
            detail,
        }
    }
}

/// How many lines of the batch that begins with `line` are here in order, and whether the bytes end behind them. Those
/// behind the first, which are what the scan has to come to, are put in `batch`.
fn batch_reach<'a>(
    line: &Line<'_>,
    behind: &Scan<'a>,
    count: u32,
    batch: &mut VecDeque<(usize, Line<'a>)>,
) -> (u32, bool) {
    let mut link = Link::behind(line);
    let mut reach = 1;
    for (_, len, piece) in behind.clone() {
        if reach == count {
            return (reach, false);
        }
        let Piece::Line(next) = piece else { return (reach, piece == Piece::Rest) };
        if !link.leads_to(&next) || next.fields.batch != Some((reach + 1, count)) {
            return (reach, false);
        }
        link = Link::behind(&next);
        reach += 1;
        batch.push_back((len, next));
    }
    (reach, true)
}

/// Whether a line begins a batch or stands alone.
fn begins(line: &Line<'_>) -> bool {
    line.fields.batch.is_none_or(|(index, _)| index == 1)
}

pub(super) fn is_seal(line: &Line<'_>) -> bool {
    line.fields.kind == control::SEALED && line.fields.stream == control::STREAM
}

/// The class of damaged bytes behind which nothing can be read, and what was seen.
pub(super) fn classify_rest(raw: &[u8]) -> (DamageClass, String) {
    let pieces: Vec<_> = Scan::new(raw).collect();
    classify(&pieces, true, raw)
}

/// The class of damaged pieces, and what was seen.
fn classify(
    pieces: &[(usize, usize, Piece<'_>)],
    missing: bool,
    raw: &[u8],
) -> (DamageClass, String) {
    let foreign = pieces.iter().find_map(|(_, _, piece)| match piece {
        Piece::Bad(LineFault::Foreign(field)) => Some(*field),
        _ => None,
    });
    let is_line = |piece: &Piece<'_>| matches!(piece, Piece::Line(_));
    let is_foreign = |piece: &Piece<'_>| matches!(piece, Piece::Bad(LineFault::Foreign(_)));
    if pieces.is_empty() && missing {
        (DamageClass::Lost, "lines are missing between two whole lines".into())
    } else if pieces.is_empty() {
        (DamageClass::Misplaced, "a line does not name the line before it".into())
    } else if pieces.iter().all(|(_, _, piece)| is_line(piece)) {
        (DamageClass::Misplaced, "whole lines stand where they do not belong".into())
    } else if let (Some(field), true) = (foreign, pieces.iter().all(|(_, _, p)| is_foreign(p))) {
        (DamageClass::Foreign, format!("another program wrote a line; its {field} is not ours"))
    } else if raw.contains(&0) {
        (DamageClass::Corrupt, "NUL bytes stand in the log".into())
    } else {
        (DamageClass::Corrupt, "the bytes do not match their checksum".into())
    }
}

/// A stream that damaged bytes still name, and the first and the last of its versions next to the name.
pub(super) type Legible = (String, Option<(Version, Version)>);

/// The streams, and versions next to them, that can still be read in damaged bytes. A reading, no proof.
pub(super) fn legible(raw: &[u8]) -> Vec<Legible> {
    const STREAM: &[u8] = b"\"stream\":\"";
    const VERSION: &[u8] = b",\"version\":";
    let mut found: Vec<(String, Vec<Version>)> = Vec::new();
    let mut lines = 0;
    for at in memchr::memmem::find_iter(raw, STREAM) {
        let (before, text) = raw.split_at(at);
        let Some(text) = text.get(STREAM.len()..) else { continue };
        let Some(end) = memchr::memchr2(b'"', b'\n', text) else { continue };
        let (name, behind) = text.split_at(end);
        let Some(name) = crate::format::head_string(name).filter(|name| !name.is_empty()) else {
            continue;
        };
        let digits = behind.get(1..).and_then(|b| b.strip_prefix(VERSION));
        // A payload may have a member of that name; only in a head a version follows it or a checksum precedes it.
        if digits.is_none() && !follows_prev(before) {
            continue;
        }
        lines += 1;
        let digits = digits.unwrap_or_default();
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        let version = digits.get(..count).and_then(|d| std::str::from_utf8(d).ok()?.parse().ok());
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, versions)) => versions.extend(version.map(Version)),
            None => found.push((name.into_owned(), version.map(Version).into_iter().collect())),
        }
    }
    found.into_iter().map(|(name, versions)| (name, believable(versions, lines))).collect()
}

/// Whether bytes end with the member that stands before `stream` in the head of a line.
fn follows_prev(before: &[u8]) -> bool {
    const PREV: &[u8] = b"\"prev\":\"";
    const LEN: usize = PREV.len() + 8 + 2;
    before
        .len()
        .checked_sub(LEN)
        .and_then(|start| before.get(start..))
        .is_some_and(|member| member.starts_with(PREV) && member.ends_with(b"\","))
}

/// The first and the last of the versions that were read in so many lines. A digit may be damaged: what lies further from
/// the middle than there are lines is not believed.
fn believable(mut versions: Vec<Version>, lines: u64) -> Option<(Version, Version)> {
    versions.sort_unstable();
    let middle = *versions.get(versions.len() / 2)?;
    versions.retain(|version| version.0.abs_diff(middle.0) < lines);
    versions.first().copied().zip(versions.last().copied())
}
