//! What wakes a worker: a follower of the log on a thread of its own. It tells that something happened, never what.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use annals_engine::Result;
use annals_engine::engine::Engine;
use annals_engine::store::{Filter, Followed, NamePattern, Read, View};
use tokio::sync::watch;

/// A follower, until it is dropped.
pub(super) struct Wake {
    ends: Arc<AtomicBool>,
}

/// So soon the thread notices that nobody wants it any more.
const NOTICES: Duration = Duration::from_millis(250);

/// What concerns work.
const TYPES: [&str; 6] =
    ["run.requested", "run.kill_requested", "run.finished", "announce.", "delivery.", "watch."];

impl Wake {
    /// Follows a store from now on. The number in the channel grows with what happens.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(super) fn start(engine: &Engine) -> Result<(Self, watch::Receiver<u64>)> {
        let after = engine.store().end(View::Durable)?;
        let (tell, told) = watch::channel(0);
        let ends = Arc::new(AtomicBool::new(false));
        let (engine, seen) = (engine.clone(), Arc::clone(&ends));
        let types = TYPES.iter().map(|name| NamePattern::Prefix((*name).to_owned())).collect();
        let filter = Filter { streams: Vec::new(), types };
        std::thread::spawn(move || {
            let mut read = Read::after(after).filter(filter);
            // A follower whose lines were cut, or that meets an error, begins again at the end; the worker looks by itself
            // from time to time, so that nothing is missed for good.
            while !seen.load(Ordering::SeqCst) {
                if follow(&engine, &read, &seen, &tell).is_err() {
                    std::thread::park_timeout(NOTICES);
                    read.after = engine.store().end(View::Durable).ok().flatten();
                    tell.send_modify(|count| *count += 1);
                }
            }
        });
        Ok((Self { ends }, told))
    }
}

fn follow(
    engine: &Engine,
    read: &Read,
    ends: &AtomicBool,
    tell: &watch::Sender<u64>,
) -> Result<()> {
    let mut follower = engine.store().follow(read.clone())?;
    while !ends.load(Ordering::SeqCst) {
        match follower.next(Some(NOTICES))? {
            Followed::Item(_) => tell.send_modify(|count| *count += 1),
            Followed::CaughtUp(_) | Followed::Quiet => {}
        }
    }
    Ok(())
}

/// The thread notices soon, and is not waited for: it only waits and tells.
impl Drop for Wake {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}
