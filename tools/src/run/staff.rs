//! Sees to it that somebody works: a worker that is there, or one that is started, which goes when nothing is left to do.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use annals_engine::engine::Engine;
use annals_engine::{Error, Result};

use super::runner::VARIABLES;
use crate::desk::{Presence, Staff};

/// Starts a worker where nobody is home.
#[derive(Debug)]
pub struct OnCall {
    engine: Engine,
    /// The program and its arguments; `None` when nobody may be started.
    command: Option<(PathBuf, Vec<String>)>,
}

/// How somebody could be home.
const HOW: &str = "start one with `annals worker`";

impl OnCall {
    /// A worker is started by this command, or nobody is.
    #[must_use]
    pub const fn new(engine: Engine, command: Option<(PathBuf, Vec<String>)>) -> Self {
        Self { engine, command }
    }
}

impl Staff for OnCall {
    fn called(&self, _run_id: &str) -> Result<Presence> {
        // Who gets the role sees that nobody had it, and gives it back. Another who looks just now has it for a moment.
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::park_timeout(BETWEEN_LOOKS);
            }
            if self.engine.take_worker_role()?.is_some() {
                break;
            }
            if look + 1 == LOOKS {
                return Ok(Presence::Home);
            }
        }
        let Some((program, arguments)) = &self.command else {
            return Ok(Presence::Nobody(HOW.to_owned()));
        };
        detach(program, arguments)?;
        Ok(Presence::Started)
    }
}

/// Starts a process that outlives this one and belongs to no run.
#[expect(clippy::disallowed_methods, reason = "this is one of the places that start processes")]
fn detach(program: &PathBuf, arguments: &[String]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments);
    for name in VARIABLES.iter().filter(|name| !KEPT.contains(name)) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // A lock or a pipe that the caller's shell has open must not stay held for as long as the worker works.
    close_fds::set_fds_cloexec_threadsafe(FIRST_OF_OTHERS, &[]);
    let started = command.spawn();
    started.map(drop).map_err(|e| Error::io("cannot start a worker", e).path(program))
}

/// Whoever has the role at each of so many looks is at home.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The first descriptor behind the three that every process has.
const FIRST_OF_OTHERS: i32 = 3;

/// These name the store and its settings, for every process alike.
const KEPT: [&str; 2] = ["ANNALS_HOME", "ANNALS_CONFIG"];
