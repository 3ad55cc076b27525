//! Group commit in two ways. What a commit is, is handed in, so that stores which have one writer get the same treatment
//! as a file.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;

use rustix::thread::futex;

use super::commit::Appender;

/// Lines that are committed together.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// All lines, one behind the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn push(&mut self, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.ends.push(self.bytes.len());
    }

    /// The lines.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(&0).chain(&self.ends);
        begins.zip(&self.ends).filter_map(|(begin, end)| self.bytes.get(*begin..*end))
    }
}

/// The usual way: the first caller that finds nobody committing commits for all that wait, and wakes everybody.
pub struct Led<C> {
    waiting: Mutex<Waiting>,
    done: Condvar,
    commit: Mutex<C>,
}

#[derive(Default)]
struct Waiting {
    batch: Batch,
    last: u64,
    done: u64,
    led: bool,
    failure: Option<String>,
}

impl<C: FnMut(&Batch) -> Result<(), String>> Led<C> {
    /// Commits in this way.
    #[must_use]
    pub fn new(commit: C) -> Self {
        Self { waiting: Mutex::default(), done: Condvar::new(), commit: Mutex::new(commit) }
    }
}

impl<C: FnMut(&Batch) -> Result<(), String> + Send> Appender for Led<C> {
    fn append(&self, line: &[u8]) -> Result<(), String> {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.batch.push(line);
        waiting.last += 1;
        let mine = waiting.last;
        while waiting.done < mine {
            if waiting.led {
                waiting = self.done.wait(waiting).unwrap();
                continue;
            }
            waiting.led = true;
            let (batch, last) = (std::mem::take(&mut waiting.batch), waiting.last);
            drop(waiting);
            let committed = (self.commit.lock().unwrap())(&batch);
            waiting = self.waiting.lock().unwrap();
            (waiting.led, waiting.done) = (false, last);
            waiting.failure = waiting.failure.take().or(committed.err());
            self.done.notify_all();
        }
        waiting.failure.clone().map_or(Ok(()), Err)
    }
}

/// Two buffers: callers fill one while a thread commits the other, and one system call wakes all callers of a batch.
pub struct GroupCommit {
    shared: Arc<Shared>,
    committer: Option<JoinHandle<()>>,
}

struct Shared {
    filling: Mutex<Filling>,
    more: Condvar,
    /// The last batch that is committed, once for even and once for odd batches, so that a batch wakes its own callers
    /// and not those of the next.
    done: [AtomicU32; 2],
    ended: AtomicBool,
    failure: OnceLock<String>,
}

struct Filling {
    batch: Batch,
    number: u32,
}

impl GroupCommit {
    /// Starts the thread.
    #[must_use]
    pub fn new(commit: impl FnMut(&Batch) -> Result<(), String> + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            filling: Mutex::new(Filling { batch: Batch::default(), number: 2 }),
            more: Condvar::new(),
            done: [AtomicU32::new(0), AtomicU32::new(1)],
            ended: AtomicBool::new(false),
            failure: OnceLock::new(),
        });
        let theirs = Arc::clone(&shared);
        let committer = std::thread::spawn(move || theirs.commit(commit));
        Self { shared, committer: Some(committer) }
    }
}

impl Shared {
    fn commit(&self, mut commit: impl FnMut(&Batch) -> Result<(), String>) {
        let mut full = Batch::default();
        loop {
            let number = {
                let mut filling = self.filling.lock().unwrap();
                while filling.batch.ends.is_empty() {
                    if self.ended.load(Ordering::SeqCst) {
                        return;
                    }
                    filling = self.more.wait(filling).unwrap();
                }
                full.bytes.clear();
                full.ends.clear();
                std::mem::swap(&mut full, &mut filling.batch);
                filling.number += 1;
                filling.number - 1
            };
            if let Err(failure) = commit(&full) {
                self.failure.get_or_init(|| failure);
            }
            let done = self.done_of(number);
            done.store(number, Ordering::SeqCst);
            futex::wake(done, futex::Flags::PRIVATE, u32::MAX >> 1).unwrap();
        }
    }

    fn done_of(&self, number: u32) -> &AtomicU32 {
        let [even, odd] = &self.done;
        if number.is_multiple_of(2) { even } else { odd }
    }
}

impl Appender for GroupCommit {
    fn append(&self, line: &[u8]) -> Result<(), String> {
        let (number, first) = {
            let mut filling = self.shared.filling.lock().unwrap();
            let first = filling.batch.ends.is_empty();
            filling.batch.push(line);
            (filling.number, first)
        };
        if first {
            self.shared.more.notify_one();
        }
        let done = self.shared.done_of(number);
        loop {
            let now = done.load(Ordering::SeqCst);
            if now >= number {
                return self.shared.failure.get().map_or(Ok(()), |failure| Err(failure.clone()));
            }
            // An error says that the value has changed, or that a signal came: either way it is looked at again.
            let _ = futex::wait(done, futex::Flags::PRIVATE, now, None);
        }
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        drop(self.shared.filling.lock().unwrap());
        self.shared.more.notify_all();
        if let Some(committer) = self.committer.take() {
            committer.join().unwrap();
        }
    }
}
