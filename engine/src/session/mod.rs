//! The domain: what the events mean, and the views that are folded from them. It reads no clock, no file and no
//! configuration; what it needs of these is handed in.

pub mod audit;
pub mod change;
pub mod content;
pub mod context;
pub mod event;
pub mod history;

pub mod index;
pub mod key;
pub mod policy;
pub mod push;
pub mod reset;
pub mod search;
pub mod transcript;
pub mod upkeep;

#[cfg(test)]
mod scene;
