//! Hints of the Linux kernel (inotify(7)) at the files of a selection. Every folder that the selection enters has a watch
//! of its own, so that a file that is put in another's place is seen; a folder that comes to be gets one before it is read.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::files::{Hints, NoNotice, Scan};
use super::selection::Selection;
use super::tree::walk;

/// Watches of folders, for as long as it lives.
#[derive(Debug)]
pub(super) struct Notices {
    queue: OwnedFd,
    folders: BTreeMap<i32, PathBuf>,
}

/// Room for the notifications that are read at once, in bytes.
const ROOM: usize = 16 << 10;

/// The most notifications that are taken at once: what comes faster than it is understood waits in the kernel.
const AT_ONCE: usize = 65_536;

/// One notification.
struct Told {
    watch: i32,
    what: ReadFlags,
    name: Option<PathBuf>,
}

impl Notices {
    /// Watches the folders of a selection, and where one of its roots is missing, where it could come to be.
    pub(super) fn of(selection: &Selection) -> Result<Self, NoNotice> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(reason)?;
        let mut notices = Self { queue, folders: BTreeMap::new() };
        for root in selection.roots() {
            notices.watch_above(root)?;
            notices.watch_below(selection, root, &mut Scan::default())?;
        }
        Ok(notices)
    }

    pub(super) fn queue(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.as_fd())
    }

    /// Takes the hints that are there, after waiting for one at most so long.
    pub(super) fn take(
        &mut self,
        selection: &Selection,
        timeout: Duration,
    ) -> Result<Hints, NoNotice> {
        let mut files = [PollFd::new(&self.queue, PollFlags::IN)];
        match poll(&mut files, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Err(NoNotice::Failed),
        }
        let mut hints = Hints::default();
        for told in self.read()? {
            self.understand(selection, told, &mut hints)?;
        }
        Ok(hints)
    }

    fn read(&self) -> Result<Vec<Told>, NoNotice> {
        let mut all = Vec::new();
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut reader = inotify::Reader::new(&self.queue, &mut room);
        while all.len() < AT_ONCE {
            match reader.next() {
                Ok(event) => all.push(Told {
                    watch: event.wd(),
                    what: event.events(),
                    name: event
                        .file_name()
                        .map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()))),
                }),
                Err(Errno::AGAIN) => return Ok(all),
                Err(Errno::INTR) => {}
                Err(_) => return Err(NoNotice::Failed),
            }
        }
        Ok(all)
    }

    fn understand(
        &mut self,
        selection: &Selection,
        told: Told,
        hints: &mut Hints,
    ) -> Result<(), NoNotice> {
        let what = told.what;
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            hints.lost = true;
            return Ok(());
        }
        let Some(folder) = self.folders.get(&told.watch).cloned() else { return Ok(()) };
        if what.intersects(ReadFlags::IGNORED) {
            self.folders.remove(&told.watch);
            return Ok(());
        }
        if what.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
            // Of a folder below another one the other's watch tells; the watches of a root are set anew.
            let below = folder.parent().is_some_and(|above| self.watches(above));
            hints.lost |= !below;
            return Ok(());
        }
        let Some(name) = told.name else { return Ok(()) };
        let path = folder.join(name);
        if !what.contains(ReadFlags::ISDIR) {
            if selection.selects(&path) {
                hints.paths.insert(path);
            }
            return Ok(());
        }
        if !selection.enters(&path) {
            return Ok(());
        }
        if what.intersects(ReadFlags::MOVED_FROM | ReadFlags::DELETE) {
            self.forget_below(&path);
        }
        if what.intersects(ReadFlags::MOVED_TO | ReadFlags::CREATE) {
            let mut scan = Scan::default();
            self.watch_below(selection, &path, &mut scan)?;
            hints.paths.extend(scan.files.into_keys());
        }
        hints.paths.insert(path);
        Ok(())
    }

    fn watches(&self, folder: &Path) -> bool {
        self.folders.values().any(|watched| watched == folder)
    }

    /// Watches the folder in which a root lies or will: the root itself may come and go.
    fn watch_above(&mut self, root: &Path) -> Result<(), NoNotice> {
        for folder in root.ancestors().skip(1) {
            match self.watch(folder) {
                Ok(true) => break,
                Ok(false) => {}
                // A folder above that may not be looked at is no reason to do without the rest.
                Err(Errno::ACCESS) => break,
                Err(e) => return Err(reason(e)),
            }
        }
        Ok(())
    }

    fn watch_below(
        &mut self,
        selection: &Selection,
        root: &Path,
        scan: &mut Scan,
    ) -> Result<(), NoNotice> {
        walk(selection, root, scan, &mut |folder| match self.watch(folder) {
            Ok(_) | Err(Errno::ACCESS) => Ok(()),
            Err(e) => Err(reason(e)),
        })
    }

    /// Watches one folder; whether it is there.
    fn watch(&mut self, folder: &Path) -> Result<bool, Errno> {
        let what = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        match inotify::add_watch(&self.queue, folder, what) {
            Ok(watch) => {
                self.folders.insert(watch, folder.to_path_buf());
                Ok(true)
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// A folder that went elsewhere takes its watches with it.
    fn forget_below(&mut self, path: &Path) {
        let gone = self.folders.iter().filter(|(_, folder)| folder.starts_with(path));
        for watch in gone.map(|(watch, _)| *watch).collect::<Vec<_>>() {
            // One that is gone already is what is wanted.
            let _ = inotify::remove_watch(&self.queue, watch);
            self.folders.remove(&watch);
        }
    }
}

const fn reason(e: Errno) -> NoNotice {
    match e {
        Errno::NOSPC | Errno::MFILE | Errno::NFILE | Errno::NOMEM => NoNotice::Limit,
        _ => NoNotice::Failed,
    }
}
