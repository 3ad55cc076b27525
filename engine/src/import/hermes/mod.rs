//! Sessions of Hermes from before they moved to SQLite: `sessions/session_*.json`, one object with a list of messages.
//!
//! | record | event |
//! |---|---|
//! | the object without its messages | `session.opened`; instructions and tools are kept beside it |
//! | message of the user, the system | `turn` of these |
//! | message of the assistant | `turn`, with its tool calls as blocks |
//! | message of a tool | `turn` of a tool's result |
//! | `session_meta` and whatever is not known | `x.hermes.<role>`: kept, and no part of the context |
//!
//! A session has the key `hermes:<id>`. Messages have no ids and mostly no times: they are known again by their place and
//! their bytes, and where they tell no time they have that of the session's beginning, since when they were said.

mod event;
mod plan;

pub(crate) use event::Hermes;
pub(crate) use plan::plan;
