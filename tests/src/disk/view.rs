//! One process's view of the simulated disk: the storage seam of the engine, call by call.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use annals_engine::storage::{Access, File, FileId, Mapping, Sharing, Stat, Storage};

use super::call::{Call, Op, Pid};
use super::kernel::{Kernel, OpenId};
use super::machine::{Bounds, Shared};
use super::schedule::Waiting;

/// The disk as one process sees it. When the process is dead, its calls unwind to the process's top and have no effect.
#[derive(Clone, Debug)]
pub struct View {
    shared: Arc<Shared>,
    process: Pid,
}

impl View {
    pub(super) fn new(shared: Arc<Shared>, process: Pid) -> Self {
        Self { shared, process }
    }

    /// Which process this is.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.process
    }

    /// The process is gone: its descriptors are closed, its locks released. Later calls through this view unwind.
    pub fn end(&self) {
        self.shared.lock().end_process(self.process);
    }

    fn call<T>(
        &self,
        op: Op,
        name: &str,
        act: impl FnOnce(&mut Kernel) -> io::Result<T>,
    ) -> io::Result<T> {
        let call = Call { process: self.process, op, name: name.into() };
        let waiting = Waiting { call, open: None, bytes: Vec::new() };
        self.shared.call(waiting, |kernel, _| act(kernel))
    }
}

impl Storage for View {
    fn open(&self, name: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let process = self.process;
        let id = self.call(Op::Open(access), name, |kernel| kernel.open(process, name, access))?;
        Ok(Arc::new(OpenFile { shared: self.shared.clone(), process, id, name: name.into() }))
    }

    fn stat(&self, name: &str) -> io::Result<Stat> {
        self.call(Op::Stat, name, |kernel| kernel.stat(name))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.call(Op::List, dir, |kernel| kernel.list(dir))
    }

    fn create_dir(&self, dir: &str) -> io::Result<()> {
        self.call(Op::CreateDir, dir, |kernel| kernel.create_dir(dir))
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.call(Op::SyncDir, dir, |kernel| kernel.sync_dir(dir))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.call(Op::Rename { to: to.into() }, from, |kernel| kernel.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(Op::Remove, name, |kernel| kernel.remove(name))
    }

    fn make_read_only(&self, name: &str) -> io::Result<()> {
        self.call(Op::MakeReadOnly, name, |kernel| kernel.make_read_only(name))
    }

    fn sharing(&self) -> Sharing {
        Sharing::Local
    }

    fn display(&self, name: &str) -> PathBuf {
        PathBuf::from("/sim").join(name)
    }

    fn real_path(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

#[derive(Debug)]
struct OpenFile {
    shared: Arc<Shared>,
    process: Pid,
    id: OpenId,
    name: Arc<str>,
}

impl OpenFile {
    fn call<T>(
        &self,
        op: Op,
        bytes: &[u8],
        act: impl FnOnce(&mut Kernel, Bounds) -> io::Result<T>,
    ) -> io::Result<T> {
        let call = Call { process: self.process, op, name: self.name.clone() };
        self.shared.call(Waiting { call, open: Some(self.id), bytes: bytes.to_vec() }, act)
    }
}

impl File for OpenFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.call(Op::ReadAt { offset, len: buf.len() }, &[], |kernel, bounds| {
            let len = bounds.short.map_or(buf.len(), |short| short.min(buf.len()));
            let bytes = kernel.read_at(self.id, offset, len)?;
            buf[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.call(Op::WriteAt { offset, len: bytes.len() }, bytes, |kernel, bounds| {
            let len = bounds.short.map_or(bytes.len(), |short| short.min(bytes.len()));
            kernel.write_at(self.id, &bytes[..len], offset)
        })
    }

    fn size(&self) -> io::Result<u64> {
        self.call(Op::Size, &[], |kernel, _| kernel.size(self.id))
    }

    fn id(&self) -> io::Result<FileId> {
        self.call(Op::Id, &[], |kernel, _| kernel.id(self.id))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.call(Op::Truncate { len }, &[], |kernel, _| kernel.truncate(self.id, len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.call(Op::SyncData, &[], |kernel, bounds| kernel.sync_data(self.id, bounds.sync))
    }

    fn map(&self) -> io::Result<Mapping> {
        self.call(Op::Map, &[], |kernel, _| {
            Ok(Mapping::Held(kernel.read_at(self.id, 0, usize::MAX)?.to_vec()))
        })
    }

    fn lock(&self) -> io::Result<()> {
        self.call(Op::Lock, &[], |kernel, _| {
            kernel.try_lock(self.id).map_err(|_| io::ErrorKind::Deadlock.into())
        })
    }

    fn try_lock(&self) -> io::Result<()> {
        self.call(Op::TryLock, &[], |kernel, _| kernel.try_lock(self.id))
    }

    fn unlock(&self) -> io::Result<()> {
        self.call(Op::Unlock, &[], |kernel, _| kernel.unlock(self.id))
    }

    fn lock_holder(&self) -> Option<String> {
        let state = self.shared.lock();
        let holder = state.kernel.holder_by_open(self.id)?;
        Some(format!("process {} ({})", holder.0, state.name_of(holder)))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.shared.close(self.process, self.id);
    }
}
