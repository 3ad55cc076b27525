//! The sessions of a source: chats, and sub-agents as children of the chats that gave them their tasks. The files are
//! small, and what they say of themselves stands behind their turns: they are read whole.

use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::format::hex;
use crate::import::discover::{Source, Transcript};
use crate::import::document::members_of;
use crate::import::fields::{self, Fields};
use crate::import::openclaw::{Planned, parents_first};
use crate::import::plan::{IndexState, SessionPlan, Sessions, name_from, own_key, whole_file};
use crate::import::run::Run;
use crate::import::sniff::Program;
use crate::import::time::any_time;
use crate::import::tree::SourceTree;
use crate::session::event::{
    Ingress, Json, Members, Provenance, RunKind, RunStatus, Source as Record,
};
use crate::session::key::{AgentId, Parts, SessionKey};

const PROGRAM: Program = Program::Arka;

/// How much of a file is read for it, in bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Plans the sessions of a source, parents before children.
///
/// # Errors
/// Whatever reading meets.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Planned> {
    let mut planned = Planned::default();
    let mut sessions = Sessions::default();
    for transcript in &source.transcripts {
        let failed = |e| Error::io("the transcript cannot be read", e).path(&transcript.path);
        let mut bytes = Vec::new();
        let file = tree.open(&transcript.path).map_err(failed)?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        let text = members_of(&bytes, "turns");
        let told = Fields::parse(&text).unwrap_or_default();
        let plan = if told.has("task") {
            let (plan, run) = subagent(&transcript.path, &told)?;
            if !sessions.has(&plan.key) {
                planned.runs.push(run);
            }
            plan
        } else {
            let name = name_from(&source.root, &transcript.path);
            chat(transcript, &told, record(name, &bytes))?
        };
        sessions.add(plan, whole_file(source, transcript));
    }
    planned.sessions = parents_first(sessions.into_plans());
    Ok(planned)
}

fn record(file: String, bytes: &[u8]) -> Record {
    let sha256 = hex(&Sha256::digest(bytes));
    Record { file, offset: 0, bytes: bytes.len() as u64, sha256, rest: None }
}

fn told_text(told: &Fields<'_>, name: &str) -> Option<String> {
    told.text(name).map(|text| text.into_owned()).filter(|text| !text.is_empty())
}

fn told_time(told: &Fields<'_>, name: &str) -> Option<Timestamp> {
    told.get(name).and_then(any_time)
}

/// The key of a chat; `None` where no chat is named, or one that no key can name.
fn chat_key(told: &Fields<'_>, channel: &str, chat: &str) -> Option<SessionKey> {
    // A chat may be named by a number.
    let chat =
        told_text(told, chat).or_else(|| Some(fields::count(told.get(chat)?)?.to_string()))?;
    SessionKey::of_chat(&told_text(told, channel)?, &chat).ok()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn chat(transcript: &Transcript, told: &Fields<'_>, record: Record) -> Result<SessionPlan> {
    let id = told_text(told, "key").unwrap_or_else(|| stem(&transcript.path));
    let key = match chat_key(told, "channel", "chat_id") {
        Some(key) => key,
        None => own_key(PROGRAM.code(), &id)?,
    };
    let reset = told_time(told, "reset_at");
    let began = reset.or_else(|| told_time(told, "created"));
    let part = reset.map_or_else(|| id.clone(), |at| format!("{id}@{at}"));
    let mut plan = SessionPlan::bare(PROGRAM, key.clone(), &part, began);
    for part in &mut plan.parts {
        part.reset = reset;
        // A turn that was imported before the reset is not imported again after it.
        part.scope = format!("chat/{id}");
    }
    let opened = &mut plan.opening.0;
    opened.kind = key.kind_at_opening();
    opened.channel = told_text(told, "channel");
    opened.chat_id = told_text(told, "chat_id");
    if let Some(title) = told_text(told, "title") {
        let set = Members(vec![("displayName".to_owned(), Json::of(&title)?)]);
        let at = told_time(told, "last_activity");
        plan.index = Some(IndexState { at, set, source: record });
    }
    Ok(plan)
}

fn subagent(path: &Path, told: &Fields<'_>) -> Result<(SessionPlan, Run)> {
    let id = told_text(told, "id").unwrap_or_else(|| stem(path));
    let agent = AgentId::parse(PROGRAM.code())?;
    let key = match SessionKey::of(&Parts::Subagent { agent, id: &id }) {
        Ok(key) => key,
        Err(_) => own_key(PROGRAM.code(), &id)?,
    };
    let created = told_time(told, "created");
    let mut plan = SessionPlan::bare(PROGRAM, key.clone(), &id, created);
    for part in &mut plan.parts {
        part.scope = format!("subagent/{id}");
    }
    let parent = chat_key(told, "session_channel", "session_chat_id");
    plan.door = Ingress::Internal;
    plan.task = Some(Provenance {
        source_session_key: parent.as_ref().map(SessionKey::to_string),
        ..Provenance::default()
    });
    plan.opening.0.spawn_depth = 1;
    plan.opening.0.parent_key = parent.as_ref().map(SessionKey::to_string);
    let mut run = Run::new(id, RunKind::Spawn);
    run.requester = parent.as_ref().map(SessionKey::to_string);
    run.target = Some(key.to_string());
    run.created = created;
    run.started = told_time(told, "started");
    run.status = match told.text("status").as_deref() {
        Some("done") => Some(RunStatus::Ok),
        Some("failed") => Some(RunStatus::Error),
        _ => None,
    };
    run.ended = run.status.and(told_time(told, "finished"));
    if let (Some(started), Some(ended)) = (run.started, run.ended) {
        run.runtime_ms = u64::try_from(ended.as_millis() - started.as_millis()).ok();
    }
    let exit = told.get("exit_code").filter(|exit| exit.get() != "null");
    run.detail = exit.map(|exit| format!("exit code {}", exit.get()));
    plan.parent = parent;
    Ok((plan, run))
}
