//! A call of a tool. Tools block, and some wait for agents: each call has a thread. A call ends when its tool answers; when
//! its client gives it up nobody hears the answer any more, and a tool that waits is told so. What a tool has asked for goes
//! on in any case.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annals_engine::{Error, ErrorKind, Result};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ErrorCode, ErrorData, Tool as Listed, ToolAnnotations};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinError;

use super::Service;
use super::progress::{Clockwork, Ticks};
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

/// Sets a flag when it is dropped.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Service {
    /// Does what may block on a thread for that, for as long as it takes or until nobody waits for it.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        ticks: Option<Ticks>,
        what: impl FnOnce(&Self, &AtomicBool) -> Result<T> + Send + 'static,
    ) -> std::result::Result<Result<T>, ErrorData> {
        let gone = Arc::new(AtomicBool::new(false));
        let on_leaving = SetOnDrop(Arc::clone(&gone));
        let permit = tokio::select! {
            permit = Arc::clone(&self.calls).acquire_owned() => permit,
            () = context.ct.cancelled() => return Err(given_up()),
        };
        let (service, flag) = (self.clone(), Arc::clone(&gone));
        let mut work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            what(&service, &flag)
        });
        let mut ends = self.ends.clone();
        let mut leaving = false;
        let mut ticks = Clockwork::new(ticks);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done.unwrap_or_else(|e| Err(broken_off(e)))),
                () = context.ct.cancelled() => return Err(given_up()),
                () = ended(&mut ends), if !leaving => {
                    leaving = true;
                    on_leaving.0.store(true, Ordering::SeqCst);
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
        Ok(match self.blocking(context, ticks, call).await? {
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

/// Waits until all is to end.
pub(super) async fn ended(ends: &mut watch::Receiver<bool>) {
    // Nobody who could say so any more means the same.
    drop(ends.wait_for(|ends| *ends).await);
}

/// What is answered to a request that was given up; by the rules of the protocol nobody hears it.
fn given_up() -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, "the request was given up", None)
}

fn broken_off(error: JoinError) -> Error {
    Error::new(ErrorKind::Unavailable, "the call broke off")
        .hint("this is a fault of the server; what was asked for before it stands")
        .caused_by(error)
}
