//! Making a table of heads: from the one before it and the indexes of the segments that it lacks.

use std::collections::HashMap;

use super::heads::{HEADER, Head, Heads, MAGIC, SEGMENT, Summary};
use super::pages::Pages;
use super::{Index, Key, Section, hash};
use crate::format::{control, crc32};
use crate::id::{Seq, StoreId};

/// The heads of the streams of one segment after the other.
#[derive(Debug, Default)]
pub(in crate::log) struct Gathered<'a> {
    segments: Vec<Summary>,
    heads: HashMap<&'a str, Head, rustc_hash::FxBuildHasher>,
}

impl<'a> Gathered<'a> {
    /// Begins with all that a table knows; `None` when it is damaged.
    pub(in crate::log) fn from_table(table: &'a Heads) -> Option<Self> {
        let heads = table.streams().collect::<Option<_>>()?;
        Some(Self { segments: table.segments().to_vec(), heads })
    }

    /// Adds the next segment; `None` when its index is damaged.
    pub(in crate::log) fn add(&mut self, index: &'a Index) -> Option<()> {
        let stretch = index.stretch;
        let seq = |row: Option<u32>| match row {
            Some(row) => Seq(stretch.before.0 + 1 + u64::from(row)),
            // Only damaged bytes name it, somewhere.
            None => stretch.last,
        };
        for stream in index.streams() {
            let (name, version, row) = stream?;
            let new = Head { version, seq: seq(row).min(stretch.last) };
            let head = self.heads.entry(name).or_insert(new);
            // Of a damaged line the version may read too low: no version of a stream is below one before it.
            head.version = head.version.max(new.version);
            head.seq = head.seq.max(new.seq);
        }
        let recovered = !index.rows_of(Key::Type(control::RECOVERED)).is_empty();
        self.segments.push(Summary { stretch, ids: index.id_count(), recovered });
        (!index.is_damaged()).then_some(())
    }

    /// The bytes of the file; `None` when there are more than such a file holds.
    pub(in crate::log) fn encode(&self, store: StoreId) -> Option<Vec<u8>> {
        let mut pages: Vec<u8> = self.segments.iter().flat_map(segment).collect();
        let segments = Section { offset: 0, count: self.segments.len() as u64 };
        let mut order: Vec<(u64, &str, &Head)> =
            self.heads.iter().map(|(name, head)| (hash(name.as_bytes()), *name, head)).collect();
        order.sort_unstable_by_key(|(hash, name, _)| (*hash, *name));
        let streams = Section { offset: pages.len() as u64, count: order.len() as u64 };
        let mut names: Vec<u8> = Vec::new();
        for (hash, name, head) in order {
            pages.extend(hash.to_le_bytes());
            pages.extend(u32::try_from(names.len()).ok()?.to_le_bytes());
            pages.extend(u32::try_from(name.len()).ok()?.to_le_bytes());
            pages.extend(head.version.0.to_le_bytes());
            pages.extend(head.seq.0.to_le_bytes());
            names.extend_from_slice(name.as_bytes());
        }
        let texts = Section { offset: pages.len() as u64, count: names.len() as u64 };
        pages.append(&mut names);
        let (table, sum) = Pages::table_of(&pages);
        let mut out = Vec::with_capacity(HEADER + table.len() + pages.len());
        out.extend(MAGIC);
        out.extend(store.0.as_bytes());
        out.extend(sum.to_le_bytes());
        out.resize(32, 0);
        out.extend((pages.len() as u64).to_le_bytes());
        for Section { offset, count } in [segments, streams, texts] {
            out.extend(offset.to_le_bytes());
            out.extend(count.to_le_bytes());
        }
        out.resize(HEADER - 4, 0);
        out.extend(crc32(&out).0.to_le_bytes());
        out.extend(table);
        out.extend(pages);
        Some(out)
    }
}

fn segment(summary: &Summary) -> Vec<u8> {
    let Summary { stretch, ids, recovered } = summary;
    let flags = u32::from(stretch.sealed)
        | u32::from(stretch.broken) << 1
        | u32::from(stretch.before_crc.is_some()) << 2
        | u32::from(*recovered) << 3;
    let time = stretch.last_time.as_micros().unsigned_abs();
    let mut out = Vec::with_capacity(SEGMENT);
    for number in [stretch.segment.0, stretch.end, stretch.last.0, time] {
        out.extend(number.to_le_bytes());
    }
    let ids = u32::try_from(*ids).unwrap_or(u32::MAX);
    for number in [stretch.last_crc.0, stretch.before_crc.unwrap_or_default().0, ids, flags] {
        out.extend(number.to_le_bytes());
    }
    out
}
