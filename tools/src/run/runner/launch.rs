//! What a process is started with: its command, arguments, environment, and the files that they name.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use annals_engine::clock::Timestamp;
use annals_engine::config::table::secret_variables;
use tempfile::TempPath;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

use super::{Heard, Job, VARIABLES};
use crate::run::arguments::{Placeholder, filled, occurs};
use crate::run::process::home;
use crate::run::spec::{AgentSpec, Input};

/// The longest argument that Linux takes, in bytes.
const ARGUMENT_BYTES_MAX: usize = 128 << 10;
/// What is left of an environment that is cleared.
const KEPT: [&str; 4] = ["PATH", "HOME", "LANG", "TERM"];

/// A process to start.
pub(super) struct Launch<'a> {
    spec: &'a AgentSpec,
    command: Command,
    /// The command and its arguments without the prompt.
    shown: Vec<String>,
    typed: Option<Vec<u8>>,
    /// Whether the prompt is an argument.
    named: bool,
    /// Removed with this.
    _files: Files,
}

/// Why a process was not started.
pub(super) struct Unstarted {
    /// The reason code.
    pub(super) reason: &'static str,
    /// What is wrong, and what to do.
    pub(super) detail: String,
}

impl Unstarted {
    fn failed(detail: impl Into<String>) -> Self {
        Self { reason: "spawn_failed", detail: detail.into() }
    }

    fn too_long(prompt_bytes: usize) -> Self {
        let detail = format!(
            "the prompt has {prompt_bytes} bytes, which is more than an argument can have: set run.input to stdin or file"
        );
        Self { reason: "prompt_too_long", detail }
    }
}

/// Private files that a process reads.
#[derive(Default)]
struct Files {
    prompt: Option<TempPath>,
    context: Option<TempPath>,
}

impl<'a> Launch<'a> {
    /// Makes everything ready. Files that are made are removed when this is dropped.
    pub(super) fn prepare(
        spec: &'a AgentSpec,
        job: &Job,
        deadline: Option<Timestamp>,
    ) -> Result<Self, Unstarted> {
        if !spec.cwd.is_dir() {
            let cwd = spec.cwd.display();
            return Err(Unstarted::failed(format!(
                "{} cannot run in {cwd}, which is no folder: make it, or set run.cwd",
                spec.command.display()
            )));
        }
        let resuming = job.agent_session_id.is_some() && spec.resumes();
        let template = spec.arguments(resuming);
        let files = Files::write(spec, job, template)?;
        let named = spec.input == Input::Arg || occurs(template, Placeholder::Prompt);
        let args = arguments(spec, job, template, &files, &job.prompt);
        if named && args.iter().any(|arg| arg.len() >= ARGUMENT_BYTES_MAX) {
            return Err(Unstarted::too_long(job.prompt.len()));
        }
        if args.iter().any(|arg| arg.contains('\0')) {
            return Err(Unstarted::failed(
                "an argument would hold a NUL byte, which none can: if it is the prompt's, set run.input to stdin or file",
            ));
        }
        let typed = (spec.input == Input::Stdin).then(|| job.prompt.clone().into_bytes());
        let mut command = Command::new(&spec.command);
        command
            .args(&args)
            .current_dir(&spec.cwd)
            .process_group(0)
            .stdin(if typed.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        environment(&mut command, spec, job, deadline);
        let mut shown = vec![spec.command.display().to_string()];
        shown.extend(arguments(spec, job, template, &files, "{prompt}"));
        Ok(Self { spec, command, shown, typed, named, _files: files })
    }

    /// Starts it.
    pub(super) fn start(&mut self) -> Result<Child, Unstarted> {
        self.command.spawn().map_err(|e| self.explain(&e))
    }

    /// What is written to its standard input.
    pub(super) fn typed(&mut self) -> Vec<u8> {
        self.typed.take().unwrap_or_default()
    }

    /// What is told of its start.
    pub(super) fn told(&self, pid: u32) -> Heard {
        Heard::Started { pid, command: self.shown.clone(), cwd: self.spec.cwd.clone() }
    }

    fn explain(&self, error: &std::io::Error) -> Unstarted {
        use std::io::ErrorKind;
        let program = self.spec.command.display();
        let path = self.spec.command.components().count() > 1;
        let advice = match error.kind() {
            ErrorKind::ArgumentListTooLong if self.named => {
                let prompt = self.command.as_std().get_args().map(|arg| arg.len()).max();
                return Unstarted::too_long(prompt.unwrap_or(0));
            }
            ErrorKind::NotFound if path => {
                "it is not there, or the program that its first line names is not"
            }
            ErrorKind::NotFound => {
                "it is in no folder of PATH: install it, or write its whole path"
            }
            ErrorKind::PermissionDenied => "it may not be executed: chmod +x makes it a program",
            _ => "",
        };
        let of = format!("agents.list[] of {}, run.command", self.spec.id);
        let detail = format!("{program} cannot be started: {error}");
        Unstarted::failed(if advice.is_empty() {
            format!("{detail} ({of})")
        } else {
            format!("{detail}: {advice} ({of})")
        })
    }
}

/// Writes all of it, then ends the input. A process that does not read it, or not all of it, is none of our business.
pub(super) async fn feed(mut stdin: ChildStdin, bytes: Vec<u8>) {
    if stdin.write_all(&bytes).await.is_ok() {
        drop(stdin.shutdown().await);
    }
}

impl Files {
    /// Writes those that the arguments name.
    fn write(spec: &AgentSpec, job: &Job, template: &[String]) -> Result<Self, Unstarted> {
        let mut files = Self::default();
        if spec.input == Input::File || occurs(template, Placeholder::PromptFile) {
            files.prompt = Some(private("annals-prompt-", &job.prompt)?);
        }
        if let Some(context) =
            job.context.as_ref().filter(|_| occurs(template, Placeholder::ContextFile))
        {
            files.context = Some(private("annals-context-", context)?);
        }
        Ok(files)
    }
}

/// A file that only we and the process may read.
fn private(prefix: &str, text: &str) -> Result<TempPath, Unstarted> {
    let write = || {
        let mut file = tempfile::Builder::new().prefix(prefix).suffix(".txt").tempfile()?;
        file.write_all(text.as_bytes())?;
        Ok(file.into_temp_path())
    };
    write().map_err(|e: std::io::Error| {
        let folder = std::env::temp_dir();
        Unstarted::failed(format!(
            "a file for the command cannot be written in {}: {e}: free space there, or set TMPDIR",
            folder.display()
        ))
    })
}

fn arguments(
    spec: &AgentSpec,
    job: &Job,
    template: &[String],
    files: &Files,
    prompt: &str,
) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let cwd = text(&spec.cwd);
    let prompt_file = files.prompt.as_ref().map(|path| text(path));
    let context_file = files.context.as_ref().map(|path| text(path));
    let mut args = filled(template, |placeholder| match placeholder {
        Placeholder::Prompt => Some(prompt),
        Placeholder::PromptFile => prompt_file.as_deref(),
        Placeholder::SessionId => Some(&job.session_id),
        Placeholder::SessionKey => Some(&job.session_key),
        Placeholder::RunId => Some(&job.run_id),
        Placeholder::Cwd => Some(&cwd),
        Placeholder::Model => job.model.as_deref().or(spec.model.as_deref()),
        Placeholder::Thinking => job.thinking.as_deref(),
        Placeholder::AgentSessionId => job.agent_session_id.as_deref(),
        Placeholder::ContextFile => context_file.as_deref(),
        Placeholder::McpConfig => job.mcp_config.as_deref(),
    });
    match spec.input {
        Input::Arg if !occurs(template, Placeholder::Prompt) => args.push(prompt.to_owned()),
        Input::File if !occurs(template, Placeholder::PromptFile) => args.extend(prompt_file),
        _ => {}
    }
    args
}

/// The inherited environment, then the agent's, then ours: nothing of another run is left in it, and none of the secrets
/// with which others call here, since an agent would be the store's owner by them.
fn environment(command: &mut Command, spec: &AgentSpec, job: &Job, deadline: Option<Timestamp>) {
    if spec.clear_env {
        command.env_clear();
        command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    }
    for name in secret_variables() {
        command.env_remove(name);
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.env("ANNALS_HOME", home(&job.store)).env("ANNALS_DEPTH", job.depth.to_string());
    let deadline = deadline.map(|deadline| deadline.to_string());
    let config = spec.config_file.as_ref().map(|path| path.to_string_lossy().into_owned());
    let known = |text: &'_ String| Some(text.clone()).filter(|text| !text.is_empty());
    let told = [
        ("ANNALS_RUN_ID", known(&job.run_id)),
        ("ANNALS_SESSION_KEY", known(&job.session_key)),
        ("ANNALS_SESSION_ID", known(&job.session_id)),
        ("ANNALS_AGENT_ID", known(&job.agent_id)),
        ("ANNALS_PARENT_RUN_ID", job.parent_run_id.clone()),
        ("ANNALS_DEADLINE", deadline),
        ("ANNALS_CONFIG", config),
        ("ANNALS_MCP_URL", job.mcp_url.clone()),
        ("ANNALS_TOKEN", job.token.clone()),
        ("TRACEPARENT", job.traceparent.clone()),
    ];
    command.envs(told.into_iter().filter_map(|(name, value)| Some((name, value?))));
}
