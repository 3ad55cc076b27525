//! What an import did, or would do: the same report for both.

use std::collections::BTreeMap;

use serde::Serialize;

use super::damage::{Damage, DamageClass};
use super::writer::Mode;
use crate::error::Result;
use crate::session::event::{Json, Members};

/// How many damages and joins a report tells one by one; all are counted.
const LIST_MAX: usize = 1_000;

/// The report of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether nothing was appended because that was asked for.
    pub dry_run: bool,
    /// One report for each source.
    pub sources: Vec<SourceReport>,
    /// Files and folders that are known and were not imported, with the reason.
    pub refused: Vec<Skipped>,
    /// Files that nobody knows.
    pub unknown: Vec<String>,
}

/// The report of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceReport {
    /// The program, by its stable word.
    pub program: String,
    /// The folder or file.
    pub path: String,
    /// What was counted.
    pub counts: Counts,
    /// The sessions, in the order in which they were imported.
    pub sessions: Vec<SessionReport>,
    /// What was wrong, at most a thousand of them.
    pub damages: Vec<Damage>,
    /// How often each class of damage occurred.
    pub damage_counts: BTreeMap<&'static str, u64>,
    /// Records that make no event, because what they tell is told elsewhere: how many of each type.
    pub passed: BTreeMap<String, u64>,
    /// Calls and turns whose other side was not found, at most a thousand of them.
    pub unresolved: Vec<Unresolved>,
    /// Files between the transcripts that are none.
    pub copies: Vec<Skipped>,
}

/// What is counted in a source, and over all sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Sessions by key.
    pub sessions: u64,
    /// Transcripts read.
    pub transcripts: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Records read.
    pub records: u64,
    /// Records among them that make no event.
    pub passed: u64,
    /// Turns among the events; pieces of one message are one turn.
    pub turns: u64,
    /// Events that the store did not have.
    pub new: u64,
    /// Events that the store had already.
    pub known: u64,
    /// Damages.
    pub damages: u64,
    /// Runs of sub-agents and of sends.
    pub runs: u64,
    /// Sends and spawns without a target, and turns from other sessions without a source.
    pub unresolved: u64,
    /// Messages that were waiting to be delivered: reported, and never sent.
    pub undelivered: u64,
}

/// A session in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionReport {
    /// Its key in the store.
    pub key: String,
    /// The ids of its parts.
    pub parts: Vec<String>,
    /// Its turns.
    pub turns: u64,
    /// Events that the store did not have.
    pub new: u64,
}

/// Something that was passed over, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// Its path.
    pub path: String,
    /// Why, in words.
    pub reason: String,
}

/// One side of an exchange whose other side was not found: `from -> ?`, or `? -> to`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unresolved {
    /// The key of the session that sent or spawned.
    pub from: Option<String>,
    /// The key of the session that it went to.
    pub to: Option<String>,
    /// The tool.
    pub tool: String,
    /// The name that the other side was called by.
    pub named: Option<String>,
}

impl Report {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { dry_run: mode == Mode::DryRun, ..Self::default() }
    }

    /// The counts over all sources.
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.sources.iter().fold(Counts::default(), |sum, source| sum.plus(&source.counts))
    }
}

impl Counts {
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self {
            sessions: self.sessions + other.sessions,
            transcripts: self.transcripts + other.transcripts,
            bytes: self.bytes + other.bytes,
            records: self.records + other.records,
            passed: self.passed + other.passed,
            turns: self.turns + other.turns,
            new: self.new + other.new,
            known: self.known + other.known,
            damages: self.damages + other.damages,
            runs: self.runs + other.runs,
            unresolved: self.unresolved + other.unresolved,
            undelivered: self.undelivered + other.undelivered,
        }
    }

    /// The counts as `import.finished` holds them.
    pub(crate) fn members(&self) -> Result<Members> {
        let counts = [
            ("sessions", self.sessions),
            ("records", self.records),
            ("passed", self.passed),
            ("turns", self.turns),
            ("new", self.new),
            ("known", self.known),
            ("damages", self.damages),
            ("unresolved", self.unresolved),
        ];
        let member = |(name, count): (&str, u64)| Ok((name.to_owned(), Json::of(&count)?));
        counts.into_iter().map(member).collect::<Result<_>>().map(Members)
    }
}

impl SourceReport {
    pub(crate) fn damage(&mut self, damage: &Damage) {
        self.counts.damages += 1;
        *self.damage_counts.entry(damage.class.code()).or_default() += 1;
        if self.damages.len() < LIST_MAX {
            self.damages.push(damage.clone());
        }
    }

    /// Counts a record of this type that makes no event.
    pub(crate) fn passed(&mut self, kind: &str) {
        self.counts.passed += 1;
        *self.passed.entry(kind.to_owned()).or_default() += 1;
    }

    /// How often a class of damage occurred.
    #[must_use]
    pub fn damage_count(&self, class: DamageClass) -> u64 {
        self.damage_counts.get(class.code()).copied().unwrap_or_default()
    }

    pub(crate) fn unresolved(&mut self, unresolved: Unresolved) {
        self.counts.unresolved += 1;
        if self.unresolved.len() < LIST_MAX {
            self.unresolved.push(unresolved);
        }
    }
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of transcripts read.
    pub bytes_done: u64,
    /// Bytes of transcripts that there are.
    pub bytes_total: u64,
    /// Events that the store did not have, so far.
    pub new: u64,
}
