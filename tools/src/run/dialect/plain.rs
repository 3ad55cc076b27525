//! A program without a dialect: what it prints is what it says.

use annals_engine::session::event::{Json, Members, Role};

use super::fields::{Lenient, string, whole_pairs};
use super::{OutputForm, Reply, ReplyTurn};

/// Lines as they came, without their line feeds.
#[derive(Debug, Default)]
pub(super) struct Plain(Vec<String>);

/// How many places of an output are tried as the begin of its value.
const STARTS_MAX: usize = 64;

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

    /// The one JSON object among the lines, or the list of some; nothing when there is none. Other lines may stand
    /// before and behind it.
    pub(super) fn objects(&self) -> Vec<Members> {
        let text = self.0.join("\n");
        let text = whole_pairs(&text);
        let mut at = 0;
        let rests = text.split_inclusive('\n').filter_map(|line| {
            let rest = text.get(at..)?;
            at += line.len();
            line.trim_start().starts_with(['{', '[']).then_some(rest)
        });
        rests.take(STARTS_MAX).find_map(first_objects).unwrap_or_default()
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

fn first_objects(text: &str) -> Option<Vec<Members>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Json>();
    let value = values.next()?.ok()?;
    let list = || value.read().filter(|list: &Vec<Members>| !list.is_empty());
    value.read().map(|one| vec![one]).or_else(list)
}

fn said_by(text: &str) -> Option<String> {
    let value = Json::from_text(whole_pairs(text.trim())).ok()?;
    if let Some(text) = value.read() {
        return Some(text);
    }
    let fields: Members = value.read()?;
    TEXT.iter().find_map(|name| fields.take(name))
}
