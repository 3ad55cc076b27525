//! What is compared with what, a file a question.

pub mod append;
pub mod follow;
pub mod foreign;
pub mod growth;
pub mod import;
mod keeping;
pub mod memory;
pub mod open;
pub mod point;
pub mod processes;
pub mod push;
pub mod replay;
pub mod search;
mod transcripts;
pub mod verify;

use std::path::PathBuf;

use crate::stored;
use crate::workload::Shape;

/// How many events a small store has, beside which a large one is looked at.
const SMALL: usize = 10_000;

/// What a run is asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where stores are kept and made.
    pub data: PathBuf,
    /// How many events a store has that is read.
    pub events: usize,
    /// How often everything runs.
    pub rounds: usize,
    /// How long a round of appends takes, in milliseconds.
    pub millis: u64,
}

impl Plan {
    /// The store that is read.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        stored::store(&self.data, Shape::default(), self.events)
    }

    /// A new folder on the same file system, gone when it is dropped.
    #[must_use]
    pub fn scratch(&self) -> tempfile::TempDir {
        std::fs::create_dir_all(&self.data).unwrap();
        tempfile::Builder::new().prefix("round-").tempdir_in(&self.data).unwrap()
    }
}

/// What the figures of reading have in common.
fn reading(plan: &Plan) -> String {
    format!(
        "{} events of 700 B in 10,000 sessions, in the page cache; {} rounds.",
        plan.events, plan.rounds
    )
}
