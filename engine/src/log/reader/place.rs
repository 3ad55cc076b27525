//! The place behind a cursor, and what is said when the history is another one.

use std::sync::Arc;

use super::{Reader, end};
use crate::error::{Error, ErrorKind, Result};
use crate::format::segment_path;
use crate::id::Seq;
use crate::log::seek::{self, Near};
use crate::log::segments;
use crate::log::visit::{At, SegmentVisit};
use crate::log::walk::{Link, Step, Walk};
use crate::storage::Access;
use crate::store::{Cursor, View};

impl Reader {
    /// Finds the place behind a cursor.
    pub(super) fn seek(&mut self, cursor: &Cursor) -> Result<()> {
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
        let mut on = true;
        while on {
            on = match walk.next_unbroken() {
                Some((span, line)) => look(Step::Line(span, &line))?,
                None => walk.next_break().is_some(),
            };
        }
        Ok(found)
    }

    pub(super) fn changed(&self, segment: Seq) -> Error {
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
