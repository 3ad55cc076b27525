//! `sessions_spawn`: a child that works on a task. The checks stand here in their order; those on numbers are made
//! under the append lock.

mod checks;

use annals_engine::id::{EventId, StreamName};
use annals_engine::session::event::{Cleanup, Sandbox, SpawnMode, idempotency_id};
use annals_engine::session::run::{Asked, Reason, Requester, Spawn, announce, fenced, spawn};
use annals_engine::{Error, ErrorKind, Result};

use crate::caller::Caller;
use crate::desk::Desk;
use crate::run::attachments::Written;
use crate::view::View;
use crate::wire::runs::{SpawnArgs, SpawnReply};

use checks::confines_children;

/// Spawns a child: accepted at once, or refused with a reason and an event. The child, its task and its run are durable
/// together before anything starts.
///
/// # Errors
/// `IdReused` for an idempotency key that was used for another task; what the disk and the store say.
pub fn sessions_spawn(
    caller: &Caller,
    view: &View<'_>,
    desk: &Desk<'_>,
    args: &SpawnArgs,
) -> Result<SpawnReply> {
    let from = desk.requester(caller);
    let now = view.lens.now;
    let run_id = match &args.idempotency_key {
        Some(key) => idempotency_id("sessions_spawn", from.as_str(), key)?.to_string(),
        None => EventId::new(now).to_string(),
    };
    let wish = Wish { caller, view, desk, args, run_id };
    if let Some(before) = wish.spawned_before()? {
        return Ok(before);
    }
    wish.spawn(from)
}

/// A child that is wanted.
struct Wish<'a> {
    caller: &'a Caller,
    view: &'a View<'a>,
    desk: &'a Desk<'a>,
    args: &'a SpawnArgs,
    run_id: String,
}

impl Wish<'_> {
    /// The answer of this very call, if it was made under its idempotency key before.
    fn spawned_before(&self) -> Result<Option<SpawnReply>> {
        let Some(key) = &self.args.idempotency_key else { return Ok(None) };
        let store = self.desk.engine.store();
        let Some(request) = announce::told(store, &self.run_id)?.requested else {
            return Ok(None);
        };
        if announce::text_at(store, &request.session_key, request.turn_seq)? != self.args.task {
            let message = format!("the idempotency key {key:?} was used for another task");
            return Err(Error::new(ErrorKind::IdReused, message)
                .field("idempotencyKey")
                .hint("give another task a key of its own"));
        }
        let worker = self.desk.called(&self.run_id);
        Ok(Some(SpawnReply { worker, ..self.accepted(&request.session_key) }))
    }

    fn accepted(&self, child: &str) -> SpawnReply {
        let in_a_chat = !self.desk.requester(self.caller).as_str().starts_with("cron:");
        SpawnReply {
            status: "accepted",
            run_id: Some(self.run_id.clone()),
            child_session_key: Some(child.to_owned()),
            note: in_a_chat.then_some(NOTE),
            ..SpawnReply::default()
        }
    }

    fn spawn(&self, from: &StreamName) -> Result<SpawnReply> {
        let Self { desk, args, .. } = *self;
        let now = self.view.lens.now;
        let before = self.before();
        let agent = before.as_ref().map_or_else(
            |_| args.agent_id.clone().unwrap_or_else(|| self.caller.agent.to_string()),
            |terms| terms.agent.clone(),
        );
        let (before, terms) = match before {
            Ok(terms) => (None, Some(terms)),
            Err(reason) => (Some(reason), None),
        };
        let after = terms.as_ref().map(|terms| self.after(terms));
        let (after, files) = match after {
            Some(Ok(files)) => (None, Some(files)),
            Some(Err(reason)) => (Some(reason), None),
            None => (None, None),
        };
        let spec = terms.as_ref().and_then(|terms| terms.spec);
        let id = EventId::new(now).to_string();
        let written: Option<Written> = match (files, spec) {
            (Some(files), Some(spec)) => files.write(&spec.cwd, &id)?,
            _ => None,
        };
        let child = StreamName::new(format!("agent:{agent}:subagent:{id}"));
        // Of an agent that cannot be there is no key; it is refused for that.
        let child = child.or_else(|_| StreamName::new(format!("agent:main:subagent:{id}")))?;
        let session_id = EventId::new(now).to_string();
        let preamble = self.preamble(written.as_ref());
        let origin = self.origin();
        let (mode, cleanup, sandbox) =
            terms.as_ref().map_or((SpawnMode::Run, Cleanup::Keep, Sandbox::Inherit), |terms| {
                (terms.mode, terms.cleanup, terms.sandbox)
            });
        let wish = Spawn {
            from: Requester {
                key: from,
                run_id: self.caller.run.as_deref(),
                opening: desk.opening(self.caller),
            },
            agent: &agent,
            child: &child,
            session_id: &session_id,
            run_id: &self.run_id,
            task: &args.task,
            preamble: preamble.as_deref(),
            label: args.label.as_deref().map(str::trim),
            model: self.model(spec),
            thinking: self.thinking(spec),
            timeout_seconds: self.timeout().as_secs(),
            thread: args.thread,
            mode,
            cleanup,
            sandbox,
            confined: spec.is_some_and(confines_children),
            attachments: written.as_ref().map_or(&[], |written| &written.events),
            mount_path: args.attach_as.as_ref().map(|mount| mount.mount_path.as_str()),
            idempotency_key: args.idempotency_key.as_deref(),
            origin: origin.as_ref(),
            limits: self.limits(),
            refused: [before.as_ref(), after.as_ref()],
        };
        let asked = desk.engine.decide(&[from, &child], |stage, batch| spawn(stage, batch, &wish));
        self.answer(asked.map(|(asked, _)| asked), &child, written)
    }

    /// What stands before the task in the child's prompt: where the conversation stands, and the files for it.
    fn preamble(&self, written: Option<&Written>) -> Option<String> {
        let before = self.desk.before_task.map(|text| {
            let fenced = fenced(&self.run_id, text);
            format!("[What was said where this task comes from, oldest first:]\n{fenced}")
        });
        let parts: Vec<String> = before.into_iter().chain(written.map(Written::told)).collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }

    fn answer(
        &self,
        asked: Result<Asked>,
        child: &StreamName,
        written: Option<Written>,
    ) -> Result<SpawnReply> {
        match asked {
            Ok(Asked::Refused(reason)) => Ok(refused(reason)),
            Ok(Asked::Accepted { .. }) => {
                let attachments = written.map(Written::keep).unwrap_or_default();
                let worker = self.desk.called(&self.run_id);
                Ok(SpawnReply { attachments, worker, ..self.accepted(child.as_str()) })
            }
            // Another call with the same key came first.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict { .. }) => {
                self.spawned_before()?.ok_or(error)
            }
            // The child may be there: its files stay.
            Err(error) if *error.kind() == ErrorKind::Indeterminate => {
                drop(written.map(Written::keep));
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}
const NOTE: &str =
    "the result is announced to this session when the child has ended; there is no need to poll";

/// What is wrong with the call is an error, what is not allowed is forbidden.
fn refused(reason: Reason) -> SpawnReply {
    let forbidden = [
        "disabled",
        "depth",
        "children",
        "children_total",
        "agent_not_allowed",
        "no_agent",
        "sandbox",
        "blocked",
    ];
    let status = if forbidden.contains(&reason.code) { "forbidden" } else { "error" };
    SpawnReply {
        status,
        reason: Some(reason.code),
        error: Some(reason.detail),
        ..SpawnReply::default()
    }
}
