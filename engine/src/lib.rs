//! annals: an append-only, checksummed event log in plain JSON lines, and what is folded from it.

pub mod clock;
pub mod engine;
pub mod error;
pub mod format;
pub mod id;
pub mod log;
pub mod projection;
pub mod session;
pub mod storage;
pub mod store;
pub mod watch;

pub use engine::Engine;
pub use error::{Error, ErrorKind, Result};
