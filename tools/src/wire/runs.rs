//! Arguments and replies of the tools that make agents work.

use annals_engine::session::event::RunStatus;
use annals_engine::session::index::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::visibility::Told;

/// Arguments of `sessions_send`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendArgs {
    /// The session: its key, or the id of one of its parts. Give this or `label`.
    pub session_key: Option<String>,
    /// The label of the session.
    pub label: Option<String>,
    /// The agent whose session has the label; any that you see when absent.
    pub agent_id: Option<String>,
    /// What is said to it.
    pub message: String,
    /// How long to wait for the reply, in seconds; 0 to go on at once; 30 when absent. The work goes on after it.
    #[schemars(extend("minimum" = 0, "maximum" = 3600))]
    pub timeout_seconds: Option<u64>,
    /// A key of your own: a repeat with the same key and message is the same send.
    pub idempotency_key: Option<String>,
}

/// The reply of `sessions_send`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SendReply {
    /// The run; absent when nothing was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// `accepted`, `ok`, `timeout`, `error` or `forbidden`.
    pub status: &'static str,
    /// The session that it went to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// What it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// Whether it ended well without saying anything.
    #[serde(rename = "no_reply", skip_serializing_if = "std::ops::Not::not")]
    pub no_reply: bool,
    /// Whether the reply was a silent token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub silent: bool,
    /// Whether the message is with the session, whatever becomes of the reply.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// How the run ended, when not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_status: Option<RunStatus>,
    /// Why, as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How far the work is, when the reply did not come in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<AtWork>,
    /// What becomes of the announce after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Pending>,
    /// Who works on it, when nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// How far work is that is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AtWork {
    /// `requested`, `claimed` or `running`.
    pub state: &'static str,
    /// The run before it, which the session is at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// What was told last of that work: a retry of the model, another report of progress, a line of diagnostics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sign: Option<String>,
}

/// What is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// `pending`.
    pub status: &'static str,
    /// `announce`.
    pub mode: &'static str,
}

impl Pending {
    /// An announce.
    pub const ANNOUNCE: Self = Self { status: "pending", mode: "announce" };
}

/// Arguments of `sessions_spawn`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpawnArgs {
    /// What the child is to do.
    pub task: String,
    /// A short name for it.
    pub label: Option<String>,
    /// The agent that does it; your own when absent.
    pub agent_id: Option<String>,
    /// The model that does it.
    pub model: Option<String>,
    /// How hard it thinks.
    pub thinking: Option<String>,
    /// Its time limit in seconds; 0 for none.
    pub run_timeout_seconds: Option<u64>,
    /// Whether it gets a thread of its own on your channel.
    #[serde(default)]
    pub thread: bool,
    /// Whether it is one run or a session that stays open: `session` needs a thread.
    #[schemars(extend("enum" = ["run", "session"]))]
    pub mode: Option<String>,
    /// Whether it leaves the lists at once after its announce; `keep` when absent.
    #[schemars(extend("enum" = ["delete", "keep"]))]
    pub cleanup: Option<String>,
    /// Whether it must be confined; `inherit` when absent.
    #[schemars(extend("enum" = ["inherit", "require"]))]
    pub sandbox: Option<String>,
    /// Files for it.
    #[serde(default)]
    pub attachments: Vec<AttachmentArg>,
    /// Where they lie.
    pub attach_as: Option<AttachAs>,
    /// A key of your own: a repeat with the same key and task is the same spawn.
    pub idempotency_key: Option<String>,
}

/// A file for a child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttachmentArg {
    /// Its name, without a path.
    pub name: String,
    /// What is in it.
    pub content: String,
    /// How `content` is spelled; `utf8` when absent.
    #[schemars(extend("enum" = ["utf8", "base64"]))]
    pub encoding: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
}

/// Where attachments lie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttachAs {
    /// A folder below the child's own.
    pub mount_path: String,
}

/// The reply of `sessions_spawn`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpawnReply {
    /// `accepted`, `error` or `forbidden`.
    pub status: &'static str,
    /// The run; absent when there is no child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_session_key: Option<String>,
    /// What comes next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// What was handed to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Receipt>,
    /// Why not, as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Why not, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Who works on it, when nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

/// A file that was handed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Its name.
    pub name: String,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// Where it lies.
    pub path: String,
}

/// Arguments of `agents_list`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentsArgs {}

/// The reply of `agents_list`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentsReply {
    /// The caller's own agent.
    pub requester: String,
    /// Whether children may be of any agent.
    pub allow_any: bool,
    /// The agents that children may be of.
    pub agents: Vec<AgentRow>,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRow {
    /// Its id.
    pub id: String,
    /// The name that people see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it has a command, so that it can be run.
    pub configured: bool,
}

/// Arguments of `session_status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StatusArgs {
    /// The session; your own when absent.
    pub session_key: Option<String>,
    /// The `cursor` of an earlier answer: what happened since is told.
    pub changes_since: Option<String>,
}

/// The reply of `session_status`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReply {
    /// The session's row.
    pub session: Row,
    /// Its runs that have not ended, the first asked for first.
    pub open_runs: Vec<OpenRun>,
    /// Runs of its children whose announces are on their way.
    pub pending_announces: Vec<String>,
    /// What happened since the cursor that was given, the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<ChangeRow>>,
    /// What is missing of the changes; absent when nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// What to ask for later changes with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// How far the caller sees; absent for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Told>,
    /// The position in the log up to which this is true.
    pub as_of: u64,
}

/// A run that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenRun {
    /// The run.
    pub run_id: String,
    /// What caused it.
    pub kind: &'static str,
    /// `requested`, `claimed` or `running`.
    pub state: &'static str,
    /// The session that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester_key: Option<String>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangeRow {
    /// Its position in the log.
    pub seq: u64,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it says, in a line.
    pub summary: String,
}

/// Changes that are not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// How many of them there are: they are older than the first that is told.
    pub left_out: u64,
    /// Positions that cannot be read.
    pub lost: u64,
}

/// Arguments of `runs_wait`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitArgs {
    /// The runs, at most 32.
    #[schemars(extend("minItems" = 1, "maxItems" = 32))]
    pub run_ids: Vec<String>,
    /// How long to wait for all of them to end, in seconds; 30 when absent.
    #[schemars(extend("minimum" = 0, "maximum" = 60))]
    pub timeout_seconds: Option<u64>,
}

/// The reply of `runs_wait`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitReply {
    /// Each run, in the order in which it was asked for.
    pub runs: Vec<WaitedRun>,
    /// Whether all have ended.
    pub all_ended: bool,
}

/// A run that was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitedRun {
    /// The run.
    pub run_id: String,
    /// The session that it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// `requested`, `claimed`, `running`, or how it ended; `not_found`.
    pub status: &'static str,
    /// Why, as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
    /// How long it ran, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_ms: Option<u64>,
}

/// Arguments of `runs_cancel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelArgs {
    /// The run of a child that you spawned, or of a message that you sent.
    pub run_id: String,
}

/// The reply of `runs_cancel`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelReply {
    /// The run.
    pub run_id: String,
    /// `killed` when it ended now, `kill_requested` when its worker ends it, `ended` when it had ended before.
    pub status: &'static str,
}
