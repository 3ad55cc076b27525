//! The files that a rule looks at: what a look finds, and the contract that the real ones and simulated ones keep.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Timestamp;

/// Files that can be looked at.
///
/// Notifications are hints: they may be lost, merged, doubled and late, and say nothing of what is in a file. After
/// [`Files::notify`] has returned well, a change of a file that [`Files::scan`] would give is hinted at by a later
/// [`Files::hints`], or that says that it has lost track.
pub trait Files {
    /// Begins to notify, anew if it did so before: everything is watched that is there now, and what comes to be later.
    ///
    /// # Errors
    /// Why it cannot be.
    fn notify(&mut self) -> Result<(), NoNotice>;

    /// Waits for hints, at most so long, and gives those that are there. Without notifications it only waits.
    ///
    /// # Errors
    /// Why notifications do not come any more: they end with that.
    fn hints(&mut self, timeout: Duration) -> Result<Hints, NoNotice>;

    /// All files that there are.
    fn scan(&mut self) -> Scan;

    /// Looks at one file and reads all of it.
    fn look(&self, path: &Path) -> Look;

    /// Whether a file of this path belongs to what is looked at.
    fn selects(&self, path: &Path) -> bool;
}

/// What notifications hint at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Files that may have changed, and folders in which anything may have.
    pub paths: BTreeSet<PathBuf>,
    /// Whether some hints were lost, so that any file may have changed.
    pub lost: bool,
}

/// Why there are no notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoNotice {
    /// The system gives no more watches.
    Limit,
    /// The files lie on another machine, whose changes are not told.
    Network,
    /// The system says no in another way, or has none.
    Failed,
}

impl NoNotice {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Network => "network",
            Self::Failed => "failed",
        }
    }
}

/// The files that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// The files, each with what tells one state of it from another.
    pub files: BTreeMap<PathBuf, Stamp>,
    /// Folders that could not be read: of what lies below them nothing is known.
    pub unread: Vec<PathBuf>,
}

/// What the system says of a file without reading it. Equal stamps mean mostly, and not surely, the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which file, on its file system.
    pub inode: u64,
    /// How long, in bytes.
    pub len: u64,
    /// When its content last changed, in nanoseconds since 1970, as its programs say.
    pub modified: i128,
    /// When anything about it last changed, as the system says.
    pub changed: Timestamp,
}

impl Stamp {
    /// Whether the file changed so shortly before `now` that it may change again, or another come in its place, without
    /// another stamp: the clocks of file systems are that coarse, and numbers of inodes are given out again.
    #[must_use]
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        self.changed.plus(FRESH) > now
    }
}

/// So coarse are the clocks of file systems.
const FRESH: Duration = Duration::from_secs(2);

/// What a look at a file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// There is no such file.
    Gone,
    /// This is in it.
    Content {
        /// SHA-256 in lower-case hexadecimal.
        sha256: String,
        /// Its stamp before and after.
        stamp: Stamp,
    },
    /// It changed while it was read; this was read.
    Moving {
        /// SHA-256 of what was read.
        sha256: String,
        /// Its stamp after.
        stamp: Stamp,
    },
    /// It has more bytes than are read.
    TooLarge(u64),
    /// It cannot be read, for this reason.
    Unread(String),
}
