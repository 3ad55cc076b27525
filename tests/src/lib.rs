//! Support of the whole-product tests: what every store must do, what holds for any bytes, and
//! the faulty disk.

pub mod conformance;
pub mod disk;
pub mod fuzz;
