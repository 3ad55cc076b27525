//! The registry of sub-agents' runs, `subagents/runs.json`, versions 1 and 2.

use std::borrow::Cow;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::format::hex;
use crate::import::damage::{Damage, DamageClass};
use crate::import::fields::{self, Fields};
use crate::import::mend;
use crate::import::run::{AnnounceEnd, IMPORTED, Run, is_run_id};
use crate::import::tree::SourceTree;
use crate::session::event::{Cleanup, Origin, RunKind, RunStatus, Source, SpawnMode};

/// The largest file of this sort that is read, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 256 << 20;

/// Reads the registry; what of it is no run is damage.
pub(crate) fn read(
    tree: &dyn SourceTree,
    path: &Path,
    name: &str,
) -> Result<(Vec<Run>, Vec<Damage>)> {
    let file = whole(tree, path)?;
    let text = &file.text;
    let damage = |class, offset: usize, bytes: usize, detail: &str| Damage {
        class,
        file: name.to_owned(),
        offset: offset as u64,
        bytes: bytes as u64,
        recovered: 0,
        detail: detail.to_owned(),
    };
    let runs = Fields::parse(text).and_then(|mut file| file.take_fields("runs"));
    let Some(runs) = runs else {
        let detail = "this is no registry of runs";
        return Ok((Vec::new(), vec![damage(DamageClass::WrongFormat, 0, text.len(), detail)]));
    };
    let (mut found, mut damages) = (Vec::new(), Vec::from_iter(file.repaired(name)));
    for (id, value) in runs.iter() {
        let spelled = value.get();
        let offset = spelled.as_ptr().addr().saturating_sub(text.as_ptr().addr());
        let mended = mended(spelled, offset, name);
        let fields = mended.as_ref().and_then(|(text, _)| Fields::parse(text));
        let read = fields.map(|fields| run(id, fields));
        damages.extend(mended.iter().flat_map(|(_, damages)| damages.clone()));
        match read {
            Some(Some(mut run)) => {
                if let Some(source) = &mut run.source {
                    source.file = name.to_owned();
                    source.offset = offset as u64;
                    source.bytes = spelled.len() as u64;
                    source.sha256 = file.sha256(offset, spelled.len());
                }
                found.push(run);
            }
            Some(None) => {
                let detail = "the run does not say its id, which session works and which one asked";
                damages.push(damage(DamageClass::MissingField, offset, spelled.len(), detail));
            }
            None => {
                let detail = "the run is no object";
                damages.push(damage(DamageClass::WrongType, offset, spelled.len(), detail));
            }
        }
    }
    found.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
    Ok((found, damages))
}

/// A small file that was read whole.
pub(super) struct Whole {
    /// Its text, byte by byte where it was: each byte that is no UTF-8 is a question mark.
    pub(super) text: String,
    /// Its bytes, where they are not those of the text.
    bytes: Option<Vec<u8>>,
}

impl Whole {
    fn new(bytes: Vec<u8>) -> Self {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return Self { text, bytes: None },
            Err(e) => e.into_bytes(),
        };
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            text.extend(chunk.invalid().iter().map(|_| '?'));
        }
        Self { text, bytes: Some(bytes) }
    }

    /// SHA-256 of a range of the file, in lower-case hexadecimal.
    pub(super) fn sha256(&self, offset: usize, len: usize) -> String {
        let bytes = self.bytes.as_deref().unwrap_or(self.text.as_bytes());
        hex(&Sha256::digest(bytes.get(offset..offset + len).unwrap_or_default()))
    }

    /// What there is to say of bytes that are no UTF-8, over the range from the first to the last.
    pub(super) fn repaired(&self, name: &str) -> Option<Damage> {
        let bytes = self.bytes.as_deref()?;
        let (mut at, mut first, mut last) = (0, None, 0);
        for chunk in bytes.utf8_chunks() {
            at += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                first = first.or(Some(at));
                at += chunk.invalid().len();
                last = at;
            }
        }
        let first = first?;
        Some(Damage {
            class: DamageClass::InvalidUtf8,
            file: name.to_owned(),
            offset: first as u64,
            bytes: (last - first) as u64,
            recovered: 1,
            detail: "bytes that are no text, read as question marks".to_owned(),
        })
    }
}

/// A value of such a file as every reader takes it, and what had to be changed in it for that. `offset` is where it
/// stands in the file.
pub(super) fn mended(spelled: &str, offset: usize, name: &str) -> Option<(String, Vec<Damage>)> {
    let value = mend::scan(spelled.as_bytes(), 0).ok()?;
    let mut damages: Vec<Damage> = Vec::new();
    for mend in &value.mends {
        let at = (offset + mend.at) as u64;
        let len = mend.len as u64;
        match damages.iter_mut().find(|damage| damage.class == mend.class) {
            Some(damage) => damage.bytes = at + len - damage.offset,
            None => damages.push(Damage {
                class: mend.class,
                file: name.to_owned(),
                offset: at,
                bytes: len,
                recovered: 1,
                detail: String::new(),
            }),
        }
    }
    Some((value.text, damages))
}

/// Reads a small file.
///
/// # Errors
/// `TooLarge` beyond [`FILE_BYTES_MAX`]; whatever reading meets.
pub(super) fn whole(tree: &dyn SourceTree, path: &Path) -> Result<Whole> {
    use std::io::Read;
    let failed = |e| Error::io("the file cannot be read", e).path(path);
    let mut bytes = Vec::new();
    tree.open(path)
        .map_err(failed)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let message = format!("the file has more than {FILE_BYTES_MAX} bytes");
        return Err(Error::new(crate::error::ErrorKind::TooLarge, message).path(path));
    }
    Ok(Whole::new(bytes))
}

fn run(id: &str, mut fields: Fields<'_>) -> Option<Run> {
    let id = fields.take_text("runId").map_or_else(|| id.to_owned(), Cow::into_owned);
    if !is_run_id(&id) {
        return None;
    }
    let mut run = Run::new(id, RunKind::Spawn);
    run.target = Some(fields.take_text("childSessionKey")?.into_owned());
    run.requester = Some(fields.take_text("requesterSessionKey")?.into_owned());
    run.created = fields.take_time("createdAt");
    run.started = fields.take_time("startedAt");
    run.ended = fields.take_time("endedAt");
    run.timeout_seconds = fields.take_count("runTimeoutSeconds");
    run.label = fields.take_text("label").map(Cow::into_owned);
    run.model = fields.take_text("model").map(Cow::into_owned);
    run.thinking = fields.take_text("thinking").map(Cow::into_owned);
    run.mode = word(&mut fields, "spawnMode", SpawnMode::from_word);
    run.cleanup = word(&mut fields, "cleanup", Cleanup::from_word);
    run.origin = origin(&mut fields);
    run.result = fields.take_text("frozenResultText").map(Cow::into_owned);
    end(&mut run, &mut fields);
    run.announce = Some(announce(&run, &fields));
    let rest = Some(fields.members());
    let (file, sha256) = (String::new(), String::new());
    run.source = Some(Source { file, offset: 0, bytes: 0, sha256, rest });
    Some(run)
}

fn word<T>(fields: &mut Fields<'_>, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    fields.take_if(name, |value| read(&fields::text(value)?))
}

/// Where the requester's answers went when it asked. Version 1 has only the channel and the account.
fn origin(fields: &mut Fields<'_>) -> Option<Origin> {
    if let Some(origin) = fields.take_if("requesterOrigin", |value| address(value.get())) {
        return Some(origin);
    }
    let channel = fields.take_text("requesterChannel").map(Cow::into_owned);
    let account_id = fields.take_text("requesterAccountId").map(Cow::into_owned);
    (channel.is_some() || account_id.is_some()).then_some(Origin {
        channel,
        account_id,
        ..Origin::default()
    })
}

/// An address as OpenClaw writes it. Threads have numbers or names.
pub(super) fn address(text: &str) -> Option<Origin> {
    let fields = Fields::parse(text)?;
    let text = |name: &str| fields.text(name).map(Cow::into_owned);
    let number = |name: &str| fields.get(name).and_then(fields::count).map(|n| n.to_string());
    let origin = Origin {
        channel: text("channel").or_else(|| text("provider")),
        to: text("to"),
        account_id: text("accountId"),
        thread_id: text("threadId").or_else(|| number("threadId")),
    };
    (origin != Origin::default()).then_some(origin)
}

/// How it ended, by its outcome first, which is what the program's own announces tell.
fn end(run: &mut Run, fields: &mut Fields<'_>) {
    let outcome = fields.get("outcome").and_then(|value| Fields::parse(value.get()));
    let status = outcome.as_ref().and_then(|outcome| outcome.text("status"));
    run.detail = outcome.as_ref().and_then(|o| o.text("error")).map(Cow::into_owned);
    let ended = fields.text("endedReason");
    let killed = ended.as_deref() == Some("subagent-killed");
    run.status = match status.as_deref() {
        Some("ok") => Some(RunStatus::Ok),
        Some("error") if killed => Some(RunStatus::Killed),
        Some("error") => Some(RunStatus::Error),
        Some("timeout") => Some(RunStatus::Timeout),
        _ if killed => Some(RunStatus::Killed),
        _ if run.ended.is_some() && ended.as_deref() == Some("subagent-complete") => {
            Some(RunStatus::Ok)
        }
        _ if run.ended.is_some() && ended.as_deref() == Some("subagent-error") => {
            Some(RunStatus::Error)
        }
        _ => None,
    };
    run.reason = ended.map(Cow::into_owned);
}

/// What became of the announce. One that its program had still to make is not made here.
fn announce(run: &Run, fields: &Fields<'_>) -> AnnounceEnd {
    let delivery = fields.get("delivery").and_then(|value| Fields::parse(value.get()));
    let told = |name: &str| delivery.as_ref().and_then(|d| d.get(name)).and_then(fields::time);
    let own = |name: &str| fields.get(name).and_then(fields::time);
    let at: Option<Timestamp> = own("completionAnnouncedAt")
        .or_else(|| told("announcedAt"))
        .or_else(|| told("deliveredAt"))
        .or_else(|| own("announceCompletedAt"));
    if at.is_some() {
        return AnnounceEnd::Delivered(at);
    }
    if let Some(reason) = fields.text("suppressAnnounceReason") {
        return AnnounceEnd::Suppressed(reason.into_owned());
    }
    if run.status == Some(RunStatus::Killed) {
        return AnnounceEnd::Suppressed("killed".to_owned());
    }
    match delivery.as_ref().and_then(|delivery| delivery.text("status")).as_deref() {
        Some("not_required") => AnnounceEnd::Suppressed("not_required".to_owned()),
        Some(status @ ("failed" | "discarded")) => AnnounceEnd::Failed(status.to_owned()),
        _ => AnnounceEnd::Suppressed(IMPORTED.to_owned()),
    }
}
