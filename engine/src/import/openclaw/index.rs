//! The index of an agent's sessions, `sessions.json`: from keys to the sessions that they stand for now.

use std::borrow::Cow;
use std::path::Path;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::import::damage::{Damage, DamageClass};
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

/// An index as it was read.
pub(crate) struct Index {
    /// Its rows; `None` when it is no index: without it nobody knows which keys the transcripts have, and importing them
    /// under others could not be taken back.
    pub(crate) rows: Option<Vec<Row>>,
    pub(crate) damages: Vec<Damage>,
}

/// Reads an index. What of it is no row is damage.
///
/// # Errors
/// Whatever reading the file meets.
pub(crate) fn read(tree: &dyn SourceTree, path: &Path, name: &str) -> Result<Index> {
    let file = registry::whole(tree, path)?;
    let text = &file.text;
    let damage = |class, offset: usize, bytes: usize, recovered, detail: String| Damage {
        class,
        file: name.to_owned(),
        offset: offset as u64,
        bytes: bytes as u64,
        recovered,
        detail,
    };
    let mut damages = Vec::from_iter(file.repaired(name));
    let json = text.strip_prefix('\u{feff}').unwrap_or(text);
    let before = text.len() - json.len();
    let fields: Fields<'_> = match serde_json::from_str(json) {
        Ok(fields) => fields,
        Err(e) => {
            let offset = before + place(json, &e);
            let detail = format!(
                "{e}; its sessions are left alone: restore it, or take it out of the folder to import them under their own ids"
            );
            let bytes = text.len().saturating_sub(offset);
            damages.push(damage(DamageClass::BrokenIndex, offset, bytes, 0, detail));
            return Ok(Index { rows: None, damages });
        }
    };
    if before > 0 {
        let detail = "a byte order mark".to_owned();
        damages.push(damage(DamageClass::ByteOrderMark, 0, before, 1, detail));
    }
    let mut rows = Vec::new();
    for (key, value) in fields.iter() {
        let spelled = value.get();
        let offset = spelled.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        let mended = registry::mended(spelled, offset, name);
        let fields = mended.as_ref().and_then(|(text, _)| Fields::parse(text));
        let read = fields.map(|fields| row(key, &file, spelled, offset, fields));
        damages.extend(mended.iter().flat_map(|(_, damages)| damages.clone()));
        match read {
            Some(Some(row)) => rows.push(row),
            Some(None) => {
                let detail = format!("the entry of {key:?} names no session");
                damages.push(damage(DamageClass::MissingField, offset, spelled.len(), 0, detail));
            }
            None => {
                let detail = format!("the entry of {key:?} is no object");
                damages.push(damage(DamageClass::WrongType, offset, spelled.len(), 0, detail));
            }
        }
    }
    Ok(Index { rows: Some(rows), damages })
}

/// Where a parser stopped, in bytes.
fn place(json: &str, error: &serde_json::Error) -> usize {
    let lines = json.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    (before + error.column().saturating_sub(1)).min(json.len())
}

fn row(
    key: &str,
    file: &registry::Whole,
    spelled: &str,
    offset: usize,
    mut fields: Fields<'_>,
) -> Option<Row> {
    let (bytes, sha256) = (spelled.len() as u64, file.sha256(offset, spelled.len()));
    let offset = offset as u64;
    let session_id = fields.take_text("sessionId").filter(|id| !id.is_empty())?.into_owned();
    let updated = fields.get("updatedAt").and_then(fields::time);
    let transcript = fields.take_text("sessionFile").map(Cow::into_owned);
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
        file: transcript,
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
    const NAMES: [(&str, &str); 13] = [
        ("label", "label"),
        ("displayName", "displayName"),
        ("sendPolicy", "sendPolicy"),
        ("model", "model"),
        ("modelOverride", "model"),
        ("contextTokens", "contextTokens"),
        ("thinkingLevel", "thinkingLevel"),
        ("verboseLevel", "verboseLevel"),
        ("systemSent", "systemSent"),
        ("abortedLastRun", "abortedLastRun"),
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
