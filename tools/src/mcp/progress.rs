//! Progress of a call that lasts, for callers who ask for it: that it goes on, and how long it has lasted.

use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::{Peer, RoleServer};
use tokio::time::Instant;

/// So often a caller who wants to hear of progress does.
const EVERY: Duration = Duration::from_secs(5);

/// Who hears of progress, and under which token.
pub(super) struct Ticks {
    pub(super) token: ProgressToken,
    pub(super) peer: Peer<RoleServer>,
}

/// Tells of progress at the beginning and then from time to time, if anybody wants to hear of it.
pub(super) struct Clockwork {
    ticks: Option<Ticks>,
    begun: Instant,
    next: Instant,
}

impl Clockwork {
    pub(super) fn new(ticks: Option<Ticks>) -> Self {
        let now = Instant::now();
        Self { ticks, begun: now, next: now }
    }

    /// Waits until it is time to tell; for ever where nobody wants to hear.
    pub(super) async fn next(&self) {
        match self.ticks {
            Some(_) => tokio::time::sleep_until(self.next).await,
            None => std::future::pending().await,
        }
    }

    /// Tells how long the call has lasted.
    pub(super) async fn tell(&mut self) {
        self.next += EVERY;
        let Some(Ticks { token, peer }) = &self.ticks else { return };
        let seconds = self.begun.elapsed().as_secs_f64();
        let message = format!("waiting for {} s", self.begun.elapsed().as_secs());
        let told = ProgressNotificationParam::new(token.clone(), seconds).with_message(message);
        if peer.notify_progress(told).await.is_err() {
            self.ticks = None;
        }
    }
}
