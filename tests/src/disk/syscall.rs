//! The calls of the kernel, as the storage seam has them: on names, and on open files.

use std::io;

use annals_engine::storage::{Access, FileId, Stat};

use super::call::Pid;
use super::fault::{EIO, ENOSPC, SyncFault};
use super::folder::Folder;
use super::inode::Data;
use super::kernel::{Ino, Kernel, Node, Open, OpenId, ROOT};

/// Bad file descriptor.
const EBADF: i32 = 9;

/// Calls on names.
impl Kernel {
    pub(super) fn open(&mut self, process: Pid, name: &str, access: Access) -> io::Result<OpenId> {
        let found = self.find(name);
        let ino = match (found, access) {
            (Some(_), Access::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(ino), _) => ino,
            (None, Access::Read | Access::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, Access::WriteOrCreate | Access::CreateNew) => self.create(name)?,
        };
        let data = self.file(ino)?;
        let writes = access != Access::Read;
        if writes && data.is_read_only() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let open = Open { ino, process, writes, errors_seen: data.error_sample() };
        self.next += 1;
        self.opens.insert(self.next, open);
        Ok(self.next)
    }

    pub(super) fn stat(&self, name: &str) -> io::Result<Stat> {
        let ino = self.find(name).ok_or(io::ErrorKind::NotFound)?;
        let len = match self.node(ino)? {
            Node::File(data) => data.bytes().len() as u64,
            Node::Folder(_) => 0,
        };
        Ok(Stat { id: file_id(ino), len })
    }

    pub(super) fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        Ok(self.folder(self.find(dir).ok_or(io::ErrorKind::NotFound)?)?.names())
    }

    pub(super) fn create_dir(&mut self, dir: &str) -> io::Result<()> {
        let mut at = ROOT;
        for base in dir.split('/').filter(|base| !base.is_empty()) {
            at = match self.folder(at)?.get(base) {
                Some(ino) => ino,
                None => {
                    let ino = self.add(Node::Folder(Folder::default()));
                    self.folder_mut(at)?.link(base, ino);
                    ino
                }
            };
        }
        self.folder(at).map(|_| ())
    }

    pub(super) fn sync_dir(&mut self, dir: &str) -> io::Result<()> {
        let ino = self.find(dir).ok_or(io::ErrorKind::NotFound)?;
        self.folder_mut(ino)?.sync();
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let ino = self.find(from).ok_or(io::ErrorKind::NotFound)?;
        let (to_dir, to_base) = self.parent(to)?;
        self.folder_mut(to_dir)?.link(to_base, ino);
        self.unlink(from)
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.file(self.find(name).ok_or(io::ErrorKind::NotFound)?)?;
        self.unlink(name)
    }

    pub(super) fn make_read_only(&mut self, name: &str) -> io::Result<()> {
        let ino = self.find(name).ok_or(io::ErrorKind::NotFound)?;
        self.file_mut(ino)?.make_read_only();
        Ok(())
    }

    fn unlink(&mut self, name: &str) -> io::Result<()> {
        let (dir, base) = self.parent(name)?;
        self.folder_mut(dir)?.unlink(base);
        Ok(())
    }

    fn create(&mut self, name: &str) -> io::Result<Ino> {
        let (dir, base) = self.parent(name)?;
        self.folder(dir)?;
        let ino = self.add(Node::File(Data::default()));
        self.folder_mut(dir)?.link(base, ino);
        Ok(ino)
    }

    pub(super) fn find(&self, name: &str) -> Option<Ino> {
        name.split('/')
            .filter(|base| !base.is_empty())
            .try_fold(ROOT, |at, base| self.folder(at).ok()?.get(base))
    }

    pub(super) fn parent<'a>(&self, name: &'a str) -> io::Result<(Ino, &'a str)> {
        let (dir, base) = name.rsplit_once('/').unwrap_or(("", name));
        Ok((self.find(dir).ok_or(io::ErrorKind::NotFound)?, base))
    }

    pub(super) fn add(&mut self, node: Node) -> Ino {
        self.next += 1;
        self.nodes.insert(self.next, node);
        self.next
    }

    fn node(&self, ino: Ino) -> io::Result<&Node> {
        self.nodes.get(&ino).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn folder(&self, ino: Ino) -> io::Result<&Folder> {
        match self.node(ino)? {
            Node::Folder(folder) => Ok(folder),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn folder_mut(&mut self, ino: Ino) -> io::Result<&mut Folder> {
        match self.nodes.get_mut(&ino) {
            Some(Node::Folder(folder)) => Ok(folder),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn file(&self, ino: Ino) -> io::Result<&Data> {
        match self.node(ino)? {
            Node::File(data) => Ok(data),
            Node::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn file_mut(&mut self, ino: Ino) -> io::Result<&mut Data> {
        match self.nodes.get_mut(&ino) {
            Some(Node::File(data)) => Ok(data),
            Some(Node::Folder(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Calls on open files.
impl Kernel {
    pub(super) fn read_at(&self, id: OpenId, offset: u64, len: usize) -> io::Result<&[u8]> {
        let bytes = self.file(self.open_of(id)?.ino)?.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(&bytes[start..bytes.len().min(start.saturating_add(len))])
    }

    /// Writes as much as there is room for; no room at all is an error.
    pub(super) fn write_at(&mut self, id: OpenId, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let open = self.open_of(id)?;
        if !open.writes {
            return Err(io::Error::from_raw_os_error(EBADF));
        }
        let ino = open.ino;
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let len = self.file(ino)?.bytes().len();
        let growth = (offset + bytes.len()).saturating_sub(len);
        let granted = growth.min(self.room.unwrap_or(usize::MAX));
        let count = bytes.len() - (growth - granted);
        if count == 0 && !bytes.is_empty() {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        if let Some(room) = &mut self.room {
            *room -= granted;
        }
        self.file_mut(ino)?.write(offset, &bytes[..count]);
        Ok(count)
    }

    pub(super) fn truncate(&mut self, id: OpenId, len: u64) -> io::Result<()> {
        let open = self.open_of(id)?;
        if !open.writes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let ino = open.ino;
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let data = self.file_mut(ino)?;
        let freed = data.bytes().len().saturating_sub(len);
        data.truncate(len);
        if let Some(room) = &mut self.room {
            *room += freed;
        }
        Ok(())
    }

    pub(super) fn sync_data(&mut self, id: OpenId, fault: Option<SyncFault>) -> io::Result<()> {
        let open = self.opens.get_mut(&id).ok_or(io::ErrorKind::NotFound)?;
        let Some(Node::File(data)) = self.nodes.get_mut(&open.ino) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if data.sync(&mut open.errors_seen, fault, &mut self.rng) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(fault.map_or(EIO, |fault| fault.errno)))
        }
    }

    pub(super) fn has_dirty_data(&self, id: OpenId) -> bool {
        self.open_of(id).and_then(|open| self.file(open.ino)).is_ok_and(Data::is_dirty)
    }

    pub(super) fn size(&self, id: OpenId) -> io::Result<u64> {
        Ok(self.file(self.open_of(id)?.ino)?.bytes().len() as u64)
    }

    pub(super) fn id(&self, id: OpenId) -> io::Result<FileId> {
        Ok(file_id(self.open_of(id)?.ino))
    }

    /// Whether `lock` would wait.
    pub(super) fn lock_is_taken(&self, id: OpenId) -> bool {
        self.open_of(id)
            .is_ok_and(|open| self.locks.get(&open.ino).is_some_and(|holder| *holder != id))
    }

    pub(super) fn try_lock(&mut self, id: OpenId) -> io::Result<()> {
        if self.lock_is_taken(id) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let ino = self.open_of(id)?.ino;
        self.locks.insert(ino, id);
        Ok(())
    }

    pub(super) fn unlock(&mut self, id: OpenId) -> io::Result<()> {
        let ino = self.open_of(id)?.ino;
        if self.locks.get(&ino) == Some(&id) {
            self.locks.remove(&ino);
        }
        Ok(())
    }

    pub(super) fn holder_by_open(&self, id: OpenId) -> Option<Pid> {
        self.holder_of(self.open_of(id).ok()?.ino)
    }

    pub(super) fn close(&mut self, id: OpenId) {
        if self.open_of(id).is_ok() {
            let _ = self.unlock(id);
            self.opens.remove(&id);
        }
    }

    pub(super) fn holder_of(&self, ino: Ino) -> Option<Pid> {
        Some(self.opens.get(self.locks.get(&ino)?)?.process)
    }

    fn open_of(&self, id: OpenId) -> io::Result<&Open> {
        self.opens.get(&id).ok_or_else(|| io::Error::from_raw_os_error(EBADF))
    }
}

fn file_id(ino: Ino) -> FileId {
    FileId { device: 1, inode: ino }
}
