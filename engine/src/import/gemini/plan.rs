//! The sessions of a source: one for each id. Read for it are the beginnings of files.

use std::io::Read;
use std::path::Path;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::import::discover::Source;
use crate::import::document::members_of;
use crate::import::fields::{self, Fields};
use crate::import::openclaw::{Planned, parents_first};
use crate::import::plan::{SessionPlan, Sessions, own_key, whole_file};
use crate::import::run::Run;
use crate::import::sniff::Program;
use crate::import::tree::SourceTree;
use crate::session::event::{Ingress, Provenance, RunKind};
use crate::session::key::{AgentId, Parts, SessionKey};

const PROGRAM: Program = Program::Gemini;

/// How much of a file is looked at, in bytes.
const PEEK_BYTES: u64 = 64 << 10;

/// Plans the sessions of a source, parents before children.
///
/// # Errors
/// Whatever reading meets.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Planned> {
    let mut planned = Planned::default();
    let mut sessions = Sessions::default();
    for transcript in &source.transcripts {
        let head = head(tree, &transcript.path)?;
        let parent = head.spawned_by(&transcript.path);
        let mut key = own_key(PROGRAM.code(), &head.id)?;
        if head.is_subagent {
            let agent = AgentId::parse(PROGRAM.code())?;
            key = SessionKey::of(&Parts::Subagent { agent, id: &head.id }).unwrap_or(key);
        }
        let mut plan = SessionPlan::bare(PROGRAM, key, &head.id, head.began);
        if head.is_subagent {
            plan.door = Ingress::Internal;
        }
        if let Some(parent) = parent {
            let parent_key = own_key(PROGRAM.code(), parent)?;
            plan.opening.0.parent_key = Some(parent_key.to_string());
            plan.opening.0.parent_session_id = Some(parent.to_owned());
            plan.opening.0.spawn_depth = 1;
            plan.task = Some(Provenance {
                source_session_key: Some(parent_key.to_string()),
                ..Provenance::default()
            });
            if !sessions.has(&plan.key) {
                let mut run = Run::new(head.id.clone(), RunKind::Spawn);
                run.requester = Some(parent_key.to_string());
                run.target = Some(plan.key.to_string());
                run.created = head.began;
                planned.runs.push(run);
            }
            plan.parent = Some(parent_key);
        }
        sessions.add(plan, whole_file(source, transcript));
    }
    planned.sessions = parents_first(sessions.into_plans());
    Ok(planned)
}

/// What a header tells.
struct Head {
    id: String,
    began: Option<Timestamp>,
    is_subagent: bool,
}

impl Head {
    /// The session in whose folder a sub-agent lies.
    fn spawned_by<'p>(&self, path: &'p Path) -> Option<&'p str> {
        let folder = path.parent()?;
        let in_chats = folder.parent()?.file_name()? == "chats";
        folder.file_name()?.to_str().filter(|_| self.is_subagent && in_chats)
    }
}

fn head(tree: &dyn SourceTree, path: &Path) -> Result<Head> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let mut prefix = Vec::new();
    tree.open(path).map_err(failed)?.take(PEEK_BYTES).read_to_end(&mut prefix).map_err(failed)?;
    let header = members_of(&prefix, "messages");
    let fields = Fields::parse(&header).unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = fields.text("sessionId").filter(|id| !id.is_empty());
    Ok(Head {
        id: id.unwrap_or(stem).into_owned(),
        began: fields.get("startTime").and_then(fields::time),
        is_subagent: fields.text("kind").is_some_and(|kind| kind == "subagent"),
    })
}
