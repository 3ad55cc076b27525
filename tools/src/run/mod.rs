//! Runs of agents: an agent is a command that the configuration names, and what it prints is read by its dialect.

pub mod dialect;
