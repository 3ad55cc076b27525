//! Support of the whole-product tests: what every store must do, and the faulty disk.

pub mod conformance;
pub mod disk;
