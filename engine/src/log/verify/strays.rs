//! Files in a store's folder that have no place there. They cost nothing and are left alone.

use crate::format::{BLOB_DIR, LOG_DIR, SNAPSHOT_DIR, TORN_DIR, is_of_a_store};
use crate::storage::Storage;

/// A sentence for each, and one that counts what recovery has kept. What is being made, or was when a process died, is
/// no stray: the next opening removes it.
pub(super) fn notes(storage: &dyn Storage) -> Vec<String> {
    let mut notes = Vec::new();
    for folder in ["", LOG_DIR, SNAPSHOT_DIR, BLOB_DIR, TORN_DIR] {
        for name in storage.list(folder).unwrap_or_default() {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let is_folder = |path: &str| storage.list(path).is_ok();
            if folder == BLOB_DIR && is_folder(&path) {
                let names = storage.list(&path).unwrap_or_default();
                let paths = names.iter().map(|name| format!("{path}/{name}"));
                notes.extend(paths.filter(|path| !is_of_a_store(path)).map(|path| note(&path)));
            } else if !is_of_a_store(&path) && !is_part(&path) {
                notes.push(note(&path));
            }
        }
    }
    let kept = storage.list(TORN_DIR).unwrap_or_default().len();
    if kept > 0 {
        let files = if kept == 1 { "1 file" } else { &format!("{kept} files") };
        notes.push(format!(
            "{files} in {TORN_DIR}/: torn tails, and copies of bytes whose damage was accepted"
        ));
    }
    notes
}

/// Whether the folder is one of a store's.
fn is_part(path: &str) -> bool {
    [LOG_DIR, SNAPSHOT_DIR, BLOB_DIR, TORN_DIR].contains(&path)
}

fn note(path: &str) -> String {
    format!("{path} is no file of the store")
}
