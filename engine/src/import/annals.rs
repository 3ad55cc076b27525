//! Transcripts that annals wrote itself ([`crate::session::transcript`]): sessions of one store on their way into
//! another, as they were. An event's identity stays, but a store takes a UUIDv7 of new events alone: one of those becomes
//! the UUIDv8 that follows from it. So nothing comes twice, whichever way it comes, and nothing at all into the store that
//! it is from. A key that the store uses for another session is left alone: the imported one goes to
//! `annals:<id of its part>`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::damage::{Damage, DamageClass};
use super::discover::{Source, Transcript};
use super::plan::{name_from, own_key};
use super::records::{Flaw, Found, Sink, Verdict, read_records};
use super::report::SessionReport;
use super::session::Shared;
use super::sniff::Program;
use super::tree::SourceTree;
use super::writer::{Put, StreamWriter};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Payload, hex};
use crate::id::{EventId, Version};
use crate::session::event::{ImportedRecord, Role, import_id};
use crate::session::key::SessionKey;
use crate::session::transcript::{self, Line};
use crate::store::NewEvent;

/// Imports the transcripts of a source, those that are wanted.
pub(crate) fn import_transcripts(
    shared: &mut Shared<'_>,
    tree: &dyn SourceTree,
    source: &Source,
    only: Option<&BTreeSet<PathBuf>>,
) -> Result<()> {
    let mut targets = Targets::default();
    let wanted = |file: &&Transcript| only.is_none_or(|only| only.contains(&file.path));
    for file in source.transcripts.iter().filter(wanted) {
        let failed = |e| Error::io("the transcript cannot be read", e).path(&file.path);
        let reader = tree.open(&file.path).map_err(failed)?;
        let name = name_from(&source.root, &file.path);
        let mut taking = Taking { shared, targets: &mut targets, name, records: 0 };
        let bytes = read_records(reader, &mut taking)?;
        taking.flush_last()?;
        shared.report.counts.transcripts += 1;
        shared.report.counts.bytes += bytes;
        shared.meter.behind += bytes;
        shared.meter.at(0, shared.report.counts.new);
    }
    shared.report.sessions.extend(targets.reports());
    Ok(())
}

/// The sessions of a source by their keys there, and the one whose events wait to be appended.
#[derive(Default)]
struct Targets {
    sessions: HashMap<SessionKey, Target>,
    order: Vec<SessionKey>,
    last: Option<SessionKey>,
}

/// Where a session goes.
struct Target {
    key: SessionKey,
    stream: Stream,
    parts: Vec<String>,
    /// The message that its last turn is a piece of.
    piece: Option<(Role, String)>,
    turns: u64,
    new: u64,
}

/// A stream, and what the events that were made in it would be called by an import.
struct Stream {
    writer: StreamWriter,
    made_here: HashSet<EventId>,
}

/// The identity of an event: as the line gives it, and as a store takes it that does not have it.
#[derive(Clone, Copy)]
struct Identity {
    given: Option<EventId>,
    taken: EventId,
}

impl Stream {
    fn open(shared: &Shared<'_>, key: &SessionKey) -> Result<Self> {
        let writer = StreamWriter::open(&shared.journal, key.stream().clone())?;
        let made_here = writer.known().filter_map(derived).collect();
        Ok(Self { writer, made_here })
    }

    fn knows(&self, id: Identity) -> bool {
        id.given.is_some_and(|given| self.writer.knows(given))
            || self.writer.knows(id.taken)
            || self.made_here.contains(&id.taken)
    }
}

/// What an event made in a store is called elsewhere; `None` for one that has its name from an import.
fn derived(id: EventId) -> Option<EventId> {
    id.embedded_time()?;
    Some(import_id(Program::Annals.code(), "transcript", ImportedRecord::Id(&id.to_string()), ""))
}

impl Targets {
    fn reports(mut self) -> Vec<SessionReport> {
        let targets = self.order.iter().filter_map(|key| self.sessions.remove(key));
        let report = |target: Target| SessionReport {
            key: target.key.to_string(),
            parts: target.parts,
            turns: target.turns,
            new: target.new,
        };
        targets.map(report).collect()
    }
}

/// A file that is read.
struct Taking<'t, 's> {
    shared: &'t mut Shared<'s>,
    targets: &'t mut Targets,
    /// Its name in reports.
    name: String,
    records: u64,
}

impl Sink for Taking<'_, '_> {
    fn record(&mut self, found: &Found<'_>) -> Result<Verdict> {
        if !found.scanned && Payload::from_json(found.text).is_err() {
            let other = serde_json::from_str::<serde::de::IgnoredAny>(found.text).is_ok()
                && !found.text.starts_with('{');
            return Ok(match other {
                true => Verdict::Foreign(DamageClass::WrongType, "this is no object".to_owned()),
                false => Verdict::Unfit,
            });
        }
        match transcript::read(found.text) {
            Ok(line) => self.take(line, found).map(|()| Verdict::Taken),
            Err(error) => Ok(Verdict::Foreign(class_of(&error), error.to_string())),
        }
    }

    fn is_record(&self, text: &str) -> bool {
        transcript::read(text).is_ok()
    }

    fn flaw(&mut self, flaw: Flaw) -> Result<()> {
        let Flaw { class, offset, bytes, recovered, detail } = flaw;
        let (file, detail) = (self.name.clone(), detail.into_owned());
        let damage = Damage { class, file, offset, bytes, recovered, detail };
        self.shared.damage(&self.name, &damage)
    }

    fn progress(&mut self, offset: u64) -> Result<()> {
        self.shared.meter.at(offset, self.shared.report.counts.new);
        Ok(())
    }
}

impl Taking<'_, '_> {
    fn take(&mut self, line: Line, found: &Found<'_>) -> Result<()> {
        self.records += 1;
        self.shared.report.counts.records += 1;
        let id = self.identity(&line, found);
        if self.targets.last.as_ref() != Some(&line.key) {
            self.flush_last()?;
            self.targets.last = Some(line.key.clone());
        }
        if !self.targets.sessions.contains_key(&line.key) {
            self.open(&line, id, found)?;
        }
        let range = found.offset..found.offset + found.raw.len() as u64;
        let Some(target) = self.targets.sessions.get_mut(&line.key) else { return Ok(()) };
        for part in line.parts {
            if !target.parts.contains(&part) {
                target.parts.push(part);
            }
        }
        if let Some((role, message)) = line.turn {
            let piece = message.map(|message| (role, message));
            let begins = piece.is_none() || piece != target.piece;
            target.piece = piece;
            target.turns += u64::from(begins);
            self.shared.report.counts.turns += u64::from(begins);
        }
        let put = if target.stream.knows(id) {
            Put::Known
        } else {
            let event = NewEvent {
                id: id.taken,
                stream: target.key.stream().clone(),
                kind: line.kind,
                cause: None,
                flow: None,
                data: line.data,
            };
            target.stream.writer.put_made(&mut self.shared.journal, event, range)?
        };
        target.new += u64::from(put == Put::New);
        self.shared.count(put);
        self.note_refused(&line.key)
    }

    fn identity(&self, line: &Line, found: &Found<'_>) -> Identity {
        let by_place = || {
            let sha256 = hex(&Sha256::digest(found.raw));
            let record = ImportedRecord::Ordinal { ordinal: self.records, sha256: &sha256 };
            import_id(Program::Annals.code(), line.key.as_str(), record, "")
        };
        let taken = line.id.map_or_else(by_place, |given| derived(given).unwrap_or(given));
        Identity { given: line.id, taken }
    }

    /// Finds where a session goes, by its first line.
    fn open(&mut self, line: &Line, id: Identity, found: &Found<'_>) -> Result<()> {
        let mut key = line.key.clone();
        let mut stream = Stream::open(self.shared, &key)?;
        if !self.is_free(&key, line, &stream, id)? {
            let part = line.parts.first().map_or(line.key.as_str(), String::as_str);
            key = own_key(Program::Annals.code(), part)?;
            stream = Stream::open(self.shared, &key)?;
            if !stream.knows(id) {
                let detail = format!("{} is another session; this one goes to {key}", line.key);
                let (class, offset, bytes) = (DamageClass::KeyTaken, found.offset, 0);
                self.flaw(Flaw { class, offset, bytes, recovered: 0, detail: detail.into() })?;
            }
        }
        let target = Target { key, stream, parts: Vec::new(), piece: None, turns: 0, new: 0 };
        self.targets.order.push(line.key.clone());
        self.targets.sessions.insert(line.key.clone(), target);
        Ok(())
    }

    /// Whether a key is nobody's, or this very session's: the store knows the event, or a part that it names.
    fn is_free(
        &self,
        key: &SessionKey,
        line: &Line,
        stream: &Stream,
        id: Identity,
    ) -> Result<bool> {
        let known = self.shared.known.stream(key.stream());
        let has = |part: &String| known.is_some_and(|s| s.parts.iter().any(|(id, _)| id == part));
        let is_empty = || Ok(self.shared.journal.store.head(key.stream())? == Version::ZERO);
        if stream.knows(id) || line.parts.iter().any(has) { Ok(true) } else { is_empty() }
    }

    /// Appends what waits.
    fn flush_last(&mut self) -> Result<()> {
        let Some(key) = self.targets.last.take() else { return Ok(()) };
        if let Some(target) = self.targets.sessions.get_mut(&key) {
            target.stream.writer.flush(&mut self.shared.journal)?;
        }
        self.note_refused(&key)
    }

    /// Corrects the counts for what the store did not take: it was known elsewhere, or too large.
    fn note_refused(&mut self, key: &SessionKey) -> Result<()> {
        let Some(target) = self.targets.sessions.get_mut(key) else { return Ok(()) };
        let elsewhere = target.stream.writer.take_elsewhere();
        let refused = target.stream.writer.take_refused();
        let not_new = elsewhere + refused.len() as u64;
        target.new = target.new.saturating_sub(not_new);
        let counts = &mut self.shared.report.counts;
        counts.new = counts.new.saturating_sub(not_new);
        counts.known += elsewhere;
        for range in refused {
            let detail = "the line makes a bigger event than the store takes".into();
            let (class, offset, bytes) =
                (DamageClass::TooLarge, range.start, range.end - range.start);
            self.flaw(Flaw { class, offset, bytes, recovered: 0, detail })?;
        }
        Ok(())
    }
}

fn class_of(error: &Error) -> DamageClass {
    match error.kind() {
        ErrorKind::Unsupported => DamageClass::UnknownRecord,
        ErrorKind::NotFound => DamageClass::MissingField,
        _ => DamageClass::WrongType,
    }
}
