//! What blocks, on threads for that: a call lasts as long as its tool does, and is told when nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annals_engine::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, watch};

/// So many calls are at work at a time, those that wait for agents among them; further ones wait for their turn.
const CALLS_MAX: usize = 128;

/// So many looks that last no longer than a read.
const LOOKS_MAX: usize = 32;

/// So many follow the log at a time.
const FEEDS_MAX: usize = 64;

/// The threads of a server.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    calls: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    feeds: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

/// Sets a flag when it is dropped.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Calls {
    pub(super) fn new(stop: watch::Receiver<bool>) -> Self {
        let (calls, looks) = (Semaphore::new(CALLS_MAX), Semaphore::new(LOOKS_MAX));
        let feeds = Arc::new(Semaphore::new(FEEDS_MAX));
        Self { calls: Arc::new(calls), looks: Arc::new(looks), feeds, stop }
    }

    /// Does what may last. The flag is set when whoever asked has gone, or the server is to end.
    ///
    /// # Errors
    /// What it says; `Unavailable` when its thread broke off.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        what: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let gone = SetOnDrop(Arc::default());
        let flag = Arc::clone(&gone.0);
        let mut work = std::pin::pin!(on_a_thread(&self.calls, move || what(&flag)));
        let mut stop = self.stop.clone();
        tokio::select! {
            done = &mut work => return done,
            () = stopped(&mut stop) => gone.0.store(true, Ordering::SeqCst),
        }
        work.await
    }

    /// Does what follows the log, on a thread of its own, until it has nothing more to do; it sees for itself that it is to
    /// end, by what it is given.
    ///
    /// # Errors
    /// `Busy` when as many follow as may; `Io` when there is no thread.
    pub(super) fn feed(
        &self,
        what: impl FnOnce(&watch::Receiver<bool>) + Send + 'static,
    ) -> Result<()> {
        let permit = Arc::clone(&self.feeds).try_acquire_owned().map_err(|_| {
            Error::new(ErrorKind::Busy, format!("{FEEDS_MAX} callers follow the log already"))
        })?;
        let stop = self.stop.clone();
        let thread = std::thread::Builder::new().name("feed".to_owned());
        let started = thread.spawn(move || {
            let _permit = permit;
            what(&stop);
        });
        started.map(drop).map_err(|e| Error::io("cannot start a thread to follow the log", e))
    }

    /// Does what lasts no longer than a read.
    ///
    /// # Errors
    /// As [`Calls::call`].
    pub(super) async fn look<T: Send + 'static>(
        &self,
        what: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        on_a_thread(&self.looks, what).await
    }
}

async fn on_a_thread<T: Send + 'static>(
    permits: &Arc<Semaphore>,
    what: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let permit = Arc::clone(permits).acquire_owned().await;
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        what()
    });
    done.await.unwrap_or_else(|e| {
        Err(Error::new(ErrorKind::Unavailable, "the call broke off")
            .hint("this is a fault of the server; what was asked for before it stands")
            .caused_by(e))
    })
}

/// Waits until the server is to end.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Nobody who could say so any more means the same.
    drop(stop.wait_for(|stop| *stop).await);
}
