//! The native dialect: what a program speaks that was written for this one.
//!
//! | `type` | fields, all optional |
//! |---|---|
//! | `progress` | `text` |
//! | `message` | `text`, or `content` (blocks); `model`, `messageId`; told as it is, and a turn of the log |
//! | `tool` | `callId`, `name`; with `input` it is a call, with `output` (and `isError`) what the tool answered |
//! | `usage` | `in`, `out`, `cacheRead`, `cacheWrite`, `costMicros` or `costUsd`, `model`; the last one tells the whole run |
//! | `result` | `status` (`ok`, or anything else for a failure), `text`, `error`, `sessionId`, `usage` (as above) |
//!
//! The last `result` wins. Without one, or with one that has no text, the lines that are no such objects are the reply;
//! without those the last message is.

use annals_engine::session::event::{Json, Members, Role, Tokens};

use super::fields::{Lenient, Line, string};
use super::plain::Plain;
use super::turns::{Growing, Turns};
use super::{Reply, Told};

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Native {
    turns: Turns,
    reply: Reply,
    /// The text of the last message.
    last: Option<String>,
    result: Option<Outcome>,
}

#[derive(Debug)]
struct Outcome {
    text: Option<String>,
    error: Option<String>,
}

impl Native {
    pub(super) fn line(&mut self, line: &Line) -> Option<Told> {
        let fields = line.fields();
        match line.kind() {
            "progress" => fields.text("text").map(Told::Progress),
            "message" => self.message(fields),
            "tool" => self.tool(fields),
            "usage" => {
                self.usage(fields);
                None
            }
            "result" => self.result(fields),
            _ => None,
        }
    }

    fn message(&mut self, fields: &Members) -> Option<Told> {
        let mut message = Growing::new(Role::Assistant);
        message.turn_mut().message_id = fields.text("messageId");
        message.turn_mut().model = fields.text("model");
        let blocks: Vec<Json> = fields.take("content").unwrap_or_default();
        let said = fields.text("text").or_else(|| fields.get("content").map(Json::plain_text));
        let text = said.filter(|text| !text.is_empty());
        if blocks.is_empty() {
            message = message.text(text.as_deref()?);
        }
        self.turns.push(blocks.iter().fold(message, Growing::block));
        self.last.clone_from(&text);
        text.as_deref().map(Told::message)
    }

    fn tool(&mut self, fields: &Members) -> Option<Told> {
        let call = fields.text("callId");
        let mut name = fields.text("name");
        let block = |kind: &str| {
            let kind = ("type".to_owned(), string(kind));
            let rest = fields.0.iter().filter(|(name, _)| name != "type").cloned();
            Json::of(&Members(std::iter::once(kind).chain(rest).collect()))
                .unwrap_or_else(|_| Json::null())
        };
        let Some(output) = fields.get("output") else {
            if let (Some(call), Some(name)) = (&call, &name) {
                self.turns.called(call, name);
            }
            let mut opened = Growing::new(Role::Assistant);
            opened.turn_mut().calls = call.into_iter().collect();
            self.turns.push(opened.block(&block("tool_use")));
            return name.map(Told::Progress);
        };
        name = name.or_else(|| self.turns.tool_of(call.as_deref()?));
        let mut answer = Growing::new(Role::ToolResult);
        let turn = answer.turn_mut();
        (turn.call_id, turn.tool_name, turn.is_error) = (call, name, fields.take("isError"));
        self.turns.push(match output.read::<String>() {
            Some(text) => answer.text(&text),
            None => answer.block(output),
        });
        None
    }

    fn usage(&mut self, fields: &Members) {
        if let Some(tokens) = tokens(fields) {
            self.reply.tokens = Some(tokens);
        }
        self.reply.cost_micros = fields
            .count("costMicros")
            .or_else(|| fields.micros("costUsd"))
            .or(self.reply.cost_micros);
        self.reply.model = fields.text("model").or(self.reply.model.take());
    }

    fn result(&mut self, fields: &Members) -> Option<Told> {
        self.usage(&fields.object("usage"));
        let id = fields.text("sessionId");
        self.reply.agent_session_id = id.clone().or(self.reply.agent_session_id.take());
        let failed = fields.text("status").is_some_and(|status| status != "ok");
        let error = fields.text("error").or_else(|| failed.then(|| fields.text("status"))?);
        self.result = Some(Outcome { text: fields.text("text"), error });
        id.map(Told::AgentSession)
    }

    pub(super) fn finish(self, others: &Plain) -> Reply {
        let Self { turns, mut reply, last, result } = self;
        reply.turns = turns.finish();
        let (text, error) = result.map_or((None, None), |result| (result.text, result.error));
        reply.error = error;
        reply.text = text.or_else(|| others.text()).or(last);
        reply
    }
}

fn tokens(fields: &Members) -> Option<Tokens> {
    let (r#in, out) = (fields.count("in"), fields.count("out"));
    r#in.or(out)?;
    Some(Tokens {
        r#in: r#in.unwrap_or_default(),
        out: out.unwrap_or_default(),
        cache_read: fields.count("cacheRead"),
        cache_write: fields.count("cacheWrite"),
    })
}
