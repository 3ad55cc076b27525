//! The layout of Claude Code's folder: `projects/<project>/<session>.jsonl`, what lies beside a session and is none, and
//! which of the other folders are looked at: none.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::import::discover::Refused;
use crate::import::sniff::{self, Looks, Program};
use crate::import::tree::{NodeKind, SourceTree};

/// The folder of projects in the program's own folder.
const PROJECTS: &str = "projects";

/// The projects of a folder, if it is the program's own: one that has `projects`, in one of which is a session.
pub(crate) fn projects(tree: &dyn SourceTree, folder: &Path) -> Option<PathBuf> {
    let projects = folder.join(PROJECTS);
    let found = tree.list(&projects).ok()?;
    let folders = found.iter().filter(|node| node.kind == NodeKind::Folder);
    let is_session = |path: &Path| {
        path.extension().is_some_and(|e| e == "jsonl")
            && matches!(sniff::sniff(tree, path), Ok(Looks::Of(Program::ClaudeCode)))
    };
    let mut folders = folders.map(|node| tree.list(&node.path).unwrap_or_default());
    folders
        .any(|files| files.iter().any(|f| f.kind == NodeKind::File && is_session(&f.path)))
        .then_some(projects)
}

/// Whether a file is named as those of sub-agents are.
pub(super) fn is_agent_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"agent-"))
}

/// The session whose folder of sub-agents a file lies in.
pub(super) fn session_of(path: &Path) -> Option<&str> {
    let subagents = path.ancestors().skip(1).find(|at| at.ends_with("subagents"))?;
    subagents.parent()?.file_name()?.to_str()
}

/// What a file beside sessions is, in words; `None` for one that nobody knows.
pub(crate) fn tell_apart(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let lies_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
    if name.ends_with(".meta.json") {
        Some("this says of which kind a sub-agent is, and is read with its session")
    } else if lies_in("tool-results") {
        Some("this is a long result of a tool that lies apart, and no session")
    } else if lies_in("memory") {
        Some("this is a note of the agent for itself, and no session")
    } else if name == "sessions-index.json" {
        Some("this is a list of sessions, which is not needed")
    } else {
        None
    }
}

/// What is said of a sub-agent beside its rows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) agent_type: Option<String>,
    pub(super) description: Option<String>,
    pub(super) spawn_depth: Option<u32>,
}

/// Reads what lies beside the rows of a sub-agent; what cannot be read says nothing.
pub(super) fn meta(tree: &dyn SourceTree, path: &Path) -> Meta {
    use std::io::Read;
    const BYTES_MAX: u64 = 64 << 10;
    let mut text = Vec::new();
    let read = tree
        .open(&path.with_extension("meta.json"))
        .and_then(|file| file.take(BYTES_MAX).read_to_end(&mut text));
    read.ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// A file that is no session of its folder, with what it is instead.
pub(crate) fn refused(path: PathBuf, reason: &str) -> Refused {
    Refused { path, reason: reason.to_owned() }
}
