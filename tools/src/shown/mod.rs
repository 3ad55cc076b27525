//! An event as it is shown: the record, when it happened, and what it says between sessions; `wire` and `cloud_event` are
//! its forms for programs, `gap` the one of events that are missing.

pub mod cloud_event;
pub mod gap;
pub mod wire;

use annals_engine::clock::Timestamp;
use annals_engine::format::Payload;
use annals_engine::session::audit::Message;
use annals_engine::session::event::{Event, RunStatus, happened_at};
use annals_engine::store::{EventStore, Record};
use annals_engine::{ErrorKind, Result};
use regex::Regex;
use serde_json::Value;

use crate::mask::Mask;

/// An event to be shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The record.
    pub record: Box<Record>,
    /// When it happened.
    pub at: Timestamp,
    /// What it says between sessions, if it does.
    pub message: Option<Message>,
    /// The content that is too big for a line.
    pub apart: Apart,
}

/// Content that lies apart from its line.
#[derive(Clone, Debug)]
pub enum Apart {
    /// There is none: the line has everything.
    Nothing,
    /// The whole payload, put together.
    Whole(Payload),
    /// It is absent or has other bytes: this is said instead.
    Lost(String),
}

impl Shown {
    /// A record as it is shown, its content put together.
    ///
    /// # Errors
    /// Whatever reading meets, but not that content is lost.
    pub fn new(
        record: Box<Record>,
        message: Option<Message>,
        store: &dyn EventStore,
    ) -> Result<Self> {
        let apart = match record.blob.map(|_| store.payload(&record)) {
            None => Apart::Nothing,
            Some(Ok(payload)) => Apart::Whole(payload),
            Some(Err(error)) if *error.kind() == ErrorKind::Corrupt => {
                Apart::Lost(error.to_string())
            }
            Some(Err(error)) => return Err(error),
        };
        Ok(Self { at: happened_at(record.time, record.data.as_str()), record, message, apart })
    }

    /// The payload, as whole as it can be had.
    #[must_use]
    pub fn payload(&self) -> &Payload {
        match &self.apart {
            Apart::Whole(payload) => payload,
            _ => &self.record.data,
        }
    }

    /// The event that it is; `None` when it cannot be read as one.
    #[must_use]
    pub fn event(&self) -> Option<Event> {
        Event::parse(&self.record.kind, self.payload()).ok()
    }

    /// Whether it tells of a refusal, a failure or damage.
    #[must_use]
    pub fn went_wrong(&self) -> bool {
        let name = self.record.kind.as_str();
        let by_name =
            [".refused", ".failed", ".unknown", ".denied", ".blocked", ".damage", ".degraded"];
        if by_name.iter().any(|end| name.ends_with(end)) {
            return true;
        }
        match self.event() {
            Some(Event::RunFinished(run)) => run.status != RunStatus::Ok,
            Some(Event::Turn(turn)) => turn.is_error == Some(true),
            _ => false,
        }
    }

    /// Whether it names a run whose id begins so.
    #[must_use]
    pub fn belongs_to_run(&self, beginning: &str) -> bool {
        let stream = self.record.stream.as_str();
        if let Some(run) = stream.strip_prefix("run:") {
            return run.starts_with(beginning);
        }
        let data = self.data();
        let places = [data.get("runId"), data.pointer("/provenance/runId")];
        places.iter().flatten().filter_map(|id| id.as_str()).any(|id| id.starts_with(beginning))
    }

    /// Whether a text in it matches: of a turn what was said and the tool that said it, of anything else any text of
    /// the payload.
    #[must_use]
    pub fn has_text(&self, regex: &Regex) -> bool {
        let data = self.data();
        let found = &mut |text: &str| regex.is_match(text);
        if self.record.kind.as_str() != "turn" {
            return any_text(&data, found);
        }
        ["content", "toolName"].iter().filter_map(|name| data.get(name)).any(|v| any_text(v, found))
    }

    fn data(&self) -> Value {
        serde_json::from_str(self.payload().as_str()).unwrap_or_default()
    }
}

impl Shown {
    /// Masks secrets in all that is shown of it.
    pub fn mask(&mut self, mask: &Mask) {
        if let Some(payload) = masked(&self.record.data, mask) {
            self.record.data = payload;
        }
        if let Apart::Whole(payload) = &mut self.apart
            && let Some(masked) = masked(payload, mask)
        {
            *payload = masked;
        }
        if let Some(text) = self.message.as_mut().and_then(|message| message.text.as_mut()) {
            *text = mask.text(text).into_owned();
        }
    }
}

fn masked(payload: &Payload, mask: &Mask) -> Option<Payload> {
    mask.json(payload.as_str()).and_then(|json| Payload::from_json(&json).ok())
}

fn any_text(value: &Value, found: &mut impl FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, found)),
        Value::Object(members) => members.values().any(|member| any_text(member, found)),
        _ => false,
    }
}
