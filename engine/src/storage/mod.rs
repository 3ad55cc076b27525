//! The only door to the disk. [`Storage`] is a folder of files with the promises that the log needs and nothing else;
//! the real one forwards to the operating system, a simulated one can lose, tear and refuse what the assumptions below
//! allow. Names are relative to the store's folder, with `/` between parts.
//!
//! # What the disk may do
//!
//! 1. A [`File::sync_data`] that returned success has put the file's data and size on stable storage. One that failed
//!    promises nothing about what was written before it, ever again.
//! 2. Data that was not synced may survive, vanish, or come back as zeros or old bytes, in pieces of 512 bytes, in any
//!    order; the size may be ahead of or behind the data. A piece that also holds synced bytes comes back old or new,
//!    never zero.
//! 3. Folder entries that were not synced with [`Storage::sync_dir`] survive in any subset; a rename may leave the old
//!    name, the new one, both or neither.
//! 4. Bits on disk may flip; reads may fail; writes may be short or fail at any call.
//! 5. A process may be killed or stopped at any instruction; its locks are then released. The clock may jump.
//! 6. Programs of the same user may append to files or edit them by mistake; what they did must be seen.
//! 7. Network file systems give no lock that holds between machines: they are asked for and refused to several writers.

mod disk;
mod lock;
mod map;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use disk::Disk;
pub use lock::{LockWait, Locked, lock, try_lock};
pub use map::{Advice, Mapping};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Write,
    /// For reading and writing; made empty when absent.
    WriteOrCreate,
    /// For reading and writing; it must not exist before.
    CreateNew,
}

/// Which file a name stood for when it was looked up. Two lookups of one name with different identities mean that the
/// file was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device.
    pub device: u64,
    /// The inode on that device.
    pub inode: u64,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Which file.
    pub id: FileId,
    /// Its length in bytes.
    pub len: u64,
}

/// Whether locks on this folder hold between all the programs that may reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A local file system: kernel locks hold between processes.
    Local,
    /// A network file system, by its name.
    Network(String),
}

/// A folder of files. All names are relative to it. Errors are the operating system's own; a read, a write or a lock
/// that a signal interrupts is tried again inside.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists` (for [`Access::CreateNew`]), and whatever the system says.
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>>;

    /// What the name stands for now.
    ///
    /// # Errors
    /// `NotFound` when there is nothing.
    fn stat(&self, name: &str) -> io::Result<Stat>;

    /// The names in a folder, sorted, without the folder's own name. An absent folder is `NotFound`.
    ///
    /// # Errors
    /// Whatever the system says.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;

    /// Makes a folder (mode 0700) and those above it; one that exists is fine. The entry is durable only after
    /// [`Storage::sync_dir`] of the folder above, but for the store's own folder `""`: its entry, and those of the
    /// folders above it that had to be made, are durable on return.
    ///
    /// # Errors
    /// Whatever the system says.
    fn create_dir(&self, dir: &str) -> io::Result<()>;

    /// Makes every entry of a folder durable; `""` is the store's folder itself.
    ///
    /// # Errors
    /// Whatever the system says; nothing is known then about the entries.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;

    /// Renames a file, replacing what bears the new name.
    ///
    /// # Errors
    /// Whatever the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Whatever the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Takes write permission from a file (mode 0400): a guard against mistakes, nothing that recovery relies on.
    ///
    /// # Errors
    /// Whatever the system says.
    fn make_read_only(&self, name: &str) -> io::Result<()>;

    /// Whether locks hold here.
    fn sharing(&self) -> Sharing;

    /// The name as a person or another program would write it.
    fn display(&self, name: &str) -> PathBuf;

    /// The folder to hang file notification on; `None` where there is no such folder.
    fn real_path(&self, dir: &str) -> Option<PathBuf>;
}

/// An open file. Positions are given with each call; nothing here moves a file pointer.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads at most `buf.len()` bytes from `offset`; 0 means the end of the file. It may return fewer than there are.
    ///
    /// # Errors
    /// Whatever the system says; never an error for the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at most `bytes.len()` bytes at `offset` with one call; it may write fewer. Nothing is durable before
    /// [`File::sync_data`].
    ///
    /// # Errors
    /// Whatever the system says; some bytes may have been written nevertheless.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// The length in bytes.
    ///
    /// # Errors
    /// Whatever the system says.
    fn size(&self) -> io::Result<u64>;

    /// Which file this is, whatever its name is now.
    ///
    /// # Errors
    /// Whatever the system says.
    fn id(&self) -> io::Result<FileId>;

    /// Cuts the file, or grows it with zeros.
    ///
    /// # Errors
    /// Whatever the system says.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Puts data and size on stable storage (`fdatasync`). **A failure must never be answered by trying again**: the
    /// system may have dropped the bytes and forgotten the error.
    ///
    /// # Errors
    /// Whatever the system says; nothing is known then about what was written.
    fn sync_data(&self) -> io::Result<()>;

    /// The whole file as memory, as long as it is now. Only bytes that nobody changes and that no truncation takes away
    /// any more may be looked at.
    ///
    /// # Errors
    /// Whatever the system says.
    fn map(&self) -> io::Result<Mapping>;

    /// Takes the exclusive lock of this open file and waits for it; it ends with [`File::unlock`] or the process.
    /// Two opens of one file exclude each other also inside a process.
    ///
    /// # Errors
    /// Whatever the system says.
    fn lock(&self) -> io::Result<()>;

    /// Takes the lock if nobody has it.
    ///
    /// # Errors
    /// `WouldBlock` when somebody has it.
    fn try_lock(&self) -> io::Result<()>;

    /// Gives the lock back.
    ///
    /// # Errors
    /// Whatever the system says.
    fn unlock(&self) -> io::Result<()>;

    /// Who holds the lock, in words for a person, as far as the system tells.
    fn lock_holder(&self) -> Option<String>;
}

/// Reads until `buf` is full or the file ends; returns how many bytes there were.
///
/// # Errors
/// What [`File::read_at`] says.
pub fn read_full(file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

/// Writes everything at `offset`.
///
/// # Errors
/// What [`File::write_at`] says; `WriteZero` when it writes nothing. Some bytes may have been written.
pub fn write_full(file: &dyn File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, offset + done as u64)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => done += n,
        }
    }
    Ok(())
}
