//! Runs of agents: an agent is a command that the configuration names, and what it prints is read by its dialect.
//!
//! | module | what |
//! |---|---|
//! | [`spec`], [`arguments`] | what the configuration says of an agent, and how its arguments are filled in |
//! | [`runner`] | the one place that starts an agent's process: it listens, limits, ends it, and tells facts |
//! | [`deliver`] | the sinks: a command, an address, a file, or the log |
//! | [`dialect`] | what the process prints, read as a reply |
//! | [`setup`], [`worker`] | the settings of all of it; who claims runs, has them made, and records what came of them |
//! | [`fate`] | whether anybody is at a claimed run any more |
//! | [`staff`] | sees to it that a worker is there |
//! | [`process`], [`reaper`] | which process is which across restarts, and the end of those that a dead worker left |
//!
//! Only the worker appends to a log, and nothing makes a runtime: whoever calls brings one.

pub mod arguments;
pub mod attachments;
pub mod deliver;
pub mod dialect;
pub mod fate;
mod preset;
pub mod process;
mod prompt;
pub mod reaper;
pub mod runner;
pub mod setup;
pub mod spec;
pub mod staff;
pub mod worker;

pub use deliver::Sinks;
pub use fate::Machine;
pub use process::ProcessIdentity;
pub use runner::{Heard, Job, Outcome, Runner, Stop};
pub use setup::Setup;
pub use spec::AgentSpec;
pub use staff::OnCall;
pub use worker::{Until, Worker};
