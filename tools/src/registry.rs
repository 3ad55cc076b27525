//! The tools, listed once: name, what each does, the schema of its arguments, its handler. Every edge of the program that
//! offers tools offers these.

use annals_engine::id::EventId;
use annals_engine::session::event::{Event, Links, Refusal};
use annals_engine::session::history::Span;
use annals_engine::session::key::SessionKey;
use annals_engine::store::Append;
use annals_engine::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agents::agents_list;
use crate::caller::{Caller, Seat};
use crate::desk::Desk;
use crate::history::sessions_history;
use crate::list::sessions_list;
use crate::runs::{runs_cancel, runs_wait};
use crate::schema::schema_of;
use crate::search::sessions_search;
use crate::send::sessions_send;
use crate::spawn::sessions_spawn;
use crate::status::session_status;
use crate::view::View;
use crate::wire::runs::{AgentsArgs, CancelArgs, SendArgs, SpawnArgs, StatusArgs, WaitArgs};
use crate::wire::{HistoryArgs, ListArgs, SearchArgs};

/// A tool.
#[derive(Clone, Copy)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the model that calls it.
    pub about: &'static str,
    /// What a call does.
    pub effect: Effect,
    schema: fn() -> Value,
    run: fn(&Caller, &View<'_>, Value) -> Result<Value>,
}

/// What a call of a tool does, beside answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it reads.
    None,
    /// It makes an agent work.
    Work,
    /// It ends work.
    End,
}

/// All tools, in the order in which they are listed.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "sessions_list",
        about: "List sessions, the last changed first. Tool results are left out of their messages.",
        effect: Effect::None,
        schema: schema_of::<ListArgs>,
        run: |caller, view, args| reply(&sessions_list(caller, view, &read(args)?)?),
    },
    Tool {
        name: "sessions_history",
        about: "Read what was said in one session: the newest page first, inside it the oldest message first.",
        effect: Effect::None,
        schema: schema_of::<HistoryArgs>,
        run: |caller, view, args| {
            let args: HistoryArgs = read(args)?;
            reply(&sessions_history(caller, view, &args, Span::Part)?)
        },
    },
    Tool {
        name: "sessions_search",
        about: "Find turns in which all words occur, in any session, the newest first.",
        effect: Effect::None,
        schema: schema_of::<SearchArgs>,
        run: |caller, view, args| reply(&sessions_search(caller, view, &read(args)?)?),
    },
    Tool {
        name: "sessions_send",
        about: "Send a message to another session and wait for its reply. After a timeout the message is with the session all the same: do not send it again.",
        effect: Effect::Work,
        schema: schema_of::<SendArgs>,
        run: |caller, view, args| reply(&sessions_send(caller, view, desk(view)?, &read(args)?)?),
    },
    Tool {
        name: "sessions_spawn",
        about: "Give a task to a child, which works on it by itself. Its result is announced to this session when it has ended.",
        effect: Effect::Work,
        schema: schema_of::<SpawnArgs>,
        run: |caller, view, args| reply(&sessions_spawn(caller, view, desk(view)?, &read(args)?)?),
    },
    Tool {
        name: "session_status",
        about: "See how a session is, what is at work in it, and what happened since an earlier look.",
        effect: Effect::None,
        schema: schema_of::<StatusArgs>,
        run: |caller, view, args| reply(&session_status(caller, view, desk(view)?, &read(args)?)?),
    },
    Tool {
        name: "agents_list",
        about: "List the agents that children may be of.",
        effect: Effect::None,
        schema: schema_of::<AgentsArgs>,
        run: |caller, view, args| {
            let AgentsArgs {} = read(args)?;
            reply(&agents_list(caller, view))
        },
    },
    Tool {
        name: "runs_wait",
        about: "Wait until runs have ended, and get their replies.",
        effect: Effect::None,
        schema: schema_of::<WaitArgs>,
        run: |caller, view, args| reply(&runs_wait(caller, view, desk(view)?, &read(args)?)?),
    },
    Tool {
        name: "runs_cancel",
        about: "End a run that you have spawned or sent.",
        effect: Effect::End,
        schema: schema_of::<CancelArgs>,
        run: |caller, view, args| reply(&runs_cancel(caller, desk(view)?, &read(args)?)?),
    },
];

/// What is needed to make agents work.
fn desk<'a>(view: &View<'a>) -> Result<&'a Desk<'a>> {
    view.desk.ok_or_else(|| {
        Error::new(ErrorKind::ReadOnly, "the store is open for reading alone")
            .hint("the store's folder has to be writable for this tool")
    })
}

impl Tool {
    /// The tool of a name.
    ///
    /// # Errors
    /// `NotFound`, with the names that there are.
    pub fn of(name: &str) -> Result<&'static Self> {
        TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            Error::new(ErrorKind::NotFound, format!("there is no tool {name:?}"))
                .field("name")
                .hint(format!("tools are {}", names.join(", ")))
        })
    }

    /// The JSON Schema of its arguments, of draft 2020-12.
    #[must_use]
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// Whether it needs what makes agents work.
    #[must_use]
    pub fn asks_for_work(&self) -> bool {
        !self.name.starts_with("sessions_")
            || matches!(self.name, "sessions_send" | "sessions_spawn")
    }

    /// Whether a call may last: it waits for what agents do.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self.name, "sessions_send" | "runs_wait")
    }

    /// Calls it, under its guard.
    ///
    /// # Errors
    /// `InvalidInput` for arguments that do not fit the schema; what the handler and the guard say.
    pub fn call(&self, caller: &Caller, view: &View<'_>, args: Value) -> Result<Value> {
        let named = |name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
        let named = named("sessionKey").or_else(|| named("label")).or_else(|| named("runId"));
        self.guarded(caller, view, named, || (self.run)(caller, view, args))
    }

    /// What this tool answers, for whoever has it. A session that names one that it does not see leaves `access.denied` in
    /// its own stream, if the store takes appends; the refusal stands in any case.
    ///
    /// # Errors
    /// `Refused` for a caller that does not have the tool; what the answer says.
    pub fn guarded<T>(
        &self,
        caller: &Caller,
        view: &View<'_>,
        named: Option<String>,
        answer: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let has = caller.tools.has(self.name);
        let answer = if has { answer() } else { Err(self.not_given()) };
        let target = if has { named } else { Some(named.unwrap_or_default()) };
        if let (Err(error), Some(target), Seat::Session { key, .. }) =
            (&answer, target, &caller.seat)
            && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Refused)
        {
            let reason = if has { "not_visible" } else { "tool_not_allowed" };
            let denied = Event::AccessDenied(denied(self.name, target, reason));
            let id = EventId::new(view.lens.now);
            let links = Links { cause: None, flow: Some(id) };
            let told = denied.to_new(key.clone(), id, links);
            // What the store says about it is no answer to the question that was asked.
            drop(told.and_then(|event| view.store.append(Append::new(vec![event]))));
        }
        answer
    }
}

impl Tool {
    fn not_given(&self) -> Error {
        let message = format!("forbidden: spawned children do not have the tool {}", self.name);
        Error::new(ErrorKind::Refused, message)
            .hint("tools.subagents.tools.allow in the configuration gives them tools")
    }
}

/// What is recorded of a refusal. A name that no session can have is recorded as far as a session's could go.
fn denied(verb: &str, mut target: String, reason: &str) -> Refusal {
    let bytes = target.len();
    target.truncate(target.floor_char_boundary(SessionKey::BYTES_MAX));
    let detail = format!("the target has {bytes} bytes, of which these are the first");
    Refusal {
        at: None,
        verb: verb.to_owned(),
        detail: (target.len() < bytes).then_some(detail),
        target,
        reason: reason.to_owned(),
    }
}

fn read<T: DeserializeOwned + JsonSchema>(args: Value) -> Result<T> {
    let args = match args {
        Value::Null => Value::Object(serde_json::Map::new()),
        args @ Value::Object(_) => args,
        other => {
            let message = format!("the arguments are {}, not an object", told(&other));
            return Err(Error::invalid(message)
                .field("arguments")
                .hint(legal(&schema_of::<T>(), "")));
        }
    };
    let schema = schema_of::<T>();
    if let Some((path, given)) = list_for_object(&schema, &args, "") {
        let message = format!("the arguments do not fit: {path} is {}", told(given));
        return Err(Error::invalid(message).hint(legal(&schema, &path)).field(path));
    }
    serde_path_to_error::deserialize(&args).map_err(|e| {
        let path = e.path().to_string();
        let known = path != ".";
        let said = e.inner().to_string();
        let why = match at(&args, e.path()) {
            // What the library says of a sort is about the types behind the tools.
            Some(given) if said.starts_with("invalid ") => format!("{path} is {}", told(given)),
            _ => said,
        };
        let error = Error::invalid(format!("the arguments do not fit: {why}"))
            .hint(legal(&schema, if known { &path } else { "" }));
        error.field(if known { path } else { "arguments".to_owned() })
    })
}

/// The first list where an object belongs: the library would take it apart as the fields of a type, in their order.
fn list_for_object<'v>(
    schema: &Value,
    value: &'v Value,
    path: &str,
) -> Option<(String, &'v Value)> {
    match value {
        Value::Array(_) if schema["type"] == "object" => Some((path.to_owned(), value)),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            list_for_object(&schema["items"], item, &format!("{path}[{index}]"))
        }),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            list_for_object(&schema["properties"][name.as_str()], member, &below)
        }),
        _ => None,
    }
}

/// What stands at a path.
fn at<'a>(args: &'a Value, path: &serde_path_to_error::Path) -> Option<&'a Value> {
    use serde_path_to_error::Segment;
    path.iter().try_fold(args, |value, segment| match segment {
        Segment::Map { key } => value.get(key),
        Segment::Seq { index } => value.get(index),
        _ => None,
    })
}

/// The longest text that is told as it is, in bytes.
const TOLD_MAX: usize = 80;

/// A value in words: a small one as it is, of others the sort.
fn told(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.len() <= TOLD_MAX => format!("the text {text:?}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// What fits, in words: of one argument, or of all.
fn legal(schema: &Value, path: &str) -> String {
    let name = path.split(['.', '[']).next().unwrap_or_default();
    if let Some(Value::Object(property)) = schema["properties"].get(name) {
        return format!("{name} is {}", Value::Object(property.clone()));
    }
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let names = schema["properties"].as_object().into_iter().flat_map(|all| all.keys());
    let told = names.map(|name| match required.iter().any(|must| must == name) {
        true => format!("{name} (must be there)"),
        false => name.clone(),
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        "it takes none".to_owned()
    } else {
        format!("they are {}", told.join(", "))
    }
}

fn reply(answer: &impl Serialize) -> Result<Value> {
    serde_json::to_value(answer)
        .map_err(|e| Error::new(ErrorKind::Io, "the answer does not serialise").caused_by(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: schemas are of the sort that every client takes: an object, each property described, no `null` among types,
    /// no format of numbers, nothing to be looked up elsewhere, no other argument. Method: every tool.
    #[test]
    fn schemas() {
        for tool in TOOLS {
            let schema = tool.schema();
            let text = schema.to_string();
            assert_eq!(schema["type"], "object", "{text}");
            assert_eq!(schema["additionalProperties"], false, "{text}");
            for taboo in ["\"null\"", "\"format\"", "$ref", "$defs"] {
                assert!(!text.contains(taboo), "{}: {taboo} in {text}", tool.name);
            }
            let properties = schema["properties"].as_object();
            for (name, property) in properties.into_iter().flatten() {
                assert!(property["description"].is_string(), "{}: {name}", tool.name);
            }
            assert!(!tool.about.is_empty());
        }
        let kinds = &Tool::of("sessions_list").unwrap().schema()["properties"]["kinds"];
        assert_eq!(kinds["items"]["enum"].as_array().unwrap().len(), 6, "{kinds}");
        assert_eq!(Tool::of("sessions_history").unwrap().schema()["required"][0], "sessionKey");
        assert!(Tool::of("sessions_lost").is_err());
    }
}
