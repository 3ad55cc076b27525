//! The program itself, as a person starts it: how long it takes, and how much memory is its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::children;

/// The program, and the home that it sees.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    home: PathBuf,
}

impl Program {
    /// The program that was built beside this one.
    ///
    /// # Errors
    /// That it was not, with what to do.
    pub fn beside_this(home: &Path) -> Result<Self, String> {
        let path = children::program().with_file_name("annals");
        if path.exists() {
            return Ok(Self { path, home: home.to_owned() });
        }
        Err(format!("{} is not there: cargo build --release -p annals-cli", path.display()))
    }

    fn command(&self, store: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(arguments).arg("--store").arg(store).env_clear().env("HOME", &self.home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs it once; how long that took.
    ///
    /// # Errors
    /// That it failed.
    pub fn time(&self, store: &Path, arguments: &[&str]) -> Result<Duration, String> {
        let mut command = self.command(store, arguments);
        let begun = Instant::now();
        let status = command.status().map_err(|error| error.to_string())?;
        let took = begun.elapsed();
        if status.success() { Ok(took) } else { Err(format!("{arguments:?}: {status}")) }
    }

    /// Runs it once; the most memory that was its own and no file's, in KiB, looked at again and again until it ends.
    ///
    /// # Errors
    /// That it failed.
    pub fn memory(&self, store: &Path, arguments: &[&str]) -> Result<u64, String> {
        let mut process =
            self.command(store, arguments).spawn().map_err(|error| error.to_string())?;
        let status = format!("/proc/{}/status", process.id());
        let mut most = 0;
        let ended = loop {
            most = most.max(own(&fs::read_to_string(&status).unwrap_or_default()));
            if let Some(ended) = process.try_wait().map_err(|error| error.to_string())? {
                break ended;
            }
            std::thread::park_timeout(Duration::from_micros(300));
        };
        if ended.success() { Ok(most) } else { Err(format!("{arguments:?}: {ended}")) }
    }
}

/// What a process status says of memory that is no file's, in KiB.
fn own(status: &str) -> u64 {
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().split(' ').next()?.parse::<u64>().ok()
    };
    of("RssAnon:").unwrap_or(0) + of("RssShmem:").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only memory that is no file's counts. Method: a status as Linux prints it.
    #[test]
    fn files_do_not_count() {
        let status = "VmHWM:\t  9000 kB\nRssAnon:\t    1500 kB\nRssFile:\t  7000 kB\nRssShmem:\t       4 kB\n";
        assert_eq!(own(status), 1_504);
    }
}
