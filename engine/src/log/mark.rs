//! Marks: a line that carries nothing but a stamp, so that the log itself says that the line before it is durable. A
//! process that lives long writes one when nothing was appended for a while.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::error::Result;
use crate::format::control;

use super::draft::Draft;
use super::{Log, Writer, locked};

/// How long nothing must have been appended.
const QUIET: Duration = Duration::from_millis(250);

impl Log {
    /// Writes a mark if the last line is none, and syncs it. On return every event of the log is covered by a stamp
    /// that is itself on stable storage, so that no power loss can make one look unacknowledged.
    ///
    /// # Errors
    /// What appending says.
    pub fn mark(&self) -> Result<()> {
        self.writer()?.mark()
    }

    /// Marks after each quiet spell, on a thread that ends with the log.
    pub(super) fn mark_when_quiet(&self) {
        let Some(writer) = &self.writer else { return };
        let weak = Arc::downgrade(writer);
        let loops = move || {
            let mut marked = u64::MAX;
            while let Some(writer) = weak.upgrade() {
                let heard = writer.view.marks.rung();
                let quiet = !writer.view.marks.wait(heard, QUIET);
                if quiet && heard != marked {
                    // The next append reports what keeps the log from being written.
                    let _ = writer.mark();
                    marked = writer.view.marks.rung();
                }
            }
        };
        // Without the thread stamps come later, with the next append.
        let _ = thread::Builder::new().name("annals-mark".into()).spawn(loops);
    }
}

impl Writer {
    fn mark(&self) -> Result<()> {
        let mut append = locked(&self.append);
        let held = append.lock.acquire()?;
        let durable = self.make_current(&mut append)?;
        if append.tail.marked {
            return Ok(());
        }
        let now = self.clock.now();
        let mut sync = locked(&self.sync);
        let also_held = sync.lock.acquire()?;
        if durable < append.tail.end.seq {
            self.settle(&mut append, &mut sync)?;
        }
        let mut draft = Draft::new(&append.tail, append.tail.end.seq);
        draft.control(control::MARK, &control::Mark {}, draft.control_time(now))?;
        let lines = draft.finish();
        self.write_lines(&mut append.tail, &lines)?;
        append.lock.write(&lines.end.written())?;
        let synced = self.sync_here(&append, &sync);
        if synced.is_err() {
            self.settle(&mut append, &mut sync)?;
        }
        self.view.marks.raise(append.tail.end.seq, append.tail.end.seq);
        drop(also_held);
        drop(held);
        Ok(())
    }
}
