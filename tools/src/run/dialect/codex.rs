//! Codex: `codex exec --json`, and `codex exec resume --json ID`. Read as version 0.171 prints it.
//!
//! - The last `agent_message` is the reply; those before it were said on the way.
//! - An `error` line is not the end: the program tries again, and says `turn.failed` when it gives up. An *item* of
//!   type `error` is a warning.
//! - Items are numbered anew by each process, so `item_1` of a resumed session is another one than before; the reader
//!   puts the run before them where it knows it.
//! - `usage` counts the whole thread, what was said before it was resumed included. Input counts what a cache had.

use annals_engine::session::event::{Members, Role, Tokens};

use super::fields::{Lenient, Line, named};
use super::turns::{Growing, Turns};
use super::{Counted, Reply, Told};

/// What was told so far.
#[derive(Debug)]
pub(super) struct Codex {
    /// The run that items are numbered within.
    pub(super) scope: Option<String>,
    turns: Turns,
    reply: Reply,
    /// The calls that were opened and not answered.
    open: Vec<String>,
    /// What an `error` line said after which nothing went well.
    error: Option<String>,
}

impl Default for Codex {
    fn default() -> Self {
        let reply = Reply { counted: Counted::AgentSession, ..Reply::default() };
        Self { scope: None, turns: Turns::default(), reply, open: Vec::new(), error: None }
    }
}

impl Codex {
    pub(super) fn line(&mut self, line: &Line) -> Option<Told> {
        let fields = line.fields();
        match line.kind() {
            "thread.started" => {
                self.reply.agent_session_id = fields.text("thread_id");
                self.reply.agent_session_id.clone().map(Told::AgentSession)
            }
            "item.started" => self.started(&fields.object("item")),
            "item.completed" => self.completed(&fields.object("item")),
            "turn.completed" => {
                self.reply.tokens = tokens(&fields.object("usage")).or(self.reply.tokens.take());
                (self.error, self.reply.error) = (None, None);
                None
            }
            "turn.failed" => {
                let told = fields.object("error").text("message").or(self.error.take());
                self.reply.error = told.or_else(|| Some("turn.failed".to_owned()));
                self.reply.text = None;
                None
            }
            "error" => {
                self.error = fields.text("message");
                self.error.clone().map(Told::Progress)
            }
            _ => None,
        }
    }

    fn started(&mut self, item: &Members) -> Option<Told> {
        let kind = item.text("type")?;
        if !is_call(&kind) {
            return None;
        }
        self.open(item, &kind);
        Some(Told::Progress(shown(item, &kind)))
    }

    fn completed(&mut self, item: &Members) -> Option<Told> {
        let kind = item.text("type")?;
        let text = item.text("text").or_else(|| item.text("message"));
        match kind.as_str() {
            "agent_message" => {
                let text = text?;
                self.turns.push(Growing::new(Role::Assistant).text(&text));
                let told = Told::message(&text);
                self.reply.text = Some(text);
                Some(told)
            }
            "reasoning" => {
                self.turns.push(Growing::new(Role::Assistant).block(&named(item, None)));
                text.map(Told::Progress)
            }
            "error" => text.map(Told::Progress),
            _ if is_call(&kind) => self.answered(item, &kind),
            _ => None,
        }
    }

    /// A call with what came of it; opened here when nothing told that it began.
    fn answered(&mut self, item: &Members, kind: &str) -> Option<Told> {
        let call = self.call(item);
        let at = self.open.iter().position(|open| Some(open) == call.as_ref());
        match at {
            Some(at) => drop(self.open.swap_remove(at)),
            None => {
                self.open(item, kind);
                self.open.pop();
            }
        }
        let mut answer = Growing::new(Role::ToolResult);
        let turn = answer.turn_mut();
        turn.call_id = call;
        turn.tool_name = Some(tool(item, kind));
        let failed = item.text("status").is_some_and(|status| status == "failed");
        let exit: Option<i64> = item.take("exit_code");
        turn.is_error = Some(failed || exit.is_some_and(|exit| exit != 0));
        self.turns.push(match item.take::<String>("aggregated_output") {
            Some(output) => answer.text(&output),
            None => answer.block(&named(item, None)),
        });
        at.is_none().then(|| Told::Progress(shown(item, kind)))
    }

    fn open(&mut self, item: &Members, kind: &str) {
        let call = self.call(item);
        let mut opened = Growing::new(Role::Assistant);
        opened.turn_mut().calls = call.iter().cloned().collect();
        let answers = ["aggregated_output", "result"];
        let mut asked = item.clone();
        asked.0.retain(|(name, _)| !answers.contains(&name.as_str()));
        self.turns.push(opened.block(&named(&asked, Some(&tool(item, kind)))));
        self.open.extend(call);
    }

    fn call(&self, item: &Members) -> Option<String> {
        let id = item.text("id")?;
        Some(match &self.scope {
            Some(scope) => format!("{scope}:{id}"),
            None => id,
        })
    }

    pub(super) fn finish(mut self) -> Reply {
        self.reply.error = self.reply.error.or(self.error);
        self.reply.turns = self.turns.finish();
        self.reply
    }
}

/// Whether items of this type are calls of a tool; types that nobody knows yet are not.
fn is_call(kind: &str) -> bool {
    let calls = ["command_execution", "file_change", "web_search", "todo_list"];
    calls.contains(&kind) || kind.ends_with("tool_call")
}

/// The tool that an item calls: that of an MCP server by its name, else the item's type.
fn tool(item: &Members, kind: &str) -> String {
    match (item.text("server"), item.text("tool")) {
        (Some(server), Some(tool)) => format!("{server}.{tool}"),
        (None, Some(tool)) => tool,
        _ => kind.to_owned(),
    }
}

fn shown(item: &Members, kind: &str) -> String {
    item.text("command").or_else(|| item.text("query")).unwrap_or_else(|| tool(item, kind))
}

fn tokens(usage: &Members) -> Option<Tokens> {
    let cache_read = usage.count("cached_input_tokens");
    let cache_write = usage.count("cache_write_input_tokens");
    let cached = cache_read.unwrap_or_default().saturating_add(cache_write.unwrap_or_default());
    Some(Tokens {
        r#in: usage.count("input_tokens")?.saturating_sub(cached),
        out: usage.count("output_tokens")?,
        cache_read,
        cache_write: cache_write.filter(|count| *count > 0),
    })
}
