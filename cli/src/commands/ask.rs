//! `ask`: a turn on a session, and the run that answers it, made here.

use annals_engine::session::event::{Role, RunKind};
use annals_engine::session::key::AgentId;
use annals_engine::session::push::{Chat, Door, Push, Pushed, Target, Wanted};
use annals_tools::ingress::gates::{Blocked, Gates, Mark, decode};
use annals_tools::ingress::inbound::{Taken, take};
use annals_tools::run::AgentSpec;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;

use crate::attend::{End, attend};
use crate::commands::session::push::{SWITCH, command};
use crate::commands::{Context, agents};
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers, own_chat};
use crate::output::text::one_line;
use crate::output::{Format, say};
use crate::{settings, store, typed};

/// Ask an agent: a turn on a session, and its answer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The turn and the request for its run are on stable storage before the agent starts, and the run is made by \
this process, or by a worker that was first. What the agent says to you goes to standard output as it comes, \
with what it says on the way to its answer; a reply that asks for silence prints nothing. What it says beside \
that goes to standard error. SIGINT (Ctrl-C) ends the run as killed.

Without --key the session is that of the chat of the command line. TEXT that is nothing but /new, /reset, \
/send on, /send off or /send inherit is a command, as in `annals session push`. A system timer runs jobs with \
--key cron:NAME. With MESSAGE_SESSIONS=0 each ask has a session of its own.

Exit codes: 0 answered, 1 the run ended with an error or there is no agent, 4 it reached its time limit, \
5 the text may not come in, 7 a run is at work that /reset would cut off.

Examples:
  annals ask 'What is on for today?'
  git diff | annals ask - --key main
  annals ask --key cron:nightly 'Sort the inbox.' --timeout 600 --deliver
  annals ask hello --json | jq -r .output")]
pub(crate) struct Args {
    /// What is said; `-` reads it from standard input
    #[arg(allow_hyphen_values = true, value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    text: String,
    /// The session, by its whole key: main, cron:NAME, CHANNEL:CHAT, or any other
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::Other)]
    key: Option<String>,
    /// The channel of the chat [default: session.channel]
    #[arg(long, value_name = "CHANNEL", value_hint = clap::ValueHint::Other)]
    channel: Option<String>,
    /// The chat on that channel [default: session.chatId]
    #[arg(long, value_name = "CHAT", allow_hyphen_values = true, value_hint = clap::ValueHint::Other)]
    chat: Option<String>,
    /// The agent that answers [default: the session's]
    #[arg(long, value_name = "ID", value_hint = clap::ValueHint::Other)]
    agent: Option<String>,
    /// The model that answers
    #[arg(long, value_name = "MODEL", value_hint = clap::ValueHint::Other)]
    model: Option<String>,
    /// How hard it thinks
    #[arg(long, value_name = "LEVEL", value_hint = clap::ValueHint::Other)]
    thinking: Option<String>,
    /// The time limit of the run
    #[arg(long, value_name = "SECONDS", value_hint = clap::ValueHint::Other, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Send the reply to the session's channel as well
    #[arg(long)]
    deliver: bool,
    /// Asks with the same key ask once
    #[arg(long, value_name = "KEY", value_hint = clap::ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    idempotency_key: Option<String>,
    /// Start no worker for what is left to do behind the answer
    #[arg(long)]
    no_worker: bool,
}

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    session_key: &'a str,
    session_id: &'a str,
    seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    opened: bool,
    repeated: bool,
    /// Why another part began with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<&'static str>,
    /// The command that was obeyed instead of asking anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    /// What was repaired in the text.
    #[serde(skip_serializing_if = "<[Mark]>::is_empty")]
    marks: &'a [Mark],
    #[serde(flatten)]
    end: Option<End<'a>>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("ask", &[Format::Table, Format::Json])?;
    let config = settings::get()?;
    let (said, marks) = said(&args.text)?;
    let push = push(args, &said, context)?;
    push.check()?;
    if AgentSpec::all(config)?.is_empty() {
        return Err(nobody("no agent has a command"));
    }
    let engine = store::open(&context.global)?;
    let workers = if args.no_worker { Workers::Never } else { Workers::OnCall };
    let office = Office::of(&engine, &context.global, workers)?;
    let taken = take(&engine, office.setup(), &Gates::of_owner(config), push)?;
    let (pushed, more) = match taken {
        Taken::In { pushed, marks } => (pushed, marks),
        Taken::Blocked(blocked) => return Err(kept_out(blocked)),
        Taken::Refused(reason) if reason.code == "no_agent" => return Err(nobody(&reason.detail)),
        Taken::Refused(reason) => {
            return Err(Failure::new(Exit::Usage, reason.code, reason.detail));
        }
    };
    let marks = [marks, more].concat();
    if pushed.opened {
        store::keep_up(&engine, &mut context.out)?;
    }
    let Some(run_id) = &pushed.run_id else { return obeyed(&pushed, context) };
    let session = pushed.key.as_str();
    if !marks.is_empty() && context.out.format != Format::Json {
        say("note: control characters, or what was no UTF-8, were repaired in the text");
    }
    let attended = attend(&office, (run_id, session), &mut context.out)?;
    if context.out.format != Format::Json {
        return attended.verdict(run_id);
    }
    let end = attended.told();
    let ok = attended.exit() == Exit::Ok;
    context.out.object(&Answer { ok, marks: &marks, end: Some(end), ..Answer::of(&pushed) })?;
    Ok(attended.exit())
}

/// What is said, with what had to be repaired for it to be text.
fn said(text: &str) -> Result<(String, Vec<Mark>), Failure> {
    let bytes = typed::bytes(text)?;
    let Some(decoded) = decode(&bytes) else {
        return Err(Failure::new(Exit::Denied, "blocked", "the text is no UTF-8")
            .hint("send text in UTF-8"));
    };
    Ok((decoded.text.into_owned(), decoded.marks))
}

/// What is to be pushed.
fn push(args: &Args, said: &str, context: &Context) -> Result<Push, Failure> {
    let config = settings::get()?;
    let operator = store::operator()?;
    let agent = args.agent.as_deref().map(AgentId::parse).transpose()?;
    let current = agent.clone().unwrap_or(operator.agent);
    let (channel, chat) = own_chat()?;
    let here = Chat {
        channel: args.channel.clone().unwrap_or(channel),
        id: args.chat.clone().unwrap_or(chat),
    };
    let named = args.channel.is_some() || args.chat.is_some();
    let door = Door::cli();
    let (target, over) = match &args.key {
        _ if !config.is_on(SWITCH) => {
            let id = args.idempotency_key.as_deref();
            (Target::hook(&door.name, id, context.out.now)?, Some(here))
        }
        None => (Target::Chat(here), None),
        Some(key) => (Target::named(key, &current, operator.main)?, named.then_some(here)),
    };
    let wanted = Wanted {
        agent,
        timeout_seconds: args.timeout.unwrap_or(0),
        deliver: args.deliver,
        model: args.model.clone(),
        thinking: args.thinking.clone(),
        ..Wanted::new(RunKind::Ask)
    };
    Ok(Push {
        over,
        idempotency_key: args.idempotency_key.clone(),
        run: Some(wanted),
        ..Push::to(target, door, Role::User, said, current)
    })
}

fn nobody(why: &str) -> Failure {
    let failure = Failure::new(Exit::Failed, "no_agent", format!("nobody can answer: {why}"));
    match settings::get().ok().and_then(|config| AgentSpec::all(config).ok()) {
        Some(specs) if !specs.is_empty() => {
            let ids: Vec<&str> = specs.iter().map(|spec| spec.id.as_str()).collect();
            failure.hint(format!("agents are {}", ids.join(", ")))
        }
        _ => failure.hint(agents::begin()),
    }
}

fn kept_out(Blocked { rule, reason, hint, .. }: Blocked) -> Failure {
    Failure::new(Exit::Denied, "blocked", format!("{rule}: {reason}")).hint(hint)
}

/// Tells what was obeyed.
fn obeyed(pushed: &Pushed, context: &mut Context) -> Result<Exit, Failure> {
    if context.out.format == Format::Json {
        context.out.object(&Answer::of(pushed))?;
        return Ok(Exit::Ok);
    }
    let key = one_line(pushed.key.as_str());
    let what = command(pushed).unwrap_or_default();
    say(&format!("{key} #{} obeyed {what}", pushed.position.seq));
    Ok(Exit::Ok)
}

impl<'a> Answer<'a> {
    fn of(pushed: &'a Pushed) -> Self {
        Self {
            ok: true,
            session_key: pushed.key.as_str(),
            session_id: &pushed.session_id,
            seq: pushed.position.seq.0,
            run_id: pushed.run_id.as_deref(),
            opened: pushed.opened,
            repeated: pushed.repeated,
            reset: pushed.reset.map(annals_engine::session::event::ResetReason::as_str),
            command: command(pushed),
            marks: &[],
            end: None,
        }
    }
}
