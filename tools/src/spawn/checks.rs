//! The checks of a spawn, in their order: those before the numbers of children, and those behind them.

use std::time::Duration;

use annals_engine::config::Origin as ConfigOrigin;
use annals_engine::session::change::named;
use annals_engine::session::event::{Cleanup, Origin, Sandbox, SpawnMode};
use annals_engine::session::key::AgentId;
use annals_engine::session::run::{Limits, Reason, address};

use crate::ingress::gates::{Door, Gates, Verdict};
use crate::run::attachments;
use crate::run::spec::{AgentSpec, Sandbox as Confinement};

use super::Wish;

/// What the first checks have found out.
pub(super) struct Terms<'a> {
    pub(super) agent: String,
    pub(super) spec: Option<&'a AgentSpec>,
    pub(super) mode: SpawnMode,
    pub(super) cleanup: Cleanup,
    pub(super) sandbox: Sandbox,
}

type Checked<T> = std::result::Result<T, Reason>;

fn no<T>(code: &'static str, detail: impl Into<String>) -> Checked<T> {
    Err(Reason { code, detail: detail.into() })
}

impl<'a> Wish<'a> {
    /// The checks before the numbers of children.
    pub(super) fn before(&self) -> Checked<Terms<'a>> {
        let Self { desk, args, .. } = *self;
        let config = &desk.setup.config;
        if !config.is_on("subagents.enabled") {
            return no("disabled", "spawning is off: SUBAGENT_ENABLED (subagents.enabled)");
        }
        let agent = match &args.agent_id {
            None => self.caller.agent.clone(),
            Some(id) => match AgentId::parse(id) {
                Ok(agent) => agent,
                Err(error) => return no("agent_id", error.to_string()),
            },
        };
        let mode = match args.mode.as_deref() {
            None if args.thread => SpawnMode::Session,
            None => SpawnMode::Run,
            Some(word) => match SpawnMode::from_word(word) {
                Some(SpawnMode::Session) if !args.thread => {
                    return no("mode", "mode \"session\" needs thread: true");
                }
                Some(mode) => mode,
                None => return no("mode", format!("{word:?} is no mode; there are run, session")),
            },
        };
        if let Some(Err(why)) = args.label.as_deref().map(named) {
            return no("label", format!("the label {why}"));
        }
        if args.thread && !self.has_threads() {
            let detail = "the channel of this session has no sink with threads: true";
            return no("thread_unsupported", detail);
        }
        let cleanup = match args.cleanup.as_deref() {
            None => Cleanup::Keep,
            Some(word) => match Cleanup::from_word(word) {
                Some(cleanup) => cleanup,
                None => return no("cleanup", format!("{word:?} is none of delete, keep")),
            },
        };
        let sandbox = match args.sandbox.as_deref() {
            None => Sandbox::Inherit,
            Some(word) => match Sandbox::from_word(word) {
                Some(sandbox) => sandbox,
                None => return no("sandbox_mode", format!("{word:?} is none of inherit, require")),
            },
        };
        let spec = desk.setup.agents.get(agent.as_str());
        Ok(Terms { agent: agent.to_string(), spec, mode, cleanup, sandbox })
    }

    /// The checks behind the numbers of children.
    pub(super) fn after(&self, terms: &Terms<'_>) -> Checked<attachments::Checked> {
        let Self { desk, args, .. } = *self;
        let own = self.caller.agent.as_str();
        let (allow_any, allowed) = crate::agents::allowed(&desk.setup.config, own);
        if !allow_any && !allowed.contains(&terms.agent) {
            let detail = format!(
                "agent {own:?} may not spawn {:?}; agents.list[].subagents.allowAgents allows it",
                terms.agent
            );
            return no("agent_not_allowed", detail);
        }
        let Some(spec) = terms.spec else {
            let detail = format!("no command is configured for agent {:?}", terms.agent);
            return no("no_agent", detail);
        };
        let from = desk.requester(self.caller);
        let confined = self.view.sessions.state().is_sandboxed(from);
        if (confined || terms.sandbox == Sandbox::Require) && !confines_children(spec) {
            let detail = format!(
                "the command of agent {:?} does not confine it (agents.list[].sandbox.mode)",
                terms.agent
            );
            return no("sandbox", detail);
        }
        if let Some(reason) = spec.takes_not(args.model.as_deref(), args.thinking.as_deref()) {
            return Err(reason);
        }
        self.task()?;
        attachments::check(
            &args.attachments,
            args.attach_as.as_ref().map(|mount| mount.mount_path.as_str()),
        )
    }

    fn task(&self) -> Checked<()> {
        let task = &self.args.task;
        let config = &self.desk.setup.config;
        let most = config.number("subagents.maxChars").unwrap_or(4_000);
        let chars = task.chars().count() as u64;
        if task.trim().is_empty() {
            return no("task", "the task says nothing");
        }
        if chars > most {
            let detail = format!("{chars} characters; SUBAGENT_MAX_CHARS allows {most}");
            return no("task_too_long", detail);
        }
        match Gates::of(config).check(task, Door::Task) {
            Verdict::Blocked(blocked) => {
                no("blocked", format!("{}: {}", blocked.rule, blocked.reason))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        let config = &self.desk.setup.config;
        let number = |path: &str, unset: u64| {
            usize::try_from(config.number(path).unwrap_or(unset)).unwrap_or(usize::MAX)
        };
        let small = |path: &str, unset: u64| u32::try_from(number(path, unset)).unwrap_or(u32::MAX);
        Limits {
            depth: small("agents.defaults.subagents.maxSpawnDepth", 1),
            of_one: number("agents.defaults.subagents.maxChildrenPerAgent", 5),
            of_all: number("subagents.max", 3),
            chain: (small("session.agentToAgent.maxHops", 10), self.desk.setup.rules.runs_max),
        }
    }

    /// The first limit that is set: the call's, the configuration's, the variable's, the door's own.
    pub(super) fn timeout(&self) -> Duration {
        let config = &self.desk.setup.config;
        let said = |path: &str| {
            let held = config.get(path).filter(|held| held.origin != ConfigOrigin::Default)?;
            held.value.as_u64()
        };
        let seconds = self
            .args
            .run_timeout_seconds
            .or_else(|| said("agents.defaults.subagents.runTimeoutSeconds"))
            .or_else(|| said("subagents.timeoutSeconds"));
        seconds.map_or(self.desk.child_timeout, Duration::from_secs)
    }

    pub(super) fn model(&self, spec: Option<&'a AgentSpec>) -> Option<&'a str> {
        let asked = self.args.model.as_deref();
        let of_agent = || spec.filter(|spec| spec.takes_model())?.child_model.as_deref();
        asked.or_else(of_agent)
    }

    pub(super) fn thinking(&self, spec: Option<&'a AgentSpec>) -> Option<&'a str> {
        let asked = self.args.thinking.as_deref();
        let of_agent = || spec.filter(|spec| spec.takes_thinking())?.child_thinking.as_deref();
        asked.or_else(of_agent)
    }

    fn channel(&self) -> Option<Origin> {
        let from = self.desk.requester(self.caller);
        let row = self.view.sessions.state().row(from)?;
        address(row).map(Into::into)
    }

    fn has_threads(&self) -> bool {
        let config = &self.desk.setup.config;
        let Some(channel) = self.channel().and_then(|origin| origin.channel) else { return false };
        [channel.as_str(), "*"].iter().any(|name| config.is_on(&format!("sinks.{name}.threads")))
    }

    /// Where the announce goes, if it is another place than the requester's channel: a thread of its own.
    pub(super) fn origin(&self) -> Option<Origin> {
        let origin = self.channel().filter(|_| self.args.thread)?;
        Some(Origin { thread_id: Some(self.run_id.clone()), ..origin })
    }
}

/// Whether an agent's command confines the children that it works for.
pub(super) fn confines_children(spec: &AgentSpec) -> bool {
    // A child is never an agent's main session.
    matches!(spec.sandbox, Confinement::All | Confinement::NonMain)
}
