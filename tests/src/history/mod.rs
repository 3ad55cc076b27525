//! What callers were told, what the disk holds, and whether the two agree.

#![expect(clippy::expect_used, reason = "a test that is set up wrongly is to stop")]

mod check;
mod found;
mod told;

pub use check::{Wrong, bytes_are_kept, only_whole_lines, prefix_of, told_is_there, torn_is_named};
pub use found::{Found, FoundLine, path, segments, torn};
pub use told::Told;
