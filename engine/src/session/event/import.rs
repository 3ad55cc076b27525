//! Imports of other programs' transcripts: that one began, what it brought, and what was damaged in it.

use crate::clock::Timestamp;

use super::define::payload;
use super::json::Members;

payload! {
    /// `import.started`, `import.finished`: an import of one path.
    pub struct Import {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The program that wrote the files.
        program: String,
        /// The path that was named.
        path: String,
        /// How many of what; absent when it starts.
        counts: Option<Members>,
    }
}

payload! {
    /// `import.damage`: bytes that could not be taken as they are.
    pub struct ImportDamage {
        /// When it happened, if elsewhere or earlier.
        at: Option<Timestamp>,
        /// The program that wrote the file.
        program: String,
        /// The path that was named.
        path: String,
        /// What kind of damage.
        class: String,
        /// The file.
        file: String,
        /// Where it begins, in bytes.
        offset: u64,
        /// How many bytes.
        bytes: u64,
        /// How many records could be taken from these bytes nevertheless.
        recovered: u64,
        /// What was seen, in words.
        detail: Option<String>,
    }
}
