//! A command that gets the message as one line of JSON on its standard input. It says by how it ends what became of it:
//! 0 that it was delivered, 75 (`EX_TEMPFAIL` of `sysexits.h`) that it may be the next time, anything else that it will
//! not be. One that does not end in time is ended with all that it started, and nobody knows how far it came.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use annals_engine::Result;
use annals_engine::config::table::secret_variables;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use super::line_of;
use super::sink::{Needs, Said, Sent};
use crate::run::runner::VARIABLES;
use crate::run::worker::Parcel;

/// The command of a sink.
pub(super) struct Exec {
    command: String,
    args: Vec<String>,
    env: Vec<(String, OsString)>,
    /// The folder of the configuration.
    cwd: Option<PathBuf>,
    timeout: Duration,
}

/// The exit code that says: try again.
const TRY_AGAIN: i32 = 75;

/// So much of the end of its standard error is told, in bytes.
const TAIL_BYTES: usize = 4 << 10;

/// Variables of a run that say where the store is, and not which run it is.
const KEPT: [&str; 2] = ["ANNALS_HOME", "ANNALS_CONFIG"];

/// So long what it wrote before its end may take to be read; something that it started may hold the pipe for ever.
const READING_TAKES_MAX: Duration = Duration::from_millis(200);

/// Variables are never shown.
impl fmt::Debug for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec")
            .field("command", &self.command)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

impl Exec {
    pub(super) fn of(said: &Said<'_>) -> Result<Self> {
        let env = said.path("env");
        let env = said.config.texts_below(&env);
        let args = said.config.texts(&said.path("args"));
        Ok(Self {
            command: said.needed("command", "the program that a message is given to")?.to_owned(),
            args: args.into_iter().map(str::to_owned).collect(),
            env: env.map(|(name, value)| (name.to_owned(), value.into())).collect(),
            cwd: said.config.folder().filter(|folder| folder.is_dir()).map(PathBuf::from),
            timeout: said.timeout,
        })
    }

    pub(super) fn needs(&self) -> Needs<'_> {
        Needs::Program(&self.command, self.cwd.as_deref())
    }

    pub(super) async fn send(&self, parcel: &Parcel) -> Sent {
        let mut child = match self.start() {
            Ok(child) => child,
            Err(e) => return Sent::retry("spawn_failed", &format!("{}: {e}", self.command)),
        };
        let mut group = Group::led_by(&child);
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let line = line_of(parcel);
        let feed = tokio::spawn(async move {
            // One that does not read it says so by how it ends.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(&line).await;
            }
        });
        let tail = tokio::spawn(tail(stderr));
        let ended = timeout(self.timeout, child.wait()).await;
        feed.abort();
        let Ok(ended) = ended else {
            group.end();
            let _ = child.wait().await;
            let seconds = self.timeout.as_secs();
            return Sent::unknown("timeout", &format!("no end after {seconds} s"));
        };
        group.let_go();
        let reading = tail.abort_handle();
        let said = timeout(READING_TAKES_MAX, tail).await;
        reading.abort();
        let said = said.ok().and_then(std::result::Result::ok).unwrap_or_default();
        match ended.map(|status| status.code()) {
            Ok(Some(0)) => Sent::Delivered,
            Ok(Some(TRY_AGAIN)) => Sent::retry("try_again", &said),
            Ok(Some(code)) => Sent::refused("exit", &format!("{code} {said}")),
            Ok(None) => Sent::unknown("signal", &said),
            Err(e) => Sent::unknown("lost", &e),
        }
    }

    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.command);
        // A worker may have been started from inside a run: nothing of that is meant for this command.
        let of_runs = VARIABLES.iter().filter(|name| !KEPT.contains(name)).copied();
        for name in of_runs.chain(secret_variables()) {
            command.env_remove(name);
        }
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command.spawn()
    }
}

/// The end of what was written, when all of it was.
async fn tail(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let mut bytes = Vec::new();
    let mut piece = [0; 4 << 10];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        let over = bytes.len().saturating_sub(TAIL_BYTES);
        bytes.drain(..over);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The process and all that stays with it, ended when this is dropped before it is let go: a worker that stops leaves no
/// command behind.
struct Group {
    leader: Option<Pid>,
}

impl Group {
    fn led_by(child: &Child) -> Self {
        Self { leader: child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)) }
    }

    fn end(&mut self) {
        if let Some(leader) = self.leader.take() {
            // A group that is gone is what was wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }

    fn let_go(&mut self) {
        self.leader = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
