//! A record as events: what of it has a place there, and what is left for `source.rest`.

use std::borrow::Cow;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::item;
use super::usage;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::import::damage::DamageClass;
use crate::import::dialect::{Body, Context, Dialect, Draft, Memo, News, Response, own_type};
use crate::import::fields::{self, Fields};
use crate::import::pi::{Flaw, string};
use crate::import::story::key;
use crate::import::transcript::{first_bytes, shortened};
use crate::session::event::{Ingress, Json, Members, Role, RunStatus, SessionPatched, Turn};

/// The word for the program in types of events.
pub(super) const PROGRAM: &str = "codex";

/// Records of Codex.
pub(crate) struct Codex;

/// What a record is known again by in a fork, which gives it another time: its type and its payload.
pub(crate) fn hash_of(text: &str) -> Option<u64> {
    let row = Fields::parse(text)?;
    let payload = row.get("payload")?;
    let mut hash = Sha256::new();
    hash.update(row.text("type").unwrap_or_default().as_bytes());
    hash.update([0]);
    hash.update(payload.get().as_bytes());
    Some(first_bytes(&hash.finalize()))
}

impl Dialect for Codex {
    fn draft<'a>(&self, text: &'a str, context: &Context<'_>) -> Option<Result<Draft<'a>>> {
        let row = Fields::parse(text)?;
        let hash = hash_of(text);
        let spelled = row.get("timestamp").or_else(|| row.get("created_at"));
        let at = spelled.and_then(fields::time);
        let impossible = spelled
            .filter(|value| at.is_none() && value.get() != "null")
            .map(|value| (DamageClass::ImpossibleTime, shortened(value.get())));
        let drafting = Drafting { context, at, hash };
        Some(drafting.draft(row, text).map(|draft| Draft {
            hash,
            at: draft.at.or(at),
            flaw: draft.flaw.or(impossible),
            ..draft
        }))
    }

    fn is_record(&self, text: &str) -> bool {
        Fields::parse(text)
            .is_some_and(|row| row.has("type") && row.has("payload") && row.has("timestamp"))
    }
}

/// A record and its payload, apart.
pub(super) struct Row<'a> {
    /// Its fields, without the payload.
    pub(super) outer: Fields<'a>,
    pub(super) payload: Fields<'a>,
    /// The payload as it is spelled, or the record that is its own.
    pub(super) spelled: Cow<'a, RawValue>,
}

pub(super) struct Drafting<'c> {
    pub(super) context: &'c Context<'c>,
    pub(super) at: Option<Timestamp>,
    hash: Option<u64>,
}

impl Drafting<'_> {
    fn draft<'a>(&self, mut outer: Fields<'a>, text: &'a str) -> Result<Draft<'a>> {
        let kind = outer.text("type").unwrap_or_default().into_owned();
        let payload = outer.get("payload");
        let inside = payload.and_then(|payload| Fields::parse(payload.get()));
        let whole = outer.clone();
        let (spelled, inside) = match (payload, inside) {
            (Some(payload), Some(inside)) => {
                outer.take("payload");
                (Cow::Borrowed(payload), inside)
            }
            (Some(_), None) => {
                let flaw = Some((DamageClass::WrongType, "payload is not an object".to_owned()));
                return self.kept(&whole, &[&kind], flaw);
            }
            (None, _) => {
                let spelled = RawValue::from_string(text.to_owned()).map(Cow::Owned);
                let spelled = match spelled {
                    Ok(spelled) => spelled,
                    Err(_) => Cow::Borrowed(RawValue::NULL),
                };
                (spelled, std::mem::take(&mut outer))
            }
        };
        let sort = inside.text("type").unwrap_or_default().into_owned();
        let bare = payload.is_none();
        let row = Row { outer, payload: inside, spelled };
        let drafted = match kind.as_str() {
            "session_meta" if self.is_header(&row.payload) => Ok(self.header(row)),
            "" if bare && self.is_header(&row.payload) && !row.payload.has("role") => {
                Ok(self.header(row))
            }
            "response_item" => self.item(row),
            "event_msg" => self.told(row, &sort),
            "turn_context" => self.turn_context(row),
            "compacted" => self.compacted(row),
            _ if bare => self.item(row),
            _ => Err(None),
        };
        match drafted {
            Ok(draft) => Ok(draft),
            // Fields may have been taken out before the fault was met.
            Err(flaw) if bare => self.kept(&whole, &[&kind], flaw),
            Err(flaw) => self.kept(&whole, &[&kind, &sort], flaw),
        }
    }

    /// A record that is kept as it is; what it says of usage and of sub-agents is heard all the same.
    fn kept<'a>(&self, whole: &Fields<'a>, names: &[&str], flaw: Flaw) -> Result<Draft<'a>> {
        let payload = whole.get("payload").and_then(|payload| Fields::parse(payload.get()));
        let payload = payload.unwrap_or_default();
        let mut draft = Draft::kept(own_type(PROGRAM, names)?, whole.members(), flaw);
        draft.news = self.news(names.last().copied().unwrap_or_default(), &payload);
        draft.memo.total = self.count(&payload).map(|count| count.total);
        Ok(draft)
    }

    /// Whether a header is this session's own.
    fn is_header(&self, payload: &Fields<'_>) -> bool {
        let own = payload.text("id").as_deref() == Some(self.context.session_id);
        payload.has("id") && (own || !self.context.story.is_opened())
    }

    fn header<'a>(&self, mut row: Row<'a>) -> Draft<'a> {
        let own = |id: &RawValue| {
            (fields::text(id).as_deref() == Some(self.context.session_id)).then_some(())
        };
        let at = row.payload.get("timestamp").and_then(fields::time);
        if at == self.at {
            row.payload.take_time("timestamp");
        }
        row.payload.take_if("id", own);
        row.payload.take_if("session_id", own);
        Draft { at: at.or(self.at), rest: self.rest(row), ..Draft::of(Body::Opened(Vec::new())) }
    }

    /// What is left of a record whose payload has been read.
    pub(super) fn rest(&self, mut row: Row<'_>) -> Members {
        row.outer.take("type");
        row.outer.take_time("timestamp");
        let mut rest = row.outer.members();
        if row.payload.is_empty() {
            return rest;
        }
        if let Ok(payload) = Json::of(&row.payload.members()) {
            rest.0.push(("payload".to_owned(), payload));
        }
        rest
    }

    fn item<'a>(&self, row: Row<'a>) -> Result<Draft<'a>, Flaw> {
        item::draft(self, row)
    }

    /// The message that a piece of the model's answer belongs to.
    pub(super) fn response(&self) -> String {
        let story = self.context.story;
        let going_on = story.memory.response().map(str::to_owned);
        going_on.unwrap_or_else(|| format!("response-{}", story.records()))
    }

    pub(super) fn turn(&self, role: Role, from: Ingress, content: Json) -> Turn {
        let mut turn = Turn::new(self.context.session_id, role, from, content);
        turn.at = self.at;
        turn
    }

    /// What the program told whoever was watching.
    fn told<'a>(&self, mut row: Row<'a>, sort: &str) -> Result<Draft<'a>, Flaw> {
        match sort {
            "user_message" | "agent_message" | "agent_reasoning" => {
                let said = row.payload.text("message").or_else(|| row.payload.text("text"));
                let said = said.map(|said| key(said.trim()));
                if !said.is_some_and(|said| self.context.story.memory.has_text(said)) {
                    return Err(None);
                }
                Ok(Draft::of(Body::Passed(format!("event_msg.{sort}"))))
            }
            "token_count" => self.used(row),
            "thread_name_updated" => {
                let name = string(&mut row.payload, "thread_name")?;
                Ok(self.patched(row, vec![("displayName".to_owned(), name)]))
            }
            _ => Err(None),
        }
    }

    fn count(&self, payload: &Fields<'_>) -> Option<usage::Count> {
        let info = Fields::parse(payload.get("info")?.get())?;
        usage::count(&info, self.context.story.memory.total())
    }

    /// What an answer of the model used: a piece of its message.
    fn used<'a>(&self, mut row: Row<'a>) -> Result<Draft<'a>, Flaw> {
        let own = self.context.counts_usage
            && !self.hash.is_some_and(|hash| self.context.story.is_replayed(hash));
        let Some(count) = self.count(&row.payload).filter(|_| own) else { return Err(None) };
        let Some(used) = count.used else { return Err(None) };
        row.payload.take("type");
        let memory = &self.context.story.memory;
        let last = memory.response().or(memory.last_response()).map(str::to_owned);
        let mut turn =
            self.turn(Role::Assistant, Ingress::Internal, Json::of(&[(); 0]).map_err(|_| None)?);
        turn.message_id = Some(last.unwrap_or_else(|| self.response()));
        turn.model = memory.model().map(str::to_owned);
        turn.tokens = Some(used);
        let memo = Memo { total: Some(count.total), response: Response::Ends, ..Memo::default() };
        Ok(Draft { memo, rest: self.rest(row), ..Draft::of(Body::Turns(vec![turn])) })
    }

    /// What a record that is kept says of sub-agents.
    fn news(&self, sort: &str, payload: &Fields<'_>) -> Option<News> {
        let text = |name: &str| payload.text(name).map(Cow::into_owned);
        match sort {
            "collab_agent_spawn_end" => text("new_thread_id").map(News::Spawned),
            "sub_agent_activity" => text("agent_thread_id").map(News::Spawned),
            "task_complete" => {
                let failed = payload.get("error").is_some_and(|error| error.get() != "null");
                Some(News::Ended(if failed { RunStatus::Error } else { RunStatus::Ok }))
            }
            "turn_aborted" => Some(News::Ended(RunStatus::Interrupted)),
            _ => None,
        }
    }

    fn patched<'a>(&self, row: Row<'a>, set: Vec<(String, Json)>) -> Draft<'a> {
        let mut row = row;
        row.payload.take("type");
        let patched = SessionPatched {
            at: self.at,
            session_id: self.context.session_id.to_owned(),
            set: Members(set),
        };
        Draft { rest: self.rest(row), ..Draft::of(Body::Patched(patched)) }
    }

    /// How the turns from here on are made.
    fn turn_context<'a>(&self, mut row: Row<'a>) -> Result<Draft<'a>, Flaw> {
        let model = row.payload.text("model").map(Cow::into_owned);
        let mut set = vec![("model".to_owned(), string(&mut row.payload, "model")?)];
        if row.payload.get("effort").is_some_and(|effort| effort.get().starts_with('"')) {
            set.push(("thinkingLevel".to_owned(), string(&mut row.payload, "effort")?));
        }
        let memo = Memo { model, response: Response::Ends, ..Memo::default() };
        Ok(Draft { memo, ..self.patched(row, set) })
    }

    /// A summary that stands for what came before.
    fn compacted<'a>(&self, mut row: Row<'a>) -> Result<Draft<'a>, Flaw> {
        let summary = string(&mut row.payload, "message")?;
        let turn = self.turn(Role::System, Ingress::Internal, summary);
        let memo = Memo { response: Response::Ends, ..Memo::default() };
        Ok(Draft { memo, rest: self.rest(row), ..Draft::of(Body::Turns(vec![turn])) })
    }
}
