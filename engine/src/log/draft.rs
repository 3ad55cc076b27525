//! Lines that are about to be written: they are spelled here behind the end of the log, and nothing of the writer's
//! knowledge changes before they are on the disk.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{self, BlobRef, Fields, LINE_MAX, Payload, control};
use crate::id::{EventId, Seq, StreamName, Version};
use crate::storage::Storage;
use crate::store::{Append, Appended, Expectation, Expected, NewEvent, Position, Record, admit};

use super::tail::{End, Tail};

/// A step back of the clock that is written down; a smaller one only makes times stand still.
const CLOCK_STEP: Duration = Duration::from_secs(1);

/// Lines behind the end that a tail knows.
#[derive(Debug)]
pub(super) struct Draft<'t> {
    tail: &'t Tail,
    /// The end of the log when they are written.
    pub(super) end: End,
    /// The highest position known to be durable, for the stamps.
    durable: Seq,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    versions: HashMap<StreamName, Version>,
    /// Where the line of each id is in `bytes`.
    events: HashMap<EventId, (Position, Range<usize>)>,
}

/// An append whose big contents are kept apart already.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// The events, without those contents.
    pub(super) events: Vec<NewEvent>,
    /// Where the contents lie, by the number of the event.
    pub(super) blobs: Vec<(usize, BlobRef)>,
    pub(super) expectations: Vec<Expectation>,
}

impl Batch {
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
        Self::in_buffer(tail, durable, Vec::new())
    }

    /// A draft in a buffer that was used before.
    pub(super) fn in_buffer(tail: &'t Tail, durable: Seq, mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self {
            tail,
            end: tail.end,
            durable,
            bytes,
            versions: HashMap::default(),
            events: HashMap::default(),
        }
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
        let (bytes, end) = (self.bytes.len(), self.end);
        let log = self.versions.get_key_value(control::STREAM).map(|(name, v)| (name.clone(), *v));
        self.encode(append, now).inspect_err(|_| {
            self.bytes.truncate(bytes);
            self.end = end;
            self.versions.remove(control::STREAM);
            self.versions.extend(log);
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
            if let Some((position, line)) = self.events.get(&id) {
                check_same(event, blob, &self.staged(line.clone())?)?;
                positions.push(position.clone());
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
    fn staged(&self, line: Range<usize>) -> Result<Record> {
        let line = self.bytes.get(line).and_then(|line| format::decode(line).ok());
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
        let begin = self.bytes.len();
        let count = u32::try_from(append.events.len()).unwrap_or(u32::MAX);
        let mut versions: HashMap<&str, Version> = HashMap::new();
        let mut positions = Vec::with_capacity(append.events.len());
        let mut lines = Vec::with_capacity(append.events.len());
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
            let start = self.bytes.len();
            self.push(&fields)?;
            lines.push(start..self.bytes.len());
            if count > 1 {
                versions.insert(stream, version);
            }
            positions.push(Position { id: event.id, seq: fields.seq, version });
        }
        let bytes = self.bytes.len() - begin;
        if bytes > Append::BYTES_MAX {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("the batch has {bytes} bytes; one has at most {}", Append::BYTES_MAX),
            )
            .hint("append it in several batches"));
        }
        for ((position, event), line) in positions.iter().zip(&append.events).zip(lines) {
            self.versions.insert(event.stream.clone(), position.version);
            self.events.insert(position.id, (position.clone(), line));
        }
        Ok(Planned { appended: Appended { positions, repeated: false }, end: self.end })
    }

    /// The time for the next line: never before the last one, unless the clock went back so far that a line says so.
    fn time(&mut self, now: Timestamp) -> Result<Timestamp> {
        let last = self.end.time;
        if now >= last || self.end.seq == Seq::ZERO {
            return Ok(now);
        }
        if now.plus(CLOCK_STEP) >= last {
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
        self.push(&fields)?;
        self.versions.insert(stream, version);
        Ok(())
    }

    /// The time for a line that says something about the log itself.
    pub(super) fn control_time(&self, now: Timestamp) -> Timestamp {
        now.max(self.end.time)
    }

    fn push(&mut self, fields: &Fields<'_>) -> Result<()> {
        let start = self.bytes.len();
        let crc = format::encode(fields, &mut self.bytes);
        let len = self.bytes.len() - start;
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
        Ok(())
    }

    fn version(&self, stream: &str) -> Result<Version> {
        self.versions.get(stream).map_or_else(|| self.tail.version(stream), |known| Ok(*known))
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
