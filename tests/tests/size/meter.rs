//! What a process asks of the disk for an answer.

use std::path::Path;
use std::sync::{Arc, Mutex};

use annals_engine::Engine;
use annals_engine::clock::{Clock, SystemClock};
use annals_engine::engine::Options;
use annals_engine::log::Log;
use annals_tests::disk::Op;
use annals_tests::watched::Watched;

/// The calls of a store that is read, since they were last taken.
#[derive(Clone, Default)]
pub(crate) struct Meter {
    calls: Arc<Mutex<Vec<(Op, String)>>>,
}

/// Calls that were taken.
#[derive(Debug)]
pub(crate) struct Calls(Vec<(Op, String)>);

impl Meter {
    /// Opens a store for reading and counts from the first call on.
    pub(crate) fn open(&self, store: &Path, options: &Options) -> Engine {
        let log = Log::open_read_only(self.watched(store), options.clone()).unwrap();
        Engine::over(Arc::new(log), Arc::new(SystemClock))
    }

    /// Opens a store for appending and counts from the first call on.
    pub(crate) fn open_to_append(&self, store: &Path, options: &Options) -> Engine {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Engine::over(Arc::new(self.open_log(store, Arc::clone(&clock), options.clone())), clock)
    }

    /// Opens the log of a store for appending and counts from the first call on.
    pub(crate) fn open_log(&self, store: &Path, clock: Arc<dyn Clock>, options: Options) -> Log {
        Log::open(self.watched(store), clock, options).unwrap()
    }

    fn watched(&self, store: &Path) -> Arc<Watched> {
        let calls = Arc::clone(&self.calls);
        let watch = move |op: &Op, name: &str| {
            calls.lock().unwrap().push((op.clone(), name.to_owned()));
            usize::MAX
        };
        Arc::new(Watched::new(store, Arc::new(watch)))
    }

    /// The calls since the last time.
    pub(crate) fn take(&self) -> Calls {
        Calls(std::mem::take(&mut self.calls.lock().unwrap()))
    }
}

impl Calls {
    /// How many bytes were read.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes_of("")
    }

    /// How many bytes of files whose names end so were read.
    pub(crate) fn bytes_of(&self, end: &str) -> usize {
        let read = self.0.iter().filter(|(_, name)| name.ends_with(end)).map(|(op, _)| match op {
            Op::ReadAt { len, .. } => *len,
            _ => 0,
        });
        read.sum()
    }

    /// How many calls there were.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// How many calls were about names that begin so.
    pub(crate) fn named(&self, prefix: &str) -> usize {
        self.0.iter().filter(|(_, name)| name.starts_with(prefix)).count()
    }

    /// The names of the files that were mapped.
    pub(crate) fn mapped(&self) -> Vec<&str> {
        let mapped = self.0.iter().filter(|(op, _)| *op == Op::Map);
        mapped.map(|(_, name)| name.as_str()).collect()
    }
}

/// How many bytes of the segments that this process has mapped are in its memory: at least those that were looked at.
pub(crate) fn resident(store: &Path) -> u64 {
    let of_segment = |line: &str| {
        let path = line.split_whitespace().nth(5).unwrap_or_default();
        path.starts_with(store.to_str().unwrap()) && path.ends_with(".jsonl")
    };
    let mut counted = false;
    let mut kib = 0;
    for line in std::fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if !name.ends_with(':') {
            counted = of_segment(line);
        } else if name == "Rss:" && counted {
            kib += line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        }
    }
    kib << 10
}
