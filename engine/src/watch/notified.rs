//! Notifications by way of the crate notify, which hands them over on a thread of its own.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::{Error, ErrorKind, Result};

/// Watches files for as long as it lives, from its making on: what changes between two waits is told by the second.
#[derive(Debug)]
pub struct Watch {
    told: Arc<Told>,
    _watcher: RecommendedWatcher,
}

/// Whether something was told that nobody has waited for yet.
#[derive(Debug, Default)]
struct Told {
    changed: Mutex<bool>,
    wake: Condvar,
}

impl Watch {
    /// Watches the files of a folder, those too that are made or put there later.
    ///
    /// # Errors
    /// `Unavailable` when the system gives no notification here, or no more of them.
    pub fn folder(folder: &Path) -> Result<Self> {
        Self::new(folder, |_| true)
    }

    /// Watches the file of this name in a folder, also when it is made or put there later.
    ///
    /// # Errors
    /// What [`Watch::folder`] says.
    pub fn file(folder: &Path, name: &str) -> Result<Self> {
        let name = name.to_owned();
        Self::new(folder, move |path| path.file_name().is_some_and(|file| *file == *name))
    }

    fn new(folder: &Path, concerns: impl Fn(&Path) -> bool + Send + 'static) -> Result<Self> {
        let fail = |e: notify::Error| {
            Error::new(ErrorKind::Unavailable, "file notification is not to be had")
                .path(folder)
                .caused_by(e)
        };
        let told = Arc::new(Told::default());
        let teller = Arc::clone(&told);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // That it has lost track counts as a change, and so does an error.
            let passes = event.is_ok_and(|event| {
                let read_only = matches!(event.kind, EventKind::Access(_)) && !event.need_rescan();
                let elsewhere = !event.paths.is_empty() && !event.paths.iter().any(|p| concerns(p));
                read_only || elsewhere && !event.need_rescan()
            });
            if !passes {
                teller.tell();
            }
        })
        .map_err(fail)?;
        watcher.watch(folder, RecursiveMode::NonRecursive).map_err(fail)?;
        Ok(Self { told, _watcher: watcher })
    }

    /// Waits for a change, or for so long; tells whether there was one since the last wait that told. The system's word
    /// that it has lost track counts as one.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        let changed = self.told.changed.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wake.wait_timeout_while(changed, timeout, |changed| !*changed);
        let (mut changed, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *changed)
    }
}

impl Told {
    fn tell(&self) {
        *self.changed.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a change of the file that is watched ends a wait, whether it is written in place or put there. Method: both
    /// ways, with a wait that only a change can end in time.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the files are the test's own")]
    fn a_change_ends_a_wait() {
        let dir = tempfile::tempdir().unwrap();
        let watch = Watch::file(dir.path(), "a").unwrap();
        let all = Watch::folder(dir.path()).unwrap();
        let long = Duration::from_secs(600);
        std::fs::write(dir.path().join("a"), "1").unwrap();
        assert!(watch.wait(long) && all.wait(long));
        std::fs::write(dir.path().join("b"), "2").unwrap();
        std::fs::rename(dir.path().join("b"), dir.path().join("a")).unwrap();
        assert!(watch.wait(long) && all.wait(long));
    }

    /// Goal: where there is nothing to watch it is said, with the path. Method: a folder that is not there.
    #[test]
    fn a_folder_that_is_not_there() {
        let error = Watch::folder(Path::new("/nonexistent/folder")).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
    }
}
