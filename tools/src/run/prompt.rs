//! What an agent is asked: the block before the message, the message, and for agents without a session of their own the
//! context.

use annals_engine::Result;
use annals_engine::engine::Engine;
use annals_engine::id::StreamName;
use annals_engine::session::context::{
    ContextLimits, ContextMessage, context, last_trimmed, trimming,
};
use annals_engine::session::event::{Event, RunKind, SessionTrimmed};
use annals_engine::session::index::{Found, Sessions};
use annals_engine::session::run::{announce, fenced};
use annals_engine::session::work::Job as Wanted;
use serde_json::json;

use super::runner::Job;
use super::setup::Setup;
use super::spec::AgentSpec;
use crate::caller::Caller;
use crate::registry::TOOLS;

/// A run that is ready to be started.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    /// What the runner is given.
    pub(super) job: Job,
    /// How the window of the context moved.
    pub(super) trimmed: Option<SessionTrimmed>,
}

/// The most characters of a context that goes before a prompt.
const CONTEXT_CHARS: usize = 60_000;

/// The longest time limit, in seconds: a year. No clock can be set to more than it counts to.
const TIMEOUT_MAX: u64 = 365 * 24 * 60 * 60;

/// Puts together what an agent is asked in a run, as the log has it now.
///
/// # Errors
/// Whatever reading meets.
pub(super) fn ready(
    engine: &Engine,
    setup: &Setup,
    spec: &AgentSpec,
    run: &Wanted,
) -> Result<Ready> {
    let told = announce::told(engine.store(), &run.run_id)?;
    let preamble = told.requested.and_then(|requested| requested.preamble);
    let said = announce::text_at(engine.store(), &run.session_key, run.turn_seq)?;
    let message = message(run, preamble.as_deref(), &said);
    let key = StreamName::new(run.session_key.as_str())?;
    let sessions = engine.sessions()?;
    let row = sessions.state().row(&key);
    let own = sessions.state().agent_session(&key, &run.session_id, &run.agent_id);
    let agent_session_id = own.filter(|_| spec.resumes()).map(str::to_owned);
    let (mut before, mut trimmed) = (None, None);
    // An agent whose own session is gone, or has not begun, is told what was said as well.
    if agent_session_id.is_none() && run.kind != RunKind::Spawn {
        (before, trimmed) = earlier(engine, setup, run, &key)?;
    }
    let (prompt, context) = match (before, spec.takes_context_file()) {
        (Some(before), false) => (format!("{before}\n\n{message}"), None),
        (before, _) => (message, before),
    };
    let own_model = || sessions.state().own_model(&key).map(str::to_owned);
    let own_thinking = || row.and_then(|row| row.thinking_level.clone());
    let seconds = Some(run.timeout_seconds.min(TIMEOUT_MAX)).filter(|seconds| *seconds > 0);
    let job = Job {
        run_id: run.run_id.clone(),
        session_key: run.session_key.clone(),
        session_id: run.session_id.clone(),
        agent_id: run.agent_id.clone(),
        parent_run_id: parent(run),
        depth: row.map_or(0, |row| row.spawn_depth),
        timeout: seconds.map(std::time::Duration::from_secs),
        prompt,
        context,
        model: run.model.clone().or_else(|| own_model().filter(|_| spec.takes_model())),
        thinking: run.thinking.clone().or_else(|| own_thinking().filter(|_| spec.takes_thinking())),
        agent_session_id,
        store: setup.store.clone(),
        token: None,
        mcp_url: setup.mcp_url.clone(),
        mcp_config: mcp_config(sessions.state(), setup, &key)?,
        traceparent: traceparent(run),
    };
    Ok(Ready { job, trimmed })
}

/// How a client of the Model Context Protocol reaches the session tools, in the form that agent programs have in common;
/// none for a session without any, such as a child's. It holds no secret: what the run may do comes with its environment.
fn mcp_config(sessions: &Sessions, setup: &Setup, key: &StreamName) -> Result<Option<String>> {
    let Some(program) = &setup.program else { return Ok(None) };
    let caller = Caller::in_session(sessions, &setup.config, key.clone())?;
    let has_any = TOOLS.iter().any(|tool| caller.tools.has(tool.name));
    let server = || json!({ "command": program.to_string_lossy(), "args": ["mcp"] });
    Ok(has_any.then(|| json!({ "mcpServers": { "annals": server() } }).to_string()))
}

/// The run that caused this one.
fn parent(run: &Wanted) -> Option<String> {
    let chain = Some(&run.chain_id).filter(|chain| **chain != run.run_id);
    run.follows.clone().or_else(|| chain.cloned())
}

/// The trace context (W3C Trace Context, version 00): one trace a flow, one span a run.
fn traceparent(run: &Wanted) -> Option<String> {
    let hex = |text: &str| text.chars().filter(char::is_ascii_hexdigit).collect::<String>();
    let trace = hex(run.flow.as_deref().unwrap_or(&run.run_id));
    let span = hex(&run.run_id);
    let (trace, span) = (trace.get(..32)?, span.get(span.len().checked_sub(16)?..)?);
    Some(format!("00-{trace}-{span}-01"))
}

/// The message of a run: text of other sessions stands between fences.
fn message(run: &Wanted, preamble: Option<&str>, said: &str) -> String {
    let from_others = matches!(run.kind, RunKind::Send | RunKind::Reply);
    match preamble {
        Some(block) if said.is_empty() => block.to_owned(),
        Some(block) if from_others => format!("{block}\n{}", fenced(&run.run_id, said)),
        Some(block) => format!("{block}\n{said}"),
        // A session that an announce wakes is told what a child said.
        None if run.kind == RunKind::Announce => fenced(&run.run_id, said),
        None => said.to_owned(),
    }
}

/// What was said before the present turn, as text.
fn earlier(
    engine: &Engine,
    setup: &Setup,
    run: &Wanted,
    key: &StreamName,
) -> Result<(Option<String>, Option<SessionTrimmed>)> {
    let sessions = engine.sessions()?;
    let found = Found { key: key.clone(), part: Some(run.session_id.clone()) };
    if sessions.state().row(key).is_none() {
        return Ok((None, None));
    }
    let turns = setup.config.number("session.maxTurns").and_then(|n| usize::try_from(n).ok());
    let limits = ContextLimits { turns: turns.unwrap_or(40), chars: Some(CONTEXT_CHARS) };
    let mut context = context(engine.store(), sessions.state(), &found, &limits)?;
    let last = last_trimmed(engine.store(), key, &context.session_id)?;
    let trimmed = match trimming(&context, last.as_ref().map(|last| &last.event)) {
        Some(Event::SessionTrimmed(event)) => Some(event),
        _ => None,
    };
    context.messages.retain(|message| Some(message.seq.0) != run.turn_seq);
    if context.messages.is_empty() {
        return Ok((None, trimmed));
    }
    let text = |message: &ContextMessage| match &message.said_by {
        None => message.text(),
        // What another session said stands between fences as long as it is told.
        Some(key) => format!("[{key}]\n{}", fenced(&run.run_id, &message.text())),
    };
    let texts: Vec<String> = context.messages.iter().map(text).collect();
    Ok((Some(format!("{HEADING}\n\n{}\n\n{END}", texts.join("\n\n"))), trimmed))
}

const HEADING: &str = "[What was said in this session before, oldest first:]";
const END: &str = "[End of what was said before. Now:]";
