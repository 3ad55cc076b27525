//! Reading an index: every number is checked before it is used, and a page before its first use.

use std::sync::atomic::{AtomicU64, Ordering};

use super::build::NO_LINE;
use super::{HEADER, ID, MAGIC, NAME, PAGE, ROW, Section, Sections, Stretch, hash, hash_id};
use crate::clock::Timestamp;
use crate::format::crc32;
use crate::id::{Crc, EventId, Seq, StoreId, Version};
use crate::storage::Mapping;

/// What lines are looked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) enum Key<'a> {
    /// Their stream.
    Stream(&'a str),
    /// Their type.
    Type(&'a str),
}

/// The lines of a stream in a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct Posted {
    /// The last version.
    pub(in crate::log) version: Version,
    /// The place of the first row among the postings of all names.
    pub(in crate::log) start: u64,
    /// How many rows there are.
    pub(in crate::log) count: u64,
}

/// An index that was found fit to use. Every answer is `None` once a page turned out to be damaged: the index is then
/// worth nothing, and [`Index::is_damaged`] says so.
#[derive(Debug)]
pub(in crate::log) struct Index {
    map: Mapping,
    pub(in crate::log) stretch: Stretch,
    sections: Sections,
    /// Where the pages begin.
    pages: usize,
    /// A bit for each page that was checked; the last word is 1 once one was found damaged.
    checked: Vec<AtomicU64>,
    damaged: AtomicU64,
}

impl Index {
    /// Takes the bytes of an index file; `None` when they are not a whole index of this format.
    pub(in crate::log) fn new(map: Mapping) -> Option<Self> {
        let header = map.get(..HEADER)?;
        let (covered, sum) = header.split_at(HEADER - 4);
        if covered.get(..8)? != MAGIC || crc32(covered).0.to_le_bytes() != *sum {
            return None;
        }
        let word = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_le_bytes(*header.get(at..)?.first_chunk()?));
        let flags = word(24)?;
        let stretch = Stretch {
            store: StoreId(uuid::Uuid::from_bytes(*header.get(8..)?.first_chunk()?)),
            segment: Seq(long(40)?),
            start: long(48)?,
            end: long(56)?,
            before: Seq(long(64)?),
            before_crc: (flags & 4 != 0).then_some(Crc(word(32)?)),
            last: Seq(long(72)?),
            last_crc: Crc(word(28)?),
            last_time: Timestamp::from_micros(i64::try_from(long(80)?).ok()?),
            sealed: flags & 1 != 0,
            broken: flags & 2 != 0,
        };
        let length = usize::try_from(long(88)?).ok()?;
        let count = length.div_ceil(PAGE);
        let pages = HEADER.checked_add(count.checked_mul(4)?)?;
        let table = map.get(HEADER..pages)?;
        if crc32(table).0 != word(36)? || map.len() != pages.checked_add(length)? {
            return None;
        }
        let section = |at: usize| {
            Some(Section { offset: u64::from(word(at)?), count: u64::from(word(at + 4)?) })
        };
        let sections = Sections {
            rows: section(96)?,
            streams: section(104)?,
            types: section(112)?,
            ids: section(120)?,
            postings: section(128)?,
            texts: section(136)?,
        };
        let checked = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Some(Self { map, stretch, sections, pages, checked, damaged: AtomicU64::new(0) })
    }

    /// Whether a page was found to be damaged.
    pub(in crate::log) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed) != 0
    }

    /// The last version of a stream in this stretch; `None` when it has no line here.
    pub(in crate::log) fn version(&self, stream: &str) -> Option<Version> {
        let entry = self.name(self.sections.streams, stream)?;
        Some(Version(u64::from_le_bytes(*entry.get(24..)?.first_chunk()?)))
    }

    /// The rows whose ids have the hash of this id: candidates that the lines confirm.
    pub(in crate::log) fn rows_like(&self, id: EventId) -> Vec<u32> {
        let wanted = hash_id(id);
        let mut at = self.lower_bound(self.sections.ids, ID, wanted).unwrap_or(u64::MAX);
        let mut rows = Vec::new();
        while let Some((hash, row)) = self.id_at(at) {
            if hash != wanted {
                break;
            }
            rows.push(row);
            at += 1;
        }
        rows
    }

    /// How many ids there are.
    pub(in crate::log) const fn id_count(&self) -> u64 {
        self.sections.ids.count
    }

    /// The hashes of all ids.
    pub(in crate::log) fn id_hashes(&self) -> impl Iterator<Item = u64> {
        (0..self.sections.ids.count).map_while(|at| self.id_at(at)).map(|(hash, _)| hash)
    }

    /// Where the line of a row lies, inside the stretch: its offset in the segment and its length.
    pub(in crate::log) fn line(&self, row: u32) -> Option<(u64, u64)> {
        let entry = self.entry(self.sections.rows, ROW, u64::from(row))?;
        let offset = u32::from_le_bytes(*entry.first_chunk()?);
        let len = u64::from(u32::from_le_bytes(*entry.get(4..)?.first_chunk()?));
        let start = u64::from(offset);
        let inside = self.stretch.start <= start && start.checked_add(len)? <= self.stretch.end;
        (offset != NO_LINE && inside).then_some((start, len))
    }

    /// The rows of a stream or a type, in order.
    pub(in crate::log) fn rows_of(&self, key: Key<'_>) -> Vec<u32> {
        let found = match key {
            Key::Stream(text) => self.name(self.sections.streams, text),
            Key::Type(text) => self.name(self.sections.types, text),
        };
        let Some((start, count)) = found.and_then(postings) else { return Vec::new() };
        (start..start.saturating_add(count)).map_while(|at| self.row_at(at)).collect()
    }

    /// How many rows a stream has, and those of them that are of some types, in order.
    pub(in crate::log) fn common(&self, stream: &str, types: &[&str]) -> (u64, Vec<u32>) {
        let list = |(start, count): (u64, u64)| {
            (count, move |place: u64| self.row_at(start.checked_add(place)?))
        };
        let found = self.name(self.sections.streams, stream).and_then(postings);
        let Some(of_stream) = found else { return (0, Vec::new()) };
        let mut rows: Vec<u32> = types
            .iter()
            .filter_map(|kind| postings(self.name(self.sections.types, kind)?))
            .flat_map(|of_type| super::common(list(of_stream), list(of_type)))
            .collect();
        rows.sort_unstable();
        (of_stream.1, rows)
    }

    /// What a stream has in this stretch; `None` when it has no line here.
    pub(in crate::log) fn posted(&self, stream: &str) -> Option<Posted> {
        let entry = self.name(self.sections.streams, stream)?;
        let (start, count) = postings(entry)?;
        let version = Version(u64::from_le_bytes(*entry.get(24..)?.first_chunk()?));
        Some(Posted { version, start, count })
    }

    /// The row at a place among the postings of all names.
    pub(in crate::log) fn row_at(&self, place: u64) -> Option<u32> {
        let entry = self.entry(self.sections.postings, 4, place)?;
        Some(u32::from_le_bytes(*entry.first_chunk()?))
    }

    fn id_at(&self, at: u64) -> Option<(u64, u32)> {
        let entry = self.entry(self.sections.ids, ID, at)?;
        let hash = u64::from_le_bytes(*entry.first_chunk()?);
        Some((hash, u32::from_le_bytes(*entry.get(8..)?.first_chunk()?)))
    }

    fn name(&self, section: Section, text: &str) -> Option<&[u8]> {
        let wanted = hash(text.as_bytes());
        let mut at = self.lower_bound(section, NAME, wanted)?;
        loop {
            let entry = self.entry(section, NAME, at)?;
            if u64::from_le_bytes(*entry.first_chunk()?) != wanted {
                return None;
            }
            let start = u32::from_le_bytes(*entry.get(8..)?.first_chunk()?);
            let len = u32::from_le_bytes(*entry.get(12..)?.first_chunk()?) as usize;
            let offset = self.sections.texts.offset.checked_add(u64::from(start))?;
            if self.bytes(offset, len)? == text.as_bytes() {
                return Some(entry);
            }
            at += 1;
        }
    }

    /// The first entry of a section that is sorted by hash whose hash is not less. Hashes are spread evenly, so the place
    /// of one is guessed, and looked for around the guess in steps that double.
    fn lower_bound(&self, section: Section, size: usize, wanted: u64) -> Option<u64> {
        let count = section.count;
        let less = |at: u64| {
            let entry = self.entry(section, size, at)?;
            Some(u64::from_le_bytes(*entry.first_chunk()?) < wanted)
        };
        let guess = u64::try_from((u128::from(wanted) * u128::from(count)) >> 64).ok()?;
        let (mut low, mut high, mut step) = (guess, guess, 1);
        while low > 0 && !less(low - 1)? {
            high = low - 1;
            low = low.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while high < count && less(high)? {
            low = high + 1;
            high = high.saturating_add(step).min(count);
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if less(middle)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    fn entry(&self, section: Section, size: usize, at: u64) -> Option<&[u8]> {
        if at >= section.count {
            return None;
        }
        let offset = section.offset.checked_add(at.checked_mul(size as u64)?)?;
        self.bytes(offset, size)
    }

    /// Bytes of the pages, each page checked before its first use.
    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        if self.is_damaged() {
            return None;
        }
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len)?;
        let found = self.map.get(self.pages.checked_add(offset)?..self.pages.checked_add(end)?)?;
        for page in offset / PAGE..end.div_ceil(PAGE) {
            if !self.check(page)? {
                self.damaged.store(1, Ordering::Relaxed);
                return None;
            }
        }
        Some(found)
    }

    fn check(&self, page: usize) -> Option<bool> {
        let (word, bit) = (self.checked.get(page / 64)?, 1_u64 << (page % 64));
        if word.load(Ordering::Relaxed) & bit != 0 {
            return Some(true);
        }
        let sum = self.map.get(HEADER + page * 4..)?.first_chunk()?;
        let start = self.pages + page * PAGE;
        let end = (start + PAGE).min(self.map.len());
        let fits = crc32(self.map.get(start..end)?).0.to_le_bytes() == *sum;
        if fits {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Some(fits)
    }
}

/// The place of the first row and the number of rows of a name.
fn postings(entry: &[u8]) -> Option<(u64, u64)> {
    let start = u32::from_le_bytes(*entry.get(16..)?.first_chunk()?);
    let count = u32::from_le_bytes(*entry.get(20..)?.first_chunk()?);
    Some((u64::from(start), u64::from(count)))
}
