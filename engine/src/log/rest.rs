//! Where the last reading of this process stood, so that the next one that begins there need not look for the place: who
//! asks again and again for what is new reads what is new.

use std::sync::Mutex;

use crate::error::Result;
use crate::id::Seq;
use crate::storage::Access;
use crate::store::Cursor;

use super::locked;
use super::reader::Reader;
use super::segments;
use super::tail::trailer_is;
use super::visit::At;

/// A place behind a line that was read, by its cursor.
#[derive(Debug, Default)]
pub(super) struct Rest(Mutex<Option<(Cursor, Seq, At)>>);

impl Reader {
    /// Remembers where it stands, if that is right behind its cursor.
    pub(super) fn rest(&self) {
        let (segment, _) = self.place();
        let Some(cursor) = self.cursor.filter(|cursor| {
            let link = self.at.link;
            self.at.ahead == 0 && link.seq == cursor.seq && link.crc == Some(cursor.crc)
        }) else {
            return;
        };
        *locked(&self.view.rest.0) = Some((cursor, segment, self.at));
    }

    /// Goes to where an earlier reading stood behind this cursor, if that line is there still.
    pub(super) fn resume(&mut self, cursor: &Cursor) -> Result<bool> {
        let known = *locked(&self.view.rest.0);
        let Some((_, segment, at)) = known.filter(|(known, ..)| known == cursor) else {
            return Ok(false);
        };
        let storage = &*self.view.storage;
        let Ok(file) = segments::open(storage, segment, Access::Read) else { return Ok(false) };
        if !trailer_is(storage, &*file, segment, at.offset, cursor.crc)? {
            return Ok(false);
        }
        self.enter(segment, at.link);
        self.at = at;
        Ok(true)
    }
}
