//! Support of the whole-product tests.

pub mod conformance;
