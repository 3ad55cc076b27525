//! Which process is which: a pid alone names another process tomorrow. Linux says enough of every process; elsewhere
//! nothing is known, and nobody is taken for dead.

use std::path::Path;

use annals_engine::{Error, Result};

/// A process, told apart from every other one of every boot. Texts are compared for equality and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// When it started, as its system says it: ticks since the boot.
    pub start: String,
    /// Which boot of which system.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// This process.
    ///
    /// # Errors
    /// `Io` where the system does not say when it started: `/proc` is needed.
    pub fn own() -> Result<Self> {
        let pid = std::process::id();
        let (start, boot_id) = (proc::start(pid), proc::boot_id());
        match (start, boot_id) {
            (Some(start), Some(boot_id)) => Ok(Self { pid, start, boot_id }),
            _ => Err(Error::io(
                "the system does not say which process this is",
                std::io::ErrorKind::Unsupported.into(),
            )
            .path("/proc")
            .hint("runs are claimed on Linux with /proc mounted")),
        }
    }

    /// Whether it still runs: the same pid, started at the same moment of this boot. A process that has ended and that
    /// nobody has waited for is not alive. Where the system tells nothing the answer is yes.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let Some(boot_id) = proc::boot_id() else { return true };
        boot_id == self.boot_id && proc::start(self.pid).is_some_and(|start| start == self.start)
    }
}

/// A store's folder as it is told to processes, so that two ways of writing it are one.
#[must_use]
pub(super) fn home(store: &Path) -> std::path::PathBuf {
    let whole = || std::path::absolute(store).unwrap_or_else(|_| store.to_path_buf());
    store.canonicalize().unwrap_or_else(|_| whole())
}

/// What `/proc` says.
#[cfg(target_os = "linux")]
pub(super) mod proc {
    use std::fs;
    use std::io::Read;

    /// The id of this boot.
    pub(in crate::run) fn boot_id() -> Option<String> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// When a process that runs started, in ticks since the boot.
    pub(in crate::run) fn start(pid: u32) -> Option<String> {
        stat(&pid.to_string()).filter(|stat| stat.runs).map(|stat| stat.start)
    }

    /// Whether a group has a process that runs.
    pub(in crate::run) fn group_runs(group: u32) -> bool {
        pids().any(|pid| stat(&pid).is_some_and(|stat| stat.runs && stat.group == Some(group)))
    }

    /// Every process there is.
    pub(in crate::run) fn pids() -> impl Iterator<Item = String> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// The environment that a process was started with; empty for one that is another user's or has ended.
    pub(in crate::run) fn environ(pid: &str) -> Vec<u8> {
        // What follows says nothing of a run: variables are at most so long together.
        const BYTES_MAX: u64 = 8 << 20;
        let mut bytes = Vec::new();
        let file = fs::File::open(format!("/proc/{pid}/environ"));
        match file.and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
            Ok(_) => bytes,
            Err(_) => Vec::new(),
        }
    }

    struct Stat {
        runs: bool,
        group: Option<u32>,
        start: String,
    }

    /// The fields of `/proc/<pid>/stat`. The second is a name that may hold anything, so they are counted from its end.
    fn stat(pid: &str) -> Option<Stat> {
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let behind = bytes.iter().rposition(|byte| *byte == b')')?;
        let text = std::str::from_utf8(bytes.get(behind + 1..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let runs = !matches!(fields.next()?, "Z" | "X" | "x");
        let group = fields.nth(1)?.parse().ok();
        // The 22nd field of all; the group was the fifth.
        let start = fields.nth(16)?.to_owned();
        Some(Stat { runs, group, start })
    }
}

/// Nothing is known.
#[cfg(not(target_os = "linux"))]
pub(super) mod proc {
    pub(in crate::run) fn boot_id() -> Option<String> {
        None
    }

    pub(in crate::run) fn start(_: u32) -> Option<String> {
        None
    }

    pub(in crate::run) fn group_runs(_: u32) -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Goal: a process is itself, and no other that has or had its number. Method: this one; the same with another start,
    /// another boot, and a number that none has.
    #[test]
    fn identity() {
        let own = ProcessIdentity::own().unwrap();
        assert_eq!(own, ProcessIdentity::own().unwrap());
        assert!(own.is_alive());
        assert!(own.start.bytes().all(|byte| byte.is_ascii_digit()), "{own:?}");
        let other = [
            ProcessIdentity { start: "1".to_owned(), ..own.clone() },
            ProcessIdentity { boot_id: "another".to_owned(), ..own.clone() },
            ProcessIdentity { pid: u32::MAX, ..own.clone() },
        ];
        assert!(other.iter().all(|other| !other.is_alive()));
        assert!(proc::pids().any(|pid| pid == own.pid.to_string()));
    }
}
