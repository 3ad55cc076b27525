//! Reading the active segment, which grows meanwhile: what is whole is taken, what is not is not there yet or, below the
//! watermark, damage.

use std::sync::Arc;

use super::{ADDED, CHUNK, READY, Reader, ends_batch};
use crate::error::Result;
use crate::format::scan::{Piece, Scan};
use crate::format::{TRAILER, segment_path, trailer};
use crate::id::Seq;
use crate::log::tail::trailer_is;
use crate::log::visit::{At, SegmentVisit};
use crate::log::walk::{Walk, classify_rest, is_seal, legible};
use crate::log::{gaps, segments};
use crate::storage::{Access, File};
use crate::store::Damage;

impl Reader {
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
    pub(super) fn judge_nothing(&mut self) -> Result<bool> {
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

    /// Takes what was added behind a place where nothing more was, with as few calls as can be: one for the watermark,
    /// where there is one, and one for the lines with the end of the line before them. `false` when there is nothing
    /// to take, or when it needs a look at more than that.
    pub(super) fn read_added(&mut self) -> Result<bool> {
        let (Some(segment), Some((active, _, file))) = (self.segment, &self.active) else {
            return Ok(false);
        };
        let start = self.at.offset.checked_sub(TRAILER as u64);
        let (Some(start), Some(crc)) = (start, self.at.link.crc) else { return Ok(false) };
        if !self.rested || self.sealed || *active != segment {
            return Ok(false);
        }
        let file = Arc::clone(file);
        let limit = self.moved_watermark()?;
        let mut bytes = std::mem::take(&mut self.added);
        bytes.resize(TRAILER + ADDED, 0);
        let got = file.read_at(&mut bytes, start).unwrap_or_default();
        let read = bytes.get(..got).and_then(|read| read.split_at_checked(TRAILER));
        let taken = match read {
            Some((before, lines)) if before == trailer(crc) => {
                self.take_unbroken(segment, lines, limit)?
            }
            _ => false,
        };
        self.rested = taken && got < bytes.len();
        self.added = bytes;
        Ok(taken)
    }

    /// Reads on in the segment that nothing follows yet.
    pub(super) fn read_active(&mut self, segment: Seq) -> Result<bool> {
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
            self.rested = true;
            return Ok(false);
        }
        if segments::list(&*self.view.storage)?.last().is_some_and(|last| *last > segment) {
            // The watermark already speaks of a segment that was made after this one was taken for the last.
            return Ok(true);
        }
        let from = self.at;
        let mut walk = Walk::new(bytes, from.offset, from.link, durable).inside_batch(from.ahead);
        if walk.next_unbroken().is_none()
            && let Some(found) = walk.next_break()
        {
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
}
