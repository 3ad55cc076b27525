//! Calls from outside, on threads: what is called blocks as long as it does, is told when nobody waits for it any more, and
//! takes none of the threads that everything else goes on with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annals_engine::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// So many calls wait for agents at a time. One more is told so: it must not wait for those that wait.
const WAITS_MAX: usize = 128;

/// So many look at the store at a time; further ones wait for their turn, which comes.
const LOOKS_MAX: usize = 32;

/// So many follow the log at a time.
const FEEDS_MAX: usize = 64;

/// How long what is called may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// No longer than reads and an append.
    Shortly,
    /// As long as agents work.
    Long,
}

/// The threads for calls of one process. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    waits: Arc<Semaphore>,
    looks: Arc<Semaphore>,
    feeds: Arc<Semaphore>,
    /// Becomes true when all is to end: calls that wait are then answered as if their time were up.
    stop: watch::Receiver<bool>,
}

/// What is being called. When it is dropped, what is called is told that nobody waits for it.
#[derive(Debug)]
pub(crate) struct Call<T> {
    gone: Arc<AtomicBool>,
    work: JoinHandle<Result<T>>,
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<T> Call<T> {
    /// Tells what is called that its time is up; it answers all the same.
    pub(crate) fn give_up(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    /// Waits for its end. Nothing is lost when the waiting is.
    ///
    /// # Errors
    /// What it says; `Unavailable` when its thread broke off.
    pub(crate) async fn done(&mut self) -> Result<T> {
        (&mut self.work).await.unwrap_or_else(|e| {
            Err(Error::new(ErrorKind::Unavailable, "the call broke off")
                .hint("this is a fault of the server; what was asked for before it stands")
                .caused_by(e))
        })
    }
}

impl Calls {
    /// Threads for calls, until `stop` becomes true.
    pub(crate) fn new(stop: watch::Receiver<bool>) -> Self {
        let of = |most| Arc::new(Semaphore::new(most));
        Self { waits: of(WAITS_MAX), looks: of(LOOKS_MAX), feeds: of(FEEDS_MAX), stop }
    }

    /// Begins what may block, when there is room for it. It is given the flag that says whether nobody waits for it.
    ///
    /// # Errors
    /// `Busy` for what would wait for agents, when as many calls do as may.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        lasts: Lasts,
        what: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static,
    ) -> Result<Call<T>> {
        let permit = match lasts {
            Lasts::Shortly => Arc::clone(&self.looks).acquire_owned().await.ok(),
            Lasts::Long => Some(self.place(&self.waits, WAITS_MAX, "wait for agents")?),
        };
        let gone = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&gone);
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            what(&flag)
        });
        Ok(Call { gone, work })
    }

    /// Does what may block, to its end.
    ///
    /// # Errors
    /// As [`Calls::begin`] and [`Call::done`].
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        lasts: Lasts,
        what: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let mut call = self.begin(lasts, what).await?;
        tokio::select! {
            done = call.done() => return done,
            () = self.stopped() => call.give_up(),
        }
        call.done().await
    }

    /// Does what lasts no longer than a read.
    ///
    /// # Errors
    /// As [`Calls::call`].
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        what: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.begin(Lasts::Shortly, |_| what()).await?.done().await
    }

    /// Does what follows the log, on a thread of its own, until it has nothing more to do; it sees for itself that it is to
    /// end, by what it is given.
    ///
    /// # Errors
    /// `Busy` when as many follow as may; `Io` when there is no thread.
    pub(crate) fn feed(
        &self,
        what: impl FnOnce(&watch::Receiver<bool>) + Send + 'static,
    ) -> Result<()> {
        let permit = self.place(&self.feeds, FEEDS_MAX, "follow the log")?;
        let stop = self.stop.clone();
        let thread = std::thread::Builder::new().name("feed".to_owned());
        let started = thread.spawn(move || {
            let _permit = permit;
            what(&stop);
        });
        started.map(drop).map_err(|e| Error::io("cannot start a thread to follow the log", e))
    }

    fn place(
        &self,
        among: &Arc<Semaphore>,
        most: usize,
        what: &str,
    ) -> Result<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(among).try_acquire_owned().map_err(|_| {
            Error::new(ErrorKind::Busy, format!("{most} callers {what} already"))
                .hint("ask again when one of them has ended")
        })
    }

    /// Waits until all is to end.
    pub(crate) async fn stopped(&self) {
        // Nobody who could say so any more means the same.
        drop(self.stop.clone().wait_for(|stop| *stop).await);
    }

    /// Waits until nobody waits for agents any more.
    pub(crate) async fn at_rest(&self) {
        let all = u32::try_from(WAITS_MAX).unwrap_or(u32::MAX);
        drop(self.waits.acquire_many(all).await);
    }
}
