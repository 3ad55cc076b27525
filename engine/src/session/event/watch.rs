//! Watch rules: what changed in the files that a rule looks at, and how well it can look.

use crate::clock::Timestamp;

use super::define::{payload, words};

words! {
    /// What happened to a file.
    pub enum Change {
        /// It is new.
        Create = "create",
        /// Its content is another.
        Change = "change",
        /// It is gone.
        Remove = "remove",
    }
}

payload! {
    /// `watch.fired`: a settled change, which causes a run.
    pub struct WatchFired {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The rule.
        rule: String,
        /// The file.
        path: String,
        /// What happened to it.
        change: Change,
        /// SHA-256 of its content in lower-case hexadecimal; empty when it is gone.
        sha256: String,
        /// The event id of the previous firing of this path.
        previous_firing: Option<String>,
        /// The run that it causes.
        run_id: String,
        /// The run of the same rule that was at work when the file changed, and may have changed it.
        during_run_id: Option<String>,
    }
}

payload! {
    /// A file and its content.
    pub struct WatchedFile {
        /// The file.
        path: String,
        /// SHA-256 of its content in lower-case hexadecimal.
        sha256: String,
    }
}

payload! {
    /// `watch.rescanned`, `watch.degraded`, `watch.stopped`: how a rule looks at its files.
    pub struct WatchState {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The rule.
        rule: String,
        /// Whether this scan records what is there and fires nothing.
        baseline: Option<bool>,
        /// Why.
        reason: Option<String>,
        /// What is there.
        files: Vec<WatchedFile>,
    }
}
