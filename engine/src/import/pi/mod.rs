//! Sessions of pi, format 1 to 3, which are also the transcripts of OpenClaw. Format 1 is a list without ids; 2 and 3
//! are trees of entries with `id` and `parentId`, of which the order in the file counts here and parents are annotation.
//!
//! | entry | event |
//! |---|---|
//! | `session` | `session.opened`; in format 1 also `session.patched` for the model and thinking level named there |
//! | `message` of a user, an assistant, the system, a tool | `turn`, empty replies of aborted runs too |
//! | `message` of a shell command run by the user | `turn` of the user: `$ command`, then the output |
//! | `message` of an extension (`custom`, `hookMessage`), `custom_message` | `turn` of the system |
//! | `compaction`, `branch_summary`, and messages of such | `turn` of the system with the summary |
//! | `model_change`, `thinking_level_change`, `session_info` | `session.patched` |
//! | `custom`, `label`, and whatever is not known | `x.pi.<type>` or `x.openclaw.<type>`: kept, and no part of the context |
//!
//! Every entry becomes one event, whose `source` names the bytes it was made from and holds the fields that the event
//! does not carry. Nothing of an entry is in neither.

mod entry;
mod event;
mod plan;

pub(crate) use entry::{Entry, Kind};
pub(crate) use event::{
    Body, Call, Context, Draft, Flaw, Usage, absent, calls, content, draft, string,
};
pub(crate) use plan::plan;
