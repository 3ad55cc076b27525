//! The index of an agent's sessions, `sessions.json`: from keys to the sessions that they stand for now.

use std::borrow::Cow;
use std::path::Path;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::hex;
use crate::import::fields::{self, Fields};
use crate::import::tree::SourceTree;
use crate::session::event::{ChatType, Json, Members, Origin, Source};

use super::registry;

/// A row's field that is longer is told by its length alone, in bytes.
const FIELD_BYTES_MAX: usize = 16 << 10;

/// What the index says of a key.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The key as it is spelled.
    pub(crate) key: String,
    pub(crate) session_id: String,
    pub(crate) updated: Option<Timestamp>,
    /// The name of the transcript, where it is not `<session id>.jsonl`.
    pub(crate) file: Option<String>,
    pub(crate) spawned_by: Option<String>,
    /// The session beside which a person began this one.
    pub(crate) begun_beside: Option<String>,
    pub(crate) spawn_depth: Option<u64>,
    pub(crate) channel: Option<String>,
    pub(crate) chat_type: Option<ChatType>,
    pub(crate) label: Option<String>,
    pub(crate) display_name: Option<String>,
    pub(crate) origin: Option<Origin>,
    /// The sessions that this key stood for before, where it says so.
    pub(crate) family: Vec<String>,
    /// The fields of the row that a session can be patched with.
    pub(crate) set: Members,
    /// Where the row stands, with its other fields. The file is named by whoever knows its name.
    pub(crate) source: Source,
}

/// Reads an index.
///
/// # Errors
/// `Corrupt` when it is none: without it nobody knows which keys the transcripts have, and importing them under others
/// could not be taken back.
pub(crate) fn read(tree: &dyn SourceTree, path: &Path) -> Result<Vec<Row>> {
    let text = registry::whole(tree, path)?;
    let fields = Fields::parse(&text).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "the index of the sessions cannot be read").path(path).hint(
            "restore it, or take it out of the folder to import its sessions under their own ids",
        )
    })?;
    let row = |(key, value): (&str, &RawValue)| {
        let offset = value.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
        row(key, value.get(), offset as u64)
    };
    Ok(fields.iter().filter_map(row).collect())
}

fn row(key: &str, text: &str, offset: u64) -> Option<Row> {
    let mut fields = Fields::parse(text)?;
    let (bytes, sha256) = (text.len() as u64, hex(&Sha256::digest(text)));
    let session_id = fields.take_text("sessionId").filter(|id| !id.is_empty())?.into_owned();
    let updated = fields.get("updatedAt").and_then(fields::time);
    let file = fields.take_text("sessionFile").map(Cow::into_owned);
    let family = fields.get("usageFamilySessionIds");
    let family = family.and_then(|ids| serde_json::from_str(ids.get()).ok()).unwrap_or_default();
    let address = |name: &str| fields.get(name).and_then(|value| registry::address(value.get()));
    let last = Origin {
        channel: fields.text("lastChannel").map(Cow::into_owned),
        to: fields.text("lastTo").map(Cow::into_owned),
        account_id: fields.text("lastAccountId").map(Cow::into_owned),
        thread_id: None,
    };
    let last = Some(last).filter(|origin| *origin != Origin::default());
    let origin = address("deliveryContext").or(last).or_else(|| address("origin"));
    let text = |name: &str| fields.text(name).map(Cow::into_owned);
    let (label, display_name) = (text("label"), text("displayName"));
    let channel = text("channel");
    let chat_type = text("chatType").and_then(|word| ChatType::from_word(&word));
    let (spawned_by, begun_beside) = (text("spawnedBy"), text("parentSessionKey"));
    let spawn_depth = fields.get("spawnDepth").and_then(fields::count);
    Some(Row {
        key: key.to_owned(),
        session_id,
        updated,
        file,
        spawned_by,
        begun_beside,
        spawn_depth,
        channel,
        chat_type,
        label,
        display_name,
        origin,
        family,
        set: set(&mut fields),
        source: Source {
            file: String::new(),
            offset,
            bytes,
            sha256,
            rest: Some(rest(&fields)).filter(|rest| !rest.0.is_empty()),
        },
    })
}

/// Takes the fields that a session is patched with, under their names there.
fn set(fields: &mut Fields<'_>) -> Members {
    const NAMES: [(&str, &str); 11] = [
        ("label", "label"),
        ("displayName", "displayName"),
        ("sendPolicy", "sendPolicy"),
        ("model", "model"),
        ("modelOverride", "model"),
        ("contextTokens", "contextTokens"),
        ("thinkingLevel", "thinkingLevel"),
        ("verboseLevel", "verboseLevel"),
        ("lastChannel", "lastChannel"),
        ("lastTo", "lastTo"),
        ("deliveryContext", "deliveryContext"),
    ];
    let mut set: Vec<(String, Json)> = Vec::new();
    for (from, to) in NAMES {
        let Some(value) = fields.take(from).filter(|value| value.get() != "null") else { continue };
        set.retain(|(name, _)| name != to);
        set.push((to.to_owned(), Json::verbatim(value)));
    }
    Members(set)
}

/// The other fields of a row. Copies of prompts and reports can be long, and are no part of a session.
fn rest(fields: &Fields<'_>) -> Members {
    let mut rest = fields.members();
    for (_, value) in &mut rest.0 {
        let bytes = value.as_str().len();
        if bytes > FIELD_BYTES_MAX
            && let Ok(short) = Json::of(&format!("{bytes} bytes, left out"))
        {
            *value = short;
        }
    }
    rest
}
