//! The tools, listed once: name, what each does, the schema of its arguments, its handler. Every edge of the program that
//! offers tools offers these.

use annals_engine::id::EventId;
use annals_engine::session::event::{Event, Links, Refusal};
use annals_engine::session::history::Span;
use annals_engine::session::key::SessionKey;
use annals_engine::store::Append;
use annals_engine::{Error, ErrorKind, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::caller::{Caller, Seat};
use crate::history::sessions_history;
use crate::list::sessions_list;
use crate::schema::schema_of;
use crate::search::sessions_search;
use crate::view::View;
use crate::wire::{HistoryArgs, ListArgs, SearchArgs};

/// A tool.
#[derive(Clone, Copy)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the model that calls it.
    pub about: &'static str,
    schema: fn() -> Value,
    run: fn(&Caller, &View<'_>, Value) -> Result<Value>,
}

/// All tools, in the order in which they are listed.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "sessions_list",
        about: "List sessions, the last changed first. Tool results are left out of their messages.",
        schema: schema_of::<ListArgs>,
        run: |caller, view, args| reply(&sessions_list(caller, view, &read(args)?)?),
    },
    Tool {
        name: "sessions_history",
        about: "Read what was said in one session: the newest page first, inside it the oldest message first.",
        schema: schema_of::<HistoryArgs>,
        run: |caller, view, args| {
            let args: HistoryArgs = read(args)?;
            reply(&sessions_history(caller, view, &args, Span::Part)?)
        },
    },
    Tool {
        name: "sessions_search",
        about: "Find turns in which all words occur, in any session, the newest first.",
        schema: schema_of::<SearchArgs>,
        run: |caller, view, args| reply(&sessions_search(caller, view, &read(args)?)?),
    },
];

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

    /// Calls it. A session that names one that it does not see leaves `access.denied` in its own stream, if the store
    /// takes appends; the refusal stands in any case.
    ///
    /// # Errors
    /// `InvalidInput` for arguments that do not fit the schema; what the handler says.
    pub fn call(&self, caller: &Caller, view: &View<'_>, args: Value) -> Result<Value> {
        let named = args.get("sessionKey").and_then(Value::as_str).map(str::to_owned);
        let answer = (self.run)(caller, view, args);
        if let (Err(error), Some(target), Seat::Session { key, .. }) =
            (&answer, named, &caller.seat)
            && *error.kind() == ErrorKind::NotFound
        {
            let denied = Event::AccessDenied(denied(self.name, target));
            let id = EventId::new(view.lens.now);
            let links = Links { cause: None, flow: Some(id) };
            let told = denied.to_new(key.clone(), id, links);
            // What the store says about it is no answer to the question that was asked.
            drop(told.and_then(|event| view.store.append(Append::new(vec![event]))));
        }
        answer
    }
}

/// What is recorded of a refusal. A name that no session can have is recorded as far as a session's could go.
fn denied(verb: &str, mut target: String) -> Refusal {
    let bytes = target.len();
    target.truncate(target.floor_char_boundary(SessionKey::BYTES_MAX));
    let detail = format!("the target has {bytes} bytes, of which these are the first");
    Refusal {
        at: None,
        verb: verb.to_owned(),
        detail: (target.len() < bytes).then_some(detail),
        target,
        reason: "not_visible".to_owned(),
    }
}

fn read<T: DeserializeOwned>(args: Value) -> Result<T> {
    let args = if args.is_null() { Value::Object(serde_json::Map::new()) } else { args };
    serde_json::from_value(args).map_err(|e| {
        Error::invalid(format!("the arguments do not fit: {e}"))
            .field("arguments")
            .hint("the tool's schema says what fits")
    })
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
            let properties = schema["properties"].as_object().unwrap();
            for (name, property) in properties {
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
