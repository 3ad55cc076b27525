//! What is answered where.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use annals_engine::store::View;
use annals_engine::{Error, ErrorKind};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http_body_util::LengthLimitError;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::answer::{Answer, Refusal, told};
use super::door::{Door, guard, identify};
use super::events;
use super::mcp::Services;
use super::query::arguments;
use super::settings::HttpSettings;
use super::webhook::{self, Hook};
use crate::calls::{Calls, Lasts};
use crate::host::{Host, Identity};
use crate::registry::{TOOLS, Tool};

/// A store that has not answered for so long is not ready.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// The body of a call has so long to come in.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// What the routes share.
#[derive(Clone)]
struct Desk {
    host: Host,
    calls: Calls,
    /// Whoever looks whether the store is ready: one at a time, since it may have to wait for the store.
    probe: Arc<Semaphore>,
    mcp: Services,
    body_max: usize,
    hook: Option<Hook>,
}

/// All routes, behind the door.
pub(super) fn routes(
    host: Host,
    settings: &HttpSettings,
    address: SocketAddr,
    calls: &Calls,
) -> Router {
    let door = Door::new(settings, address, host.clone(), calls.clone());
    let mcp = Services::new(host.clone(), settings.body_max, calls.clone());
    let (calls, probe) = (calls.clone(), Arc::new(Semaphore::new(1)));
    let desk =
        Desk { host, calls, probe, mcp, body_max: settings.body_max, hook: settings.hook.clone() };
    Router::new()
        .route("/mcp", any(mcp_message))
        .route("/v1/tools", get(tools))
        .route("/v1/tools/{name}", post(tool))
        .route("/v1/sessions", get(sessions))
        .route("/v1/sessions/{key}/history", get(history))
        .route("/v1/events", get(events))
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(door.clone(), identify))
        .route("/v1/webhook", post(webhook))
        .route("/v1/inbox", post(webhook))
        .route("/v1/agent", post(webhook))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(door, guard))
        .with_state(desk)
}

async fn mcp_message(
    State(desk): State<Desk>,
    Extension(who): Extension<Identity>,
    request: Request,
) -> Answer<Response> {
    let (head, content) = request.into_parts();
    let content = body(content, desk.body_max).await?;
    Ok(desk.mcp.answer(who, Request::from_parts(head, content.into())).await)
}

/// The tools that the caller has.
async fn tools(
    State(desk): State<Desk>,
    Extension(who): Extension<Identity>,
) -> Answer<Json<Value>> {
    let host = desk.host.clone();
    let caller = desk.calls.look(move || host.caller(&who)).await?;
    let has = TOOLS.iter().filter(|tool| caller.tools.has(tool.name));
    let listed = has.map(|tool| {
        json!({ "name": tool.name, "description": tool.about, "inputSchema": tool.schema() })
    });
    Ok(Json(json!({ "tools": listed.collect::<Vec<_>>() })))
}

async fn tool(
    State(desk): State<Desk>,
    Extension(who): Extension<Identity>,
    name: Named,
    request: Request,
) -> Answer<Json<Value>> {
    let name = named(name)?;
    let tool = Tool::of(&name)?;
    let body = body(request.into_body(), desk.body_max).await?;
    let args: Value = match body.is_empty() {
        true => Value::Object(Map::new()),
        false => serde_json::from_slice(&body).map_err(|e| {
            Error::invalid(format!("the body is no JSON: {e}"))
                .field("body")
                .hint(format!("`POST /v1/tools/{name}` takes the arguments as one object"))
        })?,
    };
    if !args.is_object() {
        let error = Error::invalid("the body is no object").field("body");
        return Err(error.hint("the arguments of a tool are one object in JSON").into());
    }
    desk.call(who, tool, args).await
}

async fn sessions(
    State(desk): State<Desk>,
    Extension(who): Extension<Identity>,
    RawQuery(query): RawQuery,
) -> Answer<Json<Value>> {
    let tool = Tool::of("sessions_list")?;
    let args = arguments(query.as_deref().unwrap_or_default(), &tool.schema())?;
    desk.call(who, tool, Value::Object(args)).await
}

async fn history(
    State(desk): State<Desk>,
    Extension(who): Extension<Identity>,
    key: Named,
    RawQuery(query): RawQuery,
) -> Answer<Json<Value>> {
    let key = named(key)?;
    let tool = Tool::of("sessions_history")?;
    let mut args = arguments(query.as_deref().unwrap_or_default(), &tool.schema())?;
    if args.insert("sessionKey".to_owned(), Value::from(key)).is_some() {
        let error = Error::invalid("the session stands in the path already");
        return Err(error.field("sessionKey").into());
    }
    desk.call(who, tool, Value::Object(args)).await
}

async fn events(
    State(desk): State<Desk>,
    Extension(who): Extension<Identity>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Answer<Response> {
    events::answer(desk.host, &desk.calls, who, &headers, query.as_deref()).await
}

async fn webhook(State(desk): State<Desk>, request: Request) -> Answer<Response> {
    let hook = desk.hook.ok_or_else(webhook::off)?;
    let (head, content) = request.into_parts();
    // Who cannot be let in whatever he says is not listened to.
    let Some(may) = hook.may_be_admitted(&head.headers) else { return Ok(webhook::unknown()) };
    let content = body(content, desk.body_max.min(hook.body_max)).await?;
    webhook::answer(desk.host, &desk.calls, (hook, may), head.headers, content).await
}

impl Desk {
    async fn call(&self, who: Identity, tool: &'static Tool, args: Value) -> Answer<Json<Value>> {
        let host = self.host.clone();
        let call = move |gone: &_| host.call(&who, tool, args, Some(gone));
        let lasts = if tool.waits() { Lasts::Long } else { Lasts::Shortly };
        Ok(Json(self.calls.call(lasts, call).await?))
    }
}

/// A name in a path, if it is text.
type Named = Result<Path<String>, PathRejection>;

fn named(name: Named) -> Answer<String> {
    let unread = |e: PathRejection| Error::invalid(e.body_text()).field("path");
    Ok(name.map(|Path(name)| name).map_err(unread)?)
}

/// A whole body.
async fn body(body: Body, limit: usize) -> Answer<axum::body::Bytes> {
    let read = axum::body::to_bytes(body, limit);
    let read = tokio::time::timeout(BODY_WITHIN, read).await;
    let read = read.map_err(|_| {
        Refusal::late(
            Error::new(ErrorKind::Unavailable, "the body did not come in time").field("body"),
        )
    })?;
    read.map_err(|e| {
        let over = std::error::Error::source(&e).is_some_and(|e| e.is::<LengthLimitError>());
        let error = match over {
            true => Error::new(ErrorKind::TooLarge, format!("the body is over {limit} bytes"))
                .hint("http.maxBodyBytes in the configuration is the limit"),
            false => Error::invalid("the body broke off"),
        };
        Refusal::from(error.field("body"))
    })
}

/// Ready is a store that is read and whose append lock can be had; a batch of nothing is decided, and nothing appended.
async fn ready(State(desk): State<Desk>) -> Response {
    let host = desk.host.clone();
    // Whoever asks while one waits for the store waits as long as that one may, and then knows enough.
    let look = async {
        let permit = desk.probe.acquire_owned().await;
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            host.engine().store().end(View::Durable)?;
            host.engine().decide::<()>(&[], |_, _| Ok(())).map(|_| ())
        })
        .await
    };
    // Anybody may ask: what exactly is wrong, and where, is the owner's to see.
    let not_ready = |kind: ErrorKind, message: &str| {
        let error = Error::new(kind, message).hint("`annals doctor` on the server says more");
        told(StatusCode::SERVICE_UNAVAILABLE, &error)
    };
    match tokio::time::timeout(READY_WITHIN, look).await {
        Ok(Ok(Ok(()))) => "ready\n".into_response(),
        Ok(Ok(Err(error))) => not_ready(error.kind().clone(), "the store takes no appends"),
        Ok(Err(_)) => not_ready(ErrorKind::Unavailable, "the look at the store broke off"),
        Err(_) => not_ready(ErrorKind::Busy, "the store has not answered in time"),
    }
}

async fn nothing_here(request: Request) -> Refusal {
    let message = format!("there is nothing at {}", request.uri().path());
    let hint =
        "there are /mcp, /v1/tools, /v1/sessions, /v1/events, /v1/webhook, /livez and /readyz";
    Error::new(ErrorKind::NotFound, message).hint(hint).into()
}

async fn not_so(request: Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let error = Error::invalid(format!("{path} takes no {method}"));
    told(StatusCode::METHOD_NOT_ALLOWED, &error)
}
