//! Appending without repeating: what a stream has already is passed over, and what is new goes in batches that no other
//! writer can come between. An import that stops anywhere goes on where it stopped.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::pursuit::Tail;
use crate::clock::Clock;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::LINE_MAX;
use crate::id::{EventId, Seq, StreamName, Version};
use crate::session::event::{Event, IMPORT_STREAM, Import, Links, Members};
use crate::store::{Append, Appended, Durability, EventStore, Expected, Item, NewEvent};

/// What one event may add to its payload in a batch, in bytes: the head of its line, names in their longest spelling.
const HEAD_BYTES_MAX: usize = 4_096;

/// How often an append is tried while others append to the same stream, or while it is not known whether it went well.
const TRIES_MAX: usize = 64;

/// Whether an import writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It appends what is new.
    #[default]
    Append,
    /// It looks and reports, and appends nothing.
    DryRun,
}

/// The door to the store for one import: it says that an import began before the first event that it brings.
pub(crate) struct Journal<'s> {
    pub(crate) store: &'s dyn EventStore,
    pub(crate) mode: Mode,
    clock: &'s dyn Clock,
    subject: Import,
    begun: bool,
    /// Whether the source grows: then it has no end, and what it brings is on stable storage at once.
    tail: Tail,
}

impl<'s> Journal<'s> {
    pub(crate) fn new(
        store: &'s dyn EventStore,
        clock: &'s dyn Clock,
        mode: Mode,
        program: &str,
        path: String,
    ) -> Self {
        let subject = Import { at: None, program: program.to_owned(), path, counts: None };
        Self { store, mode, clock, subject, begun: false, tail: Tail::Final }
    }

    /// The same for a source that grows, of which the store may have been told before.
    pub(crate) fn growing(self, begun: bool) -> Self {
        Self { begun, tail: Tail::Growing, ..self }
    }

    /// The same for an import of which only the end is to be told.
    pub(crate) fn ending(self) -> Self {
        Self { begun: true, ..self }
    }

    /// Whether the store was told that the import began.
    pub(crate) const fn is_begun(&self) -> bool {
        self.begun
    }

    const fn durability(&self) -> Durability {
        match self.tail {
            Tail::Final => Durability::Buffered,
            Tail::Growing => Durability::Synced,
        }
    }

    /// The program and the path that this import is of.
    pub(crate) fn subject(&self) -> (&str, &str) {
        (&self.subject.program, &self.subject.path)
    }

    /// Says that the import ended, if it brought anything. On return everything that it brought is on stable storage.
    pub(crate) fn finish(&mut self, counts: Members) -> Result<()> {
        if !self.begun || self.tail == Tail::Growing {
            return Ok(());
        }
        let event = Event::ImportFinished(Import { counts: Some(counts), ..self.subject.clone() });
        self.say(&event, Durability::Synced)
    }

    fn append(&mut self, append: &Append) -> Result<Appended> {
        if !self.begun {
            self.begun = true;
            self.say(&Event::ImportStarted(self.subject.clone()), Durability::Buffered)?;
        }
        self.retry(append)
    }

    fn say(&self, event: &Event, durability: Durability) -> Result<()> {
        let stream = StreamName::new(IMPORT_STREAM)?;
        let event = event.to_new(stream, EventId::new(self.clock.now()), Links::default())?;
        self.retry(&Append::new(vec![event]).durability(durability)).map(drop)
    }

    /// Appends, and asks again as long as it is not known whether it went well.
    fn retry(&self, append: &Append) -> Result<Appended> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.store.append(append.clone()) {
                Err(e) if *e.kind() == ErrorKind::Indeterminate && tries < TRIES_MAX => {}
                answer => return answer,
            }
        }
    }
}

/// Whether an event is new to its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    New,
    Known,
}

/// Appends to one stream what it does not have.
pub(crate) struct StreamWriter {
    stream: StreamName,
    head: Version,
    known: HashSet<EventId>,
    batch: Vec<Pending>,
    bytes: usize,
    refused: Vec<Range<u64>>,
    /// How many events turned out to be in another stream.
    elsewhere: u64,
    /// The event whose place in the log is wanted, and that place once it is known.
    wanted: Option<EventId>,
    found: Option<Seq>,
    /// Patches of the session that were made from files: how many from each, and what the last one set.
    patches: HashMap<String, Patches>,
}

/// The patches that were made from a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patches {
    /// How many.
    pub(crate) count: u64,
    /// What the last one set, as it is spelled.
    pub(crate) set: Option<String>,
    /// When the file said so, for the last one that has a time.
    pub(crate) at: Option<Timestamp>,
}

/// An event on its way, with the range of the file that it was made from.
struct Pending {
    event: NewEvent,
    range: Range<u64>,
}

impl StreamWriter {
    /// Learns what the stream has.
    pub(crate) fn open(journal: &Journal<'_>, stream: StreamName) -> Result<Self> {
        let mut writer = Self {
            stream,
            head: Version::ZERO,
            known: HashSet::new(),
            batch: Vec::new(),
            bytes: 0,
            refused: Vec::new(),
            elsewhere: 0,
            wanted: None,
            found: None,
            patches: HashMap::new(),
        };
        writer.catch_up(journal)?;
        Ok(writer)
    }

    pub(crate) const fn stream(&self) -> &StreamName {
        &self.stream
    }

    pub(crate) fn knows(&self, id: EventId) -> bool {
        self.known.contains(&id)
    }

    /// What the stream has, in no order.
    pub(crate) fn known(&self) -> impl Iterator<Item = EventId> {
        self.known.iter().copied()
    }

    /// The patches that were made from a file.
    pub(crate) fn patches_from(&self, file: &str) -> Patches {
        self.patches.get(file).cloned().unwrap_or_default()
    }

    fn patched(&mut self, data: &str) {
        let Ok(patch) = serde_json::from_str::<Patch<'_>>(data) else { return };
        let Some(source) = patch.source else { return };
        let patches = self.patches.entry(source.file.into_owned()).or_default();
        patches.count += 1;
        patches.set = Some(patch.set.get().to_owned());
        patches.at = patch.at.or(patches.at);
    }

    /// Takes an event, if the stream does not have it.
    pub(crate) fn put(
        &mut self,
        journal: &mut Journal<'_>,
        event: &Event,
        id: EventId,
    ) -> Result<Put> {
        if self.known.contains(&id) {
            return Ok(Put::Known);
        }
        let event = event.to_new(self.stream.clone(), id, Links::default())?;
        self.put_made(journal, event, 0..0)
    }

    /// Takes an event that was made from a range of a file.
    pub(crate) fn put_made(
        &mut self,
        journal: &mut Journal<'_>,
        event: NewEvent,
        range: Range<u64>,
    ) -> Result<Put> {
        if !self.known.insert(event.id) {
            return Ok(Put::Known);
        }
        if journal.mode == Mode::DryRun {
            return Ok(Put::New);
        }
        let bytes = event.data.as_str().len() + HEAD_BYTES_MAX;
        let full = self.batch.len() >= Append::EVENTS_MAX || self.bytes + bytes > Append::BYTES_MAX;
        // An event that may be too big for a line goes alone, so that it is refused alone.
        if full || bytes > LINE_MAX {
            self.flush(journal)?;
        }
        self.batch.push(Pending { event, range });
        self.bytes += bytes;
        if bytes > LINE_MAX {
            self.flush(journal)?;
        }
        Ok(Put::New)
    }

    /// Appends what is waiting. Events that are too large for the store are left out, see
    /// [`StreamWriter::take_refused`].
    pub(crate) fn flush(&mut self, journal: &mut Journal<'_>) -> Result<()> {
        let mut tries = 0;
        self.bytes = 0;
        while !self.batch.is_empty() {
            let events = self.batch.iter().map(|pending| pending.event.clone()).collect();
            let append = self.expecting(Append::new(events).durability(journal.durability()));
            let error = match journal.append(&append) {
                Ok(appended) => {
                    self.note_place(&appended);
                    self.head.0 += self.batch.len() as u64;
                    self.batch.clear();
                    return Ok(());
                }
                Err(error) => error,
            };
            tries += 1;
            match error.kind() {
                ErrorKind::Conflict { .. } if tries < TRIES_MAX => self.step_aside(journal)?,
                ErrorKind::TooLarge | ErrorKind::PartialDuplicate | ErrorKind::IdReused => {
                    return self.one_by_one(journal);
                }
                _ => return Err(error),
            }
        }
        Ok(())
    }

    /// The ranges whose events were too large since this was asked last.
    pub(crate) fn take_refused(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.refused)
    }

    /// How many events another stream had since this was asked last.
    pub(crate) fn take_elsewhere(&mut self) -> u64 {
        std::mem::take(&mut self.elsewhere)
    }

    /// Asks for the place that an event on its way is going to have.
    pub(crate) const fn want_place(&mut self, id: EventId) {
        self.wanted = Some(id);
    }

    /// The place of the event that was asked for last, if it was appended since.
    pub(crate) const fn place(&self) -> Option<Seq> {
        self.found
    }

    fn note_place(&mut self, appended: &Appended) {
        let Some(wanted) = self.wanted else { return };
        let at = self.batch.iter().position(|pending| pending.event.id == wanted);
        if let Some(position) = at.and_then(|at| appended.positions.get(at)) {
            (self.wanted, self.found) = (None, Some(position.seq));
        }
    }

    fn expecting(&self, append: Append) -> Append {
        let expected = match self.head {
            Version::ZERO => Expected::NoStream,
            head => Expected::Version(head),
        };
        append.expecting(self.stream.clone(), expected)
    }

    /// Somebody else appended to the stream: learns what, and leaves it out of the batch.
    fn step_aside(&mut self, journal: &Journal<'_>) -> Result<()> {
        let waiting: HashSet<EventId> = self.batch.iter().map(|p| p.event.id).collect();
        let had: HashSet<EventId> = self.known.difference(&waiting).copied().collect();
        self.known = had;
        self.catch_up(journal)?;
        let known = &self.known;
        self.batch.retain(|pending| !known.contains(&pending.event.id));
        self.known.extend(self.batch.iter().map(|pending| pending.event.id));
        Ok(())
    }

    /// Appends a batch that was refused as a whole event by event, without an expectation: what the store knows from
    /// elsewhere, or has lost sight of behind damage, is known; what is too large is refused alone.
    fn one_by_one(&mut self, journal: &mut Journal<'_>) -> Result<()> {
        for Pending { event, range } in std::mem::take(&mut self.batch) {
            let append = Append::new(vec![event]).durability(journal.durability());
            match journal.append(&append) {
                Ok(_) => {}
                Err(e) if *e.kind() == ErrorKind::TooLarge => self.refused.push(range),
                Err(e) if *e.kind() == ErrorKind::IdReused => self.elsewhere += 1,
                Err(e) => return Err(e),
            }
        }
        self.catch_up(journal)
    }

    /// Learns the ids behind the last version seen.
    fn catch_up(&mut self, journal: &Journal<'_>) -> Result<()> {
        let head = journal.store.head(&self.stream)?;
        if head > self.head {
            for item in journal.store.read_stream(&self.stream, self.head)? {
                match item? {
                    Item::Record(record) => {
                        if record.kind.as_str() == "session.patched" {
                            self.patched(record.data.as_str());
                        }
                        self.known.insert(record.id);
                        self.head = self.head.max(record.version);
                    }
                    // What a gap hides may be known or not: the store says so when it is appended again.
                    Item::Gap(_) => {}
                }
            }
        }
        self.head = self.head.max(head);
        Ok(())
    }
}

/// What of a patch tells where it was made from.
#[derive(Deserialize)]
struct Patch<'a> {
    #[serde(default)]
    at: Option<Timestamp>,
    #[serde(borrow)]
    set: &'a RawValue,
    #[serde(borrow)]
    source: Option<PatchSource<'a>>,
}

#[derive(Deserialize)]
struct PatchSource<'a> {
    #[serde(borrow)]
    file: Cow<'a, str>,
}

/// An error of the store, with the source that was being imported.
pub(crate) fn while_importing(error: Error, source: &str) -> Error {
    let mut outer = Error::new(error.kind().clone(), format!("importing {source} stopped"));
    let place = error.place().clone();
    if let Some(path) = place.path {
        outer = outer.path(path);
    }
    if let Some(offset) = place.offset {
        outer = outer.offset(offset);
    }
    if let Some(seq) = place.seq {
        outer = outer.seq(seq);
    }
    if let Some(field) = place.field {
        outer = outer.field(field);
    }
    if let Some(hint) = error.hint_text() {
        outer = outer.hint(hint);
    }
    outer.caused_by(error)
}
