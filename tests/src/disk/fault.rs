//! What goes wrong, and when: rules that meet calls by their number, and chances that a seed draws.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;

use super::call::Call;

/// Input/output error.
pub const EIO: i32 = 5;
/// No space left on the device.
pub const ENOSPC: i32 = 28;

/// How a sync fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncFault {
    /// What reached the platter nevertheless.
    pub persisted: Persisted,
    /// What became of the page cache.
    pub cache: Cache,
    /// Whether the kernel keeps the error for the other open descriptions of the file. A failed flush of the device is
    /// told to the caller alone.
    pub recorded: bool,
    /// The error number.
    pub errno: i32,
}

/// What of the dirty data reached the platter in a sync that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persisted {
    /// None of it.
    Nothing,
    /// Some pieces; the size perhaps.
    Some,
    /// All of it.
    Everything,
}

/// What became of the page cache in a sync that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The data is kept and still to be written.
    Dirty,
    /// The data is kept and taken for written: the next sync succeeds without it.
    Clean,
    /// The data is gone: reads give what the platter holds.
    Reverted,
}

impl SyncFault {
    /// Every way in which a sync fails.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for persisted in [Persisted::Nothing, Persisted::Some, Persisted::Everything] {
            for cache in [Cache::Dirty, Cache::Clean, Cache::Reverted] {
                for recorded in [true, false] {
                    all.push(Self { persisted, cache, recorded, errno: EIO });
                }
            }
        }
        all
    }

    pub(super) fn draw(rng: &mut Rng) -> Self {
        let all = Self::all();
        all[rng.usize(0..all.len())]
    }
}

/// What a rule does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does nothing and fails with this error number.
    Fail(i32),
    /// A read or a write does at most so many bytes.
    Short(usize),
    /// A sync of a file fails.
    Sync(SyncFault),
    /// The process is killed; of a write, so many bytes are left.
    Kill(usize),
}

/// Meets the calls that it names, counts them, and takes effect on some.
#[derive(Clone)]
pub struct Rule {
    meets: Arc<dyn Fn(&Call) -> bool + Send + Sync>,
    range: Range<u64>,
    effect: Effect,
    met: u64,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("range", &self.range).field("effect", &self.effect).finish()
    }
}

impl Rule {
    /// Takes effect on every call that `meets` says yes to.
    #[must_use]
    pub fn new(meets: impl Fn(&Call) -> bool + Send + Sync + 'static, effect: Effect) -> Self {
        Self { meets: Arc::new(meets), range: 0..u64::MAX, effect, met: 0 }
    }

    /// Only on the n-th of them, from 0.
    #[must_use]
    pub fn nth(self, n: u64) -> Self {
        Self { range: n..n + 1, ..self }
    }

    /// Only on the n-th of them and all after it, from 0.
    #[must_use]
    pub fn from(self, n: u64) -> Self {
        Self { range: n..u64::MAX, ..self }
    }

    pub(super) fn meet(&mut self, call: &Call) -> Option<Effect> {
        if !(self.meets)(call) {
            return None;
        }
        let n = self.met;
        self.met += 1;
        self.range.contains(&n).then_some(self.effect)
    }
}

/// How often things go wrong by chance, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chances {
    /// A sync of a file with dirty data fails.
    pub sync_fails: f64,
    /// Before a call, some dirty piece is written back.
    pub write_back: f64,
    /// Such a write-back fails.
    pub write_back_fails: f64,
    /// A read fails.
    pub read_fails: f64,
    /// A read gives fewer bytes than it could.
    pub short_read: f64,
    /// A write takes fewer bytes than it could.
    pub short_write: f64,
}
