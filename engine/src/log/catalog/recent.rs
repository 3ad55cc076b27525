//! The active segment as it is kept open: the stretches that have an index, and the lines behind them in memory.

use std::sync::Arc;

use super::Reach;
use super::held::{Held, Source};
use crate::error::Result;
use crate::format::scan::{Piece, Scan};
use crate::format::segment_path;
use crate::format::slot::Durable;
use crate::id::{Seq, Version};
use crate::log::LogView;
use crate::log::index::{Builder, Key, next_part};
use crate::log::segments;
use crate::log::tail::trailer_is;
use crate::log::visit::SegmentVisit;
use crate::log::walk::{Link, Walk};
use crate::storage::{Access, File, FileId};

/// So many bytes are kept in memory at most.
const BYTES_MAX: u64 = 16 << 20;

/// The segment that nothing follows yet.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) segment: Seq,
    file: Arc<dyn File>,
    id: FileId,
    /// Stretches from its start that have an index, in order.
    pub(super) parts: Vec<Arc<Held>>,
    pub(super) recent: Recent,
}

/// The lines behind the last stretch that has an index.
#[derive(Debug)]
pub(super) struct Recent {
    start: u64,
    before: Link,
    end: Link,
    bytes: Vec<u8>,
    builder: Builder,
    /// Whether something that is neither a line nor the beginning of one lies behind.
    ragged: bool,
    /// How many bytes there are when an index is looked for again.
    look: usize,
}

impl Active {
    /// Opens the segment that follows `before`; `None` when too much of it has no index.
    pub(super) fn open(view: &LogView, before: Link, floor: &Durable) -> Result<Option<Self>> {
        let storage = &*view.storage;
        let segment = before.seq.next();
        let file = segments::open(storage, segment, Access::Read)?;
        let id = file.id().map_err(|e| segments::error(storage, segment, "look at", e))?;
        let recent = Recent::new(0, before);
        let mut active = Self { segment, file, id, parts: Vec::new(), recent };
        active.take_parts(view, floor);
        Ok(active.grow(view, floor)?.then_some(active))
    }

    /// Reads what was appended; `false` when the file is not what it was, or too much has no index.
    pub(super) fn grow(&mut self, view: &LogView, floor: &Durable) -> Result<bool> {
        let (storage, segment) = (&*view.storage, self.segment);
        let Ok(found) = storage.stat(&segment_path(segment)) else { return Ok(false) };
        let end = self.recent.offset();
        if found.id != self.id || found.len < end || found.len - end > BYTES_MAX {
            return Ok(false);
        }
        if let Some(crc) = self.recent.end.crc.filter(|_| end > 0)
            && !trailer_is(storage, &*self.file, segment, end, crc)?
        {
            return Ok(false);
        }
        if found.len > end {
            let bytes = segments::read_from(storage, segment, &*self.file, end)?;
            let visit =
                SegmentVisit { store: view.id, first: segment, next: None, durable: Seq::ZERO };
            self.recent.read(view, &visit, &bytes)?;
        } else {
            self.recent.ragged = false;
        }
        if self.recent.bytes.len() >= self.recent.look {
            self.take_parts(view, floor);
            let step = usize::try_from(view.options.index_bytes / 4).unwrap_or(usize::MAX);
            self.recent.look = self.recent.bytes.len().saturating_add(step);
        }
        Ok(self.recent.bytes.len() as u64 <= BYTES_MAX)
    }

    /// Takes the stretches that have got an index out of memory.
    fn take_parts(&mut self, view: &LogView, floor: &Durable) {
        let (storage, segment) = (&*view.storage, self.segment);
        // One map for all of them; one that was made for the parts before may end too early for the new ones.
        let mut map = None;
        while let Some(index) = next_part(
            storage,
            view.id,
            segment,
            Some(&*self.file),
            self.recent.start,
            self.recent.before,
        ) {
            let stretch = index.stretch;
            let settled = floor.segment == segment.0 && stretch.end <= floor.offset;
            let source = Source::of(&self.file, settled, &mut map);
            self.parts.push(Arc::new(Held::new(index, source)));
            self.recent.cut(stretch.end, Link { seq: stretch.last, crc: Some(stretch.last_crc) });
        }
    }
}

impl Recent {
    fn new(start: u64, before: Link) -> Self {
        let builder = Builder::default();
        Self { start, before, end: before, bytes: Vec::new(), builder, ragged: false, look: 0 }
    }

    /// What the next line has to follow.
    pub(super) const fn end(&self) -> Link {
        self.end
    }

    /// Whether only a reading in order can tell what lies behind the last line.
    pub(super) const fn is_ragged(&self) -> bool {
        self.ragged
    }

    fn offset(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn read(&mut self, view: &LogView, visit: &SegmentVisit, bytes: &[u8]) -> Result<()> {
        let base = self.offset();
        let mut walk = Walk::new(bytes, base, self.end, Seq::ZERO);
        while let Some((span, line)) = walk.next_unbroken() {
            if span.offset == 0 && visit.header_fault(&*view.storage, &line)?.is_some() {
                self.ragged = true;
                return Ok(());
            }
            self.builder.add(self.before.seq, span.offset, span.len, (&line.fields).into());
        }
        let whole = usize::try_from(walk.offset() - base).unwrap_or(usize::MAX);
        self.ragged = !walk.is_sealed() && !walk.is_unfinished();
        self.end = walk.link();
        self.bytes.extend_from_slice(bytes.get(..whole).unwrap_or_default());
        Ok(())
    }

    /// Forgets what lies before a place between two lines.
    fn cut(&mut self, start: u64, before: Link) {
        let gone = usize::try_from(start.saturating_sub(self.start)).unwrap_or(usize::MAX);
        let known = gone <= self.bytes.len();
        let bytes = self.bytes.split_off(gone.min(self.bytes.len()));
        let end = if known && !bytes.is_empty() { self.end } else { before };
        *self = Self { end, bytes, ..Self::new(start, before) };
        for (offset, len, piece) in Scan::new(&self.bytes) {
            if let Piece::Line(line) = piece {
                self.builder.add(
                    before.seq,
                    start + offset as u64,
                    len as u64,
                    (&line.fields).into(),
                );
            }
        }
    }

    /// What a stream has here.
    pub(super) fn reach(&self, stream: &str) -> Option<Reach> {
        let last = self.builder.version(stream)?;
        let count = self.builder.rows_of(Key::Stream(stream)).len() as u64;
        Some(Reach { last, count })
    }

    /// The lines of a stream behind a version, one after the other.
    pub(super) fn lines(&self, stream: &str, after: Version) -> Vec<u8> {
        let Some(reach) = self.reach(stream) else { return Vec::new() };
        let skip = usize::try_from(after.0.saturating_sub(reach.before().0)).unwrap_or(usize::MAX);
        let rows = self.builder.rows_of(Key::Stream(stream));
        let mut lines = Vec::new();
        for row in rows.iter().skip(skip) {
            let raw = self.builder.line(*row).and_then(|(offset, len)| {
                let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
                self.bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
            });
            lines.extend_from_slice(raw.unwrap_or_default());
        }
        lines
    }
}
