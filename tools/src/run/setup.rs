//! The settings that runs go by, read once: which agents there are, and the rules of every decision.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use annals_engine::Result;
use annals_engine::config::Config;
use annals_engine::session::run::{AnnounceWay, Rules};

use super::spec::AgentSpec;

/// The settings that runs go by.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The settings in force.
    pub config: Arc<Config>,
    /// The agents that can be run, by id.
    pub agents: BTreeMap<String, AgentSpec>,
    /// The rules of every decision.
    pub rules: Rules,
    /// The store's folder.
    pub store: PathBuf,
    /// The most runs that one worker has at a time.
    pub runs_max: usize,
    /// Where agents reach the Model Context Protocol over HTTP, if it is served.
    pub mcp_url: Option<String>,
    /// This program, which agents start to have the session tools. Without it they are told of none.
    pub program: Option<PathBuf>,
}

impl Setup {
    /// What a configuration says.
    ///
    /// # Errors
    /// `InvalidInput` for an agent or a sink that cannot be.
    pub fn of(config: &Config, store: PathBuf) -> Result<Self> {
        let agents: BTreeMap<String, AgentSpec> =
            AgentSpec::all(config)?.into_iter().map(|spec| (spec.id.clone(), spec)).collect();
        let way = config.text("agents.defaults.subagents.announce");
        let rules = Rules {
            policy: config.send_policy(),
            silent: config.silent_tokens(),
            announce: way.and_then(AnnounceWay::from_word).unwrap_or(AnnounceWay::Auto),
            announce_timeout: config
                .number("agents.defaults.subagents.announceTimeoutSeconds")
                .unwrap_or(ANNOUNCE_TIMEOUT.as_secs()),
            announce_wakes: config.is_on("agents.defaults.subagents.announceWakes"),
            runs_max: config
                .number("session.agentToAgent.maxRuns")
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(CHAIN_MAX),
            agents: agents.iter().map(|(id, spec)| (id.clone(), spec.resumes())).collect(),
            sinks: config.sinks(),
        };
        let runs_max = config.number("runs.maxConcurrent").and_then(|n| usize::try_from(n).ok());
        Ok(Self {
            config: Arc::new(config.clone()),
            agents,
            rules,
            store,
            runs_max: runs_max.unwrap_or(RUNS_MAX).max(1),
            mcp_url: None,
            program: None,
        })
    }
}

const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(120);
const RUNS_MAX: usize = 8;
const CHAIN_MAX: u32 = 100;
