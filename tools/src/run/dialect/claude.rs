//! Claude Code: `claude -p --output-format stream-json --verbose`. Read as version 2.1 prints it.
//!
//! - A message comes as several rows with one id, one block each; results of its calls may stand between them.
//! - What each row says of usage is what the message began with. The `result` tells the whole turn.
//! - A process that is given several prompts prints a `result` for each: `usage` is of that turn alone, and
//!   `total_cost_usd` of all turns so far. A resumed session begins again at nothing.
//! - A failure is a `result` with `is_error`, whatever its `subtype`; its text, and that of rows by the model
//!   `<synthetic>`, is the program's and not the agent's. Such rows are no turns.
//! - A failure before the program began names the session that was asked for, which need not exist.
//! - Rows with a `parent_tool_use_id` are of a sub-agent inside the program. The call's result says what came of it.
//! - `api_retry` rows tell of silent retries, which go on for minutes.

use annals_engine::session::event::{Json, Members, Role, Tokens};

use super::fields::{Lenient, Line};
use super::turns::{Growing, Turns};
use super::{Reply, Told};

/// The model that is named where the program itself speaks.
const SYNTHETIC: &str = "<synthetic>";

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Claude {
    turns: Turns,
    reply: Reply,
    /// The text of the last message, and the message that it is of.
    last: String,
    last_id: Option<String>,
    /// What the program said in the agent's place.
    synthetic: Option<String>,
    /// The retry behind which the model has said nothing yet.
    retry: Option<String>,
    /// Whether the program said that it began.
    begun: bool,
    /// Whether pieces of the next message came before it.
    pieces: bool,
    /// Whether nothing was said after the last `result`.
    summed_up: bool,
}

impl Claude {
    pub(super) fn line(&mut self, line: &Line) -> Option<Told> {
        let fields = line.fields();
        let inside = fields.text("parent_tool_use_id").is_some();
        match line.kind() {
            "system" => self.system(fields),
            "assistant" if !inside => self.assistant(fields),
            "user" if !inside => {
                self.user(fields);
                None
            }
            "stream_event" if !inside => self.piece(fields),
            "result" => self.result(fields),
            _ => None,
        }
    }

    fn system(&mut self, fields: &Members) -> Option<Told> {
        match fields.text("subtype")?.as_str() {
            "init" => {
                self.begun = true;
                self.reply.model = fields.text("model").or(self.reply.model.take());
                self.session(fields)
            }
            "api_retry" => {
                let attempt = fields.count("attempt").unwrap_or_default();
                let status = fields.count("error_status").map(|status| format!(" {status}"));
                let error = fields.text("error").unwrap_or_default();
                let status = status.unwrap_or_default();
                self.retry = Some(format!("retry {attempt}: {error}{status}"));
                self.retry.clone().map(Told::Progress)
            }
            _ => None,
        }
    }

    /// The id of the program's session, told when it is another one than before.
    fn session(&mut self, fields: &Members) -> Option<Told> {
        let id = fields.text("session_id")?;
        let new = self.reply.agent_session_id.as_ref() != Some(&id);
        self.reply.agent_session_id = Some(id.clone());
        new.then_some(Told::AgentSession(id))
    }

    fn assistant(&mut self, fields: &Members) -> Option<Told> {
        self.summed_up = false;
        let message = fields.object("message");
        let said = message.get("content").map(Json::plain_text).filter(|text| !text.is_empty());
        let model = message.text("model");
        if model.as_deref() == Some(SYNTHETIC) {
            self.synthetic.clone_from(&said);
            return said.map(Told::Progress);
        }
        self.retry = None;
        self.reply.model = model.clone().or(self.reply.model.take());
        let blocks: Vec<Json> = message.take("content").unwrap_or_default();
        let calls: Vec<Members> = blocks.iter().filter_map(call).collect();
        let mut row = Growing::new(Role::Assistant);
        let turn = row.turn_mut();
        turn.message_id = message.text("id");
        turn.model = model;
        turn.tokens = tokens(&message.object("usage"));
        turn.calls = calls.iter().filter_map(|call| call.text("id")).collect();
        let id = turn.message_id.clone();
        for call in &calls {
            if let (Some(id), Some(name)) = (call.text("id"), call.text("name")) {
                self.turns.called(&id, &name);
            }
        }
        self.turns.push(match blocks.is_empty() {
            true => row.text(said.as_deref()?),
            false => blocks.iter().fold(row, Growing::block),
        });
        let Some(text) = said else {
            let names: Vec<String> = calls.iter().filter_map(|call| call.text("name")).collect();
            return (!names.is_empty()).then(|| Told::Progress(names.join(", ")));
        };
        if id.is_none() || self.last_id != id {
            self.last.clear();
        }
        self.last_id = id;
        self.last.push_str(&text);
        Some(if std::mem::take(&mut self.pieces) {
            Told::Text("\n".to_owned())
        } else {
            Told::message(&text)
        })
    }

    /// Answers of tools. What else the row holds was said by nobody here.
    fn user(&mut self, fields: &Members) {
        let message = fields.object("message");
        let blocks: Vec<Json> = message.take("content").unwrap_or_default();
        for block in &blocks {
            let Some(result) = of_kind(block, "tool_result") else { continue };
            let mut answer = Growing::new(Role::ToolResult);
            let turn = answer.turn_mut();
            turn.call_id = result.text("tool_use_id");
            turn.is_error = result.take("is_error");
            turn.tool_name = turn.call_id.as_deref().and_then(|call| self.turns.tool_of(call));
            let text: Option<String> = result.take("content");
            let parts: Option<Vec<Json>> = result.take("content");
            self.turns.push(match (text, parts) {
                (Some(text), _) => answer.text(&text),
                (None, Some(parts)) => parts.iter().fold(answer, Growing::block),
                (None, None) => answer.block(block),
            });
        }
    }

    fn piece(&mut self, fields: &Members) -> Option<Told> {
        let event = fields.object("event");
        if event.text("type")? != "content_block_delta" {
            return None;
        }
        let text = event.object("delta").text("text")?;
        self.pieces = true;
        Some(Told::Text(text))
    }

    fn result(&mut self, fields: &Members) -> Option<Told> {
        self.summed_up = true;
        let turn = tokens(&fields.object("usage"));
        self.reply.tokens = match (self.reply.tokens.take(), turn) {
            (Some(before), Some(turn)) => Some(sum(&before, &turn)),
            (before, turn) => turn.or(before),
        };
        let cost = fields.micros("total_cost_usd");
        self.reply.cost_micros = cost.max(self.reply.cost_micros);
        let text = fields.text("result");
        if fields.take("is_error") == Some(true) {
            let errors: Vec<String> = fields.take("errors").unwrap_or_default();
            let told = Some(errors.join("\n")).filter(|errors| !errors.is_empty());
            self.reply.text = None;
            self.reply.error = text.or(told).or_else(|| fields.text("subtype"));
            if !self.begun {
                return None;
            }
        } else {
            self.reply.text = text;
            self.reply.error = None;
        }
        self.session(fields)
    }

    /// A program that was stopped before its `result` said the last message that it printed.
    pub(super) fn finish(mut self) -> Reply {
        if !self.summed_up {
            self.reply.error = self.synthetic.or(self.retry);
            self.reply.text = Some(self.last).filter(|text| !text.is_empty());
        }
        self.reply.turns = self.turns.finish();
        self.reply
    }
}

fn call(block: &Json) -> Option<Members> {
    of_kind(block, "tool_use")
}

fn of_kind(block: &Json, kind: &str) -> Option<Members> {
    let fields: Members = block.read()?;
    (fields.text("type").as_deref() == Some(kind)).then_some(fields)
}

fn tokens(usage: &Members) -> Option<Tokens> {
    Some(Tokens {
        r#in: usage.count("input_tokens")?,
        out: usage.count("output_tokens")?,
        cache_read: usage.count("cache_read_input_tokens"),
        cache_write: usage.count("cache_creation_input_tokens"),
    })
}

fn sum(one: &Tokens, other: &Tokens) -> Tokens {
    let both = |one: Option<u64>, other: Option<u64>| {
        let sum = one.unwrap_or_default().saturating_add(other.unwrap_or_default());
        one.or(other).map(|_| sum)
    };
    Tokens {
        r#in: one.r#in.saturating_add(other.r#in),
        out: one.out.saturating_add(other.out),
        cache_read: both(one.cache_read, other.cache_read),
        cache_write: both(one.cache_write, other.cache_write),
    }
}
