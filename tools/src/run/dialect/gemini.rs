//! Gemini CLI: `gemini --output-format stream-json`, and the one object of `--output-format json`. Read by its
//! documentation and the types of its source.
//!
//! - Text comes in pieces (`message` rows with `delta`); what follows a call is the next message. The last message is
//!   the reply.
//! - An `error` row warns; a failure is a `result` whose `status` is `error`.
//! - Input counts what a cache had; `input` is what it had not.

use annals_engine::session::event::{Members, Role, Tokens};

use super::fields::{Lenient, Line, named};
use super::turns::{Growing, Turns};
use super::{Reply, Told};

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    turns: Turns,
    reply: Reply,
    /// The message that is being said.
    said: String,
    /// The last message that was said whole.
    last: Option<String>,
}

impl Gemini {
    pub(super) fn line(&mut self, line: &Line) -> Option<Told> {
        let fields = line.fields();
        match line.kind() {
            "init" => {
                self.reply.model = fields.text("model");
                self.session(fields)
            }
            "message" if fields.text("role").as_deref() == Some("assistant") => {
                let text = fields.text("content")?;
                if fields.take("delta") != Some(true) {
                    self.end_message();
                }
                let next = self.said.is_empty() && self.last.is_some();
                self.said.push_str(&text);
                Some(Told::Text(if next { format!("\n{text}") } else { text }))
            }
            "tool_use" => self.call(fields),
            "tool_result" => {
                self.answer(fields);
                None
            }
            "error" => fields.text("message").map(Told::Progress),
            "result" => {
                self.failed(fields);
                self.reply.tokens = tokens(&fields.object("stats"));
                None
            }
            "" => self.envelope(fields),
            _ => None,
        }
    }

    fn session(&mut self, fields: &Members) -> Option<Told> {
        self.reply.agent_session_id = fields.text("session_id");
        self.reply.agent_session_id.clone().map(Told::AgentSession)
    }

    fn failed(&mut self, fields: &Members) {
        let error = fields.object("error");
        let told = error.text("message").or_else(|| error.text("type"));
        let failed = fields.text("status").is_some_and(|status| status == "error");
        self.reply.error = told.or_else(|| failed.then(|| "error".to_owned()));
    }

    /// The one object of `--output-format json`.
    fn envelope(&mut self, fields: &Members) -> Option<Told> {
        self.said = fields.text("response").unwrap_or_default();
        self.failed(fields);
        let models = fields.object("stats").object("models");
        for (model, stats) in &models.0 {
            let counts: Members = stats.read().unwrap_or_default();
            self.reply.model = Some(model.clone());
            self.reply.tokens = of_model(&counts.object("tokens"), self.reply.tokens.take());
        }
        self.session(fields)
    }

    fn end_message(&mut self) {
        if self.said.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.said);
        let mut message = Growing::new(Role::Assistant);
        message.turn_mut().model.clone_from(&self.reply.model);
        self.turns.push(message.text(&text));
        self.last = Some(text);
    }

    fn call(&mut self, fields: &Members) -> Option<Told> {
        self.end_message();
        let (call, name) = (fields.text("tool_id"), fields.text("tool_name"));
        if let (Some(call), Some(name)) = (&call, &name) {
            self.turns.called(call, name);
        }
        let mut opened = Growing::new(Role::Assistant);
        opened.turn_mut().model.clone_from(&self.reply.model);
        opened.turn_mut().calls = call.into_iter().collect();
        self.turns.push(opened.block(&named(fields, name.as_deref())));
        name.map(Told::Progress)
    }

    fn answer(&mut self, fields: &Members) {
        let mut answer = Growing::new(Role::ToolResult);
        let turn = answer.turn_mut();
        turn.call_id = fields.text("tool_id");
        turn.tool_name = turn.call_id.as_deref().and_then(|call| self.turns.tool_of(call));
        turn.is_error = fields.text("status").map(|status| status == "error");
        let said = fields.text("output").or_else(|| fields.object("error").text("message"));
        self.turns.push(answer.text(&said.unwrap_or_default()));
    }

    pub(super) fn finish(mut self) -> Reply {
        self.end_message();
        let failed = self.reply.error.is_some();
        self.reply.text = self.last.filter(|_| !failed);
        self.reply.turns = self.turns.finish();
        self.reply
    }
}

fn tokens(stats: &Members) -> Option<Tokens> {
    let cached = stats.count("cached");
    let all = stats.count("input_tokens");
    let fresh = || Some(all?.saturating_sub(cached.unwrap_or_default()));
    Some(Tokens {
        r#in: stats.count("input").or_else(fresh)?,
        out: stats.count("output_tokens")?,
        cache_read: cached,
        cache_write: None,
    })
}

/// The tokens of one model, added to those of others.
fn of_model(tokens: &Members, before: Option<Tokens>) -> Option<Tokens> {
    let count = |name: &str| tokens.count(name).unwrap_or_default();
    let cached = count("cached");
    let other = before.unwrap_or(Tokens { r#in: 0, out: 0, cache_read: None, cache_write: None });
    let out = count("candidates").saturating_add(count("thoughts"));
    Some(Tokens {
        r#in: other.r#in.saturating_add(count("prompt").saturating_sub(cached)),
        out: other.out.saturating_add(out),
        cache_read: Some(other.cache_read.unwrap_or_default().saturating_add(cached)),
        cache_write: None,
    })
}
