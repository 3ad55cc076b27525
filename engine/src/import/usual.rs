//! The folders in which programs usually keep their sessions.

use std::path::{Path, PathBuf};

use super::discover::{Refused, Transcript, discover_in};
use super::sniff::Program;
use super::tree::SourceTree;
use crate::error::ErrorKind;

/// Where somebody keeps the sessions of programs: under a home folder, and where programs were told to keep them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Homes {
    /// The home folder.
    pub home: PathBuf,
    /// The folder of Claude Code, where it is not `.claude` there.
    pub claude: Option<PathBuf>,
    /// The folder of Codex, where it is not `.codex` there.
    pub codex: Option<PathBuf>,
    /// The folder of Arka's message sessions, where it is none of the usual ones.
    pub chats: Option<PathBuf>,
    /// The folder of the records of Arka's sub-agents, where it is none of the usual ones.
    pub subagents: Option<PathBuf>,
}

impl Homes {
    /// A home folder in which everything is where it usually is.
    #[must_use]
    pub fn of(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into(), ..Self::default() }
    }

    /// The folders, each once.
    fn roots(&self) -> Vec<PathBuf> {
        let at = |place: &str| self.home.join(place);
        let or = |moved: &Option<PathBuf>, place: &str| moved.clone().unwrap_or_else(|| at(place));
        let codex = or(&self.codex, ".codex");
        let mut roots: Vec<PathBuf> = [".openclaw", ".clawdbot", ".moltbot", ".pi/agent/sessions"]
            .into_iter()
            .map(at)
            .chain([or(&self.claude, ".claude").join("projects")])
            .chain(["sessions", "archived_sessions"].map(|folder| codex.join(folder)))
            .chain([at(".gemini/tmp"), at(".hermes/sessions")])
            .collect();
        match &self.chats {
            Some(moved) => roots.push(moved.clone()),
            None => roots
                .extend([".config/arka/message-sessions", ".config/fish/message-sessions"].map(at)),
        }
        match &self.subagents {
            Some(moved) => roots.push(moved.clone()),
            None => {
                roots.extend([".cache/arka/subagents", ".cache/fish-agent/subagents"].map(at));
            }
        }
        roots
    }
}

/// A transcript that was found where a program usually keeps its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usual {
    /// The program.
    pub program: Program,
    /// The folder to import.
    pub root: PathBuf,
    /// The transcript.
    pub transcript: Transcript,
}

/// What [`discover_usual`] found.
#[derive(Clone, Debug, Default)]
pub struct UsualPlaces {
    /// Every transcript, newest first; those of unknown age come last.
    pub transcripts: Vec<Usual>,
    /// What is there and cannot be imported.
    pub refused: Vec<Refused>,
}

/// Looks where programs usually keep their sessions. A folder that is a store of this program is none of them.
#[must_use]
pub fn discover_usual(tree: &dyn SourceTree, homes: &Homes) -> UsualPlaces {
    let mut places = UsualPlaces::default();
    let is_store = |root: &Path| tree.stat(&root.join("store.json")).is_ok();
    for root in homes.roots().into_iter().filter(|root| !is_store(root)) {
        match discover_in(tree, &root) {
            Ok(found) => {
                places.refused.extend(found.refused);
                for source in found.sources {
                    let (program, root) = (source.program, source.root);
                    places.transcripts.extend(
                        source.transcripts.into_iter().map(|transcript| Usual {
                            program,
                            root: root.clone(),
                            transcript,
                        }),
                    );
                }
            }
            Err(e) if *e.kind() == ErrorKind::Unsupported => {
                let path = e.place().path.clone().unwrap_or(root);
                places.refused.push(Refused { path, reason: e.message().to_owned() });
            }
            Err(_) => {}
        }
    }
    places.transcripts.sort_by(|a, b| {
        let key = |usual: &Usual| std::cmp::Reverse(usual.transcript.modified);
        key(a).cmp(&key(b)).then_with(|| a.transcript.path.cmp(&b.transcript.path))
    });
    places
}

/// The newest transcripts that fit into a number of bytes together: the first is taken in any case, and the first one
/// that does not fit ends the selection.
#[must_use]
pub fn newest(transcripts: &[Usual], bytes_max: u64) -> &[Usual] {
    let mut bytes = 0_u64;
    let fits = |usual: &&Usual| {
        bytes = bytes.saturating_add(usual.transcript.bytes);
        bytes <= bytes_max
    };
    let count = transcripts.iter().take_while(fits).count().max(1);
    transcripts.get(..count).unwrap_or(transcripts)
}
