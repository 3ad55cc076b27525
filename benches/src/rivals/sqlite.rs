//! SQLite in WAL mode with `synchronous = FULL`, prepared statements, and an index by stream where streams are read.
//! Of many callers those that wait share a transaction, as its documentation advises.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use super::{Entry, Keeping, Loaded, Outcome, Rival, text};
use crate::floors::commit::Appender;
use crate::floors::group::{Batch, Led};

/// SQLite.
pub const RIVAL: Rival = Rival {
    name: "SQLite, WAL, synchronous FULL",
    appender,
    keeping: Some(Keeping { load, open: opened }),
};

const INSERT: &str = "INSERT INTO events (line) VALUES (?1)";

/// A connection of one process among several.
pub struct Alone(Mutex<Connection>);

impl Alone {
    /// Opens the database in a folder, and makes it unless it is there.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn open(folder: &Path) -> Outcome<Self> {
        Ok(Self(Mutex::new(connect(folder)?)))
    }
}

impl Appender for Alone {
    fn append(&self, line: &[u8]) -> Outcome<()> {
        let connection = self.0.lock().unwrap();
        let mut insert = connection.prepare_cached(INSERT).map_err(text)?;
        insert.execute([line]).map(drop).map_err(text)
    }
}

fn connect(folder: &Path) -> Outcome<Connection> {
    let connection = Connection::open(folder.join("events.db")).map_err(text)?;
    connection.busy_timeout(Duration::from_secs(30)).map_err(text)?;
    let set_up = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, stream INTEGER, version INTEGER, line BLOB);";
    connection.execute_batch(set_up).map_err(text)?;
    Ok(connection)
}

fn appender(folder: &Path, callers: usize) -> Outcome<Box<dyn Appender>> {
    if callers == 1 {
        return Ok(Box::new(Alone::open(folder)?));
    }
    let mut connection = connect(folder)?;
    Ok(Box::new(Led::new(move |batch: &Batch| {
        let behavior = TransactionBehavior::Immediate;
        let all = connection.transaction_with_behavior(behavior).map_err(text)?;
        for line in batch.lines() {
            all.prepare_cached(INSERT).map_err(text)?.execute([line]).map_err(text)?;
        }
        all.commit().map_err(text)
    })))
}

fn load(folder: &Path, entries: &mut dyn Iterator<Item = Entry<'_>>) -> Outcome<()> {
    let mut connection = connect(folder)?;
    let all = connection.transaction().map_err(text)?;
    for Entry { stream, version, line } in entries {
        let mut insert = all
            .prepare_cached("INSERT INTO events (stream, version, line) VALUES (?1, ?2, ?3)")
            .map_err(text)?;
        let numbers = [stream, version].map(u64::cast_signed);
        insert.execute(params![numbers[0], numbers[1], line]).map_err(text)?;
    }
    all.execute_batch("CREATE UNIQUE INDEX streams ON events (stream, version)").map_err(text)?;
    all.commit().map_err(text)?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); ANALYZE;").map_err(text)
}

struct Full(Connection);

fn opened(folder: &Path) -> Outcome<Box<dyn Loaded>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join("events.db"), flags).map_err(text)?;
    connection.execute_batch("PRAGMA mmap_size = 8589934592;").map_err(text)?;
    Ok(Box::new(Full(connection)))
}

impl Loaded for Full {
    fn each(&self, take: &mut dyn FnMut(&[u8])) -> Outcome<()> {
        let mut all =
            self.0.prepare_cached("SELECT line FROM events ORDER BY seq").map_err(text)?;
        let mut rows = all.query([]).map_err(text)?;
        while let Some(row) = rows.next().map_err(text)? {
            take(row.get_ref(0).map_err(text)?.as_blob().map_err(text)?);
        }
        Ok(())
    }

    fn last(&self, stream: u64, from: u64, to: u64) -> Outcome<usize> {
        let some = "SELECT line FROM events WHERE stream = ?1 AND version BETWEEN ?2 AND ?3 ORDER BY version";
        let mut some = self.0.prepare_cached(some).map_err(text)?;
        let mut rows = some.query([stream, from, to].map(u64::cast_signed)).map_err(text)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(text)? {
            found.push(row.get_ref(0).map_err(text)?.as_blob().map_err(text)?.to_vec());
        }
        Ok(std::hint::black_box(found).len())
    }
}
