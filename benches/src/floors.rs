//! The least that the machine must do for the same effect, written by hand: no lock between processes, no versions, no
//! ids, no checks beyond those named.

pub mod commit;
pub mod group;
pub mod heads;
pub mod map;
pub mod point;
pub mod shared;
