//! okaywal, one chunk an entry. It batches the syncs of several threads by itself. It is a log without an index, so it
//! is compared in appends alone.

use std::path::Path;

use ::okaywal::{LogVoid, WriteAheadLog};

use super::{Outcome, Rival, text};
use crate::floors::commit::Appender;

/// okaywal.
pub const RIVAL: Rival = Rival { name: "okaywal", appender, keeping: None };

struct Open(WriteAheadLog);

impl Appender for Open {
    fn append(&self, line: &[u8]) -> Outcome<()> {
        let mut entry = self.0.begin_entry().map_err(text)?;
        entry.write_chunk(line).map_err(text)?;
        entry.commit().map(drop).map_err(text)
    }
}

fn appender(folder: &Path, _callers: usize) -> Outcome<Box<dyn Appender>> {
    let log = WriteAheadLog::recover(folder.join("okaywal"), LogVoid).map_err(text)?;
    Ok(Box::new(Open(log)))
}
