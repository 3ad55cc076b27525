//! Work that is interrupted anywhere: simulated workers do what the work at hand says, several at a time, and die between
//! any two steps; appends fail, having happened or not; agents, sinks and the clock do what they like. When everything has
//! come to rest, every thing that was accepted has one end, and nothing was sent twice that may have arrived.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin fails")]

mod agents;
mod check;
mod flaky;
mod real;
mod seeds;
mod sinks;
mod workers;
mod world;
