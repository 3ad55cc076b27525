//! `agents try`: one run of an agent, of which nothing is stored.

use annals_engine::id::EventId;
use annals_engine::session::event::{OutputStream, RunStatus, Tokens};
use annals_tools::run::{AgentSpec, Heard, Job, Outcome, Runner, Stop};
use serde::Serialize;
use tokio::sync::{mpsc, watch};

use super::known;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::{grouped, many_lines};
use crate::output::{FailedError, Format, say};
use crate::screen::Screen;
use crate::{settings, signal, store};

/// Make one run of an agent, and store nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The reply goes to standard output as it comes; what the agent says beside it, and how it ended, to standard \
error. The agent gets TEXT alone: no context, no token. What it starts by itself, it does as you.

Exit codes: 0 the run ended well, 1 it did not, 3 there is no such agent, 4 it reached a time limit.

Examples:
  annals agents try main 'Say hello.'
  annals agents try main 'Say hello.' --json | jq '{reply, tokens, runtimeMs}'")]
pub(crate) struct Args {
    /// The agent's id
    #[arg(value_name = "ID", value_hint = clap::ValueHint::Other)]
    id: String,
    /// What it is asked
    #[arg(value_hint = clap::ValueHint::Other)]
    text: String,
}

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    agent_id: &'a str,
    run_id: &'a str,
    status: RunStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    runtime_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<&'a Tokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_tail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailedError<'a>>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("agents try", &[Format::Table, Format::Json])?;
    let spec = known(settings::get()?, &args.id)?;
    let run_id = EventId::new(context.out.now).to_string();
    let job = Job {
        run_id: run_id.clone(),
        session_key: format!("agent:{}:try", spec.id),
        session_id: run_id,
        agent_id: spec.id.clone(),
        prompt: args.text.clone(),
        store: store::folder(&context.global)?,
        ..Job::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|e| Failure::new(Exit::Failed, "io", format!("no runtime: {e}")))?;
    let mut screen = Screen::new(&mut context.out);
    let outcome = runtime.block_on(make(&spec, &job, &mut screen))?;
    screen.say_open();
    if let Some(reply) = outcome.reply.text.as_ref().filter(|_| !screen.has_shown()) {
        screen.hear(OutputStream::Stdout, &format!("{reply}\n"))?;
    }
    if context.out.format == Format::Json {
        context.out.object(&Answer::of(&job, &outcome))?;
        return Ok(exit_of(&outcome));
    }
    told(&spec, &outcome)
}

/// Makes the run, and shows what is heard of it. When nobody reads any more, the agent is ended with this.
async fn make(spec: &AgentSpec, job: &Job, screen: &mut Screen<'_>) -> Result<Outcome, Failure> {
    let (stop, stops) = watch::channel(None);
    let stop_at_signal = stop.clone();
    signal::instead(move || {
        stop_at_signal.send_replace(Some(Stop::Kill));
    });
    let (tell, mut told) = mpsc::channel(16);
    let runner = Runner::default();
    let mut run = std::pin::pin!(runner.run(spec, job, stops, tell));
    let outcome = loop {
        tokio::select! {
            Some(heard) = told.recv() => hear(screen, heard)?,
            outcome = &mut run => break outcome,
        }
    };
    while let Ok(heard) = told.try_recv() {
        hear(screen, heard)?;
    }
    Ok(outcome)
}

fn hear(screen: &mut Screen<'_>, heard: Heard) -> Result<(), Failure> {
    match heard {
        Heard::Output { stream, text, .. } => screen.hear(stream, &text),
        Heard::Started { .. } => Ok(()),
    }
}

/// Tells how it ended.
fn told(spec: &AgentSpec, outcome: &Outcome) -> Result<Exit, Failure> {
    let detail = outcome.detail.as_deref().map(many_lines);
    say(&facts(outcome));
    if outcome.status == RunStatus::Ok {
        if let Some(detail) = detail {
            say(&format!("note: {detail}"));
        }
        return Ok(Exit::Ok);
    }
    let reason = outcome.reason.unwrap_or("error");
    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    let message =
        format!("the run of {} ended with {} ({reason}){detail}", spec.id, outcome.status);
    Err(Failure::new(exit_of(outcome), reason, message))
}

fn exit_of(outcome: &Outcome) -> Exit {
    match (outcome.status, signal::came()) {
        (RunStatus::Ok, _) => Exit::Ok,
        (RunStatus::Timeout, _) => Exit::Timeout,
        (RunStatus::Killed, Some(signal)) => Exit::Signal(signal),
        _ => Exit::Failed,
    }
}

/// The facts in one line, such as `ok · exit 0 · 1.2 s · in 900 / out 300`.
fn facts(outcome: &Outcome) -> String {
    let millis = outcome.runtime.as_millis();
    let mut facts = vec![outcome.status.to_string()];
    facts.extend(outcome.exit.map(|code| format!("exit {code}")));
    facts.extend(outcome.signal.map(|signal| format!("signal {signal}")));
    facts.push(format!("{}.{} s", millis / 1_000, millis % 1_000 / 100));
    let reply = &outcome.reply;
    facts.extend(
        reply
            .tokens
            .as_ref()
            .map(|tokens| format!("in {} / out {}", grouped(tokens.r#in), grouped(tokens.out))),
    );
    facts.extend(reply.model.as_deref().map(many_lines));
    facts.extend(reply.agent_session_id.as_deref().map(|id| format!("session {}", many_lines(id))));
    if reply.text.is_none() {
        facts.push("no reply".to_owned());
    }
    facts.join(" · ")
}

impl<'a> Answer<'a> {
    fn of(job: &'a Job, outcome: &'a Outcome) -> Self {
        let ok = outcome.status == RunStatus::Ok;
        let reason = outcome.reason.unwrap_or("error");
        let message = outcome.detail.as_deref().unwrap_or(reason);
        let reply = &outcome.reply;
        Self {
            ok,
            agent_id: &job.agent_id,
            run_id: &job.run_id,
            status: outcome.status,
            reason: outcome.reason,
            exit: outcome.exit,
            signal: outcome.signal,
            runtime_ms: u64::try_from(outcome.runtime.as_millis()).unwrap_or(u64::MAX),
            reply: reply.text.as_deref(),
            tokens: reply.tokens.as_ref(),
            cost_micros: reply.cost_micros,
            model: reply.model.as_deref(),
            agent_session_id: reply.agent_session_id.as_deref(),
            detail: outcome.detail.as_deref(),
            stderr_tail: outcome.stderr_tail.as_deref(),
            error: (!ok).then_some(FailedError { code: reason, message, hint: None }),
        }
    }
}
