//! Reading in order, without a lock. The watermark is read first and never passed; below it a bad line is damage and
//! comes as a gap, above it a bad line is not yet there.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::scan::{Piece, Scan};
use crate::format::slot::{Durable, Written};
use crate::format::{APPEND_LOCK, Line, SYNC_LOCK, control, segment_path};
use crate::id::{Seq, Version};
use crate::storage::{Access, File, FileId};
use crate::store::{Cursor, Damage, Decider, Item, Read, Record, View};

use super::jump::Jump;
use super::seek::{self, Near};
use super::segments::{self, Bytes};
use super::slots::peek;
use super::tail::{End, trailer_is};
use super::visit::{At, SegmentVisit};
use super::walk::{Link, Step, Walk, classify_rest, is_seal, legible};
use super::{LogView, gaps};

/// How many items are made ready at a time.
pub(super) const READY: usize = 256;

/// How much of the active segment is read at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// So many bytes of lines that follow each other, or a little more, are made ready at a time: few long lines, or many.
pub(super) const READY_BYTES: u64 = 1 << 20;

/// Reads a log in order.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) view: Arc<LogView>,
    pub(super) read: Read,
    /// The segment that is read; `None` before the first.
    segment: Option<Seq>,
    pub(super) at: At,
    /// The segment that nothing followed when it was looked at last, opened.
    active: Option<(Seq, FileId, Arc<dyn File>)>,
    /// Whether the last line that was read is the seal of its segment.
    sealed: bool,
    /// The bytes of a segment that has a successor, and that successor.
    mapped: Option<(Bytes, Seq)>,
    pub(super) ready: VecDeque<(Item, Cursor)>,
    /// The highest position that lines or slots state to be durable.
    durable: Seq,
    /// How far the active segment was searched for lines that state it, in bytes.
    searched: u64,
    /// Nothing is read behind this position.
    limit: Option<Seq>,
    /// Everything up to here was made ready or filtered out.
    pub(super) cursor: Option<Cursor>,
    /// Everything up to here was given.
    given: Option<Cursor>,
    /// Damage at the end of the log that was reported, by the last position that it costs.
    reported: Seq,
    accepted: Option<Vec<control::Gap>>,
    /// Events of the stream up to this version are not wanted.
    pub(super) behind: Version,
    pub(super) jump: Option<Box<Jump>>,
    /// The segment whose index has led to a line that is not what it should be.
    pub(super) misled: Option<Seq>,
    /// An error ends the items.
    failed: bool,
}

impl Reader {
    pub(super) fn new(view: Arc<LogView>, read: Read) -> Result<Self> {
        let mut reader = Self {
            view,
            segment: None,
            at: At { offset: 0, link: Link::START, ahead: 0 },
            active: None,
            sealed: false,
            mapped: None,
            ready: VecDeque::new(),
            durable: Seq::ZERO,
            searched: 0,
            limit: None,
            cursor: read.after,
            given: read.after,
            reported: Seq::ZERO,
            accepted: None,
            behind: Version::ZERO,
            jump: None,
            misled: None,
            failed: false,
            read,
        };
        if let Some(cursor) = reader.read.after {
            reader.seek(&cursor)?;
        }
        Ok(reader)
    }

    /// Need not give events of its one stream up to a version.
    pub(super) fn behind(mut self, version: Version) -> Self {
        self.behind = version;
        self
    }

    /// Reads nothing behind a position.
    pub(super) fn up_to(mut self, seq: Seq) -> Self {
        self.limit = Some(seq);
        self
    }

    /// The segment and the offset where it stands; before the first segment at the start.
    pub(super) fn place(&self) -> (Seq, u64) {
        self.segment.map_or((Seq::ZERO, 0), |segment| (segment, self.at.offset))
    }

    /// Everything up to here was given or filtered out.
    pub(super) fn cursor(&self) -> Option<Cursor> {
        if self.ready.is_empty() { self.cursor } else { self.given }
    }

    /// The next item with the cursor behind it; `None` when there is nothing more below the watermark now.
    pub(super) fn next_item(&mut self) -> Result<Option<(Item, Cursor)>> {
        loop {
            if let Some((item, cursor)) = self.ready.pop_front() {
                self.given = Some(cursor);
                return Ok(Some((item, cursor)));
            }
            if !self.advance()? {
                return Ok(None);
            }
        }
    }

    /// Makes items ready, or moves on; `false` at the watermark.
    fn advance(&mut self) -> Result<bool> {
        if let Some(jump) = self.jump.take() {
            return self.go_on_jumping(jump).map(|()| true);
        }
        if let Some((bytes, next)) = self.mapped.take() {
            return self.read_mapped(bytes, next).map(|()| true);
        }
        if let Some(segment) = self.segment.filter(|segment| self.is_still_last(*segment)) {
            return self.read_active(segment);
        }
        let segments = segments::list(&*self.view.storage)?;
        let Some(segment) = self.segment else {
            let Some(first) = segments.first().copied() else { return self.judge_nothing() };
            if first > Seq(1) {
                self.take_missing(Seq(first.0 - 1))?;
            }
            self.enter(first, Link { seq: Seq(first.0 - 1), crc: None });
            if first == Seq(1) {
                self.at.link = Link::START;
            }
            return Ok(true);
        };
        match segments.iter().copied().find(|first| *first > segment) {
            Some(next)
                if self.begin_jump(segment, Some(next), self.limit.unwrap_or(Seq(u64::MAX)))? =>
            {
                Ok(true)
            }
            Some(next) => {
                self.mapped = Some((segments::map(&*self.view.storage, segment)?, next));
                Ok(true)
            }
            None => self.read_active(segment),
        }
    }

    /// Whether nothing follows a segment, as far as can be told without a look at the folder: its last line is no seal,
    /// and writers still name it as theirs.
    fn is_still_last(&self, segment: Seq) -> bool {
        let open = self.active.as_ref().is_some_and(|(active, ..)| *active == segment);
        open && !self.sealed
            && peek::<Written>(&*self.view.storage, APPEND_LOCK)
                .is_ok_and(|written| written.is_some_and(|w| w.segment == segment.0))
    }

    /// The file that bears the name of the active segment now, and its length.
    fn active_file(&mut self, segment: Seq) -> Result<(Arc<dyn File>, u64)> {
        let storage = &*self.view.storage;
        if let Some((active, id, file)) = &self.active
            && *active == segment
            && let Ok(found) = storage.stat(&segment_path(segment))
            && found.id == *id
        {
            return Ok((Arc::clone(file), found.len));
        }
        let file = segments::open(storage, segment, Access::Read)?;
        let fail = |e| segments::error(storage, segment, "read", e);
        let (id, size) = (file.id().map_err(fail)?, file.size().map_err(fail)?);
        self.active = Some((segment, id, Arc::clone(&file)));
        Ok((file, size))
    }

    /// There is no segment: nothing was ever appended, or everything is gone.
    fn judge_nothing(&mut self) -> Result<bool> {
        self.watermark()?;
        if self.durable == Seq::ZERO || self.reported >= self.durable {
            return Ok(false);
        }
        if !segments::list(&*self.view.storage)?.is_empty() {
            // The first segment was made between the two looks.
            return Ok(true);
        }
        self.reported = self.durable;
        self.take_missing(self.durable)?;
        Ok(true)
    }

    /// No segment holds the positions up to `last`.
    fn take_missing(&mut self, last: Seq) -> Result<()> {
        let mut damage = gaps::missing((Seq(1), last));
        damage.accepted = self.accepted()?.iter().any(|gap| gaps::accepts(gap, &damage));
        self.take_gap(damage);
        Ok(())
    }

    pub(super) fn enter(&mut self, segment: Seq, link: Link) {
        // What was read before is not read again in a segment that claims its positions.
        let link = if link.seq.next() >= segment {
            link
        } else {
            Link { seq: Seq(segment.0 - 1), crc: None }
        };
        self.segment = Some(segment);
        self.at = At { offset: 0, link, ahead: 0 };
        self.searched = 0;
        self.sealed = false;
    }

    fn read_mapped(&mut self, bytes: Bytes, next: Seq) -> Result<()> {
        let Some(first) = self.segment else { return Ok(()) };
        if self.at.offset > bytes.len() as u64 {
            return Err(self.changed(first));
        }
        let visit =
            SegmentVisit { store: self.view.id, first, next: Some(next), durable: Seq::ZERO };
        let view = Arc::clone(&self.view);
        let enough = self.at.offset.saturating_add(READY_BYTES);
        let reached = visit.steps(&*view.storage, &bytes, self.at, &mut |step| match step {
            Step::Line(span, line) => {
                self.take_line(&line)?;
                let ahead = line.fields.batch.map_or(0, |(index, count)| count - index);
                let link = Link { seq: line.fields.seq, crc: Some(line.crc) };
                self.at = At { offset: span.end(), link, ahead };
                Ok(self.ready.len() < READY && span.end() < enough || ahead > 0)
            }
            Step::Break(found) => {
                let accepted = self.accepted()?;
                let damage = gaps::damage(first, &found, accepted);
                self.take_gap(damage);
                let seq = found.seqs.map_or(self.at.link.seq, |(_, last)| last);
                let link = Link { seq, crc: None };
                self.at = At { offset: found.offset + found.bytes, link, ahead: 0 };
                Ok(true)
            }
        })?;
        self.at = reached.at;
        if reached.done {
            self.enter(next, reached.at.link);
        } else {
            self.mapped = Some((bytes, next));
        }
        Ok(())
    }

    /// Reads on in the segment that nothing follows yet.
    fn read_active(&mut self, segment: Seq) -> Result<bool> {
        let view = Arc::clone(&self.view);
        let storage = &*view.storage;
        let limit = self.watermark()?;
        if self.begin_jump(segment, None, limit)? {
            return Ok(true);
        }
        let (file, size) = self.active_file(segment)?;
        let fail = |e| segments::error(storage, segment, "read", e);
        if let Some(crc) = self.at.link.crc.filter(|_| self.at.offset > 0)
            && !trailer_is(storage, &*file, segment, self.at.offset, crc)?
        {
            return Err(self.changed(segment));
        }
        let left = usize::try_from(size.saturating_sub(self.at.offset)).unwrap_or(usize::MAX);
        let mut chunk = CHUNK;
        loop {
            let mut bytes = vec![0; chunk.min(left)];
            let got =
                crate::storage::read_full(&*file, &mut bytes, self.at.offset).map_err(fail)?;
            bytes.truncate(got);
            if self.take_unbroken(segment, &bytes, limit)? {
                return Ok(true);
            }
            if got < chunk {
                return self.judge_end(segment, &bytes, limit);
            }
            chunk *= 2;
        }
    }

    /// Takes the lines of the chain up to the watermark; `false` when there is none.
    fn take_unbroken(&mut self, segment: Seq, bytes: &[u8], limit: Seq) -> Result<bool> {
        let visit =
            SegmentVisit { store: self.view.id, first: segment, next: None, durable: Seq::ZERO };
        let view = Arc::clone(&self.view);
        let from = self.at;
        let mut walk = Walk::new(bytes, from.offset, from.link, Seq::ZERO).inside_batch(from.ahead);
        let mut moved = false;
        while let Some((span, line)) = walk.next_unbroken() {
            let header = span.offset == 0;
            if line.fields.seq > limit
                || header && visit.header_fault(&*view.storage, &line)?.is_some()
            {
                break;
            }
            moved = true;
            self.sealed = is_seal(&line);
            self.at = At { offset: walk.offset(), link: walk.link(), ahead: walk.ahead() };
            self.take_line(&line)?;
            if self.ready.len() >= READY && ends_batch(&line) {
                break;
            }
        }
        Ok(moved)
    }

    /// At a place where the chain of the active segment does not go on: damage when the watermark lies behind it.
    fn judge_end(&mut self, segment: Seq, bytes: &[u8], limit: Seq) -> Result<bool> {
        if self.learn_durable(bytes) {
            return Ok(true);
        }
        let durable = self.durable;
        if self.at.link.seq >= limit.min(durable) || self.reported >= durable {
            self.rest();
            return Ok(false);
        }
        if segments::list(&*self.view.storage)?.last().is_some_and(|last| *last > segment) {
            // The watermark already speaks of a segment that was made after this one was taken for the last.
            return Ok(true);
        }
        let from = self.at;
        let mut walk = Walk::new(bytes, from.offset, from.link, durable).inside_batch(from.ahead);
        if let Some(Step::Break(found)) = walk.next() {
            let accepted = self.accepted()?;
            let damage = gaps::damage(segment, &found, accepted);
            self.at = At { offset: walk.offset(), link: walk.link(), ahead: 0 };
            self.take_gap(damage);
            return Ok(true);
        }
        let (class, detail) = classify_rest(bytes);
        self.reported = durable;
        self.take_gap(Damage {
            class,
            file: segment_path(segment),
            offset: from.offset,
            bytes: bytes.len() as u64,
            seqs: Some((from.link.seq.next(), durable)),
            touched: gaps::touched(&legible(bytes)),
            accepted: false,
            detail,
        });
        Ok(true)
    }

    /// Whether lines up to the end of the active segment, in the chain or not, state more to be durable than was known.
    /// The slot alone may be old: it is written after each sync and synced by nobody.
    fn learn_durable(&mut self, bytes: &[u8]) -> bool {
        let known = self.durable;
        let base = self.at.offset;
        let start = usize::try_from(self.searched.saturating_sub(base)).unwrap_or(usize::MAX);
        let start = start.min(bytes.len());
        for (offset, len, piece) in Scan::new(bytes.get(start..).unwrap_or_default()) {
            match piece {
                Piece::Line(line) => self.durable = self.durable.max(line.fields.durable),
                Piece::Bad(_) => {}
                Piece::Rest => break,
            }
            self.searched = base + (start + offset + len) as u64;
        }
        self.durable > known
    }

    /// How far the view goes in the active segment.
    pub(super) fn watermark(&mut self) -> Result<Seq> {
        let slot: Durable = peek(&*self.view.storage, SYNC_LOCK)?.unwrap_or_default();
        self.durable = self.durable.max(Seq(slot.seq)).max(self.view.marks.durable());
        let limit = match self.read.view {
            View::Durable => self.durable,
            View::Written => Seq(u64::MAX),
        };
        Ok(self.limit.map_or(limit, |own| own.min(limit)))
    }

    pub(super) fn take_line(&mut self, line: &Line<'_>) -> Result<()> {
        let fields = &line.fields;
        self.durable = self.durable.max(fields.durable);
        if self.limit.is_some_and(|limit| fields.seq > limit) {
            return Ok(());
        }
        let cursor = Cursor { store: self.view.id, seq: fields.seq, crc: line.crc };
        self.cursor = Some(cursor);
        if self.read.filter.matches(&fields.stream, fields.kind) {
            let record = Record::from_line(line)?;
            self.ready.push_back((Item::Record(Box::new(record)), cursor));
        }
        Ok(())
    }

    fn take_gap(&mut self, damage: Damage) {
        let cursor = self.cursor.unwrap_or(Cursor {
            store: self.view.id,
            seq: Seq::ZERO,
            crc: crate::id::Crc::NONE,
        });
        self.ready.push_back((Item::Gap(Box::new(damage)), cursor));
    }

    fn accepted(&mut self) -> Result<&[control::Gap]> {
        if self.accepted.is_none() {
            self.accepted = Some(gaps::accepted(&*self.view.storage)?);
        }
        Ok(self.accepted.as_deref().unwrap_or_default())
    }

    /// Finds the place behind a cursor.
    fn seek(&mut self, cursor: &Cursor) -> Result<()> {
        if cursor.store != self.view.id {
            return Err(Error::new(ErrorKind::HistoryChanged, "the cursor is of another store")
                .field("cursor"));
        }
        if cursor.seq == Seq::ZERO || self.resume(cursor)? {
            return Ok(());
        }
        let view = Arc::clone(&self.view);
        let storage = &*view.storage;
        let segments = segments::list(storage)?;
        let index = segments.partition_point(|first| *first <= cursor.seq);
        let Some(segment) = index.checked_sub(1).and_then(|i| segments.get(i)).copied() else {
            return Err(self.changed(Seq::ZERO));
        };
        let next = segments.get(index).copied();
        let start = At { offset: 0, link: Link { seq: Seq(segment.0 - 1), crc: None }, ahead: 0 };
        let found = match seek::near(&view, segment, next, cursor)? {
            Near::Behind(at) => Some(at),
            Near::Before(at) => match self.find(segment, next, at, cursor)? {
                Some(at) => Some(at),
                None => self.find(segment, next, start, cursor)?,
            },
            Near::Unknown => self.find(segment, next, start, cursor)?,
        };
        self.at = found.ok_or_else(|| self.changed(segment))?;
        self.segment = Some(segment);
        self.rest();
        Ok(())
    }

    /// Looks for the place behind a cursor in the lines of a segment from a place on.
    fn find(
        &mut self,
        segment: Seq,
        next: Option<Seq>,
        start: At,
        cursor: &Cursor,
    ) -> Result<Option<At>> {
        let view = Arc::clone(&self.view);
        let storage = &*view.storage;
        self.watermark()?;
        let visit = SegmentVisit { store: view.id, first: segment, next, durable: self.durable };
        let mut found = None;
        let mut look = |step: Step<'_>| Ok(look_at(&step, cursor, &mut found));
        if next.is_some() || start.offset == 0 {
            let file = segments::open(storage, segment, Access::Read)?;
            let bytes = match next {
                Some(_) => segments::map(storage, segment)?,
                None => segments::read_from(storage, segment, &*file, 0)?,
            };
            visit.steps(storage, &bytes, start, &mut look)?;
            return Ok(found);
        }
        let file = segments::open(storage, segment, Access::Read)?;
        let bytes = segments::read_from(storage, segment, &*file, start.offset)?;
        let mut walk = Walk::new(&bytes, start.offset, start.link, self.durable);
        while let Some(step) = walk.next() {
            if !look(step)? {
                break;
            }
        }
        Ok(found)
    }

    fn changed(&self, segment: Seq) -> Error {
        let place = self.cursor.map_or(Seq::ZERO, |cursor| cursor.seq);
        let end = end(&self.view, View::Written).ok().flatten().map_or(Seq::ZERO, |c| c.seq);
        Error::new(
            ErrorKind::HistoryChanged,
            format!("the line at {place} is not the one that was read; the log ends at {end}"),
        )
        .path(self.view.storage.display(&segment_path(segment)))
        .seq(place)
        .hint("read again from the start, or from a cursor of this history")
    }
}

impl Iterator for Reader {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let found = self.next_item();
        self.failed = found.is_err();
        found.map(|found| found.map(|(item, _)| item)).transpose()
    }
}

fn ends_batch(line: &Line<'_>) -> bool {
    line.fields.batch.is_none_or(|(index, count)| index == count)
}

/// Looks at a step for the place behind the line that a cursor names: behind that very line, or before the one that
/// names it as the line before. Tells whether to go on.
fn look_at(step: &Step<'_>, cursor: &Cursor, found: &mut Option<At>) -> bool {
    let Step::Line(span, line) = step else { return true };
    let fields = &line.fields;
    if fields.seq == cursor.seq && line.crc == cursor.crc {
        let ahead = fields.batch.map_or(0, |(index, count)| count - index);
        let link = Link { seq: fields.seq, crc: Some(line.crc) };
        *found = Some(At { offset: span.end(), link, ahead });
    } else if found.is_none() && fields.seq == cursor.seq.next() && fields.prev == cursor.crc {
        let link = Link { seq: cursor.seq, crc: None };
        *found = Some(At { offset: span.offset, link, ahead: 0 });
    }
    fields.seq <= cursor.seq
}

/// The cursor of the last event of a view.
pub(super) fn end(view: &Arc<LogView>, which: View) -> Result<Option<Cursor>> {
    for segment in segments::list(&*view.storage)?.into_iter().rev() {
        let mut reader = Reader::new(Arc::clone(view), Read::default().view(which))?;
        reader.enter(segment, Link { seq: Seq(segment.0 - 1), crc: None });
        while reader.advance()? {
            reader.ready.clear();
        }
        if reader.cursor.is_some() {
            return Ok(reader.cursor);
        }
    }
    Ok(None)
}

/// Brings a decision's fold up to the end that the writer knows.
pub(super) fn feed(view: &Arc<LogView>, decider: &mut dyn Decider, end: &End) -> Result<()> {
    let seen = decider.seen();
    if seen.is_some_and(|cursor| cursor.seq == end.seq && cursor.crc == end.crc) {
        return Ok(());
    }
    let read = Read::after(seen).view(View::Written);
    let mut reader = match Reader::new(Arc::clone(view), read) {
        Err(e)
            if *e.kind() == ErrorKind::HistoryChanged
                && seen.is_some_and(|c| c.store == view.id) =>
        {
            decider.restart();
            Reader::new(Arc::clone(view), Read::default().view(View::Written))?
        }
        other => other?,
    }
    .up_to(end.seq);
    while let Some((item, cursor)) = reader.next_item()? {
        decider.apply(&item, &cursor);
    }
    Ok(())
}
