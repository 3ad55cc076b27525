//! A record as events: what of it has a place there, and what is left for `source.rest`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::import::damage::DamageClass;
use crate::import::dialect::{Blocks, Body, Context, Dialect, Draft, Memo, own_type};
use crate::import::fields::{self, Fields};
use crate::import::pi::{Call, Flaw, content};
use crate::import::story::key;
use crate::import::transcript::shortened;
use crate::session::event::{Ingress, Json, Role, Tokens, Turn};

const PROGRAM: &str = "gemini";

/// Records of Gemini CLI.
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn draft<'a>(&self, text: &'a str, context: &Context<'_>) -> Option<Result<Draft<'a>>> {
        let row = Fields::parse(text)?;
        Some(draft(row, context))
    }

    fn is_record(&self, text: &str) -> bool {
        Fields::parse(text).is_some_and(|row| row.has("type") && row.has("id"))
    }
}

fn draft<'a>(row: Fields<'a>, context: &Context<'_>) -> Result<Draft<'a>> {
    if row.has("sessionId") && !row.has("type") && !context.story.is_opened() {
        return Ok(header(row, context));
    }
    let spelled = row.get("timestamp");
    let at = spelled.and_then(fields::time);
    let impossible = spelled
        .filter(|value| at.is_none() && value.get() != "null")
        .map(|value| (DamageClass::ImpossibleTime, shortened(value.get())));
    let drafting = Drafting { context, at };
    let kind = row.text("type").unwrap_or_default().into_owned();
    let drafted = match kind.as_str() {
        "user" => drafting.said(row.clone(), Role::User, context.door),
        "info" | "warning" | "error" => drafting.said(row.clone(), Role::System, Ingress::Internal),
        "gemini" => drafting.answer(row.clone()),
        _ => Err(None),
    };
    match drafted {
        Ok(draft) => Ok(Draft { at, flaw: draft.flaw.or(impossible), ..draft }),
        Err(flaw) => {
            let name = row.iter().next().map(|(name, _)| name.trim_start_matches('$').to_owned());
            let name = if kind.is_empty() { name.unwrap_or_default() } else { kind };
            let draft =
                Draft::kept(own_type(PROGRAM, &[&name])?, row.members(), flaw.or(impossible));
            Ok(Draft { at, ..draft })
        }
    }
}

fn header<'a>(mut row: Fields<'a>, context: &Context<'_>) -> Draft<'a> {
    let own =
        |id: &RawValue| (fields::text(id).as_deref() == Some(context.session_id)).then_some(());
    row.take_if("sessionId", own);
    let at = row.take_time("startTime");
    Draft { at, rest: row.members(), ..Draft::of(Body::Opened(Vec::new())) }
}

struct Drafting<'c> {
    context: &'c Context<'c>,
    at: Option<Timestamp>,
}

/// What is new of a message.
struct News {
    /// The hash of its id.
    message: u64,
    /// The hash of all that it tells.
    whole: u64,
    /// Whether it was told before.
    again: bool,
}

impl Drafting<'_> {
    fn turn(&self, role: Role, from: Ingress, content: Json) -> Turn {
        let mut turn = Turn::new(self.context.session_id, role, from, content);
        turn.at = self.at;
        turn
    }

    /// What the user or the program said.
    fn said<'a>(&self, mut row: Fields<'a>, role: Role, from: Ingress) -> Result<Draft<'a>, Flaw> {
        let said = content(&mut row, "content")?;
        let mut turn = self.turn(role, from, said);
        if let Some(task) = self.context.task.filter(|_| role == Role::User) {
            turn.from = Ingress::InterSession;
            turn.provenance = Some(task.clone());
            turn.run_id.clone_from(&task.run_id);
        }
        let id = self.take_common(&mut row, &mut turn);
        Ok(Draft { id, rest: row.members(), ..Draft::of(Body::Turns(vec![turn])) })
    }

    fn take_common<'a>(&self, row: &mut Fields<'a>, turn: &mut Turn) -> Option<Cow<'a, str>> {
        row.take("type");
        row.take_time("timestamp");
        let id = row.text("id").filter(|id| !id.is_empty());
        if let Some(id) = &id {
            turn.message_id = Some(id.clone().into_owned());
            row.take("id");
        }
        id
    }

    /// What the model said, which tools it called, and what those answered.
    fn answer<'a>(&self, mut row: Fields<'a>) -> Result<Draft<'a>, Flaw> {
        let news = self.news(&row);
        let said = content(&mut row, "content")?;
        let tools = self.tools(&row, news.as_ref());
        let mut turn = self.turn(Role::Assistant, Ingress::Internal, said.clone());
        let told_before = news.as_ref().is_some_and(|news| news.again);
        let mut blocks = Blocks::default();
        if !told_before {
            blocks.text(&said);
        }
        for tool in &tools {
            blocks.call(&tool.id, &tool.name, tool.arguments);
        }
        if told_before || !tools.is_empty() {
            turn.content = Some(blocks.finish().map_err(|_| None)?);
        }
        turn.model = row.take_text("model").map(Cow::into_owned);
        turn.tokens = row.get("tokens").and_then(tokens).filter(|_| self.context.counts_usage);
        turn.calls = tools.iter().map(|tool| tool.id.clone().into_owned()).collect();
        let mut id = self.take_common(&mut row, &mut turn);
        let mut turns = vec![turn];
        for tool in &tools {
            turns.extend(tool.result(self));
        }
        let mut calls = Vec::new();
        for Tool { id, name, arguments, .. } in tools {
            calls.push(Call { id, name, arguments });
        }
        if told_before {
            id = None;
        }
        let message = news.map(|news| (news.message, news.whole));
        let memo =
            Memo { message, texts: turns.iter().flat_map(answered).collect(), ..Memo::default() };
        Ok(Draft { id, calls, memo, rest: row.members(), ..Draft::of(Body::Turns(turns)) })
    }

    fn news(&self, row: &Fields<'_>) -> Option<News> {
        let message = key(&*row.text("id").filter(|id| !id.is_empty())?);
        let spelled = |name: &str| row.get(name).map(RawValue::get).unwrap_or_default();
        let whole = key(&(spelled("content"), spelled("toolCalls")));
        Some(News { message, whole, again: self.context.story.memory.message(message).is_some() })
    }

    /// The tool calls of a message that were not told before.
    fn tools<'a>(&self, row: &Fields<'a>, news: Option<&News>) -> Vec<Tool<'a>> {
        let calls = row.get("toolCalls");
        let calls: Vec<Fields<'a>> =
            calls.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default();
        let tools = calls.into_iter().filter_map(|call| {
            Some(Tool {
                id: call.text("id")?,
                name: call.text("name").unwrap_or_default(),
                arguments: call.get("args"),
                result: call.get("result").filter(|result| result.get().starts_with(['"', '['])),
                failed: call
                    .text("status")
                    .map(|status| status == "error" || status == "cancelled"),
                at: call.get("timestamp").and_then(fields::time),
            })
        });
        let memory = &self.context.story.memory;
        let again = news.is_some_and(|news| news.again);
        tools.filter(|tool| !(again && memory.has_text(tool.hash()))).collect()
    }
}

/// The hash by which the result of a call is known to be told.
fn answered(turn: &Turn) -> Option<u64> {
    turn.call_id.as_deref().map(|call| key(&("call", call)))
}

struct Tool<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    arguments: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    failed: Option<bool>,
    at: Option<Timestamp>,
}

impl Tool<'_> {
    fn hash(&self) -> u64 {
        key(&("call", &*self.id))
    }

    fn result(&self, drafting: &Drafting<'_>) -> Option<Turn> {
        let content = Json::verbatim(self.result?);
        let mut turn = drafting.turn(Role::ToolResult, Ingress::Internal, content);
        turn.at = self.at.or(turn.at);
        turn.call_id = Some(self.id.clone().into_owned());
        turn.tool_name = Some(self.name.clone().into_owned()).filter(|name| !name.is_empty());
        turn.is_error = self.failed;
        Some(turn)
    }
}

/// Gemini counts to the input what came from the cache, and thoughts apart from the output.
fn tokens(value: &RawValue) -> Option<Tokens> {
    let told = Fields::parse(value.get())?;
    let count = |name: &str| told.get(name).and_then(fields::count);
    let cached = count("cached");
    Some(Tokens {
        r#in: count("input")?.saturating_sub(cached.unwrap_or_default()),
        out: count("output")?.saturating_add(count("thoughts").unwrap_or_default()),
        cache_read: cached,
        cache_write: None,
    })
}
