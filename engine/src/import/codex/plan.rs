//! The sessions of a source: one for each rollout, sub-agents as children of the threads that spawned them. Read for it
//! are the headers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::import::discover::{Source, Transcript};
use crate::import::fields::{self, Fields};
use crate::import::openclaw::{Planned, parents_first};
use crate::import::plan::{SessionPlan, Sessions, own_key, whole_file};
use crate::import::run::Run;
use crate::import::sniff::Program;
use crate::import::tree::SourceTree;
use crate::session::event::{ArchiveReason, Ingress, Provenance, RunKind};
use crate::session::key::{AgentId, Parts, SessionKey};

const PROGRAM: Program = Program::Codex;

/// The folder of sessions that were put away.
const ARCHIVED: &str = "archived_sessions";

/// How much of a file is looked at for its header, in bytes: instructions may stand in it.
const PEEK_BYTES: [u64; 3] = [8 << 10, 256 << 10, 4 << 20];

/// Plans the sessions of a source, parents before children.
///
/// # Errors
/// Whatever reading meets.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Planned> {
    let mut heads = Vec::with_capacity(source.transcripts.len());
    for transcript in &source.transcripts {
        heads.push((transcript, head(tree, &transcript.path)?));
    }
    let mut threads: HashMap<String, (SessionKey, PathBuf)> = HashMap::new();
    for (transcript, head) in &heads {
        threads.insert(head.id.clone(), (key_of(head)?, transcript.path.clone()));
    }
    let mut planned = Planned::default();
    let mut sessions = Sessions::default();
    for (transcript, head) in &heads {
        let plan = session(transcript, head, &threads)?;
        if let Some(parent) = plan.parent.as_ref().filter(|_| head.is_child())
            && !sessions.has(&plan.key)
        {
            let mut run = Run::new(head.id.clone(), RunKind::Spawn);
            run.requester = Some(parent.to_string());
            run.target = Some(plan.key.to_string());
            run.created = head.began;
            run.label.clone_from(&head.nickname);
            planned.runs.push(run);
        }
        sessions.add(plan, whole_file(source, transcript));
    }
    planned.sessions = parents_first(sessions.into_plans());
    Ok(planned)
}

/// What a header tells.
#[derive(Debug, Default)]
struct Head {
    id: String,
    began: Option<Timestamp>,
    forked_from: Option<String>,
    /// The thread that spawned this one.
    parent: Option<String>,
    depth: Option<u32>,
    nickname: Option<String>,
    role: Option<String>,
    /// Whether the program says that this is a sub-agent, of whatever thread.
    is_subagent: bool,
}

impl Head {
    fn is_child(&self) -> bool {
        self.is_subagent || self.parent.is_some()
    }
}

fn key_of(head: &Head) -> Result<SessionKey> {
    if head.is_child() {
        let agent = AgentId::parse(PROGRAM.code())?;
        if let Ok(key) = SessionKey::of(&Parts::Subagent { agent, id: &head.id }) {
            return Ok(key);
        }
    }
    own_key(PROGRAM.code(), &head.id)
}

fn session(
    transcript: &Transcript,
    head: &Head,
    threads: &HashMap<String, (SessionKey, PathBuf)>,
) -> Result<SessionPlan> {
    let mut plan = SessionPlan::bare(PROGRAM, key_of(head)?, &head.id, head.began);
    let forked = head.forked_from.as_ref().and_then(|id| threads.get(id));
    for part in &mut plan.parts {
        part.forked_from = forked.map(|(_, path)| path.clone());
    }
    let above = head.parent.as_ref().or(head.forked_from.as_ref()).filter(|id| **id != head.id);
    if let Some(id) = above {
        let known = threads.get(id).map(|(key, _)| key.clone());
        let key = known.map_or_else(|| own_key(PROGRAM.code(), id), Ok)?;
        plan.opening.0.parent_key = Some(key.to_string());
        plan.opening.0.parent_session_id = Some(id.clone());
        plan.parent = Some(key);
    }
    if head.is_child() {
        plan.door = Ingress::Internal;
        let opened = &mut plan.opening.0;
        opened.label.clone_from(&head.role);
        opened.display_name.clone_from(&head.nickname);
        opened.spawn_depth = head.depth.unwrap_or(1).max(1);
        plan.task = plan.parent.as_ref().map(|parent| Provenance {
            source_session_key: Some(parent.to_string()),
            source_tool: Some("spawn_agent".to_owned()),
            ..Provenance::default()
        });
    }
    let put_away = transcript.path.iter().any(|part| part == ARCHIVED);
    plan.archived = head
        .began
        .filter(|_| put_away)
        .map(|at| (ArchiveReason::Manual, transcript.modified.unwrap_or(at)));
    Ok(plan)
}

fn head(tree: &dyn SourceTree, path: &Path) -> Result<Head> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let mut file = tree.open(path).map_err(failed)?;
    let mut prefix = Vec::new();
    for bytes in PEEK_BYTES {
        let more = bytes - prefix.len() as u64;
        file.by_ref().take(more).read_to_end(&mut prefix).map_err(failed)?;
        if prefix.contains(&b'\n') || (prefix.len() as u64) < bytes {
            break;
        }
    }
    let line = prefix.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let row = std::str::from_utf8(line).ok().and_then(Fields::parse);
    let told = row.and_then(|row| read(&row)).unwrap_or_default();
    let id = if told.id.is_empty() { id_in_name(path) } else { told.id.clone() };
    Ok(Head { id, ..told })
}

/// Reads the first record, if it is a header.
fn read(row: &Fields<'_>) -> Option<Head> {
    let inside = row.get("payload").and_then(|payload| Fields::parse(payload.get()));
    let kind = row.text("type");
    let payload = match (&inside, kind.as_deref()) {
        (Some(payload), Some("session_meta")) => payload,
        (None, None) if !row.has("role") => row,
        _ => return None,
    };
    let text = |fields: &Fields<'_>, name: &str| {
        fields.text(name).map(Cow::into_owned).filter(|text| !text.is_empty())
    };
    let sub = |fields: &Fields<'_>, name: &str| -> Option<String> {
        fields.get(name).map(|value| value.get().to_owned())
    };
    let mut head = Head {
        id: text(payload, "id")?,
        began: payload.get("timestamp").or_else(|| row.get("timestamp")).and_then(fields::time),
        forked_from: text(payload, "forked_from_id"),
        parent: text(payload, "parent_thread_id"),
        nickname: text(payload, "agent_nickname"),
        role: text(payload, "agent_role"),
        ..Head::default()
    };
    let of_whom = sub(payload, "source").and_then(|text| sub(&Fields::parse(&text)?, "subagent"));
    head.is_subagent = of_whom.is_some();
    let spawn = of_whom.and_then(|text| sub(&Fields::parse(&text)?, "thread_spawn"));
    if let Some(spawn) = spawn.as_deref().and_then(Fields::parse) {
        head.parent = head.parent.or_else(|| text(&spawn, "parent_thread_id"));
        head.nickname = head.nickname.or_else(|| text(&spawn, "agent_nickname"));
        head.role = head.role.or_else(|| text(&spawn, "agent_role"));
        let depth = spawn.get("depth").and_then(fields::count);
        head.depth = depth.and_then(|depth| u32::try_from(depth).ok());
    }
    Some(head)
}

/// The id at the end of a rollout's name, or all of the name.
fn id_in_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let tail = stem.len().checked_sub(36).and_then(|from| stem.get(from..));
    match tail {
        Some(id) if uuid::Uuid::try_parse(id).is_ok() => id.to_owned(),
        _ => stem.into_owned(),
    }
}
