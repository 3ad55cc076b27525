//! Runs of agents: an agent is a command that the configuration names, and what it prints is read by its dialect.
//!
//! | module | what |
//! |---|---|
//! | [`spec`], [`arguments`] | what the configuration says of an agent, and how its arguments are filled in |
//! | [`runner`] | the one place that starts an agent's process: it listens, limits, ends it, and tells facts |
//! | [`dialect`] | what the process prints, read as a reply |
//! | [`process`], [`reaper`] | which process is which across restarts, and the end of those that a dead worker left |
//!
//! Nothing here appends to a log, and nothing makes a runtime: whoever calls brings one.

pub mod arguments;
pub mod dialect;
pub mod process;
pub mod reaper;
pub mod runner;
pub mod spec;

pub use process::ProcessIdentity;
pub use runner::{Heard, Job, Outcome, Runner, Stop};
pub use spec::AgentSpec;
