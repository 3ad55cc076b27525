//! A stand-in of the interfaces of models, on the loopback alone: Anthropic's Messages and OpenAI's Responses, as real
//! agent programs call them. It says what a script has, in order, and keeps what it was asked. It ends with its value.

mod messages;
mod responses;
mod script;

pub use script::{Reply, Usage};

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use script::Said;

/// A running stand-in.
#[derive(Debug)]
pub struct ModelApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What a program asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The path and what follows it.
    pub path: String,
    /// The body, as JSON; `null` when it was none.
    pub body: Value,
}

impl Asked {
    /// The names of the tools that the program offered to the model.
    #[must_use]
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.body.get("tools").and_then(Value::as_array);
        let names = tools.into_iter().flatten().filter_map(|tool| tool.get("name"));
        names.filter_map(Value::as_str).collect()
    }

    /// Whether a text stands anywhere in what was asked.
    #[must_use]
    pub fn holds(&self, text: &str) -> bool {
        holds(&self.body, text)
    }
}

#[derive(Debug)]
struct Shared {
    told: Mutex<Told>,
    came: Condvar,
    released: watch::Sender<bool>,
}

#[derive(Debug)]
struct Told {
    script: VecDeque<Reply>,
    asked: Vec<Asked>,
    /// How many answers were given: ids are made of it.
    answers: usize,
}

impl ModelApi {
    /// Starts a stand-in on a free port.
    ///
    /// # Errors
    /// When no socket of the loopback can be had.
    pub fn start(script: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let told = Told { script: script.into_iter().collect(), asked: Vec::new(), answers: 0 };
        let shared = Arc::new(Shared {
            told: Mutex::new(told),
            came: Condvar::new(),
            released: watch::Sender::new(false),
        });
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (stop, stopped) = oneshot::channel();
        let routes = Router::new()
            .route("/v1/messages", post(answer::<Messages>))
            .route("/v1/responses", post(answer::<Responses>))
            .fallback(nothing_here)
            .with_state(Arc::clone(&shared));
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            tokio::select! {
                _ = axum::serve(listener, routes) => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::spawn(move || runtime.block_on(serve));
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it is, without a path: `http://127.0.0.1:4711`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds to the script.
    pub fn say(&self, reply: Reply) {
        self.shared.told().script.push_back(reply);
    }

    /// What it was asked so far, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.told().asked.clone()
    }

    /// What of the script was not said.
    #[must_use]
    pub fn unsaid(&self) -> Vec<Reply> {
        self.shared.told().script.iter().cloned().collect()
    }

    /// Waits until it was asked so often; says whether it was.
    #[must_use]
    pub fn wait_asked(&self, count: usize, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        let mut told = self.shared.told();
        while told.asked.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            told = match self.shared.came.wait_timeout(told, left) {
                Ok((told, _)) => told,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        true
    }

    /// Lets everything be said that is held back, now and from now on.
    pub fn release(&self) {
        self.shared.released.send_replace(true);
    }
}

impl Drop for ModelApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what was asked, and takes the first reply that is meant for it.
    fn next(&self, asked: Asked) -> (usize, Reply) {
        let mut told = self.told();
        let fits = |reply: &Reply| match reply.needle() {
            Some(needle) => asked.holds(needle),
            None => true,
        };
        let found = told.script.iter().position(fits);
        let reply = found.and_then(|at| told.script.remove(at));
        told.asked.push(asked);
        told.answers += 1;
        self.came.notify_all();
        let over = || Reply::error(400, "invalid_request_error", "the script is over");
        (told.answers, reply.unwrap_or_else(over))
    }
}

/// How an interface says things.
trait Interface {
    /// The events of an answer, each an object with its `type`.
    fn events(model: &str, number: usize, said: &Said) -> Vec<Value>;
}

struct Messages;
struct Responses;

impl Interface for Messages {
    fn events(model: &str, number: usize, said: &Said) -> Vec<Value> {
        messages::events(model, number, said)
    }
}

impl Interface for Responses {
    fn events(model: &str, number: usize, said: &Said) -> Vec<Value> {
        responses::events(model, number, said)
    }
}

async fn answer<I: Interface>(
    State(shared): State<Arc<Shared>>,
    uri: Uri,
    body: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let model = body.get("model").and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let (number, reply) = shared.next(Asked { path: uri.to_string(), body });
    if reply.is_held() {
        let mut released = shared.released.subscribe();
        // The sender lives as long as what this was called on.
        let _ = released.wait_for(|released| *released).await;
    }
    match reply.told() {
        Ok(said) => stream(&I::events(&model, number, said)),
        Err((status, kind, message)) => refusal(status, kind, message),
    }
}

/// Events as a stream of server-sent events, in one piece.
fn stream(events: &[Value]) -> Response {
    let event = |event: &Value| {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    let body: String = events.iter().map(event).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// An error, in the form that both interfaces have for it.
fn refusal(status: u16, kind: &str, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn nothing_here() -> Response {
    refusal(404, "not_found_error", "the stand-in has nothing here")
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(have) => have.contains(text),
        Value::Array(values) => values.iter().any(|value| holds(value, text)),
        Value::Object(fields) => fields.values().any(|value| holds(value, text)),
        _ => false,
    }
}
