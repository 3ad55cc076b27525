//! One transcript, streamed: each record becomes an event once. A record is made into its event before anything else is
//! done with it, so that one that cannot be stored as it is leaves no trace before it is mended.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use super::damage::DamageClass;
use super::fields::Fields;
use super::pi::{self, Body, Call, Context, Draft, Entry, Kind, Usage};
use super::reading::{Known, Reading};
use super::records::{Flaw, Found, Sink, Verdict};
use super::session::with_source;
use super::story::{Identity, key};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::hex;
use crate::session::event::{Event, ImportedRecord, Json, Members, SessionPatched, Source, Turn};
use crate::store::NewEvent;

/// What is left of a record and longer than this has an event of its own, in bytes: only content may be too long for
/// a line.
pub(crate) const REST_BYTES_MAX: usize = 128 << 10;

/// Takes the records of one file of a part.
pub(crate) struct Transcript<'t, 'o, 's> {
    pub(crate) reading: Reading<'t, 'o, 's>,
}

/// A record whose events are made.
struct Made<'a> {
    event: NewEvent,
    /// What of the record was too long to stand in its event, or is said by it besides.
    second: Option<NewEvent>,
    at: Option<Timestamp>,
    parent: Option<std::borrow::Cow<'a, str>>,
    turn: Option<Box<Turn>>,
    calls: Vec<Call<'a>>,
    flaw: Option<(DamageClass, String)>,
}

impl Sink for Transcript<'_, '_, '_> {
    fn record(&mut self, found: &Found<'_>) -> Result<Verdict> {
        if !found.scanned && has_surrogates(found.text) {
            return Ok(Verdict::Unfit);
        }
        let Some(entry) = Entry::parse(found.text) else { return Ok(no_object(found)) };
        let kind = entry.kind();
        let header = kind == Some(Kind::Session) && self.is_own_header(&entry);
        let (mut identity, source) = self.identify(&entry, found, header);
        let known = self.reading.know(&mut identity, &source)?;
        if known == Known::Same {
            return Ok(Verdict::Taken);
        }
        let impossible = entry.impossible_time().map(shortened);
        let made = if header {
            self.made_of_header(entry, source)
        } else {
            self.made_of_entry(entry, found.text, &identity, source)
        };
        let made = match made {
            Ok(made) => made,
            Err(e) if *e.kind() == ErrorKind::InvalidInput => return Ok(refused(found, &e)),
            Err(e) => return Err(e),
        };
        if header {
            self.reading.story.open(&identity);
            self.reading
                .ongoing
                .put_record(std::iter::once(made.event).chain(made.second), &identity.range)?;
            if let Some(spelled) = impossible {
                self.reading.note(DamageClass::ImpossibleTime, &identity, spelled)?;
            }
            return Ok(Verdict::Taken);
        }
        if known == Known::OtherOfItsId {
            let detail = "another record of the part has the same id";
            self.reading.note(DamageClass::IdReused, &identity, detail.to_owned())?;
        }
        if let Some(spelled) = impossible {
            self.reading.note(DamageClass::ImpossibleTime, &identity, spelled)?;
        }
        if kind.is_none() {
            self.reading.note(DamageClass::MissingField, &identity, "type is absent".to_owned())?;
        }
        self.take(made, &identity)?;
        Ok(Verdict::Taken)
    }

    fn is_record(&self, text: &str) -> bool {
        Entry::parse(text).is_some_and(|entry| entry.is_certain())
    }

    fn flaw(&mut self, flaw: Flaw) -> Result<()> {
        self.reading.flaw(flaw)
    }

    fn progress(&mut self, offset: u64) -> Result<()> {
        self.reading.ongoing.progress(offset);
        Ok(())
    }
}

impl Transcript<'_, '_, '_> {
    /// Whether a header opens this part; a second one, of another session, does not.
    fn is_own_header(&self, entry: &Entry<'_>) -> bool {
        let own = entry.fields.text("id").as_deref() == Some(self.reading.ongoing.session_id());
        own || !self.reading.story.is_opened()
    }

    fn identify(&self, entry: &Entry<'_>, found: &Found<'_>, header: bool) -> (Identity, Source) {
        let digest = Sha256::digest(found.raw);
        let hash = first_bytes(&digest);
        let sha256 = hex(&digest);
        let own_id = entry.fields.text("id").filter(|id| !id.is_empty());
        let record = match &own_id {
            _ if header => ImportedRecord::Id(self.reading.ongoing.session_id()),
            Some(id) => ImportedRecord::Id(id),
            None => {
                ImportedRecord::Ordinal { ordinal: self.reading.story.records(), sha256: &sha256 }
            }
        };
        let id = self.reading.ongoing.id(record, "");
        let key = match record {
            ImportedRecord::Id(id) => key(id),
            ImportedRecord::Ordinal { ordinal, .. } => key(&(ordinal, hash)),
        };
        let (offset, bytes) = (found.offset, found.raw.len() as u64);
        let identity = Identity { id, key, hash, range: offset..offset + bytes };
        let file = self.reading.file.to_owned();
        (identity, Source { file, offset, bytes, sha256, rest: None })
    }

    /// The event that opens the part; in format 1 the header also says the model.
    fn made_of_header<'e>(&self, mut entry: Entry<'e>, mut source: Source) -> Result<Made<'e>> {
        let at = entry.fields.take_time("timestamp");
        let fields = &mut entry.fields;
        let set: Vec<(String, Json)> = [("model", "modelId"), ("thinkingLevel", "thinkingLevel")]
            .into_iter()
            .filter_map(|(to, from)| Some((to.to_owned(), Json::verbatim(fields.get(from)?))))
            .collect();
        fields.take("type");
        if fields.text("id").as_deref() == Some(self.reading.ongoing.session_id()) {
            fields.take("id");
        }
        source.rest = Some(fields.members()).filter(|rest| !rest.0.is_empty());
        let event = self.reading.ongoing.opened(at, Some(&source))?;
        let session_id = self.reading.ongoing.session_id().to_owned();
        let id = self.reading.ongoing.id(ImportedRecord::Id(&session_id), "patched");
        let patched = SessionPatched { at, session_id, set: Members(set) };
        let second = (!patched.set.0.is_empty())
            .then(|| self.reading.ongoing.new_event(&Event::SessionPatched(patched), id))
            .transpose()?;
        Ok(Made { event, second, at, parent: None, turn: None, calls: Vec::new(), flaw: None })
    }

    fn made_of_entry<'e>(
        &self,
        entry: Entry<'e>,
        text: &'e str,
        identity: &Identity,
        mut source: Source,
    ) -> Result<Made<'e>> {
        let kind = entry.kind().unwrap_or(Kind::Other);
        let Draft { body, at, parent, calls, rest, flaw } =
            self.draft(entry, text, kind, identity.hash)?;
        let rest = Some(rest).filter(|rest| !rest.0.is_empty());
        let id = identity.id;
        let (event, second, turn) = match body {
            Body::Turn(mut turn) => {
                let long = rest.as_ref().is_some_and(|rest| weight(rest) > REST_BYTES_MAX);
                let (rest, apart) = if long { (None, rest) } else { (rest, None) };
                let second =
                    apart.map(|rest| self.reading.ongoing.overflow(at, &source, &rest, id));
                source.rest = rest;
                turn.source = Some(source);
                (self.reading.ongoing.turn_event(&turn, id)?, second.transpose()?, Some(turn))
            }
            Body::Patched(patched) => {
                source.rest = rest;
                let event = self.reading.ongoing.new_event(&Event::SessionPatched(patched), id)?;
                (with_source(event, &source)?, None, None)
            }
            Body::Kept(kind) => {
                let record = rest.unwrap_or_default();
                (self.reading.ongoing.kept(kind, at, &source, &record, id)?, None, None)
            }
        };
        Ok(Made { event, second, at, parent, turn, calls, flaw })
    }

    fn draft<'e>(
        &self,
        entry: Entry<'e>,
        text: &'e str,
        kind: Kind,
        hash: u64,
    ) -> Result<Draft<'e>> {
        let own = self.reading.ongoing.counts_usage() && !self.reading.story.is_replayed(hash);
        let context = Context {
            program: self.reading.ongoing.program(),
            session_id: self.reading.ongoing.session_id(),
            door: self.reading.ongoing.door(),
            task: self.reading.ongoing.task().filter(|_| !self.reading.story.is_task_told()),
            usage: if own { Usage::Own } else { Usage::Elsewhere },
            key_of: &|text| self.reading.ongoing.key_of(text),
        };
        pi::draft(entry, text, kind, &context)
    }

    /// Puts the events of an entry, and what they say together with those before.
    fn take(&mut self, made: Made<'_>, identity: &Identity) -> Result<()> {
        let Made { event, second, at, parent, turn, calls, flaw } = made;
        let events = std::iter::once(event).chain(second);
        self.reading.settle()?;
        if let Some(missing) = self.reading.story.open_without_header() {
            self.reading.ongoing.flaw(self.reading.file, missing)?;
            let opened = self.reading.ongoing.opened(None, None)?;
            self.reading.ongoing.put_new(opened)?;
        }
        let parent = parent.filter(|parent| **parent != *self.reading.ongoing.session_id());
        let parent = parent.as_deref();
        let parent = parent.map(|id| (id, key(id)));
        for odd in self.reading.story.take(identity, at, parent) {
            self.reading.ongoing.flaw(self.reading.file, odd)?;
        }
        if let Some((class, detail)) = flaw {
            self.reading.note(class, identity, detail)?;
        }
        if let Some(turn) = turn.as_deref().filter(|_| !self.reading.story.is_task_told()) {
            self.reading.ongoing.want_place_of_task(turn, identity.id);
        }
        self.reading.ongoing.put_record(events, &identity.range)?;
        let Some(turn) = turn else { return Ok(()) };
        let odd = self.reading.story.turn(&turn, &calls, &identity.range);
        self.reading.tell(odd)?;
        self.reading.ongoing.count_turn(true);
        self.reading.ongoing.relate(&turn, &calls)
    }
}

/// What is said of a time that is none.
pub(crate) fn shortened(spelled: &str) -> String {
    let short: String = spelled.chars().take(64).collect();
    format!("the time {short} is none")
}

/// What is said of a record whose event cannot be stored: it is tried again mended, or it is lost.
pub(crate) fn refused(found: &Found<'_>, error: &Error) -> Verdict {
    if found.scanned {
        Verdict::Foreign(DamageClass::InvalidJson, error.message().to_owned())
    } else {
        Verdict::Unfit
    }
}

pub(crate) fn weight(rest: &Members) -> usize {
    rest.0.iter().map(|(name, value)| name.len() + value.as_str().len()).sum()
}

pub(crate) fn first_bytes(digest: &[u8]) -> u64 {
    digest.first_chunk::<8>().map_or(0, |first| u64::from_be_bytes(*first))
}

/// Whether text may hold a half of a surrogate pair.
pub(crate) fn has_surrogates(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memmem::find_iter(bytes, b"\\u")
        .any(|at| matches!(bytes.get(at + 2), Some(b'd' | b'D')))
}

/// What is said of text that is no entry.
pub(crate) fn no_object(found: &Found<'_>) -> Verdict {
    let object = found.text.starts_with('{');
    let json = serde_json::from_str::<serde::de::IgnoredAny>(found.text).is_ok();
    match (json, object) {
        (true, false) => Verdict::Foreign(DamageClass::WrongType, "this is no object".to_owned()),
        _ if found.scanned => {
            Verdict::Foreign(DamageClass::InvalidJson, "this is no record".to_owned())
        }
        _ => Verdict::Unfit,
    }
}

/// The hashes of a file's records, to know them again in a fork.
pub(crate) struct Hashes {
    pub(crate) found: HashSet<u64>,
    /// What a record is known again by, where that is not all of its bytes.
    pub(crate) known_by: fn(&str) -> Option<u64>,
}

impl Sink for Hashes {
    fn record(&mut self, found: &Found<'_>) -> Result<Verdict> {
        if Fields::parse(found.text).is_none() {
            return Ok(no_object(found));
        }
        let hash = (self.known_by)(found.text);
        self.found.insert(hash.unwrap_or_else(|| first_bytes(&Sha256::digest(found.raw))));
        Ok(Verdict::Taken)
    }

    fn is_record(&self, text: &str) -> bool {
        Entry::parse(text).is_some_and(|entry| entry.is_certain())
    }

    fn flaw(&mut self, _flaw: Flaw) -> Result<()> {
        Ok(())
    }
}
