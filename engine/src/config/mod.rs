//! Settings: flags, then the environment, then a file, then the default; each checked once, each with its origin.
//!
//! It knows which settings there are ([`table`]) and what they may be, and turns them into the types that the domain
//! works with. Variables and the file's text are handed in.

mod edit;
mod file;
mod kind;
mod load;
mod strict;
mod tree;
mod typed;
mod watches;

pub mod table;

pub use edit::{Edited, edit};
pub use file::{read_file, write_file};
pub use load::{Sources, Warning, load};

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// All settings that are in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// By path, such as `session.reset.atHour` or `agents.list[0].id`; what has no value and no default is absent.
    held: BTreeMap<String, Held>,
    file: Option<SourceFile>,
    /// The values of the variables that `security.maskEnv` names.
    masked: Vec<String>,
}

/// The file that settings were read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Where it is.
    pub path: PathBuf,
    /// SHA-256 of its bytes, in lower-case hexadecimal.
    pub sha256: String,
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The value, checked.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
    /// Whether it is never shown.
    pub secret: bool,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// This environment variable.
    Environment(String),
    /// The file.
    File,
    /// Nobody said anything.
    Default,
}

impl Config {
    /// Nothing but defaults.
    #[must_use]
    pub fn defaults() -> Self {
        Self { held: load::defaults(), file: None, masked: Vec::new() }
    }

    /// The value of a setting.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Held> {
        self.held.get(path)
    }

    /// All settings by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Held)> {
        self.held.iter().map(|(path, held)| (path.as_str(), held))
    }

    /// The file that was read, if one was.
    #[must_use]
    pub fn file(&self) -> Option<&SourceFile> {
        self.file.as_ref()
    }

    /// The folder that paths in the file are relative to.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.file.as_ref().and_then(|file| file.path.parent())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::File => f.write_str("file"),
            Self::Default => f.write_str("default"),
        }
    }
}

#[cfg(test)]
mod tests;
