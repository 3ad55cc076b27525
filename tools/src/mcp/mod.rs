//! The tools and the sessions over the Model Context Protocol, in both of its ways: revisions up to 2025-11-25, which begin
//! with a handshake, and from 2026-07-28 on, where every request says for itself what it is.
//!
//! | module | what |
//! |---|---|
//! | `handler` | what is answered to each request |
//! | `call` | a call of a tool: on a thread of its own, with progress, until its end or until nobody waits for it |
//! | `progress` | what is told meanwhile |
//! | `resource` | sessions and runs as resources, and their names |
//! | `updates` | who wants to hear of which resource, and the follower of the log that tells them |
//! | `lines` | messages as lines, as on standard input and output |
//!
//! Who calls is bound where a connection begins; no argument says it. What fails in a
//! tool is the tool's answer; errors of the protocol are for requests that name nothing that there is.

mod call;
mod handler;
mod lines;
mod progress;
mod resource;
mod updates;

use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub use handler::Handler;

use crate::calls::Calls;
use crate::host::{Host, Identity};
use updates::Bell;

/// What serves the protocol in one process: any number of connections over one store.
#[derive(Clone, Debug)]
pub struct Service {
    host: Host,
    calls: Calls,
    bell: Arc<Bell>,
}

impl Service {
    /// Serves a store on these threads, until they are to end.
    pub(crate) fn new(host: Host, calls: Calls) -> Self {
        let bell = Arc::new(Bell::new(host.clone()));
        Self { host, calls, bell }
    }

    /// What answers on a connection of one caller.
    #[must_use]
    pub fn bound_to(&self, who: Identity) -> Handler {
        Handler::new(self.clone(), who)
    }
}

/// Serves one caller on standard input and output until the input ends. Nothing else may write to standard output.
///
/// # Errors
/// As [`serve`].
pub async fn serve_stdio(host: Host, who: Identity) -> Result<(), Box<ServerInitializeError>> {
    let (read, write) = rmcp::transport::io::stdio_pipes();
    serve(host, who, read, write).await
}

/// Serves one caller on two streams of lines until the first of them ends.
///
/// # Errors
/// What went wrong at the beginning of the protocol; a stream that ends is no error.
pub async fn serve<R, W>(
    host: Host,
    who: Identity,
    read: R,
    write: W,
) -> Result<(), Box<ServerInitializeError>>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (end, ends) = watch::channel(false);
    let handler = Service::new(host, Calls::new(ends)).bound_to(who);
    match handler.serve(lines::Lines::new(read, write, end)).await {
        Ok(running) => {
            // How the loop over messages ended: at the end of its input, or not at all.
            drop(running.waiting().await);
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Box::new(error)),
    }
}
