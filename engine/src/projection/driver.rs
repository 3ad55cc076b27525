//! The one place that keeps a fold going for all who ask: restored from a snapshot, caught up when somebody asks, given
//! out as something that no longer changes.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::store::{EventStore, Snapshot, View};

use super::{Digestible, Folded, Saved, replay};

/// A fold of the durable events of one store.
///
/// What it gives out is shared, not copied. It is brought up to date when somebody asks, and changed in place if nobody
/// has kept what was given out before; else the projection's own clone decides what is copied.
#[derive(Debug, Default)]
pub struct Driver<P> {
    folded: Mutex<Option<Arc<Folded<P>>>>,
}

impl<P: Digestible + Saved + Clone> Driver<P> {
    /// A fold that begins when it is first asked for.
    #[must_use]
    pub const fn new() -> Self {
        Self { folded: Mutex::new(None) }
    }

    /// The state as of the last durable event. It must be asked for with the same store each time.
    ///
    /// # Errors
    /// Whatever reading meets; damage is no error but a gap. The next call goes on behind what was read.
    pub fn published(&self, store: &dyn EventStore) -> Result<Arc<Folded<P>>> {
        let mut kept = self.folded.lock().unwrap_or_else(PoisonError::into_inner);
        // A fold that panicked is not gone on with: until it is put back there is none.
        let mut folded = kept.take().unwrap_or_else(|| Arc::new(replay::restored(store)));
        let caught_up = replay::catch_up(&mut folded, store, View::Durable);
        *kept = Some(Arc::clone(&folded));
        caught_up.map(|()| folded)
    }

    /// The snapshot of the state as of the last durable event; `None` when there is no event.
    ///
    /// # Errors
    /// What [`Driver::published`] says.
    pub fn snapshot(&self, store: &dyn EventStore) -> Result<Option<Snapshot>> {
        Ok(self.published(store)?.snapshot())
    }
}
