//! What comes out of the pipes after the outcome is known, written by processes that the agent left behind.

use std::time::Duration;

use annals_engine::session::event::OutputStream;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::Heard;
use super::lines::take_text;
use super::pieces::EVERY;

/// So long it is listened to; then the pipes are closed.
const TIME_MAX: Duration = Duration::from_secs(60);
/// So many bytes of each stream are told; then its pipe is closed.
const BYTES_MAX: usize = 64 << 10;

/// Tells what comes late until nothing can come any more, or the time is over.
pub(super) async fn listen(
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    heard: mpsc::Sender<Heard>,
) {
    let until = Instant::now() + TIME_MAX;
    let both = async {
        tokio::join!(
            stream(stdout, OutputStream::Stdout, &heard),
            stream(stderr, OutputStream::Stderr, &heard)
        )
    };
    // What comes after that time is not heard.
    drop(timeout_at(until, both).await);
}

async fn stream(
    pipe: Option<impl AsyncRead + Unpin>,
    stream: OutputStream,
    heard: &mpsc::Sender<Heard>,
) {
    let Some(mut pipe) = pipe else { return };
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 8 << 10];
    let mut told = 0;
    while told < BYTES_MAX {
        let Ok(count @ 1..) = pipe.read(&mut chunk).await else { break };
        bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let text = take_text(&mut bytes);
        told += count;
        if !text.is_empty() && heard.send(Heard::Output { stream, text, late: true }).await.is_err()
        {
            return;
        }
        sleep(EVERY).await;
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.is_empty() {
        // Nobody listening is no loss: nothing depends on it.
        drop(heard.send(Heard::Output { stream, text, late: true }).await);
    }
}
