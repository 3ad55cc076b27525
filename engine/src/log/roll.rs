//! Rolling: a full segment is sealed and the next one made. Both locks are held.

use crate::error::Result;
use crate::format::slot::Durable;
use crate::format::{control, segment_file, segment_path};
use crate::id::{Crc, Seq};

use super::draft::Draft;
use super::recover::durable_at;
use super::segments;
use super::tail::End;
use super::walk::Link;
use super::{AppendSide, SyncSide, Writer};

impl Writer {
    /// Seals the active segment and makes the next one. A roll that stops half way is finished by the next appender.
    ///
    /// # Errors
    /// What the disk says. The lines that were there before are durable once the seal is.
    pub(super) fn roll(&self, append: &mut AppendSide, sync: &mut SyncSide) -> Result<()> {
        let floor: Option<Durable> = sync.lock.read()?;
        // Without a floor nobody knows whether a sync failed.
        let Some(floor) = floor.filter(|floor| !floor.syncing) else {
            return self.settle(append, sync);
        };
        let tail = &append.tail;
        let mut draft = Draft::new(tail, Seq(floor.seq));
        let sealed = control::Sealed {
            lines: tail.end.seq.0 - tail.end.segment.0 + 1,
            bytes: tail.end.offset,
            first_seq: tail.end.segment.0,
            last_seq: tail.end.seq.0,
            first_time: tail.read(&*self.storage, tail.end.segment)?.0.time.to_string(),
            last_time: tail.end.time.to_string(),
        };
        draft.control(control::SEALED, &sealed, draft.control_time(self.clock.now()))?;
        let lines = draft.finish();
        self.write_lines(&mut append.tail, &lines)?;
        if self.sync_here(append, sync).is_err() {
            return self.settle(append, sync);
        }
        self.finish_roll(append, sync)?;
        append.lock.write(&append.tail.end.written())
    }

    /// Makes the successor of a sealed segment.
    pub(super) fn finish_roll(&self, append: &mut AppendSide, sync: &mut SyncSide) -> Result<()> {
        let floor: Durable = sync.lock.read()?.unwrap_or_default();
        let end = append.tail.end;
        let link = Link { seq: end.seq, crc: Some(end.crc) };
        self.roll_into(append, sync, end.seq.next(), link, &floor)?;
        // A guard against mistakes only, and refused by some file systems. Not before the successor is there: until then
        // recovery may have to write the lines again.
        let _ = self.storage.make_read_only(&segment_path(end.segment));
        Ok(())
    }

    /// Makes the segment `first`, whose header follows `link`, and goes on in it.
    pub(super) fn roll_into(
        &self,
        append: &mut AppendSide,
        sync: &SyncSide,
        first: Seq,
        link: Link,
        floor: &Durable,
    ) -> Result<()> {
        self.open_segment(append, sync, first, link, floor, &[])
    }

    /// Makes a segment whose header is followed by these gaps.
    pub(super) fn open_segment(
        &self,
        append: &mut AppendSide,
        sync: &SyncSide,
        first: Seq,
        link: Link,
        floor: &Durable,
        gaps: &[control::Gap],
    ) -> Result<()> {
        let tail = &append.tail;
        let crc = link.crc.unwrap_or(Crc::NONE);
        let previous = (tail.end.segment > Seq::ZERO && tail.end.segment < first).then(|| {
            control::Previous { segment: segment_file(tail.end.segment), crc: crc.to_string() }
        });
        let time = tail.end.time;
        let before = Seq(first.0.saturating_sub(1));
        let start = End { segment: first, offset: 0, seq: before, crc, time };
        let opened = control::Opened {
            store: self.id.to_string(),
            format: control::FORMAT,
            checksum: control::CHECKSUM.to_owned(),
            first_seq: first.0,
            previous,
            writer: self.who.clone(),
        };
        let mut draft = Draft::new(tail, Seq(floor.seq));
        draft.end = start;
        draft.control(control::OPENED, &opened, draft.control_time(self.clock.now()))?;
        for gap in gaps {
            draft.control(control::GAP, gap, draft.control_time(self.clock.now()))?;
        }
        let lines = draft.finish();
        let file = segments::create(&*self.storage, first, lines.bytes())?;
        append.tail.begin_segment(Link { seq: before, crc: Some(crc) }, file, start);
        append.tail.apply_all(&lines);
        sync.lock.write(&durable_at(&append.tail.end, floor.halts))
    }
}
