//! The real disk: every call forwards to the operating system.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::{Access, File, FileId, Mapping, Sharing, Stat, Storage, map};

/// A folder of the file system.
#[derive(Clone, Debug)]
pub struct Disk {
    root: PathBuf,
}

impl Disk {
    /// The folder at `root`; nothing is made or looked at yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
impl Storage for Disk {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).mode(0o600);
        match access {
            Access::Read => &mut options,
            Access::Write => options.write(true),
            Access::WriteOrCreate => options.write(true).create(true),
            Access::CreateNew => options.write(true).create_new(true),
        };
        let file = retry(|| options.open(self.path(name)))?;
        Ok(Arc::new(DiskFile { file }))
    }

    fn stat(&self, name: &str) -> io::Result<Stat> {
        look(CWD, &self.path(name), AtFlags::empty())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(dir))? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let path = self.path(dir);
        let made: Vec<&Path> = path.ancestors().take_while(|above| !above.exists()).collect();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        if dir.is_empty() {
            // Nobody else can make the entry of the store's own folder durable, nor those of the folders above it.
            let above = made.iter().filter_map(|dir| dir.parent()).chain(path.parent());
            for parent in above.filter(|parent| !parent.as_os_str().is_empty()) {
                fs::File::open(parent)?.sync_all()?;
            }
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        fs::File::open(self.path(dir))?.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn make_read_only(&self, name: &str) -> io::Result<()> {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o400))
    }

    fn sharing(&self) -> Sharing {
        network_name(&self.root).map_or(Sharing::Local, |name| Sharing::Network(name.into()))
    }

    fn display(&self, name: &str) -> PathBuf {
        self.path(name)
    }

    fn real_path(&self, dir: &str) -> Option<PathBuf> {
        Some(self.path(dir))
    }
}

#[derive(Debug)]
struct DiskFile {
    file: fs::File,
}

impl File for DiskFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        retry(|| self.file.read_at(buf, offset))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        retry(|| self.file.write_at(bytes, offset))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(look(&self.file, Path::new(""), AtFlags::EMPTY_PATH)?.len)
    }

    fn id(&self) -> io::Result<FileId> {
        Ok(look(&self.file, Path::new(""), AtFlags::EMPTY_PATH)?.id)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        retry(|| self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn map(&self) -> io::Result<Mapping> {
        map::map(&self.file)
    }

    fn lock(&self) -> io::Result<()> {
        retry(|| self.file.lock())
    }

    fn try_lock(&self) -> io::Result<()> {
        retry(|| self.file.try_lock().map_err(io::Error::from))
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn lock_holder(&self) -> Option<String> {
        let file = self.file.metadata().ok()?;
        holder(|| fs::read_to_string("/proc/locks").ok(), &file)
    }
}

/// Which file it is and how long. Its times are not asked for: a file whose times somebody has seen gets new ones at
/// the next write, and that costs more than the write.
fn look(dir: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Stat> {
    let found = rustix::fs::statx(dir, path, flags, StatxFlags::INO | StatxFlags::SIZE)?;
    let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
    Ok(Stat { id: FileId { device, inode: found.stx_ino }, len: found.stx_size })
}

/// A signal that interrupts a call is no answer.
fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// How often the list of locks is looked through. The kernel gives it out a page at a time, and an entry is passed over
/// when one before it goes between two pages.
const LOOKS: usize = 8;

/// Finds in the text of `/proc/locks` (see proc(5)) who holds a flock on the file.
fn holder(read: impl Fn() -> Option<String>, file: &fs::Metadata) -> Option<String> {
    // Some file systems show another device here than in the metadata, so that only the inode tells.
    let inode = file.ino().to_string();
    let holds = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (kind, _, mode) = (words.next()?, words.next()?, words.next()?);
        let (pid, place) = (words.next()?, words.next()?);
        let same = kind == "FLOCK" && mode == "WRITE" && place.rsplit(':').next()? == inode;
        same.then(|| pid.to_owned())
    };
    let pid = (0..LOOKS).find_map(|_| read()?.lines().find_map(holds))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("process {pid} ({})", name.trim()))
}

/// The name of the network file system that holds `root`, or its nearest folder that exists.
fn network_name(root: &Path) -> Option<&'static str> {
    let kind = root.ancestors().find_map(|dir| rustix::fs::statfs(dir).ok())?.f_type;
    // Magic numbers from linux/magic.h and from the file systems' own sources.
    match u32::try_from(kind).ok()? {
        0x6969 => Some("nfs"),
        0xFE53_4D42 => Some("smb2"),
        0xFF53_4D42 => Some("cifs"),
        0x517B => Some("smb"),
        0x0102_1997 => Some("9p"),
        0x5346_414F => Some("afs"),
        0x00C3_6400 => Some("ceph"),
        0x7375_7245 => Some("coda"),
        0x0BD0_0BD0 => Some("lustre"),
        0x0116_1970 => Some("gfs2"),
        0x7461_636F => Some("ocfs2"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Goal: a holder is named although the list leaves its lock out now and then. Method: lists with and without it.
    #[test]
    fn a_lock_that_a_list_leaves_out() {
        let file = tempfile::tempfile().unwrap().metadata().unwrap();
        let other = "1: FLOCK  ADVISORY  WRITE 1 00:2d:1 0 EOF\n";
        let ours = format!("{other}2: FLOCK  ADVISORY  WRITE 77 00:2d:{} 0 EOF\n", file.ino());
        let looks = Cell::new(0);
        let found = holder(
            || {
                looks.set(looks.get() + 1);
                Some(if looks.get() < 3 { other.to_owned() } else { ours.clone() })
            },
            &file,
        );
        assert!(found.is_some_and(|who| who.starts_with("process 77 ")));
        assert_eq!(
            (holder(|| Some(other.to_owned()), &file), holder(|| None, &file)),
            (None, None)
        );
    }
}
