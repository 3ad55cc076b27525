//! Messages as lines. What is no JSON is passed over, as other servers do; a line that is longer than
//! `LINE_MAX` is dropped and the next one read.

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// The longest line, in bytes: what a spawn with all its attachments takes, and more.
const LINE_MAX: usize = 16 << 20;

/// A connection of lines.
pub(super) struct Lines<R: AsyncRead, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, R, W>,
    begun: bool,
    end: watch::Sender<bool>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Reads from one stream and writes to the other; tells when the first has ended.
    pub(super) fn new(read: R, write: W, end: watch::Sender<bool>) -> Self {
        let lines = AsyncRwTransport::new_server(read, write).with_max_line_length(LINE_MAX);
        Self { lines, begun: false, end }
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
        self.lines.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.lines.receive().await;
            let Some(message) = message else {
                self.end.send_replace(true);
                return None;
            };
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
