//! A lock file of the store: the kernel's lock on it, and the two slots inside that its holder writes in turn.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::format::slot::{self, BLOCK, Value};
use crate::storage::{self, Access, File, FileId, Locked, Storage, read_full, write_full};

use super::waits::Waits;

/// How often a process looks whether it still needs a lock that another one has, before it waits for the lock alone.
const LOOKS: u32 = 16;

/// How long it rests between two looks: shorter than a sync, and so long that those who look leave the processor to
/// those who work.
const PAUSE: Duration = Duration::from_micros(120);

/// One of the lock files.
#[derive(Debug)]
pub(super) struct LockFile {
    storage: Arc<dyn Storage>,
    name: &'static str,
    file: Arc<dyn File>,
    /// Which file that is.
    id: FileId,
    /// The generation that was read last under the present lock, and the block to write next.
    next: Cell<Option<(u64, u64)>>,
    waits: Option<Waits>,
}

/// Whether a lock is needed that another process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It is not.
    None,
    /// It may be that somebody else does with it what it is needed for.
    Perhaps,
    /// It is.
    Sure,
}

impl LockFile {
    /// Opens the lock file and makes it when it is absent.
    pub(super) fn open(storage: &Arc<dyn Storage>, name: &'static str) -> Result<Self> {
        let (file, id) = open(&**storage, name)?;
        let storage = Arc::clone(storage);
        Ok(Self { storage, name, file, id, next: Cell::new(None), waits: None })
    }

    /// Has long waits for this lock told about.
    pub(super) fn telling(mut self, waits: Option<&Waits>) -> Self {
        self.waits = waits.cloned();
        self
    }

    /// Takes the lock. On return the file that is locked is the one that bears the name.
    pub(super) fn acquire(&mut self) -> Result<Locked> {
        self.next.set(None);
        loop {
            let locked = self.lock().map_err(|e| self.error("lock", e))?;
            if self.is_named()? {
                return Ok(locked);
            }
            drop(locked);
            (self.file, self.id) = open(&*self.storage, self.name)?;
        }
    }

    /// Takes the lock, unless there is no need for it any more, which `need` tells while another process has it. Those
    /// that wait in the kernel get a lock one after the other, each with a change of processes before it, though what
    /// one of them did with it was for all.
    pub(super) fn acquire_if(&mut self, need: impl Fn(&Self) -> Need) -> Result<Option<Locked>> {
        for _ in 0..LOOKS {
            match storage::try_lock(&self.file) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(self.error("lock", e)),
                Ok(locked) if self.is_named()? => {
                    self.next.set(None);
                    return Ok(Some(locked));
                }
                Ok(_) => break,
            }
            match need(self) {
                Need::None => return Ok(None),
                Need::Perhaps => std::thread::park_timeout(PAUSE),
                Need::Sure => break,
            }
        }
        self.acquire().map(Some)
    }

    fn is_named(&self) -> Result<bool> {
        match self.storage.stat(self.name) {
            Ok(named) => Ok(named.id == self.id),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(self.error("look at", e)),
        }
    }

    fn lock(&self) -> io::Result<Locked> {
        let Some(waits) = &self.waits else { return storage::lock(&self.file) };
        match storage::try_lock(&self.file) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let _waiting = waits.begin(self.name, &self.file);
                storage::lock(&self.file)
            }
            other => other,
        }
    }

    /// The value in the slots; `None` when no slot is whole. The holder of the lock sees the last one written; anybody
    /// else the last or the one before.
    pub(super) fn read<T: Value>(&self) -> Result<Option<T>> {
        let newest = read_slots(&*self.file).map_err(|e| self.error("read", e))?;
        let Some((generation, value, other)) = newest else {
            self.next.set(Some((1, 0)));
            return Ok(None);
        };
        self.next.set(Some((generation + 1, other)));
        Ok(Some(value))
    }

    /// Writes the value, by the holder of the lock alone. It is seen by every process on return and durable at no
    /// certain time.
    pub(super) fn write<T: Value>(&self, value: &T) -> Result<()> {
        if self.next.get().is_none() {
            self.read::<T>()?;
        }
        let (generation, number) = self.next.take().unwrap_or((1, 0));
        let block = slot::encode(generation, value);
        write_full(&*self.file, &block, number * BLOCK as u64)
            .map_err(|e| self.error("write", e))?;
        self.next.set(Some((generation + 1, 1 - number)));
        Ok(())
    }

    fn error(&self, verb: &str, source: io::Error) -> Error {
        let path = self.storage.display(self.name);
        Error::io(format!("cannot {verb} the lock file"), source).path(path)
    }
}

/// The value in the slots of a lock file, for a reader that takes no lock and makes no file.
pub(super) fn peek<T: Value>(storage: &dyn Storage, name: &str) -> Result<Option<T>> {
    match open_to_read(storage, name)? {
        Some(file) => read_value(storage, name, &*file),
        None => Ok(None),
    }
}

/// A lock file that is looked at again and again, by a reader that takes no lock and makes no file.
#[derive(Debug, Default)]
pub(super) struct Peeked(Option<(FileId, Arc<dyn File>)>);

impl Peeked {
    /// The value in the slots of the file that bears the name now.
    pub(super) fn read<T: Value>(
        &mut self,
        storage: &dyn Storage,
        name: &str,
    ) -> Result<Option<T>> {
        let known = self.0.as_ref().filter(|(id, _)| storage.stat(name).is_ok_and(|s| s.id == *id));
        if known.is_none() {
            let opened = open_to_read(storage, name)?;
            self.0 = opened.and_then(|file| Some((file.id().ok()?, file)));
        }
        match &self.0 {
            Some((_, file)) => read_value(storage, name, &**file),
            None => peek(storage, name),
        }
    }
}

/// Opens a lock file for its slots; `None` when there is none.
pub(super) fn open_to_read(storage: &dyn Storage, name: &str) -> Result<Option<Arc<dyn File>>> {
    match storage.open(name, Access::Read) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("cannot open the lock file", e).path(storage.display(name))),
    }
}

/// The value in the slots of a lock file that is open.
pub(super) fn read_value<T: Value>(
    storage: &dyn Storage,
    name: &str,
    file: &dyn File,
) -> Result<Option<T>> {
    read_slots(file)
        .map(|found| found.map(|(_, value, _)| value))
        .map_err(|e| Error::io("cannot read the lock file", e).path(storage.display(name)))
}

fn open(storage: &dyn Storage, name: &str) -> Result<(Arc<dyn File>, FileId)> {
    let open = || {
        let file = storage.open(name, Access::WriteOrCreate)?;
        let id = file.id()?;
        Ok((file, id))
    };
    open().map_err(|e| Error::io("cannot open the lock file", e).path(storage.display(name)))
}

/// The generation and the value of the newest slot that is whole, and the block to write next.
fn read_slots<T: Value>(file: &dyn File) -> io::Result<Option<(u64, T, u64)>> {
    let mut both = [0_u8; 2 * BLOCK];
    let count = read_full(file, &mut both, 0)?;
    Ok(slot::newest(both.get(..count).unwrap_or_default()))
}
