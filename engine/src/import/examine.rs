//! What a file of JSON lines holds, whatever program wrote it: how many records, and everything about its lines and
//! fields that no program can have meant. Nothing is imported.

use std::path::Path;

use serde_json::value::RawValue;

use super::damage::{Damage, DamageClass};
use super::fields::{self, Fields};
use super::records::{Flaw, Found, Sink, Verdict, read_records};
use super::tree::SourceTree;
use crate::error::{Error, Result};
use crate::format::Payload;

/// What was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Records: objects, as many as there are on all lines together.
    pub records: u64,
    /// How long the file is, in bytes.
    pub bytes: u64,
    /// What is damaged, in the order in which it was found.
    pub damages: Vec<Damage>,
}

/// Examines a file. All damage is held: a file of nothing else takes memory in proportion.
///
/// # Errors
/// Whatever reading the file meets.
pub fn examine(tree: &dyn SourceTree, path: &Path) -> Result<Examined> {
    let failed = |e| Error::io("the file cannot be read", e).path(path);
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut notes = Notes { file, found: Examined::default() };
    let bytes = read_records(tree.open(path).map_err(failed)?, &mut notes)?;
    Ok(Examined { bytes, ..notes.found })
}

struct Notes {
    file: String,
    found: Examined,
}

impl Sink for Notes {
    fn record(&mut self, found: &Found<'_>) -> Result<Verdict> {
        let Some(fields) = Fields::parse(found.text) else {
            let json = serde_json::from_str::<serde::de::IgnoredAny>(found.text).is_ok();
            return Ok(match (json, found.text.starts_with('{')) {
                (true, false) => {
                    Verdict::Foreign(DamageClass::WrongType, "this is no object".to_owned())
                }
                _ => Verdict::Unfit,
            });
        };
        if !found.scanned && Payload::from_json(found.text).is_err() {
            return Ok(Verdict::Unfit);
        }
        self.found.records += 1;
        for (class, detail) in odd_fields(&fields) {
            let (offset, bytes) = (found.offset, found.raw.len() as u64);
            self.flaw(Flaw { class, offset, bytes, recovered: 1, detail: detail.into() })?;
        }
        Ok(Verdict::Taken)
    }

    fn is_record(&self, text: &str) -> bool {
        Fields::parse(text).is_some_and(|fields| fields.has("type") || fields.has("message"))
    }

    fn flaw(&mut self, flaw: Flaw) -> Result<()> {
        let Flaw { class, offset, bytes, recovered, detail } = flaw;
        let (file, detail) = (self.file.clone(), detail.into_owned());
        self.found.damages.push(Damage { class, file, offset, bytes, recovered, detail });
        Ok(())
    }
}

/// Fields that transcripts of all programs have under these names, where they are absent or of another type.
fn odd_fields(fields: &Fields<'_>) -> Vec<(DamageClass, String)> {
    let mut odd = Vec::new();
    let mut wrong = |name: &str, what: &str| {
        odd.push((DamageClass::WrongType, format!("{name} is not {what}")));
    };
    for name in ["type", "sessionId", "uuid", "id", "cwd", "workspace", "agent"] {
        if fields.get(name).is_some_and(|value| fields::text(value).is_none()) {
            wrong(name, "text");
        }
    }
    let timed = fields.get("timestamp").is_none_or(|value| fields::text(value).is_some());
    if !timed {
        wrong("timestamp", "text");
    }
    let message = fields.get("message");
    let parts = message.and_then(|value| Fields::parse(value.get()));
    if message.is_some() && parts.is_none() {
        wrong("message", "an object");
    }
    let content = parts.as_ref().and_then(|parts| parts.get("content").or(parts.get("parts")));
    if content.is_some_and(|value| !value.get().starts_with(['"', '['])) {
        wrong("message.content", "text or a list");
    }
    let blocks = content.and_then(|value| serde_json::from_str::<Vec<&RawValue>>(value.get()).ok());
    if blocks.is_some_and(|blocks| blocks.iter().any(|block| !block.get().starts_with('{'))) {
        wrong("a block of message.content", "an object");
    }
    let mut absent = |name: &str| {
        odd.push((DamageClass::MissingField, format!("{name} is absent")));
    };
    if !fields.has("type") {
        absent("type");
    }
    let spoken =
        fields.text("type").is_some_and(|kind| ["user", "assistant", "message"].contains(&&*kind));
    if spoken && message.is_none() {
        absent("message");
    }
    if let Some(parts) = &parts {
        if !parts.has("role") {
            absent("message.role");
        }
        if content.is_none() {
            absent("message.content");
        }
    }
    if fields.has("uuid") {
        for name in ["sessionId", "timestamp"].into_iter().filter(|name| !fields.has(name)) {
            absent(name);
        }
    }
    odd
}
