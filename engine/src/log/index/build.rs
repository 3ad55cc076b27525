//! Building an index from lines as they come.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::pages::Pages;
use super::{HEADER, MAGIC, ROW, Section, Sections, Stretch, hash, hash_id};
use crate::clock::Timestamp;
use crate::format::{Fields, crc32};
use crate::id::{EventId, Seq, Version};

/// A row that stands for a missing line.
pub(super) const NO_LINE: u32 = u32::MAX;

/// The lines of a stretch, in memory, in the same terms as the file.
#[derive(Debug, Default)]
pub(in crate::log) struct Builder {
    /// Offset, length, stream, type; by distance from the first position.
    rows: Vec<[u32; 4]>,
    streams: Names,
    types: Names,
    ids: HashMap<EventId, u32, RandomState>,
}

/// What an index and a writer remember of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::log) struct Listed<'a> {
    pub(in crate::log) seq: Seq,
    pub(in crate::log) time: Timestamp,
    pub(in crate::log) stream: &'a str,
    pub(in crate::log) version: Version,
    pub(in crate::log) kind: &'a str,
    pub(in crate::log) id: EventId,
}

impl<'a> From<&'a Fields<'_>> for Listed<'a> {
    fn from(fields: &'a Fields<'_>) -> Self {
        let Fields { seq, time, version, kind, id, .. } = *fields;
        Self { seq, time, stream: &fields.stream, version, kind, id }
    }
}

/// Names in the order of their first use, with the rows of each.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Arc<str>, usize, RandomState>,
    list: Vec<Name>,
}

#[derive(Debug)]
struct Name {
    text: Arc<str>,
    version: Version,
    rows: Vec<u32>,
}

impl Names {
    fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let text: Arc<str> = text.into();
        let number = self.list.len();
        self.numbers.insert(Arc::clone(&text), number);
        self.list.push(Name { text, version: Version::ZERO, rows: Vec::new() });
        number
    }
}

impl Builder {
    /// Adds a line; `before` is the position before the stretch.
    pub(in crate::log) fn add(&mut self, before: Seq, offset: u64, len: u64, line: Listed<'_>) {
        let row = usize::try_from(line.seq.0.saturating_sub(before.0 + 1)).unwrap_or(usize::MAX);
        if row < self.rows.len() || row >= NO_LINE as usize {
            return;
        }
        let stream = self.streams.number(line.stream);
        let kind = self.types.number(line.kind);
        self.rows.resize(row, [NO_LINE; 4]);
        let narrow = |wide: u64| u32::try_from(wide).unwrap_or(NO_LINE);
        self.rows.push([narrow(offset), narrow(len), narrow(stream as u64), narrow(kind as u64)]);
        let row = narrow(row as u64);
        for (names, number) in [(&mut self.streams, stream), (&mut self.types, kind)] {
            if let Some(name) = names.list.get_mut(number) {
                name.rows.push(row);
            }
        }
        if let Some(name) = self.streams.list.get_mut(stream) {
            name.version = name.version.max(line.version);
        }
        self.ids.entry(line.id).or_insert(row);
    }

    /// Learns that a stream has reached a version, by a line or by what is legible of a damaged one.
    pub(in crate::log) fn raise(&mut self, stream: &str, version: Version) {
        let number = self.streams.number(stream);
        if let Some(name) = self.streams.list.get_mut(number) {
            name.version = name.version.max(version);
        }
    }

    /// The last version of a stream in this stretch.
    pub(in crate::log) fn version(&self, stream: &str) -> Option<Version> {
        let number = *self.streams.numbers.get(stream)?;
        self.streams.list.get(number).map(|name| name.version)
    }

    /// The row of an id.
    pub(in crate::log) fn row_of(&self, id: EventId) -> Option<u32> {
        self.ids.get(&id).copied()
    }

    /// How many ids there are.
    pub(in crate::log) fn id_count(&self) -> u64 {
        self.ids.len() as u64
    }

    /// The hashes of all ids.
    pub(in crate::log) fn id_hashes(&self) -> impl Iterator<Item = u64> {
        self.ids.keys().map(|id| hash_id(*id))
    }

    /// Where the line of a row lies.
    pub(in crate::log) fn line(&self, row: u32) -> Option<(u64, u64)> {
        let [offset, len, ..] = *self.rows.get(row as usize)?;
        (offset != NO_LINE).then_some((u64::from(offset), u64::from(len)))
    }

    /// The rows of a stream or a type, in order.
    pub(in crate::log) fn rows_of(&self, key: super::Key<'_>) -> &[u32] {
        let (names, text) = match key {
            super::Key::Stream(text) => (&self.streams, text),
            super::Key::Type(text) => (&self.types, text),
        };
        let number = names.numbers.get(text).and_then(|number| names.list.get(*number));
        number.map_or(&[], |name| &name.rows)
    }

    /// How many rows a stream has, and those of them that are of some types, in order.
    pub(in crate::log) fn common(&self, stream: &str, types: &[&str]) -> (u64, Vec<u32>) {
        let list = |rows| (count_of(rows), move |place| at(rows, place));
        let of_stream = self.rows_of(super::Key::Stream(stream));
        let mut rows: Vec<u32> = types
            .iter()
            .map(|kind| self.rows_of(super::Key::Type(kind)))
            .flat_map(|of_type| super::common(list(of_stream), list(of_type)))
            .collect();
        rows.sort_unstable();
        (count_of(of_stream), rows)
    }

    /// The bytes of the index file.
    pub(in crate::log) fn encode(&self, stretch: &Stretch) -> Vec<u8> {
        let mut sections = Sections::default();
        let mut pages = Vec::new();
        let (mut texts, mut postings) = (Vec::new(), Vec::new());
        let (streams, stream_numbers) = encode_names(&self.streams, &mut texts, &mut postings);
        let (types, type_numbers) = encode_names(&self.types, &mut texts, &mut postings);
        let mut rows = Vec::with_capacity(self.rows.len() * ROW);
        for [offset, len, stream, kind] in &self.rows {
            let number =
                |numbers: &[u32], old: u32| numbers.get(old as usize).copied().unwrap_or(NO_LINE);
            let row =
                [*offset, *len, number(&stream_numbers, *stream), number(&type_numbers, *kind)];
            rows.extend(row.iter().flat_map(|part| part.to_le_bytes()));
        }
        let mut ids: Vec<(u64, u32)> =
            self.ids.iter().map(|(id, row)| (hash_id(*id), *row)).collect();
        ids.sort_unstable();
        let ids_bytes: Vec<u8> = ids
            .iter()
            .flat_map(|(hash, row)| hash.to_le_bytes().into_iter().chain(row.to_le_bytes()))
            .collect();
        let postings_bytes: Vec<u8> =
            postings.iter().flat_map(|row: &u32| row.to_le_bytes()).collect();
        let parts = [
            (&mut sections.rows, rows, self.rows.len()),
            (&mut sections.streams, streams, self.streams.list.len()),
            (&mut sections.types, types, self.types.list.len()),
            (&mut sections.ids, ids_bytes, ids.len()),
            (&mut sections.postings, postings_bytes, postings.len()),
            (&mut sections.texts, texts.clone(), texts.len()),
        ];
        for (section, bytes, count) in parts {
            *section = Section { offset: pages.len() as u64, count: count as u64 };
            pages.extend_from_slice(&bytes);
            pages.resize(pages.len().next_multiple_of(8), 0);
        }
        let (table, sum) = Pages::table_of(&pages);
        let mut out = header(stretch, &sections, pages.len() as u64, sum);
        out.extend_from_slice(&table);
        out.extend_from_slice(&pages);
        out
    }
}

fn count_of(rows: &[u32]) -> u64 {
    rows.len() as u64
}

fn at(rows: &[u32], place: u64) -> Option<u32> {
    rows.get(usize::try_from(place).ok()?).copied()
}

/// The names sorted by hash, and for each old number its new one.
fn encode_names(
    names: &Names,
    texts: &mut Vec<u8>,
    postings: &mut Vec<u32>,
) -> (Vec<u8>, Vec<u32>) {
    let mut order: Vec<(u64, usize)> = names
        .list
        .iter()
        .enumerate()
        .map(|(number, name)| (hash(name.text.as_bytes()), number))
        .collect();
    order.sort_unstable();
    let mut numbers = vec![NO_LINE; names.list.len()];
    let mut out = Vec::new();
    for (new, (hash, old)) in (0_u32..).zip(order) {
        let Some(name) = names.list.get(old) else { continue };
        if let Some(number) = numbers.get_mut(old) {
            *number = new;
        }
        let narrow = |wide: usize| u32::try_from(wide).unwrap_or(NO_LINE).to_le_bytes();
        out.extend(hash.to_le_bytes());
        out.extend(narrow(texts.len()));
        out.extend(narrow(name.text.len()));
        out.extend(narrow(postings.len()));
        out.extend(narrow(name.rows.len()));
        out.extend(name.version.0.to_le_bytes());
        texts.extend_from_slice(name.text.as_bytes());
        postings.extend_from_slice(&name.rows);
    }
    (out, numbers)
}

fn header(stretch: &Stretch, sections: &Sections, pages: u64, table: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER);
    out.extend(MAGIC);
    out.extend(stretch.store.0.as_bytes());
    let flags = u32::from(stretch.sealed)
        | u32::from(stretch.broken) << 1
        | u32::from(stretch.before_crc.is_some()) << 2;
    out.extend(flags.to_le_bytes());
    out.extend(stretch.last_crc.0.to_le_bytes());
    out.extend(stretch.before_crc.unwrap_or_default().0.to_le_bytes());
    out.extend(table.to_le_bytes());
    let time = stretch.last_time.as_micros().unsigned_abs();
    for number in [
        stretch.segment.0,
        stretch.start,
        stretch.end,
        stretch.before.0,
        stretch.last.0,
        time,
        pages,
    ] {
        out.extend(number.to_le_bytes());
    }
    let Sections { rows, streams, types, ids, postings, texts } = *sections;
    for Section { offset, count } in [rows, streams, types, ids, postings, texts] {
        let narrow = |wide: u64| u32::try_from(wide).unwrap_or(NO_LINE).to_le_bytes();
        out.extend(narrow(offset));
        out.extend(narrow(count));
    }
    out.resize(HEADER - 4, 0);
    out.extend(crc32(&out).0.to_le_bytes());
    out
}
