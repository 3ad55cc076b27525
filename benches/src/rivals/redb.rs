//! redb with `Durability::Immediate`, its default. It has one writer: of many callers those that wait share a
//! transaction.

use std::path::Path;

use ::redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Entry, Keeping, Loaded, Outcome, Rival, text};
use crate::floors::commit::Appender;
use crate::floors::group::{Batch, Led};

/// redb.
pub const RIVAL: Rival =
    Rival { name: "redb, immediate", appender, keeping: Some(Keeping { load, open: opened }) };

const EVENTS: TableDefinition<'_, (u64, u64), &[u8]> = TableDefinition::new("events");

struct Alone(Database, std::sync::Mutex<u64>);

impl Appender for Alone {
    fn append(&self, line: &[u8]) -> Outcome<()> {
        let mut seq = self.1.lock().unwrap();
        *seq += 1;
        insert(&self.0, *seq, std::iter::once(line))
    }
}

fn insert<'a>(db: &Database, first: u64, lines: impl Iterator<Item = &'a [u8]>) -> Outcome<()> {
    let mut all = db.begin_write().map_err(text)?;
    all.set_durability(Durability::Immediate).map_err(text)?;
    {
        let mut table = all.open_table(EVENTS).map_err(text)?;
        for (seq, line) in (first..).zip(lines) {
            table.insert((0, seq), line).map_err(text)?;
        }
    }
    all.commit().map_err(text)
}

fn appender(folder: &Path, callers: usize) -> Outcome<Box<dyn Appender>> {
    let db = Database::create(folder.join("events.redb")).map_err(text)?;
    if callers == 1 {
        return Ok(Box::new(Alone(db, std::sync::Mutex::new(0))));
    }
    let mut seq = 1;
    Ok(Box::new(Led::new(move |batch: &Batch| {
        insert(&db, seq, batch.lines())?;
        seq += batch.lines().count() as u64;
        Ok(())
    })))
}

fn load(folder: &Path, entries: &mut dyn Iterator<Item = Entry<'_>>) -> Outcome<()> {
    let db = Database::create(folder.join("events.redb")).map_err(text)?;
    let all = db.begin_write().map_err(text)?;
    {
        let mut table = all.open_table(EVENTS).map_err(text)?;
        for Entry { stream, version, line } in entries {
            table.insert((stream, version), line).map_err(text)?;
        }
    }
    all.commit().map_err(text)
}

struct Full(Database);

fn opened(folder: &Path) -> Outcome<Box<dyn Loaded>> {
    Ok(Box::new(Full(Database::open(folder.join("events.redb")).map_err(text)?)))
}

impl Loaded for Full {
    fn each(&self, take: &mut dyn FnMut(&[u8])) -> Outcome<()> {
        let all = self.0.begin_read().map_err(text)?;
        let table = all.open_table(EVENTS).map_err(text)?;
        for pair in table.iter().map_err(text)? {
            take(pair.map_err(text)?.1.value());
        }
        Ok(())
    }

    fn last(&self, stream: u64, from: u64, to: u64) -> Outcome<usize> {
        let all = self.0.begin_read().map_err(text)?;
        let table = all.open_table(EVENTS).map_err(text)?;
        let range = table.range((stream, from)..=(stream, to)).map_err(text)?;
        let found: Vec<_> =
            range.map(|pair| Ok(pair.map_err(text)?.1.value().to_vec())).collect::<Outcome<_>>()?;
        Ok(std::hint::black_box(found).len())
    }
}
