//! Watchers on real files and the real kernel, at a time that the tests make: each step of somebody who saves is heard by
//! itself, a minute passes at once, and nothing depends on how fast a machine is.

#![expect(clippy::unwrap_used, reason = "what cannot be set up fails the test")]
#![expect(clippy::disallowed_methods, reason = "the tests are those who change files")]

mod saves;
mod unheard;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use annals_engine::Engine;
use annals_engine::clock::{Clock, ManualClock, SystemClock, Timestamp};
use annals_engine::session::event::{Change, Event};
use annals_engine::session::index::TimeRules;
use annals_engine::session::key::AgentId;
use annals_engine::session::watching::Rule;
use annals_engine::store::{Item, Read};
use annals_engine::watch::Tree;
use annals_engine::watcher::{Terms, Watcher};

/// A folder, and the watcher of one rule on it.
struct Desk {
    folder: PathBuf,
    engine: Engine,
    clock: Arc<ManualClock>,
    begun: Timestamp,
    watcher: Watcher<Tree>,
}

impl Desk {
    /// The watcher has begun: what is in the folder is recorded. Patterns go from the folder on.
    fn new(folder: &Path, patterns: &[&str]) -> Self {
        let folder = folder.canonicalize().unwrap();
        let begun = SystemClock.now();
        let clock = Arc::new(ManualClock::new(begun));
        let engine = Engine::in_memory(clock.clone());
        let watcher = watcher(&engine, &folder, patterns);
        let mut desk = Self { folder, engine, clock, begun, watcher };
        desk.step();
        desk
    }

    /// The watcher ends, and another one begins.
    fn restart(&mut self, patterns: &[&str]) {
        self.watcher = watcher(&self.engine, &self.folder, patterns);
        self.step();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn step(&mut self) {
        let since = self.clock.now().as_micros() - self.begun.as_micros();
        self.watcher.step(Duration::from_micros(since.unsigned_abs())).unwrap();
    }

    /// Lets so much time pass, in steps.
    fn pass(&mut self, millis: u64) {
        for _ in 0..millis.div_ceil(50) {
            self.clock.advance(Duration::from_millis(50));
            self.step();
        }
    }

    /// Lets so much time pass in which the watcher does nothing.
    fn skip(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn told(&self) -> Vec<Event> {
        let items = self.engine.read(Read::default()).unwrap();
        let records = items.map(|item| match item.unwrap() {
            Item::Record(record) => record,
            Item::Gap(gap) => panic!("a gap in memory: {gap:?}"),
        });
        let of_rule = records.filter(|record| record.stream.as_str() == "watch:r");
        of_rule.map(|record| Event::of(&record).unwrap()).collect()
    }

    /// What fired since this was asked last: the name of each file and what happened to it.
    fn fired(&self, seen: &mut usize) -> Vec<(String, Change)> {
        let fired = self.told().into_iter().filter_map(|event| match event {
            Event::WatchFired(fired) => {
                let name = Path::new(&fired.path).file_name().unwrap().to_str().unwrap().to_owned();
                Some((name, fired.change))
            }
            _ => None,
        });
        let new: Vec<_> = fired.skip(*seen).collect();
        *seen += new.len();
        new
    }

    fn degraded(&self) -> Option<&str> {
        self.watcher.watched().degraded()
    }
}

fn watcher(engine: &Engine, folder: &Path, patterns: &[&str]) -> Watcher<Tree> {
    let agent = AgentId::parse("main").unwrap();
    let terms = Terms { rules: TimeRules::none(), agent, stores: true };
    let store = folder.join("store");
    Watcher::of_files(engine.clone(), Rule::new("r", patterns), terms, (folder, &store)).unwrap()
}

fn one(name: &str, change: Change) -> Vec<(String, Change)> {
    vec![(name.to_owned(), change)]
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
