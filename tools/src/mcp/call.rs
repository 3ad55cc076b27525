//! A call of a tool. Tools block, and some wait for agents: each call has a thread. A call ends when its tool answers; when
//! its client gives it up nobody hears the answer any more, and a tool that waits is told so. What a tool has asked for goes
//! on in any case.

use std::sync::atomic::AtomicBool;

use annals_engine::Result;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ErrorCode, ErrorData, Tool as Listed, ToolAnnotations};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use super::Service;
use super::progress::{Clockwork, Ticks};
use crate::calls::Lasts;
use crate::fault::fault;
use crate::host::Identity;
use crate::registry::{Effect, Tool};

/// A tool as the protocol lists it.
pub(super) fn listed(tool: &Tool) -> Listed {
    let schema = match tool.schema() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let hints = ToolAnnotations::new();
    let hints = match tool.effect {
        Effect::None => hints.read_only(true).destructive(false).idempotent(true).open_world(false),
        Effect::Work => {
            hints.read_only(false).destructive(false).idempotent(false).open_world(true)
        }
        Effect::End => hints.read_only(false).destructive(true).idempotent(true).open_world(false),
    };
    Listed::new(tool.name, tool.about, schema).with_annotations(hints)
}

impl Service {
    /// Does what may block on a thread for that, until it ends or nobody waits for it.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        (lasts, ticks): (Lasts, Option<Ticks>),
        what: impl FnOnce(&Self, &AtomicBool) -> Result<T> + Send + 'static,
    ) -> std::result::Result<Result<T>, ErrorData> {
        let service = self.clone();
        let begun = self.calls.begin(lasts, move |gone| what(&service, gone));
        let begun = tokio::select! {
            begun = begun => begun,
            () = context.ct.cancelled() => return Err(given_up()),
        };
        let mut call = match begun {
            Ok(call) => call,
            Err(error) => return Ok(Err(error)),
        };
        let mut leaving = false;
        let mut ticks = Clockwork::new(ticks);
        loop {
            tokio::select! {
                done = call.done() => return Ok(done),
                () = context.ct.cancelled() => return Err(given_up()),
                () = self.calls.stopped(), if !leaving => {
                    leaving = true;
                    call.give_up();
                }
                () = ticks.next() => ticks.tell().await,
            }
        }
    }

    /// Calls a tool for somebody.
    pub(super) async fn answer(
        &self,
        who: Identity,
        tool: &'static Tool,
        args: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResult, ErrorData> {
        let token = context.meta.get_progress_token().filter(|_| tool.waits());
        let ticks = token.map(|token| Ticks { token, peer: context.peer.clone() });
        let call = move |service: &Self, gone: &AtomicBool| {
            service.host.call(&who, tool, Value::Object(args), Some(gone))
        };
        let lasts = if tool.waits() { Lasts::Long } else { Lasts::Shortly };
        Ok(match self.blocking(context, (lasts, ticks), call).await? {
            Ok(answer) if failed(&answer) => CallToolResult::structured_error(answer),
            Ok(answer) => CallToolResult::structured(answer),
            Err(error) => CallToolResult::structured_error(fault(&error)),
        })
    }
}

/// Whether an answer tells of a call that came to nothing: a spawn that was not made, a send that was not let through or
/// whose run failed. A time that is up is no failure.
fn failed(answer: &Value) -> bool {
    ["error", "forbidden"].iter().any(|status| answer["status"] == *status)
}

/// What is answered to a request that was given up; by the rules of the protocol nobody hears it.
fn given_up() -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, "the request was given up", None)
}
