//! The watcher of one rule: what its files say, decided on, and told to the log.
//!
//! It is a machine that is stepped: nothing here waits, so that whoever steps it has one thread for any number of rules, and
//! a test its own clock and files. What it keeps in memory spares work alone: a new watcher on the same log comes to the
//! same firings.

mod looking;
mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::engine::{Engine, is_remote};
use crate::error::{Error, ErrorKind, Result};
use crate::id::Version;
use crate::projection::Projection;
use crate::session::event::{Change, Event, run_stream, watch_stream};
use crate::session::index::TimeRules;
use crate::session::key::AgentId;
use crate::session::watching::{
    REASON_LOOP, REASON_RESET, Rule, Span, Spans, Told, Verdict, Wait, Watched, decide, told,
};
use crate::store::Item;
use crate::watch::{Files, Selection, Settling, Stamp, Tree};

/// Watches the files of one rule.
#[derive(Debug)]
pub struct Watcher<F> {
    engine: Engine,
    rule: Rule,
    terms: Terms,
    files: F,
    watched: Watched,
    spans: Spans,
    settling: Settling<PathBuf>,
    /// When each file that has not settled was last touched.
    touched: BTreeMap<PathBuf, Timestamp>,
    /// Files that have settled and wait for something else, in the order in which they began to.
    waits: Vec<(PathBuf, Wait)>,
    stamps: BTreeMap<PathBuf, Stamp>,
    /// Files of which a look from time to time told, and no notification did.
    untold: BTreeSet<PathBuf>,
    /// Files of which it was told that they are not read.
    passed_over: BTreeSet<PathBuf>,
    way: Way,
    /// Whether a file fired of which a notification told, since the last one of which none did.
    heard: bool,
    begun: bool,
    /// Whether it was said that the rule is stopped, since it is.
    said_stopped: bool,
    next_scan: Duration,
    next_try: Duration,
    next_overflow: Duration,
}

/// What a watcher goes by beside its rule.
#[derive(Clone, Debug)]
pub struct Terms {
    /// When parts of sessions end by themselves.
    pub rules: TimeRules,
    /// The agent of sessions that name none.
    pub agent: AgentId,
    /// Whether anything is stored, or only told what would be.
    pub stores: bool,
}

/// How it learns of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By notifications, with a look now and then.
    Notified,
    /// By looking, and by notifications that do not tell of everything.
    Both,
    /// By looking.
    Polling,
}

/// What a step came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What fired, or would have.
    pub fired: Vec<Fire>,
    /// What there is to say of files and of the rule.
    pub said: Vec<String>,
    /// When the next step is due, without a hint.
    pub next: Duration,
}

/// A file that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fire {
    /// The file.
    pub path: String,
    /// What happened to it.
    pub change: Change,
    /// The run that was asked for; `None` when nothing is stored.
    pub run_id: Option<String>,
}

/// So often a rule with notifications looks at everything all the same.
const SAFETY_EVERY: Duration = Duration::from_secs(60);

/// So often a rule looks that would rather be notified.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// So often it is tried again whether notifications are to be had.
const TRY_EVERY: Duration = Duration::from_secs(60);

/// So often it is seen whether what files wait for is over, and whether a stopped rule was started again.
const SEE_EVERY: Duration = Duration::from_millis(500);

/// What could not be stored is tried again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Watcher<Tree> {
    /// A watcher of real files that has not begun. Globs go from `folder` on; what lies in `store` is not seen.
    ///
    /// # Errors
    /// `InvalidInput` for a pattern that is no glob.
    pub fn of_files(
        engine: Engine,
        rule: Rule,
        terms: Terms,
        (folder, store): (&Path, &Path),
    ) -> Result<Self> {
        let selection = Selection::new(folder, &rule.paths, &rule.ignore, &rule.outputs)?;
        let selection = selection.without_store(store.to_path_buf());
        let remote = selection.roots().into_iter().any(is_remote);
        Ok(Self::new(engine, rule, terms, Tree::new(selection, remote)))
    }
}

impl<F: Files> Watcher<F> {
    /// A watcher that has not begun.
    #[must_use]
    pub fn new(engine: Engine, rule: Rule, terms: Terms, files: F) -> Self {
        Self {
            settling: Settling::new(rule.debounce, rule.max_wait),
            engine,
            rule,
            terms,
            files,
            watched: Watched::default(),
            spans: Spans::new(),
            touched: BTreeMap::new(),
            waits: Vec::new(),
            stamps: BTreeMap::new(),
            untold: BTreeSet::new(),
            passed_over: BTreeSet::new(),
            way: Way::Polling,
            heard: false,
            begun: false,
            said_stopped: false,
            next_scan: Duration::ZERO,
            next_try: Duration::ZERO,
            next_overflow: Duration::ZERO,
        }
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The files.
    #[must_use]
    pub const fn files(&self) -> &F {
        &self.files
    }

    /// What the log knew of the rule at the last step.
    #[must_use]
    pub const fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Does what is due at `now`, a duration since any one moment: takes hints, looks, decides, stores.
    ///
    /// # Errors
    /// What the store says where it cannot be gone on without: the next step goes on from there.
    pub fn step(&mut self, now: Duration) -> Result<Report> {
        let mut report = Report::default();
        self.catch_up()?;
        if self.watched.loops() {
            self.stop(REASON_LOOP, &mut report)?;
        }
        if let Some(reason) = self.watched.stopped() {
            let said = self.sentence(&format!("is stopped: {reason}"));
            if !std::mem::replace(&mut self.said_stopped, true) {
                report.said.push(said);
            }
            self.rest();
            report.next = now.saturating_add(SEE_EVERY);
            return Ok(report);
        }
        self.said_stopped = false;
        if !self.begun {
            self.begin(now, &mut report)?;
            self.begun = true;
        }
        self.hear(now, &mut report)?;
        self.look_around(now, &mut report)?;
        let due = self.due(now)?;
        for path in due {
            self.settle(&path, now, &mut report)?;
            if self.watched.stopped().is_some() {
                break;
            }
        }
        report.next = self.next(now);
        Ok(report)
    }

    /// A stopped rule forgets what it has seen: it begins anew when it is started again. Hints are taken and passed over:
    /// left where they are they would wake whoever waits for them, over and over.
    fn rest(&mut self) {
        self.begun = false;
        drop(self.files.hints(Duration::ZERO));
        self.settling = Settling::new(self.rule.debounce, self.rule.max_wait);
        self.waits.clear();
        self.stamps.clear();
        self.touched.clear();
        self.untold.clear();
    }

    fn next(&self, now: Duration) -> Duration {
        let try_at =
            (self.way != Way::Notified && self.rule.poll.is_none()).then_some(self.next_try);
        let waits = (!self.waits.is_empty()).then_some(now.saturating_add(SEE_EVERY));
        let all = [self.settling.next(), Some(self.next_scan), try_at, waits];
        all.into_iter().flatten().min().unwrap_or(now)
    }

    /// Learns what the log tells of the rule since the last step.
    fn catch_up(&mut self) -> Result<()> {
        if !self.terms.stores && self.begun {
            return Ok(());
        }
        let stream = watch_stream(&self.rule.name)?;
        let head = self.engine.head(&stream)?;
        if head < self.watched.version() {
            self.watched = Watched::default();
        }
        if head == Version::ZERO || head == self.watched.version() {
            return Ok(());
        }
        for item in self.engine.read_stream(&stream, self.watched.version())? {
            match item? {
                Item::Record(record) => self.watched.apply(&record.fields()),
                Item::Gap(damage) => self.watched.gap(&damage),
            }
        }
        Ok(())
    }

    /// Learns from when to when the last runs of the rule were at work. A run that waits for a worker costs nothing.
    fn learn_spans(&mut self) -> Result<()> {
        let work = self.engine.work()?;
        let fired: BTreeSet<&String> = self.watched.fired().map(|fired| &fired.run_id).collect();
        self.spans.retain(|run, _| fired.contains(run));
        for run in fired {
            let known = self.spans.get(run);
            let open = work.state().run(run);
            let is_new = match (known, open) {
                (Some(span), None) => span.to.is_none(),
                (None, Some(job)) => job.is_claimed(),
                (None, None) => true,
                (Some(_), Some(_)) => false,
            };
            if is_new && let Some(span) = self.span(run)? {
                self.spans.insert(run.clone(), span);
            }
        }
        Ok(())
    }

    fn span(&self, run_id: &str) -> Result<Option<Span>> {
        let mut span: Option<Span> = None;
        let types = ["run.claimed", "run.finished"];
        for item in self.engine.read_stream_of(&run_stream(run_id)?, &types)? {
            let Item::Record(record) = item? else { continue };
            match Event::told_by(&record.fields()) {
                Some(Event::RunClaimed(_)) => {
                    span.get_or_insert(Span { from: record.time, to: None });
                }
                Some(Event::RunFinished(_)) => {
                    // A run that ended before anybody had it was never at work.
                    let span = span.get_or_insert(Span { from: record.time, to: None });
                    span.to.get_or_insert(record.time);
                }
                _ => {}
            }
        }
        Ok(span)
    }

    /// The files to look at: those that have settled, and those for which what they waited for is over.
    fn due(&mut self, now: Duration) -> Result<Vec<PathBuf>> {
        let mut due = self.settling.due(now);
        if due.is_empty() && self.waits.is_empty() {
            return Ok(due);
        }
        self.learn_spans()?;
        let wall = self.engine.clock().now();
        let is_over = |wait: &Wait| match wait {
            Wait::Run(run) => self.spans.get(run).is_none_or(|span| span.to.is_some()),
            Wait::Until(at) => *at <= wall,
        };
        let over = self.waits.iter().filter(|(path, wait)| is_over(wait) && !due.contains(path));
        let over: Vec<PathBuf> = over.map(|(path, _)| path.clone()).collect();
        due.splice(0..0, over);
        Ok(due)
    }

    /// Decides on a file as it is now.
    fn settle(&mut self, path: &Path, now: Duration, report: &mut Report) -> Result<()> {
        let Some(seen) = self.look(path, now, report)? else { return Ok(()) };
        let wall = self.engine.clock().now();
        match decide(&self.rule, &self.watched, &seen, &self.spans, wall) {
            Verdict::Nothing => self.is_done(path),
            Verdict::Note => {
                self.note(&seen)?;
                self.is_done(path);
            }
            Verdict::Wait(wait) => match self.waits.iter_mut().find(|(waits, _)| waits == path) {
                Some((_, known)) => *known = wait,
                None => self.waits.push((path.to_path_buf(), wait)),
            },
            Verdict::Fire(firing) => {
                if self.fire(&seen, &firing, now, report)? {
                    let was_told = !self.untold.contains(path);
                    self.is_done(path);
                    self.heard = was_told;
                    if !was_told && self.way != Way::Polling {
                        self.degrade(SILENT, now, report)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_done(&mut self, path: &Path) {
        self.waits.retain(|(waits, _)| waits != path);
        self.touched.remove(path);
        self.untold.remove(path);
    }

    fn stop(&mut self, reason: &str, report: &mut Report) -> Result<()> {
        report.said.push(self.sentence(&format!("stops: {reason}")));
        self.said_stopped = true;
        self.tell((Told::Stopped, reason), &[])
    }

    fn sentence(&self, what: &str) -> String {
        let name = &self.rule.name;
        format!("the rule {name} {what}; `annals watch --reset {name}` starts it again")
    }
}

/// Starts a rule again that was stopped. Whether it was.
///
/// # Errors
/// `NotFound` for a rule that the log does not know, and what the store says.
pub fn reset(engine: &Engine, name: &str) -> Result<bool> {
    let stream = watch_stream(name)?;
    let mut watched = Watched::default();
    for item in engine.read_stream(&stream, Version::ZERO)? {
        if let Item::Record(record) = item? {
            watched.apply(&record.fields());
        }
    }
    if watched.version() == Version::ZERO {
        return Err(Error::new(ErrorKind::NotFound, format!("no rule {name:?} was ever at work"))
            .hint("`annals watch` runs the rules of the configuration"));
    }
    if watched.stopped().is_none() && !watched.loops() {
        return Ok(false);
    }
    let (rule, now) = (Rule::new(name, &[]), engine.clock().now());
    engine.append(told(&rule, &watched, (Told::Rescanned, REASON_RESET), Vec::new(), now)?)?;
    Ok(true)
}

/// The word of a rule whose files change without a notification.
const SILENT: &str = "silent";

#[cfg(test)]
mod tests;
