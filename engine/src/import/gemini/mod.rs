//! Sessions of Gemini CLI: `tmp/<project>/chats/session-*.json`, one object with a list of messages, and since 0.40
//! `session-*.jsonl`, a header, messages and changes of the header, one a line.
//!
//! | record | event |
//! |---|---|
//! | header, or the object without its messages | `session.opened` |
//! | message of the user | `turn` of the user |
//! | message of the model (`gemini`) | `turn`, and for each of its tool calls with a result a `turn` of that |
//! | message of the program (`info`, `warning`, `error`) | `turn` of the system |
//! | a message that was told before, with more in it | a piece of the same message: only what is new of it |
//! | `$set` and whatever is not known | `x.gemini.<type>`: kept, and no part of the context |
//!
//! A session has the key `gemini:<id>`; a sub-agent, which lies in a folder named after the session that spawned it,
//! `agent:gemini:subagent:<id>`. Both forms of one session have the same ids, so that one is not imported beside the other.

mod event;
mod plan;

pub(crate) use event::Gemini;
pub(crate) use plan::plan;
