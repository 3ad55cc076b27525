//! A message as events: what of it has a place there, and what is left for `source.rest`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::import::damage::DamageClass;
use crate::import::dialect::{Blocks, Body, Context, Dialect, Draft, own_type};
use crate::import::fields::{self, Fields};
use crate::import::pi::{Call, Flaw, absent, content};
use crate::import::time::any_time;
use crate::session::event::{Ingress, Json, Role, Turn};

const PROGRAM: &str = "hermes";

/// Messages of Hermes.
pub(crate) struct Hermes;

impl Dialect for Hermes {
    fn draft<'a>(&self, text: &'a str, context: &Context<'_>) -> Option<Result<Draft<'a>>> {
        let row = Fields::parse(text)?;
        if !context.story.is_opened() && !row.has("role") {
            return Some(Ok(header(row, context)));
        }
        let at = row.get("timestamp").and_then(any_time).or(context.began);
        let role = row.text("role").unwrap_or_default().into_owned();
        let drafting = Drafting { context, at };
        Some(match drafting.message(row.clone(), &role) {
            Ok(draft) => Ok(Draft { at, ..draft }),
            Err(flaw) => own_type(PROGRAM, &[&role])
                .map(|kind| Draft { at, ..Draft::kept(kind, row.members(), flaw) }),
        })
    }

    fn is_record(&self, text: &str) -> bool {
        Fields::parse(text).is_some_and(|row| row.has("role"))
    }
}

fn header<'a>(mut row: Fields<'a>, context: &Context<'_>) -> Draft<'a> {
    let own =
        |id: &RawValue| (fields::text(id).as_deref() == Some(context.session_id)).then_some(());
    row.take_if("session_id", own);
    let at = row.take_time("session_start").or(context.began);
    Draft { at, rest: row.members(), ..Draft::of(Body::Opened(Vec::new())) }
}

struct Drafting<'c> {
    context: &'c Context<'c>,
    at: Option<Timestamp>,
}

impl Drafting<'_> {
    fn message<'a>(&self, mut row: Fields<'a>, role: &str) -> Result<Draft<'a>, Flaw> {
        let (turn, calls) = match role {
            "user" => {
                let said = content(&mut row, "content")?;
                (self.turn(Role::User, self.context.door, said), Vec::new())
            }
            "system" => {
                let said = content(&mut row, "content")?;
                (self.turn(Role::System, Ingress::Internal, said), Vec::new())
            }
            "assistant" => self.answer(&mut row)?,
            "tool" => (self.result(&mut row)?, Vec::new()),
            "session_meta" => return Err(None),
            "" => return Err(absent(row.has("role"), "role", "text")),
            role => {
                let detail = format!("the role {role:?} is not known");
                return Err(Some((DamageClass::UnknownRecord, detail)));
            }
        };
        row.take("role");
        Ok(Draft { calls, rest: row.members(), ..Draft::of(Body::Turns(vec![turn])) })
    }

    fn turn(&self, role: Role, from: Ingress, content: Json) -> Turn {
        let mut turn = Turn::new(self.context.session_id, role, from, content);
        turn.at = self.at;
        turn
    }

    /// What the assistant said, and which tools it called. Beside calls nothing need be said.
    fn answer<'a>(&self, row: &mut Fields<'a>) -> Result<(Turn, Vec<Call<'a>>), Flaw> {
        let spelled = row.get("tool_calls").filter(|calls| calls.get().starts_with('['));
        let listed: Vec<Fields<'a>> =
            spelled.and_then(|calls| serde_json::from_str(calls.get()).ok()).unwrap_or_default();
        let calls: Vec<Call<'a>> = listed.iter().filter_map(call).collect();
        let silent = row.get("content").is_none_or(|said| said.get() == "null");
        let text = if silent && !calls.is_empty() { None } else { Some(content(row, "content")?) };
        let said = match text {
            Some(text) if calls.is_empty() => text,
            text => {
                let mut blocks = Blocks::default();
                text.iter().for_each(|text| blocks.text(text));
                calls.iter().for_each(|call| blocks.call(&call.id, &call.name, call.arguments));
                blocks.finish().map_err(|_| None)?
            }
        };
        let mut turn = self.turn(Role::Assistant, Ingress::Internal, said);
        turn.calls = calls.iter().map(|call| call.id.clone().into_owned()).collect();
        Ok((turn, calls))
    }

    fn result(&self, row: &mut Fields<'_>) -> Result<Turn, Flaw> {
        let said = content(row, "content")?;
        let mut turn = self.turn(Role::ToolResult, Ingress::Internal, said);
        let call = row.take_text("tool_call_id").map(Cow::into_owned);
        let of_call = || self.context.story.tool_of(call.as_deref()?).map(str::to_owned);
        turn.tool_name = row.take_text("tool_name").map(Cow::into_owned).or_else(of_call);
        turn.call_id = call;
        let failed = row.text("finish_reason").is_some_and(|reason| reason == "error");
        turn.is_error = failed.then_some(true);
        Ok(turn)
    }
}

fn call<'a>(listed: &Fields<'a>) -> Option<Call<'a>> {
    let function = Fields::parse(listed.get("function")?.get())?;
    let name = function.text("name").unwrap_or_default();
    Some(Call { id: listed.text("id")?, name, arguments: function.get("arguments") })
}
