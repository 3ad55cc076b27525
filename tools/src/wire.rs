//! Arguments and replies as they are on the wire. Only these types know JSON names.

pub mod runs;

use annals_engine::session::event::{Role, SessionKind};
use annals_engine::session::history::Message;
use annals_engine::session::index::Row;
use annals_engine::session::search::Hit;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::visibility::Told;

/// Arguments of `sessions_list`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListArgs {
    /// Kinds of sessions, any of these; none means all.
    #[serde(default)]
    #[schemars(extend("items" = words(SessionKind::ALL.iter().map(|kind| kind.as_str()))))]
    pub kinds: Vec<String>,
    /// The most rows; 50 when absent.
    #[schemars(extend("minimum" = 1, "maximum" = 200))]
    pub limit: Option<usize>,
    /// Only sessions in which something happened in the last so many minutes.
    pub active_minutes: Option<u64>,
    /// How many of the last messages come with each row; 0 when absent.
    pub message_limit: Option<usize>,
    /// Archived sessions; left out when absent.
    #[serde(default)]
    pub archived: ArchivedArg,
    /// The `cursor` of an earlier answer.
    pub cursor: Option<String>,
}

/// Which archived sessions are wanted: `false`, `true` or `"all"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub enum ArchivedArg {
    /// None.
    #[default]
    Without,
    /// Nothing else.
    Only,
    /// Them too.
    All,
}

impl JsonSchema for ArchivedArg {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Archived".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [false, true, "all"] })
    }
}

/// The schema of one of these words.
fn words<'a>(words: impl Iterator<Item = &'a str>) -> serde_json::Value {
    serde_json::json!({ "type": "string", "enum": words.collect::<Vec<_>>() })
}

impl TryFrom<serde_json::Value> for ArchivedArg {
    type Error = &'static str;

    fn try_from(value: serde_json::Value) -> Result<Self, Self::Error> {
        match value {
            serde_json::Value::Bool(false) => Ok(Self::Without),
            serde_json::Value::Bool(true) => Ok(Self::Only),
            serde_json::Value::String(word) if word == "all" => Ok(Self::All),
            _ => Err("archived is false, true or \"all\""),
        }
    }
}

/// The reply of `sessions_list`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListReply {
    /// The rows, the last changed first.
    pub sessions: Vec<Listed>,
    /// How many sessions fit, those on other pages counted.
    pub total: usize,
    /// Whether more rows follow.
    pub truncated: bool,
    /// Whether older messages were left out of the rows, for all of them together are larger than an answer may be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub messages_truncated: bool,
    /// What to ask for the next page with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Sessions of which nothing but their name is left, so that they have no row; told to the operator.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: usize,
    /// How far the caller sees; absent for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Told>,
    /// The position in the log up to which this is true.
    pub as_of: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands the field over by reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A row of a list.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// The row.
    #[serde(flatten)]
    pub row: Row,
    /// Its last messages, when they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
}

/// Arguments of `sessions_history`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HistoryArgs {
    /// The session: its key, or the id of one of its parts.
    pub session_key: String,
    /// The most messages; 50 when absent.
    #[schemars(extend("minimum" = 1, "maximum" = 200))]
    pub limit: Option<usize>,
    /// Whether what tools answered is shown.
    #[serde(default)]
    pub include_tools: bool,
    /// The `cursor` of an earlier answer: the page before it is wanted.
    pub cursor: Option<String>,
}

/// The reply of `sessions_history`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryReply {
    /// The session's key.
    pub session_key: String,
    /// The part that is shown; absent when all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The messages, the oldest first.
    pub messages: Vec<Message>,
    /// How many messages there are on all pages.
    pub total: u64,
    /// Whether older messages were left out.
    pub truncated: bool,
    /// What to ask for the page before with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Ids of the session's other parts, readable by these ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_parts: Vec<String>,
    /// Whether events of the session are known to be missing.
    pub damaged: bool,
    /// How far the caller sees; absent for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Told>,
    /// The position in the log up to which this is true.
    pub as_of: u64,
}

/// Arguments of `sessions_search`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchArgs {
    /// Words that must all occur, in any order and whatever the case of their letters; double quotes keep words together.
    pub query: String,
    /// The most turns; 10 when absent.
    #[schemars(extend("minimum" = 1, "maximum" = 25))]
    pub limit: Option<usize>,
    /// Only this session: its key, or the id of one of its parts.
    pub session_key: Option<String>,
    /// Only turns of this role.
    #[schemars(extend("enum" = Role::ALL.iter().map(|role| role.as_str()).collect::<Vec<_>>()))]
    pub role: Option<String>,
    /// Only what happened at this time or later, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Only what happened before this time, in milliseconds since 1970.
    pub until: Option<i64>,
}

/// The reply of `sessions_search`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchReply {
    /// The turns, the newest first.
    pub results: Vec<Hit>,
    /// Whether there may be older ones.
    pub truncated: bool,
    /// Whether events are missing in what was looked through.
    pub damaged: bool,
    /// How far the caller sees; absent for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Told>,
    /// The position in the log up to which this is true.
    pub as_of: u64,
}
