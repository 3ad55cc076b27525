//! Messages as lines. What is no JSON is passed over, as other servers do; a line that is longer than
//! `LINE_MAX` is dropped and the next one read. The end of the input is passed on when what was asked before it is answered.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

/// The longest line, in bytes: what a spawn with all its attachments takes, and more.
const LINE_MAX: usize = 16 << 20;

/// So long answers are waited for after the end of the input: who waits is told that all is to end, and reading takes a moment.
const ANSWERS: Duration = Duration::from_secs(5);

/// A connection of lines.
pub(super) struct Lines<R: AsyncRead, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, R, W>,
    begun: bool,
    end: watch::Sender<bool>,
    open: Arc<Open>,
    /// Until when answers are waited for, once the input has ended.
    ended: Option<Instant>,
}

/// The requests that are not answered, by id: of two with the same id one is answered.
#[derive(Default)]
struct Open {
    ids: Mutex<HashSet<RequestId>>,
    answered: Notify,
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what was received.
    fn received(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            RxJsonRpcMessage::<RoleServer>::Request(request) => {
                self.ids().insert(request.id.clone());
            }
            // What was given up is never answered.
            RxJsonRpcMessage::<RoleServer>::Notification(told) => {
                if let ClientNotification::CancelledNotification(told) = &told.notification
                    && let Some(id) = &told.params.request_id
                {
                    self.close(id);
                }
            }
            _ => {}
        }
    }

    /// Waits for this answer no more.
    fn close(&self, id: &RequestId) {
        self.ids().remove(id);
        self.answered.notify_one();
    }

    /// Waits until all are answered.
    async fn answered(&self) {
        while !self.ids().is_empty() {
            self.answered.notified().await;
        }
    }
}

/// Which request a message answers.
fn answers(message: &TxJsonRpcMessage<RoleServer>) -> Option<RequestId> {
    match message {
        TxJsonRpcMessage::<RoleServer>::Response(answer) => Some(answer.id.clone()),
        TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.clone(),
        _ => None,
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads from one stream and writes to the other; tells when the first has ended.
    pub(super) fn new(read: R, write: W, end: watch::Sender<bool>) -> Self {
        let lines = AsyncRwTransport::new_server(read, write).with_max_line_length(LINE_MAX);
        Self { lines, begun: false, end, open: Arc::default(), ended: None }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (answers, open) = (answers(&item), Arc::clone(&self.open));
        let sending = self.lines.send(item);
        async move {
            let sent = sending.await;
            if let Some(id) = answers {
                open.close(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Whoever is behind reads no more of what is still to be told once it is told of the end.
            if let Some(until) = self.ended {
                drop(timeout_at(until, self.open.answered()).await);
                return None;
            }
            let Some(message) = self.lines.receive().await else {
                self.end.send_replace(true);
                self.ended = Some(Instant::now() + ANSWERS);
                continue;
            };
            self.open.received(&message);
            self.begun |= matches!(message, RxJsonRpcMessage::<RoleServer>::Request(_));
            // Before the first request there is nothing that a notification or an answer could be about.
            if self.begun {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.lines.close().await
    }
}
