//! Transcripts that grow: each record comes once, whatever becomes of the files. What a round does follows from the files
//! as they are then, and not from what was told of them: notifications only say when to look.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::discover::{Discovery, Refused, Source, discover_in};
use super::importer::{Options, import_kept, skipped};
use super::mend;
use super::pursuit::Pursuit;
use super::report::{Counts, Progress, Report};
use super::sniff::{Looks, Program, sniff};
use super::stream::looks_of;
use super::tree::SourceTree;
use super::writer::{Journal, Mode};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::store::EventStore;
use crate::watch::{Files, NoNotice, Selection, Stamp, Tree};

/// How much of a file is read to see whether its first record is whole, in bytes: a little at first.
const FIRST_BYTES: [u64; 3] = [8 << 10, 256 << 10, 4 << 20];

/// Follows what lies under some paths. What it knows of the files can be thrown away: one that begins anew reads all of
/// them and adds what is new.
pub struct Following<'s> {
    store: &'s dyn EventStore,
    clock: &'s dyn Clock,
    tree: &'s dyn SourceTree,
    files: Box<dyn Files + 's>,
    paths: Vec<PathBuf>,
    /// The files as they were when they were read.
    stamps: BTreeMap<PathBuf, Stamp>,
    /// Those that were so fresh then that they may be others with the same stamps.
    fresh: BTreeSet<PathBuf>,
    found: Vec<Discovery>,
    kept: Option<Pursuit>,
    /// Whether it was looked for what there is.
    looked: bool,
    /// What was told to be none of what can be imported.
    refused: BTreeSet<PathBuf>,
    /// What came from each source.
    counts: BTreeMap<(Program, PathBuf), Counts>,
    notice: Option<NoNotice>,
    /// Files of which a change was told since they were read, whether all are, and whether anything was told.
    hinted: BTreeSet<PathBuf>,
    all_hinted: bool,
    is_told: bool,
    /// Whether what was told of could not be read, so that it is told of again.
    again: bool,
}

impl std::fmt::Debug for Following<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Following").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl<'s> Following<'s> {
    /// Follows the files under these paths, which are absolute. `files` gives what lies there, and `tree` opens it.
    ///
    /// # Errors
    /// `NotFound` when there is nothing under a path.
    pub fn new(
        store: &'s dyn EventStore,
        clock: &'s dyn Clock,
        tree: &'s dyn SourceTree,
        mut files: Box<dyn Files + 's>,
        paths: Vec<PathBuf>,
    ) -> Result<Self> {
        for path in &paths {
            tree.stat(path).map_err(|e| Error::io("there is nothing to import", e).path(path))?;
        }
        let notice = files.notify().err();
        Ok(Self {
            store,
            clock,
            tree,
            files,
            paths,
            stamps: BTreeMap::new(),
            fresh: BTreeSet::new(),
            found: Vec::new(),
            kept: Some(Pursuit::default()),
            looked: false,
            refused: BTreeSet::new(),
            counts: BTreeMap::new(),
            notice,
            hinted: BTreeSet::new(),
            all_hinted: false,
            is_told: false,
            again: false,
        })
    }

    /// Why nothing is told of changes, so that they are only looked for now and then; `None` while it is.
    #[must_use]
    pub const fn notice(&self) -> Option<NoNotice> {
        self.notice
    }

    /// Tries anew to be told of changes. What changes before it returns may not be told.
    pub fn notify(&mut self) {
        self.notice = self.files.notify().err();
    }

    /// Waits until something may have changed, or for so long; tells whether something may have.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        match self.files.hints(timeout) {
            Ok(hints) => {
                if hints.lost {
                    // A folder that came to be meanwhile tells nothing yet.
                    self.notify();
                }
                let is_told = hints.lost || !hints.paths.is_empty();
                self.is_told |= is_told;
                self.all_hinted |= hints.lost;
                self.hinted.extend(hints.paths);
                is_told
            }
            Err(notice) => {
                self.notice = Some(notice);
                true
            }
        }
    }

    /// Whether something was told of changes since this was asked last. A round that finds something although nothing was
    /// told found what nobody tells of.
    pub fn was_told(&mut self) -> bool {
        std::mem::take(&mut self.is_told)
    }

    /// Imports what is new, and tells what that is; `None` when there is nothing. On return it is on stable storage.
    ///
    /// # Errors
    /// Whatever reading the files and appending to the store meet. A file that vanishes on the way is no error.
    pub fn round(&mut self, progress: &mut dyn FnMut(Progress)) -> Result<Option<Report>> {
        self.is_told |= std::mem::take(&mut self.again);
        self.wait(Duration::ZERO);
        let scan = self.files.scan().files;
        let now = self.clock.now();
        // Where hints come one tells of every change that a stamp does not.
        let may_differ =
            |path: &PathBuf| self.all_hinted || self.notice.is_some() || self.hinted.contains(path);
        let is_meant = |path: &PathBuf, stamp: &Stamp| {
            self.stamps.get(path) != Some(stamp) || self.fresh.contains(path) && may_differ(path)
        };
        let changed: BTreeMap<PathBuf, Stamp> = scan
            .iter()
            .filter(|(path, stamp)| is_meant(path, stamp))
            .map(|(path, stamp)| (path.clone(), *stamp))
            .collect();
        self.forget(&scan, &changed);
        let mut report = Report::new(Mode::Append);
        let begun: BTreeSet<&PathBuf> = changed.keys().filter(|path| self.is_begun(path)).collect();
        if !self.looked || begun.iter().any(|path| self.changes_the_sources(path)) {
            self.discover(&mut report)?;
        }
        let mut found = std::mem::take(&mut self.found);
        let imported = found
            .iter_mut()
            .try_for_each(|found| self.import(found, &scan, &begun, &mut report, progress));
        self.found = found;
        let begun: BTreeSet<PathBuf> = begun.into_iter().cloned().collect();
        match imported {
            Ok(()) => {
                self.hinted.clear();
                self.all_hinted = false;
                for (path, stamp) in changed.into_iter().filter(|(path, _)| begun.contains(path)) {
                    match stamp.is_fresh(now) {
                        true => drop(self.fresh.insert(path.clone())),
                        false => drop(self.fresh.remove(&path)),
                    }
                    self.stamps.insert(path, stamp);
                }
            }
            Err(e) if *e.kind() == ErrorKind::NotFound => {
                self.kept = Some(Pursuit::default());
                self.again = true;
            }
            Err(e) => return Err(e),
        }
        report.sources.retain(|source| source.counts.new > 0 || source.counts.damages > 0);
        Ok(Some(report).filter(|told| !(told.sources.is_empty() && told.refused.is_empty())))
    }

    /// Says in the store that the following ended.
    ///
    /// # Errors
    /// What appending says.
    pub fn finish(self) -> Result<()> {
        for ((program, root), counts) in self.counts {
            if counts.new == 0 {
                continue;
            }
            let (path, code) = (root.display().to_string(), program.code());
            Journal::new(self.store, self.clock, Mode::Append, code, path)
                .ending()
                .finish(counts.members()?)?;
        }
        Ok(())
    }

    /// Throws away what was known of files that are others now.
    fn forget(&mut self, scan: &BTreeMap<PathBuf, Stamp>, changed: &BTreeMap<PathBuf, Stamp>) {
        let kept = self.kept.get_or_insert_default();
        for (path, stamp) in changed {
            let Some(before) = self.stamps.get(path).copied() else { continue };
            let is_another = before.inode != stamp.inode || before.len > stamp.len;
            if is_another || kept.is_another(self.tree, path) {
                kept.replaced(self.tree, path, before.len, stamp.len);
                // What it is, and of which session, is to be seen anew.
                self.stamps.remove(path);
                let looks = sniff(self.tree, path).unwrap_or(Looks::Unknown);
                for source in self.found.iter_mut().flat_map(|found| &mut found.sources) {
                    let other = looks != looks_of(source.program) && looks != Looks::Empty;
                    source.transcripts.retain(|t| t.path != *path || !other);
                }
            }
        }
        let gone: Vec<PathBuf> =
            self.stamps.keys().filter(|path| !scan.contains_key(*path)).cloned().collect();
        for path in gone {
            if let Some(before) = self.stamps.remove(&path) {
                kept.replaced(self.tree, &path, before.len, 0);
            }
        }
    }

    /// Whether the first record of a file is whole. What a file is, and of which session, it says there.
    fn is_begun(&self, path: &Path) -> bool {
        if self.stamps.contains_key(path) {
            return true;
        }
        let Ok(mut file) = self.tree.open(path) else { return false };
        let mut bytes = Vec::new();
        for limit in FIRST_BYTES {
            let more = limit - bytes.len() as u64;
            if file.by_ref().take(more).read_to_end(&mut bytes).is_err() {
                return false;
            }
            if bytes.contains(&b'\n') || (bytes.len() as u64) < limit {
                break;
            }
        }
        let object = bytes.trim_ascii_start();
        bytes.contains(&b'\n')
            || Some(&(bytes.len() as u64)) == FIRST_BYTES.last()
            || (!object.is_empty() && mend::scan(object, 0).is_ok())
    }

    /// Whether a file that changed may be more than the growing end of a transcript that is known.
    fn changes_the_sources(&self, path: &Path) -> bool {
        let mut sources = self.found.iter().flat_map(|found| &found.sources);
        if sources.clone().any(|s| s.transcripts.iter().any(|t| t.path == path)) {
            return false;
        }
        if sources.any(|source| source.state.is_some() && path.starts_with(&source.root)) {
            return true;
        }
        let looks = sniff(self.tree, path).unwrap_or(Looks::Unknown);
        match looks {
            Looks::Session | Looks::Transcript | Looks::Index | Looks::Of(_) => true,
            Looks::Sqlite(_) | Looks::Zstd | Looks::Gzip => !self.refused.contains(path),
            Looks::Empty | Looks::Unknown => false,
        }
    }

    /// Finds out what there is, and tells once of what can only be refused. That there is nothing yet is no error.
    fn discover(&mut self, report: &mut Report) -> Result<()> {
        self.looked = true;
        self.found.clear();
        let mut refused = Vec::new();
        for path in &self.paths {
            match discover_in(self.tree, path) {
                Ok(mut found) => {
                    refused.append(&mut found.refused);
                    self.found.push(found);
                }
                Err(e) if *e.kind() == ErrorKind::Unsupported => {
                    let path = e.place().path.clone().unwrap_or_else(|| path.clone());
                    refused.push(Refused { path, reason: e.message().to_owned() });
                }
                Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {}
                Err(e) => return Err(e),
            }
        }
        refused.retain(|refused| self.refused.insert(refused.path.clone()));
        report.refused.extend(refused.iter().map(skipped));
        Ok(())
    }

    fn import(
        &mut self,
        found: &mut Discovery,
        scan: &BTreeMap<PathBuf, Stamp>,
        changed: &BTreeSet<&PathBuf>,
        report: &mut Report,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<()> {
        let mut only = BTreeSet::new();
        for source in &mut found.sources {
            let beside =
                source.state.is_some() && changed.iter().any(|path| path.starts_with(&source.root));
            let known: HashSet<PathBuf> =
                source.transcripts.iter().map(|t| t.path.clone()).collect();
            let is_index = changed.iter().any(|path| !known.contains(*path));
            for transcript in &mut source.transcripts {
                if let Some(stamp) = scan.get(&transcript.path) {
                    transcript.bytes = stamp.len;
                }
                // What an index says may be of any session of its folder.
                if changed.contains(&transcript.path) || (beside && is_index) {
                    only.insert(transcript.path.clone());
                }
            }
        }
        let kept = self.kept.get_or_insert_default();
        let is_wanted = |source: &&Source| {
            source.transcripts.iter().any(|t| only.contains(&t.path)) || kept.lost_of(source)
        };
        let wanted: Vec<_> = found.sources.iter().filter(is_wanted).cloned().collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let wanted = Discovery { sources: wanted, ..Discovery::default() };
        let options = Options { mode: Mode::Append, only: Some(only) };
        let told = import_kept(
            self.store,
            self.clock,
            self.tree,
            &wanted,
            &options,
            progress,
            &mut self.kept,
        )?;
        for (source, told) in wanted.sources.iter().zip(&told.sources) {
            let key = (source.program, source.root.clone());
            let counts = self.counts.entry(key).or_default();
            *counts = counts.plus(&told.counts);
        }
        report.sources.extend(told.sources);
        Ok(())
    }
}

/// The files under some absolute paths of the disk, as [`Following::new`] wants them. `network` says that one of them lies
/// on another machine.
///
/// # Errors
/// Never for paths that there are.
pub fn files_under(paths: &[PathBuf], network: bool) -> Result<Tree> {
    let mut patterns = Vec::new();
    // What belongs to a session of Claude Code lies in a folder of its name.
    let beside = paths.iter().filter(|path| path.is_file()).map(|path| path.with_extension(""));
    for path in paths.iter().cloned().chain(beside) {
        let text = path
            .to_str()
            .ok_or_else(|| Error::invalid("a path that is followed is text").path(&path))?;
        let mut pattern = String::with_capacity(text.len());
        for char in text.chars() {
            match char {
                '*' | '?' | '[' | ']' | '{' | '}' => pattern.extend(['[', char, ']']),
                '\\' => pattern.push_str("[\\\\]"),
                char => pattern.push(char),
            }
        }
        // Of a pattern without signs both are meant.
        if pattern != text {
            patterns.push(format!("{pattern}/**"));
        }
        patterns.push(pattern);
    }
    let selection = Selection::new(Path::new("/"), &patterns, &[], &[])?.leaving_nothing_out();
    Ok(Tree::new(selection, network))
}
