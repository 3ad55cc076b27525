//! Hints at the files of a selection by way of the crate notify, which hands them over on a thread of its own.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::files::{Hints, NoNotice};
use super::selection::Selection;

/// Watches of the roots of a selection, for as long as it lives.
#[derive(Debug)]
pub(super) struct Notices {
    told: Arc<Told>,
    _watcher: RecommendedWatcher,
}

#[derive(Debug, Default)]
struct Told {
    hints: Mutex<Hints>,
    wake: Condvar,
}

impl Notices {
    /// Watches all below the roots of a selection, or below the nearest folder above that is there.
    pub(super) fn of(selection: &Selection) -> Result<Self, NoNotice> {
        let told = Arc::new(Told::default());
        let teller = Arc::clone(&told);
        let heard = move |event: notify::Result<Event>| {
            let mut hints = teller.hints.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) => {
                    hints.lost |= event.need_rescan();
                    hints.paths.extend(event.paths);
                }
                Err(_) => hints.lost = true,
            }
            teller.wake.notify_all();
        };
        let mut watcher = notify::recommended_watcher(heard).map_err(|e| reason(&e))?;
        for root in selection.roots() {
            let there = root.ancestors().find(|folder| folder.is_dir()).unwrap_or(root);
            let mode =
                if there == root { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            watcher.watch(there, mode).map_err(|e| reason(&e))?;
        }
        Ok(Self { told, _watcher: watcher })
    }

    pub(super) const fn queue(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Takes the hints that are there, after waiting for one at most so long.
    pub(super) fn take(
        &mut self,
        selection: &Selection,
        timeout: Duration,
    ) -> Result<Hints, NoNotice> {
        let hints = self.told.hints.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = |hints: &mut Hints| hints.paths.is_empty() && !hints.lost;
        let waited = self.told.wake.wait_timeout_while(hints, timeout, nothing);
        let (mut hints, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut taken = std::mem::take(&mut *hints);
        // A root that comes to be is watched anew from there on.
        taken.lost |= selection.roots().iter().any(|root| taken.paths.contains(*root));
        Ok(taken)
    }
}

fn reason(error: &notify::Error) -> NoNotice {
    match error.kind {
        notify::ErrorKind::MaxFilesWatch => NoNotice::Limit,
        _ => NoNotice::Failed,
    }
}
