//! The transcripts that lie where programs usually keep them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use annals_engine::import::{DiskTree, Homes, Usual, UsualPlaces, discover_usual, newest};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::Output;
use crate::output::table::{Column, dress};
use crate::output::text::{bytes, count, grouped, one_line};

/// How much is imported at once without being named.
const BYTES_MAX: u64 = 256 << 20;

/// What was found.
#[derive(Default)]
pub(crate) struct Places(UsualPlaces);

/// The transcripts under one folder.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    program: &'static str,
    pub(crate) root: PathBuf,
    transcripts: u64,
    bytes: u64,
}

impl Places {
    /// Looks under the home folder, and where variables say that programs keep their own; without a home there is
    /// nothing.
    pub(crate) fn find() -> Self {
        let folder = |name: &str| {
            std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from)
        };
        let look = |home: PathBuf| {
            Self(discover_usual(
                &DiskTree,
                &Homes {
                    claude: folder("CLAUDE_CONFIG_DIR"),
                    codex: folder("CODEX_HOME"),
                    chats: folder("MESSAGE_SESSIONS_DIR"),
                    subagents: folder("SUBAGENT_DIR"),
                    ..Homes::of(home)
                },
            ))
        };
        etcetera::home_dir().map(look).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.transcripts.is_empty()
    }

    /// Folder by folder.
    pub(crate) fn list(&self) -> Vec<Place> {
        let mut places: BTreeMap<&PathBuf, Place> = BTreeMap::new();
        for Usual { program, root, transcript } in &self.0.transcripts {
            let place = places.entry(root).or_insert_with(|| Place {
                program: program.name(),
                root: root.clone(),
                transcripts: 0,
                bytes: 0,
            });
            place.transcripts += 1;
            place.bytes += transcript.bytes;
        }
        places.into_values().collect()
    }

    /// The newest transcripts, by the folder to import them from.
    pub(crate) fn newest_by_root(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut roots: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for usual in self.newest() {
            roots.entry(usual.root.clone()).or_default().insert(usual.transcript.path.clone());
        }
        roots
    }

    /// `12 transcripts, 34.1 MiB`.
    pub(crate) fn newest_in_words(&self) -> String {
        let newest = self.newest();
        let which = if newest.len() < self.0.transcripts.len() { "the newest " } else { "" };
        format!("{which}{}", in_words(newest))
    }

    /// The folders that hold more than was imported.
    pub(crate) fn roots_of_the_rest(&self) -> BTreeSet<PathBuf> {
        let rest = self.0.transcripts.get(self.newest().len()..).unwrap_or_default();
        rest.iter().map(|usual| usual.root.clone()).collect()
    }

    pub(crate) fn show(&self, out: &mut Output) -> Result<(), Failure> {
        if self.is_empty() {
            out.line("found     no transcripts where agent programs usually keep them")?;
        } else {
            out.line(&format!("found     {}", in_words(&self.0.transcripts)))?;
            let columns = [
                Column::fixed("PROGRAM"),
                Column::fixed("TRANSCRIPTS").right(),
                Column::fixed("SIZE").right(),
                Column::shrinking("FOLDER", 16),
            ];
            let row = |place: Place| {
                vec![
                    place.program.into(),
                    grouped(place.transcripts).into(),
                    bytes(place.bytes).into(),
                    place.root.display().to_string().into(),
                ]
            };
            out.table(&columns, &self.list().into_iter().map(row).collect::<Vec<_>>())?;
        }
        for refused in &self.0.refused {
            let text = format!("{}: {}", refused.path.display(), one_line(&refused.reason));
            out.line(&dress(&format!("skipped   {text}"), out.paint.warning()))?;
        }
        Ok(())
    }

    fn newest(&self) -> &[Usual] {
        newest(&self.0.transcripts, BYTES_MAX)
    }
}

fn in_words(transcripts: &[Usual]) -> String {
    let size = transcripts.iter().map(|usual| usual.transcript.bytes).sum();
    let number = u64::try_from(transcripts.len()).unwrap_or(u64::MAX);
    format!("{}, {}", count(number, "transcript"), bytes(size))
}
