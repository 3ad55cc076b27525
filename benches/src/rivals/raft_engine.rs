//! raft-engine, the log of TiKV: `write` with sync, a region a caller; it groups the syncs of several threads by itself.
//! Where streams are read, a stream is a region; batches are small enough that they are not compressed, since reading an
//! entry unpacks the batch that it came in.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use ::raft_engine::{Config, Engine, LogBatch, MessageExt};
use protobuf::well_known_types::UInt64Value;
use protobuf::{Message, UnknownValue};

use super::{Entry, Keeping, Loaded, Outcome, Rival, text};
use crate::floors::commit::Appender;

/// raft-engine.
pub const RIVAL: Rival =
    Rival { name: "raft-engine, sync", appender, keeping: Some(Keeping { load, open: opened }) };

/// The field of an entry that holds the line.
const LINE: u32 = 2;

/// Entries as protobuf: the index, and the line in a field of its own.
#[derive(Clone)]
struct Line;

impl MessageExt for Line {
    type Entry = UInt64Value;

    fn index(entry: &UInt64Value) -> u64 {
        entry.get_value()
    }
}

fn entry(index: u64, line: &[u8]) -> UInt64Value {
    let mut entry = UInt64Value::new();
    entry.set_value(index);
    entry.mut_unknown_fields().add_value(LINE, UnknownValue::LengthDelimited(line.to_vec()));
    entry
}

struct Open(Engine);

fn open(folder: &Path) -> Outcome<Open> {
    let dir = folder.join("raft-engine").to_str().unwrap_or_default().to_owned();
    Engine::open(Config { dir, ..Config::default() }).map(Open).map_err(text)
}

impl Appender for Open {
    fn append(&self, line: &[u8]) -> Outcome<()> {
        static REGIONS: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static REGION: u64 = REGIONS.fetch_add(1, Ordering::Relaxed);
            static INDEX: Cell<u64> = const { Cell::new(0) };
        }
        INDEX.set(INDEX.get() + 1);
        let mut batch = LogBatch::default();
        let entry = entry(INDEX.get(), line);
        batch.add_entries::<Line>(REGION.with(|region| *region), &[entry]).map_err(text)?;
        self.0.write(&mut batch, true).map(drop).map_err(text)
    }
}

fn appender(folder: &Path, _callers: usize) -> Outcome<Box<dyn Appender>> {
    Ok(Box::new(open(folder)?))
}

fn load(folder: &Path, entries: &mut dyn Iterator<Item = Entry<'_>>) -> Outcome<()> {
    let store = open(folder)?;
    let mut batch = LogBatch::default();
    let mut entries = entries.peekable();
    let mut count = 0;
    while let Some(Entry { stream, version, line }) = entries.next() {
        batch.add_entries::<Line>(stream, &[entry(version, line)]).map_err(text)?;
        count += 1;
        if count % 8 == 0 || entries.peek().is_none() {
            store.0.write(&mut batch, entries.peek().is_none()).map_err(text)?;
        }
    }
    Ok(())
}

fn opened(folder: &Path) -> Outcome<Box<dyn Loaded>> {
    Ok(Box::new(open(folder)?))
}

impl Open {
    fn between(&self, region: u64, from: u64, to: u64) -> Outcome<Vec<UInt64Value>> {
        let mut found = Vec::new();
        self.0.fetch_entries_to::<Line>(region, from, to + 1, None, &mut found).map_err(text)?;
        Ok(found)
    }
}

impl Loaded for Open {
    fn each(&self, take: &mut dyn FnMut(&[u8])) -> Outcome<()> {
        let mut regions = self.0.raft_groups();
        regions.sort_unstable();
        for region in regions {
            let ends = self.0.first_index(region).zip(self.0.last_index(region));
            let Some((first, last)) = ends else { continue };
            let mut from = first;
            while from <= last {
                let to = last.min(from + 255);
                for entry in self.between(region, from, to)? {
                    let field = entry.get_unknown_fields().get(LINE);
                    take(field.and_then(|f| f.length_delimited.first()).map_or(&[], Vec::as_slice));
                }
                from = to + 1;
            }
        }
        Ok(())
    }

    fn last(&self, stream: u64, from: u64, to: u64) -> Outcome<usize> {
        Ok(std::hint::black_box(self.between(stream, from, to)?).len())
    }
}
