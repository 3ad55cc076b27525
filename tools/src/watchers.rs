//! The watch rules of a configuration at work, all on the thread that calls. One process at a time does it for a store.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use annals_engine::config::Config;
use annals_engine::engine::Engine;
use annals_engine::session::watching::Rule;
use annals_engine::watch::Tree;
use annals_engine::watcher::{Fire, Terms, Watcher};
use annals_engine::{Error, ErrorKind, Result};

/// The watch rules of a configuration on a store.
#[derive(Debug)]
pub struct Watchers<'a> {
    engine: &'a Engine,
    watchers: Vec<Watcher<Tree>>,
    stores: bool,
}

/// Whether anything is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What fires starts runs.
    AtWork,
    /// It is only told what would fire.
    DryRun,
}

/// What there is to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tidings {
    /// A file of a rule fired, or would have.
    Fired(String, Fire),
    /// What there is to say of a rule and its files.
    Said(String),
    /// The first look is done: the rules that watch, and how many files each knows.
    Watching(Vec<(String, usize)>),
}

/// So soon it is noticed that it shall end.
const NOTICES: Duration = Duration::from_millis(250);

/// So often it is tried whether another process has left off.
const TRIES_EVERY: Duration = Duration::from_secs(1);

impl<'a> Watchers<'a> {
    /// The rules of a configuration with these names, or all of them.
    ///
    /// # Errors
    /// `NotFound` for a name that no rule has, `InvalidInput` for rules that cannot be.
    pub fn of(
        engine: &'a Engine,
        config: &Config,
        store: &Path,
        names: &[String],
        mode: Mode,
    ) -> Result<Self> {
        let rules = chosen(config.watch_rules()?, names)?;
        let stores = mode == Mode::AtWork;
        let agent = config
            .default_agent()
            .ok_or_else(|| Error::invalid("the first agent of the list cannot be one"))?;
        let terms = Terms { rules: config.time_rules(), agent, stores };
        let folder = whole(config.folder().unwrap_or(Path::new(".")))?;
        let store = whole(store)?;
        let of = |rule| Watcher::of_files(engine.clone(), rule, terms.clone(), (&folder, &store));
        let watchers = rules.into_iter().map(of).collect::<Result<_>>()?;
        Ok(Self { engine, watchers, stores })
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.watchers.is_empty()
    }

    /// Watches until `ends` becomes true. While another process does, it waits for its turn.
    ///
    /// # Errors
    /// What the store says, and what `tell` does.
    pub fn watch(
        &mut self,
        ends: &AtomicBool,
        tell: &mut dyn FnMut(Tidings) -> Result<()>,
    ) -> Result<()> {
        let role = match self.stores {
            true => self.role(ends, tell)?,
            false => None,
        };
        let begin = Instant::now();
        let mut looked = false;
        while !ends.load(Ordering::SeqCst) {
            let mut next = begin.elapsed().saturating_add(NOTICES);
            for watcher in &mut self.watchers {
                let report = watcher.step(begin.elapsed())?;
                let name = &watcher.rule().name;
                for fire in report.fired {
                    tell(Tidings::Fired(name.clone(), fire))?;
                }
                for said in report.said {
                    tell(Tidings::Said(said))?;
                }
                next = next.min(report.next);
            }
            if !std::mem::replace(&mut looked, true) {
                let watch = self.watchers.iter().filter(|one| one.watched().stopped().is_none());
                let known = |one: &Watcher<Tree>| {
                    (one.rule().name.clone(), one.watched().present().count())
                };
                tell(Tidings::Watching(watch.map(known).collect()))?;
            }
            let trees: Vec<&Tree> = self.watchers.iter().map(Watcher::files).collect();
            Tree::wait(&trees, next.saturating_sub(begin.elapsed()));
        }
        drop(role);
        Ok(())
    }

    fn role(
        &self,
        ends: &AtomicBool,
        tell: &mut dyn FnMut(Tidings) -> Result<()>,
    ) -> Result<Option<annals_engine::engine::Role>> {
        let mut said = false;
        let mut waited = TRIES_EVERY;
        while !ends.load(Ordering::SeqCst) {
            if waited >= TRIES_EVERY {
                waited = Duration::ZERO;
                if let Some(role) = self.engine.take_watcher_role()? {
                    return Ok(Some(role));
                }
                if !std::mem::replace(&mut said, true) {
                    tell(Tidings::Said("another process watches; this one waits".to_owned()))?;
                }
            }
            std::thread::park_timeout(NOTICES);
            waited = waited.saturating_add(NOTICES);
        }
        Ok(None)
    }
}

fn chosen(rules: Vec<Rule>, names: &[String]) -> Result<Vec<Rule>> {
    for name in names {
        if !rules.iter().any(|rule| rule.name == *name) {
            let known: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
            let error =
                Error::new(ErrorKind::NotFound, format!("no watch rule is called {name:?}"));
            return Err(match known.is_empty() {
                true => error.hint("the configuration has no watch rules"),
                false => error.hint(format!("there are {}", known.join(", "))),
            });
        }
    }
    Ok(rules.into_iter().filter(|rule| names.is_empty() || names.contains(&rule.name)).collect())
}

/// A folder as the system names it, without links; one that is not there as it is spelled.
fn whole(folder: &Path) -> Result<PathBuf> {
    let folder =
        std::path::absolute(folder).map_err(|e| Error::io("cannot find", e).path(folder))?;
    Ok(folder.canonicalize().unwrap_or(folder))
}
