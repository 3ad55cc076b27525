//! What is kept from one import of a source that grows to the next, so that only what is new is read: how far each file
//! was read and what its records told together, what the streams of the store have, and who speaks with whom. All of it can
//! be thrown away: then files are read from their beginnings, and their records are known again by their ids.

use std::collections::{BTreeSet, HashMap};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::claude::{self, Rows};
use super::damage::{Damage, DamageClass};
use super::discover::Source;
use super::known::Known;
use super::plan::SessionPlan;
use super::relations::Relations;
use super::sniff::Program;
use super::story::Story;
use super::tree::SourceTree;
use super::writer::StreamWriter;
use crate::error::{Error, Result};
use crate::id::StreamName;

/// How many bytes before the place where reading goes on must be what they were.
const CHECK_BYTES: u64 = 1 << 10;

/// How many streams are kept in mind.
const WRITERS_MAX: usize = 1_000;

/// The end of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The file has its end: what breaks off there is torn.
    #[default]
    Final,
    /// The file grows: what breaks off there is not whole yet, and left for later.
    Growing,
}

/// Everything that is kept.
#[derive(Default)]
pub(crate) struct Pursuit {
    pub(crate) known: Known,
    writers: HashMap<StreamName, StreamWriter>,
    cursors: HashMap<PathBuf, Cursor>,
    sources: HashMap<(Program, PathBuf), Kept>,
    /// The sessions of files that are a part each, and all of it.
    plans: HashMap<PathBuf, SessionPlan>,
    /// Records that had begun at the ends of files, and were taken away before they were whole: the file, and where they
    /// began and ended.
    lost: Vec<(PathBuf, Range<u64>)>,
}

/// What is kept of a source.
pub(crate) struct Kept {
    pub(crate) relations: Relations,
    pub(crate) rows: Rows,
    /// Whether the store was told that its import began.
    pub(crate) begun: bool,
}

/// How far a file was read.
pub(crate) struct Cursor {
    /// The session that it was read for.
    key: String,
    /// The place behind the last record, in bytes.
    pub(crate) offset: u64,
    pub(crate) story: Story,
    /// The bytes before that place.
    check: Vec<u8>,
}

impl Pursuit {
    /// The sessions of those files of which only the end has changed, which are left out of the source.
    ///
    /// # Errors
    /// Whatever reading the files meets.
    pub(crate) fn planned(
        &mut self,
        tree: &dyn SourceTree,
        source: &mut Source,
        wanted: Option<&BTreeSet<PathBuf>>,
    ) -> Result<Vec<SessionPlan>> {
        let mut plans = Vec::new();
        let mut others = Vec::new();
        let is_wanted = |path: &Path| wanted.is_none_or(|wanted| wanted.contains(path));
        for transcript in std::mem::take(&mut source.transcripts) {
            let path = &transcript.path;
            let goes_on = is_wanted(path) && self.goes_on(tree, source.program, path)?;
            match self.plans.get(path).filter(|_| goes_on).cloned() {
                Some(mut plan) => {
                    for file in plan.parts.iter_mut().flat_map(|part| &mut part.files) {
                        file.bytes = transcript.bytes;
                    }
                    plans.push(plan);
                }
                None => others.push(transcript),
            }
        }
        source.transcripts = others;
        Ok(plans)
    }

    /// Whether a file is one that was read and has only grown since.
    fn goes_on(&mut self, tree: &dyn SourceTree, program: Program, path: &Path) -> Result<bool> {
        // Of a file without a record it is not known which session it is of.
        let cursor = self.cursors.get(path).filter(|cursor| cursor.story.has_begun());
        let Some(cursor) = cursor.filter(|_| self.plans.contains_key(path)) else {
            return Ok(false);
        };
        // A sub-agent among the rows of its session is a session of its own.
        let holds = cursor.is_of(tree, path)?
            && (program != Program::ClaudeCode
                || !claude::may_have_chains(tree, path, cursor.offset)?);
        if !holds {
            self.forget(path);
        }
        Ok(holds)
    }

    /// A file is another one now, or shorter, or gone: throws away what is kept of it. It was so long before, and is now;
    /// what stood behind its last whole record then, and does not any more, is lost.
    pub(crate) fn replaced(&mut self, tree: &dyn SourceTree, path: &Path, before: u64, now: u64) {
        if let Some(cursor) = self.cursors.get(path) {
            let begun = cursor.offset < before;
            // A longer file with the same beginning has what the other had, as far as anybody can tell.
            if begun && !(now >= before && cursor.is_of(tree, path).unwrap_or(false)) {
                self.lost.push((path.to_path_buf(), cursor.offset..before));
            }
        }
        self.forget(path);
    }

    /// Whether a file that was read has not any more what was read there.
    pub(crate) fn is_another(&self, tree: &dyn SourceTree, path: &Path) -> bool {
        self.cursors.get(path).is_some_and(|cursor| !cursor.is_of(tree, path).unwrap_or(false))
    }

    /// Whether a record of a source was lost and not told yet.
    pub(crate) fn lost_of(&self, source: &Source) -> bool {
        self.lost.iter().any(|(path, _)| path.starts_with(&source.root))
    }

    /// Takes those of this source, as damages.
    pub(crate) fn take_lost(&mut self, source: &Source) -> Vec<Damage> {
        let lost = self.lost.extract_if(.., |(path, _)| path.starts_with(&source.root));
        let damage = |(path, range): (PathBuf, Range<u64>)| Damage {
            class: DamageClass::TornTail,
            file: path.strip_prefix(&source.root).unwrap_or(&path).display().to_string(),
            offset: range.start,
            bytes: range.end - range.start,
            recovered: 0,
            detail: "what the file ended in was taken away before it was whole".to_owned(),
        };
        lost.map(damage).collect()
    }

    /// Throws away what is kept of a file.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.cursors.remove(path);
        self.plans.remove(path);
    }

    /// Keeps the plans of sessions that can go on without being planned anew.
    pub(crate) fn keep_plans<'p>(&mut self, plans: impl Iterator<Item = &'p SessionPlan>) {
        for plan in plans {
            let [part] = plan.parts.as_slice() else { continue };
            let [file] = part.files.as_slice() else { continue };
            self.plans.insert(file.path.clone(), plan.clone());
        }
    }

    /// What is kept of a source.
    pub(crate) fn take_source(&mut self, source: &Source) -> Option<Kept> {
        self.sources.remove(&(source.program, source.root.clone()))
    }

    pub(crate) fn keep_source(&mut self, source: &Source, kept: Kept) {
        self.sources.insert((source.program, source.root.clone()), kept);
    }

    /// Where to go on in a file, if it was read for this session and has only grown since.
    ///
    /// # Errors
    /// Whatever reading the file meets.
    pub(crate) fn resume(
        &mut self,
        tree: &dyn SourceTree,
        key: &str,
        path: &Path,
    ) -> Result<Option<Cursor>> {
        let Some(cursor) = self.cursors.remove(path) else { return Ok(None) };
        Ok(if cursor.key == key && cursor.is_of(tree, path)? { Some(cursor) } else { None })
    }

    /// Keeps how far a file was read.
    ///
    /// # Errors
    /// Whatever reading the file meets.
    pub(crate) fn keep(
        &mut self,
        tree: &dyn SourceTree,
        key: &str,
        path: &Path,
        offset: u64,
        story: Story,
    ) -> Result<()> {
        let check = bytes_before(tree, path, offset)?;
        let cursor = Cursor { key: key.to_owned(), offset, story, check };
        self.cursors.insert(path.to_path_buf(), cursor);
        Ok(())
    }

    pub(crate) fn take_writer(&mut self, stream: &StreamName) -> Option<StreamWriter> {
        self.writers.remove(stream)
    }

    pub(crate) fn keep_writer(&mut self, writer: StreamWriter) {
        if self.writers.len() >= WRITERS_MAX {
            self.writers.clear();
        }
        self.writers.insert(writer.stream().clone(), writer);
    }
}

impl Cursor {
    /// Whether the file still has before the cursor what was read there.
    fn is_of(&self, tree: &dyn SourceTree, path: &Path) -> Result<bool> {
        Ok(bytes_before(tree, path, self.offset)? == self.check)
    }
}

/// The last bytes of a file before a place; fewer when the file is shorter.
fn bytes_before(tree: &dyn SourceTree, path: &Path, offset: u64) -> Result<Vec<u8>> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let mut file = tree.open(path).map_err(failed)?;
    let count = offset.min(CHECK_BYTES);
    file.seek(SeekFrom::Start(offset - count)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
