//! One file of a session, streamed: each row becomes its events once. A row is made into them before anything else is
//! done with it, so that one that cannot be stored as it is leaves no trace before it is mended.

use std::collections::HashMap;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::event::{Body, Context, Draft, draft};
use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::format::hex;
use crate::import::damage::DamageClass;
use crate::import::fields::Fields;
use crate::import::pi::{Call, Entry};
use crate::import::reading::{Known, Reading};
use crate::import::records::{Flaw, Found, Sink, Verdict};
use crate::import::relations::Answer;
use crate::import::session::with_source;
use crate::import::story::{Identity, key};
use crate::import::transcript::{
    REST_BYTES_MAX, first_bytes, has_surrogates, no_object, refused, shortened, weight,
};
use crate::session::event::{Event, ImportedRecord, Members, Role, Source, Turn, import_id};
use crate::store::NewEvent;

/// The rows that sessions of a source have, by their ids, to know them again in a session that repeats them.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: HashMap<u128, u32>,
    sessions: Vec<(String, String)>,
    /// The places of the sessions, from 1, and that of the one which is read.
    places: HashMap<(String, String), u32>,
    current: u32,
}

impl Rows {
    /// Begins a session; its key and the id of its part.
    pub(crate) fn begin(&mut self, key: &str, session_id: &str) {
        let session = (key.to_owned(), session_id.to_owned());
        if let Some(place) = self.places.get(&session) {
            self.current = *place;
            return;
        }
        self.sessions.push(session.clone());
        self.current = u32::try_from(self.sessions.len()).unwrap_or(u32::MAX);
        self.places.insert(session, self.current);
    }

    fn take(&mut self, row: u128) {
        let current = self.current;
        self.rows.entry(row).or_insert(current);
    }

    /// The session that has a row, if that is another one than the current.
    fn elsewhere(&self, row: u128) -> Option<&(String, String)> {
        let at = self.rows.get(&row).filter(|at| **at != self.current)?;
        self.sessions.get(usize::try_from(*at).ok()?.checked_sub(1)?)
    }
}

/// Takes the rows of one file of a part.
pub(crate) struct Transcript<'t, 'o, 's> {
    pub(crate) reading: Reading<'t, 'o, 's>,
}

/// A row whose events are made.
struct Made<'a> {
    events: Vec<NewEvent>,
    turns: Vec<Turn>,
    at: Option<Timestamp>,
    parent: Option<std::borrow::Cow<'a, str>>,
    calls: Vec<Call<'a>>,
    result: Option<&'a RawValue>,
    flaw: Option<(DamageClass, String)>,
    titled: bool,
}

impl Sink for Transcript<'_, '_, '_> {
    fn record(&mut self, found: &Found<'_>) -> Result<Verdict> {
        if !found.scanned && has_surrogates(found.text) {
            return Ok(Verdict::Unfit);
        }
        let Some(row) = Entry::parse(found.text) else { return Ok(no_object(found)) };
        let uuid = row.fields.text("uuid").filter(|id| !id.is_empty());
        let number = uuid.as_deref().and_then(|id| uuid::Uuid::try_parse(id).ok());
        let number = number.map(|uuid| uuid.as_u128());
        let (mut identity, source) = self.identify(uuid.as_deref(), number.is_some(), found);
        let known = self.reading.know(&mut identity, &source)?;
        if known == Known::Same {
            return Ok(Verdict::Taken);
        }
        let kind = row.fields.text("type");
        let impossible = row.impossible_time().map(shortened);
        let made = match self.made(row, found.text, &identity, source) {
            Ok(made) => made,
            Err(e) if *e.kind() == ErrorKind::InvalidInput => return Ok(refused(found, &e)),
            Err(e) => return Err(e),
        };
        if self.is_repeated_elsewhere(number, &made, &identity)? {
            return Ok(Verdict::Taken);
        }
        if known == Known::OtherOfItsId {
            let detail = "another row of the session has the same id";
            self.reading.note(DamageClass::IdReused, &identity, detail.to_owned())?;
        }
        if let Some(spelled) = impossible {
            self.reading.note(DamageClass::ImpossibleTime, &identity, spelled)?;
        }
        match &kind {
            None => self.reading.note(
                DamageClass::MissingField,
                &identity,
                "type is absent".to_owned(),
            )?,
            Some(kind) if made.events.is_empty() => self.reading.ongoing.shared.report.passed(kind),
            Some(_) => {}
        }
        if let Some(number) = number {
            self.reading.ongoing.shared.rows.take(number);
        }
        self.take(made, &identity)?;
        Ok(Verdict::Taken)
    }

    fn is_record(&self, text: &str) -> bool {
        Entry::parse(text).is_some_and(|row| {
            row.fields.has("type")
                && ["uuid", "sessionId", "leafUuid"].iter().any(|name| row.fields.has(name))
        })
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
    fn identify(&self, uuid: Option<&str>, own: bool, found: &Found<'_>) -> (Identity, Source) {
        let digest = Sha256::digest(found.raw);
        let hash = first_bytes(&digest);
        let sha256 = hex(&digest);
        let ordinal = self.reading.story.records();
        let record = uuid.map_or(ImportedRecord::Ordinal { ordinal, sha256: &sha256 }, |id| {
            ImportedRecord::Id(id)
        });
        // What is an id all over the world is one here, so that no row comes twice, whichever session has it.
        let scope = if own { "" } else { &self.reading.ongoing.scope };
        let id = import_id(self.reading.ongoing.program(), scope, record, "");
        let key = uuid.map_or_else(|| key(&(ordinal, hash)), key);
        let (offset, bytes) = (found.offset, found.raw.len() as u64);
        let identity = Identity { id, key, hash, range: offset..offset + bytes };
        let file = self.reading.file.to_owned();
        (identity, Source { file, offset, bytes, sha256, rest: None })
    }

    fn made<'e>(
        &self,
        row: Entry<'e>,
        text: &'e str,
        identity: &Identity,
        mut source: Source,
    ) -> Result<Made<'e>> {
        let task = self.reading.ongoing.task().filter(|_| !self.reading.story.is_task_told());
        let titled = row.fields.text("type").is_some_and(|kind| kind == "custom-title");
        let context = Context {
            session_id: self.reading.ongoing.session_id(),
            parent_session_id: self.reading.ongoing.plan.opening.0.parent_session_id.as_deref(),
            door: self.reading.ongoing.door(),
            task,
            tool_of: &|call| self.reading.story.tool_of(call).map(str::to_owned),
            has_row: &|row| self.reading.story.has_key(key(row)),
            titled: self.reading.story.is_titled(),
        };
        let Draft { body, at, parent, calls, result, rest, flaw } = draft(row, text, &context)?;
        let rest = Some(rest).filter(|rest| !rest.0.is_empty());
        let id = identity.id;
        let (events, turns) = match body {
            Body::Turns(turns) => self.turn_events(turns, source, rest, identity)?,
            Body::Patched(patched) => {
                source.rest = rest;
                let event = self.reading.ongoing.new_event(&Event::SessionPatched(patched), id)?;
                (vec![with_source(event, &source)?], Vec::new())
            }
            Body::Kept(kind) => {
                let record = rest.unwrap_or_default();
                (vec![self.reading.ongoing.kept(kind, at, &source, &record, id)?], Vec::new())
            }
            Body::Passed => (Vec::new(), Vec::new()),
        };
        Ok(Made { events, turns, at, parent, calls, result, flaw, titled })
    }

    /// An event for each turn of a row, and one for what is too long to stand beside the first one's content.
    fn turn_events(
        &self,
        mut turns: Vec<Turn>,
        source: Source,
        rest: Option<Members>,
        identity: &Identity,
    ) -> Result<(Vec<NewEvent>, Vec<Turn>)> {
        let mut events = Vec::with_capacity(turns.len());
        let at = turns.first().and_then(|turn| turn.at);
        let long = rest.as_ref().is_some_and(|rest| weight(rest) > REST_BYTES_MAX);
        let (rest, apart) = if long { (None, rest) } else { (rest, None) };
        let apart = apart
            .map(|rest| self.reading.ongoing.overflow(at, &source, &rest, identity.id))
            .transpose()?;
        let bare = (turns.len() > 1).then(|| source.clone());
        let mut source = Some(Source { rest, ..source });
        for (place, turn) in turns.iter_mut().enumerate() {
            let id = match place {
                0 => identity.id,
                place => {
                    let first = identity.id.to_string();
                    self.reading.ongoing.id(ImportedRecord::Id(&first), &format!("result {place}"))
                }
            };
            turn.source = source.take().or_else(|| bare.clone());
            events.push(self.reading.ongoing.turn_event(turn, id)?);
        }
        events.extend(apart);
        Ok((events, turns))
    }

    /// Whether an earlier session has the row: then it stays there, and what it says of calls is remembered.
    fn is_repeated_elsewhere(
        &mut self,
        number: Option<u128>,
        made: &Made<'_>,
        identity: &Identity,
    ) -> Result<bool> {
        let rows = &self.reading.ongoing.shared.rows;
        let Some(there) = number.and_then(|number| rows.elsewhere(number)) else {
            return Ok(false);
        };
        self.reading.ongoing.goes_on_from.get_or_insert_with(|| there.clone());
        self.reading.settle()?;
        self.reading.story.replayed(identity);
        for turn in &made.turns {
            self.reading.story.turn(turn, &made.calls, &identity.range);
        }
        Ok(true)
    }

    /// Puts the events of a row, and what they say together with those before.
    fn take(&mut self, made: Made<'_>, identity: &Identity) -> Result<()> {
        let Made { events, turns, at, parent, calls, result, flaw, titled } = made;
        self.reading.settle()?;
        if !events.is_empty() && self.reading.story.open_without_header().is_some() {
            let opened = self.reading.ongoing.opened(None, None)?;
            self.reading.ongoing.put_new(opened)?;
        }
        let parent = parent.as_deref().map(|id| (id, key(id)));
        for odd in self.reading.story.take(identity, at, parent) {
            self.reading.ongoing.flaw(self.reading.file, odd)?;
        }
        if titled {
            self.reading.story.titled();
        }
        if let Some((class, detail)) = flaw {
            self.reading.note(class, identity, detail)?;
        }
        if let Some(turn) = turns.first().filter(|_| !self.reading.story.is_task_told()) {
            self.reading.ongoing.want_place_of_task(turn, identity.id);
        }
        self.reading.ongoing.put_record(events, &identity.range)?;
        for turn in &turns {
            let odd = self.reading.story.turn(turn, &calls, &identity.range);
            self.reading.tell(odd)?;
            self.relate(turn, &calls, result)?;
        }
        Ok(())
    }

    /// Follows what a turn says of sub-agents.
    fn relate(&mut self, turn: &Turn, calls: &[Call<'_>], result: Option<&RawValue>) -> Result<()> {
        let piece = turn.role == Role::Assistant;
        let piece = turn.message_id.as_deref().filter(|_| piece);
        let begins = piece.is_none_or(|id| self.reading.story.begins_message(key(id)));
        self.reading.ongoing.count_turn(begins);
        let (from, at) = (&self.reading.ongoing.plan.key, turn.at);
        let relations = &mut self.reading.ongoing.shared.relations;
        let told = match (turn.role, turn.call_id.as_deref()) {
            (Role::Assistant, _) => relations.tasks_given(from, calls, at),
            (Role::ToolResult, Some(call)) => {
                let answer = answer(result, turn.is_error, at);
                relations.task_answered(from, call, answer).into_iter().collect()
            }
            _ => Vec::new(),
        };
        self.reading.ongoing.put_told(told)
    }
}

/// What a tool's result says of the sub-agent that it comes from.
fn answer(result: Option<&RawValue>, is_error: Option<bool>, at: Option<Timestamp>) -> Answer {
    let told = result.filter(|value| value.get().contains("\"agentId\""));
    let told = told.and_then(|value| Fields::parse(value.get())).unwrap_or_default();
    Answer {
        agent_id: told.text("agentId").map(|id| id.into_owned()),
        status: told.text("status").map(|status| status.into_owned()),
        runtime_ms: told.get("totalDurationMs").and_then(crate::import::fields::count),
        is_error: is_error == Some(true),
        at,
    }
}
