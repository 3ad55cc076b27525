//! One run of the fake agent, as the tests describe it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use annals_engine::config::{Sources, load};
use annals_engine::session::event::OutputStream;
use annals_tools::run::{AgentSpec, Heard, Job, Outcome, Runner, Stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

/// So long nothing here takes, unless it hangs.
const NEVER: Duration = Duration::from_secs(120);

/// A run to make.
pub(super) struct Trial {
    home: TempDir,
    run: Value,
    pub(super) job: Job,
    /// How many things that were heard may wait.
    pub(super) room: usize,
}

/// What a run was.
pub(super) struct Made {
    pub(super) outcome: Outcome,
    pub(super) heard: Vec<Heard>,
}

impl Trial {
    /// An agent that takes these steps.
    pub(super) fn of(steps: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let run = json!({ "command": env!("CARGO_BIN_EXE_fake-agent"), "args": steps });
        let job = Job {
            run_id: "run-1".to_owned(),
            session_key: "agent:a:main".to_owned(),
            session_id: "part-1".to_owned(),
            agent_id: "a".to_owned(),
            prompt: "what now?".to_owned(),
            store: home.path().join("store"),
            ..Job::default()
        };
        Self { home, run, job, room: 64 }
    }

    /// Sets something below `run` of the agent's settings.
    pub(super) fn set(mut self, pointer: &str, value: Value) -> Self {
        let names: Vec<&str> = pointer.split('.').collect();
        let mut place = &mut self.run;
        for name in names {
            place = &mut place[name];
        }
        *place = value;
        self
    }

    pub(super) fn prompt(mut self, prompt: &str) -> Self {
        prompt.clone_into(&mut self.job.prompt);
        self
    }

    /// A path in the trial's folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// What the configuration says of the agent.
    pub(super) fn spec(&self) -> AgentSpec {
        let text = json!({ "agents": { "list": [{ "id": "a", "run": self.run }] } }).to_string();
        let path = self.path("annals.json5");
        let file = Some((path.as_path(), text.as_str()));
        let (config, warnings) = load(&Sources { flags: &[], variable: &|_| None, file }).unwrap();
        assert_eq!(warnings, []);
        AgentSpec::of(&config, "a").unwrap().unwrap()
    }

    /// Makes the run.
    pub(super) fn run(&self) -> Made {
        self.run_and(|_, _| {})
    }

    /// Makes the run; `listen` is told what is heard and may say that it is to stop.
    pub(super) fn run_and(
        &self,
        mut listen: impl FnMut(&Heard, &watch::Sender<Option<Stop>>),
    ) -> Made {
        in_time(async {
            let (stop, stops) = watch::channel(None);
            let (tell, mut told) = mpsc::channel(self.room);
            let (spec, runner) = (self.spec(), Runner::default());
            let mut run = std::pin::pin!(runner.run(&spec, &self.job, stops, tell));
            let mut heard = Vec::new();
            let mut take = |one: Heard| {
                listen(&one, &stop);
                heard.push(one);
            };
            let outcome = loop {
                tokio::select! {
                    Some(one) = told.recv() => take(one),
                    outcome = &mut run => break outcome,
                }
            };
            while let Ok(one) = told.try_recv() {
                take(one);
            }
            Made { outcome, heard }
        })
    }

    /// The one line of a file that the agent wrote.
    pub(super) fn line(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap().trim().to_owned()
    }
}

impl Made {
    /// Status, reason and reply in one line.
    pub(super) fn told(&self) -> String {
        let Outcome { status, reason, reply, .. } = &self.outcome;
        let reply = reply.text.as_deref().map_or("-".to_owned(), |reply| format!("{reply:?}"));
        format!("{status} {} {reply}", reason.unwrap_or("-"))
    }

    /// What was heard on a stream.
    pub(super) fn heard_on(&self, wanted: OutputStream) -> String {
        let text = |one: &Heard| match one {
            Heard::Output { stream, text, .. } if *stream == wanted => Some(text.clone()),
            _ => None,
        };
        self.heard.iter().filter_map(text).collect()
    }

    pub(super) fn detail(&self) -> &str {
        self.outcome.detail.as_deref().unwrap_or_default()
    }
}

/// Does something with a runtime, and fails when it hangs.
pub(super) fn in_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(NEVER, work).await.expect("it hangs") })
}

/// A pipe with a name, for an agent to wait for.
pub(super) fn fifo(path: &Path) {
    use rustix::fs::{CWD, Mode, mkfifoat};
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

/// Lets whoever waits for a pipe go on. It must be waiting, or come.
pub(super) fn release(path: &Path) {
    File::options().write(true).open(path).unwrap().write_all(b"go\n").unwrap();
}

/// A process that is watched from outside.
pub(super) struct Watched(OwnedFd);

impl Watched {
    /// The process of a pid, which runs.
    pub(super) fn pid(pid: &str) -> Self {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        Self(pidfd_open(pid, PidfdFlags::empty()).expect("it runs"))
    }

    /// Whether it has ended.
    pub(super) fn ended(&self) -> bool {
        self.poll(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
    }

    /// Waits for its end.
    #[track_caller]
    pub(super) fn ends(&self) {
        let never = Timespec { tv_sec: NEVER.as_secs().try_into().unwrap(), tv_nsec: 0 };
        assert!(self.poll(Some(&never)), "it goes on");
    }

    /// Ends it.
    pub(super) fn end(&self) {
        pidfd_send_signal(&self.0, Signal::KILL).unwrap();
    }

    fn poll(&self, wait: Option<&Timespec>) -> bool {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], wait).unwrap() > 0
    }
}
