//! Following: read up to the watermark, then wait, then look again. The write itself wakes, by file notification,
//! whichever process made it; where there is no notification, a bell that this process's appends ring. A poll stands
//! behind both, so that one that is lost, merged or doubled loses nothing.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::format::{LOG_DIR, SYNC_LOCK};
use crate::store::{Cursor, Follow, Followed, Read, View};
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
    wake: Box<dyn Wake>,
}

/// What wakes a follower. It was armed before the follower looked.
pub(super) trait Wake: fmt::Debug + Send {
    /// Waits until there may be something new, or for so long. `heard` is how often the bell had rung before the look.
    fn wait(&mut self, heard: u64, timeout: Duration);
}

impl Follower {
    pub(super) fn new(view: Arc<LogView>, read: Read) -> Result<Self> {
        let wake = waker(&view, read.view);
        Self::woken(view, read, wake)
    }

    /// A follower that is woken by something else.
    pub(super) fn woken(view: Arc<LogView>, read: Read, wake: Box<dyn Wake>) -> Result<Self> {
        let reader = Reader::new(Arc::clone(&view), read)?;
        Ok(Self { view, reader, caught_up: false, wake })
    }
}

/// What tells of changes in a view: the write of a line, or of the slot that says how much is durable.
fn waker(view: &Arc<LogView>, which: View) -> Box<dyn Wake> {
    let watch = match (which, view.storage.real_path("")) {
        (_, None) => return Box::new(Bell(Arc::clone(view))),
        (View::Durable, Some(root)) => Watch::file(&root, SYNC_LOCK),
        (View::Written, Some(root)) => Watch::folder(&root.join(LOG_DIR)),
    };
    match watch {
        Ok(watch) => Box::new(watch),
        Err(e) => {
            view.notice(&Notice::Polling(e.to_string()));
            Box::new(Bell(Arc::clone(view)))
        }
    }
}

impl Wake for Watch {
    fn wait(&mut self, _: u64, timeout: Duration) {
        Self::wait(self, timeout);
    }
}

#[derive(Debug)]
struct Bell(Arc<LogView>);

impl Wake for Bell {
    fn wait(&mut self, heard: u64, timeout: Duration) {
        self.0.marks.wait(heard, timeout);
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
            self.wake.wait(heard, left.min(POLL));
        }
    }

    fn cursor(&self) -> Option<Cursor> {
        self.reader.cursor()
    }
}
