//! Appends to one file. Each returns when the line is on stable storage.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::thread::futex;

/// A file to append lines to.
pub trait Appender: Sync {
    /// Appends a line.
    fn append(&self, line: &[u8]);
}

fn open(folder: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(folder.join("floor.jsonl")).unwrap()
}

/// `write`, then `fdatasync`, under one lock.
pub struct Alone(Mutex<File>);

impl Alone {
    /// Makes the file.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(Mutex::new(open(folder)))
    }
}

impl Appender for Alone {
    fn append(&self, line: &[u8]) {
        let mut file = self.0.lock().unwrap();
        file.write_all(line).unwrap();
        file.sync_data().unwrap();
    }
}

/// `write` alone, a line a call: the operating system writes back when it likes.
pub struct Unsynced(Mutex<File>);

impl Unsynced {
    /// Makes the file.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self(Mutex::new(open(folder)))
    }
}

impl Appender for Unsynced {
    fn append(&self, line: &[u8]) {
        self.0.lock().unwrap().write_all(line).unwrap();
    }
}

/// Group commit with one lock and one condition: the first that finds nobody writing takes all that wait, writes and
/// syncs them, and wakes everybody.
pub struct OneLock {
    state: Mutex<Pending>,
    synced: Condvar,
    file: File,
}

#[derive(Default)]
struct Pending {
    lines: Vec<u8>,
    last: u64,
    done: u64,
    led: bool,
}

impl OneLock {
    /// Makes the file.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { state: Mutex::default(), synced: Condvar::new(), file: open(folder) }
    }
}

impl Appender for OneLock {
    fn append(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap();
        state.lines.extend_from_slice(line);
        state.last += 1;
        let mine = state.last;
        while state.done < mine {
            if state.led {
                state = self.synced.wait(state).unwrap();
                continue;
            }
            state.led = true;
            let (lines, last) = (std::mem::take(&mut state.lines), state.last);
            drop(state);
            (&self.file).write_all(&lines).unwrap();
            self.file.sync_data().unwrap();
            state = self.state.lock().unwrap();
            (state.led, state.done) = (false, last);
            self.synced.notify_all();
        }
    }
}

/// Group commit with two buffers: one batch is in the kernel while the next fills, and one system call wakes everybody
/// of a batch.
pub struct TwoBuffers {
    shared: Arc<Shared>,
    committer: Option<JoinHandle<()>>,
}

struct Shared {
    filling: Mutex<Filling>,
    more: Condvar,
    /// The last batch that is on stable storage, once for even and once for odd batches, so that a batch wakes its own
    /// callers and not those of the next.
    done: [AtomicU32; 2],
    ended: AtomicBool,
}

struct Filling {
    lines: Vec<u8>,
    batch: u32,
}

impl TwoBuffers {
    /// Makes the file, and starts the thread that commits.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        let shared = Arc::new(Shared {
            filling: Mutex::new(Filling { lines: Vec::new(), batch: 2 }),
            more: Condvar::new(),
            done: [AtomicU32::new(0), AtomicU32::new(1)],
            ended: AtomicBool::new(false),
        });
        let (file, theirs) = (open(folder), Arc::clone(&shared));
        let committer = std::thread::spawn(move || commit(&theirs, file));
        Self { shared, committer: Some(committer) }
    }
}

fn commit(shared: &Shared, mut file: File) {
    let mut full = Vec::new();
    loop {
        let batch = {
            let mut filling = shared.filling.lock().unwrap();
            while filling.lines.is_empty() {
                if shared.ended.load(Ordering::SeqCst) {
                    return;
                }
                filling = shared.more.wait(filling).unwrap();
            }
            full.clear();
            std::mem::swap(&mut full, &mut filling.lines);
            filling.batch += 1;
            filling.batch - 1
        };
        file.write_all(&full).unwrap();
        file.sync_data().unwrap();
        let [even, odd] = &shared.done;
        let done = if batch % 2 == 0 { even } else { odd };
        done.store(batch, Ordering::SeqCst);
        futex::wake(done, futex::Flags::PRIVATE, u32::MAX >> 1).unwrap();
    }
}

impl Appender for TwoBuffers {
    fn append(&self, line: &[u8]) {
        let (batch, first) = {
            let mut filling = self.shared.filling.lock().unwrap();
            let first = filling.lines.is_empty();
            filling.lines.extend_from_slice(line);
            (filling.batch, first)
        };
        if first {
            self.shared.more.notify_one();
        }
        let [even, odd] = &self.shared.done;
        let done = if batch % 2 == 0 { even } else { odd };
        loop {
            let now = done.load(Ordering::SeqCst);
            if now >= batch {
                return;
            }
            // An error says that the value has changed, or that a signal came: either way it is looked at again.
            let _ = futex::wait(done, futex::Flags::PRIVATE, now, None);
        }
    }
}

impl Drop for TwoBuffers {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        drop(self.shared.filling.lock().unwrap());
        self.shared.more.notify_all();
        if let Some(committer) = self.committer.take() {
            committer.join().unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Make = fn(&Path) -> Box<dyn Appender>;

    /// Goal: a floor that lost lines would be no floor. Method: eight callers append to each, and every line is in the
    /// file once, whole.
    #[test]
    fn every_line_is_in_the_file() {
        let all: [Make; 4] = [
            |folder| Box::new(Alone::new(folder)),
            |folder| Box::new(Unsynced::new(folder)),
            |folder| Box::new(OneLock::new(folder)),
            |folder| Box::new(TwoBuffers::new(folder)),
        ];
        for make in all {
            let home = tempfile::tempdir().unwrap();
            let floor = make(home.path());
            std::thread::scope(|scope| {
                for caller in 0..8 {
                    let floor = &floor;
                    scope.spawn(move || {
                        for line in 0..25 {
                            floor.append(format!("{caller} {line}\n").as_bytes());
                        }
                    });
                }
            });
            drop(floor);
            let text = std::fs::read_to_string(home.path().join("floor.jsonl")).unwrap();
            let mut found: Vec<&str> = text.lines().collect();
            found.sort_unstable();
            let mut expected: Vec<String> =
                (0..8).flat_map(|c| (0..25).map(move |l| format!("{c} {l}"))).collect();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
