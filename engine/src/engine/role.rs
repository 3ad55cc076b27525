//! Roles: what one process at a time does for a store, and who does it is found out by asking for the role. A role ends
//! with the process that has it, however that ends.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::storage::{Access, Locked, Storage, try_lock};

/// Where roles are kept.
#[derive(Clone, Debug)]
pub(super) enum Roles {
    /// As locks in the store's folder.
    Folder(Arc<dyn Storage>),
    /// In this process, for a store that is nowhere else.
    Here(Arc<Mutex<BTreeSet<&'static str>>>),
}

/// A role that this process has until this value is dropped.
#[derive(Debug)]
pub struct Role {
    _held: Held,
}

#[derive(Debug)]
#[expect(dead_code, reason = "a guard is kept for what its end does")]
enum Held {
    Lock(Locked),
    Name(Taken),
}

#[derive(Debug)]
struct Taken {
    name: &'static str,
    names: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(self.name);
    }
}

impl Roles {
    /// Takes the role whose lock has this name.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn take(&self, name: &'static str) -> Result<Option<Role>> {
        match self {
            Self::Folder(storage) => {
                let fail = |doing| move |e| Error::io(doing, e).path(storage.display(name));
                let file =
                    storage.open(name, Access::WriteOrCreate).map_err(fail("cannot open"))?;
                match try_lock(&file) {
                    Ok(lock) => Ok(Some(Role { _held: Held::Lock(lock) })),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
                    Err(e) => Err(fail("cannot lock")(e)),
                }
            }
            Self::Here(names) => {
                let free = names.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
                let taken = || Taken { name, names: Arc::clone(names) };
                Ok(free.then(|| Role { _held: Held::Name(taken()) }))
            }
        }
    }
}
