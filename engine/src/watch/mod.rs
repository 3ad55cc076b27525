//! Changes of files, told by the operating system. A notification is a hint: it may be lost, merged or doubled, and
//! carries no content; who is told looks for himself.
//!
//! | what | how |
//! |---|---|
//! | [`Watch`] | wakes whoever follows one folder: the log's readers |
//! | [`Files`], [`Tree`] | the files of a [`Selection`]: hints at changes of them, and what is in them |
//! | [`Settling`] | when a file that changes has come to rest |
//!
//! On Linux whoever waits is woken by the kernel itself, with no thread between: a follower is as fast as that. On other
//! systems the crate notify speaks to whatever they have.

mod files;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg_attr(not(target_os = "linux"), path = "notices_elsewhere.rs")]
mod notices;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", expect(unreachable_pub, reason = "here only its tests use it"))]
mod notified;
mod selection;
mod settle;
mod tree;

pub use files::{Files, Hints, Look, NoNotice, Scan, Stamp};
#[cfg(target_os = "linux")]
pub use kernel::Watch;
#[cfg(not(target_os = "linux"))]
pub use notified::Watch;
pub use selection::Selection;
pub use settle::Settling;
pub use tree::Tree;
