//! The machine that figures were taken on.

use std::fs;
use std::path::Path;

/// Cores, processor, kernel, and the file system under a folder, in one line.
#[must_use]
pub fn describe(folder: &Path) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name").unwrap_or_default();
    let memory = field("/proc/meminfo", "MemTotal").as_deref().and_then(gibibytes).unwrap_or(0);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel: Vec<&str> = release.trim().split('.').take(2).collect();
    let system = file_system(folder).unwrap_or_default();
    format!("{cores} cores ({model}), {memory} GiB of memory, Linux {}, {system}", kernel.join("."))
}

/// A size such as `24684096 kB`, rounded.
fn gibibytes(text: &str) -> Option<u64> {
    let kibibytes: u64 = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some((kibibytes + (1 << 19)) >> 20)
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type of the file system that holds a folder: that of the longest mount point above it.
fn file_system(folder: &Path) -> Option<String> {
    let folder = fs::canonicalize(folder).ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let words = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let above = words.filter(|words| words.get(1).is_some_and(|at| folder.starts_with(at)));
    let longest = above.max_by_key(|words| words.get(1).map_or(0, |at| at.len()))?;
    longest.get(2).map(|&name| name.to_owned())
}
