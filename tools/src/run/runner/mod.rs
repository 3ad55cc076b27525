//! Starts an agent's process, listens to it, holds it to its limits, ends it, and tells how it ended.
//!
//! - The outcome follows from facts: exit code, signal, a limit, a wish to stop. What the agent says of itself counts as
//!   an error at most, never as a success.
//! - The process leads a group of its own: signals to us do not reach it, and ours reach all of it. It is asked to end
//!   (TERM), and after a grace ended (KILL). Agents put their tools' commands into sessions of their own and leave them
//!   there: those are found by the variables that they inherited, and ended. One without these that holds the pipes is not
//!   waited for.
//! - After its end what stands in the pipes is read for a short time and belongs to the reply. What processes that it left
//!   behind write later is told as late, for a bounded time and up to a bounded size, and changes nothing.
//! - Memory is bounded by the limits of the agent: whoever does not take what was heard slows the agent down. Output is
//!   told ten times a second, and sooner only when there is much of it.
//! - Standard output over its limit ends the run with an error, reason `output_limit`: a reply that is cut in the middle
//!   is no reply. A single line over its limit is cut, with a mark, and the run goes on.
//! - When the future is dropped, the whole group is ended at once.

mod end;
mod group;
mod late;
mod launch;
mod lines;
mod listen;
mod pieces;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::{Clock, SystemClock};
use annals_engine::session::event::{OutputStream, RunStatus};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::dialect::Reply;
use super::reaper;
use super::spec::AgentSpec;
use end::{Ended, Ending};
use group::Group;
use launch::{Launch, Unstarted};
use listen::{Listener, Phase, Said, Sign};

/// The variables that a process learns its run from. Whoever starts a process that outlives the run removes them.
pub const VARIABLES: [&str; 12] = [
    "ANNALS_RUN_ID",
    "ANNALS_SESSION_KEY",
    "ANNALS_SESSION_ID",
    "ANNALS_AGENT_ID",
    "ANNALS_PARENT_RUN_ID",
    "ANNALS_DEPTH",
    "ANNALS_DEADLINE",
    "ANNALS_HOME",
    "ANNALS_CONFIG",
    "ANNALS_MCP_URL",
    "ANNALS_TOKEN",
    "TRACEPARENT",
];

/// One run to make.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The run.
    pub run_id: String,
    /// The session that it works on.
    pub session_key: String,
    /// The part that it works on.
    pub session_id: String,
    /// The agent that does it.
    pub agent_id: String,
    /// The run that caused it.
    pub parent_run_id: Option<String>,
    /// How many spawns lie above its session.
    pub depth: u32,
    /// The run's own time limit; the agent's limit holds as well.
    pub timeout: Option<Duration>,
    /// What the agent is asked, whole: where the context goes before the prompt, it is in here.
    pub prompt: String,
    /// What `{contextFile}` holds.
    pub context: Option<String>,
    /// The model asked for; the agent's own when absent.
    pub model: Option<String>,
    /// The thinking level asked for.
    pub thinking: Option<String>,
    /// The id of the agent's own session to go on with.
    pub agent_session_id: Option<String>,
    /// The store's folder.
    pub store: PathBuf,
    /// The token by which the agent's calls are known to be this run's.
    pub token: Option<String>,
    /// Where tools are offered over HTTP.
    pub mcp_url: Option<String>,
    /// What `{mcpConfig}` is.
    pub mcp_config: Option<String>,
    /// The W3C trace context of the run.
    pub traceparent: Option<String>,
}

/// Why a run has to end before its agent is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody wants this run to end.
    Kill,
    /// Whoever runs it has to stop.
    Shutdown,
}

/// What is heard of a run while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The process runs; always the first.
    Started {
        /// Its pid.
        pid: u32,
        /// The command and its arguments; the prompt stands as `{prompt}`.
        command: Vec<String>,
        /// The folder that it runs in.
        cwd: PathBuf,
    },
    /// It said something.
    Output {
        /// Where.
        stream: OutputStream,
        /// What: at most 64 KiB and a character.
        text: String,
        /// Whether it came after the end of the process.
        late: bool,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How.
    pub status: RunStatus,
    /// A code that says why, unless it ended well: `exit`, `signal`, `agent_error`, `output_limit`, `spawn_failed`,
    /// `prompt_too_long`, `deadline`, `no_output`, `kill` or `shutdown`.
    pub reason: Option<&'static str>,
    /// The process's exit code.
    pub exit: Option<i32>,
    /// The number of the signal that ended the process.
    pub signal: Option<i32>,
    /// From the start of the process to its end.
    pub runtime: Duration,
    /// What its output told. A run that did not end well may have a part of a reply.
    pub reply: Reply,
    /// What went wrong, and what was repaired, in words.
    pub detail: Option<String>,
    /// The end of standard error, if there was any.
    pub stderr_tail: Option<String>,
}

/// Makes runs.
#[derive(Clone, Debug)]
pub struct Runner {
    clock: Arc<dyn Clock>,
}

impl Default for Runner {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock))
    }
}

impl Runner {
    /// A runner that tells its processes their deadline by a clock. Limits are kept by the system's monotonic one.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    /// Makes one run, from the start of its process to its end.
    ///
    /// `stop` may hold a wish from the beginning; then nothing starts. `heard` has to be taken from at the same time. It
    /// may be closed: then nothing is told. Late output may come through it after the outcome; nobody needs to wait for it.
    /// Needs a runtime with time and I/O.
    pub async fn run(
        &self,
        spec: &AgentSpec,
        job: &Job,
        stop: watch::Receiver<Option<Stop>>,
        heard: mpsc::Sender<Heard>,
    ) -> Outcome {
        if let Some(stop) = *stop.borrow() {
            return Outcome::of(&Ended::before(stop), Said::default(), Duration::ZERO);
        }
        let limit = [job.timeout, spec.timeouts.run].into_iter().flatten().min();
        let deadline = limit.map(|limit| self.clock.now().plus(limit));
        let mut launch = match Launch::prepare(spec, job, deadline) {
            Ok(launch) => launch,
            Err(unstarted) => return unstarted.into(),
        };
        let began = Instant::now();
        let mut child = match launch.start() {
            Ok(child) => child,
            Err(unstarted) => return unstarted.into(),
        };
        let mut group = Group::led_by(&child);
        let fed = child.stdin.take().map(|stdin| tokio::spawn(launch::feed(stdin, launch.typed())));
        let (phase, phases) = watch::channel(Phase::Runs);
        let (signs, mut signs_seen) = watch::channel(Sign::Heard(began));
        let (said, mut told) = oneshot::channel();
        let first = launch.told(group.pid());
        let listener = Listener::new(&mut child, spec, &job.run_id, heard, phases, signs);
        tokio::spawn(listener.listen(first, said));

        let limits = Ending { deadline: limit.map(|limit| began + limit), timeouts: spec.timeouts };
        let mut stop_seen = stop.clone();
        let ended = limits.wait(&mut child, &mut group, &mut stop_seen, &mut signs_seen).await;
        let runtime = began.elapsed();
        if let Some(fed) = fed {
            fed.abort();
        }
        if !ended.by_itself() {
            reaper::reap(&job.run_id, &job.store, Duration::ZERO).await;
        }
        phase.send_replace(if ended.by_itself() { Phase::Ended } else { Phase::Stopped });
        let said = tokio::select! {
            said = &mut told => said,
            // The process is gone: nobody has to wait for what was heard of it.
            _ = end::wish(&mut stop_seen), if ended.by_itself() => {
                phase.send_replace(Phase::Stopped);
                told.await
            }
        };
        Outcome::of(&ended, said.unwrap_or_default(), runtime)
    }
}

impl Outcome {
    fn of(ended: &Ended, said: Said, runtime: Duration) -> Self {
        let (status, reason, mut detail) = ended.verdict(said.too_much, said.reply.error.clone());
        detail.extend(said.notes);
        Self {
            status,
            reason,
            exit: ended.exit(),
            signal: ended.signal(),
            runtime,
            reply: said.reply,
            detail: Some(detail.join("; ")).filter(|detail| !detail.is_empty()),
            stderr_tail: said.stderr_tail,
        }
    }
}

impl From<Unstarted> for Outcome {
    fn from(unstarted: Unstarted) -> Self {
        let mut outcome = Self::of(&Ended::never(), Said::default(), Duration::ZERO);
        outcome.reason = Some(unstarted.reason);
        outcome.detail = Some(unstarted.detail);
        outcome
    }
}
