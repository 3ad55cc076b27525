//! How a watcher learns what is in its files: hints, looks at everything, and reading one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::session::event::WatchedFile;
use crate::session::watching::{REASON_NOTIFIED, REASON_POLL, Seen, Told};
use crate::watch::{Files, Look, Stamp};

use super::{POLL_EVERY, Report, SAFETY_EVERY, SILENT, TRY_EVERY, Watcher, Way};

/// A flood of hints is told of so often.
const OVERFLOW_EVERY: Duration = Duration::from_secs(10);

/// Which files a look at everything is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// All.
    All,
    /// Those whose stamps are others.
    Changed,
}

impl<F: Files> Watcher<F> {
    /// Begins: what is there is recorded if nothing is, and otherwise looked at, whatever changed while nobody did.
    pub(super) fn begin(&mut self, now: Duration, report: &mut Report) -> Result<()> {
        match self.rule.poll {
            Some(_) => {
                self.way = Way::Polling;
                if self.watched.degraded().is_some() {
                    self.tell((Told::Rescanned, REASON_POLL), &[])?;
                }
            }
            None => self.try_notices(now, report)?,
        }
        if self.watched.has_baseline() {
            self.scan(now, About::All);
        } else {
            self.record_baseline(now, report)?;
        }
        self.next_scan = now.saturating_add(self.scan_every());
        Ok(())
    }

    fn scan_every(&self) -> Duration {
        match self.way {
            Way::Notified => SAFETY_EVERY,
            Way::Both | Way::Polling => self.rule.poll.unwrap_or(POLL_EVERY),
        }
    }

    fn try_notices(&mut self, now: Duration, report: &mut Report) -> Result<()> {
        self.next_try = now.saturating_add(TRY_EVERY);
        match self.files.notify() {
            // That notifications are to be had says nothing of whether they come.
            Ok(()) if self.watched.degraded() == Some(SILENT) => {
                (self.way, self.heard) = (Way::Both, false);
                Ok(())
            }
            Ok(()) => self.is_notified(report),
            Err(reason) => self.degrade(reason.as_str(), now, report),
        }
    }

    fn is_notified(&mut self, report: &mut Report) -> Result<()> {
        self.way = Way::Notified;
        if self.watched.degraded().is_none() {
            return Ok(());
        }
        report.said.push(format!("the rule {} is notified again", self.rule.name));
        self.tell((Told::Rescanned, REASON_NOTIFIED), &[])
    }

    /// Goes over to looking from time to time, and says so once.
    pub(super) fn degrade(
        &mut self,
        reason: &str,
        now: Duration,
        report: &mut Report,
    ) -> Result<()> {
        self.way = if reason == SILENT { Way::Both } else { Way::Polling };
        self.next_try = now.saturating_add(TRY_EVERY);
        self.next_scan = self.next_scan.min(now.saturating_add(self.scan_every()));
        if self.watched.degraded() == Some(reason) {
            return Ok(());
        }
        let name = &self.rule.name;
        report.said.push(format!("the rule {name} looks from time to time: {reason}"));
        self.tell((Told::Degraded, reason), &[])
    }

    /// The first look: with `initial` nothing is recorded as there, so that all of it fires.
    fn record_baseline(&mut self, now: Duration, report: &mut Report) -> Result<()> {
        let mut files = Vec::new();
        let scan = self.files.scan();
        if self.rule.initial {
            self.baseline(files)?;
            scan.files.into_keys().for_each(|path| self.touch(path, now));
            return Ok(());
        }
        for (path, stamp) in scan.files {
            let sha256 = match self.files.look(&path) {
                Look::Content { sha256, .. } => sha256,
                Look::Moving { sha256, .. } => {
                    self.touch(path.clone(), now);
                    sha256
                }
                other => {
                    self.pass_over(&path, &other, report)?;
                    continue;
                }
            };
            let Some(text) = path.to_str() else { continue };
            files.push(WatchedFile { path: text.to_owned(), sha256 });
            self.stamps.insert(path, stamp);
        }
        self.baseline(files)
    }

    /// Takes what was hinted at.
    pub(super) fn hear(&mut self, now: Duration, report: &mut Report) -> Result<()> {
        if self.way == Way::Polling {
            return Ok(());
        }
        let hints = match self.files.hints(Duration::ZERO) {
            Ok(hints) => hints,
            Err(reason) => {
                self.degrade(reason.as_str(), now, report)?;
                self.scan(now, About::All);
                return Ok(());
            }
        };
        for path in hints.paths {
            self.hinted(path, now);
        }
        if hints.lost {
            if now >= self.next_overflow {
                self.next_overflow = now.saturating_add(OVERFLOW_EVERY);
                self.tell((Told::Rescanned, OVERFLOW), &[])?;
            }
            // A folder that came to be meanwhile has no watch yet.
            self.try_notices(now, report)?;
            self.scan(now, About::All);
        }
        Ok(())
    }

    /// A path that was hinted at: a file, or a folder in which any file may have changed.
    fn hinted(&mut self, path: PathBuf, now: Duration) {
        let below = path.to_str().into_iter().flat_map(|folder| self.watched.present_below(folder));
        let below: Vec<PathBuf> = below.map(PathBuf::from).collect();
        for file in below {
            self.touch(file, now);
        }
        if self.files.selects(&path) {
            self.touch(path, now);
        }
    }

    /// Looks at everything when it is time, and tries to be notified.
    pub(super) fn look_around(&mut self, now: Duration, report: &mut Report) -> Result<()> {
        if self.way != Way::Notified && self.rule.poll.is_none() && now >= self.next_try {
            self.become_notified(now, report)?;
        }
        if now < self.next_scan {
            return Ok(());
        }
        let changed = self.scan(now, About::Changed);
        if self.way != Way::Polling {
            // What is hinted at by now was not missed.
            self.untold.extend(changed);
            self.hear(now, report)?;
        }
        self.next_scan = now.saturating_add(self.scan_every());
        Ok(())
    }

    /// Tries whether notifications are to be had again. Where they came and told too little, they are trusted again after a
    /// time in which they told of all that fired.
    fn become_notified(&mut self, now: Duration, report: &mut Report) -> Result<()> {
        if self.way == Way::Both {
            self.next_try = now.saturating_add(TRY_EVERY);
            return if self.heard { self.is_notified(report) } else { Ok(()) };
        }
        self.try_notices(now, report)?;
        if self.way == Way::Notified {
            self.scan(now, About::All);
            self.next_scan = now.saturating_add(self.scan_every());
        }
        Ok(())
    }

    /// Touches what a look at everything is about, and what is not there any more. Those that it touched and that were
    /// not touched before.
    fn scan(&mut self, now: Duration, about: About) -> Vec<PathBuf> {
        let scan = self.files.scan();
        let wall = self.engine.clock().now();
        let unread = |path: &Path| scan.unread.iter().any(|folder| path.starts_with(folder));
        let gone: Vec<PathBuf> = self
            .watched
            .present()
            .map(|(path, _)| PathBuf::from(path))
            .filter(|path| !scan.files.contains_key(path) && !unread(path))
            .filter(|path| self.files.selects(path))
            .collect();
        let is_meant = |path: &PathBuf, stamp: &Stamp| {
            about == About::All || self.stamps.get(path) != Some(stamp) || stamp.is_fresh(wall)
        };
        let changed = scan.files.iter().filter(|(path, stamp)| is_meant(path, stamp));
        let changed: Vec<PathBuf> = changed.map(|(path, _)| path.clone()).collect();
        let mut touched: Vec<PathBuf> = Vec::new();
        let held: BTreeSet<PathBuf> = self.waits.iter().map(|(path, _)| path.clone()).collect();
        for path in changed.into_iter().chain(gone) {
            // What settles now or waits for a run is looked at anyway; a look must not put it off.
            if !self.settling.holds(&path) && !held.contains(&path) {
                self.touch(path.clone(), now);
                touched.push(path);
            }
        }
        self.stamps.retain(|path, _| scan.files.contains_key(path));
        touched
    }

    fn touch(&mut self, path: PathBuf, now: Duration) {
        self.untold.remove(&path);
        self.touched.insert(path.clone(), self.engine.clock().now());
        self.settling.touch(path, now);
    }

    /// Reads a file that has settled. `None` when it has not, or is not read.
    pub(super) fn look(
        &mut self,
        path: &Path,
        now: Duration,
        report: &mut Report,
    ) -> Result<Option<Seen>> {
        let key = path.to_path_buf();
        let late = self.settling.is_late(&key, now);
        if !self.files.selects(path) {
            self.settling.done(&key);
            self.is_done(path);
            return Ok(None);
        }
        let (sha256, at) = match self.files.look(path) {
            Look::Gone => {
                self.stamps.remove(path);
                (String::new(), self.touched.get(path).copied())
            }
            Look::Content { sha256, stamp } => (sha256, Some(self.stamped(path, stamp))),
            Look::Moving { .. } if !late => {
                self.settling.touch(key, now);
                return Ok(None);
            }
            Look::Moving { sha256, stamp } => {
                self.settling.done(&key);
                self.touch(key.clone(), now);
                return Ok(self.seen(path, sha256, stamp.changed));
            }
            other => {
                self.settling.done(&key);
                self.is_done(path);
                self.pass_over(path, &other, report)?;
                return Ok(None);
            }
        };
        self.settling.done(&key);
        let at = at.unwrap_or_else(|| self.engine.clock().now());
        Ok(self.seen(path, sha256, at))
    }

    fn stamped(&mut self, path: &Path, stamp: Stamp) -> Timestamp {
        self.stamps.insert(path.to_path_buf(), stamp);
        stamp.changed
    }

    /// A file whose name is no text is passed over: no event could name it.
    fn seen(&self, path: &Path, sha256: String, at: Timestamp) -> Option<Seen> {
        Some(Seen { path: path.to_str()?.to_owned(), sha256, at })
    }

    /// Says once of a file that it is not read, and why.
    fn pass_over(&mut self, path: &Path, look: &Look, report: &mut Report) -> Result<()> {
        let why = match look {
            Look::TooLarge(bytes) => format!("{bytes} bytes are too many to read"),
            Look::Unread(why) => why.clone(),
            Look::Gone | Look::Content { .. } | Look::Moving { .. } => return Ok(()),
        };
        if !self.passed_over.insert(path.to_path_buf()) {
            return Ok(());
        }
        let said = format!("passed over {}: {why}", path.display());
        self.tell((Told::Rescanned, &said), &[])?;
        report.said.push(format!("the rule {}: {said}", self.rule.name));
        Ok(())
    }
}

/// The word of a look at everything because hints were lost.
const OVERFLOW: &str = "overflow";
