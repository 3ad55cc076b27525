//! Finding the place behind a cursor by an index, without reading what lies before it. What an index says is checked
//! against the line itself; where that does not fit, or there is no index, the caller reads from further ahead.

use std::sync::Arc;

use crate::error::Result;
use crate::format::{self, LINE_MAX};
use crate::id::Seq;
use crate::storage::{Access, File, read_full};
use crate::store::Cursor;

use super::LogView;
use super::index::{Index, part_near, whole};
use super::segments;
use super::visit::At;
use super::walk::Link;

/// How near an index has led to a cursor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Near {
    /// To the place behind it.
    Behind(At),
    /// To a place before it, from which it is not far.
    Before(At),
    /// Nowhere.
    Unknown,
}

/// Looks for a cursor in its segment; `next` is the segment after that.
pub(super) fn near(
    view: &LogView,
    segment: Seq,
    next: Option<Seq>,
    cursor: &Cursor,
) -> Result<Near> {
    let storage = &*view.storage;
    let index = match next {
        Some(next) => whole(storage, view.id, segment, next),
        None => part_near(storage, view.id, segment, cursor.seq),
    };
    let Some(index) = index.filter(|index| !index.stretch.broken) else {
        return Ok(Near::Unknown);
    };
    let stretch = index.stretch;
    if cursor.seq > stretch.last {
        let link = Link { seq: stretch.last, crc: Some(stretch.last_crc) };
        return Ok(Near::Before(At { offset: stretch.end, link, ahead: 0 }));
    }
    let file = segments::open(storage, segment, Access::Read)?;
    Ok(behind(&index, &file, cursor).map_or(Near::Unknown, Near::Behind))
}

/// The place behind the line of a cursor, if it is the line that the index says.
fn behind(index: &Index, file: &Arc<dyn File>, cursor: &Cursor) -> Option<At> {
    let row = cursor.seq.0.checked_sub(index.stretch.before.0)?.checked_sub(1)?;
    let (offset, len) = index.line(u32::try_from(row).ok()?)?;
    let count = usize::try_from(len).ok().filter(|count| *count <= LINE_MAX)?;
    let mut raw = vec![0; count];
    if read_full(&**file, &mut raw, offset).ok()? != count {
        return None;
    }
    let line = format::decode(&raw).ok()?;
    let fits = line.fields.seq == cursor.seq && line.crc == cursor.crc;
    let ahead = line.fields.batch.map_or(0, |(index, count)| count - index);
    let link = Link { seq: cursor.seq, crc: Some(cursor.crc) };
    fits.then_some(At { offset: offset + len, link, ahead })
}
