//! A stretch of the log that is kept open with its index.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::format::{self, LINE_MAX, Line, segment_path};
use crate::log::index::Index;
use crate::log::segments::{self, Bytes};
use crate::storage::{Access, Advice, File, FileId, Storage, read_full};

/// Where the bytes of lines are.
#[derive(Debug)]
pub(in crate::log) enum Source {
    Mapped(Arc<Bytes>),
    File(Arc<dyn File>),
}

/// A stretch with its index and its bytes.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) index: Index,
    pub(super) source: Source,
    /// The file that was opened, and its length then.
    file: Option<(FileId, u64)>,
    /// A bit for each row that begins a batch of which every line was found whole.
    whole: Vec<AtomicU64>,
}

impl Held {
    /// A whole segment that has a successor.
    pub(super) fn sealed(storage: &dyn Storage, index: Index) -> Option<Self> {
        let segment = index.stretch.segment;
        let file = segments::open(storage, segment, Access::Read).ok()?;
        let id = file.id().ok()?;
        let bytes = segments::map_file(storage, segment, &*file).ok()?;
        bytes.advise(Advice::Points);
        let len = bytes.len() as u64;
        (len == index.stretch.end).then(|| Self {
            file: Some((id, len)),
            ..Self::new(index, Source::Mapped(Arc::new(bytes)))
        })
    }

    /// A stretch of which the bytes are there.
    pub(super) fn new(index: Index, source: Source) -> Self {
        let rows = index.stretch.last.0.saturating_sub(index.stretch.before.0);
        let whole = (0..=rows / 64).map(|_| AtomicU64::new(0)).collect();
        Self { index, source, file: None, whole }
    }

    /// Whether its name still stands for the file that was opened, as long as it was.
    pub(super) fn is_in_place(&self, storage: &dyn Storage) -> bool {
        let found = storage.stat(&segment_path(self.index.stretch.segment));
        found.is_ok_and(|stat| self.file == Some((stat.id, stat.len)))
    }

    /// The bytes of the line of a row.
    pub(super) fn line(&self, row: u32) -> Option<Cow<'_, [u8]>> {
        let (offset, len) = self.index.line(row)?;
        self.source.line(offset, len)
    }

    /// The line of a row, if it is whole and in its place.
    pub(super) fn decode<'a>(&self, row: u32, raw: &'a [u8]) -> Option<Line<'a>> {
        let line = format::decode(raw).ok()?;
        let seq = self.index.stretch.before.0 + 1 + u64::from(row);
        (line.fields.seq.0 == seq).then_some(line)
    }

    /// Whether every line of a line's batch is whole; each batch is looked at once.
    pub(super) fn batch_is_whole(&self, row: u32, line: &Line<'_>) -> bool {
        let Some((index, count)) = line.fields.batch else { return true };
        let Some(first) = row.checked_sub(index - 1) else { return false };
        let Some(word) = self.whole.get(first as usize / 64) else { return false };
        let bit = 1 << (first % 64);
        if word.load(Ordering::Relaxed) & bit != 0 {
            return true;
        }
        let Some(end) = first.checked_add(count) else { return false };
        let one = |row| self.line(row).is_some_and(|raw| self.decode(row, &raw).is_some());
        let whole = (first..end).all(one);
        if whole {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        whole
    }
}

impl Source {
    /// The bytes of a line.
    pub(in crate::log) fn line(&self, offset: u64, len: u64) -> Option<Cow<'_, [u8]>> {
        let count = usize::try_from(len).ok().filter(|count| *count <= LINE_MAX)?;
        match self {
            Self::Mapped(bytes) => {
                let start = usize::try_from(offset).ok()?;
                bytes.get(start..start.checked_add(count)?).map(Into::into)
            }
            Self::File(file) => {
                let mut raw = vec![0; count];
                let got = read_full(&**file, &mut raw, offset).ok()?;
                (got == count).then_some(raw.into())
            }
        }
    }

    /// A number made of a byte of each stretch of a line that a processor fetches at a time.
    pub(super) fn look(&self, offset: u64, len: u64) -> u8 {
        const FETCHED: usize = 64;
        let Self::Mapped(bytes) = self else { return 0 };
        let place = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let line = place.and_then(|(start, len)| bytes.get(start..start.checked_add(len)?));
        line.unwrap_or_default().iter().step_by(FETCHED).fold(0, |sum, b| sum.wrapping_add(*b))
    }

    /// The bytes of the active segment for a stretch of it: mapped when all of the stretch is durable, in one map with
    /// the stretches for which `map` was filled. Recovery cuts what lies behind the floor alone, so that every page that
    /// holds a byte of such a stretch stays, and an index gives no place outside of its stretch.
    pub(super) fn of(file: &Arc<dyn File>, settled: bool, map: &mut Option<Arc<Bytes>>) -> Self {
        if settled
            && map.is_none()
            && let Ok(bytes) = segments::map_durable(&**file)
        {
            bytes.advise(Advice::Points);
            *map = Some(Arc::new(bytes));
        }
        match map.as_ref().filter(|_| settled) {
            Some(bytes) => Self::Mapped(Arc::clone(bytes)),
            None => Self::File(Arc::clone(file)),
        }
    }
}
