//! Looking for ids: by the time that they carry, by a filter over those that were met, and by the indexes.

use std::cell::RefCell;

use super::{Known, seq_of};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::format;
use crate::id::{EventId, Seq};
use crate::log::index::{Filter, Part, Stretch, hash_id};
use crate::log::segments;
use crate::log::tail::read_line;
use crate::storage::Access;
use crate::store::admit::ID_AGE_MAX;

/// So many ids are looked for in the indexes one by one before the ids of all of them are read: a process that appends
/// a little reads a little.
const ASKED_MAX: u32 = 256;

/// The ids of all parts with a line of this time or a later one.
#[derive(Debug)]
pub(super) struct Seen {
    since: Timestamp,
    filter: Filter,
}

impl Seen {
    /// Adds the hash of an id of the newest part.
    pub(super) fn insert(&mut self, hash: u64) {
        self.filter.insert(hash);
    }
}

impl Known {
    /// Where an id stands.
    pub(in crate::log) fn position(&self, id: EventId) -> Result<Option<Seq>> {
        if let Some(row) = self.recent.builder.row_of(id) {
            return Ok(Some(seq_of(self.recent.before.seq, row)));
        }
        // A line is never older than the id in it, to the millisecond that such an id carries, but for the minutes that
        // clocks may differ.
        let made = id.embedded_time().map_or(Timestamp::EPOCH, |made| made.minus(ID_AGE_MAX));
        if !self.may_have(id, made)? {
            return Ok(None);
        }
        for part in self.parts.borrow_mut().iter_mut().rev() {
            if part.stretch().last_time < made {
                continue;
            }
            let rows = self.ask(part, |index| {
                let rows = index.rows_like(id).into_iter();
                rows.filter_map(|row| Some((row, index.line(row)?))).collect::<Vec<_>>()
            })?;
            let Stretch { segment, before, .. } = *part.stretch();
            for (row, (offset, _)) in rows {
                if self.id_at(segment, offset)? == Some(id) {
                    return Ok(Some(seq_of(before, row)));
                }
            }
        }
        Ok(None)
    }

    /// Whether an id that no line from before `made` has may stand in one of the parts; `false` is certain.
    fn may_have(&self, id: EventId, made: Timestamp) -> Result<bool> {
        let mut parts = self.parts.borrow_mut();
        if parts.iter().rev().all(|part| part.stretch().last_time < made) {
            return Ok(false);
        }
        if self.asked.get() < ASKED_MAX {
            self.asked.set(self.asked.get() + 1);
            return Ok(true);
        }
        let mut kept = self.filter.borrow_mut();
        let fits =
            |seen: &Seen| !seen.filter.is_full() && (seen.since <= made || made > Timestamp::EPOCH);
        if !kept.as_ref().is_some_and(fits) {
            // Ids that carry a time and may be appended from now on were made after this.
            let since = made.minus(2 * ID_AGE_MAX);
            let mut wanted: Vec<&mut Part> =
                parts.iter_mut().filter(|part| part.stretch().last_time >= since).collect();
            // Positions tell nothing of how many there are: behind damage they may jump to any number.
            let ids: u64 = wanted.iter().map(|part| part.id_count()).sum();
            let filter = RefCell::new(Filter::with_room(ids.saturating_mul(2)));
            for part in &mut wanted {
                self.ask(part, |index| index.fill(&mut filter.borrow_mut()))?;
            }
            *kept = Some(Seen { since, filter: filter.into_inner() });
        }
        let known = kept.as_ref().filter(|seen| seen.since <= made);
        Ok(known.is_none_or(|seen| seen.filter.may_have(hash_id(id))))
    }

    fn id_at(&self, segment: Seq, offset: u64) -> Result<Option<EventId>> {
        let file = segments::open(&*self.storage, segment, Access::Read)?;
        let raw = read_line(&*file, offset)
            .map_err(|e| segments::error(&*self.storage, segment, "read", e))?;
        Ok(format::decode(&raw).ok().map(|line| line.fields.id))
    }
}
