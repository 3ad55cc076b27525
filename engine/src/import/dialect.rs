//! Programs whose records are read alike: a [`Dialect`] says what a record is, and everything that is the same for all
//! of them is here. A record is made into its events before anything else is done with it, so that one that cannot be
//! stored as it is leaves no trace before it is mended.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::damage::DamageClass;
use super::pi::{Call, Flaw as Odd};
use super::reading::{Known, Reading};
use super::records::{Flaw, Found, Sink, Verdict};
use super::session::with_source;
use super::story::{Identity, Story, key};
use super::transcript::{REST_BYTES_MAX, first_bytes, has_surrogates, no_object, refused, weight};
use crate::clock::Timestamp;
use crate::error::{ErrorKind, Result};
use crate::format::hex;
use crate::id::EventType;
use crate::session::event::{
    Event, ImportedRecord, Ingress, Json, Members, Provenance, RunStatus, SessionPatched, Source,
    Tokens, Turn,
};
use crate::store::NewEvent;

/// How many texts are remembered, to know one again that a program tells twice.
const TEXTS_MAX: usize = 64;

/// How the records of one program are read.
pub(crate) trait Dialect {
    /// What a record becomes; `None` for text that is none. Nothing is remembered here.
    ///
    /// # Errors
    /// Never for text that was read from JSON.
    fn draft<'a>(&self, text: &'a str, context: &Context<'_>) -> Option<Result<Draft<'a>>>;

    /// Whether text that stands behind a broken piece is a record beyond doubt.
    fn is_record(&self, text: &str) -> bool;
}

/// What is known of a session apart from the record that is read.
pub(crate) struct Context<'a> {
    /// The part of the session.
    pub(crate) session_id: &'a str,
    /// The door that a user's turns came through when they do not say.
    pub(crate) door: Ingress,
    /// Where the next user's turn came from: a sub-agent's first one is its task.
    pub(crate) task: Option<&'a Provenance>,
    /// When the session began, as far as that is known.
    pub(crate) began: Option<Timestamp>,
    pub(crate) story: &'a Story,
    /// Whether usage is counted here, and not in another session that has the same transcript.
    pub(crate) counts_usage: bool,
}

/// What a record becomes, before it is known where it stands in its file.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) body: Body,
    /// The record's own id in its session; its place and its bytes count where it has none.
    pub(crate) id: Option<Cow<'a, str>>,
    /// What it is known again by in a fork, if that is not all of its bytes.
    pub(crate) hash: Option<u64>,
    pub(crate) at: Option<Timestamp>,
    /// The tool calls that it makes.
    pub(crate) calls: Vec<Call<'a>>,
    /// What the event does not carry.
    pub(crate) rest: Members,
    /// What is wrong with the record.
    pub(crate) flaw: Odd,
    pub(crate) memo: Memo,
    pub(crate) news: Option<News>,
}

/// The events of a record.
#[derive(Debug)]
pub(crate) enum Body {
    /// The header: it opens the part, and may hold turns itself.
    Opened(Vec<Turn>),
    /// Turns, of which there is at least one.
    Turns(Vec<Turn>),
    Patched(SessionPatched),
    /// An event of the program's own, of this type, that holds the record as it is.
    Kept(EventType),
    /// No event: the record tells nothing that is not told elsewhere. Its type, to be counted.
    Passed(String),
}

/// What a record says of the runs of sub-agents.
#[derive(Debug)]
pub(crate) enum News {
    /// The session spawned the sub-agent of this id.
    Spawned(String),
    /// The sub-agent whose session this is came to an end.
    Ended(RunStatus),
}

/// What is to be remembered of a record once it is taken.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// The hashes of what was said in it.
    pub(crate) texts: Vec<u64>,
    pub(crate) response: Response,
    /// The usage of the session up to here, as its program counts it.
    pub(crate) total: Option<Tokens>,
    /// The model that answers from here on.
    pub(crate) model: Option<String>,
    /// A message that may be told again with more in it: the hash of its id, and that of its content.
    pub(crate) message: Option<(u64, u64)>,
}

/// What a record does to the answer of the model that is going on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Response {
    /// Nothing.
    #[default]
    Stays,
    /// It is a piece of it: the id of the message.
    Piece(String),
    /// It ends it.
    Ends,
}

/// What is remembered of a session's records, as far as dialects need it.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    texts: VecDeque<u64>,
    response: Option<String>,
    last_response: Option<String>,
    total: Option<Tokens>,
    model: Option<String>,
    messages: HashMap<u64, u64>,
}

impl Memory {
    /// Whether a text was told among the last ones.
    pub(crate) fn has_text(&self, hash: u64) -> bool {
        self.texts.contains(&hash)
    }

    /// The message that the model's answer is which goes on.
    pub(crate) fn response(&self) -> Option<&str> {
        self.response.as_deref()
    }

    /// The message that the model's last answer was.
    pub(crate) fn last_response(&self) -> Option<&str> {
        self.last_response.as_deref()
    }

    pub(crate) fn total(&self) -> Option<&Tokens> {
        self.total.as_ref()
    }

    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The hash of what a message said when it was told last.
    pub(crate) fn message(&self, id: u64) -> Option<u64> {
        self.messages.get(&id).copied()
    }

    fn take(&mut self, memo: Memo) {
        for text in memo.texts {
            if self.texts.len() >= TEXTS_MAX {
                self.texts.pop_front();
            }
            self.texts.push_back(text);
        }
        match memo.response {
            Response::Stays => {}
            Response::Ends => self.response = None,
            Response::Piece(id) => {
                self.last_response = Some(id.clone());
                self.response = Some(id);
            }
        }
        self.total = memo.total.or(self.total.take());
        self.model = memo.model.or(self.model.take());
        if let Some((id, content)) = memo.message {
            self.messages.insert(id, content);
        }
    }
}

impl<'a> Draft<'a> {
    /// A draft with nothing but a body.
    pub(crate) fn of(body: Body) -> Self {
        Self {
            body,
            id: None,
            hash: None,
            at: None,
            calls: Vec::new(),
            rest: Members::default(),
            flaw: None,
            memo: Memo::default(),
            news: None,
        }
    }

    /// A record that is kept as it is.
    pub(crate) fn kept(kind: EventType, rest: Members, flaw: Odd) -> Self {
        Self { rest, flaw, ..Self::of(Body::Kept(kind)) }
    }
}

/// Blocks that a dialect makes of what its program keeps in fields.
#[derive(Debug, Default)]
pub(crate) struct Blocks(String);

impl Blocks {
    fn begin(&mut self) {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
    }

    /// What was said, before what was called; nothing for a text without a letter.
    pub(crate) fn text(&mut self, said: &Json) {
        let spelled = said.as_str();
        if let Some(blocks) = spelled.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if !blocks.trim_ascii().is_empty() {
                self.begin();
                self.0.push_str(blocks);
            }
        } else if spelled != "\"\"" {
            self.begin();
            self.0.extend(["{\"type\":\"text\",\"text\":", spelled, "}"]);
        }
    }

    /// A call of a tool.
    pub(crate) fn call(&mut self, id: &str, name: &str, arguments: Option<&RawValue>) {
        let text = |text: &str| {
            Json::of(text).map_or_else(|_| "\"\"".into(), |json| json.as_str().to_owned())
        };
        self.begin();
        self.0.extend(["{\"type\":\"toolCall\",\"id\":", &text(id), ",\"name\":", &text(name)]);
        if let Some(arguments) = arguments {
            self.0.extend([",\"arguments\":", arguments.get()]);
        }
        self.0.push('}');
    }

    /// The blocks as content.
    ///
    /// # Errors
    /// Never for what was read from JSON.
    pub(crate) fn finish(mut self) -> Result<Json> {
        if self.0.is_empty() {
            self.0.push('[');
        }
        self.0.push(']');
        Json::from_text(self.0)
    }
}

/// The type of an event that keeps a record as it is: the most exact of these names that can be one.
///
/// # Errors
/// Never: the program alone is a name.
pub(crate) fn own_type(program: &str, names: &[&str]) -> Result<EventType> {
    let mut names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    while !names.is_empty() {
        if let Ok(kind) = EventType::new(format!("x.{program}.{}", names.join("."))) {
            return Ok(kind);
        }
        names.pop();
    }
    EventType::new(format!("x.{program}.record"))
}

/// Takes the records of one file of a part.
pub(crate) struct Records<'t, 'o, 's> {
    pub(crate) reading: Reading<'t, 'o, 's>,
    pub(crate) dialect: &'t dyn Dialect,
}

/// A record whose events are made.
struct Made<'a> {
    events: Vec<NewEvent>,
    turns: Vec<Turn>,
    draft: Draft<'a>,
    /// Whether it is the header.
    opens: bool,
}

impl Sink for Records<'_, '_, '_> {
    fn record(&mut self, found: &Found<'_>) -> Result<Verdict> {
        if !found.scanned && has_surrogates(found.text) {
            return Ok(Verdict::Unfit);
        }
        let draft = match self.draft(found.text) {
            None => return Ok(no_object(found)),
            Some(Err(e)) if *e.kind() == ErrorKind::InvalidInput => return Ok(refused(found, &e)),
            Some(draft) => draft?,
        };
        let (mut identity, source) = self.identify(&draft, found);
        let known = self.reading.know(&mut identity, &source)?;
        if known == Known::Same {
            return Ok(Verdict::Taken);
        }
        let made = match self.made(draft, &identity, source) {
            Ok(made) => made,
            Err(e) if *e.kind() == ErrorKind::InvalidInput => return Ok(refused(found, &e)),
            Err(e) => return Err(e),
        };
        if known == Known::OtherOfItsId {
            let detail = "another record of the session has the same id";
            self.reading.note(DamageClass::IdReused, &identity, detail.to_owned())?;
        }
        self.take(made, &identity)?;
        Ok(Verdict::Taken)
    }

    fn is_record(&self, text: &str) -> bool {
        self.dialect.is_record(text)
    }

    fn flaw(&mut self, flaw: Flaw) -> Result<()> {
        self.reading.flaw(flaw)
    }

    fn progress(&mut self, offset: u64) -> Result<()> {
        self.reading.ongoing.progress(offset);
        Ok(())
    }
}

impl Records<'_, '_, '_> {
    fn draft<'e>(&self, text: &'e str) -> Option<Result<Draft<'e>>> {
        let Reading { ongoing, story, .. } = &self.reading;
        let context = Context {
            session_id: ongoing.session_id(),
            door: ongoing.door(),
            task: ongoing.task().filter(|_| !story.is_task_told()),
            began: ongoing.part.began,
            story,
            counts_usage: ongoing.counts_usage(),
        };
        self.dialect.draft(text, &context)
    }

    fn identify(&self, draft: &Draft<'_>, found: &Found<'_>) -> (Identity, Source) {
        let digest = Sha256::digest(found.raw);
        let hash = draft.hash.unwrap_or_else(|| first_bytes(&digest));
        let sha256 = hex(&digest);
        let ongoing = &self.reading.ongoing;
        let ordinal = self.reading.story.records();
        let record = match (&draft.body, &draft.id) {
            (Body::Opened(_), _) => ImportedRecord::Id(ongoing.session_id()),
            (_, Some(id)) => ImportedRecord::Id(id),
            _ => ImportedRecord::Ordinal { ordinal, sha256: &sha256 },
        };
        let id = ongoing.id(record, "");
        let key = match record {
            ImportedRecord::Id(id) => key(id),
            ImportedRecord::Ordinal { ordinal, .. } => key(&(ordinal, hash)),
        };
        let (offset, bytes) = (found.offset, found.raw.len() as u64);
        let identity = Identity { id, key, hash, range: offset..offset + bytes };
        let file = self.reading.file.to_owned();
        (identity, Source { file, offset, bytes, sha256, rest: None })
    }

    fn made<'e>(
        &self,
        mut draft: Draft<'e>,
        identity: &Identity,
        mut source: Source,
    ) -> Result<Made<'e>> {
        let ongoing = &self.reading.ongoing;
        let rest = std::mem::take(&mut draft.rest);
        let rest = Some(rest).filter(|rest| !rest.0.is_empty());
        let id = identity.id;
        let body = std::mem::replace(&mut draft.body, Body::Passed(String::new()));
        let mut opens = false;
        let (events, turns) = match body {
            Body::Opened(turns) => {
                opens = true;
                let bare = source.clone();
                let (rest, apart) = apart(rest);
                let apart = apart.map(|rest| ongoing.overflow(draft.at, &source, &rest, id));
                source.rest = rest;
                let mut events = vec![ongoing.opened(draft.at, Some(&source))?];
                events.extend(apart.transpose()?);
                let (more, turns) = self.turn_events(turns, bare, None, identity, 1)?;
                events.extend(more);
                (events, turns)
            }
            Body::Turns(turns) => self.turn_events(turns, source, rest, identity, 0)?,
            Body::Patched(patched) => {
                source.rest = rest;
                let event = ongoing.new_event(&Event::SessionPatched(patched), id)?;
                (vec![with_source(event, &source)?], Vec::new())
            }
            Body::Kept(kind) => {
                let record = rest.unwrap_or_default();
                (vec![ongoing.kept(kind, draft.at, &source, &record, id)?], Vec::new())
            }
            Body::Passed(kind) => {
                draft.body = Body::Passed(kind);
                (Vec::new(), Vec::new())
            }
        };
        Ok(Made { events, turns, draft, opens })
    }

    /// An event for each turn of a record, and one for what is too long to stand beside the first one's content. The
    /// turn at the place `first` has the record's own id.
    fn turn_events(
        &self,
        mut turns: Vec<Turn>,
        source: Source,
        rest: Option<Members>,
        identity: &Identity,
        first: usize,
    ) -> Result<(Vec<NewEvent>, Vec<Turn>)> {
        let ongoing = &self.reading.ongoing;
        let mut events = Vec::with_capacity(turns.len() + 1);
        let at = turns.first().and_then(|turn| turn.at);
        let (rest, apart) = apart(rest);
        let apart = apart.map(|rest| ongoing.overflow(at, &source, &rest, identity.id));
        let bare = (turns.len() > 1).then(|| source.clone());
        let mut source = Some(Source { rest, ..source });
        for (place, turn) in turns.iter_mut().enumerate() {
            let id = match place + first {
                0 => identity.id,
                place => {
                    let first = identity.id.to_string();
                    ongoing.id(ImportedRecord::Id(&first), &format!("turn {place}"))
                }
            };
            turn.source = source.take().or_else(|| bare.clone());
            events.push(ongoing.turn_event(turn, id)?);
        }
        events.extend(apart.transpose()?);
        Ok((events, turns))
    }

    /// Puts the events of a record, and what they say together with those before.
    fn take(&mut self, made: Made<'_>, identity: &Identity) -> Result<()> {
        let Made { events, turns, draft, opens } = made;
        self.reading.settle()?;
        if opens {
            self.reading.story.open(identity);
            if !turns.is_empty() {
                self.reading.story.header_speaks();
            }
        } else {
            self.open(&events)?;
            for odd in self.reading.story.take(identity, draft.at, None) {
                self.reading.ongoing.flaw(self.reading.file, odd)?;
            }
        }
        if let Some((class, detail)) = draft.flaw {
            self.reading.note(class, identity, detail)?;
        }
        if let Body::Passed(kind) = &draft.body
            && events.is_empty()
        {
            self.reading.ongoing.shared.report.passed(kind);
        }
        if let Some(turn) = turns.first().filter(|_| !self.reading.story.is_task_told())
            && let Some(event) = events.iter().find(|event| event.kind.as_str() == "turn")
        {
            self.reading.ongoing.want_place_of_task(turn, event.id);
        }
        self.reading.ongoing.put_record(events, &identity.range)?;
        for turn in &turns {
            let odd = self.reading.story.turn(turn, &draft.calls, &identity.range);
            self.reading.tell(odd)?;
            self.relate(turn, &draft.calls)?;
        }
        self.tell(draft.news, draft.at)?;
        self.reading.story.memory.take(draft.memo);
        Ok(())
    }

    /// Opens the part before its first event where no header did; says so.
    fn open(&mut self, events: &[NewEvent]) -> Result<()> {
        if events.is_empty() || self.reading.story.is_opened() {
            return Ok(());
        }
        if let Some(missing) = self.reading.story.open_without_header() {
            self.reading.ongoing.flaw(self.reading.file, missing)?;
            let opened = self.reading.ongoing.opened(None, None)?;
            self.reading.ongoing.put_new(opened)?;
        }
        Ok(())
    }

    /// Follows what a turn says of other sessions.
    fn relate(&mut self, turn: &Turn, calls: &[Call<'_>]) -> Result<()> {
        let begins = match &turn.message_id {
            Some(id) => self.reading.story.begins_message(key(id.as_str())),
            None => true,
        };
        self.reading.ongoing.count_turn(begins);
        self.reading.ongoing.relate(turn, calls)
    }

    /// Follows what a record says of the runs of sub-agents.
    fn tell(&mut self, news: Option<News>, at: Option<Timestamp>) -> Result<()> {
        let ongoing = &mut self.reading.ongoing;
        let from = &ongoing.plan.key;
        let relations = &mut ongoing.shared.relations;
        let told = match news {
            Some(News::Spawned(child)) => relations.spawned(from, &child),
            Some(News::Ended(status)) => {
                relations.ended(from, status, at);
                None
            }
            None => None,
        };
        ongoing.put_told(told.into_iter().collect())
    }
}

/// What is left of a record, or what of it is too long to stand beside the content.
fn apart(rest: Option<Members>) -> (Option<Members>, Option<Members>) {
    let long = rest.as_ref().is_some_and(|rest| weight(rest) > REST_BYTES_MAX);
    if long { (None, rest) } else { (rest, None) }
}
