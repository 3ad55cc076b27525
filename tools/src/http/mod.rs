//! The tools and the protocol of models over HTTP, for callers on this machine and those whom its owner lets in.
//!
//! | path | what |
//! |---|---|
//! | `/mcp` | the Model Context Protocol, streamable, in both of its ways |
//! | `GET /v1/tools`, `POST /v1/tools/{name}` | the tools with their schemas; a call, its arguments as the body |
//! | `GET /v1/sessions`, `GET /v1/sessions/{key}/history` | the two that are read most, arguments in the query |
//! | `GET /v1/events` | the log as it comes: server-sent events, lines of JSON, batches of CloudEvents |
//! | `POST /v1/webhook`, also `/v1/inbox` and `/v1/agent` | what somebody said in a chat, for an agent to answer; by tokens and signatures of its own |
//! | `GET /livez`, `GET /readyz` | whether the process answers; whether the store is read and takes appends |
//!
//! Every request passes the door (`door`): it must address a host that this is, come from no page of another site, and
//! bring a token, which says who calls. Only `/livez` and `/readyz` need none, and the webhook has its own.
//!
//! Answers are JSON; an error is `{"ok": false, "error": {"code", "message", "field"?, "hint"?}}` with a status: 4xx where the
//! caller can do something about it, 503 with `Retry-After` where the store may take it later, 500 for what a person has to
//! see to.
//!
//! **Reading.** The queries of `/v1/sessions` and of histories are the arguments of `sessions_list` and `sessions_history`,
//! lists with commas: `?limit=20&kinds=main,group`. A key stands in a path percent-encoded: `telegram%3A42`.
//!
//! **The log.** `/v1/events` takes `after` (a cursor, or 0 for the beginning; without it, what comes from now on), `session`
//! and `type` (names with commas, a `*` at the end for any ending), `mask=false` to see secrets, and `limit` for a batch.
//! `Accept` chooses: `text/event-stream` has the cursor as the id of each event and goes on after `Last-Event-ID`,
//! `application/x-ndjson` has an object a line, and `application/cloudevents-batch+json` what is there, with the cursor to go
//! on from in `Annals-Cursor`. Missing events are an event `gap`, an object `{"gap": …}`, a CloudEvent `annals.gap`.
//!
//! **The webhook** takes `{"text" | "message", "channel" | "source", "chat_id", "chatType", "sender", "displayName", "accountId",
//! "threadId", "sessionKey", "wait"}`, all but the text optional, and passes over what else there is. Without a chat it opens
//! a session of its own. It answers `{"ok", "status", "runId", "sessionKey", "chat_id", "output", "silent", "reason"?,
//! "repeated"}`: 200 when the run has ended, 202 while it goes on (`timeout`) or when `wait` is false (`accepted`; then the
//! reply goes to the channel's sink). A call with the same `Idempotency-Key`, or `webhook-id`, asks again for the same run.

mod accept;
mod answer;
mod door;
mod events;
mod mcp;
mod query;
mod routes;
mod settings;
mod tokens;
mod webhook;

use std::net::SocketAddr;

use annals_engine::{Error, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use settings::HttpSettings;

use crate::calls::Calls;
use crate::host::Host;

/// A server that has its address and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    settings: HttpSettings,
}

impl Server {
    /// Takes the address of the settings; of several that its name stands for the first that can be had. Who connects from
    /// here on waits for [`Server::serve`].
    ///
    /// # Errors
    /// `Io` for an address that cannot be had.
    pub async fn bind(settings: HttpSettings) -> Result<Self> {
        let refused = |e| {
            let message = format!("cannot listen on {}", settings.address);
            Error::io(message, e)
                .hint("http.address or --listen names another address; port 0 is any that is free")
        };
        let listener = TcpListener::bind(&settings.address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address, settings })
    }

    /// The address that it has.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where agents on this machine reach the protocol.
    #[must_use]
    pub fn mcp_url(&self) -> String {
        let mut near = self.address;
        if near.ip().is_unspecified() {
            near.set_ip(match near {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{near}/mcp")
    }

    /// Whether it is reached from other machines.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.address.ip().is_loopback()
    }

    /// Answers until `stop` becomes true. Calls that wait for agents are then answered as if their time were up, and
    /// connections have a few seconds to end.
    pub async fn serve(self, host: Host, stop: watch::Receiver<bool>) {
        let calls = Calls::new(stop);
        let routes = routes::routes(host, &self.settings, self.address, &calls);
        accept::serve(self.listener, routes, &calls).await;
    }
}
