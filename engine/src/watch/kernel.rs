//! Notifications of the Linux kernel (inotify(7)), waited for by whoever wants them.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::error::{Error, ErrorKind, Result};

/// Room for the notifications that are read at once, in bytes.
const ROOM: usize = 4_096;

/// Watches files for as long as it lives, from its making on: what changes between two waits is told by the second.
#[derive(Debug)]
pub struct Watch {
    queue: OwnedFd,
    /// The one file that is watched; `None` for all of the folder.
    name: Option<CString>,
}

impl Watch {
    /// Watches the files of a folder, those too that are made or put there later.
    ///
    /// # Errors
    /// `Unavailable` when the system gives no notification here, or no more of them.
    pub fn folder(folder: &Path) -> Result<Self> {
        Self::new(folder, None)
    }

    /// Watches the file of this name in a folder, also when it is made or put there later.
    ///
    /// # Errors
    /// What [`Watch::folder`] says.
    pub fn file(folder: &Path, name: &str) -> Result<Self> {
        let name = CString::new(name).map_err(|_| Error::invalid("no file has a name with NUL"))?;
        Self::new(folder, Some(name))
    }

    fn new(folder: &Path, name: Option<CString>) -> Result<Self> {
        let fail = |e: Errno| {
            Error::new(ErrorKind::Unavailable, "file notification is not to be had")
                .path(folder)
                .caused_by(std::io::Error::from(e))
        };
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(fail)?;
        let changes = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        inotify::add_watch(&queue, folder, changes | WatchFlags::ONLYDIR).map_err(fail)?;
        Ok(Self { queue, name })
    }

    /// Waits for a change, or for so long; tells whether there was one since the last wait that told. The system's word
    /// that it has lost track counts as one.
    pub fn wait(&self, timeout: Duration) -> bool {
        let end = Instant::now().checked_add(timeout);
        loop {
            let left = end.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
            let mut files = [PollFd::new(&self.queue, PollFlags::IN)];
            match poll(&mut files, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) => return false,
                Ok(_) if self.take() => return true,
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => {
                    std::thread::park_timeout(left);
                    return false;
                }
            }
        }
    }

    /// Takes what was told so far, as much as one call gives; whether it concerns what is watched.
    fn take(&self) -> bool {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut told = inotify::Reader::new(&self.queue, &mut room);
        let mut concerns = false;
        while let Ok(event) = told.next() {
            let named = event.file_name().is_some_and(|changed| {
                self.name.as_deref().is_none_or(|watched| watched == changed)
            });
            concerns |= named || event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if told.is_buffer_empty() {
                break;
            }
        }
        concerns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a wait costs one waking however much was written before it, and nothing is told of other files. Method: a
    /// file is written a hundred times, then another one; each wait after that has no time. A watch of
    /// the whole folder hears of both.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the files are the test's own")]
    fn many_changes_wake_once() {
        let dir = tempfile::tempdir().unwrap();
        let watch = Watch::file(dir.path(), "a").unwrap();
        let all = Watch::folder(dir.path()).unwrap();
        for text in 0..100 {
            std::fs::write(dir.path().join("a"), text.to_string()).unwrap();
        }
        assert!(watch.wait(Duration::ZERO));
        std::fs::write(dir.path().join("b"), "b").unwrap();
        assert!(!watch.wait(Duration::ZERO));
        assert!(all.wait(Duration::ZERO));
        std::fs::rename(dir.path().join("b"), dir.path().join("a")).unwrap();
        assert!(watch.wait(Duration::ZERO));
    }

    /// Goal: where there is nothing to watch it is said, with the path. Method: a folder that is not there.
    #[test]
    fn a_folder_that_is_not_there() {
        let error = Watch::folder(Path::new("/nonexistent/folder")).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
    }
}
