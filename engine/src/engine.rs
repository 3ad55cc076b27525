//! The handle that the crates above use: a store, opened in a folder, in memory, or over any [`EventStore`].

mod keeping;
mod role;

use std::fmt;
use std::num::NonZero;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::error::Result;
use crate::format::{WATCHER_LOCK, WORKER_LOCK};
use crate::id::StreamName;
use crate::log::{self, Log};
use crate::projection::Folded;
use crate::session::change::{Change, Changed, change};
use crate::session::index::{Found, Sessions, TimeRules};
use crate::session::policy::PolicyFile;
use crate::session::push::{Push, Pushed, Terms, push};
use crate::session::run::{self, Batch, Stage, Views};
use crate::session::upkeep::{Kept, Limits, keep};
use crate::session::work::Work;
use crate::storage::{Disk, Sharing, Storage};
use crate::store::{Appended, EventStore, MemoryStore};

use keeping::Keeping;
use role::Roles;

pub use role::Role;

pub use crate::log::{Accepted, Notice, Options, Progress, Remedy, Report, remedies};

/// A store that is open. Clones share it; calls block, and may come from any thread.
///
/// It dereferences to [`EventStore`], which says what each call holds on return.
#[derive(Clone)]
pub struct Engine {
    store: Arc<Keeping>,
    clock: Arc<dyn Clock>,
    roles: Roles,
}

/// A stream of so many events is folded in less time than a snapshot of some thousand sessions is read.
const EVENTS_FEW: u64 = 4_096;

impl Engine {
    /// Opens the store in a folder, and makes it when the folder is empty or absent.
    ///
    /// # Errors
    /// What [`Log::open`] says.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let storage = disk(path.as_ref());
        let log = Log::open(Arc::clone(&storage), Arc::clone(&clock), options)?;
        Ok(Self { roles: Roles::Folder(storage), ..Self::over(Arc::new(log), clock) })
    }

    /// Opens a store for reading alone: no byte of it is changed, and a read-only mount will do.
    ///
    /// # Errors
    /// What [`Log::open_read_only`] says.
    pub fn open_read_only(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let log = Log::open_read_only(disk(path.as_ref()), options)?;
        Ok(Self::over(Arc::new(log), Arc::new(SystemClock)))
    }

    /// A store in memory, gone with its last handle.
    #[must_use]
    pub fn in_memory(clock: Arc<dyn Clock>) -> Self {
        Self::over(Arc::new(MemoryStore::new(Arc::clone(&clock))), clock)
    }

    /// A store of another kind.
    #[must_use]
    pub fn over(store: Arc<dyn EventStore>, clock: Arc<dyn Clock>) -> Self {
        let roles = Roles::Here(Arc::default());
        Self { store: Arc::new(Keeping::new(store)), clock, roles }
    }

    /// The store, for whoever takes one.
    #[must_use]
    pub fn store(&self) -> &dyn EventStore {
        &*self.store
    }

    /// The sessions as of the last durable event. The first call folds what no snapshot holds, later ones what came
    /// since; what is given out does not change any more, and costs nothing to keep while nothing is appended.
    ///
    /// # Errors
    /// Whatever reading meets. Damage is no error: the rows that it touches say so.
    pub fn sessions(&self) -> Result<Arc<Folded<Sessions>>> {
        self.store.sessions()
    }

    /// Takes the role of the worker that looks after what nobody else does: deliveries, announces, runs whose workers are
    /// gone. `None` when a process has it. A store in memory, or of another kind, has its roles in its handle and clones.
    ///
    /// # Errors
    /// What the disk says.
    pub fn take_worker_role(&self) -> Result<Option<Role>> {
        self.roles.take(WORKER_LOCK)
    }

    /// Takes the role of the one process that watches files for rules, on the same terms.
    ///
    /// # Errors
    /// What the disk says.
    pub fn take_watcher_role(&self) -> Result<Option<Role>> {
        self.roles.take(WATCHER_LOCK)
    }

    /// The work at hand as of the last durable event, under the same rules.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub fn work(&self) -> Result<Arc<Folded<Work>>> {
        self.store.work()
    }

    /// Decides on work under the append lock, on all that is at hand and on these sessions: see [`run::decide`].
    ///
    /// # Errors
    /// As there.
    pub fn decide<T: Send>(
        &self,
        keys: &[&StreamName],
        rule: impl FnMut(&Stage<'_>, &mut Batch<'_>) -> Result<T> + Send,
    ) -> Result<(T, Appended)> {
        let (sessions, work) = (self.sessions()?, self.work()?);
        let views = Views { sessions: &sessions, work: &work };
        run::decide(&*self.store, views, keys, rule)
    }

    /// A view of the sessions with all that the history of this one takes, as of the last durable event: its parts and
    /// their messages. Of a session with few events only the own stream is folded, and the view then holds no other and
    /// nothing of its runs; else it is that of [`Engine::sessions`].
    ///
    /// # Errors
    /// What [`Engine::sessions`] says.
    pub fn sessions_for_history(&self, key: &StreamName) -> Result<Arc<Folded<Sessions>>> {
        match Folded::<Sessions>::of_stream(self.store(), key, EVENTS_FEW)? {
            Some(alone) if alone.state().row(key).is_some() => Ok(Arc::new(alone)),
            _ => self.sessions(),
        }
    }

    /// Puts a policy file in force, for this handle and its clones: what it says anew is told ahead of the next batch that
    /// is decided ([`EventStore::append_deciding`]), in the same batch, and its owners may command. Without one nothing is
    /// told and nobody but the operator may.
    pub fn govern(&self, file: PolicyFile) {
        self.store.govern(file);
    }

    /// Pushes a turn that came in through a door: see [`push`].
    ///
    /// # Errors
    /// As there.
    pub fn push(&self, turn: &Push, rules: &TimeRules) -> Result<Pushed> {
        let sessions = || self.sessions();
        let owners = self.store.policy().map(|file| file.owners()).unwrap_or_default();
        let terms = Terms { rules, owners: &owners, sessions: &sessions };
        push(&*self.store, turn, &terms, self.clock.now())
    }

    /// Changes a session: see [`change`].
    ///
    /// # Errors
    /// As there.
    pub fn change(&self, found: &Found, what: &Change) -> Result<Changed> {
        change(&*self.store, &*self.sessions()?, found, what, self.clock.now())
    }

    /// Records what time and the limits have archived: see [`keep`].
    ///
    /// # Errors
    /// As there.
    pub fn keep_up(&self, rules: &TimeRules, limits: Limits) -> Result<Kept> {
        keep(&*self.store, &*self.sessions()?, rules, limits, self.clock.now())
    }

    /// The clock that this engine goes by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }
}

impl Deref for Engine {
    type Target = dyn EventStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("store", &self.store.id()).finish_non_exhaustive()
    }
}

/// Verifies the store in a folder with all processors that there are, and changes nothing; tells now and then how far it
/// has come.
///
/// # Errors
/// `NotFound`, `Unsupported`, and what the disk says; damage is no error but in the report.
pub fn verify(path: impl AsRef<Path>, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    let workers = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    log::verify_with(&disk(path.as_ref()), workers, progress)
}

/// Accepts the damage of the store in a folder, so that it takes appends again.
///
/// # Errors
/// What [`log::repair`] says.
pub fn repair(
    path: impl AsRef<Path>,
    options: Options,
    reason: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<Accepted> {
    log::repair(disk(path.as_ref()), Arc::new(SystemClock), options, reason, progress)
}

/// Whether a folder lies on another machine, as far as the system tells.
#[must_use]
pub fn is_remote(path: &Path) -> bool {
    disk(path).sharing() != Sharing::Local
}

fn disk(path: &Path) -> Arc<dyn Storage> {
    Arc::new(Disk::new(path))
}

#[cfg(test)]
mod tests;
