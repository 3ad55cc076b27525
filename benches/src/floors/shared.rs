//! Appends as several processes may make them to one file without a daemon: the same calls into the kernel as annals
//! makes, in the same order, and nothing else. What annals costs beyond this floor is its own; what this floor costs
//! beyond a bare write is the price of the promise.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::commit::Appender;

const SLOT: usize = 512;

/// Whether an append returns when the line is on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After `write`.
    Written,
    /// After `fdatasync`.
    Synced,
}

/// A file of lines with its two lock files.
pub struct Shared {
    folder: PathBuf,
    until: Until,
    state: Mutex<State>,
}

struct State {
    lines: File,
    end: u64,
    append: File,
    sync: File,
    count: u64,
}

impl Shared {
    /// Makes the files.
    #[must_use]
    pub fn new(folder: &Path, until: Until) -> Self {
        let open = |name: &str| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true);
            options.open(folder.join(name)).unwrap()
        };
        let state = State {
            lines: open("floor.jsonl"),
            end: 0,
            append: open("lock.append"),
            sync: open("lock.sync"),
            count: 0,
        };
        state.append.write_all_at(&[b' '; 2 * SLOT], 0).unwrap();
        state.sync.write_all_at(&[b' '; 2 * SLOT], 0).unwrap();
        Self { folder: folder.to_owned(), until, state: Mutex::new(state) }
    }

    /// A look at what a name stands for.
    fn look(&self, name: &str) {
        assert!(self.folder.join(name).metadata().unwrap().is_file());
    }
}

impl State {
    fn slots(file: &File) {
        file.read_exact_at(&mut [0; 2 * SLOT], 0).unwrap();
    }

    fn publish(&mut self, into: fn(&Self) -> &File) {
        self.count += 1;
        let place = self.count % 2 * SLOT as u64;
        into(self).write_all_at(&[b' '; SLOT], place).unwrap();
    }
}

impl Appender for Shared {
    fn append(&self, line: &[u8]) -> Result<(), String> {
        let mut state = self.state.lock().unwrap();
        state.append.lock().unwrap();
        self.look("lock.append");
        State::slots(&state.sync);
        State::slots(&state.append);
        self.look("floor.jsonl");
        state.lines.write_all_at(line, state.end).unwrap();
        state.end += line.len() as u64;
        state.publish(|state| &state.append);
        state.append.unlock().unwrap();
        if self.until == Until::Written {
            return Ok(());
        }
        state.sync.lock().unwrap();
        self.look("lock.sync");
        State::slots(&state.sync);
        state.lines.read_exact_at(&mut [0; 1], state.end - 1).unwrap();
        State::slots(&state.append);
        state.publish(|state| &state.sync);
        state.lines.sync_data().unwrap();
        state.publish(|state| &state.sync);
        state.sync.unlock().unwrap();
        Ok(())
    }
}
