//! The layout of a state folder: which files are transcripts, which are copies of them, and whether the sessions are
//! files at all. Only names and a few first bytes count here.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::import::discover::{Extent, Place, Refused, Source, Transcript, absent};
use crate::import::sniff::{self, Looks, Program};
use crate::import::time::parse_stamp;
use crate::import::tree::{LEADS_OUT, Node, NodeKind, SourceTree};
use crate::session::key::AgentId;

/// The name of the index in a folder of sessions.
pub(crate) const INDEX: &str = "sessions.json";

/// The database that holds the sessions of later versions, from an agent's folder.
const DATABASE: &str = "agent/openclaw-agent.sqlite";

/// How SQLite writes down the table that transcripts lie in, in either spelling of its name.
const TABLES: [&[u8]; 2] =
    [b"CREATE TABLE transcript_events", b"CREATE TABLE \"transcript_events\""];

/// A state folder's own files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateFolder {
    pub(crate) agents: Vec<AgentFolder>,
    /// The registry of sub-agents' runs.
    pub(crate) registry: Option<PathBuf>,
    /// Messages that wait to be delivered.
    pub(crate) queue: Vec<PathBuf>,
}

/// An agent's sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentFolder {
    pub(crate) agent: String,
    pub(crate) sessions: PathBuf,
    pub(crate) index: Option<PathBuf>,
}

/// What has become of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    /// Its session was reset at this time.
    Reset(Timestamp),
    /// Its session was deleted at this time.
    Deleted(Timestamp),
    /// It is the session's transcript.
    Live,
}

/// Whether the folder is a state folder, its `agents`, an agent's folder, or an agent's `sessions`.
pub(crate) fn is_state_folder(tree: &dyn SourceTree, folder: &Path) -> bool {
    locate(tree, folder).is_some()
}

/// Whether the folder holds an agent's sessions.
pub(crate) fn is_sessions_folder(tree: &dyn SourceTree, folder: &Path) -> bool {
    matches!(locate(tree, folder), Some(Located { agents: Some(one), .. }) if one.sessions == folder)
}

/// Where a named folder stands in a state folder.
struct Located {
    root: PathBuf,
    /// The one agent that was named, if it was one.
    agents: Option<AgentFolder>,
}

fn locate(tree: &dyn SourceTree, folder: &Path) -> Option<Located> {
    let name = |path: &Path| path.file_name().and_then(|n| n.to_str()).map(str::to_owned);
    let parent = folder.parent();
    let named = |agent: &Path| {
        let sessions = agent.join("sessions");
        is_folder(tree, &sessions).then(|| agent_folder(tree, &name(agent)?, sessions)).flatten()
    };
    if name(folder).as_deref() == Some("sessions")
        && let Some(agent) = parent
        && agent.parent().and_then(name).as_deref() == Some("agents")
    {
        let root = agent.parent().and_then(Path::parent)?.to_path_buf();
        return Some(Located { root, agents: Some(named(agent)?) });
    }
    if parent.and_then(name).as_deref() == Some("agents")
        && let Some(agent) = named(folder)
    {
        let root = parent.and_then(Path::parent)?.to_path_buf();
        return Some(Located { root, agents: Some(agent) });
    }
    if has_agents(tree, &folder.join("agents")) {
        return Some(Located { root: folder.to_path_buf(), agents: None });
    }
    if name(folder).as_deref() == Some("agents") && has_agents(tree, folder) {
        return Some(Located { root: parent?.to_path_buf(), agents: None });
    }
    let index = folder.join(INDEX);
    if matches!(sniff::sniff(tree, &index), Ok(Looks::Index)) {
        let agent = agent_folder(tree, "main", folder.to_path_buf())?;
        return Some(Located { root: folder.to_path_buf(), agents: Some(agent) });
    }
    None
}

fn is_folder(tree: &dyn SourceTree, path: &Path) -> bool {
    tree.stat(path).is_ok_and(|node| node.kind == NodeKind::Folder)
}

fn has_agents(tree: &dyn SourceTree, agents: &Path) -> bool {
    let folders = tree.list(agents).unwrap_or_default();
    folders.iter().any(|agent| {
        is_folder(tree, &agent.path.join("sessions"))
            || tree.stat(&agent.path.join(DATABASE)).is_ok()
    })
}

fn agent_folder(tree: &dyn SourceTree, agent: &str, sessions: PathBuf) -> Option<AgentFolder> {
    let index = Some(sessions.join(INDEX)).filter(|index| tree.stat(index).is_ok());
    Some(AgentFolder { agent: agent.to_owned(), sessions, index })
}

/// What can be imported of the state folder that the folder is, or is a part of.
///
/// # Errors
/// `Unsupported` with the schema number when the sessions lie in SQLite; `Io` when a folder cannot be read.
pub(crate) fn state_folder(tree: &dyn SourceTree, folder: &Path) -> Result<Source> {
    let located = locate(tree, folder)
        .ok_or_else(|| Error::invalid("this is no state folder of OpenClaw").path(folder))?;
    let root = located.root;
    let whole = located.agents.is_none();
    let agents = match located.agents {
        Some(agent) => vec![agent],
        None => all_agents(tree, &root)?,
    };
    let mut source = Source {
        program: Program::OpenClaw,
        root: root.clone(),
        transcripts: Vec::new(),
        copies: Vec::new(),
        state: None,
        extent: if whole { Extent::Whole } else { Extent::Agent },
    };
    let (agents, others): (Vec<AgentFolder>, Vec<AgentFolder>) =
        agents.into_iter().partition(|agent| AgentId::parse(&agent.agent).is_ok());
    source.copies.extend(others.into_iter().map(|other| Refused {
        path: other.sessions,
        reason: "no agent can have the name of this folder".to_owned(),
    }));
    for agent in &agents {
        sort_files(tree, agent, &mut source)?;
    }
    let folders = match agents.as_slice() {
        [one] if !whole => one.sessions.parent().map(Path::to_path_buf).into_iter().collect(),
        _ => folders_of_agents(tree, &root),
    };
    refuse_databases(tree, &folders, whole, source.transcripts.len())?;
    let registry = root.join("subagents").join("runs.json");
    let queue = tree.list(&root.join("delivery-queue")).unwrap_or_default();
    let queue = if whole { queue } else { Vec::new() };
    let queue = queue.into_iter().filter(|node| {
        node.kind == NodeKind::File && node.path.extension().is_some_and(|e| e == "json")
    });
    source.state = Some(StateFolder {
        agents,
        registry: Some(registry).filter(|path| tree.stat(path).is_ok()),
        queue: queue.map(|node| node.path).collect(),
    });
    Ok(source)
}

fn folders_of_agents(tree: &dyn SourceTree, root: &Path) -> Vec<PathBuf> {
    let agents = tree.list(&root.join("agents")).unwrap_or_default();
    agents.into_iter().map(|node| node.path).collect()
}

fn all_agents(tree: &dyn SourceTree, root: &Path) -> Result<Vec<AgentFolder>> {
    let agents = root.join("agents");
    let folders =
        tree.list(&agents).map_err(|e| Error::io("the folder cannot be read", e).path(&agents))?;
    let sessions = |node: &Node| {
        let sessions = node.path.join("sessions");
        is_folder(tree, &sessions).then(|| agent_folder(tree, node.name(), sessions)).flatten()
    };
    Ok(folders.iter().filter_map(sessions).collect())
}

/// Tells transcripts from what lies between them.
fn sort_files(tree: &dyn SourceTree, agent: &AgentFolder, source: &mut Source) -> Result<()> {
    let nodes = tree
        .list(&agent.sessions)
        .or_else(|e| if absent(&e) { Ok(Vec::new()) } else { Err(e) })
        .map_err(|e| Error::io("the folder cannot be read", e).path(&agent.sessions))?;
    for node in nodes {
        match node.kind {
            NodeKind::File if node.name() != INDEX => {}
            NodeKind::Link => {
                let reason = LEADS_OUT.to_owned();
                source.copies.push(Refused { path: node.path, reason });
                continue;
            }
            _ => continue,
        }
        let Some((stem, state)) = read_name(node.name()) else {
            let reason = not_a_session(node.name());
            source.copies.push(Refused { path: node.path, reason });
            continue;
        };
        let place = Place { agent: agent.agent.clone(), stem: stem.to_owned(), state };
        source.transcripts.push(Transcript {
            path: node.path,
            bytes: node.bytes,
            modified: node.modified,
            place: Some(place),
        });
    }
    Ok(())
}

/// The id in a transcript's name and what has become of it; `None` for every other file.
fn read_name(name: &str) -> Option<(&str, State)> {
    if let Some(stem) = name.strip_suffix(".jsonl") {
        let copy = stem.ends_with(".trajectory") || is_checkpoint(stem);
        return (!copy && !stem.is_empty()).then_some((stem, State::Live));
    }
    let archived = |marker: &str| {
        let (stem, stamp) = name.rsplit_once(marker)?;
        Some((stem, parse_stamp(stamp)?))
    };
    if let Some((stem, at)) = archived(".jsonl.reset.") {
        return Some((stem, State::Reset(at)));
    }
    archived(".jsonl.deleted.").map(|(stem, at)| (stem, State::Deleted(at)))
}

/// Whether a stem ends in `.checkpoint.<uuid>`.
fn is_checkpoint(stem: &str) -> bool {
    stem.rsplit_once(".checkpoint.")
        .is_some_and(|(_, id)| id.len() == 36 && uuid::Uuid::try_parse(id).is_ok())
}

/// Why a file of a sessions folder is no session, in words.
pub(crate) fn not_a_session(name: &str) -> String {
    let what = if name.contains(".checkpoint.") {
        "a checkpoint of a session"
    } else if name.contains(".trajectory") {
        "a trace of a session's runs"
    } else if name.contains(".bak") {
        "a copy of a session that was set aside"
    } else if name.ends_with(".zst") {
        "an archive compressed with Zstandard, which cannot be imported yet"
    } else {
        return "this is no session of OpenClaw".to_owned();
    };
    format!("this is {what}, and no session")
}

/// Refuses a state folder whose sessions lie in SQLite: importing the files that are left would import half. A folder
/// of sessions that was named itself is imported if it holds any.
fn refuse_databases(
    tree: &dyn SourceTree,
    agents: &[PathBuf],
    whole: bool,
    files: usize,
) -> Result<()> {
    for agent in agents {
        let path = agent.join(DATABASE);
        let Ok(Looks::Sqlite(version)) = sniff::sniff(tree, &path) else { continue };
        let wal = agent.join(format!("{DATABASE}-wal"));
        let sessions = whole && (holds_table(tree, &path) || holds_table(tree, &wal));
        if sessions || files == 0 {
            let agent = agent.file_name().unwrap_or_default().to_string_lossy();
            let message = format!(
                "the sessions of agent {agent} of OpenClaw lie in SQLite (schema {version}), which cannot be imported yet"
            );
            let error = Error::new(ErrorKind::Unsupported, message).path(&path);
            return Err(if files == 0 {
                error
            } else {
                error.hint("to import the files of sessions from before, name agents/<id>/sessions")
            });
        }
    }
    Ok(())
}

/// Whether a database's schema names the table of transcripts. Earlier versions keep other things in the same file.
fn holds_table(tree: &dyn SourceTree, path: &Path) -> bool {
    const STEP: usize = 64 << 10;
    const OVERLAP: usize = 64;
    let Ok(mut file) = tree.open(path) else { return false };
    let mut window = vec![0; STEP + OVERLAP];
    let mut kept = 0;
    loop {
        let Some(room) = window.get_mut(kept..) else { return false };
        let Ok(got) = file.read(room) else { return false };
        let held = window.get(..kept + got).unwrap_or_default();
        if TABLES.iter().any(|table| memchr::memmem::find(held, table).is_some()) {
            return true;
        }
        if got == 0 {
            return false;
        }
        let end = kept + got;
        let from = end.saturating_sub(OVERLAP);
        window.copy_within(from..end, 0);
        kept = end - from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: transcripts are told from their copies. Method: the names that occur.
    #[test]
    fn names() {
        let at = parse_stamp("2026-01-02T03-04-05.000Z").unwrap();
        for (name, expect) in [
            ("abc.jsonl", Some(("abc", State::Live))),
            ("abc-topic-7.jsonl", Some(("abc-topic-7", State::Live))),
            ("my.checkpoint.notes.jsonl", Some(("my.checkpoint.notes", State::Live))),
            ("abc.jsonl.reset.2026-01-02T03-04-05.000Z", Some(("abc", State::Reset(at)))),
            ("abc.jsonl.deleted.2026-01-02T03-04-05Z", Some(("abc", State::Deleted(at)))),
            ("abc.jsonl.reset.yesterday", None),
            ("abc.jsonl.reset.2026-01-02T03-04-05.000Z.zst", None),
            ("abc.jsonl.bak.2026-01-02T03-04-05.000Z", None),
            ("abc.jsonl.bak-77-1737420882", None),
            ("abc.jsonl.lock", None),
            ("abc.trajectory.jsonl", None),
            ("abc.trajectory-path.json", None),
            ("abc.checkpoint.5f3d2c1b-0a9e-4d8c-b7a6-123456789abc.jsonl", None),
            ("sessions.json.bak.1737420882", None),
            (".jsonl", None),
        ] {
            assert_eq!(read_name(name), expect, "{name}");
        }
    }
}
