//! The entries of one folder, and those of them that a power loss may take or bring back.

use std::collections::BTreeMap;

use super::choose::Choose;
use super::kernel::Ino;

#[derive(Clone, Debug, Default)]
pub(super) struct Folder {
    entries: BTreeMap<String, Ino>,
    platter: BTreeMap<String, Ino>,
    pending: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Link(String, Ino),
    Unlink(String),
}

impl Folder {
    pub(super) fn at_rest(entries: BTreeMap<String, Ino>) -> Self {
        Self { platter: entries.clone(), entries, pending: Vec::new() }
    }

    pub(super) fn get(&self, name: &str) -> Option<Ino> {
        self.entries.get(name).copied()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    pub(super) fn link(&mut self, name: &str, ino: Ino) {
        self.change(Change::Link(name.to_owned(), ino));
    }

    pub(super) fn unlink(&mut self, name: &str) {
        self.change(Change::Unlink(name.to_owned()));
    }

    pub(super) fn sync(&mut self) {
        self.platter = self.entries.clone();
        self.pending.clear();
    }

    /// The entries after a power loss: those that were synced, and any of the changes since.
    pub(super) fn after_power_loss(&self, choose: &mut dyn Choose) -> BTreeMap<String, Ino> {
        let mut entries = self.platter.clone();
        for change in &self.pending {
            if choose.pick(2) == 1 {
                apply(&mut entries, change);
            }
        }
        entries
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.entries, &change);
        self.pending.push(change);
    }
}

fn apply(entries: &mut BTreeMap<String, Ino>, change: &Change) {
    match change {
        Change::Link(name, ino) => {
            entries.insert(name.clone(), *ino);
        }
        Change::Unlink(name) => {
            entries.remove(name);
        }
    }
}
