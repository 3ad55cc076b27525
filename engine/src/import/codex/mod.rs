//! Rollouts of Codex, up to version 0.149: `sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl` and `archived_sessions/`, one
//! record a line, `{timestamp, type, payload}`. The first versions wrote the payload alone.
//!
//! | record | event |
//! |---|---|
//! | `session_meta`, the first one | `session.opened`; that of the session which this one was forked from is kept |
//! | `response_item` of a user | `turn` of the user; from inside where the program wrote the text itself |
//! | `response_item` of a developer, `compacted` | `turn` of the system |
//! | `response_item` of the assistant: text, reasoning, calls of tools | `turn`; what one answer of the model consists of is one message |
//! | `response_item` with what a tool answered | `turn` of a tool's result |
//! | `response_item` of another agent (`agent_message`) | `turn` of the user, from another session |
//! | `turn_context`, `thread_name_updated` | `session.patched` |
//! | `token_count` | a piece of the message before it, with what was used since the last count; one that tells nothing new is kept |
//! | `user_message`, `agent_message`, `agent_reasoning` that repeat an item | none: counted in the report as passed over |
//! | everything else | `x.codex.<type>`: kept, and no part of the context |
//!
//! # Sessions
//!
//! A session has the key `codex:<id>`, a sub-agent `agent:codex:subagent:<id>` and the run `run:<id>`. A fork repeats the
//! records of the session that it was forked from; they are taken, and their usage is not counted twice. A session that
//! was archived is archived here too. Rollouts are compressed once they are old; those are refused by name.

mod event;
mod item;
mod plan;
mod usage;

pub(crate) use event::{Codex, hash_of};
pub(crate) use plan::plan;
