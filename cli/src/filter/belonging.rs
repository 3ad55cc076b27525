//! Whose event it is: the session that a record belongs to, that session's kind and its agent, as the log itself said
//! before. Nothing is guessed from a key.

use std::collections::HashMap;

use annals_engine::session::event::{Event, SessionKind};
use annals_engine::store::Record;

/// What the log has said so far.
#[derive(Default)]
pub(super) struct Belonging {
    /// Session key to kind and agent.
    sessions: HashMap<String, (SessionKind, String)>,
    /// Stream of a run to the key of the session that it works on.
    runs: HashMap<String, String>,
}

impl Belonging {
    pub(super) fn learn(&mut self, record: &Record) {
        if !matches!(record.kind.as_str(), "session.opened" | "run.requested") {
            return;
        }
        match Event::of(record) {
            Ok(Event::SessionOpened(opened)) => {
                let said = (opened.kind, opened.agent_id);
                self.sessions.insert(record.stream.as_str().to_owned(), said);
            }
            Ok(Event::RunRequested(run)) => {
                self.runs.insert(record.stream.as_str().to_owned(), run.session_key);
            }
            _ => {}
        }
    }

    /// The key of the session that a record belongs to; its stream's name when it belongs to none.
    pub(super) fn session_of<'a>(&'a self, record: &'a Record) -> &'a str {
        let stream = record.stream.as_str();
        self.runs.get(stream).map_or(stream, String::as_str)
    }

    /// Whether a run works on a session whose key is one of these.
    pub(super) fn any_run_of(&self, is: impl Fn(&str) -> bool) -> bool {
        self.runs.values().any(|key| is(key))
    }

    pub(super) fn kind_of(&self, key: &str) -> Option<SessionKind> {
        self.sessions.get(key).map(|(kind, _)| *kind)
    }

    pub(super) fn agent_of(&self, key: &str) -> Option<&str> {
        self.sessions.get(key).map(|(_, agent)| agent.as_str())
    }
}
