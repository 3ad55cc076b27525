//! A turn or a sub-agent as events: what of it has a place there, and what is left for `source.rest`.

use sha2::{Digest, Sha256};

use crate::clock::Timestamp;
use crate::error::Result;
use crate::format::hex;
use crate::import::damage::DamageClass;
use crate::import::dialect::{Body, Context, Dialect, Draft, own_type};
use crate::import::fields::Fields;
use crate::import::pi::{Flaw, absent, string};
use crate::import::story::key;
use crate::import::time::any_time;
use crate::import::transcript::shortened;
use crate::session::event::{Ingress, Json, Role, Turn};

const PROGRAM: &str = "arka";

/// Records of Arka.
pub(crate) struct Arka;

impl Dialect for Arka {
    fn draft<'a>(&self, text: &'a str, context: &Context<'_>) -> Option<Result<Draft<'a>>> {
        let row = Fields::parse(text)?;
        if !context.story.is_opened() && !row.has("role") {
            return Some(Ok(header(row, context)));
        }
        let role = row.text("role").unwrap_or_default().into_owned();
        Some(match turn(row.clone(), &role, context) {
            Ok(draft) => Ok(draft),
            Err(flaw) => {
                own_type(PROGRAM, &[&role]).map(|kind| Draft::kept(kind, row.members(), flaw))
            }
        })
    }

    fn is_record(&self, text: &str) -> bool {
        Fields::parse(text).is_some_and(|row| row.has("role") && row.has("text"))
    }
}

/// Opens a chat, or a sub-agent with all that is known of it.
fn header<'a>(mut row: Fields<'a>, context: &Context<'_>) -> Draft<'a> {
    let time = |row: &Fields<'_>, name: &str| row.get(name).and_then(any_time);
    let at = context.began.or_else(|| time(&row, "created"));
    let mut turns = Vec::new();
    if let Ok(task) = string(&mut row, "task") {
        let mut turn = said(context, Role::User, Ingress::InterSession, task, at);
        turn.provenance = context.task.cloned();
        turn.run_id = context.task.and_then(|task| task.run_id.clone());
        turns.push(turn);
        let ended = row.text("status").is_some_and(|status| status == "done" || status == "failed");
        if ended && let Ok(result) = string(&mut row, "result") {
            let at = time(&row, "finished").or(at);
            let mut turn = said(context, Role::Assistant, Ingress::Internal, result, at);
            turn.run_id = context.task.and_then(|task| task.run_id.clone());
            turns.push(turn);
        }
    }
    Draft { at, rest: row.members(), ..Draft::of(Body::Opened(turns)) }
}

fn said(
    context: &Context<'_>,
    role: Role,
    from: Ingress,
    content: Json,
    at: Option<Timestamp>,
) -> Turn {
    let mut turn = Turn::new(context.session_id, role, from, content);
    turn.at = at;
    turn
}

fn turn<'a>(mut row: Fields<'a>, role: &str, context: &Context<'_>) -> Result<Draft<'a>, Flaw> {
    let spelled = row.get("ts");
    let at = spelled.and_then(any_time);
    let (role, from) = match role {
        "user" => (Role::User, context.door),
        "assistant" => (Role::Assistant, Ingress::Internal),
        "system" => (Role::System, Ingress::Internal),
        "" => return Err(absent(row.has("role"), "role", "text")),
        role => {
            let detail = format!("the role {role:?} is not known");
            return Err(Some((DamageClass::UnknownRecord, detail)));
        }
    };
    let id = identity(&row, context);
    let content = string(&mut row, "text")?;
    let impossible = spelled
        .filter(|value| at.is_none() && value.get() != "null")
        .map(|value| (DamageClass::ImpossibleTime, shortened(value.get())));
    let turn = said(context, role, from, content, at);
    row.take("role");
    let body = Body::Turns(vec![turn]);
    let flaw = impossible;
    Ok(Draft { id: Some(id.into()), at, rest: row.members(), flaw, ..Draft::of(body) })
}

/// What a turn is known again by wherever it stands: its role, its time and its text; equal ones are counted.
fn identity(row: &Fields<'_>, context: &Context<'_>) -> String {
    let mut hash = Sha256::new();
    for name in ["role", "ts", "text"] {
        let value = row.get(name).map(|value| value.get()).unwrap_or_default();
        let text = row.text(name);
        let value = text.as_deref().unwrap_or(value);
        hash.update((value.len() as u64).to_be_bytes());
        hash.update(value.as_bytes());
    }
    let hash = hex(&hash.finalize());
    let mut equal = 0_u64;
    loop {
        let id = format!("{hash}#{equal}");
        if !context.story.has_key(key(id.as_str())) {
            return id;
        }
        equal += 1;
    }
}
