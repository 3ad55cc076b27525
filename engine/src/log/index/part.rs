//! A part of the log that is known by an index, on disk or still in memory.

use std::sync::Arc;

use super::{Builder, Filter, Index, Key, Stretch, Summary};
use crate::error::Result;
use crate::format::LOG_DIR;
use crate::id::{EventId, Seq, StoreId, Version};
use crate::log::segments;
use crate::log::tail::trailer_is;
use crate::log::visit::{At, SegmentVisit};
use crate::log::walk::{Link, Step};
use crate::storage::{Access, File, Storage};

/// A stretch that is known by its index.
#[derive(Debug)]
pub(in crate::log) struct Part {
    summary: Summary,
    /// The index; `None` while the table of heads has told enough.
    opened: Option<Opened>,
}

/// The index of a stretch.
#[derive(Debug)]
pub(in crate::log) enum Opened {
    /// Mapped from its file.
    File(Box<Index>),
    /// Built from the lines.
    Built(Arc<(Stretch, Builder)>),
}

impl Opened {
    pub(in crate::log) fn version(&self, stream: &str) -> Option<Version> {
        match self {
            Self::File(index) => index.version(stream),
            Self::Built(built) => built.1.version(stream),
        }
    }

    pub(in crate::log) fn rows_like(&self, id: EventId) -> Vec<u32> {
        match self {
            Self::File(index) => index.rows_like(id),
            Self::Built(built) => built.1.row_of(id).into_iter().collect(),
        }
    }

    /// Puts the hashes of all ids into a filter.
    pub(in crate::log) fn fill(&self, filter: &mut Filter) {
        match self {
            Self::File(index) => index.id_hashes().for_each(|hash| filter.insert(hash)),
            Self::Built(built) => built.1.id_hashes().for_each(|hash| filter.insert(hash)),
        }
    }

    pub(in crate::log) fn line(&self, row: u32) -> Option<(u64, u64)> {
        match self {
            Self::File(index) => index.line(row),
            Self::Built(built) => built.1.line(row),
        }
    }

    pub(in crate::log) fn rows_of(&self, key: Key<'_>) -> Vec<u32> {
        match self {
            Self::File(index) => index.rows_of(key),
            Self::Built(built) => built.1.rows_of(key).to_vec(),
        }
    }

    /// How many rows a stream has, and those of them that are of some types, in order.
    pub(in crate::log) fn common(&self, stream: &str, types: &[&str]) -> (u64, Vec<u32>) {
        match self {
            Self::File(index) => index.common(stream, types),
            Self::Built(built) => built.1.common(stream, types),
        }
    }

    fn id_count(&self) -> u64 {
        match self {
            Self::File(index) => index.id_count(),
            Self::Built(built) => built.1.id_count(),
        }
    }

    fn is_damaged(&self) -> bool {
        matches!(self, Self::File(index) if index.is_damaged())
    }
}

impl Part {
    /// A segment of which the table of heads tells; its index is opened when something else is asked.
    pub(in crate::log) const fn unopened(summary: Summary) -> Self {
        Self { summary, opened: None }
    }

    pub(in crate::log) fn file(index: Index) -> Self {
        Self::new(index.stretch, Opened::File(Box::new(index)))
    }

    pub(in crate::log) fn built_from(stretch: Stretch, builder: Builder) -> Self {
        Self::new(stretch, Opened::Built(Arc::new((stretch, builder))))
    }

    fn new(stretch: Stretch, opened: Opened) -> Self {
        let summary = Summary { stretch, ids: opened.id_count(), recovered: true };
        Self { summary, opened: Some(opened) }
    }

    pub(in crate::log) const fn stretch(&self) -> &Stretch {
        &self.summary.stretch
    }

    /// How many ids there are.
    pub(in crate::log) const fn id_count(&self) -> u64 {
        self.summary.ids
    }

    /// Whether a line may be in it that names a torn file.
    pub(in crate::log) const fn may_name_torn(&self) -> bool {
        self.summary.recovered
    }

    /// What was built and has no file yet.
    pub(in crate::log) const fn built(&self) -> Option<&Arc<(Stretch, Builder)>> {
        match &self.opened {
            Some(Opened::Built(built)) => Some(built),
            _ => None,
        }
    }

    /// Asks a question of the index, which is opened for it; when there is none, or it turns out to be damaged, the
    /// stretch is read again and asked instead.
    pub(in crate::log) fn ask<T>(
        &mut self,
        storage: &dyn Storage,
        question: impl Fn(&Opened) -> T,
    ) -> Result<T> {
        let Stretch { store, segment, last, .. } = self.summary.stretch;
        if self.opened.is_none()
            && let Some(index) = whole(storage, store, segment, last.next())
        {
            *self = Self::file(index);
        }
        if let Some(opened) = &self.opened {
            let answer = question(opened);
            if !opened.is_damaged() {
                return Ok(answer);
            }
        }
        let (stretch, builder) = read(storage, &self.summary.stretch)?;
        let opened = Opened::Built(Arc::new((stretch, builder)));
        let answer = question(&opened);
        *self = Self::new(stretch, opened);
        Ok(answer)
    }
}

/// The index of a whole segment that has a successor, when there is one that fits.
pub(in crate::log) fn whole(
    storage: &dyn Storage,
    store: StoreId,
    segment: Seq,
    next: Seq,
) -> Option<Index> {
    let index = open(storage, &super::whole_name(segment))?;
    let fits = index.stretch.start == 0 && index.stretch.last.next() == next;
    (fits && is_bound(storage, store, segment, &index.stretch, true)).then_some(index)
}

/// The index of the stretch of the active segment that begins at `start` behind `link`, when there is one that fits;
/// `file` is the segment where that is open.
pub(in crate::log) fn next_part(
    storage: &dyn Storage,
    store: StoreId,
    segment: Seq,
    file: Option<&dyn File>,
    start: u64,
    link: Link,
) -> Option<Index> {
    let index = open(storage, &super::part_name(segment, start))?;
    let stretch = &index.stretch;
    let fits = stretch.start == start
        && stretch.end > start
        && stretch.before == link.seq
        && stretch.before_crc == link.crc
        && !stretch.broken
        && (stretch.store, stretch.segment) == (store, segment);
    let is_there =
        |file: &dyn File| trailer_is(storage, file, segment, stretch.end, stretch.last_crc);
    let look = || match file {
        Some(file) => is_there(file),
        None => is_there(&*segments::open(storage, segment, Access::Read)?),
    };
    (fits && look().unwrap_or(false)).then_some(index)
}

/// The index of the stretch of the active segment that holds a position, or else of the last one before it, when there is
/// one that fits.
pub(in crate::log) fn part_near(
    storage: &dyn Storage,
    store: StoreId,
    segment: Seq,
    seq: Seq,
) -> Option<Index> {
    let names = storage.list(LOG_DIR).ok()?;
    let mut starts: Vec<u64> =
        names.iter().filter_map(|name| super::part_start(name, segment)).collect();
    starts.sort_unstable();
    starts.into_iter().rev().find_map(|start| {
        let index = open(storage, &super::part_name(segment, start))?;
        let stretch = &index.stretch;
        let fits = stretch.start == start && stretch.before < seq && !stretch.broken;
        (fits && is_bound(storage, store, segment, stretch, false)).then_some(index)
    })
}

fn open(storage: &dyn Storage, name: &str) -> Option<Index> {
    let file = storage.open(&format!("{LOG_DIR}/{name}"), Access::Read).ok()?;
    Index::new(file.map().ok()?)
}

/// Whether a stretch is one of this segment as it lies on the disk now.
pub(super) fn is_bound(
    storage: &dyn Storage,
    store: StoreId,
    segment: Seq,
    stretch: &Stretch,
    whole: bool,
) -> bool {
    let look = || -> Result<bool> {
        let file = segments::open(storage, segment, Access::Read)?;
        let size = file.size().map_err(|e| segments::error(storage, segment, "look at", e))?;
        if stretch.end > size || whole && stretch.end != size {
            return Ok(false);
        }
        // Behind damage the last line need not end the segment; its length and its neighbours bind it then.
        if stretch.broken {
            return Ok(true);
        }
        trailer_is(storage, &*file, segment, stretch.end, stretch.last_crc)
    };
    stretch.store == store && stretch.segment == segment && look().unwrap_or(false)
}

/// Builds the index of a stretch from the segment itself.
pub(in crate::log) fn read(storage: &dyn Storage, stretch: &Stretch) -> Result<(Stretch, Builder)> {
    let file = segments::open(storage, stretch.segment, Access::Read)?;
    // Of a segment without its seal the end may be cut meanwhile.
    let bytes = segments::map_file(storage, stretch.segment, &*file)?;
    let end = usize::try_from(stretch.end).unwrap_or(usize::MAX).min(bytes.len());
    let bytes = bytes.get(..end).unwrap_or_default();
    let visit = SegmentVisit {
        store: stretch.store,
        first: stretch.segment,
        next: Some(stretch.last.next()),
        durable: Seq::ZERO,
    };
    let link = Link { seq: stretch.before, crc: stretch.before_crc };
    let from = At { offset: stretch.start, link, ahead: 0 };
    let mut builder = Builder::default();
    let mut broken = stretch.broken;
    visit.steps(storage, bytes, from, &mut |step| {
        match step {
            Step::Line(span, line) => {
                builder.add(stretch.before, span.offset, span.len, (&line.fields).into());
            }
            Step::Break(found) => {
                broken = true;
                for (stream, versions) in &found.legible {
                    let last = versions.map(|(_, last)| last).unwrap_or_default();
                    builder.raise(stream, last);
                }
            }
        }
        Ok(true)
    })?;
    Ok((Stretch { broken, ..*stretch }, builder))
}
