//! What a writer knows of the log: where it ends, the version of each stream, and where each id is. It is a fold of the
//! lines, caught up with what other processes append and thrown away when lines that it has seen are cut.

use std::collections::HashSet;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::slot::{Durable, Written};
use crate::format::{self, Line, TRAILER, control};
use crate::id::{Crc, EventId, Seq, StoreId, Version};
use crate::storage::{Access, File, FileId, Storage, read_full};
use crate::store::Record;

use super::draft::Lines;
use super::known::Known;
use super::segments;
use super::visit::{At, SegmentVisit};
use super::walk::{Break, Link, Span, Step, Walk, is_seal};

/// The most that is read of what others wrote without looking at the segments anew.
const DELTA_MAX: u64 = 8 << 20;

/// The end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// The first position of the segment.
    pub(super) segment: Seq,
    /// The length of the segment.
    pub(super) offset: u64,
    /// The last position.
    pub(super) seq: Seq,
    /// The checksum of the last line.
    pub(super) crc: Crc,
    /// The time of the last line.
    pub(super) time: Timestamp,
}

impl End {
    pub(super) const fn written(&self) -> Written {
        Written { segment: self.segment.0, offset: self.offset, seq: self.seq.0, check: self.crc.0 }
    }

    pub(super) fn is(&self, written: &Written) -> bool {
        self.written() == *written
    }
}

/// The knowledge of one writer.
#[derive(Debug)]
pub(super) struct Tail {
    store: StoreId,
    pub(super) end: End,
    /// What the first line of the active segment follows.
    pub(super) before: Link,
    /// What the first line of the next segment would follow.
    after: Link,
    /// The active segment; `None` while it has no file that is open here.
    pub(super) file: Option<Arc<dyn File>>,
    /// Which file that is.
    pub(super) file_id: Option<FileId>,
    pub(super) sealed: bool,
    /// Whether the last line is a mark.
    pub(super) marked: bool,
    known: Known,
}

impl Tail {
    /// Knows nothing yet.
    pub(super) fn new(storage: &Arc<dyn Storage>, store: StoreId) -> Self {
        let end = End {
            segment: Seq::ZERO,
            offset: 0,
            seq: Seq::ZERO,
            crc: Crc::NONE,
            time: Timestamp::EPOCH,
        };
        Self {
            store,
            end,
            before: Link::START,
            after: Link::START,
            file: None,
            file_id: None,
            sealed: false,
            marked: false,
            known: Known::new(Arc::clone(storage), store),
        }
    }

    /// The id of the log's own line at a position: the same on every attempt to write it.
    pub(super) fn control_id(&self, seq: Seq) -> EventId {
        EventId::derived("log", &self.store.to_string(), &seq.to_string())
    }

    /// The version of a stream.
    pub(super) fn version(&self, stream: &str) -> Result<Version> {
        self.known.version(stream)
    }

    /// Where an id stands.
    pub(super) fn position(&self, id: EventId) -> Result<Option<Seq>> {
        self.known.position(id)
    }

    /// What is known of the content.
    pub(super) const fn known(&self) -> &Known {
        &self.known
    }

    /// What is known of the content, to exchange how it is kept.
    pub(super) const fn known_mut(&mut self) -> &mut Known {
        &mut self.known
    }

    /// Reads on from where this knowledge ends, as far as the chain leads. The active segment is followed up to its
    /// first break; in those before it breaks are passed over, for nothing is decided by them any more.
    ///
    /// # Errors
    /// `Ok(false)` is no error: lines that were known are no longer there, so that all must be learned anew.
    pub(super) fn catch_up(&mut self, storage: &dyn Storage) -> Result<bool> {
        let segments = segments::list(storage)?;
        if !self.approach(storage, &segments)? {
            return Ok(false);
        }
        if !segments.is_empty() {
            self.read_active(storage)?;
        }
        Ok(true)
    }

    /// Catches up as far as nothing of the active segment has to be read, of the store with these segments. What is left
    /// is shown to [`Tail::follow`].
    ///
    /// # Errors
    /// As [`Tail::catch_up`].
    pub(super) fn approach(&mut self, storage: &dyn Storage, segments: &[Seq]) -> Result<bool> {
        let Some(active) = segments.last().copied() else { return Ok(self.end.seq == Seq::ZERO) };
        if self.end.segment > Seq::ZERO {
            if !self.is_still_there(storage)? {
                return Ok(false);
            }
            let next = segments.iter().copied().find(|first| *first > self.end.segment);
            self.read_on(storage, next)?;
        } else if let Some(end) = self.known.take_heads(segments) {
            self.end = end;
            self.after = Link { seq: end.seq, crc: Some(end.crc) };
            self.sealed = true;
        }
        let behind = self.end.segment;
        for (i, first) in segments.iter().enumerate().filter(|(_, first)| **first > behind) {
            self.enter(storage, *first)?;
            self.read_on(storage, segments.get(i + 1).copied())?;
        }
        Ok(self.end.segment <= active)
    }

    /// Learns the whole log as if a segment `next` followed it: breaks in the active segment are passed over too.
    pub(super) fn learn_before(&mut self, storage: &dyn Storage, next: Seq) -> Result<()> {
        let segments = segments::list(storage)?;
        for (i, first) in segments.iter().enumerate() {
            self.enter(storage, *first)?;
            self.read_on(storage, Some(segments.get(i + 1).copied().unwrap_or(next)))?;
        }
        Ok(())
    }

    /// Whether the last line that is known is where it was. Where another file has come in the place of the one that is
    /// open, that one is opened: what is written to a file without a name is lost.
    fn is_still_there(&mut self, storage: &dyn Storage) -> Result<bool> {
        let Ok(file) = segments::open(storage, self.end.segment, Access::Read) else {
            return Ok(false);
        };
        if self.file.is_some() && file.id().ok() != self.file_id {
            self.open_file(Self::to_write(storage, self.end.segment)?);
        }
        if self.end.offset == 0 {
            return Ok(true);
        }
        trailer_is(storage, &*file, self.end.segment, self.end.offset, self.end.crc)
    }

    fn enter(&mut self, storage: &dyn Storage, first: Seq) -> Result<()> {
        let before = Seq(first.0.saturating_sub(1));
        let known = self.after.seq == before;
        self.before = if known { self.after } else { Link { seq: before, crc: None } };
        self.open_file(Self::to_write(storage, first)?);
        self.end = End { segment: first, offset: 0, seq: before, ..self.end };
        self.sealed = false;
        self.known.begin(first, 0, self.before);
        Ok(())
    }

    fn to_write(storage: &dyn Storage, segment: Seq) -> Result<Arc<dyn File>> {
        segments::open(storage, segment, Access::Write).or_else(|_| {
            // A sealed segment is read-only.
            segments::open(storage, segment, Access::Read)
        })
    }

    fn open_file(&mut self, file: Arc<dyn File>) {
        self.file_id = file.id().ok();
        self.file = Some(file);
    }

    /// Reads on in the active segment up to the end that the append slot names, from the file that is open. Returns
    /// whether the unbroken chain leads there; else it is known as far as the chain leads.
    pub(super) fn read_to(&mut self, written: &Written) -> bool {
        let here = written.segment == self.end.segment.0 && !self.sealed && self.end.offset > 0;
        let count = written.offset.checked_sub(self.end.offset).filter(|n| *n <= DELTA_MAX);
        let (Some(file), Some(count)) = (self.file.as_ref().filter(|_| here), count) else {
            return false;
        };
        let mut bytes = vec![0; usize::try_from(count).unwrap_or_default()];
        let base = self.end.offset;
        if !read_full(&**file, &mut bytes, base).is_ok_and(|got| got == bytes.len()) {
            return false;
        }
        let link = Link { seq: self.end.seq, crc: Some(self.end.crc) };
        let mut walk = Walk::new(&bytes, base, link, Seq::ZERO);
        while let Some((span, line)) = walk.next_unbroken() {
            self.apply(span, &line);
        }
        self.after = walk.link();
        self.end.is(written)
    }

    /// Reads on in a segment to its end, by its indexes and by its lines; in the active one by its indexes alone.
    fn read_on(&mut self, storage: &dyn Storage, next: Option<Seq>) -> Result<()> {
        let segment = self.end.segment;
        if self.end.offset == 0 {
            self.take_indexes(segment, next);
        }
        let Some(next) = next else { return Ok(()) };
        let base = self.end.offset;
        let visit = SegmentVisit {
            store: self.store,
            first: segment,
            next: Some(next),
            durable: Seq::ZERO,
        };
        let start = At { offset: base, link: self.link(), ahead: 0 };
        if self.end.seq.next() == next && base > 0 {
            self.known.close(&self.end, self.sealed);
            return Ok(());
        }
        let bytes = segments::map(storage, segment)?;
        let reached = visit.steps(storage, &bytes, start, &mut |step| {
            match step {
                Step::Line(span, line) => self.apply(span, line),
                Step::Break(found) => self.pass_over(&found),
            }
            Ok(true)
        })?;
        self.after = reached.at.link;
        self.known.close(&End { offset: bytes.len() as u64, ..self.end }, self.sealed);
        Ok(())
    }

    /// Takes over what indexes know of a segment from its start.
    fn take_indexes(&mut self, segment: Seq, next: Option<Seq>) {
        let taken = match next {
            Some(next) => self.known.take_whole(segment, next),
            None => {
                let mut taken = None;
                let mut at = (0, self.before);
                while let Some(file) = &self.file
                    && let Some(end) = self.known.take_next(segment, &**file, at.0, at.1)
                {
                    at = (end.offset, Link { seq: end.seq, crc: Some(end.crc) });
                    taken = Some(end);
                }
                taken
            }
        };
        if let Some(end) = taken {
            self.end = end;
            let crc = (!self.known.last_is_broken()).then_some(end.crc);
            self.after = Link { seq: end.seq, crc };
            self.known.begin(segment, end.offset, self.after);
            self.sealed = self.known.last_is_sealed();
        }
    }

    /// Reads the lines of the active segment behind those that are known, as far as the chain leads.
    fn read_active(&mut self, storage: &dyn Storage) -> Result<()> {
        let (first, base) = (self.end.segment, self.end.offset);
        let file = segments::open(storage, first, Access::Read)?;
        let bytes = segments::read_from(storage, first, &*file, base)?;
        let visit = SegmentVisit { store: self.store, first, next: None, durable: Seq::ZERO };
        let mut walk = Walk::new(&bytes, base, self.link(), Seq::ZERO);
        while let Some((span, line)) = walk.next_unbroken() {
            if span.offset == 0 && visit.header_fault(storage, &line)?.is_some() {
                return Ok(());
            }
            self.apply(span, &line);
        }
        self.after = walk.link();
        Ok(())
    }

    /// What the line behind the last one that is known has to follow.
    fn link(&self) -> Link {
        let crc = if self.end.offset == 0 { self.before.crc } else { Some(self.end.crc) };
        Link { seq: self.end.seq, crc }
    }

    /// Learns a line of the unbroken chain of the active segment, if it is the one behind those that are known.
    pub(super) fn follow(&mut self, span: Span, line: &Line<'_>) {
        if span.offset == self.end.offset && line.fields.seq == self.end.seq.next() {
            self.apply(span, line);
            self.after = self.link();
        }
    }

    /// Goes on in a segment that was just made; none of its lines is known yet.
    pub(super) fn begin_segment(&mut self, before: Link, file: Arc<dyn File>, start: End) {
        self.before = before;
        self.open_file(file);
        self.known.close(&self.end, self.sealed);
        self.known.begin(start.segment, start.offset, before);
        self.end = start;
        self.sealed = false;
    }

    /// Learns lines that were just written behind the end.
    pub(super) fn apply_all(&mut self, lines: &Lines) {
        debug_assert!(lines.are_spelled(), "what is learned is not what was written");
        let base = self.end.offset;
        for (offset, len, line) in lines.listed() {
            self.known.add(Span { offset: base + offset, len }, line);
            self.sealed = line.kind == control::SEALED && line.stream == control::STREAM;
            self.marked = line.kind == control::MARK;
        }
        self.end = lines.end;
        self.after = Link { seq: self.end.seq, crc: Some(self.end.crc) };
    }

    /// Learns a line of the segment that the tail is in.
    pub(super) fn apply(&mut self, span: Span, line: &Line<'_>) {
        let fields = &line.fields;
        let segment = self.end.segment;
        self.known.add(span, fields.into());
        self.sealed = is_seal(line);
        self.marked = fields.kind == control::MARK;
        self.end =
            End { segment, offset: span.end(), seq: fields.seq, crc: line.crc, time: fields.time };
    }

    fn pass_over(&mut self, found: &Break) {
        self.known.pass_over(found);
        self.end.offset = self.end.offset.max(found.offset + found.bytes);
        if let Some((_, last)) = found.seqs {
            self.end.seq = self.end.seq.max(last);
        }
    }

    /// A place of the active segment from which on it has to be verified, if the chain leads from it to the floor: before
    /// it everything was once, and is below the floor.
    pub(super) fn checkpoint(&self, active: Seq, floor: &Durable) -> At {
        let below = if floor.segment == active.0 { floor.offset } else { 0 };
        match self.known.checkpoint(active, below) {
            Some((offset, seq, crc)) => At { offset, link: Link { seq, crc: Some(crc) }, ahead: 0 },
            None => self.start(),
        }
    }

    /// The start of the active segment.
    pub(super) const fn start(&self) -> At {
        At { offset: 0, link: self.before, ahead: 0 }
    }

    /// The torn files that a line of the log names.
    pub(super) fn torn_named(&self, storage: &dyn Storage) -> Result<HashSet<String>> {
        let mut named = HashSet::new();
        for seq in self.known.recoveries()? {
            let (record, _) = self.read(storage, seq)?;
            named.extend(record.data.read::<control::Recovered>().map(|found| found.torn));
        }
        Ok(named)
    }

    /// Reads the event of a position that this tail knows, with the place where its line ends.
    pub(super) fn read(&self, storage: &dyn Storage, seq: Seq) -> Result<(Record, End)> {
        let damaged = || {
            Error::new(ErrorKind::Corrupt, "a line that was whole is damaged")
                .seq(seq)
                .hint("see `annals verify`")
        };
        let place = self.known.place(seq)?.ok_or_else(damaged)?;
        let file = segments::open(storage, place.segment, Access::Read)?;
        let raw = read_line(&*file, place.offset)
            .map_err(|e| segments::error(storage, place.segment, "read", e))?;
        let line = format::decode(&raw).map_err(|_| damaged())?;
        if line.fields.seq != seq {
            return Err(damaged());
        }
        let end = End {
            segment: place.segment,
            offset: place.offset + raw.len() as u64,
            seq,
            crc: line.crc,
            time: line.fields.time,
        };
        Ok((Record::from_line(&line)?, end))
    }

    /// The events of a stream that are of some types, in order; `None` when something is missing or damaged, so that only
    /// a reading in order can tell.
    pub(super) fn events_of(
        &self,
        storage: &dyn Storage,
        stream: &str,
        types: &[&str],
    ) -> Result<Option<Vec<Record>>> {
        let Some(seqs) = self.known.positions_of(stream, types)? else { return Ok(None) };
        let read = |seq: Seq| match self.read(storage, seq) {
            Ok((record, _)) => Ok(Some(record)),
            Err(e) if *e.kind() == ErrorKind::Corrupt => Ok(None),
            Err(e) => Err(e),
        };
        let mut records = Vec::with_capacity(seqs.len());
        for seq in seqs {
            let Some(record) = read(seq)? else { return Ok(None) };
            if record.stream.as_str() != stream || !types.contains(&record.kind.as_str()) {
                return Ok(None);
            }
            // A batch is there when all of it is.
            if let Some((index, count)) = record.batch {
                let first = seq.0.saturating_sub(u64::from(index.saturating_sub(1)));
                for other in (first..first + u64::from(count)).map(Seq).filter(|s| *s != seq) {
                    if read(other)?.is_none() {
                        return Ok(None);
                    }
                }
            }
            records.push(record);
        }
        Ok(Some(records))
    }
}

/// Reads one line from its first byte to its line feed, or to the end of the file.
pub(super) fn read_line(file: &dyn File, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut raw = Vec::new();
    let mut chunk = vec![0; 4_096];
    loop {
        let got = read_full(file, &mut chunk, offset + raw.len() as u64)?;
        let part = chunk.get(..got).unwrap_or_default();
        if let Some(end) = memchr::memchr(b'\n', part) {
            raw.extend_from_slice(part.get(..=end).unwrap_or_default());
            return Ok(raw);
        }
        raw.extend_from_slice(part);
        if got < chunk.len() || raw.len() > format::LINE_MAX {
            return Ok(raw);
        }
    }
}

/// Whether a line that ends at `end` of a segment has this checksum in its trailer.
pub(super) fn trailer_is(
    storage: &dyn Storage,
    file: &dyn File,
    segment: Seq,
    end: u64,
    crc: Crc,
) -> Result<bool> {
    let mut found = [0; TRAILER];
    let Some(start) = end.checked_sub(TRAILER as u64) else { return Ok(false) };
    let got = read_full(file, &mut found, start)
        .map_err(|e| segments::error(storage, segment, "read", e))?;
    Ok(got == TRAILER && found == format::trailer(crc))
}
