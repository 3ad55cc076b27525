//! A program without a dialect: what it prints is what it says.

use annals_engine::session::event::{Json, Members, Role};

use super::fields::{Lenient, string, whole_pairs};
use super::{OutputForm, Reply, ReplyTurn};

/// Lines as they came, without their line feeds.
#[derive(Debug, Default)]
pub(super) struct Plain(Vec<String>);

/// Where an object's text stands, the first of them that is a string.
const TEXT: [&str; 5] = ["text", "reply", "result", "response", "output"];

impl Plain {
    pub(super) fn push(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }

    pub(super) fn lines(&self) -> &[String] {
        &self.0
    }

    /// The text of all lines; `None` without any.
    pub(super) fn text(&self) -> Option<String> {
        Some(self.0.join("\n")).filter(|text| !text.is_empty())
    }

    /// The one JSON value that the lines are, a list as its values; `None` when they are none.
    pub(super) fn values(&self) -> Option<Vec<Json>> {
        let text = self.0.join("\n");
        let value = Json::from_text(whole_pairs(text.trim())).ok()?;
        Some(value.read().unwrap_or_else(|| vec![value]))
    }

    /// The reply of a program that speaks plainly: its text. Of JSON, a string is the text, and of an object the field
    /// that [`TEXT`] names; other JSON is text as it stands. Of JSON lines, the last one that has text is the reply.
    pub(super) fn reply(&self, form: OutputForm) -> Reply {
        let text = match form {
            OutputForm::Text => self.text(),
            OutputForm::Json => {
                let whole = self.text();
                whole.map(|text| said_by(&text).unwrap_or(text))
            }
            OutputForm::Jsonl => {
                let last = self.0.iter().rev().find(|line| !line.trim().is_empty());
                let said = self.0.iter().rev().find_map(|line| said_by(line));
                said.or_else(|| last.cloned())
            }
        };
        let text = text.filter(|text| !text.is_empty());
        let turns = text.iter().map(|text| turn(text)).collect();
        Reply { text, turns, ..Reply::default() }
    }
}

/// A turn of the agent that is text alone.
pub(super) fn turn(text: &str) -> ReplyTurn {
    ReplyTurn {
        role: Role::Assistant,
        message_id: None,
        calls: Vec::new(),
        call_id: None,
        tool_name: None,
        is_error: None,
        model: None,
        tokens: None,
        content: string(text),
    }
}

fn said_by(text: &str) -> Option<String> {
    let value = Json::from_text(whole_pairs(text.trim())).ok()?;
    if let Some(text) = value.read() {
        return Some(text);
    }
    let fields: Members = value.read()?;
    TEXT.iter().find_map(|name| fields.take(name))
}
