//! What describes an agent: what the configuration says of it, with every default filled in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use annals_engine::config::Config;
use annals_engine::session::run::Reason;
use annals_engine::{Error, Result};

use super::arguments::{Placeholder, occurs};
use super::dialect::{Dialect, OutputForm};
use super::preset::Preset;

/// A configuration that is complete: five lines to begin with.
pub const EXAMPLE: &str = r#"{ agents: { list: [
  { id: "main", run: { command: "claude", dialect: "claude-stream-json",
      args: ["-p", "--output-format", "stream-json", "--verbose", "--model={model}"] } },
  { id: "echo", run: { command: "cat" } },
] } }"#;

/// An agent that can run: it has a command.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpec {
    /// Its id.
    pub id: String,
    /// The name that people see.
    pub name: Option<String>,
    /// The program: a name that is looked for in `PATH`, or an absolute path.
    pub command: PathBuf,
    /// Its arguments, placeholders not filled in.
    pub args: Vec<String>,
    /// The arguments instead, when a session of the agent's own goes on.
    pub resume_args: Option<Vec<String>>,
    /// How the prompt comes to it.
    pub input: Input,
    /// The form of what it prints.
    pub output: OutputForm,
    /// The language of what it prints.
    pub dialect: Dialect,
    /// The folder that it runs in, absolute.
    pub cwd: PathBuf,
    /// Variables of its environment, by name.
    pub env: Vec<(String, String)>,
    /// Whether it gets `PATH`, `HOME`, `LANG` and `TERM` alone of the environment that it would inherit.
    pub clear_env: bool,
    /// The file that all this was said in; it is told to the process, which may call this program.
    pub config_file: Option<PathBuf>,
    /// How long it may take.
    pub timeouts: Timeouts,
    /// How much it may print.
    pub limits: Limits,
    /// What becomes of a run whose process is gone.
    pub on_lost: OnLost,
    /// Its own model.
    pub model: Option<String>,
    /// The models that may be asked for; any when empty.
    pub models: Vec<String>,
    /// The thinking levels that may be asked for; any when empty.
    pub thinking_levels: Vec<String>,
    /// Whether its command confines it.
    pub sandbox: Sandbox,
    /// The model of the children that it spawns.
    pub child_model: Option<String>,
    /// The thinking level of the children that it spawns.
    pub child_thinking: Option<String>,
}

/// How the prompt comes to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// On standard input, which then ends.
    Stdin,
    /// As `{prompt}` in the arguments; as the last argument where none says so.
    Arg,
    /// As a private file, `{promptFile}` in the arguments; its path is the last argument where none says so.
    File,
}

impl Input {
    /// The word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdin => "stdin",
            Self::Arg => "arg",
            Self::File => "file",
        }
    }
}

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From start to end, whatever the run itself asks for; `None` for no limit.
    pub run: Option<Duration>,
    /// Without a byte from it; `None` for no limit.
    pub no_output: Option<Duration>,
    /// From the request to end to the order.
    pub kill_grace: Duration,
}

/// How much a run may print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of standard output; a run that prints more ends with an error.
    pub stdout_bytes: usize,
    /// Bytes of a line of standard output; a longer one is cut.
    pub line_bytes: usize,
    /// Bytes at the end of standard error that are kept.
    pub stderr_tail_bytes: usize,
}

/// What becomes of a run whose process is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// It ends.
    #[default]
    End,
    /// It is requested again.
    Retry,
}

/// Which sessions of an agent its command confines, as the operator declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// None.
    #[default]
    Off,
    /// All but the agent's main session.
    NonMain,
    /// All.
    All,
}

impl Sandbox {
    /// The word of the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NonMain => "non-main",
            Self::All => "all",
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { run: None, no_output: None, kill_grace: Duration::from_secs(10) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { stdout_bytes: 16 << 20, line_bytes: 4 << 20, stderr_tail_bytes: 64 << 10 }
    }
}

impl AgentSpec {
    /// What the configuration says of an agent; `None` for one that it does not name, or names without a command.
    ///
    /// # Errors
    /// `InvalidInput` for an agent that has settings of a run and no command, and for a variable whose name none can have.
    pub fn of(config: &Config, id: &str) -> Result<Option<Self>> {
        let found = config.agents().find(|(_, known)| *known == id);
        found.map_or(Ok(None), |(place, id)| read(config, &place, id))
    }

    /// Every agent that has a command, in the order of the list.
    ///
    /// # Errors
    /// As [`AgentSpec::of`].
    pub fn all(config: &Config) -> Result<Vec<Self>> {
        let specs = config.agents().map(|(place, id)| read(config, &place, id));
        specs.filter_map(Result::transpose).collect()
    }

    /// Whether it goes on with a session of its own; it then needs no context from us.
    #[must_use]
    pub const fn resumes(&self) -> bool {
        self.resume_args.is_some()
    }

    /// Whether a model can be asked for.
    #[must_use]
    pub fn takes_model(&self) -> bool {
        self.takes(Placeholder::Model)
    }

    /// Whether a thinking level can be asked for.
    #[must_use]
    pub fn takes_thinking(&self) -> bool {
        self.takes(Placeholder::Thinking)
    }

    /// Whether it reads the context from a file; for others the context goes before the prompt.
    #[must_use]
    pub fn takes_context_file(&self) -> bool {
        self.takes(Placeholder::ContextFile)
    }

    /// The arguments of a run that begins a session of the agent's own, or goes on with one.
    #[must_use]
    pub fn arguments(&self, resuming: bool) -> &[String] {
        self.resume_args.as_ref().filter(|_| resuming).unwrap_or(&self.args)
    }

    /// Why a run cannot be asked for with this model or this thinking level.
    #[must_use]
    pub fn takes_not(&self, model: Option<&str>, thinking: Option<&str>) -> Option<Reason> {
        legal("model", model, self.takes_model(), &self.models)
            .or_else(|| legal("thinking", thinking, self.takes_thinking(), &self.thinking_levels))
    }

    fn takes(&self, placeholder: Placeholder) -> bool {
        let resuming = self.resume_args.as_deref().unwrap_or_default();
        occurs(&self.args, placeholder) || occurs(resuming, placeholder)
    }
}

fn legal(what: &'static str, asked: Option<&str>, taken: bool, legal: &[String]) -> Option<Reason> {
    let asked = asked?;
    let detail = match (taken, legal) {
        (false, _) => format!("the agent's command takes no {what}; leave it out"),
        (true, []) => return None,
        (true, legal) if legal.iter().any(|word| word == asked) => return None,
        (true, legal) => format!("invalid {what} {asked:?}; there are {}", legal.join(", ")),
    };
    Some(Reason { code: what, detail })
}

fn read(config: &Config, place: &str, id: &str) -> Result<Option<AgentSpec>> {
    let at = Place { config, run: format!("{place}.run") };
    let preset = at.text("preset").and_then(Preset::of);
    let command = at.text("command").or_else(|| preset.map(|preset| preset.name));
    let Some(command) = command else { return at.nothing_else() };
    let base = folder(config)?;
    let said = |name: &str| config.get(&at.path(name)).map(|_| at.texts(name));
    let known = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    let args = said("args").or_else(|| preset.map(|preset| known(preset.args))).unwrap_or_default();
    let resume_args =
        said("resumeArgs").or_else(|| preset.and_then(|preset| preset.resume_args).map(known));
    let own = |name: &str| config.text(&format!("{place}.{name}")).map(str::to_owned);
    let list = |name: &str| -> Vec<String> {
        config.texts(&format!("{place}.{name}")).into_iter().map(str::to_owned).collect()
    };
    let child = |name: &str| {
        own(&format!("subagents.{name}")).or_else(|| {
            config.text(&format!("agents.defaults.subagents.{name}")).map(str::to_owned)
        })
    };
    Ok(Some(AgentSpec {
        id: id.to_owned(),
        name: own("name"),
        command: program(&base, command),
        input: at.input(&args, resume_args.as_deref().unwrap_or_default()),
        args,
        resume_args,
        output: at
            .text("output")
            .and_then(OutputForm::from_word)
            .or_else(|| preset.map(|preset| preset.output))
            .unwrap_or_default(),
        dialect: at
            .text("dialect")
            .and_then(Dialect::from_word)
            .or_else(|| preset.map(|preset| preset.dialect))
            .unwrap_or_default(),
        cwd: at.text("cwd").map_or_else(|| base.clone(), |cwd| base.join(cwd)),
        env: at.env()?,
        clear_env: config.is_on(&at.path("clearEnv")),
        config_file: config.file().map(|file| absolute(&file.path)).transpose()?,
        timeouts: at.timeouts(),
        limits: at.limits(),
        on_lost: at.on_lost(),
        model: own("model"),
        models: list("models"),
        thinking_levels: match (config.get(&format!("{place}.thinkingLevels")), preset) {
            (None, Some(preset)) => known(preset.thinking_levels),
            _ => list("thinkingLevels"),
        },
        sandbox: match config.text(&format!("{place}.sandbox.mode")) {
            Some("all") => Sandbox::All,
            Some("non-main") => Sandbox::NonMain,
            _ => Sandbox::Off,
        },
        child_model: child("model"),
        child_thinking: child("thinking"),
    }))
}

/// A name without a slash is looked for in `PATH`; a path is relative to the configuration.
fn program(base: &Path, command: &str) -> PathBuf {
    if command.contains('/') { base.join(command) } else { PathBuf::from(command) }
}

/// The folder that paths in the configuration are relative to.
fn folder(config: &Config) -> Result<PathBuf> {
    absolute(config.folder().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io("the folder we are in is not known", e))
}

/// The settings of one agent's runs.
struct Place<'a> {
    config: &'a Config,
    run: String,
}

impl<'a> Place<'a> {
    fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.run)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.config.text(&self.path(name))
    }

    fn texts(&self, name: &str) -> Vec<String> {
        self.config.texts(&self.path(name)).into_iter().map(str::to_owned).collect()
    }

    /// Without a command nothing else may be said of runs.
    fn nothing_else(&self) -> Result<Option<AgentSpec>> {
        let below = self.path("");
        if !self.config.iter().any(|(path, _)| path.starts_with(&below)) {
            return Ok(None);
        }
        Err(Error::invalid(format!("{} has no command", self.run))
            .field(&*self.run)
            .hint("name the program: run: { command: 'my-agent', args: ['--print'] }"))
    }

    /// What is not said follows from the arguments: a command that names the prompt in them gets it so.
    fn input(&self, args: &[String], resume_args: &[String]) -> Input {
        let named = |placeholder| occurs(args, placeholder) || occurs(resume_args, placeholder);
        match self.text("input") {
            Some("stdin") => Input::Stdin,
            Some("arg") => Input::Arg,
            Some("file") => Input::File,
            _ if named(Placeholder::Prompt) => Input::Arg,
            _ if named(Placeholder::PromptFile) => Input::File,
            _ => Input::Stdin,
        }
    }

    fn env(&self) -> Result<Vec<(String, String)>> {
        let one = |(name, value): (&str, &str)| {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(Error::invalid(format!(
                    "{name:?} cannot be a variable, or not with this value"
                ))
                .field(self.path("env"))
                .hint("a name has at least one character and no =; neither has a NUL byte"));
            }
            Ok((name.to_owned(), value.to_owned()))
        };
        self.config.texts_below(&self.path("env")).map(one).collect()
    }

    fn timeouts(&self) -> Timeouts {
        let seconds = |name: &str| self.config.number(&self.path(name)).map(Duration::from_secs);
        let limit = |name: &str| seconds(name).filter(|limit| !limit.is_zero());
        Timeouts {
            run: limit("timeouts.run"),
            no_output: limit("timeouts.noOutput"),
            kill_grace: seconds("timeouts.killGrace").unwrap_or(Timeouts::default().kill_grace),
        }
    }

    fn limits(&self) -> Limits {
        let bytes = |name: &str, default: usize| {
            let said = self.config.number(&self.path(name));
            said.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(default)
        };
        let default = Limits::default();
        Limits {
            stdout_bytes: bytes("limits.stdoutBytes", default.stdout_bytes),
            line_bytes: bytes("limits.lineBytes", default.line_bytes),
            stderr_tail_bytes: bytes("limits.stderrTailBytes", default.stderr_tail_bytes),
        }
    }

    fn on_lost(&self) -> OnLost {
        if self.text("onLost") == Some("retry") { OnLost::Retry } else { OnLost::End }
    }
}

#[cfg(test)]
mod tests {
    use annals_engine::config::{Sources, load};

    use super::*;

    fn config(list: &str) -> Config {
        let text = format!(
            "{{agents: {{defaults: {{subagents: {{model: 'small', thinking: 'low'}}}}, list: [{list}]}}}}"
        );
        let file = Some((Path::new("/c/annals.json5"), text.as_str()));
        let (config, warnings) = load(&Sources { flags: &[], variable: &|_| None, file }).unwrap();
        assert_eq!(warnings, []);
        config
    }

    fn spec(run: &str) -> AgentSpec {
        let config = config(&format!("{{id: 'a', run: {run}}}"));
        AgentSpec::of(&config, "a").unwrap().unwrap()
    }

    /// Goal: the lines that people are shown to begin with are right. Method: they are read.
    #[test]
    fn the_example() {
        let file = Some((Path::new("/c/annals.json5"), EXAMPLE));
        let (config, warnings) = load(&Sources { flags: &[], variable: &|_| None, file }).unwrap();
        assert_eq!((warnings.len(), EXAMPLE.lines().count()), (0, 5));
        let specs = AgentSpec::all(&config).unwrap();
        assert_eq!(specs.len(), 2);
        assert!(specs[0].takes_model() && specs[0].dialect == Dialect::ClaudeStreamJson);
    }

    /// Goal: a command alone is an agent, with the defaults that are promised. Method: one.
    #[test]
    fn defaults() {
        let spec = spec("{command: 'agent'}");
        assert_eq!(
            (spec.command.as_path(), spec.cwd.as_path()),
            (Path::new("agent"), Path::new("/c"))
        );
        assert_eq!(
            (spec.input, spec.output, spec.dialect),
            (Input::Stdin, OutputForm::Text, Dialect::None)
        );
        assert_eq!((spec.timeouts, spec.limits), (Timeouts::default(), Limits::default()));
        assert_eq!((spec.timeouts.run, spec.timeouts.kill_grace.as_secs()), (None, 10));
        assert_eq!((spec.sandbox, spec.on_lost), (Sandbox::Off, OnLost::End));
        assert!(!spec.resumes() && !spec.takes_model() && !spec.takes_thinking());
        assert_eq!(spec.child_model.as_deref(), Some("small"));
        assert_eq!(spec.config_file.as_deref(), Some(Path::new("/c/annals.json5")));
    }

    /// Goal: everything that can be said comes out as it was meant. Method: all settings at once.
    #[test]
    fn everything() {
        let config = config(
            "{id: 'a', name: 'A', model: 'm', models: ['m', 'n'], thinkingLevels: ['low'], sandbox: {mode: 'non-main'},
              subagents: {model: 'big'},
              run: {command: './bin/agent', args: ['--model', '{model}'], resumeArgs: ['--think={thinking}'], input: 'file',
              output: 'jsonl', dialect: 'codex-jsonl', cwd: 'work', env: {'b.c': 'x', A: ''}, clearEnv: true,
              timeouts: {run: 5, noOutput: 0, killGrace: 0}, limits: {stdoutBytes: 1, lineBytes: 2, stderrTailBytes: 3},
              onLost: 'retry'}}",
        );
        let spec = AgentSpec::of(&config, "a").unwrap().unwrap();
        assert_eq!((spec.command, spec.cwd), ("/c/./bin/agent".into(), "/c/work".into()));
        assert_eq!((spec.input, spec.output), (Input::File, OutputForm::Jsonl));
        assert_eq!(spec.dialect, Dialect::CodexJsonl);
        assert_eq!(spec.env, [("A".into(), String::new()), ("b.c".into(), "x".into())]);
        assert!(spec.clear_env && spec.on_lost == OnLost::Retry);
        let seconds = Duration::from_secs;
        let timeouts = Timeouts { run: Some(seconds(5)), no_output: None, kill_grace: seconds(0) };
        assert_eq!(spec.timeouts, timeouts);
        assert_eq!(spec.limits, Limits { stdout_bytes: 1, line_bytes: 2, stderr_tail_bytes: 3 });
        assert_eq!((spec.models.len(), spec.thinking_levels.len()), (2, 1));
        assert_eq!(spec.sandbox, Sandbox::NonMain);
        assert_eq!(
            (spec.child_model.as_deref(), spec.child_thinking.as_deref()),
            (Some("big"), Some("low"))
        );
        let spec = AgentSpec::of(&config, "a").unwrap().unwrap();
        assert!(spec.resumes() && spec.takes_model() && spec.takes_thinking());
    }

    /// Goal: a command that names the prompt in its arguments gets it there, unless something else is said. Method: each
    /// way.
    #[test]
    fn the_way_of_the_prompt() {
        assert_eq!(spec("{command: 'x', args: ['-p', '{prompt}']}").input, Input::Arg);
        assert_eq!(spec("{command: 'x', resumeArgs: ['{promptFile}']}").input, Input::File);
        assert_eq!(spec("{command: 'x', args: ['{prompt}'], input: 'stdin'}").input, Input::Stdin);
    }

    /// Goal: agents without a command are none that run, and half a description is an error. Method: unknown, named alone,
    /// arguments without a command, a variable that cannot be.
    #[test]
    fn what_cannot_run() {
        let named = config("{id: 'a'}, {id: 'b', run: {command: 'x'}}");
        assert_eq!(AgentSpec::of(&named, "a").unwrap(), None);
        assert_eq!(AgentSpec::of(&named, "c").unwrap(), None);
        let ids: Vec<_> = AgentSpec::all(&named).unwrap().into_iter().map(|spec| spec.id).collect();
        assert_eq!(ids, ["b"]);
        let half = config("{id: 'a', run: {args: ['x']}}");
        assert!(AgentSpec::of(&half, "a").unwrap_err().message().contains("no command"));
        let odd = config("{id: 'a', run: {command: 'x', env: {'A=B': 'c'}}}");
        assert!(AgentSpec::all(&odd).unwrap_err().message().contains("A=B"));
    }
}
