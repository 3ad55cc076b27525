//! The domain: what the events mean, and the views that are folded from them. It reads no clock, no file and no
//! configuration; what it needs of these is handed in.

pub mod audit;
pub mod change;
pub mod content;
pub mod context;
pub mod deeds;
pub mod event;
pub mod history;

pub mod index;
pub mod key;
pub mod lineage;
pub mod moment;
pub mod outbox;
pub mod policy;
pub mod push;
pub mod reset;
pub mod run;
pub mod runs;
pub mod search;
pub mod silent;
pub mod transcript;
pub mod tree;
pub mod upkeep;
pub mod usage;
pub mod watching;
pub mod work;

#[cfg(test)]
mod scene;
