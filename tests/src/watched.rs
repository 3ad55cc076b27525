//! The real disk with somebody who is told of each call before it is made, and of a read when it is known how much it
//! gave: to count them, or to stop in the middle.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals_engine::storage::{Access, Disk, File, FileId, Mapping, Sharing, Stat, Storage};

use crate::disk::Op;

/// Who is told of a call, and on which name. A write takes at most so many bytes as the answer says.
pub type Watch = Arc<dyn Fn(&Op, &str) -> usize + Send + Sync>;

/// A folder of the file system that is watched.
#[derive(Clone)]
pub struct Watched {
    disk: Disk,
    watch: Watch,
}

impl Watched {
    /// The folder at `root`, watched.
    #[must_use]
    pub fn new(root: &Path, watch: Watch) -> Self {
        Self { disk: Disk::new(root), watch }
    }

    fn tell(&self, op: &Op, name: &str) {
        (self.watch)(op, name);
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.disk).finish()
    }
}

impl Storage for Watched {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>> {
        self.tell(&Op::Open(access), name);
        let file = self.disk.open(name, access)?;
        Ok(Arc::new(WatchedFile { file, name: name.into(), watch: Arc::clone(&self.watch) }))
    }

    fn stat(&self, name: &str) -> io::Result<Stat> {
        self.tell(&Op::Stat, name);
        self.disk.stat(name)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.tell(&Op::List, dir);
        self.disk.list(dir)
    }

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.tell(&Op::CreateDir, dir);
        self.disk.create_dir(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.tell(&Op::SyncDir, dir);
        self.disk.sync_dir(dir)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.tell(&Op::Rename { to: to.into() }, from);
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.tell(&Op::Remove, name);
        self.disk.remove(name)
    }

    fn make_read_only(&self, name: &str) -> io::Result<()> {
        self.tell(&Op::MakeReadOnly, name);
        self.disk.make_read_only(name)
    }

    fn sharing(&self) -> Sharing {
        self.disk.sharing()
    }

    fn display(&self, name: &str) -> PathBuf {
        self.disk.display(name)
    }

    fn real_path(&self, dir: &str) -> Option<PathBuf> {
        self.disk.real_path(dir)
    }
}

struct WatchedFile {
    file: Arc<dyn File>,
    name: Box<str>,
    watch: Watch,
}

impl WatchedFile {
    fn tell(&self, op: &Op) -> usize {
        (self.watch)(op, &self.name)
    }
}

impl fmt::Debug for WatchedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedFile").field(&self.name).finish()
    }
}

impl File for WatchedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = self.file.read_at(buf, offset)?;
        self.tell(&Op::ReadAt { offset, len });
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let most = self.tell(&Op::WriteAt { offset, len: bytes.len() });
        self.file.write_at(bytes.get(..most).unwrap_or(bytes), offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.tell(&Op::Size);
        self.file.size()
    }

    fn id(&self) -> io::Result<FileId> {
        self.tell(&Op::Id);
        self.file.id()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.tell(&Op::Truncate { len });
        self.file.truncate(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.tell(&Op::SyncData);
        self.file.sync_data()
    }

    fn map(&self) -> io::Result<Mapping> {
        self.tell(&Op::Map);
        self.file.map()
    }

    fn lock(&self) -> io::Result<()> {
        self.tell(&Op::Lock);
        self.file.lock()
    }

    fn try_lock(&self) -> io::Result<()> {
        self.tell(&Op::TryLock);
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.tell(&Op::Unlock);
        self.file.unlock()
    }

    fn lock_holder(&self) -> Option<String> {
        self.file.lock_holder()
    }
}
