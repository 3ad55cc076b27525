//! What is known of the log's content without reading it again: the version of each stream, where each position and
//! each id is. The oldest segments are known by the table of heads and asked through their indexes where that does not
//! tell; what is behind them, but for the last few megabytes, through its indexes; the last stretch is in memory.

mod heads;
mod ids;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::format::control;
use crate::id::{Crc, Seq, StoreId};
use crate::storage::{File, Storage};

use super::index::{Builder, Heads, Index, Key, Listed, Opened, Part, Stretch, next_part, whole};
use super::tail::End;
use super::walk::{Break, Link, Span};

use ids::Seen;

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: Seq,
    pub(super) offset: u64,
}

/// The content of a log up to some place.
#[derive(Debug)]
pub(super) struct Known {
    storage: Arc<dyn Storage>,
    store: StoreId,
    /// In the order of the log, without a hole before the recent stretch.
    parts: RefCell<Vec<Part>>,
    /// What is known of the first parts together: as many as it has segments.
    heads: RefCell<Option<Arc<Heads>>>,
    /// How many bytes the sealed segments have that a new table would have and this one has not; all of them, once the
    /// table was found damaged.
    lacking: Cell<u64>,
    recent: Recent,
    /// The ids of the parts, once they were asked for so often that it is worth reading them.
    filter: RefCell<Option<Seen>>,
    /// How many ids were asked for without it.
    asked: Cell<u32>,
    /// Whether a stretch was closed that has no file yet.
    unwritten: Cell<bool>,
}

/// The last stretch, which has no index yet.
#[derive(Debug)]
struct Recent {
    segment: Seq,
    start: u64,
    before: Link,
    last_time: Timestamp,
    broken: bool,
    builder: Builder,
}

impl Recent {
    fn new(segment: Seq, start: u64, before: Link) -> Self {
        let builder = Builder::default();
        Self { segment, start, before, last_time: Timestamp::EPOCH, broken: false, builder }
    }
}

impl Known {
    pub(super) fn new(storage: Arc<dyn Storage>, store: StoreId) -> Self {
        let recent = Recent::new(Seq::ZERO, 0, Link::START);
        Self {
            storage,
            store,
            parts: RefCell::default(),
            heads: RefCell::default(),
            lacking: Cell::new(0),
            recent,
            filter: RefCell::default(),
            asked: Cell::new(0),
            unwritten: Cell::new(false),
        }
    }

    /// Begins a stretch; the one before it must be closed.
    pub(super) fn begin(&mut self, segment: Seq, start: u64, before: Link) {
        self.recent = Recent::new(segment, start, before);
    }

    pub(super) fn add(&mut self, span: Span, line: Listed<'_>) {
        self.recent.builder.add(self.recent.before.seq, span.offset, span.len, line);
        self.recent.last_time = self.recent.last_time.max(line.time);
    }

    /// Numbers that damaged lines still show are not used again.
    pub(super) fn pass_over(&mut self, found: &Break) {
        self.recent.broken = true;
        for (stream, versions) in &found.legible {
            let last = versions.map(|(_, last)| last).unwrap_or_default();
            self.recent.builder.raise(stream, last);
        }
    }

    /// How many bytes of the active segment have no index yet.
    pub(super) fn recent_bytes(&self, end: &End) -> u64 {
        end.offset.saturating_sub(self.recent.start)
    }

    /// Whether an index should be written, when one is due after so many bytes.
    pub(super) fn is_due(&self, end: &End, bytes: u64) -> bool {
        self.unwritten.get() || self.recent_bytes(end) >= bytes || self.heads_are_due()
    }

    /// Closes the recent stretch at the end of its segment, or of the log, and begins the next one there.
    pub(super) fn close(&mut self, end: &End, sealed: bool) {
        if self.recent.segment == Seq::ZERO || end.offset <= self.recent.start {
            return;
        }
        let link = Link { seq: end.seq, crc: Some(end.crc) };
        let next = Recent::new(self.recent.segment, end.offset, link);
        let closed = std::mem::replace(&mut self.recent, next);
        let stretch = Stretch {
            store: self.store,
            segment: closed.segment,
            start: closed.start,
            end: end.offset,
            before: closed.before.seq,
            before_crc: closed.before.crc,
            last: end.seq,
            last_crc: end.crc,
            last_time: closed.last_time,
            sealed,
            broken: closed.broken,
        };
        if let Some(seen) = self.filter.get_mut() {
            closed.builder.id_hashes().for_each(|hash| seen.insert(hash));
        }
        self.parts.get_mut().push(Part::built_from(stretch, closed.builder));
        self.unwritten.set(true);
        self.lack_one(&stretch);
    }

    /// Takes over what an index knows of a whole segment that has a successor; returns where it ends.
    pub(super) fn take_whole(&mut self, segment: Seq, next: Seq) -> Option<End> {
        let index = whole(&*self.storage, self.store, segment, next)?;
        self.lack_one(&index.stretch);
        Some(self.take(index))
    }

    /// Takes over what an index knows of the next stretch of the active segment.
    pub(super) fn take_next(
        &mut self,
        segment: Seq,
        file: &dyn File,
        start: u64,
        link: Link,
    ) -> Option<End> {
        let index = next_part(&*self.storage, self.store, segment, Some(file), start, link)?;
        let end = self.take(index);
        self.begin(segment, end.offset, Link { seq: end.seq, crc: Some(end.crc) });
        Some(end)
    }

    fn take(&mut self, index: Index) -> End {
        let end = end_of(&index.stretch);
        *self.filter.get_mut() = None;
        self.parts.get_mut().push(Part::file(index));
        end
    }

    /// Whether lines are missing in the last stretch that was taken over.
    pub(super) fn last_is_broken(&self) -> bool {
        self.parts.borrow().last().is_some_and(|part| part.stretch().broken)
    }

    /// Whether the last stretch that was taken over ends with its segment's seal.
    pub(super) fn last_is_sealed(&self) -> bool {
        self.parts.borrow().last().is_some_and(|part| part.stretch().sealed)
    }

    /// The stretches that are built and have no file yet.
    pub(super) fn built(&mut self) -> Vec<Arc<(Stretch, Builder)>> {
        self.unwritten.set(false);
        self.parts.borrow().iter().filter_map(Part::built).map(Arc::clone).collect()
    }

    /// The segments before the recent one that are known in more than one part.
    pub(super) fn in_parts(&self) -> Vec<Seq> {
        let parts = self.parts.borrow();
        let before = parts.iter().map(|part| part.stretch().segment);
        let mut found: Vec<Seq> = before.filter(|s| *s != self.recent.segment).collect();
        let all = found.clone();
        found.dedup();
        found.retain(|segment| all.iter().filter(|other| *other == segment).count() > 1);
        found
    }

    /// The stretch that all parts of a segment make together.
    pub(super) fn outline(&self, segment: Seq) -> Option<Stretch> {
        let parts = self.parts.borrow();
        let mut all = parts.iter().map(Part::stretch).filter(|part| part.segment == segment);
        let first = *all.next()?;
        Some(all.fold(first, |sum, part| Stretch {
            end: part.end,
            last: part.last,
            last_crc: part.last_crc,
            last_time: sum.last_time.max(part.last_time),
            sealed: part.sealed,
            broken: sum.broken || part.broken,
            ..sum
        }))
    }

    /// Puts an index in the place of all parts of its stretch, if they are still the lines that it was built from.
    pub(super) fn replace(&mut self, index: Index) {
        let stretch = index.stretch;
        let parts = self.parts.get_mut();
        let inside = |part: &Part| {
            let other = part.stretch();
            other.segment == stretch.segment
                && stretch.start <= other.start
                && other.end <= stretch.end
        };
        let mut all = parts.iter().map(Part::stretch).filter(|part| {
            part.segment == stretch.segment
                && part.start >= stretch.start
                && part.end <= stretch.end
        });
        let first = all.next();
        let last = all.next_back().or(first);
        let same = first.zip(last).is_some_and(|(first, last)| {
            (first.start, first.before, first.before_crc)
                == (stretch.start, stretch.before, stretch.before_crc)
                && (last.end, last.last, last.last_crc)
                    == (stretch.end, stretch.last, stretch.last_crc)
        });
        if let Some(at) = parts.iter().position(inside).filter(|_| same) {
            parts.retain(|part| !inside(part));
            parts.insert(at, Part::file(index));
        }
    }

    /// Asks a part; one that had to be built for it gets a file.
    fn ask<T>(&self, part: &mut Part, question: impl Fn(&Opened) -> T) -> Result<T> {
        let had_none = part.built().is_none();
        let answer = part.ask(&*self.storage, question);
        if had_none && part.built().is_some() {
            self.unwritten.set(true);
        }
        answer
    }

    /// Where the line of a position begins; `None` when it is unknown or missing.
    pub(super) fn place(&self, seq: Seq) -> Result<Option<Place>> {
        if seq > self.recent.before.seq {
            let row = row_of(self.recent.before.seq, seq);
            let found = row.and_then(|row| self.recent.builder.line(row));
            return Ok(found.map(|(offset, _)| Place { segment: self.recent.segment, offset }));
        }
        let mut parts = self.parts.borrow_mut();
        let at = parts.partition_point(|part| part.stretch().last < seq);
        let Some(part) = parts.get_mut(at) else { return Ok(None) };
        let Some(row) = row_of(part.stretch().before, seq) else { return Ok(None) };
        let found = self.ask(part, |index| index.line(row))?;
        let segment = part.stretch().segment;
        Ok(found.map(|(offset, _)| Place { segment, offset }))
    }

    /// The position of every line that may name a torn file, in order.
    pub(super) fn recoveries(&self) -> Result<Vec<Seq>> {
        let key = Key::Type(control::RECOVERED);
        let mut found = Vec::new();
        for part in self.parts.borrow_mut().iter_mut().filter(|part| part.may_name_torn()) {
            let rows = self.ask(part, |index| index.rows_of(key))?;
            let before = part.stretch().before;
            found.extend(rows.into_iter().map(|row| seq_of(before, row)));
        }
        let before = self.recent.before.seq;
        found.extend(self.recent.builder.rows_of(key).iter().map(|row| seq_of(before, *row)));
        Ok(found)
    }

    /// The positions of the events of a stream that are of some types, in order; `None` when lines are missing. Versions
    /// are dense, so that nothing is asked before the part that holds the first one.
    pub(super) fn positions_of(&self, stream: &str, types: &[&str]) -> Result<Option<Vec<Seq>>> {
        let mut left = self.version(stream)?.0;
        let mut found: Vec<Vec<Seq>> = Vec::new();
        let mut take = |left: &mut u64, before: Seq, (count, rows): (u64, Vec<u32>)| {
            found.push(rows.into_iter().map(|row| seq_of(before, row)).collect());
            *left = left.checked_sub(count)?;
            Some(())
        };
        let before = self.recent.before.seq;
        let mut whole = !self.recent.broken;
        whole &= take(&mut left, before, self.recent.builder.common(stream, types)).is_some();
        let end = self.end_in_heads(stream);
        let mut parts = self.parts.borrow_mut();
        let covered = self.covered();
        for (at, part) in parts.iter_mut().enumerate().rev() {
            let before = part.stretch().before;
            if at < covered && end.is_some_and(|end| before >= end) {
                continue;
            }
            if left == 0 || !whole || part.stretch().broken {
                break;
            }
            let common = self.ask(part, |index| index.common(stream, types))?;
            whole &= take(&mut left, before, common).is_some();
        }
        found.reverse();
        Ok((whole && left == 0).then(|| found.concat()))
    }

    /// The end of the last part of the active segment that lies below an offset: what is before it was verified once. A
    /// part that ends with the seal is passed over, since what stands behind a seal is judged by the seal.
    pub(super) fn checkpoint(&self, segment: Seq, below: u64) -> Option<(u64, Seq, Crc)> {
        let parts = self.parts.borrow();
        let fits = |stretch: &&Stretch| {
            stretch.segment == segment && stretch.end <= below && !stretch.sealed
        };
        let found = parts.iter().map(Part::stretch).rfind(fits)?;
        Some((found.end, found.last, found.last_crc))
    }
}

fn end_of(stretch: &Stretch) -> End {
    let Stretch { segment, end: offset, last: seq, last_crc: crc, last_time: time, .. } = *stretch;
    End { segment, offset, seq, crc, time }
}

fn seq_of(before: Seq, row: u32) -> Seq {
    Seq(before.0 + 1 + u64::from(row))
}

fn row_of(before: Seq, seq: Seq) -> Option<u32> {
    u32::try_from(seq.0.checked_sub(before.0 + 1)?).ok()
}
