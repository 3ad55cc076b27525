//! What an import is going to do with a source: sessions by key, each with its parts in order. Nothing of the
//! transcripts but their first lines is read for it, and nothing of the store.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::claude::Lane;
use super::discover::{Source, Transcript};
use super::fields::Fields;
use super::pi::{Entry, Kind};
use super::sniff::Program;
use super::tree::SourceTree;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::format::hex;
use crate::session::event::{
    ArchiveReason, Ingress, Members, Provenance, SessionKind, SessionOpened, Source as Record,
};
use crate::session::key::SessionKey;

/// A session.
#[derive(Clone, Debug)]
pub(crate) struct SessionPlan {
    /// The key that it is to have.
    pub(crate) key: SessionKey,
    pub(crate) opening: Opening,
    /// Where its first turn comes from, when a spawn caused it.
    pub(crate) task: Option<Provenance>,
    /// The door that a user's turns come through when they do not say.
    pub(crate) door: Ingress,
    /// Its parts, oldest first.
    pub(crate) parts: Vec<PartPlan>,
    /// What the program's index says of it now.
    pub(crate) index: Option<IndexState>,
    pub(crate) archived: Option<(ArchiveReason, Timestamp)>,
    /// The key of the session that spawned it.
    pub(crate) parent: Option<SessionKey>,
}

impl SessionPlan {
    pub(crate) fn label(&self) -> Option<&str> {
        self.opening.0.label.as_deref()
    }

    /// A session of one part that its program says nothing more of, and which has no file yet.
    pub(crate) fn bare(
        program: Program,
        key: SessionKey,
        id: &str,
        began: Option<Timestamp>,
    ) -> Self {
        let program = program.code();
        Self {
            key,
            opening: Opening::bare(SessionKind::Other, program.to_owned(), program),
            task: None,
            door: Ingress::External,
            parts: vec![PartPlan {
                session_id: id.to_owned(),
                scope: id.to_owned(),
                files: Vec::new(),
                began,
                reset: None,
                ended: None,
                twin: Twin::First,
                forked_from: None,
            }],
            index: None,
            archived: None,
            parent: None,
        }
    }

    /// When it began, as far as that is known.
    pub(crate) fn began(&self) -> Option<Timestamp> {
        self.parts.iter().find_map(|part| part.began)
    }
}

/// What `session.opened` says of every part.
#[derive(Clone, Debug)]
pub(crate) struct Opening(pub(crate) SessionOpened);

/// A part of a session: one session of the program, in one file, or in several that go on from each other.
#[derive(Clone, Debug)]
pub(crate) struct PartPlan {
    /// The program's own id of it.
    pub(crate) session_id: String,
    /// The id in the scope of which its records have theirs.
    pub(crate) scope: String,
    /// Its files, in the order in which they are read.
    pub(crate) files: Vec<FilePlan>,
    /// When it began, as far as that is known.
    pub(crate) began: Option<Timestamp>,
    /// When the part before it was reset, as far as that is known.
    pub(crate) reset: Option<Timestamp>,
    /// When it was reset itself.
    pub(crate) ended: Option<Timestamp>,
    /// Whether another session has the same transcript, and its usage is counted there.
    pub(crate) twin: Twin,
    /// The file of the session that it was forked from.
    pub(crate) forked_from: Option<PathBuf>,
}

/// Whether a part is the only one of its transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twin {
    /// It is, or it is the first.
    First,
    /// Another session has it too.
    Second,
}

/// A file of a part.
#[derive(Clone, Debug)]
pub(crate) struct FilePlan {
    pub(crate) path: PathBuf,
    /// Its name in events and reports.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// Which of its lines belong to the part.
    pub(crate) lane: Lane,
}

/// What an index says of a session.
#[derive(Clone, Debug)]
pub(crate) struct IndexState {
    pub(crate) at: Option<Timestamp>,
    pub(crate) set: Members,
    /// The row, with those of its fields that are not set.
    pub(crate) source: Record,
}

/// What the first lines of a transcript tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peek {
    /// The id in its header.
    pub(crate) session_id: Option<String>,
    /// When it began: by its header, else by its first entry.
    pub(crate) began: Option<Timestamp>,
    /// The file of the session that it was forked from.
    pub(crate) forked_from: Option<PathBuf>,
}

/// How much of a transcript is looked at for its header, in bytes: a little at first, and more when it is not there.
const PEEK_BYTES: [u64; 2] = [4 << 10, 256 << 10];

/// How many lines of that are looked at.
const PEEK_LINES: usize = 16;

/// The longest id of a session that is made a part of a key as it is, in bytes.
const ID_BYTES_MAX: usize = 512;

/// Reads the first lines of a transcript.
pub(crate) fn peek(tree: &dyn SourceTree, path: &Path) -> Result<Peek> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let mut file = tree.open(path).map_err(failed)?;
    let mut prefix = Vec::new();
    let mut peek = Peek::default();
    for bytes in PEEK_BYTES {
        let more = bytes - prefix.len() as u64;
        file.by_ref().take(more).read_to_end(&mut prefix).map_err(failed)?;
        peek = peek_at(&prefix);
        if peek.session_id.is_some() || (prefix.len() as u64) < bytes {
            break;
        }
    }
    Ok(peek)
}

fn peek_at(prefix: &[u8]) -> Peek {
    let mut peek = Peek::default();
    for line in prefix.split(|b| *b == b'\n').take(PEEK_LINES) {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let Ok(text) = std::str::from_utf8(line) else { continue };
        let Some(entry) = Entry::parse(text) else { continue };
        if entry.kind() == Some(Kind::Session) {
            return header(&entry.fields);
        }
        peek.began = peek.began.or_else(|| entry.at());
    }
    peek
}

/// The key of a session that its program gives none: by its id, or by the hash of one that no key can hold.
pub(crate) fn own_key(program: &str, id: &str) -> Result<SessionKey> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        return SessionKey::of_chat(program, &hex(&Sha256::digest(id)));
    }
    SessionKey::of_chat(program, id)
}

fn header(fields: &Fields<'_>) -> Peek {
    let text = |name: &str| fields.text(name).map(|text| text.into_owned());
    let forked = text("parentSession").or_else(|| text("branchedFrom"));
    Peek {
        session_id: text("id").filter(|id| !id.is_empty()),
        began: fields.get("timestamp").and_then(super::fields::time),
        forked_from: forked.map(PathBuf::from),
    }
}

impl Opening {
    /// The opening of a session that its program says nothing more of.
    pub(crate) fn bare(kind: SessionKind, agent_id: String, program: &str) -> Self {
        Self(SessionOpened {
            at: None,
            session_id: String::new(),
            kind,
            agent_id,
            channel: None,
            chat_type: None,
            chat_id: None,
            account_id: None,
            thread_id: None,
            parent_key: None,
            parent_session_id: None,
            spawn_depth: 0,
            sandboxed: None,
            label: None,
            display_name: None,
            origin: None,
            program: Some(program.to_owned()),
            source_path: None,
        })
    }
}

/// The name of a file in events: from the root of its source, with `/` between parts.
pub(crate) fn name_from(root: &Path, path: &Path) -> String {
    let inside = path.strip_prefix(root).unwrap_or(path);
    inside.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Sessions by key while a source is planned.
#[derive(Debug, Default)]
pub(crate) struct Sessions(BTreeMap<SessionKey, SessionPlan>);

impl Sessions {
    pub(crate) fn has(&self, key: &SessionKey) -> bool {
        self.0.contains_key(key)
    }

    /// Takes a session with its file; a copy of one that is there is another file of its part.
    pub(crate) fn add(&mut self, mut plan: SessionPlan, file: FilePlan) {
        let there = self.0.get_mut(&plan.key).and_then(|session| session.parts.first_mut());
        if let Some(part) = there {
            part.files.push(file);
            return;
        }
        if let Some(part) = plan.parts.first_mut() {
            part.files.push(file);
        }
        self.0.insert(plan.key.clone(), plan);
    }

    /// The sessions, in the order of their keys.
    pub(crate) fn into_plans(self) -> Vec<SessionPlan> {
        self.0.into_values().collect()
    }
}

/// The whole of a transcript as a file of a part.
pub(crate) fn whole_file(source: &Source, transcript: &Transcript) -> FilePlan {
    FilePlan {
        path: transcript.path.clone(),
        name: name_from(&source.root, &transcript.path),
        bytes: transcript.bytes,
        lane: Lane::Whole,
    }
}
