//! Real files: found by walking, read to hash them. Symbolic links are neither followed nor looked at.

use std::convert::Infallible;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sha2::{Digest, Sha256};

use super::files::{Files, Hints, Look, NoNotice, Scan, Stamp};
use super::notices::Notices;
use super::selection::Selection;
use crate::clock::Timestamp;

/// The files of a selection.
#[derive(Debug)]
pub struct Tree {
    selection: Selection,
    /// Whether the files lie on a network file system.
    network: bool,
    notices: Option<Notices>,
}

impl Tree {
    /// A longer file is not read: 256 MiB.
    pub const BYTES_MAX: u64 = 256 << 20;

    /// The files of a selection; `network` says that they lie on another machine.
    #[must_use]
    pub const fn new(selection: Selection, network: bool) -> Self {
        Self { selection, network, notices: None }
    }

    /// Waits until one of several may have a hint, or for so long. Where that cannot be waited for, not at all for long.
    pub fn wait(trees: &[&Self], timeout: Duration) {
        let queues: Vec<_> = trees.iter().filter_map(|tree| tree.queue()).collect();
        let told = trees.iter().filter(|tree| tree.notices.is_some()).count();
        let timeout = if queues.len() == told { timeout } else { timeout.min(TICK) };
        let mut files: Vec<_> =
            queues.iter().map(|queue| PollFd::new(queue, PollFlags::IN)).collect();
        // A signal that ends it early is as good as a hint.
        let _ = poll(&mut files, Timespec::try_from(timeout).ok().as_ref());
    }

    /// What becomes readable when there is a hint; `None` without notifications, and where hints do not come so.
    #[must_use]
    fn queue(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.notices.as_ref().and_then(Notices::queue)
    }
}

impl Files for Tree {
    fn notify(&mut self) -> Result<(), NoNotice> {
        self.notices = None;
        if self.network {
            return Err(NoNotice::Network);
        }
        self.notices = Some(Notices::of(&self.selection)?);
        Ok(())
    }

    fn hints(&mut self, timeout: Duration) -> Result<Hints, NoNotice> {
        let Some(notices) = &mut self.notices else {
            if !timeout.is_zero() {
                std::thread::park_timeout(timeout);
            }
            return Ok(Hints::default());
        };
        let hints = notices.take(&self.selection, timeout);
        if hints.is_err() {
            self.notices = None;
        }
        hints
    }

    fn scan(&mut self) -> Scan {
        let mut scan = Scan::default();
        for root in self.selection.roots() {
            let Ok(()) = walk(&self.selection, root, &mut scan, &mut |_| Ok::<_, Infallible>(()));
        }
        scan
    }

    fn look(&self, path: &Path) -> Look {
        look(path).unwrap_or_else(|e| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Look::Gone,
            _ => Look::Unread(e.to_string()),
        })
    }

    fn selects(&self, path: &Path) -> bool {
        self.selection.selects(path)
    }
}

/// So often hints are looked for where nothing wakes.
const TICK: Duration = Duration::from_millis(100);

/// Finds the files of a selection below a folder. Each folder is told before its entries are read.
///
/// # Errors
/// What telling a folder says, which ends it.
pub(super) fn walk<E>(
    selection: &Selection,
    root: &Path,
    scan: &mut Scan,
    tell: &mut dyn FnMut(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if !selection.enters(&folder) {
            continue;
        }
        tell(&folder)?;
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) => {
                let gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
                if !gone.contains(&e.kind()) {
                    scan.unread.push(folder);
                }
                continue;
            }
        };
        for entry in entries {
            let Ok(entry) = entry else {
                scan.unread.push(folder.clone());
                break;
            };
            let (path, sort) = (entry.path(), entry.file_type());
            if sort.as_ref().is_ok_and(fs::FileType::is_dir) {
                folders.push(path);
            } else if sort.is_ok_and(|sort| sort.is_file()) && selection.selects(&path) {
                take(path, scan);
            }
        }
    }
    Ok(())
}

/// Takes a file up into a scan, unless it has vanished.
fn take(path: PathBuf, scan: &mut Scan) {
    if let Ok(found) = fs::symlink_metadata(&path)
        && found.is_file()
    {
        scan.files.insert(path, stamp(&found));
    }
}

fn stamp(of: &fs::Metadata) -> Stamp {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let changed = nanos(of.ctime(), of.ctime_nsec()) / 1_000;
    Stamp {
        inode: of.ino(),
        len: of.len(),
        modified: nanos(of.mtime(), of.mtime_nsec()),
        changed: Timestamp::from_micros(i64::try_from(changed).unwrap_or(i64::MAX)),
    }
}

fn look(path: &Path) -> io::Result<Look> {
    let before = fs::symlink_metadata(path)?;
    if !before.is_file() {
        return Ok(Look::Gone);
    }
    if before.len() > Tree::BYTES_MAX {
        return Ok(Look::TooLarge(before.len()));
    }
    let file = fs::File::open(path)?;
    let mut read = 0;
    let mut hash = Sha256::new();
    let mut room = vec![0; 64 << 10];
    // A file that grows is read no further than the most.
    let mut bytes = file.take(Tree::BYTES_MAX + 1);
    loop {
        let count = match bytes.read(&mut room) {
            Ok(0) => break,
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        read += u64::try_from(count).unwrap_or(0);
        hash.update(room.get(..count).unwrap_or_default());
    }
    if read > Tree::BYTES_MAX {
        return Ok(Look::TooLarge(read));
    }
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let (before, stamp) = (stamp(&before), stamp(&fs::symlink_metadata(path)?));
    Ok(match before == stamp && read == stamp.len {
        true => Look::Content { sha256, stamp },
        false => Look::Moving { sha256, stamp },
    })
}
