//! Reading an index: every number is checked before it is used, and a page before its first use.

use super::build::NO_LINE;
use super::pages::Pages;
use super::{HEADER, ID, MAGIC, NAME, ROW, Section, Sections, Stretch, hash_id};
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
    pub(in crate::log) stretch: Stretch,
    sections: Sections,
    pages: Pages,
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
        let (length, table_sum) = (long(88)?, word(36)?);
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
        let pages = Pages::new(map, HEADER, length, table_sum)?;
        Some(Self { stretch, sections, pages })
    }

    /// Whether a page was found to be damaged.
    pub(in crate::log) fn is_damaged(&self) -> bool {
        self.pages.is_damaged()
    }

    /// The last version of a stream in this stretch; `None` when it has no line here.
    pub(in crate::log) fn version(&self, stream: &str) -> Option<Version> {
        let entry = self.name(self.sections.streams, stream)?;
        Some(Version(u64::from_le_bytes(*entry.get(24..)?.first_chunk()?)))
    }

    /// The rows whose ids have the hash of this id: candidates that the lines confirm.
    pub(in crate::log) fn rows_like(&self, id: EventId) -> Vec<u32> {
        let wanted = hash_id(id);
        let mut at = self.pages.lower_bound(self.sections.ids, ID, wanted).unwrap_or(u64::MAX);
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
        let entry = self.pages.entry(self.sections.rows, ROW, u64::from(row))?;
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

    /// Every stream with its last version and the row of its last line, if it has one here; `None` in the place of a stream
    /// that cannot be read.
    pub(super) fn streams(&self) -> impl Iterator<Item = Option<(&str, Version, Option<u32>)>> {
        let section = self.sections.streams;
        (0..section.count).map(move |at| {
            let entry = self.pages.entry(section, NAME, at)?;
            let text = std::str::from_utf8(self.pages.text(self.sections.texts, entry)?).ok()?;
            let version = Version(u64::from_le_bytes(*entry.get(24..)?.first_chunk()?));
            let row = match postings(entry)? {
                (_, 0) => None,
                (start, count) => Some(self.row_at(start.checked_add(count - 1)?)?),
            };
            Some((text, version, row))
        })
    }

    /// The row at a place among the postings of all names.
    pub(in crate::log) fn row_at(&self, place: u64) -> Option<u32> {
        let entry = self.pages.entry(self.sections.postings, 4, place)?;
        Some(u32::from_le_bytes(*entry.first_chunk()?))
    }

    fn id_at(&self, at: u64) -> Option<(u64, u32)> {
        let entry = self.pages.entry(self.sections.ids, ID, at)?;
        let hash = u64::from_le_bytes(*entry.first_chunk()?);
        Some((hash, u32::from_le_bytes(*entry.get(8..)?.first_chunk()?)))
    }

    fn name(&self, section: Section, text: &str) -> Option<&[u8]> {
        self.pages.name(section, NAME, self.sections.texts, text)
    }
}

/// The place of the first row and the number of rows of a name.
fn postings(entry: &[u8]) -> Option<(u64, u64)> {
    let start = u32::from_le_bytes(*entry.get(16..)?.first_chunk()?);
    let count = u32::from_le_bytes(*entry.get(20..)?.first_chunk()?);
    Some((u64::from(start), u64::from(count)))
}
