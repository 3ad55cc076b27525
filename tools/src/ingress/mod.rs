//! What comes in from outside, before anything of it is stored or run.

pub mod gates;
pub mod inbound;
pub(crate) mod signature;
pub mod webhook;
