//! Stretches of a log: ranges of segments that are read by themselves. A stretch begins with the first batch that begins
//! in its range and ends before the first that begins behind it, so that neighbours meet wherever the ranges were cut.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::format::scan::Scan;
use crate::format::{Fields, LINE_MAX, Line};
use crate::id::Seq;
use crate::storage::{Access, Advice, read_full};
use crate::store::{Chain, Cursor, Read, Stretch, View};

use super::LogView;
use super::reader::Reader;
use super::segments;
use super::visit::SegmentVisit;
use super::walk::is_seal;

/// Less than this part of a stretch is read in order.
const WORTHWHILE: u64 = 16;

/// The active segment is read into memory and not mapped, therefore in shorter stretches: so many for a mapped one.
const PARTS_OF_ACTIVE: u64 = 8;

/// A range of a segment.
#[derive(Debug)]
struct SegmentStretch {
    view: Arc<LogView>,
    visit: SegmentVisit,
    range: Range<u64>,
    /// Nothing is shown behind this position.
    limit: Seq,
}

/// The stretches of everything behind a cursor.
pub(super) fn stretches(
    view: &Arc<LogView>,
    after: Option<Cursor>,
    which: View,
) -> Result<Vec<Box<dyn Stretch>>> {
    let mut reader = Reader::new(Arc::clone(view), Read::after(after).view(which))?;
    let limit = reader.watermark()?;
    let (start, mut offset) = reader.place();
    let segments = segments::list(&*view.storage)?;
    let mut ranges = Vec::new();
    let mut left = 0;
    for (i, first) in segments.iter().copied().enumerate().filter(|(_, first)| *first >= start) {
        let size = segments::open(&*view.storage, first, Access::Read)?
            .size()
            .map_err(|e| segments::error(&*view.storage, first, "look at", e))?;
        let next = segments.get(i + 1).copied();
        let visit = SegmentVisit { store: view.id, first, next, durable: Seq::ZERO };
        left += size.saturating_sub(offset);
        while offset < size {
            // What is left is cut evenly into about so many parts, so that no thread waits long for the last one.
            let whole = view.options.stretch_bytes;
            let bytes = if next.is_some() { whole } else { whole / PARTS_OF_ACTIVE }.max(1);
            let parts = ((size - offset + bytes / 2) / bytes).max(1);
            let end = offset + (size - offset).div_ceil(parts);
            ranges.push((visit, offset..end));
            offset = end;
        }
        offset = 0;
    }
    if left < view.options.stretch_bytes / WORTHWHILE {
        return Ok(Vec::new());
    }
    let stretch = |(visit, range): (SegmentVisit, Range<u64>)| {
        let limit = if visit.next.is_some() { Seq::LAST } else { limit };
        let stretch = SegmentStretch { view: Arc::clone(view), visit, range, limit };
        Box::new(stretch) as Box<dyn Stretch>
    };
    Ok(ranges.into_iter().map(stretch).collect())
}

impl Stretch for SegmentStretch {
    fn read(&self, show: &mut dyn FnMut(&Fields<'_>)) -> Result<Chain> {
        let storage = &*self.view.storage;
        let Range { start, end } = self.range;
        // The byte before tells whether a line begins at the first one.
        let from = start.saturating_sub(1);
        if self.visit.next.is_some() {
            let bytes = segments::map(storage, self.visit.first)?;
            if start == 0 && end >= bytes.len() as u64 {
                bytes.advise(Advice::Whole);
            }
            return self.chain(bytes.get(usize_of(from)..).unwrap_or_default(), show);
        }
        let file = segments::open(storage, self.visit.first, Access::Read)?;
        // The first batch behind the end begins within one line of it, unless a batch reaches far over it.
        let mut bytes = vec![0; usize_of(end - from) + LINE_MAX];
        let got = read_full(&*file, &mut bytes, from)
            .map_err(|e| segments::error(storage, self.visit.first, "read", e))?;
        bytes.truncate(got);
        self.chain(&bytes, show)
    }
}

impl SegmentStretch {
    /// Follows the chain in bytes that begin at the range, or one byte before it.
    fn chain(&self, bytes: &[u8], show: &mut dyn FnMut(&Fields<'_>)) -> Result<Chain> {
        let start = match self.range.start {
            0 => 0,
            _ => memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1),
        };
        let end = usize_of(self.range.end - self.range.start.saturating_sub(1));
        let mut chain =
            Links { cursor: None, follows: None, ahead: None, sealed: false, events: 0 };
        let mut scan = Scan::new(bytes.get(start..).unwrap_or_default());
        let ended = loop {
            let offset = scan.offset();
            let Some(raw) = scan.raw() else {
                // Behind what was shown up to the watermark, half a line is not there yet.
                let unfinished = !scan.rest().is_empty();
                if !unfinished || self.visit.next.is_none() && chain.is_between() {
                    break unfinished;
                }
                return Ok(Chain::Broken);
            };
            let Ok(line) = raw.decode() else { return Ok(Chain::Broken) };
            let begins = line.fields.batch.is_none_or(|(index, _)| index == 1);
            if begins && (start + offset >= end || self.is_behind_limit(&line)) {
                break true;
            }
            if self.range.start == 0
                && offset == 0
                && self.visit.header_fault(&*self.view.storage, &line)?.is_some()
            {
                return Ok(Chain::Broken);
            }
            if chain.follows.is_none() && !begins {
                continue;
            }
            if !chain.take(&line, self.visit.store) {
                return Ok(Chain::Broken);
            }
            show(&line.fields);
        };
        // The bytes of a sealed segment end with it; those of the active one were cut off somewhere.
        let at_end = ended || self.visit.next.is_some() || bytes.len() < end + LINE_MAX;
        Ok(match (chain.follows, chain.cursor) {
            (Some(follows), Some(last)) if at_end && chain.is_between() => {
                Chain::Whole { follows, last, events: chain.events }
            }
            (None, _) if at_end => Chain::Empty,
            _ => Chain::Broken,
        })
    }

    /// Whether a line, or a later one of the batch that it begins, lies behind the watermark.
    fn is_behind_limit(&self, line: &Line<'_>) -> bool {
        let more = line.fields.batch.map_or(0, |(_, count)| u64::from(count) - 1);
        line.fields.seq.0.saturating_add(more) > self.limit.0
    }
}

/// The chain as far as it was followed.
struct Links {
    follows: Option<Cursor>,
    cursor: Option<Cursor>,
    /// The place in its batch, and that batch's size, that the next line must have.
    ahead: Option<(u32, u32)>,
    sealed: bool,
    events: u64,
}

impl Links {
    /// Goes on to a line, if it follows.
    fn take(&mut self, line: &Line<'_>, store: crate::id::StoreId) -> bool {
        let fields = &line.fields;
        let follows = Cursor { store, seq: Seq(fields.seq.0 - 1), crc: fields.prev };
        let goes_on = self.cursor.is_none_or(|cursor| cursor == follows);
        let in_batch = match self.ahead {
            Some(next) => fields.batch == Some(next),
            None => fields.batch.is_none_or(|(index, _)| index == 1),
        };
        if !goes_on || !in_batch || self.sealed {
            return false;
        }
        self.follows.get_or_insert(follows);
        self.cursor = Some(Cursor { store, seq: fields.seq, crc: line.crc });
        self.ahead = fields.batch.filter(|(index, count)| index < count).map(|(i, n)| (i + 1, n));
        self.sealed = is_seal(line);
        self.events += 1;
        true
    }

    /// Whether no batch is open.
    const fn is_between(&self) -> bool {
        self.ahead.is_none()
    }
}

fn usize_of(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
