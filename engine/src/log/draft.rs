//! Lines that are about to be written: they are spelled here behind the end of the log, and nothing of the writer's
//! knowledge changes before they are on the disk.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::scan::{Piece, Scan};
use crate::format::{self, BlobRef, Fields, LINE_MAX, Payload, control};
use crate::id::{EventId, EventType, Seq, StreamName, Version};
use crate::storage::Storage;
use crate::store::{Append, Appended, Expectation, Expected, NewEvent, Position, Record, admit};

use super::index::Listed;
use super::tail::{End, Tail};

/// A step back of the clock that is written down; a smaller one only makes times stand still.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// What a line has beside its payload, about.
const HEAD_BYTES: usize = 300;

/// Lines behind the end that a tail knows.
#[derive(Debug)]
pub(super) struct Draft<'t> {
    tail: &'t Tail,
    /// The end of the log when they are written.
    pub(super) end: End,
    /// The highest position known to be durable, for the stamps.
    durable: Seq,
    room: Room,
}

/// What a draft is written into; used again, it needs no new memory. Names and ids are whatever callers like, so that
/// the hashes are keyed.
#[derive(Debug, Default)]
pub(super) struct Room {
    bytes: Vec<u8>,
    lines: Vec<Drafted>,
    versions: HashMap<StreamName, Version, RandomState>,
    /// The number of the line of each id.
    events: HashMap<EventId, usize, RandomState>,
}

impl Room {
    fn clear(&mut self) {
        let Self { bytes, lines, versions, events } = self;
        bytes.clear();
        lines.clear();
        versions.clear();
        events.clear();
    }
}

/// A line of a draft: what is remembered of it, and where it is in the bytes.
#[derive(Debug)]
struct Drafted {
    start: usize,
    len: usize,
    seq: Seq,
    time: Timestamp,
    stream: StreamName,
    version: Version,
    kind: EventType,
    id: EventId,
}

/// Lines that nothing is added to any more.
#[derive(Debug)]
pub(super) struct Lines {
    room: Room,
    /// The end of the log when they are written.
    pub(super) end: End,
}

impl Lines {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.room.bytes
    }

    /// What is to be remembered of each, with the offset in the bytes and the length.
    pub(super) fn listed(&self) -> impl Iterator<Item = (u64, u64, Listed<'_>)> {
        self.room.lines.iter().map(|line| {
            let Drafted { start, len, seq, time, version, id, .. } = *line;
            let (stream, kind) = (line.stream.as_str(), line.kind.as_str());
            (start as u64, len as u64, Listed { seq, time, stream, version, kind, id })
        })
    }

    /// Whether reading the bytes tells the same of the lines.
    pub(super) fn are_spelled(&self) -> bool {
        let mut read = Scan::new(self.bytes());
        let same = self.listed().all(|(start, len, listed)| {
            read.next().is_some_and(|(offset, count, piece)| {
                let Piece::Line(line) = piece else { return false };
                (offset as u64, count as u64, Listed::from(&line.fields)) == (start, len, listed)
            })
        });
        same && read.next().is_none()
    }

    /// The room, to be used again; `None` when it has grown so big that it is better given back.
    pub(super) fn into_room(self, bytes_max: usize) -> Option<Room> {
        (self.room.bytes.capacity() <= bytes_max).then_some(self.room)
    }
}

/// An append whose big contents are kept apart already.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// The events, without those contents.
    pub(super) events: Vec<NewEvent>,
    /// Where the contents lie, by the number of the event.
    pub(super) blobs: Vec<(usize, BlobRef)>,
    pub(super) expectations: Vec<Expectation>,
    /// About how many bytes its lines have.
    pub(super) bytes: usize,
}

impl Batch {
    pub(super) fn new(
        events: Vec<NewEvent>,
        blobs: Vec<(usize, BlobRef)>,
        expectations: Vec<Expectation>,
    ) -> Self {
        let bytes = events.iter().map(|event| event.data.as_str().len() + HEAD_BYTES).sum();
        Self { events, blobs, expectations, bytes }
    }

    /// Each event, with the place of its content when that lies apart.
    fn carried(&self) -> impl Iterator<Item = (&NewEvent, Option<BlobRef>)> {
        self.events.iter().enumerate().map(|(at, event)| {
            let found = self.blobs.iter().find(|(number, _)| *number == at);
            (event, found.map(|(_, blob)| *blob))
        })
    }
}

/// What became of one append.
#[derive(Debug)]
pub(super) struct Planned {
    /// The answer.
    pub(super) appended: Appended,
    /// Where the last of its lines ends.
    pub(super) end: End,
}

impl<'t> Draft<'t> {
    pub(super) fn new(tail: &'t Tail, durable: Seq) -> Self {
        Self::in_room(tail, durable, Room::default())
    }

    /// A draft in a room that was used before.
    pub(super) fn in_room(tail: &'t Tail, durable: Seq, mut room: Room) -> Self {
        room.clear();
        Self { tail, end: tail.end, durable, room }
    }

    /// The lines.
    pub(super) fn finish(self) -> Lines {
        Lines { room: self.room, end: self.end }
    }

    /// Adds a batch, or finds it in the log.
    ///
    /// # Errors
    /// What [`crate::store::EventStore::append`] says; the draft is then as it was.
    pub(super) fn plan(
        &mut self,
        storage: &dyn Storage,
        append: &Batch,
        now: Timestamp,
    ) -> Result<Planned> {
        if let Some(known) = self.repeated(storage, append)? {
            return Ok(known);
        }
        self.check_expectations(append)?;
        append.events.iter().try_for_each(|event| admit::check_age(event, now))?;
        let (bytes, lines, end) = (self.room.bytes.len(), self.room.lines.len(), self.end);
        self.encode(append, now).inspect_err(|_| {
            // A line about the clock may have come before; all else is entered last.
            let clock =
                self.room.lines.get(lines).is_some_and(|l| l.kind.as_str() == control::CLOCK);
            self.room.bytes.truncate(bytes);
            self.room.lines.truncate(lines);
            self.end = end;
            if clock {
                self.room.versions.remove(control::STREAM);
                let mut before = self.room.lines.iter().rev();
                let last = before.find(|line| line.stream.as_str() == control::STREAM);
                self.room.versions.extend(last.map(|line| (line.stream.clone(), line.version)));
            }
        })
    }

    /// The first positions, when every id is known; `None` when none is.
    pub(super) fn repeated(
        &self,
        storage: &dyn Storage,
        append: &Batch,
    ) -> Result<Option<Planned>> {
        let mut positions = Vec::new();
        let mut end = self.end;
        for (event, blob) in append.carried() {
            let id = event.id;
            if let Some(line) = self.room.events.get(&id).and_then(|at| self.room.lines.get(*at)) {
                check_same(event, blob, &self.staged(line)?)?;
                positions.push(Position { id, seq: line.seq, version: line.version });
                end = self.end;
            } else if let Some(seq) = self.tail.position(id)? {
                let (record, at) = self.tail.read(storage, seq)?;
                check_same(event, blob, &record)?;
                positions.push(Position { id, seq, version: record.version });
                end = at;
            }
        }
        if positions.is_empty() {
            return Ok(None);
        }
        if positions.len() < append.events.len() {
            return Err(Error::new(
                ErrorKind::PartialDuplicate,
                format!(
                    "{} of {} events are in the log already",
                    positions.len(),
                    append.events.len()
                ),
            )
            .hint("append the new events with ids of their own"));
        }
        Ok(Some(Planned { appended: Appended { positions, repeated: true }, end }))
    }

    /// The event of a line that is about to be written.
    fn staged(&self, line: &Drafted) -> Result<Record> {
        let raw = self.room.bytes.get(line.start..line.start + line.len);
        let line = raw.and_then(|raw| format::decode(raw).ok());
        let line = line.ok_or_else(|| Error::new(ErrorKind::Unavailable, "a line was misspelled"));
        Record::from_line(&line?)
    }

    fn check_expectations(&self, append: &Batch) -> Result<()> {
        for expectation in &append.expectations {
            let stream = expectation.stream.as_str();
            let (expected, actual) = (expectation.expected.version(), self.version(stream)?);
            if expected != actual {
                let what = match expectation.expected {
                    Expected::NoStream => "no event".to_owned(),
                    Expected::Version(version) => format!("version {version}"),
                };
                let message = format!("{stream:?} is at version {actual}, expected was {what}");
                let stream = stream.to_owned();
                return Err(Error::new(ErrorKind::Conflict { stream, expected, actual }, message)
                    .hint("read the stream on and decide again"));
            }
        }
        Ok(())
    }

    fn encode(&mut self, append: &Batch, now: Timestamp) -> Result<Planned> {
        let time = self.time(now)?;
        let (begin, first) = (self.room.bytes.len(), self.room.lines.len());
        let count = u32::try_from(append.events.len()).unwrap_or(u32::MAX);
        let mut versions: HashMap<&str, Version> = HashMap::new();
        let mut positions = Vec::with_capacity(append.events.len());
        for (index, (event, blob)) in (1..).zip(append.carried()) {
            let stream = event.stream.as_str();
            let last = match versions.get(stream) {
                Some(last) => *last,
                None => self.version(stream)?,
            };
            let version = last.next();
            let fields = Fields {
                seq: self.end.seq.next(),
                time,
                durable: self.durable,
                prev: self.end.crc,
                stream: Cow::Borrowed(stream),
                version,
                kind: event.kind.as_str(),
                id: event.id,
                batch: (count > 1).then_some((index, count)),
                cause: event.cause,
                flow: event.flow,
                blob,
                data: event.data.as_str(),
            };
            let seq = fields.seq;
            self.push(&fields, event.stream.clone(), event.kind.clone())?;
            if count > 1 {
                versions.insert(stream, version);
            }
            positions.push(Position { id: event.id, seq, version });
        }
        let bytes = self.room.bytes.len() - begin;
        if bytes > Append::BYTES_MAX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("the batch has {bytes} bytes; one has at most {}", Append::BYTES_MAX),
            )
            .hint("append it in several batches"));
        }
        for ((position, event), line) in positions.iter().zip(&append.events).zip(first..) {
            self.room.versions.insert(event.stream.clone(), position.version);
            self.room.events.insert(position.id, line);
        }
        Ok(Planned { appended: Appended { positions, repeated: false }, end: self.end })
    }

    /// The position that the next event gets which somebody appends now.
    pub(super) fn next_seq(&self, now: Timestamp) -> Seq {
        let next = self.end.seq.next();
        if self.steps_back(now) { next.next() } else { next }
    }

    /// Whether a line about the clock comes before the next event.
    fn steps_back(&self, now: Timestamp) -> bool {
        let last = self.end.time;
        self.end.seq != Seq::ZERO && now < last && now.plus(CLOCK_STEP) < last
    }

    /// The time for the next line: never before the last one, unless the clock went back so far that a line says so.
    fn time(&mut self, now: Timestamp) -> Result<Timestamp> {
        let last = self.end.time;
        if now >= last || self.end.seq == Seq::ZERO {
            return Ok(now);
        }
        if !self.steps_back(now) {
            return Ok(last);
        }
        self.control(control::CLOCK, &control::ClockStep { before: last.to_string() }, now)?;
        Ok(now)
    }

    /// Adds a line of the log about itself.
    pub(super) fn control(
        &mut self,
        kind: &str,
        data: &impl Serialize,
        time: Timestamp,
    ) -> Result<()> {
        let payload = Payload::of(data)?;
        let stream = StreamName::new(control::STREAM)?;
        let version = self.version(control::STREAM)?.next();
        let seq = self.end.seq.next();
        let fields = Fields {
            seq,
            time,
            durable: self.durable,
            prev: self.end.crc,
            stream: Cow::Borrowed(control::STREAM),
            version,
            kind,
            id: self.tail.control_id(seq),
            batch: None,
            cause: None,
            flow: None,
            blob: None,
            data: payload.as_str(),
        };
        self.push(&fields, stream.clone(), EventType::new(kind)?)?;
        self.room.versions.insert(stream, version);
        Ok(())
    }

    /// The time for a line that says something about the log itself.
    pub(super) fn control_time(&self, now: Timestamp) -> Timestamp {
        now.max(self.end.time)
    }

    /// Adds the line of `fields`, in which `stream` and `kind` are the same again.
    fn push(&mut self, fields: &Fields<'_>, stream: StreamName, kind: EventType) -> Result<()> {
        let start = self.room.bytes.len();
        let crc = format::encode(fields, &mut self.room.bytes);
        let len = self.room.bytes.len() - start;
        if len > LINE_MAX {
            return Err(format::too_large(len));
        }
        self.end = End {
            offset: self.end.offset + len as u64,
            seq: fields.seq,
            crc,
            time: fields.time,
            ..self.end
        };
        let Fields { seq, time, version, id, .. } = *fields;
        self.room.lines.push(Drafted { start, len, seq, time, stream, version, kind, id });
        Ok(())
    }

    fn version(&self, stream: &str) -> Result<Version> {
        self.room.versions.get(stream).map_or_else(|| self.tail.version(stream), |known| Ok(*known))
    }
}

/// The same id is the same event when stream, type and payload are equal.
fn check_same(new: &NewEvent, blob: Option<BlobRef>, known: &Record) -> Result<()> {
    if new.stream == known.stream
        && new.kind == known.kind
        && new.data == known.data
        && blob == known.blob
    {
        return Ok(());
    }
    Err(Error::new(ErrorKind::IdReused, format!("the id {} stands for another event", new.id))
        .seq(known.seq)
        .field("id")
        .hint("give every event an id of its own"))
}
