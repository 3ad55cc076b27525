//! Locks as guards. The lock is the kernel's: it goes with the process, and nothing here steals one.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::File;

/// A lock that is held until this value is dropped.
#[derive(Debug)]
pub struct Locked {
    file: Arc<dyn File>,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The descriptor is open and locked, so the call cannot fail in a way that matters: the lock ends with the
        // descriptor at the latest.
        let _ = self.file.unlock();
    }
}

/// A wait for a lock that has grown long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// The lock file's name in the store.
    pub name: String,
    /// How long it has lasted.
    pub waited: Duration,
    /// Who holds it, as far as the system tells.
    pub holder: Option<String>,
}

/// Takes the lock and waits for it.
///
/// # Errors
/// What [`File::lock`] says.
pub fn lock(file: &Arc<dyn File>) -> io::Result<Locked> {
    file.lock()?;
    Ok(Locked { file: Arc::clone(file) })
}

/// Takes the lock if nobody has it.
///
/// # Errors
/// `WouldBlock` when somebody has it, and what [`File::try_lock`] says.
pub fn try_lock(file: &Arc<dyn File>) -> io::Result<Locked> {
    file.try_lock()?;
    Ok(Locked { file: Arc::clone(file) })
}
