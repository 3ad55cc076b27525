//! A row as events: what of it has a place there, and what is left for `source.rest`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::EventType;
use crate::import::damage::DamageClass;
use crate::import::fields::{self, Fields};
use crate::import::pi::{Call, Entry, Flaw, absent, calls, content, string};
use crate::session::event::{
    Ingress, Json, Members, Provenance, Role, SessionPatched, Tokens, Turn,
};

/// What is known of a session apart from its rows.
pub(crate) struct Context<'a> {
    /// The part of the session.
    pub(crate) session_id: &'a str,
    /// The id that rows of a sub-agent have for the session that spawned it.
    pub(crate) parent_session_id: Option<&'a str>,
    /// The door that a user's turns came through when they do not say.
    pub(crate) door: Ingress,
    /// Where the next user's turn came from: a sub-agent's first one is its task.
    pub(crate) task: Option<&'a Provenance>,
    /// The tool that a call was made to.
    pub(crate) tool_of: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the session has a row of this id already.
    pub(crate) has_row: &'a dyn Fn(&str) -> bool,
    /// Whether a person gave the session a title.
    pub(crate) titled: bool,
}

/// What a row becomes, before it is known where it stands in its file.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) body: Body,
    pub(crate) at: Option<Timestamp>,
    pub(crate) parent: Option<Cow<'a, str>>,
    /// The tool calls that it makes.
    pub(crate) calls: Vec<Call<'a>>,
    /// What the program says of a tool's result beside it.
    pub(crate) result: Option<&'a RawValue>,
    /// What the event does not carry.
    pub(crate) rest: Members,
    /// What is wrong with the row.
    pub(crate) flaw: Option<(DamageClass, String)>,
}

/// The events of a row.
#[derive(Debug)]
pub(crate) enum Body {
    /// Turns, of which there is at least one.
    Turns(Vec<Turn>),
    Patched(SessionPatched),
    /// An event of the program's own, of this type, that holds the row as it is.
    Kept(EventType),
    /// No event: the row tells nothing that is not told elsewhere.
    Passed,
}

/// Rows that are counted and make no event.
const PASSED: [&str; 3] = ["progress", "file-history-snapshot", "last-prompt"];

/// Drafts the events of a row that was read from this text.
///
/// # Errors
/// Never for a row that was read from JSON.
pub(crate) fn draft<'a>(
    mut row: Entry<'a>,
    text: &'a str,
    context: &Context<'_>,
) -> Result<Draft<'a>> {
    let parent = row.fields.text("parentUuid");
    let at = row.at();
    let result = row.fields.get("toolUseResult");
    let kind = row.fields.text("type").unwrap_or_default();
    let mut drafting =
        Drafting { context, at, calls: Vec::new(), usage: None, attachment: None, odd: None };
    let (body, flaw) = match drafting.body(&mut row, &kind) {
        Ok(body) => (body, drafting.odd.take()),
        Err(flaw) => {
            // Fields may have been taken out before the fault was met.
            row = Entry::parse(text).unwrap_or(row);
            drafting.usage = None;
            (Body::Kept(own_type(&kind, row.fields.text("subtype").as_deref())?), flaw)
        }
    };
    let rest = match &body {
        Body::Passed => Members::default(),
        _ => rest(&row, drafting.usage, drafting.attachment)?,
    };
    Ok(Draft { body, at, parent, calls: drafting.calls, result, rest, flaw })
}

/// The type of an event that keeps a row as it is: the row's own type, and what sort of it where it says so.
fn own_type(kind: &str, sort: Option<&str>) -> Result<EventType> {
    let kind = if kind.is_empty() { "row" } else { kind };
    let sorted = sort.map(|sort| EventType::new(format!("x.claude-code.{kind}.{sort}")));
    match sorted {
        Some(Ok(sorted)) => Ok(sorted),
        _ => EventType::new(format!("x.claude-code.{kind}"))
            .or_else(|_| EventType::new("x.claude-code.row")),
    }
}

/// What is left of a row, of its attachment, and of the usage that its message tells.
fn rest(
    row: &Entry<'_>,
    usage: Option<Fields<'_>>,
    attachment: Option<Fields<'_>>,
) -> Result<Members> {
    let mut rest = row.fields.members();
    if let Some(attachment) = attachment {
        rest.0.push(("attachment".to_owned(), Json::of(&attachment.members())?));
    }
    let mut message = row.message.as_ref().map(Fields::members).unwrap_or_default();
    if let Some(usage) = usage.filter(|usage| !usage.is_empty()) {
        message.0.push(("usage".to_owned(), Json::of(&usage.members())?));
    }
    if !message.0.is_empty() {
        rest.0.push(("message".to_owned(), Json::of(&message)?));
    }
    Ok(rest)
}

struct Drafting<'a, 'c> {
    context: &'c Context<'c>,
    at: Option<Timestamp>,
    calls: Vec<Call<'a>>,
    /// What is left of the usage.
    usage: Option<Fields<'a>>,
    /// What is left of the attachment.
    attachment: Option<Fields<'a>>,
    /// What is wrong with a row that makes turns all the same.
    odd: Flaw,
}

impl<'a> Drafting<'a, '_> {
    fn body(&mut self, row: &mut Entry<'a>, kind: &str) -> Result<Body, Flaw> {
        let turns = match kind {
            "user" => self.user(row)?,
            "assistant" => vec![self.assistant(row)?],
            "attachment" => vec![self.waiting_prompt(row)?],
            "custom-title" => return self.named(&mut row.fields, "customTitle"),
            "ai-title" if !self.context.titled => return self.named(&mut row.fields, "aiTitle"),
            "summary" => {
                let leaf = row.fields.text("leafUuid");
                if self.context.titled || !leaf.is_some_and(|leaf| (self.context.has_row)(&leaf)) {
                    return Err(None);
                }
                return self.named(&mut row.fields, "summary");
            }
            kind if PASSED.contains(&kind) => return Ok(Body::Passed),
            _ => return Err(None),
        };
        self.take_common(&mut row.fields);
        Ok(Body::Turns(turns))
    }

    /// Takes what the session says of every row.
    fn take_common(&mut self, fields: &mut Fields<'a>) {
        fields.take("type");
        let Context { session_id, parent_session_id, .. } = *self.context;
        let own = |id: &RawValue| {
            let id = fields::text(id);
            (id.as_deref() == Some(session_id) || id.as_deref() == parent_session_id).then_some(())
        };
        fields.take_if("sessionId", own);
        fields.take_if("agentId", own);
        let side = if parent_session_id.is_some() { "true" } else { "false" };
        fields.take_if("isSidechain", |value| (value.get() == side).then_some(()));
        self.at = fields.take_time("timestamp").or(self.at);
    }

    fn turn(&self, role: Role, from: Ingress, content: Json) -> Turn {
        let mut turn = Turn::new(self.context.session_id, role, from, content);
        turn.at = self.at;
        turn
    }

    fn named(&self, fields: &mut Fields<'a>, from: &str) -> Result<Body, Flaw> {
        let value = string(fields, from)?;
        Ok(Body::Patched(SessionPatched {
            at: self.at,
            session_id: self.context.session_id.to_owned(),
            set: Members(vec![("displayName".to_owned(), value)]),
        }))
    }

    fn user(&mut self, row: &mut Entry<'a>) -> Result<Vec<Turn>, Flaw> {
        let message = self.message(row, "user")?;
        let spelled = message.get("content");
        let content = content(message, "content")?;
        let id = row.fields.text("uuid").filter(|id| !id.is_empty());
        let mut turns = match spelled.filter(|value| holds_results(value.get())) {
            Some(blocks) => self.results(blocks, &row.fields)?,
            None => vec![self.said(&row.fields, content)],
        };
        if spelled.is_some_and(|value| has_loose_blocks(value.get())) {
            let detail = "a block of message.content is not an object";
            self.odd = Some((DamageClass::WrongType, detail.to_owned()));
        }
        if let Some(first) = turns.first_mut() {
            first.message_id = id.map(Cow::into_owned);
            row.fields.take_text("uuid");
        }
        Ok(turns)
    }

    /// The message of a row, which has to be of this role.
    fn message<'r>(&self, row: &'r mut Entry<'a>, role: &str) -> Result<&'r mut Fields<'a>, Flaw> {
        let present = row.fields.has("message");
        let Some(message) = &mut row.message else {
            return Err(absent(present, "message", "an object"));
        };
        match message.text("role") {
            Some(have) if have == role => {}
            Some(have) => {
                let detail = format!("the role {have:?} in a row of type {role:?}");
                return Err(Some((DamageClass::UnknownRecord, detail)));
            }
            None => return Err(absent(message.has("role"), "message.role", "text")),
        }
        Ok(message)
    }

    /// What was said to the agent: by a person, by the program, or by the session that spawned it.
    fn said(&self, fields: &Fields<'a>, content: Json) -> Turn {
        let is = |name: &str| fields.get(name).is_some_and(|value| value.get() == "true");
        if is("isCompactSummary") {
            return self.turn(Role::System, Ingress::Internal, content);
        }
        let origin = fields.get("origin").and_then(|value| Fields::parse(value.get()));
        let origin = origin.and_then(|origin| origin.text("kind"));
        if is("isMeta") || origin.is_some_and(|kind| kind != "human") {
            return self.turn(Role::User, Ingress::Internal, content);
        }
        self.asked(content)
    }

    fn asked(&self, content: Json) -> Turn {
        let mut turn = self.turn(Role::User, self.context.door, content);
        if let Some(task) = self.context.task {
            turn.from = Ingress::InterSession;
            turn.provenance = Some(task.clone());
            turn.run_id.clone_from(&task.run_id);
        }
        turn
    }

    /// A turn for each result among the blocks. Other blocks go with the result before them, or with the first.
    fn results(&self, blocks: &'a RawValue, fields: &Fields<'a>) -> Result<Vec<Turn>, Flaw> {
        let blocks: Vec<&'a RawValue> = serde_json::from_str(blocks.get()).map_err(|_| None)?;
        let mut turns = Vec::new();
        let mut loose: Vec<&'a RawValue> = Vec::new();
        for block in blocks {
            let result = Fields::parse(block.get())
                .filter(|fields| fields.text("type").is_some_and(|kind| kind == "tool_result"));
            match result {
                Some(result) => {
                    let before = if turns.is_empty() { std::mem::take(&mut loose) } else { vec![] };
                    if let Some(turn) = turns.last_mut() {
                        add(turn, &std::mem::take(&mut loose));
                    }
                    turns.push(self.result(result, block, before, fields)?);
                }
                None => loose.push(block),
            }
        }
        match turns.last_mut() {
            Some(last) => add(last, &loose),
            None => turns.push(self.said(fields, Json::of(&loose).map_err(|_| None)?)),
        }
        Ok(turns)
    }

    fn result(
        &self,
        mut result: Fields<'a>,
        block: &'a RawValue,
        mut before: Vec<&'a RawValue>,
        fields: &Fields<'a>,
    ) -> Result<Turn, Flaw> {
        let call = result.take_text("tool_use_id").or_else(|| fields.text("sourceToolUseID"));
        let is_error = result.take_flag("is_error");
        let inside = result.take_if("content", |value| {
            value.get().starts_with(['"', '[']).then(|| Json::verbatim(value))
        });
        result.take("type");
        let content = match inside {
            Some(inside) if result.is_empty() && before.is_empty() => inside,
            _ => {
                before.push(block);
                Json::of(&before).map_err(|_| None)?
            }
        };
        let mut turn = self.turn(Role::ToolResult, Ingress::Internal, content);
        turn.tool_name = call.as_deref().and_then(self.context.tool_of);
        turn.call_id = call.map(Cow::into_owned);
        turn.is_error = is_error;
        Ok(turn)
    }

    fn assistant(&mut self, row: &mut Entry<'a>) -> Result<Turn, Flaw> {
        let cost = row.fields.get("costUSD").and_then(|value| fields::micros(value.get()));
        let message = self.message(row, "assistant")?;
        let blocks = message.get("content");
        let content = content(message, "content")?;
        let mut turn = self.turn(Role::Assistant, Ingress::Internal, content);
        if let Some(blocks) = blocks.filter(|blocks| holds(blocks.get(), b"\"tool_use\"")) {
            self.calls = calls(blocks);
            turn.calls = self.calls.iter().map(|call| call.id.clone().into_owned()).collect();
        }
        message.take("role");
        message.take_if("type", |kind| (kind.get() == "\"message\"").then_some(()));
        turn.model = message.take_text("model").map(Cow::into_owned);
        turn.message_id = message.take_text("id").map(Cow::into_owned).filter(|id| !id.is_empty());
        turn.cost_micros = cost;
        let mut usage = message.take_fields("usage");
        if let Some(usage) = &mut usage {
            turn.tokens = take_tokens(usage);
        }
        self.usage = usage;
        if turn.message_id.is_none() {
            turn.message_id = row.fields.take_text("uuid").map(Cow::into_owned);
        }
        if row.fields.get("isApiErrorMessage").is_some_and(|value| value.get() == "true") {
            turn.is_error = Some(true);
            row.fields.take("isApiErrorMessage");
        }
        Ok(turn)
    }

    /// A prompt that was typed while the agent was at work.
    fn waiting_prompt(&mut self, row: &mut Entry<'a>) -> Result<Turn, Flaw> {
        let attachment = row.fields.get("attachment");
        let Some(mut fields) = attachment.and_then(|value| Fields::parse(value.get())) else {
            return Err(absent(attachment.is_some(), "attachment", "an object"));
        };
        if fields.text("type").is_none_or(|kind| kind != "queued_command") || !fields.has("prompt")
        {
            return Err(None);
        }
        let prompt = content(&mut fields, "prompt")?;
        let by_person = fields.text("commandMode").is_none_or(|mode| mode == "prompt");
        let mut turn = if by_person {
            self.said(&row.fields, prompt)
        } else {
            self.turn(Role::User, Ingress::Internal, prompt)
        };
        turn.message_id = row.fields.take_text("uuid").map(Cow::into_owned);
        fields.take("type");
        row.fields.take("attachment");
        self.attachment = Some(fields);
        Ok(turn)
    }
}

/// Puts blocks behind the content of a turn.
fn add(turn: &mut Turn, blocks: &[&RawValue]) {
    if blocks.is_empty() {
        return;
    }
    if let (Some(content), Ok(more)) = (&turn.content, Json::of(blocks)) {
        turn.content = Some(content.followed_by(&more));
    }
}

fn holds_results(content: &str) -> bool {
    content.starts_with('[') && holds(content, b"\"tool_result\"")
}

fn holds(text: &str, what: &[u8]) -> bool {
    memchr::memmem::find(text.as_bytes(), what).is_some()
}

/// Whether a list of blocks has one that is no object. Lists that begin with one are rare enough to be read.
fn has_loose_blocks(content: &str) -> bool {
    let first = content.strip_prefix('[').map(str::trim_ascii_start);
    first.is_some_and(|first| !first.starts_with(['{', ']']))
}

/// Takes the tokens, if both directions are told.
fn take_tokens(usage: &mut Fields<'_>) -> Option<Tokens> {
    let told = |name: &str| usage.get(name).and_then(fields::count).is_some();
    if !told("input_tokens") || !told("output_tokens") {
        return None;
    }
    Some(Tokens {
        r#in: usage.take_count("input_tokens")?,
        out: usage.take_count("output_tokens")?,
        cache_read: usage.take_count("cache_read_input_tokens"),
        cache_write: usage.take_count("cache_creation_input_tokens"),
    })
}
