//! What a watcher tells the log. Where somebody else has told it more of the rule meanwhile, that is learnt first.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::session::event::WatchedFile;
use crate::session::watching::{self, Firing, REASON_NOTED, Seen, Told, push_of, told};
use crate::watch::Files;

use super::{AGAIN_AFTER, Fire, Report, Watcher};

/// So often an append is tried again that met another one.
const TRIES: usize = 8;

impl<F: Files> Watcher<F> {
    /// Has the run of a firing asked for. Whether it is: else the file is to be looked at again.
    pub(super) fn fire(
        &mut self,
        seen: &Seen,
        firing: &Firing,
        now: Duration,
        report: &mut Report,
    ) -> Result<bool> {
        let fire = |run_id| Fire { path: seen.path.clone(), change: firing.change, run_id };
        if !self.terms.stores {
            self.watched.suppose(&seen.path, &seen.sha256);
            report.fired.push(fire(None));
            return Ok(true);
        }
        let pushed = push_of(&self.rule, &self.watched, seen, firing, &self.terms.agent)
            .and_then(|push| self.engine.push(&push, &self.terms.rules));
        match pushed {
            Ok(pushed) => {
                self.catch_up()?;
                report.fired.push(fire(pushed.run_id));
                if self.watched.loops() {
                    self.stop(watching::REASON_LOOP, report)?;
                }
                Ok(true)
            }
            Err(error) if met_another(&error) => {
                self.catch_up()?;
                self.settling.touch(seen.path.as_str().into(), now);
                Ok(false)
            }
            Err(error) if is_for_good(&error) => {
                self.stop(&format!("refused: {error}"), report)?;
                Ok(false)
            }
            Err(error) => {
                report.said.push(format!("the rule {}: {error}", self.rule.name));
                self.settling.touch(seen.path.as_str().into(), now.saturating_add(AGAIN_AFTER));
                Ok(false)
            }
        }
    }

    /// Records a change that does not fire.
    pub(super) fn note(&mut self, seen: &Seen) -> Result<()> {
        let file = WatchedFile { path: seen.path.clone(), sha256: seen.sha256.clone() };
        self.tell((Told::Rescanned, REASON_NOTED), &[file])
    }

    /// Records the first look.
    pub(super) fn baseline(&mut self, files: Vec<WatchedFile>) -> Result<()> {
        if !self.terms.stores {
            files.iter().for_each(|file| self.watched.suppose(&file.path, &file.sha256));
            self.watched.suppose_baseline();
            return Ok(());
        }
        let now = self.engine.clock().now();
        for append in watching::baseline(&self.rule, &self.watched, files, now)? {
            self.engine.append(append)?;
        }
        self.catch_up()
    }

    /// Tells how the rule looks at its files.
    pub(super) fn tell(&mut self, what: (Told, &str), files: &[WatchedFile]) -> Result<()> {
        if !self.terms.stores {
            files.iter().for_each(|file| self.watched.suppose(&file.path, &file.sha256));
            return Ok(());
        }
        for _ in 0..TRIES {
            let now = self.engine.clock().now();
            match self.engine.append(told(&self.rule, &self.watched, what, files.to_vec(), now)?) {
                Err(error) if met_another(&error) => self.catch_up()?,
                other => return other.and_then(|_| self.catch_up()),
            }
        }
        Err(Error::new(ErrorKind::Busy, format!("{} is told of by others", self.rule.name)))
    }
}

/// Whether somebody else told the log of the rule meanwhile, or of this very change.
fn met_another(error: &Error) -> bool {
    let kind = error.kind();
    matches!(kind, ErrorKind::IdReused | ErrorKind::PartialDuplicate)
        || matches!(kind, ErrorKind::Conflict { stream, .. } if stream.starts_with("watch:"))
}

/// Whether a refusal stands as long as the rule is as it is.
fn is_for_good(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidInput
            | ErrorKind::TooLarge
            | ErrorKind::ReservedChannel
            | ErrorKind::NotFound
    )
}
