//! What a store costs as it grows, counted and never timed: bytes that are read for an answer, bytes that stay in the
//! folder, what killed processes leave there, and what a full disk does to what can be made again.
#![expect(clippy::unwrap_used, reason = "a store that cannot be used fails the test")]
#![expect(clippy::disallowed_methods, reason = "the tests look at the files and start processes")]

mod chat;
mod full;
mod growth;
mod killed;
mod layout;
mod meter;
mod opening;
mod reads;
mod totals;
