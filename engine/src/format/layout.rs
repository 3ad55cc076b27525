//! Which files a store has: every file in its folder is of one of these kinds, or is none of the store's.

use super::{
    APPEND_LOCK, BLOB_DIR, BLOB_NEW_DIR, LOG_DIR, SNAPSHOT_DIR, STORE_FILE, SYNC_LOCK, TORN_DIR,
    WATCHER_LOCK, WORKER_LOCK, segment_first,
};

/// The end of a name of a file that is being made.
const MAKING: &str = ".new";

/// Whether a file of this name, relative to the store, is one of the store's: kept, or being made.
#[must_use]
pub fn is_of_a_store(path: &str) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else {
        return [STORE_FILE, APPEND_LOCK, SYNC_LOCK, WORKER_LOCK, WATCHER_LOCK].contains(&path)
            || path.strip_suffix(MAKING) == Some(STORE_FILE);
    };
    match folder {
        LOG_DIR => {
            segment_first(name).is_some()
                || is_index(name)
                || is_in_the_making(name, &[".jsonl", ".idx"])
        }
        SNAPSHOT_DIR => name == "lock" || is_snapshot(name) || is_in_the_making(name, &[".snap"]),
        TORN_DIR => is_torn(name),
        BLOB_NEW_DIR => true,
        _ => {
            let shard = folder.strip_prefix(BLOB_DIR).and_then(|rest| rest.strip_prefix('/'));
            name.len() == 64
                && is_hex(name)
                && shard.is_some_and(|shard| name.get(..2) == Some(shard))
        }
    }
}

/// `….new`, with one of these ends somewhere before it.
fn is_in_the_making(name: &str, ends: &[&str]) -> bool {
    name.strip_suffix(MAKING).is_some_and(|name| ends.iter().any(|end| name.contains(end)))
}

fn is_index(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".idx") else { return false };
    if stem == "heads" {
        return true;
    }
    match stem.split_once('.') {
        Some((segment, start)) => is_position(segment) && is_number(start),
        None => is_position(stem),
    }
}

fn is_snapshot(name: &str) -> bool {
    let stem = name.strip_suffix(".snap").and_then(|stem| stem.rsplit_once('-'));
    stem.is_some_and(|(projection, seq)| !projection.is_empty() && is_position(seq))
}

fn is_torn(name: &str) -> bool {
    let Some((segment, rest)) = name.split_once('@') else { return false };
    let Some((offset, sum)) = rest.split_once('.') else { return false };
    is_position(segment) && is_number(offset) && sum.len() == 8 && is_hex(sum)
}

fn is_position(text: &str) -> bool {
    text.len() == 20 && is_number(text)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the names that the specification shows are a store's, and what lies near them is not. Method: two tables;
    /// then every name of the first with a byte more at either end.
    #[test]
    fn names() {
        let hash = "533e7d45".repeat(8);
        let blob = format!("blobs/53/{hash}");
        let ours = [
            "store.json",
            "lock.append",
            "lock.sync",
            "log/00000000000000134077.jsonl",
            "log/00000000000000134077.idx",
            "log/00000000000000134077.4194304.idx",
            "log/heads.idx",
            "snapshots/lock",
            "snapshots/sessions-00000000000000004077.snap",
            "torn/00000000000000000001@8192.5e0d11aa",
            &blob,
        ];
        for name in ours {
            assert!(is_of_a_store(name), "{name}");
            let (folder, base) = name.rsplit_once('/').unwrap_or(("", name));
            let joined =
                if folder.is_empty() { format!("x{base}") } else { format!("{folder}/{base}x") };
            assert!(!is_of_a_store(&joined), "{joined}");
        }
        let making = [
            "store.json.new",
            "log/00000000000000134077.jsonl.new",
            "log/00000000000000134077.idx.17-0.new",
            "log/heads.idx.17-0.new",
            "snapshots/sessions-00000000000000004077.snap.17-0.new",
            "blobs/new/17-0",
        ];
        assert!(making.iter().all(|name| is_of_a_store(name)));
        let others = [
            "",
            "notes.txt",
            "log/134077.jsonl",
            "log/00000000000000000000.jsonl",
            "log/00000000000000134077.jsonl.bak",
            "log/notes.new",
            "log/x/00000000000000134077.jsonl",
            "snapshots/sessions.snap",
            "torn/00000000000000000001@8192",
            "blobs/54/533e7d45",
            &blob.replace("/53/", "/54/"),
            &hash,
        ];
        for name in others {
            assert!(!is_of_a_store(name), "{name}");
        }
    }
}
