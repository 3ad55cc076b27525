//! The calls that processes make, as they are recorded and as rules and scripts speak of them.

use std::fmt;
use std::sync::Arc;

use annals_engine::storage::Access;

/// A simulated process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub usize);

/// One call of a process to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who.
    pub process: Pid,
    /// What.
    pub op: Op,
    /// On which name; that of an open file is the one that it was opened by.
    pub name: Arc<str>,
}

/// What a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the method of the same name")]
pub enum Op {
    Open(Access),
    Stat,
    List,
    CreateDir,
    SyncDir,
    Rename { to: Arc<str> },
    Remove,
    MakeReadOnly,
    ReadAt { offset: u64, len: usize },
    WriteAt { offset: u64, len: usize },
    Size,
    Id,
    Truncate { len: u64 },
    SyncData,
    Map,
    Lock,
    TryLock,
    Unlock,
}

impl Call {
    /// Whether it writes to a file whose name begins so.
    #[must_use]
    pub fn writes(&self, prefix: &str) -> bool {
        matches!(self.op, Op::WriteAt { .. }) && self.name.starts_with(prefix)
    }

    /// Whether it syncs a file whose name begins so.
    #[must_use]
    pub fn syncs(&self, prefix: &str) -> bool {
        self.op == Op::SyncData && self.name.starts_with(prefix)
    }

    /// Whether it takes or waits for the lock of this file.
    #[must_use]
    pub fn locks(&self, name: &str) -> bool {
        matches!(self.op, Op::Lock | Op::TryLock) && &*self.name == name
    }

    /// Whether it changes anything that lasts.
    #[must_use]
    pub fn changes(&self) -> bool {
        match &self.op {
            Op::Open(access) => matches!(access, Access::WriteOrCreate | Access::CreateNew),
            Op::CreateDir
            | Op::SyncDir
            | Op::Rename { .. }
            | Op::Remove
            | Op::MakeReadOnly
            | Op::WriteAt { .. }
            | Op::Truncate { .. }
            | Op::SyncData => true,
            Op::Stat
            | Op::List
            | Op::ReadAt { .. }
            | Op::Size
            | Op::Id
            | Op::Map
            | Op::Lock
            | Op::TryLock
            | Op::Unlock => false,
        }
    }
}

/// A call and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The call.
    pub call: Call,
    /// The kind of its error.
    pub outcome: Result<(), std::io::ErrorKind>,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.call.process.0, self.call.op, self.call.name)?;
        match &self.outcome {
            Ok(()) => Ok(()),
            Err(kind) => write!(f, ": {kind}"),
        }
    }
}
