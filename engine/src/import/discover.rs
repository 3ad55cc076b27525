//! What can be imported under a path: sources with their transcripts, files of programs that cannot be imported yet, and
//! files that nobody knows. Nothing is read here but the first bytes of files.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::claude;
use super::openclaw::{self, State};
use super::sniff::{self, Looks, Program};
use super::tree::{DiskTree, LEADS_OUT, Node, NodeKind, SourceTree};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};

/// How deep folders are walked into.
const DEPTH_MAX: usize = 16;

/// How many files and folders are looked at under one path.
const NODES_MAX: usize = 1_000_000;

/// What lies under a path.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// What can be imported.
    pub sources: Vec<Source>,
    /// What is known and cannot be imported.
    pub refused: Vec<Refused>,
    /// Files that are none of any program known here.
    pub unknown: Vec<PathBuf>,
}

/// Transcripts of one program that belong together.
#[derive(Clone, Debug)]
pub struct Source {
    /// The program that wrote them.
    pub program: Program,
    /// The folder that files of the source are named from.
    pub root: PathBuf,
    /// The transcripts, sorted by path.
    pub transcripts: Vec<Transcript>,
    /// Files that lie between the transcripts and are none: copies and traces of them.
    pub copies: Vec<Refused>,
    pub(crate) state: Option<openclaw::StateFolder>,
    pub(crate) extent: Extent,
}

/// How much of what belongs together was named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All of it.
    #[default]
    Whole,
    /// One agent of a state folder.
    Agent,
    /// One transcript.
    Transcript,
}

/// A file that holds a session, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// Its path.
    pub path: PathBuf,
    /// How long it is, in bytes.
    pub bytes: u64,
    /// When it was last changed, as far as that is known.
    pub modified: Option<Timestamp>,
    /// For a transcript of OpenClaw: the agent, the id in its name, and what has become of it.
    pub(crate) place: Option<Place>,
}

/// Where a transcript stands in a state folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) agent: String,
    pub(crate) stem: String,
    pub(crate) state: State,
}

/// A file or folder that is known and cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Its path.
    pub path: PathBuf,
    /// What it looks like, and why it is not imported, in words.
    pub reason: String,
}

/// What lies under a path on the disk.
///
/// # Errors
/// `NotFound` when there is nothing under the path; `Unsupported` when there is only what cannot be imported;
/// `InvalidInput` when nothing there is known; `Io` when it cannot be read.
pub fn discover(path: &Path) -> Result<Discovery> {
    discover_in(&DiskTree, path)
}

/// What lies under a path of a tree.
///
/// # Errors
/// As [`discover`].
pub fn discover_in(tree: &dyn SourceTree, path: &Path) -> Result<Discovery> {
    let node =
        tree.stat(path).map_err(|e| Error::io("there is nothing to import", e).path(path))?;
    let mut walk = Walk { tree, found: Discovery::default(), loose: BTreeMap::new(), nodes: 0 };
    match node.kind {
        NodeKind::File => walk.named_file(&node)?,
        NodeKind::Folder => walk.folder(path, 0)?,
        NodeKind::Link | NodeKind::Other => {
            return Err(Error::invalid("this is neither a file nor a folder").path(path));
        }
    }
    walk.finish(path)
}

struct Walk<'a> {
    tree: &'a dyn SourceTree,
    found: Discovery,
    /// Files of sessions that stand by themselves, by their programs.
    loose: BTreeMap<Program, Vec<Transcript>>,
    nodes: usize,
}

impl Walk<'_> {
    /// A file that was named: a transcript in a state folder, or one that stands by itself.
    fn named_file(&mut self, node: &Node) -> Result<()> {
        let folder = node.path.parent().unwrap_or(Path::new(""));
        if openclaw::is_sessions_folder(self.tree, folder) {
            let mut found = self.state_folder(folder)?;
            if node.name() != openclaw::INDEX {
                found.extent = Extent::Transcript;
                found.transcripts.retain(|transcript| transcript.path == node.path);
                if found.transcripts.is_empty() {
                    let reason = openclaw::not_a_session(node.name());
                    return Err(Error::invalid(reason).path(&node.path));
                }
            }
            self.found.sources.push(found);
            return Ok(());
        }
        self.file(node)?;
        // What belongs to a session of Claude Code lies in a folder of its name.
        let beside = node.path.with_extension("");
        if self.loose.contains_key(&Program::ClaudeCode) && beside != node.path {
            let is_folder = self.tree.stat(&beside).is_ok_and(|n| n.kind == NodeKind::Folder);
            if is_folder {
                self.folder(&beside, 1)?;
            }
        }
        Ok(())
    }

    fn folder(&mut self, folder: &Path, depth: usize) -> Result<()> {
        if openclaw::is_state_folder(self.tree, folder) {
            match self.state_folder(folder) {
                Ok(source) => self.found.sources.push(source),
                Err(e) if depth > 0 && *e.kind() == ErrorKind::Unsupported => {
                    self.refuse(folder, e.message().to_owned());
                }
                Err(e) => return Err(e),
            }
            return Ok(());
        }
        let projects = claude::projects(self.tree, folder);
        let folder = projects.as_deref().unwrap_or(folder);
        let nodes = match self.tree.list(folder) {
            Ok(nodes) => nodes,
            Err(e) if depth > 0 => {
                self.refuse(folder, format!("the folder cannot be read: {e}"));
                return Ok(());
            }
            Err(e) => return Err(Error::io("the folder cannot be read", e).path(folder)),
        };
        for node in nodes {
            self.nodes += 1;
            if self.nodes > NODES_MAX {
                return Err(Error::invalid(format!("there are more than {NODES_MAX} files"))
                    .path(folder)
                    .hint("name the folder that holds the sessions"));
            }
            match node.kind {
                NodeKind::File => self.file(&node)?,
                NodeKind::Folder if depth < DEPTH_MAX => self.folder(&node.path, depth + 1)?,
                NodeKind::Folder => self.refuse(&node.path, "the folder lies too deep".into()),
                NodeKind::Link => self.refuse(&node.path, LEADS_OUT.to_owned()),
                NodeKind::Other => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, node: &Node) -> Result<()> {
        let looks = match sniff::sniff(self.tree, &node.path) {
            Ok(looks) => looks,
            Err(e) => {
                self.refuse(&node.path, format!("the file cannot be read: {e}"));
                return Ok(());
            }
        };
        match looks {
            Looks::Session => self.loose(Program::Pi, node),
            Looks::Transcript => self.loose(Program::Annals, node),
            Looks::Of(program) if IMPORTED.contains(&program) => self.loose(program, node),
            Looks::Empty | Looks::Unknown | Looks::Index => {
                self.found.unknown.push(node.path.clone());
            }
            looks => self.refuse(&node.path, refusal(looks)),
        }
        Ok(())
    }

    fn loose(&mut self, program: Program, node: &Node) {
        self.loose.entry(program).or_default().push(transcript(node));
    }

    fn state_folder(&self, folder: &Path) -> Result<Source> {
        openclaw::state_folder(self.tree, folder)
    }

    fn refuse(&mut self, path: &Path, reason: String) {
        self.found.refused.push(Refused { path: path.to_path_buf(), reason });
    }

    /// The source of files that stand by themselves.
    fn source(program: Program, path: &Path, transcripts: Vec<Transcript>) -> Source {
        let file = transcripts.iter().any(|transcript| transcript.path == path);
        let root = if file { path.parent().unwrap_or(Path::new("")) } else { path };
        Source {
            program,
            root: root.to_path_buf(),
            transcripts,
            copies: Vec::new(),
            state: None,
            extent: Extent::Whole,
        }
    }

    /// The source of sessions of Claude Code, with what lies between them: sessions that begin with damage, and files
    /// that are none.
    fn claude_source(&mut self, path: &Path, found: Vec<Transcript>) -> Source {
        let mut source = Self::source(Program::ClaudeCode, path, found);
        let folders: HashSet<PathBuf> = source
            .transcripts
            .iter()
            .filter_map(|transcript| transcript.path.parent().map(Path::to_path_buf))
            .collect();
        for path in std::mem::take(&mut self.found.unknown) {
            let beside = path.parent().is_some_and(|folder| folders.contains(folder));
            let node = self.tree.stat(&path).ok().filter(|_| beside);
            match (claude::tell_apart(&path), node) {
                (Some(what), _) => source.copies.push(claude::refused(path, what)),
                (None, Some(node)) if path.extension().is_some_and(|e| e == "jsonl") => {
                    source.transcripts.push(transcript(&node));
                }
                _ => self.found.unknown.push(path),
            }
        }
        source.transcripts.sort_by(|a, b| a.path.cmp(&b.path));
        source
    }

    fn finish(mut self, path: &Path) -> Result<Discovery> {
        for (program, found) in std::mem::take(&mut self.loose) {
            let source = match program {
                Program::ClaudeCode => self.claude_source(path, found),
                program => Self::source(program, path, found),
            };
            self.found.sources.push(source);
        }
        if !self.found.sources.is_empty() {
            return Ok(self.found);
        }
        if let Some(first) = self.found.refused.first() {
            let more = match self.found.refused.len() - 1 {
                0 => String::new(),
                1 => format!("; one more file under {} likewise", path.display()),
                more => format!("; {more} more files under {} likewise", path.display()),
            };
            let message = format!("{}{more}", first.reason);
            return Err(Error::new(ErrorKind::Unsupported, message).path(&first.path).hint(KNOWN));
        }
        Err(Error::invalid("nothing here is a transcript of a program known here")
            .path(path)
            .hint(KNOWN))
    }
}

const KNOWN: &str = "what can be imported: state folders of OpenClaw before its sessions moved to SQLite, session files \
     of pi, sessions of Claude Code, Codex, Gemini CLI, Hermes and Arka, and what `annals export --as jsonl` writes";

/// Programs whose files are known by sight and imported each by itself.
const IMPORTED: [Program; 5] =
    [Program::ClaudeCode, Program::Codex, Program::Gemini, Program::Hermes, Program::Arka];

fn transcript(node: &Node) -> Transcript {
    Transcript { path: node.path.clone(), bytes: node.bytes, modified: node.modified, place: None }
}

/// Why a file that looks like this is not imported.
pub(crate) fn refusal(looks: Looks) -> String {
    match looks {
        Looks::Of(Program::Annals) => "this is a log of annals, which needs no import".to_owned(),
        Looks::Of(program) => {
            format!("this looks like a file of {program}, which cannot be imported yet")
        }
        Looks::Sqlite(version) => format!(
            "this is a SQLite database (user_version {version}), which cannot be imported yet"
        ),
        Looks::Zstd => {
            "this is compressed with Zstandard, and cannot be imported: unpack it with `zstd -d` first"
                .to_owned()
        }
        Looks::Gzip => {
            "this is compressed with gzip, and cannot be imported: unpack it with `gunzip` first"
                .to_owned()
        }
        Looks::Session | Looks::Transcript | Looks::Index | Looks::Empty | Looks::Unknown => {
            "this is no transcript of a program known here".to_owned()
        }
    }
}

/// What of an I/O error is worth a refusal instead of an end: the thing is simply not there.
pub(crate) fn absent(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
