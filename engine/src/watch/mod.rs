//! Changes of files, told by the operating system. A notification is a hint: it may be lost, merged or doubled, and
//! carries no content; who is told looks for himself.
//!
//! On Linux whoever waits is woken by the kernel itself, with no thread between: a follower is as fast as that. On other
//! systems the crate notify speaks to whatever they have.

#[cfg(target_os = "linux")]
mod kernel;
#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(target_os = "linux", expect(unreachable_pub, reason = "here only its tests use it"))]
mod notified;

#[cfg(target_os = "linux")]
pub use kernel::Watch;
#[cfg(not(target_os = "linux"))]
pub use notified::Watch;
