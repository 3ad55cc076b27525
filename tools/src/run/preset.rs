//! Agent programs that are known by name: `run: { preset: "claude" }` says all of it. What the configuration says beside
//! it goes before it.

use super::dialect::{Dialect, OutputForm};

/// How a known program is run.
#[derive(Debug)]
pub(crate) struct Preset {
    /// Its name, and the command.
    pub(crate) name: &'static str,
    /// The arguments that begin a session of its own.
    pub(crate) args: &'static [&'static str],
    /// The arguments that go on with one; none for a program that cannot.
    pub(crate) resume_args: Option<&'static [&'static str]>,
    /// How its output is cut.
    pub(crate) output: OutputForm,
    /// What its output means.
    pub(crate) dialect: Dialect,
    /// The thinking levels that it takes.
    pub(crate) thinking_levels: &'static [&'static str],
}

/// All, by the names that the table of settings has.
pub(crate) const PRESETS: [Preset; 4] = [
    Preset {
        name: "claude",
        args: &[
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--mcp-config",
            "{mcpConfig}",
            "--allowedTools=mcp__annals",
            "--model",
            "{model}",
            "--effort",
            "{thinking}",
        ],
        resume_args: Some(&[
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--mcp-config",
            "{mcpConfig}",
            "--allowedTools=mcp__annals",
            "--model",
            "{model}",
            "--effort",
            "{thinking}",
            "--resume",
            "{agentSessionId}",
        ]),
        output: OutputForm::Jsonl,
        dialect: Dialect::ClaudeStreamJson,
        thinking_levels: &["low", "medium", "high", "xhigh", "max"],
    },
    Preset {
        name: "codex",
        args: &[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--sandbox",
            "workspace-write",
            "--model",
            "{model}",
            "--config=model_reasoning_effort={thinking}",
            "-",
        ],
        resume_args: Some(&[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--sandbox",
            "workspace-write",
            "--model",
            "{model}",
            "--config=model_reasoning_effort={thinking}",
            "resume",
            "{agentSessionId}",
            "-",
        ]),
        output: OutputForm::Jsonl,
        dialect: Dialect::CodexJsonl,
        thinking_levels: &["minimal", "low", "medium", "high", "xhigh"],
    },
    Preset {
        name: "gemini",
        args: &["--output-format", "stream-json", "--model", "{model}"],
        resume_args: Some(&[
            "--output-format",
            "stream-json",
            "--model",
            "{model}",
            "--resume",
            "{agentSessionId}",
        ]),
        output: OutputForm::Jsonl,
        dialect: Dialect::GeminiStreamJson,
        thinking_levels: &[],
    },
    Preset {
        name: "openclaw",
        args: &[
            "agent",
            "exec",
            "--json",
            "--message-file",
            "-",
            "--cwd",
            "{cwd}",
            "--model",
            "{model}",
            "--thinking",
            "{thinking}",
        ],
        resume_args: None,
        output: OutputForm::Json,
        dialect: Dialect::OpenclawExec,
        thinking_levels: &[],
    },
];

impl Preset {
    /// The program of a name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use annals_engine::config::{Sources, load};

    use super::*;
    use crate::run::AgentSpec;

    fn spec(text: &str, id: &str) -> AgentSpec {
        let file = Some((Path::new("/c/annals.json5"), text));
        let (config, warnings) = load(&Sources { flags: &[], variable: &|_| None, file }).unwrap();
        assert!(warnings.is_empty(), "{text}: {warnings:?}");
        AgentSpec::of(&config, id).unwrap().unwrap()
    }

    /// Goal: a preset says exactly what the whole configuration of that program says, which is the one that is tried with
    /// the real program. Method: the files of the tests against one line.
    #[test]
    fn presets_are_the_files() {
        for (name, file) in [
            ("claude", include_str!("../../../tests/fixtures/agents/claude.json5")),
            ("codex", include_str!("../../../tests/fixtures/agents/codex.json5")),
            ("gemini", include_str!("../../../tests/fixtures/agents/gemini.json5")),
            ("openclaw", include_str!("../../../tests/fixtures/agents/openclaw.json5")),
        ] {
            let line =
                format!("{{agents: {{list: [{{id: '{name}', run: {{preset: '{name}'}}}}]}}}}");
            assert_eq!(spec(&line, name), spec(file, name), "{name}");
        }
    }

    /// Goal: what is said beside a preset goes before it. Method: a command and arguments of one's own.
    #[test]
    fn said_beside() {
        let text = "{agents: {list: [{id: 'a', thinkingLevels: ['deep'], \
                    run: {preset: 'claude', command: '/opt/claude', args: ['-p']}}]}}";
        let spec = spec(text, "a");
        assert_eq!(
            (spec.command.as_path(), &*spec.args),
            (Path::new("/opt/claude"), &["-p".to_owned()][..])
        );
        assert_eq!(spec.dialect, Dialect::ClaudeStreamJson);
        assert_eq!(spec.thinking_levels, ["deep"]);
    }
}
