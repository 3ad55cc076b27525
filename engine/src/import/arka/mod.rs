//! Sessions of Arka: `message-sessions/*.json`, one object for each chat with a list of its last turns, and
//! `subagents/<id>.json`, one object for each task that was given to a sub-agent.
//!
//! | record | event |
//! |---|---|
//! | the object of a chat without its turns | `session.opened`; its title `session.patched` |
//! | turn | `turn` of the user, the assistant, the system |
//! | the object of a sub-agent | `session.opened`, a `turn` with the task and one with the result, and its run |
//!
//! # Sessions
//!
//! A chat has the key `<channel>:<chat>`, under which it goes on here, and a sub-agent `agent:arka:subagent:<id>`, with the
//! run `run:<id>`. A chat that was reset has a part for each reset that was seen.
//!
//! # Files that are written anew
//!
//! Arka keeps the last turns of a chat and drops older ones, all of them when it is reset. What was imported stays; a
//! turn is known again by its role, its time and its text wherever it stands by now, and a record of a sub-agent by
//! the sub-agent's id. A sub-agent that was at work is `interrupted` by the import, and its result is added by a later one.

mod event;
mod plan;

pub(crate) use event::Arka;
pub(crate) use plan::plan;
