//! Agent programs of others, where they are installed: found, given a home of their own and a model on the loopback, and
//! run as an agent that a configuration names.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use annals_engine::config::{Config, Sources, load};
use annals_tools::run::dialect::{Dialect, OutputForm, Reader, Reply, Told};
use tempfile::TempDir;

use annals_tests::model_api::ModelApi;

/// The variable that names a folder in whose `node_modules/.bin` the programs are. Without it they are looked for in
/// `PATH`.
pub(crate) const FOLDER: &str = "ANNALS_AGENT_PROGRAMS";

/// The longest that a run may take. Nothing waits for it where all is well.
const AT_MOST: Duration = Duration::from_secs(60);

/// A program that can be run. It knows nothing of whoever runs the tests: neither their home nor their environment.
#[derive(Debug)]
pub(crate) struct Agent {
    program: PathBuf,
    config: Config,
    home: TempDir,
    env: Vec<(&'static str, OsString)>,
    more: Vec<&'static str>,
    instead: Vec<(&'static str, &'static str)>,
}

/// A run that ended.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What the whole output told.
    pub(crate) reply: Reply,
    /// What its lines told.
    pub(crate) told: Vec<Told>,
    /// The exit code.
    pub(crate) exit: Option<i32>,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Agent {
    /// Claude Code, as `fixtures/agents/claude.json5` names it; `None`, said on standard output, where it is absent.
    pub(crate) fn claude(api: &ModelApi) -> Option<Self> {
        let mut agent = Self::new("claude", include_str!("../../fixtures/agents/claude.json5"))?;
        agent.env = vec![
            ("CLAUDE_CONFIG_DIR", agent.home.path().join(".claude").into()),
            ("ANTHROPIC_BASE_URL", api.url().into()),
            ("ANTHROPIC_API_KEY", "stand-in".into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
        ];
        Some(agent)
    }

    /// Codex, as `fixtures/agents/codex.json5` names it; `None`, said on standard output, where it is absent. Its own
    /// sandbox is off: where tests run there may be none.
    pub(crate) fn codex(api: &ModelApi) -> Option<Self> {
        let mut agent = Self::new("codex", include_str!("../../fixtures/agents/codex.json5"))?;
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
        agent.env = vec![("CODEX_HOME", home.into()), ("STAND_IN_KEY", "stand-in".into())];
        Some(agent.instead_of("workspace-write", "danger-full-access"))
    }

    fn new(name: &str, config: &str) -> Option<Self> {
        let Some(program) = find(name) else {
            println!("skipped: no {name} in PATH, nor in the folder that {FOLDER} names");
            return None;
        };
        let file = Some((Path::new("agents.json5"), config));
        let sources = Sources { flags: &[], variable: &|_| None, file };
        let (config, warnings) = load(&sources).expect("a configuration");
        assert!(warnings.is_empty(), "{warnings:?}");
        let home = tempfile::tempdir().expect("a folder");
        Some(Self { program, config, home, env: Vec::new(), more: Vec::new(), instead: Vec::new() })
    }

    /// Gives arguments that the configuration has not.
    pub(crate) fn with(mut self, more: &[&'static str]) -> Self {
        self.more.extend(more);
        self
    }

    /// Gives one argument instead of another.
    pub(crate) fn instead_of(mut self, argument: &'static str, other: &'static str) -> Self {
        self.instead.push((argument, other));
        self
    }

    /// Makes a run that begins a session of the program's own.
    pub(crate) fn ask(&self, prompt: &str) -> Ran {
        self.run("args", "", prompt)
    }

    /// Makes a run that goes on with a session.
    pub(crate) fn resume(&self, session: &str, prompt: &str) -> Ran {
        self.run("resumeArgs", session, prompt)
    }

    fn run(&self, args: &str, session: &str, prompt: &str) -> Ran {
        let work = self.home.path().join("work");
        std::fs::create_dir_all(&work).expect("a folder to work in");
        let mut command = Command::new(&self.program);
        command.args(self.arguments(args, session)).current_dir(work).env_clear();
        command.env("HOME", self.home.path()).env("PATH", std::env::var_os("PATH").expect("PATH"));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(prompt.as_bytes()).expect("it takes the prompt");
        drop(stdin);
        let (stdout, stderr) = (listen(child.stdout.take()), listen(child.stderr.take()));
        let said = stdout.recv_timeout(AT_MOST);
        if said.is_err() {
            let _ = child.kill();
        }
        let exit = child.wait().expect("it ends").code();
        let said = said.expect("it ends in time");
        let stderr = stderr.recv_timeout(AT_MOST).expect("it ends");
        let mut reader = self.reader();
        let lines = said.split_inclusive(|byte| *byte == b'\n');
        let told = lines.filter_map(|line| reader.line(line)).collect();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ran { reply: reader.finish(), told, exit, stderr }
    }

    fn arguments(&self, which: &str, session: &str) -> Vec<String> {
        let mut args: Vec<String> = Vec::new();
        for arg in self.config.texts(&format!("agents.list[0].run.{which}")) {
            match arg {
                "{agentSessionId}" => args.push(session.to_owned()),
                "{model}" | "{thinking}" => drop(args.pop()),
                arg if arg.contains("{thinking}") => {}
                arg => {
                    let instead = self.instead.iter().find(|(have, _)| *have == arg);
                    args.push(instead.map_or(arg, |(_, other)| other).to_owned());
                }
            }
        }
        args.extend(self.more.iter().map(|arg| (*arg).to_owned()));
        args
    }

    fn reader(&self) -> Reader {
        let word = |name: &str| self.config.text(&format!("agents.list[0].run.{name}"));
        let dialect = word("dialect").and_then(Dialect::from_word).unwrap_or_default();
        let form = word("output").and_then(OutputForm::from_word).unwrap_or_default();
        Reader::new(dialect, form)
    }
}

/// Where a program is.
fn find(name: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os(FOLDER).map(|folder| Path::new(&folder).join("node_modules/.bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folder.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Reads all that comes, elsewhere.
fn listen(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut all);
        }
        let _ = sender.send(all);
    });
    receiver
}
