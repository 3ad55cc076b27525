//! The table of heads, `heads.idx`: of the oldest sealed segments what has to be known of each without opening its index,
//! and of every stream in them the last version and where it stands. With it an opening costs what lies behind those
//! segments, and the version of a stream one look. It is derived, like the indexes that it is made of, and thrown away on
//! any mismatch.
//!
//! The file is a header, a table of checksums and pages, as an index is: the segments in order, the streams sorted by the
//! hash of their names, and the names. It is bound to the log by the names of the segments and by the last line of the
//! last one, whose checksum stands for every line before it.

use super::pages::Pages;
use super::part::is_bound;
use super::{Section, Stretch};
use crate::clock::Timestamp;
use crate::format::{LOG_DIR, crc32};
use crate::id::{Crc, Seq, StoreId, Version};
use crate::storage::{Access, Mapping, Storage};

/// The name of the table, in the folder of the segments.
pub(in crate::log) const HEADS_FILE: &str = "heads.idx";

pub(super) const MAGIC: [u8; 8] = *b"annalsh1";

/// The size of the header in bytes.
pub(super) const HEADER: usize = 96;

/// Bytes of a segment: first position, length, last position, greatest time, checksum of the last line and of the line
/// before the first, number of ids, flags.
pub(super) const SEGMENT: usize = 48;

/// Bytes of a stream: hash, then where its name lies and how long that is, version, position.
pub(super) const STREAM: usize = 32;

/// What is known of a segment without opening its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct Summary {
    pub(in crate::log) stretch: Stretch,
    /// How many ids there are.
    pub(in crate::log) ids: u64,
    /// Whether a line in it may name a torn file.
    pub(in crate::log) recovered: bool,
}

/// Where a stream stands in the segments of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct Head {
    /// Its last version there.
    pub(in crate::log) version: Version,
    /// The position behind which it has no line there.
    pub(in crate::log) seq: Seq,
}

/// A table that was found fit to use. Every answer is `None` once a page turned out to be damaged: the table is then worth
/// nothing, and [`Heads::is_damaged`] says so.
#[derive(Debug)]
pub(in crate::log) struct Heads {
    segments: Vec<Summary>,
    streams: Section,
    texts: Section,
    pages: Pages,
}

impl Heads {
    /// The table of a store with these segments, when there is one that fits.
    pub(in crate::log) fn open(
        storage: &dyn Storage,
        store: StoreId,
        segments: &[Seq],
    ) -> Option<Self> {
        // One segment is the active one, of which the table says nothing.
        if segments.len() < 2 {
            return None;
        }
        let file = storage.open(&format!("{LOG_DIR}/{HEADS_FILE}"), Access::Read).ok()?;
        let heads = Self::new(file.map().ok()?, store)?;
        let behind = heads.segments.iter().map(|known| known.stretch.last.next());
        let follows = segments.iter().skip(1).copied().take(heads.segments.len()).eq(behind);
        let begins = heads.segments.first()?.stretch.segment == *segments.first()?;
        let last = &heads.segments.last()?.stretch;
        let bound = || is_bound(storage, store, last.segment, last, true);
        (begins && follows && last.is_sound() && bound()).then_some(heads)
    }

    /// Takes the bytes of a table; `None` when they are not a whole one of this format and this store.
    pub(in crate::log) fn new(map: Mapping, store: StoreId) -> Option<Self> {
        let header: [u8; HEADER] = *map.first_chunk()?;
        let (covered, sum) = header.split_at(HEADER - 4);
        let named = covered.get(..8)? == MAGIC && covered.get(8..24)? == store.0.as_bytes();
        if !named || crc32(covered).0.to_le_bytes() != *sum {
            return None;
        }
        let long = |at: usize| Some(u64::from_le_bytes(*header.get(at..)?.first_chunk()?));
        let section = |at: usize| Some(Section { offset: long(at)?, count: long(at + 8)? });
        let (list, streams, texts) = (section(40)?, section(56)?, section(72)?);
        let table_sum = u32::from_le_bytes(*header.get(24..)?.first_chunk()?);
        let pages = Pages::new(map, HEADER, long(32)?, table_sum)?;
        let mut segments: Vec<Summary> = Vec::new();
        for at in 0..list.count {
            let found = summary(store, pages.entry(list, SEGMENT, at)?)?;
            let before = segments.last().map(|known| known.stretch.last);
            if before.is_some_and(|before| before != found.stretch.before) {
                return None;
            }
            segments.push(found);
        }
        Some(Self { segments, streams, texts, pages })
    }

    /// Whether a page was found to be damaged.
    pub(in crate::log) fn is_damaged(&self) -> bool {
        self.pages.is_damaged()
    }

    /// The segments, in order, without a hole from the first one of the store.
    pub(in crate::log) fn segments(&self) -> &[Summary] {
        &self.segments
    }

    /// The size of the file in bytes.
    pub(in crate::log) fn file_bytes(&self) -> u64 {
        self.pages.file_bytes()
    }

    /// Where a stream stands; `None` when it has no line in these segments.
    pub(in crate::log) fn head(&self, stream: &str) -> Option<Head> {
        head(self.pages.name(self.streams, STREAM, self.texts, stream)?)
    }

    /// Every stream; `None` in the place of one that cannot be read.
    pub(super) fn streams(&self) -> impl Iterator<Item = Option<(&str, Head)>> {
        (0..self.streams.count).map(|at| {
            let entry = self.pages.entry(self.streams, STREAM, at)?;
            Some((std::str::from_utf8(self.pages.text(self.texts, entry)?).ok()?, head(entry)?))
        })
    }
}

fn head(entry: &[u8]) -> Option<Head> {
    let long = |at: usize| Some(u64::from_le_bytes(*entry.get(at..)?.first_chunk()?));
    Some(Head { version: Version(long(16)?), seq: Seq(long(24)?) })
}

fn summary(store: StoreId, entry: &[u8]) -> Option<Summary> {
    let long = |at: usize| Some(u64::from_le_bytes(*entry.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*entry.get(at..)?.first_chunk()?));
    let (first, last, flags) = (Seq(long(0)?), Seq(long(16)?), word(44)?);
    let stretch = Stretch {
        store,
        segment: first,
        start: 0,
        end: long(8)?,
        before: Seq(first.0.checked_sub(1)?),
        before_crc: (flags & 4 != 0).then_some(Crc(word(36)?)),
        last,
        last_crc: Crc(word(32)?),
        last_time: Timestamp::from_micros(i64::try_from(long(24)?).ok()?),
        sealed: flags & 1 != 0,
        broken: flags & 2 != 0,
    };
    let summary = Summary { stretch, ids: u64::from(word(40)?), recovered: flags & 8 != 0 };
    (first <= last).then_some(summary)
}
