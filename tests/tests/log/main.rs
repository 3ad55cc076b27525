//! The log on a disk that fails: power losses, killed processes, failed syncs, full disks and damage. Every run comes
//! from a seed, and a failure prints it.
#![expect(clippy::unwrap_used, reason = "a test that is set up wrongly is to stop")]

mod counter;
mod crashes;
mod damage;
mod differential;
mod explore;
mod failed_syncs;
mod field;
mod full;
mod interleavings;
mod machine;
mod repair;
