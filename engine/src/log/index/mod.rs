//! The sidecar index of a stretch of one segment: where each line is, whose it is, what it is, and which ids are there.
//! It is derived and mapped into memory; a mismatch of any kind throws it away, and every answer is the same without
//! it. A full segment has one, `<segment>.idx`; the active one has one for every few megabytes,
//! `<segment>.<offset>.idx`. The oldest ones are summed up in one table, `heads.idx`.
//!
//! The file is a header, pages, and a table with a checksum for each page. The header's checksum covers the table, and
//! a page is checked when it is first looked at, so that opening costs the same for any size and no flipped bit is
//! believed. All numbers are little-endian.

mod build;
mod file;
mod filter;
mod gather;
mod heads;
mod pages;
mod part;

pub(super) use build::{Builder, Listed};
pub(super) use file::{Index, Key};
pub(super) use filter::Filter;
pub(super) use gather::Gathered;
pub(super) use heads::{HEADS_FILE, Head, Heads, Summary};
pub(super) use part::{Opened, Part, next_part, part_near, read, whole};

use crate::clock::Timestamp;
use crate::format::segment_file;
use crate::id::{Crc, EventId, Seq, StoreId};

/// The stretch of a segment that an index is about, and what binds it to the segment's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) store: StoreId,
    /// The segment's first position.
    pub(super) segment: Seq,
    /// The offset of the first byte.
    pub(super) start: u64,
    /// The offset behind the last byte.
    pub(super) end: u64,
    /// The position before the first line.
    pub(super) before: Seq,
    /// The checksum of the line before; `None` where it is not known.
    pub(super) before_crc: Option<Crc>,
    /// The position of the last line.
    pub(super) last: Seq,
    /// The checksum of the last line.
    pub(super) last_crc: Crc,
    /// The greatest time of a line.
    pub(super) last_time: Timestamp,
    /// Whether the last line is the segment's seal.
    pub(super) sealed: bool,
    /// Whether lines are missing in it.
    pub(super) broken: bool,
}

impl Stretch {
    /// Whether it is a whole segment that ends with its seal and lacks no line: its last line stands for all before it.
    pub(super) const fn is_sound(&self) -> bool {
        self.start == 0 && self.sealed && !self.broken
    }
}

/// The name of the index of a whole segment, in the folder of the segments.
pub(super) fn whole_name(segment: Seq) -> String {
    format!("{:020}.idx", segment.0)
}

/// The name of the index of a stretch that begins at an offset.
pub(super) fn part_name(segment: Seq, start: u64) -> String {
    format!("{:020}.{start}.idx", segment.0)
}

/// The offset in the name of a part of this segment's index.
pub(super) fn part_start(name: &str, segment: Seq) -> Option<u64> {
    let stem = segment_file(segment);
    let stem = stem.strip_suffix("jsonl")?;
    name.strip_prefix(stem)?.strip_suffix(".idx")?.parse().ok()
}

/// A hash that spreads evenly and is the same everywhere: FNV-1a, 64 bits (Fowler, Noll and Vo), with the finishing
/// step of MurmurHash3 (Appleby). A hit is always confirmed by the text itself.
fn hash(bytes: &[u8]) -> u64 {
    let mut sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    sum ^= sum >> 33;
    sum = sum.wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^ (sum >> 33)
}

pub(super) fn hash_id(id: EventId) -> u64 {
    hash(id.0.as_bytes())
}

/// The rows that stand in both of two ascending lists, each given by its length and by the row at a place: those of the
/// shorter one are looked for in the other, in steps that double.
fn common(
    (one_count, one): (u64, impl Fn(u64) -> Option<u32>),
    (other_count, other): (u64, impl Fn(u64) -> Option<u32>),
) -> Vec<u32> {
    if one_count > other_count {
        return common((other_count, other), (one_count, one));
    }
    let mut low = 0;
    let mut rows = Vec::new();
    for row in (0..one_count).map_while(one) {
        let less = |place: u64| other(place).is_some_and(|found| found < row);
        let (mut high, mut step) = (low, 1);
        while high < other_count && less(high) {
            low = high + 1;
            high = high.saturating_add(step).min(other_count);
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if less(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        rows.extend(other(low).filter(|found| low < other_count && *found == row));
    }
    rows
}

/// The size of a page in bytes.
const PAGE: usize = 4_096;

/// The size of the header in bytes.
const HEADER: usize = 160;

const MAGIC: [u8; 8] = *b"annalsi1";

/// Bytes of a row: the line's offset and length, its stream and its type, as 32-bit numbers.
const ROW: usize = 16;

/// Bytes of a name: hash, then where its text lies and how long it is, where its postings lie and how many they are,
/// and the last version (of a stream).
const NAME: usize = 32;

/// Bytes of an id: hash and row.
const ID: usize = 12;

/// Where a section lies, in entries of its own kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Section {
    offset: u64,
    count: u64,
}

/// The sections, in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sections {
    rows: Section,
    streams: Section,
    types: Section,
    ids: Section,
    postings: Section,
    texts: Section,
}

#[cfg(test)]
mod tests;
