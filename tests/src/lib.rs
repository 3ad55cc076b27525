//! Support of the whole-product tests.
