//! The sessions of a source: one for each file, one for each side chain, children of those that spawned them. Read for
//! it are the first lines of files, and of sessions that may hold side chains the marks of those.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::folder::{self, Meta};
use super::survey::{self, Chain, Lane, all_ranges};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::import::discover::{Source, Transcript};
use crate::import::openclaw::{Planned, parents_first};
use crate::import::pi::Entry;
use crate::import::plan::{FilePlan, SessionPlan, Sessions, own_key, whole_file};
use crate::import::run::Run;
use crate::import::sniff::Program;
use crate::import::tree::SourceTree;
use crate::session::event::{Ingress, Provenance, RunKind};
use crate::session::key::{AgentId, Parts, SessionKey};

const PROGRAM: Program = Program::ClaudeCode;

/// An id of a sub-agent that is shorter stands for one in its session only, in bytes.
const OWN_ID_BYTES_MIN: usize = 16;

/// How much of a file is looked at, in bytes, and how many lines of that.
const PEEK_BYTES: u64 = 256 << 10;
const PEEK_LINES: usize = 64;

/// Plans the sessions of a source, parents before children.
///
/// # Errors
/// Whatever reading meets.
pub(crate) fn plan(tree: &dyn SourceTree, source: &Source) -> Result<Planned> {
    let mut planning = Planning::default();
    for transcript in &source.transcripts {
        let peek = peek(tree, &transcript.path)?;
        let file = whole_file(source, transcript);
        if folder::is_agent_file(&transcript.path) {
            planning.agent(file, &peek, folder::meta(tree, &transcript.path))?;
        } else {
            planning.session(tree, transcript, file, &peek)?;
        }
    }
    let mut sessions: Vec<SessionPlan> = planning.sessions.into_plans();
    // Of two that began at once the shorter one is the one that the other goes on from.
    sessions.sort_by(|a, b| (bytes(a), a.key.as_str()).cmp(&(bytes(b), b.key.as_str())));
    let sessions = parents_first(sessions);
    Ok(Planned { sessions, runs: planning.runs, ..Planned::default() })
}

fn bytes(session: &SessionPlan) -> u64 {
    session.parts.iter().flat_map(|part| &part.files).map(|file| file.bytes).sum()
}

#[derive(Default)]
struct Planning {
    sessions: Sessions,
    runs: Vec<Run>,
}

/// A sub-agent, in a file of its own or in a chain.
struct Child<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    began: Option<Timestamp>,
    prompt: Option<u64>,
    meta: Meta,
}

impl Planning {
    fn session(
        &mut self,
        tree: &dyn SourceTree,
        transcript: &Transcript,
        mut file: FilePlan,
        peek: &Peek,
    ) -> Result<()> {
        let id = session_id(&transcript.path, peek);
        if peek.side != Some(true) {
            let chains = survey::survey(tree, &transcript.path)?;
            if !chains.is_empty() {
                file.lane = Lane::Without(all_ranges(&chains));
                for chain in chains {
                    self.chain(&id, &file, chain)?;
                }
            }
        }
        let key = own_key(PROGRAM.code(), &id)?;
        let plan = SessionPlan::bare(PROGRAM, key, &id, peek.began);
        self.sessions.add(plan, file);
        Ok(())
    }

    fn chain(&mut self, parent: &str, file: &FilePlan, chain: Chain) -> Result<()> {
        let lane = Lane::Only(Arc::from(chain.ranges));
        let file = FilePlan { lane, ..file.clone() };
        let Chain { id, began, prompt, .. } = chain;
        let meta = Meta::default();
        self.child(&Child { id: &id, parent: Some(parent), began, prompt, meta }, file)
    }

    fn agent(&mut self, file: FilePlan, peek: &Peek, meta: Meta) -> Result<()> {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let id = stem.strip_prefix("agent-").filter(|id| !id.is_empty()).unwrap_or(&stem);
        let told = peek.session_id.as_deref().filter(|told| *told != stem && *told != id);
        let path = file.path.clone();
        let parent = folder::session_of(&path).or(told);
        let (began, prompt) = (peek.began, peek.prompt);
        self.child(&Child { id, parent, began, prompt, meta }, file)
    }

    fn child(&mut self, child: &Child<'_>, file: FilePlan) -> Result<()> {
        let scope = match child.parent {
            Some(parent) if child.id.len() < OWN_ID_BYTES_MIN => format!("{parent}/{}", child.id),
            _ => child.id.to_owned(),
        };
        let agent = AgentId::parse(PROGRAM.code())?;
        let key = SessionKey::of(&Parts::Subagent { agent, id: &scope })
            .or_else(|_| own_key(PROGRAM.code(), child.id))?;
        let mut plan = SessionPlan::bare(PROGRAM, key.clone(), child.id, child.began);
        for part in &mut plan.parts {
            part.scope.clone_from(&scope);
        }
        plan.door = Ingress::Internal;
        let opened = &mut plan.opening.0;
        opened.label.clone_from(&child.meta.agent_type);
        opened.display_name.clone_from(&child.meta.description);
        let Some(parent) = child.parent else {
            self.sessions.add(plan, file);
            return Ok(());
        };
        let parent_key = own_key(PROGRAM.code(), parent)?;
        opened.parent_key = Some(parent_key.to_string());
        opened.parent_session_id = Some(parent.to_owned());
        opened.spawn_depth = child.meta.spawn_depth.unwrap_or(1).max(1);
        plan.task = Some(Provenance {
            source_session_key: Some(parent_key.to_string()),
            source_channel: None,
            source_tool: Some("Task".to_owned()),
            sender: None,
            run_id: None,
            round: None,
        });
        if !self.sessions.has(&key) {
            let mut run = Run::new(scope, RunKind::Spawn);
            run.requester = Some(parent_key.to_string());
            run.target = Some(key.to_string());
            run.created = child.began;
            run.label.clone_from(&child.meta.description);
            run.prompt = child.prompt;
            self.runs.push(run);
        }
        plan.parent = Some(parent_key);
        self.sessions.add(plan, file);
        Ok(())
    }
}

/// The id of a session: the name of its file, which a resumed session has to itself, where that is an id.
fn session_id(path: &Path, peek: &Peek) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match &peek.session_id {
        Some(told) if uuid::Uuid::try_parse(&stem).is_err() => told.clone(),
        _ => stem.into_owned(),
    }
}

/// What the first lines of a file tell.
#[derive(Default)]
struct Peek {
    session_id: Option<String>,
    began: Option<Timestamp>,
    /// Whether the first row that says so is of a side chain.
    side: Option<bool>,
    /// The hash of what the first turn of a user asks.
    prompt: Option<u64>,
}

fn peek(tree: &dyn SourceTree, path: &Path) -> Result<Peek> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let mut prefix = Vec::new();
    tree.open(path).map_err(failed)?.take(PEEK_BYTES).read_to_end(&mut prefix).map_err(failed)?;
    let mut peek = Peek::default();
    for line in prefix.split(|b| *b == b'\n').take(PEEK_LINES) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let Some(row) = std::str::from_utf8(line).ok().and_then(Entry::parse) else { continue };
        let side = row.fields.get("isSidechain").map(|value| value.get() == "true");
        peek.side = peek.side.or(side);
        peek.began = peek.began.or_else(|| row.at());
        if peek.session_id.is_none() {
            let id = row.fields.text("sessionId").filter(|id| !id.is_empty());
            peek.session_id = id.map(|id| id.into_owned());
        }
        if peek.prompt.is_none() && row.fields.text("type").is_some_and(|kind| kind == "user") {
            peek.prompt = survey::prompt(&row);
        }
        if peek.prompt.is_some() && peek.session_id.is_some() && peek.side.is_some() {
            break;
        }
    }
    Ok(peek)
}
