//! Agent programs of others, where they are installed: found, given a home of their own and a model on the loopback, and
//! run by the runner as agents that a configuration names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use annals_engine::config::{Sources, load};
use annals_engine::session::event::OutputStream;
use annals_tests::model_api::ModelApi;
use annals_tools::run::{AgentSpec, Heard, Job, Outcome, Runner, Stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, mkfifoat, openat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

/// The variable that names a folder in whose `node_modules/.bin` the programs are. Without it they are looked for in
/// `PATH`.
pub(crate) const FOLDER: &str = "ANNALS_AGENT_PROGRAMS";

/// The configurations that are shown to whoever runs these programs, by the agent's id.
pub(crate) const CONFIGURATIONS: [(&str, &str); 4] = [
    ("claude", include_str!("../../fixtures/agents/claude.json5")),
    ("codex", include_str!("../../fixtures/agents/codex.json5")),
    ("gemini", include_str!("../../fixtures/agents/gemini.json5")),
    ("openclaw", include_str!("../../fixtures/agents/openclaw.json5")),
];

/// The longest that a run may take. Nothing waits for it where all is well.
const AT_MOST: Duration = Duration::from_secs(60);

/// A program that can be run. It knows nothing of whoever runs the tests: neither their home nor their environment.
pub(crate) struct Agent {
    spec: AgentSpec,
    home: TempDir,
}

/// A run that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// What was heard of it.
    pub(crate) heard: Vec<Heard>,
}

impl Agent {
    /// Claude Code; `None`, said on standard output, where it is absent.
    pub(crate) fn claude(api: &ModelApi) -> Option<Self> {
        let mut agent = Self::new("claude")?;
        let home = agent.home.path().join(".claude").display().to_string();
        agent.set("CLAUDE_CONFIG_DIR", home);
        agent.set("ANTHROPIC_BASE_URL", api.url());
        agent.set("ANTHROPIC_API_KEY", "stand-in".to_owned());
        agent.set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned());
        agent.set("DISABLE_AUTOUPDATER", "1".to_owned());
        Some(agent)
    }

    /// Codex; `None`, said on standard output, where it is absent. Its own sandbox is off: where tests run there may be
    /// none.
    pub(crate) fn codex(api: &ModelApi) -> Option<Self> {
        let mut agent = Self::new("codex")?;
        let settings = format!(
            "model = 'stand-in'\nmodel_provider = 'loopback'\n\
             [model_providers.loopback]\nname = 'loopback'\nbase_url = '{}/v1'\n\
             env_key = 'STAND_IN_KEY'\nwire_api = 'responses'\n\
             request_max_retries = 1\nstream_max_retries = 1\n",
            api.url()
        );
        let home = agent.home.path().join(".codex");
        std::fs::create_dir(&home).expect("a folder in its home");
        std::fs::write(home.join("config.toml"), settings).expect("its settings");
        agent.set("CODEX_HOME", home.display().to_string());
        agent.set("STAND_IN_KEY", "stand-in".to_owned());
        agent.change("workspace-write", "danger-full-access");
        Some(agent)
    }

    fn new(id: &str) -> Option<Self> {
        let Some(program) = find(id) else {
            println!("skipped: no {id} in PATH, nor in the folder that {FOLDER} names");
            return None;
        };
        let home = tempfile::tempdir().expect("a folder");
        let mut spec = configured(id, home.path());
        spec.command = program;
        spec.clear_env = true;
        spec.cwd = home.path().join("work");
        std::fs::create_dir(&spec.cwd).expect("a folder to work in");
        let mut agent = Self { spec, home };
        let home = agent.home.path().display().to_string();
        agent.set("HOME", home);
        Some(agent)
    }

    /// The folder that it works in.
    pub(crate) fn work(&self) -> &Path {
        &self.spec.cwd
    }

    /// Gives an argument that the configuration has not.
    pub(crate) fn with(mut self, argument: &str) -> Self {
        self.spec.args.push(argument.to_owned());
        self.spec.resume_args.iter_mut().for_each(|args| args.push(argument.to_owned()));
        self
    }

    fn change(&mut self, argument: &str, other: &str) {
        let resuming = self.spec.resume_args.iter_mut().flatten();
        let all = self.spec.args.iter_mut().chain(resuming);
        all.filter(|have| *have == argument).for_each(|have| other.clone_into(have));
    }

    fn set(&mut self, name: &str, value: String) {
        self.spec.env.push((name.to_owned(), value));
    }

    /// Makes a run that begins a session of the program's own.
    pub(crate) fn ask(&self, prompt: &str) -> Ran {
        self.run(Job { prompt: prompt.to_owned(), ..self.job() })
    }

    /// Makes a run that goes on with a session.
    pub(crate) fn resume(&self, session: &str, prompt: &str) -> Ran {
        let agent_session_id = Some(session.to_owned());
        self.run(Job { prompt: prompt.to_owned(), agent_session_id, ..self.job() })
    }

    /// What every run has.
    pub(crate) fn job(&self) -> Job {
        Job {
            run_id: "run-1".to_owned(),
            session_key: format!("agent:{}:main", self.spec.id),
            session_id: "part-1".to_owned(),
            agent_id: self.spec.id.clone(),
            timeout: Some(AT_MOST),
            store: self.home.path().join("store"),
            ..Job::default()
        }
    }

    /// Makes a run.
    pub(crate) fn run(&self, job: Job) -> Ran {
        let (_stop, stops) = watch::channel(None);
        self.made(job, stops)
    }

    /// Makes a run in which the program has a command write to a pipe, which is in its folder, and stops it then. What
    /// the command wrote comes with it.
    pub(crate) fn stopped_when_written(&self, prompt: &str, pipe: &str) -> (Ran, String) {
        let (stop, stops) = watch::channel(None);
        let path = self.spec.cwd.join(pipe);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
        let written = std::thread::spawn({
            let path = path.clone();
            move || {
                let written = std::fs::read_to_string(path);
                stop.send_replace(Some(Stop::Kill));
                written
            }
        });
        let ran = self.made(Job { prompt: prompt.to_owned(), ..self.job() }, stops);
        // Nobody else writes now: where nothing was written, the reader meets an end.
        drop(openat(CWD, &path, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty()));
        let written = written.join().expect("a reader").expect("text");
        (ran, written.trim().to_owned())
    }

    fn made(&self, job: Job, stops: watch::Receiver<Option<Stop>>) -> Ran {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(self.listen(job, stops))
    }

    async fn listen(&self, job: Job, stops: watch::Receiver<Option<Stop>>) -> Ran {
        let (tell, mut told) = mpsc::channel(64);
        let runner = Runner::default();
        let mut run = std::pin::pin!(runner.run(&self.spec, &job, stops, tell));
        let mut heard = Vec::new();
        let outcome = loop {
            tokio::select! {
                Some(one) = told.recv() => heard.push(one),
                outcome = &mut run => break outcome,
            }
        };
        while let Ok(one) = told.try_recv() {
            heard.push(one);
        }
        Ran { outcome, heard }
    }
}

impl Ran {
    /// Status, reason, exit and reply in one line.
    pub(crate) fn told(&self) -> String {
        let Outcome { status, reason, exit, reply, .. } = &self.outcome;
        let exit = exit.map_or("-".to_owned(), |exit| exit.to_string());
        let reply = reply.text.as_deref().map_or("-".to_owned(), |reply| format!("{reply:?}"));
        format!("{status} {} {exit} {reply}", reason.unwrap_or("-"))
    }

    /// What was heard on a stream.
    pub(crate) fn heard_on(&self, wanted: OutputStream) -> String {
        let text = |one: &Heard| match one {
            Heard::Output { stream, text, .. } if *stream == wanted => Some(text.clone()),
            _ => None,
        };
        self.heard.iter().filter_map(text).collect()
    }

    /// What went wrong, in words.
    pub(crate) fn detail(&self) -> &str {
        self.outcome.detail.as_deref().unwrap_or_default()
    }
}

/// What the configuration says of an agent. It says nothing that is no setting.
pub(crate) fn configured(id: &str, folder: &Path) -> AgentSpec {
    let text = CONFIGURATIONS.iter().find(|(have, _)| *have == id).expect("a configuration").1;
    let path = folder.join("annals.json5");
    let file = Some((path.as_path(), text));
    let loaded = load(&Sources { flags: &[], variable: &|_| None, file });
    let (config, warnings) = loaded.expect("a configuration");
    assert!(warnings.is_empty(), "{warnings:?}");
    AgentSpec::of(&config, id).expect("an agent").expect("a command")
}

/// Waits until a process is gone; says whether it went.
pub(crate) fn gone(pid: &str) -> bool {
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let at_most = Timespec::try_from(AT_MOST).expect("a minute");
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&at_most)).is_ok_and(|ended| ended > 0)
}

/// Where a program is.
fn find(name: &str) -> Option<PathBuf> {
    let bin = |folder| Path::new(&folder).join("node_modules/.bin");
    let folder = std::env::var_os(FOLDER).map(bin);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folder.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}
