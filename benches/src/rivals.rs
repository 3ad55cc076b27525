//! Other stores, each used as its own documentation advises, and durable where annals is. The feature `rivals` brings
//! them; without it there are none.

#[cfg(feature = "rivals")]
pub mod fjall;
#[cfg(feature = "rivals")]
pub mod okaywal;
#[cfg(feature = "rivals")]
pub mod raft_engine;
#[cfg(feature = "rivals")]
pub mod redb;
#[cfg(feature = "rivals")]
pub mod sqlite;

use std::path::Path;

use crate::floors::commit::Appender;

/// What a call of a rival gives; an error is told as text.
pub type Outcome<T> = Result<T, String>;

/// An event as a rival keeps it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The number of its stream.
    pub stream: u64,
    /// Its position there.
    pub version: u64,
    /// The whole line.
    pub line: &'a [u8],
}

/// A store that holds the workload.
pub trait Loaded {
    /// Calls `take` with every line; those of one stream come in order.
    ///
    /// # Errors
    /// What the store says.
    fn each(&self, take: &mut dyn FnMut(&[u8])) -> Outcome<()>;

    /// Reads the events of a stream from a version to the last, and returns how many there are.
    ///
    /// # Errors
    /// What the store says.
    fn last(&self, stream: u64, from: u64, to: u64) -> Outcome<usize>;
}

/// Another store.
#[derive(Clone, Copy)]
pub struct Rival {
    /// Its name, its version, and how it is used.
    pub name: &'static str,
    /// Opens an empty one for so many callers.
    pub appender: fn(&Path, usize) -> Outcome<Box<dyn Appender>>,
    /// How it keeps many events, if it does.
    pub keeping: Option<Keeping>,
}

/// How a store is filled, and opened again.
#[derive(Clone, Copy)]
pub struct Keeping {
    /// Fills an empty folder.
    pub load: fn(&Path, &mut dyn Iterator<Item = Entry<'_>>) -> Outcome<()>,
    /// Opens a full one.
    pub open: fn(&Path) -> Outcome<Box<dyn Loaded>>,
}

/// All that were built.
#[must_use]
pub const fn all() -> &'static [Rival] {
    #[cfg(feature = "rivals")]
    return &[sqlite::RIVAL, redb::RIVAL, fjall::RIVAL, raft_engine::RIVAL, okaywal::RIVAL];
    #[cfg(not(feature = "rivals"))]
    &[]
}

/// An error as text.
#[cfg(feature = "rivals")]
fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
