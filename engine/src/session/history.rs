//! History: one session's turns as messages, a bounded page at a time: the newest page first, inside it the oldest
//! message first. It reads the stream backwards in steps and opens nothing else.

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::id::{EventId, StreamName, Version};
use crate::store::{EventStore, Item, Record};

use super::event::{Event, Json, Provenance, Role, Tokens, Turn, happened_at};
use super::index::{Entry, Found, Sessions};

/// Which page is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    /// Which turns belong to it.
    pub span: Span,
    /// Whether what tools answered is shown.
    pub tool_results: ToolResults,
    /// The most messages of the page; at least one is shown.
    pub limit: usize,
    /// The cursor of an earlier page: what lies before it is wanted.
    pub before: Option<Version>,
}

/// How much of a session's history is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// The part that was named, else the current one.
    #[default]
    Part,
    /// All parts of the key.
    Whole,
}

/// Whether what tools answered is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolResults {
    /// No.
    #[default]
    Hidden,
    /// Yes.
    Shown,
}

impl Default for HistoryQuery {
    fn default() -> Self {
        Self { span: Span::Part, tool_results: ToolResults::Hidden, limit: 50, before: None }
    }
}

/// A page.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The session.
    pub key: StreamName,
    /// The part; `None` when all parts were meant.
    pub session_id: Option<String>,
    /// The messages, the oldest first.
    pub messages: Vec<Message>,
    /// How many messages there are on all pages.
    pub total: u64,
    /// The cursor of the page before; `None` on the page that begins with the first message.
    pub before: Option<Version>,
    /// Whether events of the session are known to be missing.
    pub damaged: bool,
}

impl Page {
    /// Whether older messages were left out.
    #[must_use]
    pub const fn truncated(&self) -> bool {
        self.before.is_some()
    }
}

/// A message. Neighbouring turns that are pieces of one message are one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The position of its first turn in the log.
    pub seq: u64,
    /// The event id of its first turn.
    #[serde(serialize_with = "text")]
    pub id: EventId,
    /// Whose it is.
    pub role: Role,
    /// What was said, verbatim; `null` where that is lost.
    pub content: Option<Json>,
    /// When, in milliseconds since 1970.
    pub timestamp: i64,
    /// The model that produced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Tokens>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// The silent token that it consists of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
    /// How many bytes of content lay apart and are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_bytes: Option<u64>,
    /// How many bytes of content were left out of an answer that they do not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    #[serde(skip)]
    message_id: Option<String>,
    #[serde(skip)]
    version: Version,
    #[serde(skip)]
    pub(in crate::session) tools: ToolLinks,
}

/// How a message hangs together with those of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::session) struct ToolLinks {
    /// The calls that it opens.
    pub(in crate::session) calls: Vec<String>,
    /// The call that it answers.
    pub(in crate::session) answers: Option<String>,
    /// The tool that it answers for.
    pub(in crate::session) name: Option<String>,
}

/// A page of the history of a session that [`Sessions::find`] found, as of what `sessions` has seen.
///
/// # Errors
/// `NotFound` when there is no such session or part; whatever reading meets. Damage is no error: the page says so.
pub fn history(
    store: &dyn EventStore,
    sessions: &Sessions,
    found: &Found,
    query: &HistoryQuery,
) -> Result<Page> {
    let entry = sessions.entry(&found.key).ok_or_else(|| missing(found.key.as_str()))?;
    let scope = Scope::of(entry, found, query)?;
    let mut page = Page {
        key: found.key.clone(),
        session_id: scope.part.clone(),
        messages: Vec::new(),
        total: scope.total,
        before: None,
        damaged: entry.damaged,
    };
    let wanted = query.limit.max(1);
    let mut reader = Backwards { store, scope, damaged: false };
    let mut messages = reader.last(wanted.saturating_add(1))?;
    if messages.len() > wanted {
        messages.drain(..messages.len() - wanted);
        page.before = messages.first().map(|message| message.version);
    }
    page.damaged |= reader.damaged;
    page.messages = messages;
    Ok(page)
}

/// The turns that are meant: those of a part, in a range of versions.
pub(in crate::session) struct Scope {
    stream: StreamName,
    part: Option<String>,
    tool_results: ToolResults,
    first: Version,
    last: Version,
    total: u64,
}

impl Scope {
    pub(in crate::session) fn of(
        entry: &Entry,
        found: &Found,
        query: &HistoryQuery,
    ) -> Result<Self> {
        let parts: Vec<_> = match (query.span, &found.part) {
            (Span::Whole, _) => entry.parts.iter().collect(),
            (Span::Part, None) => entry.current().into_iter().collect(),
            (Span::Part, Some(id)) => entry.parts.iter().filter(|p| p.session_id == *id).collect(),
        };
        let [first, ..] = parts.as_slice() else { return Err(missing(found.key.as_str())) };
        let spans = parts.iter().filter_map(|part| part.span);
        let (low, high) = spans
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .unwrap_or((Version::ZERO.next(), Version::ZERO));
        let before = query.before.map_or(high, |v| high.min(Version(v.0.saturating_sub(1))));
        let count = |part: &&super::index::Part| match query.tool_results {
            ToolResults::Hidden => part.messages.without_results,
            ToolResults::Shown => part.messages.all,
        };
        Ok(Self {
            stream: found.key.clone(),
            part: (query.span == Span::Part).then(|| first.session_id.clone()),
            tool_results: query.tool_results,
            first: low,
            last: before,
            total: parts.iter().map(count).sum(),
        })
    }

    fn shows(&self, turn: &Turn) -> bool {
        self.part.as_ref().is_none_or(|part| *part == turn.session_id)
            && (self.tool_results == ToolResults::Shown || turn.role != Role::ToolResult)
    }
}

/// Reads a stream from its end towards its beginning.
pub(in crate::session) struct Backwards<'a> {
    pub(in crate::session) store: &'a dyn EventStore,
    pub(in crate::session) scope: Scope,
    /// Whether events of the session were found missing.
    pub(in crate::session) damaged: bool,
}

impl Backwards<'_> {
    /// The last messages of the scope, at least `wanted` when there are so many. All but the first are whole.
    pub(in crate::session) fn last(&mut self, wanted: usize) -> Result<Vec<Message>> {
        let mut messages: Vec<Message> = Vec::new();
        let mut end = self.scope.last;
        let mut step = u64::try_from(wanted).unwrap_or(u64::MAX).max(16);
        while end >= self.scope.first && messages.len() < wanted {
            let begin = Version(end.0.saturating_sub(step - 1)).max(self.scope.first);
            let mut older = self.between(begin, end)?;
            join(&mut older, messages);
            messages = older;
            end = Version(begin.0.saturating_sub(1));
            step = step.saturating_mul(2);
        }
        Ok(messages)
    }

    /// The messages of a range of versions, both ends included.
    fn between(&mut self, begin: Version, end: Version) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        let after = Version(begin.0.saturating_sub(1));
        for item in self.store.read_stream(&self.scope.stream, after)? {
            let record = match item? {
                Item::Record(record) if record.version > end => break,
                Item::Record(record) => record,
                Item::Gap(damage) => {
                    let stream = self.scope.stream.as_str();
                    self.damaged |= damage.touched.iter().any(|touched| touched.stream == stream);
                    continue;
                }
            };
            if let Some(message) = self.message(&record)? {
                join(&mut messages, [message]);
            }
        }
        Ok(messages)
    }

    /// The message that a record is, with the content that lies apart from its line.
    fn message(&mut self, record: &Record) -> Result<Option<Message>> {
        let Ok(Event::Turn(mut turn)) = Event::of(record) else { return Ok(None) };
        if !self.scope.shows(&turn) {
            return Ok(None);
        }
        let mut lost_bytes = None;
        if let Some(blob) = record.blob {
            match self.store.payload(record) {
                Ok(whole) => turn.content = whole.read::<Turn>()?.content,
                Err(error) if *error.kind() == ErrorKind::Corrupt => {
                    self.damaged = true;
                    lost_bytes = Some(blob.bytes);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Message { lost_bytes, ..Message::of(record, turn) }))
    }
}

/// Appends messages; pieces of one message become one.
fn join(messages: &mut Vec<Message>, newer: impl IntoIterator<Item = Message>) {
    for message in newer {
        match messages.last_mut() {
            Some(last) if last.goes_on_with(&message) => last.take(message),
            _ => messages.push(message),
        }
    }
}

impl Message {
    fn of(record: &Record, turn: Turn) -> Self {
        Self {
            seq: record.seq.0,
            id: record.id,
            role: turn.role,
            content: turn.content,
            timestamp: happened_at(record.time, record.data.as_str()).as_millis(),
            model: turn.model,
            usage: turn.tokens,
            provenance: turn.provenance,
            silent: turn.silent,
            lost_bytes: None,
            omitted_bytes: None,
            message_id: turn.message_id,
            version: record.version,
            tools: ToolLinks { calls: turn.calls, answers: turn.call_id, name: turn.tool_name },
        }
    }

    fn goes_on_with(&self, next: &Self) -> bool {
        self.message_id.is_some() && self.message_id == next.message_id && self.role == next.role
    }

    fn take(&mut self, piece: Self) {
        let size = |usage: &Option<Tokens>| usage.as_ref().map(|t| t.r#in.saturating_add(t.out));
        if size(&piece.usage) > size(&self.usage) {
            self.usage = piece.usage;
        }
        self.content = match (self.content.take(), piece.content) {
            (Some(first), Some(second)) => Some(first.followed_by(&second)),
            (first, second) => first.or(second),
        };
        self.model = self.model.take().or(piece.model);
        self.tools.calls.extend(piece.tools.calls);
        self.lost_bytes = match (self.lost_bytes, piece.lost_bytes) {
            (Some(first), Some(second)) => Some(first.saturating_add(second)),
            (first, second) => first.or(second),
        };
    }
}

pub(in crate::session) fn missing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no session {name:?}")).field("sessionKey")
}

fn text<S: serde::Serializer>(id: &EventId, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(id)
}

#[cfg(test)]
mod tests;
