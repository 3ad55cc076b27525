//! Items of the conversation with the model: what was said, thought, called and answered.

use std::borrow::Cow;

use super::event::{Drafting, Row};
use crate::import::damage::DamageClass;
use crate::import::dialect::{Body, Draft, Memo, Response};
use crate::import::fields::Fields;
use crate::import::pi::{Call, Flaw, absent, content, string};
use crate::import::story::key;
use crate::session::event::{Ingress, Json, Provenance, Role, Turn};

/// How texts begin that the program gives the model in the user's name.
const OWN_TEXTS: [&str; 7] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<skill>",
];

/// Drafts the events of an item.
///
/// # Errors
/// What is wrong with it, when it is to be kept as it is.
pub(super) fn draft<'a>(drafting: &Drafting<'_>, row: Row<'a>) -> Result<Draft<'a>, Flaw> {
    let kind = row.payload.text("type").unwrap_or_default().into_owned();
    match kind.as_str() {
        "message" => message(drafting, row),
        "" if row.payload.has("role") => message(drafting, row),
        "reasoning" => {
            let texts = thoughts(&row.payload);
            let mut draft = piece(drafting, row, None)?;
            draft.memo.texts = texts;
            Ok(draft)
        }
        "web_search_call" | "image_generation_call" => piece(drafting, row, None),
        "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call"
        | "tool_call" => {
            let call = call(&row.payload, &kind);
            piece(drafting, row, call)
        }
        "tool_result" | "function_result" => result(drafting, row),
        "agent_message" => from_agent(drafting, row),
        kind if kind.ends_with("_output") => result(drafting, row),
        _ => Err(None),
    }
}

/// What somebody said.
fn message<'a>(drafting: &Drafting<'_>, mut row: Row<'a>) -> Result<Draft<'a>, Flaw> {
    let Some(role) = row.payload.text("role") else {
        return Err(absent(row.payload.has("role"), "payload.role", "text"));
    };
    let said = match row.payload.has("content") {
        true => content(&mut row.payload, "content")?,
        false => string(&mut row.payload, "message")?,
    };
    let text = said.plain_text();
    let (turn, response) = match &*role {
        "user" => (user(drafting, said, &text), Response::Ends),
        "developer" | "system" => {
            (drafting.turn(Role::System, Ingress::Internal, said), Response::Ends)
        }
        "assistant" => {
            let turn = answer(drafting, said);
            let id = turn.message_id.clone().unwrap_or_default();
            (turn, Response::Piece(id))
        }
        role => {
            let detail = format!("the role {role:?} is not known");
            return Err(Some((DamageClass::UnknownRecord, detail)));
        }
    };
    row.payload.take("type");
    row.payload.take("role");
    let memo = Memo { texts: vec![key(text.trim())], response, ..Memo::default() };
    Ok(Draft { memo, rest: drafting.rest(row), ..Draft::of(Body::Turns(vec![turn])) })
}

fn user(drafting: &Drafting<'_>, said: Json, text: &str) -> Turn {
    let start = text.trim_start();
    if OWN_TEXTS.iter().any(|own| start.starts_with(own)) {
        return drafting.turn(Role::User, Ingress::Internal, said);
    }
    let mut turn = drafting.turn(Role::User, drafting.context.door, said);
    if let Some(task) = drafting.context.task {
        turn.from = Ingress::InterSession;
        turn.provenance = Some(task.clone());
        turn.run_id.clone_from(&task.run_id);
    }
    turn
}

/// A piece of the model's answer.
fn answer(drafting: &Drafting<'_>, said: Json) -> Turn {
    let mut turn = drafting.turn(Role::Assistant, Ingress::Internal, said);
    turn.message_id = Some(drafting.response());
    turn.model = drafting.context.story.memory.model().map(str::to_owned);
    turn
}

/// A piece of the model's answer that is no text: the item itself is the block.
fn piece<'a>(
    drafting: &Drafting<'_>,
    row: Row<'a>,
    call: Option<Call<'a>>,
) -> Result<Draft<'a>, Flaw> {
    let block = Json::of(&[&*row.spelled]).map_err(|_| None)?;
    let mut turn = answer(drafting, block);
    turn.calls = call.iter().map(|call| call.id.clone().into_owned()).collect();
    let id = turn.message_id.clone().unwrap_or_default();
    let memo = Memo { response: Response::Piece(id), ..Memo::default() };
    let rest = drafting.rest(Row { payload: Fields::default(), ..row });
    let calls = call.into_iter().collect();
    Ok(Draft { memo, calls, rest, ..Draft::of(Body::Turns(vec![turn])) })
}

/// The call that an item is, if its result can be found by it.
fn call<'a>(payload: &Fields<'a>, kind: &str) -> Option<Call<'a>> {
    let function = payload.get("function").and_then(|value| Fields::parse(value.get()));
    let name = payload.text("name").or_else(|| function.as_ref()?.text("name"));
    let arguments = payload.get("arguments").or_else(|| payload.get("input"));
    let name = name.unwrap_or_else(|| kind.trim_end_matches("_call").to_owned().into());
    Some(Call { id: payload.text("call_id")?, name, arguments })
}

/// What a tool answered.
fn result<'a>(drafting: &Drafting<'_>, mut row: Row<'a>) -> Result<Draft<'a>, Flaw> {
    let is_content =
        |name: &str| row.payload.get(name).is_some_and(|value| value.get().starts_with(['"', '[']));
    let name = ["output", "result"].into_iter().find(|name| is_content(name));
    let call = row.payload.text("call_id").map(Cow::into_owned);
    let tool = row.payload.text("name").map(Cow::into_owned);
    let inside = match name {
        Some(name) => content(&mut row.payload, name)?,
        None => {
            let block = Json::of(&[&*row.spelled]).map_err(|_| None)?;
            row.payload = Fields::default();
            block
        }
    };
    row.payload.take("type");
    row.payload.take_text("call_id");
    let mut turn = drafting.turn(Role::ToolResult, Ingress::Internal, inside);
    let of_call = || drafting.context.story.tool_of(call.as_deref()?).map(str::to_owned);
    turn.tool_name = tool.or_else(of_call);
    turn.call_id = call;
    let memo = Memo { response: Response::Ends, ..Memo::default() };
    Ok(Draft { memo, rest: drafting.rest(row), ..Draft::of(Body::Turns(vec![turn])) })
}

/// What another agent said to this one.
fn from_agent<'a>(drafting: &Drafting<'_>, mut row: Row<'a>) -> Result<Draft<'a>, Flaw> {
    let said = content(&mut row.payload, "content")?;
    let mut turn = drafting.turn(Role::User, Ingress::InterSession, said);
    turn.provenance = Some(Provenance {
        sender: row.payload.text("author").map(Cow::into_owned),
        source_tool: Some("agent_message".to_owned()),
        ..Provenance::default()
    });
    row.payload.take("type");
    row.payload.take_text("author");
    let memo = Memo { response: Response::Ends, ..Memo::default() };
    Ok(Draft { memo, rest: drafting.rest(row), ..Draft::of(Body::Turns(vec![turn])) })
}

/// The hashes of the thoughts that an item tells in words.
fn thoughts(payload: &Fields<'_>) -> Vec<u64> {
    let summary = payload.get("summary");
    let blocks: Vec<Fields<'_>> =
        summary.and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default();
    blocks.iter().filter_map(|block| block.text("text")).map(|text| key(text.trim())).collect()
}
