//! Whole imports into a store in memory, of trees written by hand.

mod arka;
mod claude;
mod codex;
mod damage;
mod flows;
mod follow;
mod gemini;
mod hermes;
mod openclaw;
mod own;
mod pi;
mod places;
mod real;
mod relations;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::clock::{Clock, ManualClock, Timestamp};
use crate::error::Result;
use crate::projection::Folded;
use crate::session::index::Sessions;
use crate::store::{EventStore, Item, MemoryStore, Read, Record, View};

/// A store, and the clock that it goes by.
struct World {
    store: MemoryStore,
    clock: Arc<ManualClock>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
        Self { store: MemoryStore::new(clock.clone()), clock }
    }

    fn try_import(&self, tree: &dyn SourceTree, path: &str) -> Result<Report> {
        let found = discover_in(tree, Path::new(path))?;
        self.take(tree, &found, &Options::default())
    }

    fn import(&self, tree: &dyn SourceTree, path: &str) -> Report {
        self.try_import(tree, path).unwrap()
    }

    fn take(&self, tree: &dyn SourceTree, found: &Discovery, how: &Options) -> Result<Report> {
        import(&self.store, &*self.clock, tree, found, how, &mut |_| {})
    }

    fn records(&self) -> Vec<Record> {
        records(&self.store)
    }

    /// The events of a stream in words, see [`told`].
    fn stream(&self, name: &str) -> Vec<String> {
        self.records().iter().filter(|r| r.stream.as_str() == name).map(told).collect()
    }

    /// The view of sessions.
    fn sessions(&self) -> Sessions {
        Folded::<Sessions>::of(&self.store, View::Durable).unwrap().state().clone()
    }

    fn len(&self) -> usize {
        self.records().len()
    }
}

fn records(store: &dyn EventStore) -> Vec<Record> {
    let items = store.read(Read::default()).unwrap();
    items
        .map(|item| match item.unwrap() {
            Item::Record(record) => *record,
            Item::Gap(gap) => panic!("{gap:?}"),
        })
        .collect()
}

/// An event in a few words: its type, who speaks or which part, and what is said.
fn told(record: &Record) -> String {
    let data: Value = serde_json::from_str(record.data.as_str()).unwrap();
    let text = |name: &str| data[name].as_str().unwrap_or("-").to_owned();
    let kind = record.kind.as_str();
    match kind {
        "turn" => format!("{} {} {}", text("role"), text("from"), data["content"]),
        "session.opened" => format!("opened {}", text("sessionId")),
        "session.reset" => format!("reset {} > {}", text("previousSessionId"), text("sessionId")),
        "session.archived" => format!("archived {} {}", text("sessionId"), text("reason")),
        "session.patched" => format!("patched {}", data["set"]),
        "run.requested" => format!("requested {} of {}", text("sessionKey"), text("requesterKey")),
        "run.finished" => format!("finished {} {}", text("status"), text("reason")),
        "spawn.accepted" | "send.accepted" => format!("{kind} {}", text("targetKey")),
        kind if kind.starts_with("announce.") => format!("{kind} {}", text("reason")),
        kind if kind.starts_with("delivery.") => format!("{kind} {}", text("reason")),
        "import.damage" => format!("damage {} {}+{}", text("class"), data["offset"], data["bytes"]),
        kind => kind.to_owned(),
    }
}

/// The damages of a report: `class file offset+bytes/recovered`.
fn damages(report: &Report) -> Vec<String> {
    let damages = report.sources.iter().flat_map(|source| &source.damages);
    damages
        .map(|d| format!("{} {} {}+{}/{}", d.class, d.file, d.offset, d.bytes, d.recovered))
        .collect()
}

/// A session of pi with these lines behind its header.
fn session(id: &str, lines: &[&str]) -> String {
    let mut text = header(id, "09:00:00");
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn header(id: &str, time: &str) -> String {
    let at = format!("2026-03-01T{time}.000Z");
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"{at}\",\"cwd\":\"/w\"}}\n"
    )
}

/// A user's message with this id, said so many seconds after nine.
fn said(id: &str, second: u32, text: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":null,\"timestamp\":\"2026-03-01T09:00:{second:02}.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}"
    )
}

/// The folder of the main agent's sessions in a state folder.
const MAIN: &str = "agents/main/sessions";

/// A state folder `o` of the agent `main` with this index and these files.
fn state(index: &str, files: &[(&str, String)]) -> MemoryTree {
    let mut tree = MemoryTree::default();
    if !index.is_empty() {
        tree.put(format!("o/{MAIN}/sessions.json"), index);
    }
    for (name, text) in files {
        let folder = if name.contains('/') { String::new() } else { format!("{MAIN}/") };
        tree.put(format!("o/{folder}{name}"), text.as_str());
    }
    tree
}

fn one(id: &str, time: &str, text: &str) -> String {
    format!("{}{}\n", header(id, time), said(&format!("{id}1"), 1, text))
}
