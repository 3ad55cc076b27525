//! A turn from outside that an agent is to answer: it passes the gates, its agent is one that can be run, and it goes in
//! with the run that answers it.

use annals_engine::Result;
use annals_engine::config::Config;
use annals_engine::engine::Engine;
use annals_engine::session::push::{Command, Push, Pushed, Who};
use annals_engine::session::run::Reason;

use super::gates::{Blocked, Door, Gates, Mark, Verdict};
use crate::run::Setup;

/// What became of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in, and durable.
    In {
        /// Where.
        pushed: Pushed,
        /// What was repaired in its text.
        marks: Vec<Mark>,
    },
    /// A gate keeps it out. Nothing was appended.
    Blocked(Blocked),
    /// Nobody could answer it. Nothing was appended.
    Refused(Reason),
}

impl Gates {
    /// The gates for the owner of the store, who may tell his agents what he likes: size and encoding alone.
    #[must_use]
    pub fn of_owner(config: &Config) -> Self {
        Self { llm: false, actions: false, tasks: false, ..Self::of(config) }
    }
}

/// Takes a turn in that asks for a run.
///
/// # Errors
/// What [`Engine::push`] says, and whatever reading meets.
pub fn take(engine: &Engine, setup: &Setup, gates: &Gates, mut push: Push) -> Result<Taken> {
    let marks = match gates.check(&push.text, Door::Inbound) {
        Verdict::Pass => Vec::new(),
        Verdict::Mended { text, marks } => {
            push.text = text;
            marks
        }
        Verdict::Blocked(blocked) => return Ok(Taken::Blocked(blocked)),
    };
    // What the owner commands is obeyed by nobody else.
    let command = push.door.who == Who::Operator && Command::read(&push.text).is_some();
    if let Some(reason) = (!command).then(|| refusal(engine, setup, &push)).transpose()?.flatten() {
        return Ok(Taken::Refused(reason));
    }
    let pushed = engine.push(&push, &setup.config.time_rules())?;
    Ok(Taken::In { pushed, marks })
}

/// Why nobody could answer.
fn refusal(engine: &Engine, setup: &Setup, push: &Push) -> Result<Option<Reason>> {
    let Some(wanted) = &push.run else { return Ok(None) };
    let key = push.check()?;
    let agent = match &wanted.agent {
        Some(agent) => agent.to_string(),
        None => {
            let sessions = engine.sessions()?;
            let of_row = sessions.state().row(key.stream()).map(|row| row.agent_id.clone());
            let of_key = || key.agent().map(|agent| agent.to_string());
            of_row.or_else(of_key).unwrap_or_else(|| push.agent.to_string())
        }
    };
    let Some(spec) = setup.agents.get(&agent) else {
        let detail = format!("no command is configured for agent {agent:?}");
        return Ok(Some(Reason { code: "no_agent", detail }));
    };
    Ok(spec.takes_not(wanted.model.as_deref(), wanted.thinking.as_deref()))
}
