//! A small state folder that ships with the program: one session, two children of it that announce what they found,
//! and an exchange with the session of another agent. It is imported like any other, under agents that nobody else has,
//! so that it stands beside a person's own sessions and never among their parts.

use std::path::{Path, PathBuf};

use super::discover::{Discovery, discover_in};
use super::tree::MemoryTree;
use crate::error::Result;

macro_rules! files {
    ($($path:literal,)+) => {
        [$((concat!("sample/", $path), include_str!(concat!("sample/", $path))),)+]
    };
}

const FILES: [(&str, &str); 7] = files![
    "agents/demo/sessions/6b0f3a52-1c84-4d7e-9a51-0c2d7e1f4a01.jsonl",
    "agents/demo/sessions/d2a9c1e7-5b3f-4f0a-8c66-7e9b0a3d5f02.jsonl",
    "agents/demo/sessions/f7e4b8d0-2a6c-4e91-b3d5-1a8c6f2e9b03.jsonl",
    "agents/demo/sessions/sessions.json",
    "agents/lab/sessions/3c5d9e81-7f42-4b6a-a0e8-9d1b4c7f6e04.jsonl",
    "agents/lab/sessions/sessions.json",
    "subagents/runs.json",
];

/// The sample's files, in a tree of their own.
#[must_use]
pub fn sample_tree() -> MemoryTree {
    MemoryTree::new(FILES.map(|(path, text)| (PathBuf::from(path), text)))
}

/// The sample as a source, to be imported from [`sample_tree`].
///
/// # Errors
/// Never for the files that ship with the program.
pub fn discover_sample(tree: &MemoryTree) -> Result<Discovery> {
    discover_in(tree, Path::new("sample"))
}
