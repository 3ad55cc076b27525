//! The pages of a derived file, behind its header and a table with a checksum for each page. A page is checked when it is
//! first looked at, so that opening costs the same for any size and no flipped bit is believed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{PAGE, Section};
use crate::format::crc32;
use crate::storage::Mapping;

/// A mapped file of which every page is checked before its first use. Every answer is `None` once one turned out to be
/// damaged: the file is then worth nothing, and [`Pages::is_damaged`] says so.
#[derive(Debug)]
pub(super) struct Pages {
    map: Mapping,
    /// Where the table of checksums begins.
    table: usize,
    /// Where the pages begin.
    start: usize,
    /// A bit for each page that was checked.
    checked: Vec<AtomicU64>,
    damaged: AtomicBool,
}

impl Pages {
    /// Takes a file whose header ends at `table` and says that `length` bytes of pages follow the table, which has the
    /// checksum `sum`; `None` when that is not so.
    pub(super) fn new(map: Mapping, table: usize, length: u64, sum: u32) -> Option<Self> {
        let length = usize::try_from(length).ok()?;
        let count = length.div_ceil(PAGE);
        let start = table.checked_add(count.checked_mul(4)?)?;
        let fits =
            crc32(map.get(table..start)?).0 == sum && map.len() == start.checked_add(length)?;
        let checked = || (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        fits.then(|| Self {
            checked: checked(),
            map,
            table,
            start,
            damaged: AtomicBool::new(false),
        })
    }

    /// The table and the pages of these bytes, and the checksum of the table.
    pub(super) fn table_of(pages: &[u8]) -> (Vec<u8>, u32) {
        let table: Vec<u8> =
            pages.chunks(PAGE).flat_map(|page| crc32(page).0.to_le_bytes()).collect();
        let sum = crc32(&table).0;
        (table, sum)
    }

    /// Whether a page was found to be damaged.
    pub(super) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// The length of the whole file in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// An entry of a section whose entries have `size` bytes.
    pub(super) fn entry(&self, section: Section, size: usize, at: u64) -> Option<&[u8]> {
        if at >= section.count {
            return None;
        }
        let offset = section.offset.checked_add(at.checked_mul(size as u64)?)?;
        self.bytes(offset, size)
    }

    /// The first entry whose hash is not less, of a section that is sorted by the hash with which each entry begins. Hashes
    /// are spread evenly, so the place of one is guessed, and looked for around the guess in steps that double.
    pub(super) fn lower_bound(&self, section: Section, size: usize, wanted: u64) -> Option<u64> {
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

    /// The entry of a text in such a section of names: hash, then where the text lies among `texts` and how long it is.
    pub(super) fn name(
        &self,
        names: Section,
        size: usize,
        texts: Section,
        text: &str,
    ) -> Option<&[u8]> {
        let wanted = super::hash(text.as_bytes());
        let mut at = self.lower_bound(names, size, wanted)?;
        loop {
            let entry = self.entry(names, size, at)?;
            if u64::from_le_bytes(*entry.first_chunk()?) != wanted {
                return None;
            }
            if self.text(texts, entry)? == text.as_bytes() {
                return Some(entry);
            }
            at += 1;
        }
    }

    /// The text of an entry of such a section.
    pub(super) fn text(&self, texts: Section, entry: &[u8]) -> Option<&[u8]> {
        let start = u32::from_le_bytes(*entry.get(8..)?.first_chunk()?);
        let len = u32::from_le_bytes(*entry.get(12..)?.first_chunk()?) as usize;
        self.bytes(texts.offset.checked_add(u64::from(start))?, len)
    }

    /// Bytes of the pages, each page checked before its first use.
    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        if self.is_damaged() {
            return None;
        }
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len)?;
        let found = self.map.get(self.start.checked_add(offset)?..self.start.checked_add(end)?)?;
        for page in offset / PAGE..end.div_ceil(PAGE) {
            if !self.check(page)? {
                self.damaged.store(true, Ordering::Relaxed);
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
        let sum = self.map.get(self.table + page * 4..)?.first_chunk()?;
        let start = self.start + page * PAGE;
        let end = (start + PAGE).min(self.map.len());
        let fits = crc32(self.map.get(start..end)?).0.to_le_bytes() == *sum;
        if fits {
            word.fetch_or(bit, Ordering::Relaxed);
        }
        Some(fits)
    }
}
