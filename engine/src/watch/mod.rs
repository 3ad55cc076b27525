//! Changes of a folder, told by the operating system. A notification is a hint: it may be lost, merged or doubled, and
//! carries no content; who is told looks for himself.

use std::path::Path;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::{Error, ErrorKind, Result};

/// Watches for as long as it lives.
#[derive(Debug)]
pub struct Watch {
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Calls `changed` after something in the folder itself, not in folders below it, was written, made, renamed or
    /// removed, and when the system says that it has lost track. It is called on a thread of its own.
    ///
    /// # Errors
    /// `Unavailable` when the system gives no notification here, or no more of them.
    pub fn folder(path: &Path, changed: impl Fn() + Send + 'static) -> Result<Self> {
        let fail = |e: notify::Error| {
            Error::new(ErrorKind::Unavailable, "file notification is not to be had")
                .path(path)
                .caused_by(e)
        };
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let tells_nothing =
                event.is_ok_and(|e| matches!(e.kind, EventKind::Access(_)) && !e.need_rescan());
            if !tells_nothing {
                changed();
            }
        })
        .map_err(fail)?;
        watcher.watch(path, RecursiveMode::NonRecursive).map_err(fail)?;
        Ok(Self { _watcher: watcher })
    }
}
