//! Reading the lines of one stream or one type by an index, without looking at the others. A line that is not what the
//! index says ends the jump there, and the segment is read on line by line, so that damage comes as a gap.

use std::sync::Arc;

use crate::error::Result;
use crate::format::{self, Line};
use crate::id::{Seq, Version};
use crate::storage::Access;
use crate::store::{Cursor, NamePattern, Read};

use super::catalog::Source;
use super::index::{Index, Key, Stretch, next_part, whole};
use super::reader::{READY, READY_BYTES, Reader};
use super::segments;
use super::visit::At;
use super::walk::Link;

/// A stretch that is read by its index.
#[derive(Debug)]
pub(super) struct Jump {
    stretch: Stretch,
    /// The segment after it, when there is one.
    next: Option<Seq>,
    index: Index,
    /// The rows of the lines that are wanted, in order.
    rows: std::vec::IntoIter<u32>,
    /// The rows before this one belong to a batch that is whole.
    whole_to: u32,
    /// The place behind the last line that was given.
    behind: At,
    source: Source,
}

impl Reader {
    /// Begins to jump through the stretch where the reader stands, up to `limit`; `false` when no index helps.
    pub(super) fn begin_jump(
        &mut self,
        segment: Seq,
        next: Option<Seq>,
        limit: Seq,
    ) -> Result<bool> {
        let Some(key) = key(&self.read).filter(|_| self.misled != Some(segment)) else {
            return Ok(false);
        };
        let storage = Arc::clone(&self.view.storage);
        let (store, at) = (self.view.id, self.at);
        let index = match next {
            Some(next) if at.offset == 0 => whole(&*storage, store, segment, next),
            None => next_part(&*storage, store, segment, None, at.offset, at.link),
            Some(_) => None,
        };
        let fits = |index: &Index| !index.stretch.broken && index.stretch.last <= limit;
        let Some(index) = index.filter(|index| at.ahead == 0 && fits(index)) else {
            return Ok(false);
        };
        let rows = wanted(&index, key, self.behind);
        if index.is_damaged() {
            return Ok(false);
        }
        let source = match next {
            Some(_) => Source::Mapped(Arc::new(segments::map(&*storage, segment)?)),
            None => Source::File(segments::open(&*storage, segment, Access::Read)?),
        };
        let stretch = index.stretch;
        self.jump = Some(Box::new(Jump {
            stretch,
            next,
            index,
            rows: rows.into_iter(),
            whole_to: 0,
            behind: at,
            source,
        }));
        Ok(true)
    }

    /// Makes the next lines of a jump ready, and leaves it at its end or before a line that is not what it should be.
    pub(super) fn go_on_jumping(&mut self, mut jump: Box<Jump>) -> Result<()> {
        let mut bytes = 0;
        while self.ready.len() < READY && bytes < READY_BYTES {
            let Some(row) = jump.rows.next() else {
                self.end_jump(&jump);
                return Ok(());
            };
            let raw = jump.line(row);
            let line = raw.as_deref().and_then(|raw| jump.decode(row, raw));
            let reach = line.as_ref().and_then(|line| jump.batch_reach(row, line));
            let (Some(line), Some(whole_to)) = (line, reach) else {
                // From behind the last line that was given it is read line by line, and damage comes as a gap.
                self.misled = Some(jump.stretch.segment);
                self.at = jump.behind;
                return Ok(());
            };
            self.take_line(&line)?;
            bytes += raw.as_deref().map_or(0, <[u8]>::len) as u64;
            let ahead = line.fields.batch.map_or(0, |(index, count)| count - index);
            let link = Link { seq: line.fields.seq, crc: Some(line.crc) };
            let offset =
                jump.index.line(row).map_or(jump.behind.offset, |(start, len)| start + len);
            let behind = At { offset, link, ahead };
            (jump.whole_to, jump.behind) = (whole_to, behind);
        }
        self.jump = Some(jump);
        Ok(())
    }

    fn end_jump(&mut self, jump: &Jump) {
        let Stretch { end, last, last_crc, .. } = jump.stretch;
        self.cursor = Some(Cursor { store: self.view.id, seq: last, crc: last_crc });
        let link = Link { seq: last, crc: Some(last_crc) };
        self.at = At { offset: end, link, ahead: 0 };
        if let Some(next) = jump.next {
            self.enter(next, link);
        }
    }
}

impl Jump {
    fn line(&self, row: u32) -> Option<std::borrow::Cow<'_, [u8]>> {
        let (offset, len) = self.index.line(row)?;
        self.source.line(offset, len)
    }

    fn decode<'a>(&self, row: u32, raw: &'a [u8]) -> Option<Line<'a>> {
        let line = format::decode(raw).ok()?;
        (line.fields.seq.0 == self.stretch.before.0 + 1 + u64::from(row)).then_some(line)
    }

    /// The row behind the batch of a line, when every line of it is whole.
    fn batch_reach(&self, row: u32, line: &Line<'_>) -> Option<u32> {
        let Some((index, count)) = line.fields.batch.filter(|_| row >= self.whole_to) else {
            return Some(self.whole_to);
        };
        let first = row.checked_sub(index - 1)?;
        let end = first.checked_add(count)?;
        let whole = |row| self.line(row).is_some_and(|raw| self.decode(row, &raw).is_some());
        (first..end).all(whole).then_some(end)
    }
}

/// What an index can find the wanted events by: one stream, or one type.
fn key(read: &Read) -> Option<Key<'_>> {
    match (read.filter.streams.as_slice(), read.filter.types.as_slice()) {
        ([NamePattern::Exact(stream)], _) => Some(Key::Stream(stream)),
        ([], [NamePattern::Exact(kind)]) => Some(Key::Type(kind)),
        _ => None,
    }
}

/// The rows that may be wanted. Versions of a stream are dense, so that those behind one are the last so many.
fn wanted(index: &Index, key: Key<'_>, behind: Version) -> Vec<u32> {
    let mut rows = index.rows_of(key);
    if let Key::Stream(stream) = key {
        let last = index.version(stream).unwrap_or_default();
        let keep = usize::try_from(last.0.saturating_sub(behind.0)).unwrap_or(usize::MAX);
        rows.drain(..rows.len().saturating_sub(keep));
    }
    rows
}
