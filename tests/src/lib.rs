//! Support of the whole-product tests: what every store must do, what holds for any bytes, the
//! faulty disk, and what must hold after it failed.

pub mod conformance;
pub mod disk;
pub mod fuzz;
pub mod history;
pub mod model_api;
pub mod protocol;
pub mod sessions;
pub mod watched;
