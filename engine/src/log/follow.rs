//! Following: read up to the watermark, then wait, then look again. In the process a bell wakes, from other processes
//! file notification rings the same bell, and a poll stands behind both, so that a notification that is lost, merged or
//! doubled loses nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::store::{Cursor, Follow, Followed, Read};
use crate::watch::Watch;

use super::reader::Reader;
use super::{LogView, Notice};

/// How long a follower sleeps at most before it looks again.
const POLL: Duration = Duration::from_millis(250);

/// A follower of the log.
#[derive(Debug)]
pub(super) struct Follower {
    view: Arc<LogView>,
    reader: Reader,
    caught_up: bool,
    /// Kept for as long as this follower lives.
    _watch: Option<Watch>,
}

impl Follower {
    pub(super) fn new(view: Arc<LogView>, read: Read) -> Result<Self> {
        let watch = watch(&view);
        let reader = Reader::new(Arc::clone(&view), read)?;
        Ok(Self { view, reader, caught_up: false, _watch: watch })
    }
}

/// Lets changes that other processes make ring the bell.
fn watch(view: &Arc<LogView>) -> Option<Watch> {
    let root = view.storage.real_path("")?;
    let weak = Arc::downgrade(view);
    let ring = move || {
        if let Some(view) = weak.upgrade() {
            view.marks.ring();
        }
    };
    match Watch::folder(&root, ring) {
        Ok(watch) => Some(watch),
        Err(e) => {
            view.notice(&Notice::Polling(e.to_string()));
            None
        }
    }
}

impl Follow for Follower {
    fn next(&mut self, timeout: Option<Duration>) -> Result<Followed> {
        // A time that no clock can show is for ever.
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let heard = self.view.marks.rung();
            if let Some((item, _)) = self.reader.next_item()? {
                self.caught_up = false;
                return Ok(Followed::Item(item));
            }
            if !self.caught_up {
                self.caught_up = true;
                return Ok(Followed::CaughtUp(self.reader.cursor()));
            }
            let left = end.map_or(POLL, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(Followed::Quiet);
            }
            self.view.marks.wait(heard, left.min(POLL));
        }
    }

    fn cursor(&self) -> Option<Cursor> {
        self.reader.cursor()
    }
}
