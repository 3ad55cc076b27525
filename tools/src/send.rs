//! `sessions_send`: a message to another session, and its reply if it comes in time.

use std::time::Duration;

use annals_engine::id::{EventId, StreamName};
use annals_engine::session::event::{RunFinished, RunStatus, idempotency_id};
use annals_engine::session::index::Found;
use annals_engine::session::run::{Asked, Requester, Send, announce, send};
use annals_engine::session::silent::{Lane, Silence};
use annals_engine::{Error, ErrorKind, Result};

use crate::caller::{Caller, Seat};
use crate::desk::Desk;
use crate::mask::Mask;
use crate::view::View;
use crate::waiting::ends;
use crate::waiting::{at_work, last_line};
use crate::wire::runs::{Pending, SendArgs, SendReply};

/// How long a caller waits who does not say it.
const WAIT_SECONDS: u64 = 30;

/// The longest wait.
const WAIT_MAX: u64 = 3_600;

/// Sends a message, and waits for the reply as long as the caller wants. The message is durable before anything starts.
///
/// # Errors
/// `NotFound` for a session that is not there or not seen, `Ambiguous` for a name that fits several; `InvalidInput` for a
/// message that says nothing or is sent to nobody; `IdReused` for an idempotency key that was used for another message;
/// what the store says.
pub fn sessions_send(
    caller: &Caller,
    view: &View<'_>,
    desk: &Desk<'_>,
    args: &SendArgs,
) -> Result<SendReply> {
    if args.message.trim().is_empty() {
        return Err(Error::invalid("the message says nothing").field("message"));
    }
    let found = target(caller, view, args)?;
    let from = desk.requester(caller);
    let wait = args.timeout_seconds.unwrap_or(WAIT_SECONDS).min(WAIT_MAX);
    let run_id = match &args.idempotency_key {
        Some(key) => idempotency_id("sessions_send", from.as_str(), key)?,
        None => EventId::new(view.lens.now),
    };
    let wish = Wish { caller, desk, args, to: &found.key, run_id: run_id.to_string(), wait };
    let sent = match wish.sent_before()? {
        // Who sent it may not have come so far as to call anybody.
        true => wish.called(),
        false => wish.send()?,
    };
    if sent.reason.is_some() {
        return Ok(sent);
    }
    let reply = SendReply { session_key: Some(caller.shown(&found.key).to_owned()), ..sent };
    wish.reply(reply)
}

/// The session that a message goes to.
fn target(caller: &Caller, view: &View<'_>, args: &SendArgs) -> Result<Found> {
    let sessions = view.sessions.state();
    match (&args.session_key, &args.label) {
        (Some(name), None) => caller.find(sessions, name),
        (None, Some(label)) => {
            // Labels are stored without the white space around them.
            let label = label.trim();
            let fits = |agent: &str| args.agent_id.as_deref().is_none_or(|wanted| wanted == agent);
            let labelled = sessions.rows().filter(|row| {
                row.label.as_deref() == Some(label)
                    && fits(&row.agent_id)
                    && caller.sees(sessions, row)
                    && !sessions.is_archived(&row.key)
            });
            let mut keys: Vec<&StreamName> = labelled.map(|row| &row.key).collect();
            keys.sort_unstable();
            match keys.as_slice() {
                [] => {
                    let message = format!("there is no session with the label {label:?}");
                    Err(Error::new(ErrorKind::NotFound, message).field("label"))
                }
                [key] => Ok(Found { key: (*key).clone(), part: None }),
                several => {
                    let names: Vec<&str> = several.iter().map(|key| key.as_str()).collect();
                    let message = format!("{label:?} is the label of {}", names.join(", "));
                    Err(Error::new(ErrorKind::Ambiguous, message).field("label"))
                }
            }
        }
        _ => Err(Error::invalid("Either sessionKey or label is required")
            .field("sessionKey")
            .hint("name the session by one of the two")),
    }
}

/// Why a run did not end well, in words, with the last that its program said of it.
fn why(end: &RunFinished) -> String {
    let why = end.detail.clone().unwrap_or_else(|| format!("the run ended: {}", end.status));
    match end.stderr_tail.as_deref().and_then(last_line) {
        Some(said) if !why.contains(said) => format!("{why}: {said}"),
        _ => why,
    }
}

/// A message that is to be sent.
struct Wish<'a> {
    caller: &'a Caller,
    desk: &'a Desk<'a>,
    args: &'a SendArgs,
    to: &'a StreamName,
    run_id: String,
    wait: u64,
}

impl Wish<'_> {
    /// Whether this very message was sent under its idempotency key.
    fn sent_before(&self) -> Result<bool> {
        let Some(key) = &self.args.idempotency_key else { return Ok(false) };
        let store = self.desk.engine.store();
        let Some(request) = announce::told(store, &self.run_id)?.requested else {
            return Ok(false);
        };
        let said = announce::text_at(store, &request.session_key, request.turn_seq)?;
        if request.session_key == self.to.as_str() && said == self.args.message {
            return Ok(true);
        }
        let message = format!("the idempotency key {key:?} was used for another message");
        Err(Error::new(ErrorKind::IdReused, message)
            .field("idempotencyKey")
            .hint("give another message a key of its own"))
    }

    /// Sends. What comes back has a reason when it was refused.
    fn send(&self) -> Result<SendReply> {
        let Self { desk, args, .. } = *self;
        let from = desk.requester(self.caller);
        let config = &desk.setup.config;
        let number = |path: &str, least: u32| {
            config.number(path).and_then(|n| u32::try_from(n).ok()).unwrap_or(least)
        };
        let rounds_max = number("session.agentToAgent.maxPingPongTurns", 5);
        let can_run = |agent: &str| desk.setup.agents.contains_key(agent);
        // A person at the command line reads the reply; nobody answers it for him.
        let answers = match &self.caller.seat {
            Seat::Operator => false,
            Seat::Session { .. } => can_run(self.caller.agent.as_str()),
        };
        let named = args.session_key.as_deref().or(args.label.as_deref()).unwrap_or_default();
        let label = args.label.as_deref().map(|label| (label.trim(), args.agent_id.as_deref()));
        let wish = Send {
            verb: "sessions_send",
            from: Requester {
                key: from,
                run_id: self.caller.run.as_deref(),
                opening: desk.opening(self.caller),
            },
            to: self.to,
            named,
            label,
            message: &args.message,
            wait_seconds: self.wait,
            run_id: &self.run_id,
            idempotency_key: args.idempotency_key.as_deref(),
            rounds_max: if answers { rounds_max } else { 0 },
            hops_max: number("session.agentToAgent.maxHops", 10),
            runs_max: desk.setup.rules.runs_max,
            can_run: &can_run,
            blocked: None,
        };
        let asked = desk.engine.decide(&[from, self.to], |stage, batch| send(stage, batch, &wish));
        match asked {
            Ok((Asked::Refused(reason), _)) => Ok(SendReply {
                status: "error",
                reason: Some(reason.code.to_owned()),
                error: Some(reason.detail),
                ..SendReply::default()
            }),
            Ok((Asked::Accepted { .. }, _)) => Ok(self.called()),
            // Another call with the same key came first.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {
                match self.sent_before()? {
                    true => Ok(self.called()),
                    false => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Sees to it that somebody works. The message is accepted, whatever comes of that.
    fn called(&self) -> SendReply {
        let worker = self.desk.called(&self.run_id);
        SendReply { worker, ..SendReply::default() }
    }

    /// Waits for the reply.
    fn reply(&self, reply: SendReply) -> Result<SendReply> {
        let run_id = Some(self.run_id.clone());
        let delivery = Some(Pending::ANNOUNCE);
        if self.wait == 0 {
            return Ok(SendReply { run_id, status: "accepted", delivery, ..reply });
        }
        let within = Duration::from_secs(self.wait);
        let mut ends = ends(self.desk, &[&self.run_id], within)?;
        let Some(end) = ends.remove(&self.run_id) else {
            let error = format!(
                "no reply within {} s; the message is with the session and the work goes on: wait with runs_wait, or \
                 repeat with the same idempotencyKey, and do not send it again",
                self.wait
            );
            let (delivered, error) = (true, Some(error));
            let mut work = at_work(self.desk, self.to, &self.run_id)?;
            if let Some(sign) = work.as_mut().and_then(|work| work.last_sign.as_mut()) {
                *sign = self.seen(std::mem::take(sign));
            }
            return Ok(SendReply { run_id, status: "timeout", delivered, error, work, ..reply });
        };
        self.ended(SendReply { run_id, delivery, ..reply }, &end)
    }

    /// What another session's program said of itself, as the caller may see it.
    fn seen(&self, said: String) -> String {
        match self.caller.is_masked(self.to.as_str()) {
            true => Mask::of(&self.desk.setup.config).text(&said).into_owned(),
            false => said,
        }
    }

    fn ended(&self, reply: SendReply, end: &RunFinished) -> Result<SendReply> {
        if end.status != RunStatus::Ok {
            return Ok(SendReply {
                status: "error",
                run_status: Some(end.status),
                reason: Some(end.reason.clone().unwrap_or_else(|| end.status.to_string())),
                error: Some(self.seen(why(end))),
                delivery: None,
                delivered: true,
                ..reply
            });
        }
        let store = self.desk.engine.store();
        let text = announce::text_at(store, self.to.as_str(), end.reply_seq)?;
        let silence = Silence::of(&text, &self.desk.setup.rules.silent, Lane::Foreground);
        let silent = silence.token().is_some();
        let said = silence.outbound().to_owned();
        let no_reply = said.is_empty() && !silent;
        let said = if silent { Some(String::new()) } else { Some(said).filter(|_| !no_reply) };
        Ok(SendReply { status: "ok", reply: said, no_reply, silent, ..reply })
    }
}
