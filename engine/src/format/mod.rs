//! The log on disk, format 1: bytes to values and back.
//!
//! Placeholder for the prose.

pub mod control;
pub mod scan;
pub mod slot;

mod checksum;
mod line;
mod name;
mod payload;

pub use checksum::{TRAILER, crc32};
pub use line::{Fields, LINE_MAX, Line, LineFault, decode, encode, too_large};
pub use name::{
    APPEND_LOCK, BLOB_DIR, LOG_DIR, STORE_FILE, SYNC_LOCK, TORN_DIR, blob_path, segment_file,
    segment_first, segment_path,
};
pub use payload::{BlobRef, DEPTH_MAX, Payload, hex};
