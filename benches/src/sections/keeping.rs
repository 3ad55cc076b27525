//! The workload in the other stores: filled once, then read by every run.

use std::collections::HashMap;
use std::path::PathBuf;

use memmap2::Mmap;
use serde::Deserialize;

use super::Plan;
use crate::floors::map;
use crate::rivals::{Entry, Keeping, Loaded, Outcome, Rival};

/// A rival that holds the workload.
pub(super) struct Kept {
    /// Which.
    pub(super) rival: &'static Rival,
    keeping: Keeping,
    folder: PathBuf,
}

impl Kept {
    /// Opens it.
    ///
    /// # Errors
    /// What it says.
    pub(super) fn open(&self) -> Outcome<Box<dyn Loaded>> {
        (self.keeping.open)(&self.folder)
    }
}

/// The rivals that keep events, filled with those of the plan's store unless they are already.
#[must_use]
pub(super) fn all(plan: &Plan) -> Vec<Kept> {
    let store = plan.store();
    let mut kept = Vec::new();
    for rival in crate::rivals::all() {
        let Some(keeping) = rival.keeping else { continue };
        let word = rival.name.split([',', ' ']).next().unwrap_or_default().to_lowercase();
        let folder = store.with_extension(word);
        if !folder.exists() {
            eprintln!("filling {}", rival.name);
            let making =
                tempfile::Builder::new().prefix("filling-").tempdir_in(&plan.data).unwrap();
            let segments = map::segments(&store);
            (keeping.load)(making.path(), &mut entries(&segments)).unwrap();
            std::fs::rename(making.keep(), &folder).unwrap();
        }
        kept.push(Kept { rival, keeping, folder });
    }
    kept
}

/// The number that a stream has among rivals: its rank when all are sorted by name, from 1.
#[must_use]
pub(super) fn numbers(segments: &[Mmap]) -> HashMap<String, u64> {
    let mut names: Vec<String> = Vec::new();
    for segment in segments {
        map::lines(segment, |line| names.push(stream(line).to_owned()));
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().zip(1..).collect()
}

fn stream(line: &[u8]) -> &str {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let rest = text.split_once("\"stream\":\"").map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default()
}

fn entries(segments: &[Mmap]) -> impl Iterator<Item = Entry<'_>> {
    let numbers = numbers(segments);
    let mut versions: HashMap<u64, u64> = HashMap::new();
    let lines = segments.iter().flat_map(|segment| segment.split(|byte| *byte == b'\n'));
    lines.filter(|line| !line.is_empty()).map(move |line| {
        let stream = numbers.get(stream(line)).copied().unwrap_or_default();
        let version = versions.entry(stream).or_default();
        *version += 1;
        Entry { stream, version: *version, line }
    })
}

/// Rows by stream, as whoever reads a rival's lines gets them: every line is parsed.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    rows: HashMap<String, (u64, u64, String)>,
}

#[derive(Deserialize)]
struct Line<'a> {
    stream: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    time: &'a str,
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    role: Option<&'a str>,
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    r#in: u64,
    out: u64,
}

impl Parsed {
    /// Takes a line.
    pub(super) fn take(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else { return };
        if !self.rows.contains_key(line.stream) {
            self.rows.insert(line.stream.to_owned(), (0, 0, String::new()));
        }
        let Some((turns, tokens, updated)) = self.rows.get_mut(line.stream) else { return };
        if line.kind == "turn" && line.data.role.is_some() {
            *turns += 1;
            *tokens += line.data.tokens.map_or(0, |tokens| tokens.r#in + tokens.out);
        }
        updated.clear();
        updated.push_str(line.time);
    }

    /// How many streams there are, the log's own left out.
    #[must_use]
    pub(super) fn sessions(&self) -> usize {
        self.rows.keys().filter(|stream| *stream != "log").count()
    }
}
