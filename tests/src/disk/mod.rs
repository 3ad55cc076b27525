//! A disk that loses, tears and refuses what a real one may, and processes on it that can be stopped, killed and
//! interleaved. Everything is decided by a seed or by the test.
//!
//! What it keeps apart, after the assumptions that `annals_engine::storage` states:
//!
//! - per file, the page cache, the platter, and every version of each 512-byte piece and of the size since the last
//!   sync that succeeded, all of which a power loss chooses from on its own;
//! - per folder, the entries, and each creation, renaming and removal since the folder was last synced;
//! - per open description, which write-back errors it has been told of, and the lock.
//!
//! What it does not model: hard links, memory maps that change under their reader, and processes with several threads.

#![expect(clippy::expect_used, reason = "a test that is set up wrongly is to stop")]

mod call;
mod choose;
mod fault;
mod folder;
mod inode;
mod kernel;
mod machine;
mod schedule;
mod syscall;
mod view;

pub use call::{Call, Done, Op, Pid};
pub use choose::{Loss, every_loss};
pub use fault::{Cache, Chances, EIO, ENOSPC, Effect, Persisted, Rule, SyncFault};
pub use kernel::Kernel;
pub use machine::{Image, SimDisk};
pub use schedule::Stop;
pub use view::View;
