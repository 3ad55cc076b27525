//! Sessions and runs as resources: `session://{key}` is the newest page of a session's history, `run://{id}` how a run is.
//! Keys are percent-encoded, for they hold colons and whatever else a channel puts into them.
//!
//! Reading a resource is calling the tool that says the same, so that nothing is seen here that is not seen there.

use std::fmt;
use std::sync::atomic::AtomicBool;

use annals_engine::id::StreamName;
use annals_engine::session::event::run_stream;
use annals_engine::session::index::Found;
use annals_engine::{Error, ErrorKind, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Value, json};

use super::Service;
use crate::caller::Caller;
use crate::host::Identity;
use crate::registry::Tool;
use crate::view::View;

/// The media type of all that is read.
pub(super) const JSON: &str = "application/json";

/// How many resources a page of the list has.
const PAGE: usize = 100;

/// What stays as it is in a name.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// A session.
    Session(String),
    /// A run.
    Run(String),
}

impl Named {
    /// Reads a name.
    ///
    /// # Errors
    /// `NotFound` for what names nothing that can be read.
    pub(super) fn read(uri: &str) -> Result<Self> {
        let decoded = |rest: &str| {
            let text = percent_decode_str(rest).decode_utf8().ok()?;
            (!text.is_empty()).then(|| text.into_owned())
        };
        let session = uri.strip_prefix("session://").and_then(decoded).map(Self::Session);
        let named = session.or_else(|| uri.strip_prefix("run://").and_then(decoded).map(Self::Run));
        named.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no resource {uri:?}"))
                .field("uri")
                .hint("resources are session://{key} and run://{id}, the key percent-encoded")
        })
    }

    /// The stream in which is told what happens to it, if the caller sees it.
    pub(super) fn stream(&self, caller: &Caller, view: &View<'_>) -> Result<StreamName> {
        match self {
            Self::Session(name) => {
                let tool = Tool::of("sessions_history")?;
                if !caller.tools.has(tool.name) {
                    return tool.call(caller, view, Value::Null).and(Err(nothing(name)));
                }
                let Found { key, .. } = caller.find(view.sessions.state(), name)?;
                Ok(key)
            }
            Self::Run(id) => {
                self.content(caller, view)?;
                run_stream(id)
            }
        }
    }

    /// What it is, as JSON.
    ///
    /// # Errors
    /// `NotFound` for what is not there or not seen; what the tool says that answers the same.
    pub(super) fn content(&self, caller: &Caller, view: &View<'_>) -> Result<Value> {
        match self {
            Self::Session(key) => {
                Tool::of("sessions_history")?.call(caller, view, json!({ "sessionKey": key }))
            }
            Self::Run(id) => {
                let args = json!({ "runIds": [id], "timeoutSeconds": 0 });
                let mut answer = Tool::of("runs_wait")?.call(caller, view, args)?;
                let run = answer["runs"][0].take();
                if run["status"] == "not_found" {
                    return Err(nothing(id));
                }
                Ok(run)
            }
        }
    }
}

fn nothing(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no resource {name:?}")).field("uri")
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, text) = match self {
            Self::Session(key) => ("session", key),
            Self::Run(id) => ("run", id),
        };
        write!(f, "{scheme}://{}", utf8_percent_encode(text, ENCODED))
    }
}

/// The forms that names have.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("session://{key}", "session")
            .with_description("The newest page of a session's history, by the session's key")
            .with_mime_type(JSON),
        ResourceTemplate::new("run://{id}", "run")
            .with_description("How a run is, and what it answered")
            .with_mime_type(JSON),
    ]
}

impl Service {
    /// A page of the sessions that somebody sees, and what to ask for the next one with.
    ///
    /// # Errors
    /// `InvalidInput` for a cursor that no answer gave; whatever reading meets.
    pub(super) fn resources(
        &self,
        who: &Identity,
        cursor: Option<String>,
        gone: &AtomicBool,
    ) -> Result<(Vec<Resource>, Option<String>)> {
        let caller = self.host.caller(who)?;
        let tool = Tool::of("sessions_list")?;
        if !caller.tools.has(tool.name) {
            return Ok((Vec::new(), None));
        }
        let mut args = json!({ "limit": PAGE });
        if let Some(cursor) = cursor {
            args["cursor"] = Value::from(cursor);
        }
        let answer = self.host.look(Some(gone), |view| tool.call(&caller, view, args))?;
        let rows = answer["sessions"].as_array().map_or(&[][..], Vec::as_slice);
        let cursor = answer["cursor"].as_str().map(str::to_owned);
        Ok((rows.iter().filter_map(resource).collect(), cursor))
    }
}

/// A row of a list as a resource.
fn resource(row: &Value) -> Option<Resource> {
    let key = row["key"].as_str()?;
    let text = |name: &str| row[name].as_str().filter(|text| !text.is_empty());
    let title = text("label").or_else(|| text("displayName"));
    let about = [text("kind"), text("channel")];
    let about: Vec<&str> = about.into_iter().flatten().collect();
    let resource = Resource::new(Named::Session(key.to_owned()).to_string(), key)
        .with_description(about.join(", "))
        .with_mime_type(JSON);
    Some(match title {
        Some(title) => resource.with_title(title),
        None => resource,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, named: &Named) {
        assert_eq!(Named::read(uri).unwrap(), *named);
        assert_eq!(Named::read(&named.to_string()).unwrap(), *named, "{named}");
    }

    /// Goal: a name says which session it is, whatever stands in the key, and is read as it was written. Method: keys with
    /// colons, slashes, percent signs, spaces and letters of other scripts, encoded and as people type them.
    #[test]
    fn names() {
        let session = |key: &str| Named::Session(key.to_owned());
        check("session://agent%3Amain%3Amain", &session("agent:main:main"));
        check("session://agent:main:main", &session("agent:main:main"));
        check("session://x%2Fy%3F%23%25", &session("x/y?#%"));
        check("session://matrix%3A%21r%C3%BC%20%E4%B8%96", &session("matrix:!rü 世"));
        check("run://01a%2D", &Named::Run("01a-".to_owned()));
        assert_eq!(session("agent:main:ü a").to_string(), "session://agent%3Amain%3A%C3%BC%20a");
    }

    /// Goal: what names nothing is no resource. Method: other schemes, nothing behind the scheme, bytes that are no text.
    #[test]
    fn no_names() {
        for uri in ["", "session:", "session://", "run://", "file:///etc/passwd", "session://%FF"] {
            assert_eq!(*Named::read(uri).unwrap_err().kind(), ErrorKind::NotFound, "{uri}");
        }
    }
}
