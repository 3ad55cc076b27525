//! Sessions of Claude Code, 1.0.98 to 2.1: rows of JSON, one file a session, sub-agents in files of their own
//! (`<session>/subagents/agent-*.jsonl`, or `agent-*.jsonl` beside the session) or, in older versions, as side chains
//! among the rows of the session that spawned them.
//!
//! | row | event |
//! |---|---|
//! | `user` | `turn` of the user; from outside unless the row says that the program made it (`isMeta`, `origin`) |
//! | `user` with results of tools | one `turn` of a tool's result for each result |
//! | `user` with a summary of what was compacted | `turn` of the system |
//! | `assistant` | `turn`; rows of one API message have the message's id and are one message with one usage to readers |
//! | `attachment` of a prompt that waited | `turn` of the user |
//! | `custom-title`, `ai-title`, `summary` of a row read before | `session.patched` with the display name |
//! | `progress`, `file-history-snapshot`, `last-prompt` | none: counted in the report as passed over |
//! | `system`, other attachments, and whatever is not known | `x.claude-code.<type>`: kept, and no part of the context |
//!
//! Progress tells again what hooks and sub-agents tell themselves, snapshots are the program's own undo, and a last
//! prompt is a copy. Order is the file's: rows of a branch that was left stay where they stand, and `parentUuid` is
//! annotation.
//!
//! # Sessions
//!
//! A session has the key `claude-code:<id>`, a sub-agent `agent:claude-code:subagent:<id>`: its `agentId`, which in older
//! versions is short and unique in its session only, and stands behind that session's id then; or the id of the row that
//! a side chain begins with. A file whose first row is of a side chain is one session, whatever its other rows are. A
//! sub-agent's run is `run:<id>`; the call that spawned it is found by the `agentId` in its result, or by its prompt.
//!
//! # Rows once
//!
//! A row's event has its id from the row's `uuid` alone, whatever session it stands in. A session that was resumed under
//! another id repeats the rows of the one before: it is opened with that one as its parent, and the rows stay there. A row
//! of an API message whose other rows were imported earlier is one more event of that message.

use std::time::Duration;

mod event;
mod folder;
mod plan;
mod survey;
mod transcript;

pub(crate) use folder::{projects, refused, tell_apart};
pub(crate) use plan::plan;
pub(crate) use survey::{Lane, may_have_chains};
pub(crate) use transcript::{Rows, Transcript};

/// Rows of things that happen at once, as the results of parallel calls, stand in any order this close together.
pub(crate) const SLACK: Duration = Duration::from_secs(1);
