//! One session of a source on its way into one stream: opened, part by part, record by record, and what its program
//! says of it now.

use std::ops::Range;

use super::claude::Rows;
use super::damage::{Damage, DamageClass};
use super::known::Known;
use super::pi;
use super::plan::{PartPlan, SessionPlan, Twin};
use super::pursuit::{Pursuit, Tail};
use super::records::Flaw;
use super::relations::Relations;
use super::report::{Progress, SourceReport};
use super::run::RunEvent;
use super::sniff::Program;
use super::writer::{Journal, Put, StreamWriter};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::format::Payload;
use crate::id::{EventId, EventType, StreamName};
use crate::session::event::{
    Event, ImportDamage, ImportedRecord, Ingress, Json, Links, Members, Provenance, Role, Source,
    Turn, import_id,
};
use crate::session::key::SessionKey;
use crate::store::NewEvent;

/// What all sessions of one source share while they are imported.
pub(crate) struct Shared<'s> {
    pub(crate) program: Program,
    pub(crate) journal: Journal<'s>,
    pub(crate) known: Known,
    pub(crate) relations: Relations,
    pub(crate) report: SourceReport,
    /// Where damages go.
    pub(crate) damages: StreamWriter,
    pub(crate) meter: Meter<'s>,
    /// Rows of Claude Code that sessions of the source have.
    pub(crate) rows: Rows,
    /// What is kept for the next import, of a source that grows.
    pub(crate) pursuit: Option<Pursuit>,
}

/// How far an import is.
pub(crate) struct Meter<'s> {
    pub(crate) tell: &'s mut dyn FnMut(Progress),
    /// Bytes of the files that are behind, of this file and of all files.
    pub(crate) behind: u64,
    pub(crate) total: u64,
    /// Events of the sources that are behind.
    pub(crate) new_behind: u64,
    told: u64,
}

/// How many bytes are read between two reports of progress.
const STEP_BYTES: u64 = 1 << 20;

impl<'s> Meter<'s> {
    pub(crate) fn new(tell: &'s mut dyn FnMut(Progress), total: u64) -> Self {
        Self { tell, behind: 0, total, new_behind: 0, told: 0 }
    }

    pub(crate) fn at(&mut self, offset: u64, new: u64) {
        let done = self.behind + offset;
        if done >= self.told + STEP_BYTES || done >= self.total {
            self.told = done;
            let (bytes_done, bytes_total) = (done.min(self.total), self.total);
            (self.tell)(Progress { bytes_done, bytes_total, new: self.new_behind + new });
        }
    }
}

impl Shared<'_> {
    /// Whether what breaks off at the end of a file is torn, or not whole yet.
    pub(crate) const fn tail(&self) -> Tail {
        match self.pursuit {
            Some(_) => Tail::Growing,
            None => Tail::Final,
        }
    }

    /// The writer of a stream.
    pub(crate) fn writer(&mut self, stream: &StreamName) -> Result<StreamWriter> {
        match self.pursuit.as_mut().and_then(|pursuit| pursuit.take_writer(stream)) {
            Some(writer) => Ok(writer),
            None => StreamWriter::open(&self.journal, stream.clone()),
        }
    }

    /// Keeps a writer for the next import.
    pub(crate) fn keep_writer(&mut self, writer: StreamWriter) {
        if let Some(pursuit) = &mut self.pursuit {
            pursuit.keep_writer(writer);
        }
    }

    /// Notes damage, and says so once in the store. `scope` and the place in it are its identity: the name of the file
    /// is not, because files are renamed.
    pub(crate) fn damage(&mut self, scope: &str, damage: &Damage) -> Result<()> {
        self.report.damage(damage);
        let key = format!("{}:{}:{}", damage.class, damage.offset, damage.bytes);
        let id = import_id(self.program.code(), scope, ImportedRecord::Id(&key), "damage");
        if self.known.is_told(id) {
            self.report.counts.known += 1;
            return Ok(());
        }
        let (program, path) = self.journal.subject();
        let event = Event::ImportDamage(ImportDamage {
            at: None,
            program: program.to_owned(),
            path: path.to_owned(),
            class: damage.class.code().to_owned(),
            file: damage.file.clone(),
            offset: damage.offset,
            bytes: damage.bytes,
            recovered: damage.recovered,
            detail: Some(damage.detail.clone()).filter(|detail| !detail.is_empty()),
        });
        let put = self.damages.put(&mut self.journal, &event, id)?;
        self.count(put);
        Ok(())
    }

    pub(crate) fn count(&mut self, put: Put) {
        match put {
            Put::New => self.report.counts.new += 1,
            Put::Known => self.report.counts.known += 1,
        }
    }
}

/// A part of a session while it is imported.
pub(crate) struct Ongoing<'o, 's> {
    pub(crate) shared: &'o mut Shared<'s>,
    pub(crate) plan: &'o SessionPlan,
    pub(crate) part: &'o PartPlan,
    /// The session's key in the store.
    pub(crate) key: &'o SessionKey,
    pub(crate) writer: &'o mut StreamWriter,
    /// The scope in which the part's records have their ids.
    pub(crate) scope: String,
    pub(crate) twin: Twin,
    /// The file that the part is opened from, in full.
    pub(crate) source_path: Option<String>,
    pub(crate) turns: u64,
    pub(crate) new: u64,
    /// The session whose records this one goes on from and does not repeat: its key and the id of its part.
    pub(crate) goes_on_from: Option<(String, String)>,
}

impl Ongoing<'_, '_> {
    pub(crate) fn program(&self) -> &'static str {
        self.shared.program.code()
    }

    pub(crate) fn session_id(&self) -> &str {
        &self.part.session_id
    }

    pub(crate) fn door(&self) -> Ingress {
        self.plan.door
    }

    pub(crate) fn task(&self) -> Option<&Provenance> {
        self.plan.task.as_ref()
    }

    pub(crate) fn counts_usage(&self) -> bool {
        self.twin == Twin::First
    }

    pub(crate) fn key_of(&self, text: &str) -> String {
        self.shared.relations.key_of(text)
    }

    /// The id of an event made from a record of this part.
    pub(crate) fn id(&self, record: ImportedRecord<'_>, part: &str) -> EventId {
        import_id(self.program(), &self.scope, record, part)
    }

    pub(crate) fn progress(&mut self, offset: u64) {
        let new = self.shared.report.counts.new;
        self.shared.meter.at(offset, new);
    }

    pub(crate) fn flaw(&mut self, file: &str, flaw: Flaw) -> Result<()> {
        let Flaw { class, offset, bytes, recovered, detail } = flaw;
        let (file, detail) = (file.to_owned(), detail.into_owned());
        self.shared.damage(&self.scope, &Damage { class, file, offset, bytes, recovered, detail })
    }

    /// The event that opens the part, with the header that it was read from.
    pub(crate) fn opened(
        &self,
        at: Option<Timestamp>,
        header: Option<&Source>,
    ) -> Result<NewEvent> {
        let mut opened = self.plan.opening.0.clone();
        opened.at = at.or(self.part.began);
        opened.session_id.clone_from(&self.part.session_id);
        opened.source_path.clone_from(&self.source_path);
        if let Some(run) = self.shared.relations.first_run_of(&self.plan.key)
            && let Some(requester) = &run.requester
            && self.shared.program == Program::ClaudeCode
        {
            // A sub-agent of a sub-agent is known for one by the call that spawned it.
            let part = self.shared.relations.part_of(requester, run.created);
            opened.parent_session_id = part.or(opened.parent_session_id);
            opened.parent_key = Some(requester.clone());
        }
        if let Some((key, session_id)) = self.goes_on_from.clone()
            && opened.parent_key.is_none()
        {
            (opened.parent_key, opened.parent_session_id) = (Some(key), Some(session_id));
        }
        opened.parent_key = opened.parent_key.map(|key| self.key_of(&key));
        let id = self.id(ImportedRecord::Id(self.session_id()), "");
        let event = self.new_event(&Event::SessionOpened(opened), id)?;
        match header {
            Some(source) => with_source(event, source),
            None => Ok(event),
        }
    }

    pub(crate) fn put(&mut self, event: &Event, id: EventId) -> Result<()> {
        let event = self.new_event(event, id)?;
        self.put_made(event, 0..0)
    }

    pub(crate) fn put_new(&mut self, event: NewEvent) -> Result<()> {
        self.put_made(event, 0..0)
    }

    fn put_made(&mut self, event: NewEvent, range: Range<u64>) -> Result<()> {
        let put = self.writer.put_made(&mut self.shared.journal, event, range)?;
        self.new += u64::from(put == Put::New);
        self.shared.count(put);
        self.note_refused()
    }

    /// Puts the events of a record.
    pub(crate) fn put_record(
        &mut self,
        events: impl IntoIterator<Item = NewEvent>,
        range: &Range<u64>,
    ) -> Result<()> {
        self.shared.report.counts.records += 1;
        events.into_iter().try_for_each(|event| self.put_made(event, range.clone()))
    }

    /// Asks for the place that a turn is going to have, if it is the task of a sub-agent.
    pub(crate) fn want_place_of_task(&mut self, turn: &Turn, id: EventId) {
        if self.plan.task.is_some() && turn.role == Role::User && turn.provenance.is_some() {
            self.writer.want_place(id);
        }
    }

    /// Puts what a turn tells of runs.
    pub(crate) fn put_told(&mut self, told: Vec<RunEvent>) -> Result<()> {
        for event in told {
            self.put_made(event.to_new(self.key.stream())?, 0..0)?;
        }
        Ok(())
    }

    /// Counts a turn, or a piece of one.
    pub(crate) fn count_turn(&mut self, begins: bool) {
        self.turns += u64::from(begins);
        self.shared.report.counts.turns += u64::from(begins);
    }

    /// Appends what is waiting.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.writer.flush(&mut self.shared.journal)?;
        self.note_refused()
    }

    fn note_refused(&mut self) -> Result<()> {
        let elsewhere = self.writer.take_elsewhere();
        let counts = &mut self.shared.report.counts;
        counts.new = counts.new.saturating_sub(elsewhere);
        counts.known += elsewhere;
        self.new = self.new.saturating_sub(elsewhere);
        for range in self.writer.take_refused() {
            self.shared.report.counts.new = self.shared.report.counts.new.saturating_sub(1);
            self.new = self.new.saturating_sub(1);
            let file = self.part.files.last().map(|file| file.name.clone()).unwrap_or_default();
            let flaw = Flaw {
                class: DamageClass::TooLarge,
                offset: range.start,
                bytes: range.end - range.start,
                recovered: 0,
                detail: "the record makes a bigger event than the store takes".into(),
            };
            self.flaw(&file, flaw)?;
        }
        Ok(())
    }

    /// Follows what a turn says of other sessions.
    pub(crate) fn relate(&mut self, turn: &Turn, calls: &[pi::Call<'_>]) -> Result<()> {
        let at = turn.at;
        let content = turn.content.as_ref().map(Json::as_str).unwrap_or_default();
        let told = match (turn.role, turn.call_id.as_deref(), &turn.provenance) {
            (Role::Assistant, ..) => {
                self.shared.relations.called(&self.plan.key, calls, at);
                Vec::new()
            }
            (Role::ToolResult, Some(call), _) => {
                let answered = self.shared.relations.answered(&self.plan.key, call, content, at);
                answered.into_iter().collect()
            }
            (Role::User, _, Some(provenance)) if turn.from == Ingress::InterSession => {
                let Shared { relations, known, .. } = self.shared;
                relations.arrived(&self.plan.key, provenance, |key| known.has_key(key))
            }
            _ => Vec::new(),
        };
        self.put_told(told)
    }

    pub(crate) fn new_event(&self, event: &Event, id: EventId) -> Result<NewEvent> {
        event.to_new(self.key.stream().clone(), id, Links::default())
    }

    /// The event of a turn, which need not be copied for it.
    pub(crate) fn turn_event(&self, turn: &Turn, id: EventId) -> Result<NewEvent> {
        self.made(EventType::new("turn")?, Payload::of(turn)?, id)
    }

    /// An event of the program's own that keeps a record as it is.
    pub(crate) fn kept(
        &self,
        kind: EventType,
        at: Option<Timestamp>,
        source: &Source,
        record: &Members,
        id: EventId,
    ) -> Result<NewEvent> {
        let kept = Kept { at, session_id: self.session_id(), source, content: record };
        self.made(kind, Payload::of(&kept)?, id)
    }

    /// The event that holds what of a record is too long to stand beside its content.
    pub(crate) fn overflow(
        &self,
        at: Option<Timestamp>,
        source: &Source,
        rest: &Members,
        id: EventId,
    ) -> Result<NewEvent> {
        let kind = EventType::new(format!("x.{}.rest", self.program()))?;
        let id = self.id(ImportedRecord::Id(&id.to_string()), "rest");
        self.kept(kind, at, source, rest, id)
    }

    fn made(&self, kind: EventType, data: Payload, id: EventId) -> Result<NewEvent> {
        let stream = self.key.stream().clone();
        Ok(NewEvent { id, stream, kind, cause: None, flow: None, data })
    }
}

/// The payload of an event of another program's own. What the record says stands under `content`, so that it may be as
/// long as that of a turn.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Kept<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    session_id: &'a str,
    source: &'a Source,
    content: &'a Members,
}

/// Puts the record that an event was made from behind its own fields.
pub(crate) fn with_source(mut event: NewEvent, source: &Source) -> Result<NewEvent> {
    let source = Json::of(source)?;
    let fields = event.data.as_str().strip_suffix('}').unwrap_or_default();
    event.data = Payload::from_json(&format!("{fields},\"source\":{}}}", source.as_str()))?;
    Ok(event)
}
