//! Side chains: sub-agents whose rows stand among those of the session that spawned them. They are found before the file
//! is imported, so that each is read as a session of its own and every byte is read for one session only.

use std::collections::HashMap;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem::Finder;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::import::lines::{Line, Lines};
use crate::import::pi::Entry;
use crate::import::tree::SourceTree;

/// Which lines of a file are read.
#[derive(Clone, Debug, Default)]
pub(crate) enum Lane {
    /// All of them.
    #[default]
    Whole,
    /// All but those in these ranges, which are in order.
    Without(Arc<[Range<u64>]>),
    /// Those in these ranges.
    Only(Arc<[Range<u64>]>),
}

impl Lane {
    /// How many bytes of a file of this length are read.
    pub(crate) fn bytes(&self, file: u64) -> u64 {
        let sum = |ranges: &[Range<u64>]| ranges.iter().map(|range| range.end - range.start).sum();
        match self {
            Self::Whole => file,
            Self::Without(ranges) => file.saturating_sub(sum(ranges)),
            Self::Only(ranges) => sum(ranges),
        }
    }
}

/// A side chain.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The id of the row that it begins with.
    pub(crate) id: String,
    pub(crate) began: Option<Timestamp>,
    /// The hash of what the sub-agent was asked.
    pub(crate) prompt: Option<u64>,
    pub(crate) ranges: Vec<Range<u64>>,
}

/// How a row begins to say whether it is of a side chain; inside a string of JSON it would be escaped.
const MARK: &[u8] = b"\"isSidechain\":";

/// How far from its beginning a row says so of itself, and not of one that it holds, in bytes.
const HEAD_BYTES: usize = 128;

/// Whether a line may be a row of a side chain. The program says so at the front of each row, so that most lines are told
/// by their first bytes.
fn may_be_side(line: &[u8], mark: &Finder<'_>) -> bool {
    let says = |at: usize| {
        let value = line.get(at + MARK.len()..).unwrap_or_default();
        value.trim_ascii_start().starts_with(b"true")
    };
    match mark.find(line) {
        Some(at) if at < HEAD_BYTES => says(at),
        Some(_) => mark.find_iter(line).any(says),
        None => false,
    }
}

/// Whether a row of a side chain may stand in a file from a place on.
///
/// # Errors
/// Whatever reading the file meets.
pub(crate) fn may_have_chains(tree: &dyn SourceTree, path: &Path, from: u64) -> Result<bool> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let mut file = tree.open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut lines = Lines::from(file, from);
    let mark = Finder::new(MARK);
    while let Some(line) = lines.next().map_err(failed)? {
        if matches!(line, Line::Whole { bytes, .. } if may_be_side(bytes, &mark)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The side chains of a file, in the order of their first rows.
///
/// # Errors
/// Whatever reading the file meets.
pub(crate) fn survey(tree: &dyn SourceTree, path: &Path) -> Result<Vec<Chain>> {
    let failed = |e| Error::io("the transcript cannot be read", e).path(path);
    let mut lines = Lines::new(tree.open(path).map_err(failed)?);
    let mark = Finder::new(MARK);
    let mut chains: Vec<Chain> = Vec::new();
    let mut homes: HashMap<String, usize> = HashMap::new();
    while let Some(line) = lines.next().map_err(failed)? {
        let Line::Whole { offset, bytes, ended } = line else { continue };
        if !may_be_side(bytes, &mark) {
            continue;
        }
        let Some(row) = std::str::from_utf8(bytes).ok().and_then(Entry::parse) else { continue };
        let side = row.fields.get("isSidechain").is_some_and(|value| value.get() == "true");
        let Some(id) = row.fields.text("uuid").filter(|_| side) else { continue };
        let parent = row.fields.text("parentUuid");
        let home = parent.and_then(|parent| homes.get(&*parent).copied());
        let home = home.unwrap_or_else(|| {
            let (id, began) = (id.clone().into_owned(), row.at());
            chains.push(Chain { id, began, prompt: prompt(&row), ranges: Vec::new() });
            chains.len() - 1
        });
        homes.insert(id.into_owned(), home);
        let Some(chain) = chains.get_mut(home) else { continue };
        let end = offset + bytes.len() as u64 + u64::from(ended);
        match chain.ranges.last_mut() {
            Some(last) if last.end == offset => last.end = end,
            _ => chain.ranges.push(offset..end),
        }
    }
    Ok(chains)
}

/// The hash of what a row asks.
pub(crate) fn prompt(row: &Entry<'_>) -> Option<u64> {
    let content = row.message.as_ref()?.get("content")?;
    let text = match crate::import::fields::text(content) {
        Some(text) => text.into_owned(),
        None => crate::session::event::Json::verbatim(content).plain_text(),
    };
    Some(crate::import::story::key(&text)).filter(|_| !text.is_empty())
}

/// The ranges of all chains, in order.
pub(crate) fn all_ranges(chains: &[Chain]) -> Arc<[Range<u64>]> {
    let mut all: Vec<Range<u64>> = chains.iter().flat_map(|c| c.ranges.iter().cloned()).collect();
    all.sort_by_key(|range| range.start);
    all.into()
}
