//! Runs as a pure step: what is at hand, what comes in, the moment, and what is to be appended. A run is one turn of an
//! agent's work on one session. It is asked for, claimed by one worker, started, and ends once; what follows from its end
//! stands in the same batch. Nothing here starts a process, sends anything, or reads a clock: a worker looks at the work
//! at hand, does what it says, and records what came of it.
//!
//! - Intent is durable before anything happens, and every accepted thing has exactly one end.
//! - Runs of one session are serial. How many children there are is decided under the append lock.
//! - The end of a run is a fact (exit, signal, deadline, a dead worker), never read from what a model says.
//! - A try to send is recorded before it is made. One whose end nobody knows is never made again by itself.

pub mod announce;
mod claim;
mod end;
mod exchange;
mod outbound;
mod prompt;
mod rules;
mod send;
mod spawn;
mod stage;
mod way;

pub use claim::{Claimed, Claimer, Killed, Starting, claim, claim_again, kill, start};
pub use end::{Earlier, End, Finished, finish};
pub use outbound::{EXPIRES, TRY_AGAIN, Trial, Tried, Wording, attempt, give_up, tried};
pub use prompt::fenced;
pub use rules::{AnnounceWay, LOG, Rules};
pub use send::{Asked, Reason, Requester, Send, send};
pub use spawn::{Limits, Spawn, spawn};
pub use stage::{Added, Batch, Stage, Views, decide};
pub use way::address;

#[cfg(test)]
mod tests;
