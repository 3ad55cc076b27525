//! The layout of a store, as it is documented, in words of this test's own.

use std::path::Path;

use super::chat::files;

/// Files of which the documentation says nothing, or which are only there while a process makes something.
pub(crate) fn strays(store: &Path) -> Vec<String> {
    let names = files(store).into_iter().map(|(name, _)| name);
    names.filter(|name| !is_documented(name)).collect()
}

fn is_documented(name: &str) -> bool {
    if ["store.json", "lock.append", "lock.sync", "lock.worker", "lock.watcher", "snapshots/lock"]
        .contains(&name)
    {
        return true;
    }
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let hex = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = name.split(['/', '.', '@', '-']).collect();
    match (parts.as_slice(), name.matches('/').count()) {
        (["log", "heads", "idx"], 1) => true,
        (["log", first, "jsonl" | "idx"], 1) => digits(first, 20),
        (["log", first, offset, "idx"], 1) => digits(first, 20) && offset.parse::<u64>().is_ok(),
        (["snapshots", "sessions" | "work", seq, "snap"], 1) => digits(seq, 20),
        (["blobs", shard, sum], 2) => hex(shard, 2) && hex(sum, 64) && sum.starts_with(shard),
        (["torn", first, offset, sum], 1) => {
            digits(first, 20) && offset.parse::<u64>().is_ok() && hex(sum, 8)
        }
        _ => false,
    }
}
