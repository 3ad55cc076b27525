//! A store that lives and dies with its process: the whole contract, no file. Its lines have the spelling, the
//! checksums and the chain of the log on disk, so that cursors and sizes mean the same. Everything appended counts as
//! durable at once: its stable storage is the memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::blob::{Carried, carry};
use super::{
    Append, Appended, Cursor, Decider, Durability, EventStore, Expectation, Filter, Follow,
    Followed, Health, Item, Items, NewEvent, Position, Read, Record, View, admit,
};
use crate::clock::{Clock, Timestamp};
use crate::error::{Error, ErrorKind, Result};
use crate::format::control::{self, ClockStep};
use crate::format::{self, LINE_MAX, Payload};
use crate::id::{Crc, EventId, EventType, Seq, StoreId, StreamName, Version};

/// An [`EventStore`] in memory. Positions are dense from 1, and the first line is the first event.
pub struct MemoryStore {
    id: StoreId,
    clock: Arc<dyn Clock>,
    history: Mutex<History>,
    appended: Condvar,
}

/// A step of the clock back by more than this is written down; a smaller one only holds the time still.
const STEP_BACK_MAX: Duration = Duration::from_secs(1);

impl MemoryStore {
    /// An empty store with an identity of its own.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            id: StoreId(EventId::new(clock.now()).0),
            clock,
            history: Mutex::default(),
            appended: Condvar::new(),
        }
    }

    /// The history. A decision that panics leaves it as it was, so a poisoned lock is no reason to refuse.
    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_under(
        &self,
        history: &mut History,
        append: Append,
        now: Timestamp,
    ) -> Result<Appended> {
        admit::check_form(&append)?;
        let mut events = Vec::with_capacity(append.events.len());
        let mut contents = Vec::new();
        for event in append.events {
            let (carried, content) = carry(event)?;
            contents.extend(carried.blob.map(|blob| blob.sha256).zip(content));
            events.push(carried);
        }
        if let Some(positions) = history.repeated(&events)? {
            return Ok(Appended { positions, repeated: true });
        }
        history.check_expectations(&append.expectations)?;
        events.iter().try_for_each(|carried| admit::check_age(&carried.event, now))?;
        let batch = history.draft(&events, now)?;
        history.contents.extend(contents);
        let positions = history.publish(batch);
        self.appended.notify_all();
        Ok(Appended { positions, repeated: false })
    }

    /// How many records a reader at `after` has behind it.
    fn index_after(&self, history: &History, after: Option<Cursor>) -> Result<usize> {
        let Some(cursor) = after else { return Ok(0) };
        let index = if cursor.store == self.id { history.index_of(&cursor) } else { None };
        index.ok_or_else(|| {
            Error::new(ErrorKind::HistoryChanged, format!("{cursor} is no place in this store"))
                .seq(cursor.seq)
                .hint("begin again from the start of the log")
        })
    }
}

impl EventStore for MemoryStore {
    fn id(&self) -> StoreId {
        self.id
    }

    fn append(&self, append: Append) -> Result<Appended> {
        let mut history = self.history();
        self.append_under(&mut history, append, self.clock.now())
    }

    fn append_deciding(
        &self,
        decider: &mut (dyn Decider + Send),
        _durability: Durability,
    ) -> Result<Appended> {
        let mut history = self.history();
        let start = match decider.seen() {
            Some(cursor) if cursor.store == self.id && history.index_of(&cursor).is_none() => {
                decider.restart();
                0
            }
            seen => self.index_after(&history, seen)?,
        };
        for record in history.records.iter().skip(start) {
            decider.apply(&Item::Record(Box::new(record.clone())), &record.cursor(self.id));
        }
        let now = self.clock.now();
        let next = history.time_at(now);
        decider.begins(history.next_seq(&next));
        let append = decider.decide(next.time)?;
        self.append_under(&mut history, append, now)
    }

    fn read(&self, read: Read) -> Result<Items<'_>> {
        let history = self.history();
        let start = self.index_after(&history, read.after)?;
        let end = history.records.len();
        drop(history);
        let mut next = start;
        Ok(Box::new(std::iter::from_fn(move || {
            let (index, record) = self.history().find(next, end, &read.filter)?;
            next = index + 1;
            Some(Ok(Item::Record(Box::new(record))))
        })))
    }

    fn read_stream(&self, stream: &StreamName, after: Version) -> Result<Items<'_>> {
        let history = self.history();
        let all = history.streams.get(stream).map_or(&[][..], Vec::as_slice);
        let skip = usize::try_from(after.0).unwrap_or(usize::MAX);
        let wanted: Vec<usize> = all.iter().copied().skip(skip).collect();
        drop(history);
        Ok(Box::new(wanted.into_iter().filter_map(|index| {
            let record = self.history().records.get(index)?.clone();
            Some(Ok(Item::Record(Box::new(record))))
        })))
    }

    fn payload(&self, record: &Record) -> Result<Payload> {
        let Some(blob) = &record.blob else { return Ok(record.data.clone()) };
        let history = self.history();
        let content = history.contents.get(&blob.sha256).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "the content of the event is not here").seq(record.seq)
        })?;
        Ok(record.data.join_content(content))
    }

    fn head(&self, stream: &StreamName) -> Result<Version> {
        Ok(self.history().version(stream))
    }

    fn end(&self, _view: View) -> Result<Option<Cursor>> {
        Ok(self.history().records.last().map(|record| record.cursor(self.id)))
    }

    fn follow(&self, read: Read) -> Result<Box<dyn Follow + '_>> {
        let next = self.index_after(&self.history(), read.after)?;
        Ok(Box::new(Follower { store: self, filter: read.filter, next, told: None }))
    }

    fn health(&self) -> Result<Health> {
        Ok(Health::Ok)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.history().records.len();
        f.debug_struct("MemoryStore").field("id", &self.id).field("events", &events).finish()
    }
}

/// Everything that happened. The record of position `n` stands at index `n - 1`.
#[derive(Default)]
struct History {
    records: Vec<Record>,
    ids: HashMap<EventId, usize>,
    streams: HashMap<StreamName, Vec<usize>>,
    /// The contents that are too big for a line, by their SHA-256.
    contents: HashMap<[u8; 32], String>,
}

/// The time of the next line, and the time before it where the clock stepped back.
struct NextTime {
    time: Timestamp,
    stepped_from: Option<Timestamp>,
}

impl History {
    fn version(&self, stream: &StreamName) -> Version {
        Version(self.streams.get(stream).map_or(0, |indexes| indexes.len() as u64))
    }

    /// How many records there are up to the cursor, which is one of this store.
    fn index_of(&self, cursor: &Cursor) -> Option<usize> {
        let index = usize::try_from(cursor.seq.0).ok()?;
        let record = self.records.get(index.checked_sub(1)?)?;
        (record.crc == cursor.crc).then_some(index)
    }

    /// The first record in `start..end` that the filter wants.
    fn find(&self, start: usize, end: usize, filter: &Filter) -> Option<(usize, Record)> {
        let (index, record) = self
            .records
            .get(start..end)?
            .iter()
            .enumerate()
            .find(|(_, record)| filter.matches(record.stream.as_str(), record.kind.as_str()))?;
        Some((start + index, record.clone()))
    }

    /// The first positions of the events, when all of them are in the log already.
    fn repeated(&self, events: &[Carried]) -> Result<Option<Vec<Position>>> {
        let mut positions = Vec::new();
        for Carried { event, blob } in events {
            let Some(first) = self.ids.get(&event.id).and_then(|at| self.records.get(*at)) else {
                continue;
            };
            let same = first.stream == event.stream
                && first.kind == event.kind
                && first.data == event.data
                && first.blob == *blob;
            if !same {
                let message = format!("the id {} belongs to another event", event.id);
                return Err(Error::new(ErrorKind::IdReused, message).seq(first.seq).field("id"));
            }
            positions.push(position(first));
        }
        if positions.is_empty() {
            return Ok(None);
        }
        if positions.len() < events.len() {
            let message =
                format!("{} of {} ids are in the log already", positions.len(), events.len());
            return Err(Error::new(ErrorKind::PartialDuplicate, message).field("id"));
        }
        Ok(Some(positions))
    }

    fn check_expectations(&self, expectations: &[Expectation]) -> Result<()> {
        for Expectation { stream, expected } in expectations {
            let (expected, actual) = (expected.version(), self.version(stream));
            if expected != actual {
                let message = format!("the stream {stream} is at version {actual}, not {expected}");
                let stream = stream.as_str().to_owned();
                return Err(Error::new(ErrorKind::Conflict { stream, expected, actual }, message));
            }
        }
        Ok(())
    }

    /// The time that a line written at `now` carries: it never decreases, except behind a line that says so.
    fn time_at(&self, now: Timestamp) -> NextTime {
        match self.records.last().map(|last| last.time) {
            Some(last) if now < last.minus(STEP_BACK_MAX) => {
                NextTime { time: now, stepped_from: Some(last) }
            }
            Some(last) => NextTime { time: now.max(last), stepped_from: None },
            None => NextTime { time: now, stepped_from: None },
        }
    }

    /// The position that the next event gets which somebody appends.
    fn next_seq(&self, next: &NextTime) -> Seq {
        let last = self.records.last().map_or(Seq::ZERO, |last| last.seq);
        if next.stepped_from.is_some() { last.next().next() } else { last.next() }
    }

    /// The lines of a batch, and before them the line that says the clock stepped back; nothing is changed yet.
    fn draft(&self, events: &[Carried], now: Timestamp) -> Result<Vec<Record>> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let mut draft = Draft::new(self, now);
        if let Some(before) = draft.stepped_from {
            let event = clock_step(before, now)?;
            draft.push(&Carried { event, blob: None }, None)?;
        }
        let control = draft.bytes;
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        for (carried, index) in events.iter().zip(1..) {
            draft.push(carried, (count > 1).then_some((index, count)))?;
        }
        let bytes = draft.bytes - control;
        if bytes > Append::BYTES_MAX {
            let message = format!(
                "the batch makes {bytes} bytes of lines; a batch has at most {}",
                Append::BYTES_MAX
            );
            return Err(
                Error::new(ErrorKind::TooLarge, message).hint("append it in several batches")
            );
        }
        Ok(draft.records)
    }

    /// Takes the drafted lines in and returns where the caller's events are.
    fn publish(&mut self, batch: Vec<Record>) -> Vec<Position> {
        let mut positions = Vec::with_capacity(batch.len());
        for record in batch {
            let index = self.records.len();
            self.ids.insert(record.id, index);
            self.streams.entry(record.stream.clone()).or_default().push(index);
            if record.stream.as_str() != control::STREAM {
                positions.push(position(&record));
            }
            self.records.push(record);
        }
        positions
    }
}

/// Lines that are about to follow the last one.
struct Draft<'a> {
    history: &'a History,
    records: Vec<Record>,
    versions: HashMap<StreamName, Version>,
    bytes: usize,
    time: Timestamp,
    stepped_from: Option<Timestamp>,
}

impl<'a> Draft<'a> {
    fn new(history: &'a History, now: Timestamp) -> Self {
        let NextTime { time, stepped_from } = history.time_at(now);
        let (records, versions) = (Vec::new(), HashMap::new());
        Self { history, records, versions, bytes: 0, time, stepped_from }
    }

    fn push(&mut self, carried: &Carried, batch: Option<(u32, u32)>) -> Result<()> {
        let event = &carried.event;
        let version = self
            .versions
            .entry(event.stream.clone())
            .or_insert_with(|| self.history.version(&event.stream));
        *version = version.next();
        let durable = Seq(self.history.records.len() as u64);
        let last = self.records.last().or(self.history.records.last());
        let mut record = Record {
            seq: Seq(durable.0 + self.records.len() as u64 + 1),
            time: self.time,
            durable,
            stream: event.stream.clone(),
            version: *version,
            kind: event.kind.clone(),
            id: event.id,
            batch,
            cause: event.cause,
            flow: event.flow,
            blob: carried.blob,
            data: event.data.clone(),
            prev: last.map_or(Crc::NONE, |last| last.crc),
            crc: Crc::NONE,
        };
        let mut line = Vec::with_capacity(event.data.as_str().len() + 512);
        record.crc = format::encode(&record.fields(), &mut line);
        if line.len() > LINE_MAX {
            return Err(format::too_large(line.len()).field("data"));
        }
        self.bytes += line.len();
        self.records.push(record);
        Ok(())
    }
}

fn position(record: &Record) -> Position {
    Position { id: record.id, seq: record.seq, version: record.version }
}

/// The line that says that the clock stepped back from `before` to `now`.
fn clock_step(before: Timestamp, now: Timestamp) -> Result<NewEvent> {
    Ok(NewEvent {
        id: EventId::new(now),
        stream: StreamName::new(control::STREAM)?,
        kind: EventType::new(control::CLOCK)?,
        cause: None,
        flow: None,
        data: Payload::of(&ClockStep { before: before.to_string() })?,
    })
}

struct Follower<'a> {
    store: &'a MemoryStore,
    filter: Filter,
    next: usize,
    /// The index up to which the caller was last told that there is nothing more.
    told: Option<usize>,
}

impl Follower<'_> {
    fn cursor_under(&self, history: &History) -> Option<Cursor> {
        let last = history.records.get(self.next.checked_sub(1)?)?;
        Some(last.cursor(self.store.id))
    }
}

impl Follow for Follower<'_> {
    fn next(&mut self, timeout: Option<Duration>) -> Result<Followed> {
        let mut history = self.store.history();
        if self.told == Some(history.records.len()) {
            // Looking and waiting happen under one lock, so an append cannot fall between them.
            let told = history.records.len();
            let nothing = |history: &mut History| history.records.len() == told;
            let appended = &self.store.appended;
            history = match timeout {
                None => {
                    appended.wait_while(history, nothing).unwrap_or_else(PoisonError::into_inner)
                }
                Some(timeout) => {
                    let waited = appended.wait_timeout_while(history, timeout, nothing);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            if history.records.len() == told {
                return Ok(Followed::Quiet);
            }
        }
        let end = history.records.len();
        if let Some((index, record)) = history.find(self.next, end, &self.filter) {
            self.next = index + 1;
            return Ok(Followed::Item(Item::Record(Box::new(record))));
        }
        self.next = end;
        self.told = Some(end);
        Ok(Followed::CaughtUp(self.cursor_under(&history)))
    }

    fn cursor(&self) -> Option<Cursor> {
        self.cursor_under(&self.store.history())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::format::decode;

    fn event(id: u8, text: &str) -> NewEvent {
        NewEvent {
            id: EventId::derived("key", "test", &id.to_string()),
            stream: StreamName::new("a").unwrap(),
            kind: EventType::new("x.test").unwrap(),
            cause: None,
            flow: None,
            data: Payload::of(&serde_json::json!({ "text": text })).unwrap(),
        }
    }

    /// Appends two batches with the clock going back between them, and reads the lines as a file would hold them: each
    /// decodes to its record, and the chain of checksums has no hole.
    #[test]
    fn lines_are_those_of_the_log() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
        let store = MemoryStore::new(clock.clone());
        store.append(Append::new(vec![event(1, "é"), event(2, "b")])).unwrap();
        clock.set(Timestamp::from_millis(1_789_999_000_000));
        store.append(Append::new(vec![event(3, "c")])).unwrap();
        let mut prev = Crc::NONE;
        let mut kinds = Vec::new();
        for item in store.read(Read::default()).unwrap() {
            let Item::Record(record) = item.unwrap() else { panic!("a gap in memory") };
            let bytes = record.to_line();
            let line = decode(&bytes).unwrap();
            assert_eq!(Record::from_line(&line).unwrap(), *record);
            assert_eq!(line.fields.prev, prev);
            prev = line.crc;
            kinds.push(record.kind.to_string());
        }
        assert_eq!(kinds, ["x.test", "x.test", "log.clock", "x.test"]);
    }
}
