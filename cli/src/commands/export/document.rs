//! Sessions as something to read: Markdown, or plain text. What was said is whole; what has no place in a document,
//! such as the bytes of a picture, is named where it stood and counted at the end. In Markdown every line of what was
//! said is quoted, in plain text it is indented: nothing that anybody said can be taken for a line of the document.

use annals_engine::session::event::{Event, Json, Role, Turn};
use serde_json::Value;

use super::prose::{code, prose, quoted};
use crate::exit::Failure;
use crate::output::Output;
use crate::output::text::{bytes, count, indented, many_lines, one_line};
use crate::shown::line::Fields;
use crate::shown::{Shown, gap, line, wire};
use crate::sieve::Step;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Markup {
    Markdown,
    Plain,
}

/// A document on its way.
pub(super) struct Document {
    markup: Markup,
    /// The session whose turns come now.
    session: String,
    left_out: u64,
    left_out_bytes: u64,
}

impl Document {
    pub(super) fn new(markup: Markup) -> Self {
        Self { markup, session: String::new(), left_out: 0, left_out_bytes: 0 }
    }

    pub(super) fn write(&mut self, step: &Step, out: &mut Output) -> Result<(), Failure> {
        match step {
            Step::Gap(damage) => {
                let text = format!("MISSING: {}", gap::sentence(damage));
                self.paragraph(&text, out)
            }
            Step::Event(shown) => {
                self.session(shown, out)?;
                match shown.event() {
                    Some(Event::Turn(turn)) => self.turn(&turn, shown, out),
                    _ => {
                        let time = shown.at;
                        let kind = &shown.record.kind;
                        self.paragraph(
                            &format!("{kind}, {time}: {}", line::summary(shown, Fields::Whole)),
                            out,
                        )
                    }
                }
            }
        }
    }

    /// Says at the end what was left out.
    pub(super) fn end(&self, out: &mut Output) -> Result<(), Failure> {
        if self.left_out == 0 {
            return Ok(());
        }
        let pieces = count(self.left_out, "piece");
        self.paragraph(&format!("Left out: {pieces}, {}", bytes(self.left_out_bytes)), out)
    }

    /// A heading where another session goes on.
    fn session(&mut self, shown: &Shown, out: &mut Output) -> Result<(), Failure> {
        let stream = shown.record.stream.as_str();
        if self.session == stream {
            return Ok(());
        }
        self.session = stream.to_owned();
        let name = one_line(stream);
        match self.markup {
            Markup::Markdown => out.line(&format!("# {}\n", prose(&name).trim_end())),
            Markup::Plain => out.line(&format!("==== {name}\n")),
        }
    }

    fn turn(&mut self, turn: &Turn, shown: &Shown, out: &mut Output) -> Result<(), Failure> {
        let mut head = format!("{}, {}, #{}", turn.role, shown.at, shown.record.seq);
        if let Some(message) = &shown.message {
            head.push_str(&format!(", from {}", one_line(&message.from)));
        }
        if let Some(silent) = &turn.silent {
            head.push_str(&format!(", silent ({})", one_line(silent)));
        }
        match self.markup {
            Markup::Markdown => out.line(&format!("## {}\n", prose(&head).trim_end()))?,
            Markup::Plain => out.line(&format!("-- {head}"))?,
        }
        if let Some(lost) = wire::lost(shown) {
            return self.paragraph(&format!("LOST: {lost}"), out);
        }
        let said = turn.content.as_ref().and_then(Json::read::<Value>).unwrap_or_default();
        let from_tool = turn.role == Role::ToolResult;
        match &said {
            Value::Array(blocks) => {
                blocks.iter().try_for_each(|block| self.block(block, from_tool, out))?;
            }
            Value::Null => {}
            other => self.block(other, from_tool, out)?,
        }
        if self.markup == Markup::Plain { out.line("") } else { Ok(()) }
    }

    fn block(&mut self, block: &Value, from_tool: bool, out: &mut Output) -> Result<(), Failure> {
        let text = block.as_str().or_else(|| block.get("text").and_then(Value::as_str));
        if let Some(text) = text {
            return if from_tool { self.code(text, "text", out) } else { self.said(text, out) };
        }
        let kind = block.get("type").and_then(Value::as_str).unwrap_or("block");
        if let Some(size) = picture_bytes(block) {
            self.left_out += 1;
            self.left_out_bytes += size;
            return self.paragraph(&format!("[{kind}, {}, left out]", bytes(size)), out);
        }
        let json = serde_json::to_string_pretty(block).unwrap_or_default();
        self.code(&json, "json", out)
    }

    /// What a person or an agent wrote.
    fn said(&self, text: &str, out: &mut Output) -> Result<(), Failure> {
        let text = many_lines(text);
        match self.markup {
            Markup::Markdown => out.line(&quoted(&prose(&text))),
            Markup::Plain => out.line(indented(&text).trim_end_matches('\n')),
        }
    }

    /// What a machine wrote.
    fn code(&self, text: &str, language: &str, out: &mut Output) -> Result<(), Failure> {
        let text = many_lines(text);
        match self.markup {
            Markup::Markdown => out.line(&quoted(&code(&text, language))),
            Markup::Plain => out.line(indented(&text).trim_end_matches('\n')),
        }
    }

    /// What the document itself says, which is the only text that stands at the margin.
    fn paragraph(&self, text: &str, out: &mut Output) -> Result<(), Failure> {
        let text = one_line(text);
        match self.markup {
            Markup::Markdown => out.line(&format!("{}\n", prose(&text).trim_end())),
            Markup::Plain => out.line(&text),
        }
    }
}

/// How many bytes of data a picture, or another block of encoded bytes, holds; `None` for any other block.
fn picture_bytes(block: &Value) -> Option<u64> {
    let data = block.get("data").or_else(|| block.pointer("/source/data"))?.as_str()?;
    u64::try_from(data.len()).ok()
}
