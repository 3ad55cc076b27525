//! Reading in order, without a lock. The watermark is read first and never passed; below it a bad line is damage and
//! comes as a gap, above it a bad line is not yet there.

mod active;
mod place;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::{ErrorKind, Result};
use crate::format::slot::{Durable, Written};
use crate::format::{APPEND_LOCK, Line, SYNC_LOCK, control};
use crate::id::{Seq, Version};
use crate::storage::{File, FileId};
use crate::store::{Cursor, Damage, Decider, Filter, Item, NamePattern, Read, Record, View};

use super::jump::Jump;
use super::segments::{self, Bytes};
use super::slots::{open_to_read, peek, read_value};
use super::tail::End;
use super::visit::{At, SegmentVisit};
use super::walk::{Link, Step};
use super::{LogView, gaps};

/// How many items are made ready at a time.
pub(super) const READY: usize = 256;

/// How much of the active segment is read at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// How much is read at once of what was added to it since, in bytes.
const ADDED: usize = 16 << 10;

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
    /// Whether nothing more was in the active segment, so that only what was added since need be read.
    rested: bool,
    /// Room for that, used again.
    added: Vec<u8>,
    /// The slots of the sync lock, opened when the watermark was looked for last.
    slot: Option<Arc<dyn File>>,
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
            rested: false,
            added: Vec::new(),
            slot: None,
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
        if self.read_added()? {
            return Ok(true);
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
        self.rested = false;
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
                self.take_line(line)?;
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

    /// How far the view goes in the active segment.
    pub(super) fn watermark(&mut self) -> Result<Seq> {
        self.slot = open_to_read(&*self.view.storage, SYNC_LOCK)?;
        self.learn_watermark()?;
        Ok(self.view_limit())
    }

    /// The same, by the slot that was open already. If that is another file by now, it tells nothing new.
    fn moved_watermark(&mut self) -> Result<Seq> {
        if self.read.view == View::Durable {
            self.learn_watermark()?;
        }
        Ok(self.view_limit())
    }

    fn learn_watermark(&mut self) -> Result<()> {
        let told: Option<Durable> = match &self.slot {
            Some(slot) => read_value(&*self.view.storage, SYNC_LOCK, &**slot)?,
            None => None,
        };
        let told = Seq(told.unwrap_or_default().seq);
        self.durable = self.durable.max(told).max(self.view.marks.durable());
        Ok(())
    }

    /// The last position to give, as far as is known.
    fn view_limit(&self) -> Seq {
        let limit = match self.read.view {
            View::Durable => self.durable,
            View::Written => Seq(u64::MAX),
        };
        self.limit.map_or(limit, |own| own.min(limit))
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

/// The cursor of the last event of a view.
pub(super) fn end(view: &Arc<LogView>, which: View) -> Result<Option<Cursor>> {
    // No event is wanted, and none of a stream that nobody has: stretches that have an index are passed over.
    let streams = vec![NamePattern::Exact(String::new())];
    let read = Read::default().view(which).filter(Filter { streams, types: Vec::new() });
    let mut segments = segments::list(&*view.storage)?;
    while let Some(segment) = segments.pop() {
        let before = segments.last().copied();
        let known = segments::link_behind(&*view.storage, before, segment);
        // What ends the segment before may be damaged.
        for link in [known, Link { crc: None, ..known }] {
            let mut reader = Reader::new(Arc::clone(view), read.clone())?;
            reader.enter(segment, link);
            while reader.advance()? {
                reader.ready.clear();
            }
            if reader.cursor.is_some() {
                return Ok(reader.cursor);
            }
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
