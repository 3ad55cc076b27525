//! An entry as an event: what of it has a place there, and what is left for `source.rest`.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::entry::{Entry, Kind};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::id::EventType;
use crate::import::damage::DamageClass;
use crate::import::fields::{self, Fields};
use crate::session::event::{
    Ingress, Json, Members, Provenance, Role, SessionPatched, Tokens, Turn,
};
use crate::session::silent::{self, Lane, Silence};

/// What is known of a session apart from its entries.
pub(crate) struct Context<'a> {
    /// The word for the program in types of events.
    pub(crate) program: &'a str,
    /// The part of the session.
    pub(crate) session_id: &'a str,
    /// The door that a user's turns came through when they do not say.
    pub(crate) door: Ingress,
    /// Where the next user's turn came from when it does not say: a spawned child's first one is its task.
    pub(crate) task: Option<&'a Provenance>,
    /// Whether tokens and costs are counted here, and not where the entry was copied from.
    pub(crate) usage: Usage,
    /// The key that another session of the import has in the store.
    pub(crate) key_of: &'a dyn Fn(&str) -> String,
}

/// Whether an entry's usage is this session's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// It is.
    Own,
    /// It is counted elsewhere, and stays among what the event does not carry.
    Elsewhere,
}

/// What an entry becomes, before it is known where it stands in its file.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) body: Body,
    pub(crate) at: Option<Timestamp>,
    pub(crate) parent: Option<Cow<'a, str>>,
    /// The tool calls that it makes.
    pub(crate) calls: Vec<Call<'a>>,
    /// What the event does not carry.
    pub(crate) rest: Members,
    /// What is wrong with the entry, when it was kept as it is for that.
    pub(crate) flaw: Option<(DamageClass, String)>,
}

/// The event of an entry.
#[derive(Debug)]
pub(crate) enum Body {
    Turn(Box<Turn>),
    Patched(SessionPatched),
    /// An event of the program's own, of this type, that holds the entry as it is.
    Kept(EventType),
}

/// A tool call in an assistant's turn.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) id: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) arguments: Option<&'a RawValue>,
}

/// Drafts the event of an entry that is no header, and that was read from this text.
///
/// # Errors
/// Never for an entry that was read from JSON.
pub(crate) fn draft<'a>(
    mut entry: Entry<'a>,
    text: &'a str,
    kind: Kind,
    context: &Context<'_>,
) -> Result<Draft<'a>> {
    let parent = entry.fields.text("parentId");
    let at = entry.at();
    let mut drafting = Drafting { context, at, calls: Vec::new(), usage: None };
    let (body, flaw) = match drafting.body(&mut entry, kind) {
        Ok(body) => (body, None),
        Err(flaw) => {
            // Fields may have been taken out before the fault was met.
            entry = Entry::parse(text).unwrap_or(entry);
            drafting.usage = None;
            let word = entry.fields.text("type").unwrap_or_default();
            let body = Body::Kept(own_type(context.program, &word)?);
            (body, flaw.filter(|_| kind != Kind::Other))
        }
    };
    let rest = rest(&entry, drafting.usage)?;
    Ok(Draft { body, at, parent, calls: drafting.calls, rest, flaw })
}

/// The type of an event that keeps an entry as it is.
fn own_type(program: &str, word: &str) -> Result<EventType> {
    let word = if word.is_empty() { "entry" } else { word };
    EventType::new(format!("x.{program}.{word}"))
        .or_else(|_| EventType::new(format!("x.{program}.entry")))
}

/// What is left of an entry, and of the usage that its message tells.
fn rest(entry: &Entry<'_>, usage: Option<Fields<'_>>) -> Result<Members> {
    let mut rest = entry.fields.members();
    let mut message = entry.message.as_ref().map(Fields::members).unwrap_or_default();
    if let Some(usage) = usage.filter(|usage| !usage.is_empty()) {
        message.0.push(("usage".to_owned(), Json::of(&usage.members())?));
    }
    if !message.0.is_empty() {
        rest.0.push(("message".to_owned(), Json::of(&message)?));
    }
    Ok(rest)
}

/// Why an entry is kept as it is; `None` when nothing is wrong with it.
pub(crate) type Flaw = Option<(DamageClass, String)>;

struct Drafting<'a, 'c> {
    context: &'c Context<'c>,
    at: Option<Timestamp>,
    calls: Vec<Call<'a>>,
    /// What is left of the usage.
    usage: Option<Fields<'a>>,
}

impl<'a> Drafting<'a, '_> {
    fn body(&mut self, entry: &mut Entry<'a>, kind: Kind) -> Result<Body, Flaw> {
        let body = match kind {
            Kind::Message => Body::Turn(Box::new(self.message(entry)?)),
            Kind::Compaction | Kind::BranchSummary => {
                let summary = string(&mut entry.fields, "summary")?;
                self.notice(summary, entry)
            }
            Kind::CustomMessage => {
                let content = content(&mut entry.fields, "content")?;
                self.notice(content, entry)
            }
            Kind::ModelChange => self.patched(&mut entry.fields, "modelId", "model")?,
            Kind::ThinkingLevelChange => {
                self.patched(&mut entry.fields, "thinkingLevel", "thinkingLevel")?
            }
            Kind::SessionInfo => self.patched(&mut entry.fields, "name", "displayName")?,
            Kind::Session | Kind::Custom | Kind::Label | Kind::Other => return Err(None),
        };
        if let Body::Turn(turn) = &body
            && turn.message_id.is_some()
        {
            entry.fields.take("id");
        }
        self.at = entry.fields.take_time("timestamp").or(self.at);
        Ok(body)
    }

    /// A turn of the system that an entry makes by itself.
    fn notice(&self, content: Json, entry: &Entry<'a>) -> Body {
        let turn = self.turn(Role::System, Ingress::Internal, content);
        Body::Turn(Box::new(self.with_id(turn, entry)))
    }

    fn turn(&self, role: Role, from: Ingress, content: Json) -> Turn {
        Turn {
            at: self.at,
            session_id: self.context.session_id.to_owned(),
            role,
            from,
            run_id: None,
            message_id: None,
            calls: Vec::new(),
            call_id: None,
            tool_name: None,
            is_error: None,
            silent: None,
            model: None,
            tokens: None,
            cost_micros: None,
            provenance: None,
            source: None,
            content: Some(content),
        }
    }

    fn patched(&self, fields: &mut Fields<'a>, from: &str, to: &str) -> Result<Body, Flaw> {
        let value = string(fields, from)?;
        fields.take("type");
        Ok(Body::Patched(SessionPatched {
            at: self.at,
            session_id: self.context.session_id.to_owned(),
            set: Members(vec![(to.to_owned(), value)]),
        }))
    }

    fn message(&mut self, entry: &mut Entry<'a>) -> Result<Turn, Flaw> {
        let present = entry.fields.has("message");
        let Some(message) = &mut entry.message else {
            return Err(absent(present, "message", "an object"));
        };
        let Some(role) = message.text("role") else {
            return Err(absent(message.has("role"), "message.role", "text"));
        };
        let mut turn = match &*role {
            "user" => self.user(message)?,
            "assistant" => self.assistant(message)?,
            "system" => self.turn(Role::System, Ingress::Internal, content(message, "content")?),
            "toolResult" => self.tool_result(message)?,
            "bashExecution" => self.shell_command(message)?,
            "custom" | "hookMessage" => {
                let content = content(message, "content")?;
                return Ok(self.with_id(self.turn(Role::System, Ingress::Internal, content), entry));
            }
            "compactionSummary" | "branchSummary" => {
                let summary = string(message, "summary")?;
                return Ok(self.with_id(self.turn(Role::System, Ingress::Internal, summary), entry));
            }
            role => {
                let detail = format!("the role {role:?} is not known");
                return Err(Some((DamageClass::UnknownRecord, detail)));
            }
        };
        if *role != *"bashExecution" {
            message.take("role");
        }
        if message.get("timestamp").and_then(fields::time) == self.at {
            message.take_time("timestamp");
        }
        turn.at = self.at;
        entry.fields.take("type");
        Ok(self.with_id(turn, entry))
    }

    fn with_id(&self, mut turn: Turn, entry: &Entry<'a>) -> Turn {
        turn.message_id = entry.fields.text("id").map(Cow::into_owned);
        turn
    }

    fn user(&self, message: &mut Fields<'a>) -> Result<Turn, Flaw> {
        let content = content(message, "content")?;
        let mut turn = self.turn(Role::User, self.context.door, content);
        if let Some(mut told) = message.get("provenance").and_then(|v| Fields::parse(v.get())) {
            turn.from = match told.take_text("kind").as_deref() {
                Some("inter_session") => Ingress::InterSession,
                Some("internal_system" | "internal") => Ingress::Internal,
                _ => Ingress::External,
            };
            let spelled = told.take_text("sourceSessionKey");
            let key = spelled.as_deref().map(self.context.key_of);
            let renamed = key.as_deref() != spelled.as_deref();
            let provenance = Provenance {
                source_session_key: key,
                source_channel: told.take_text("sourceChannel").map(Cow::into_owned),
                source_tool: told.take_text("sourceTool").map(Cow::into_owned),
                sender: None,
                run_id: told.take_text("runId").map(Cow::into_owned),
                round: None,
            };
            turn.provenance = Some(provenance).filter(|told| {
                told.source_session_key.is_some()
                    || told.source_channel.is_some()
                    || told.source_tool.is_some()
                    || told.run_id.is_some()
            });
            if told.is_empty() && !renamed {
                message.take("provenance");
            }
        } else if let Some(task) = self.context.task {
            turn.from = Ingress::InterSession;
            turn.provenance = Some(task.clone());
            turn.run_id.clone_from(&task.run_id);
        }
        Ok(turn)
    }

    fn assistant(&mut self, message: &mut Fields<'a>) -> Result<Turn, Flaw> {
        let blocks = message.get("content");
        let content = content(message, "content")?;
        let mut turn = self.turn(Role::Assistant, Ingress::Internal, content);
        if let Some(blocks) = blocks {
            self.calls = calls(blocks);
            turn.calls = self.calls.iter().map(|call| call.id.clone().into_owned()).collect();
        }
        if turn.calls.is_empty() {
            turn.silent = turn.content.as_ref().and_then(silent_token);
        }
        turn.model = message.take_text("model").map(Cow::into_owned);
        if self.context.usage == Usage::Own {
            let mut usage = message.take_fields("usage");
            if let Some(usage) = &mut usage {
                turn.cost_micros = cost_micros(usage);
                turn.tokens = take_tokens(usage);
            }
            self.usage = usage;
        }
        Ok(turn)
    }

    fn tool_result(&self, message: &mut Fields<'a>) -> Result<Turn, Flaw> {
        let content = content(message, "content")?;
        let mut turn = self.turn(Role::ToolResult, Ingress::Internal, content);
        let call = message.take_text("toolCallId").or_else(|| message.take_text("toolUseId"));
        turn.call_id = call.map(Cow::into_owned);
        turn.tool_name = message.take_text("toolName").map(Cow::into_owned);
        turn.is_error = message.take_flag("isError");
        Ok(turn)
    }

    /// A command that the user ran in a shell: what was typed and what came back, as the agent sees it.
    fn shell_command(&self, message: &mut Fields<'a>) -> Result<Turn, Flaw> {
        let (command, output) = (message.text("command"), message.text("output"));
        let Some(command) = command else {
            return Err(absent(message.has("command"), "message.command", "text"));
        };
        let text = format!("$ {command}\n{}", output.as_deref().unwrap_or_default());
        let content = Json::of(&text).map_err(|_| None)?;
        message.take("command");
        message.take_text("output");
        Ok(self.turn(Role::User, self.context.door, content))
    }
}

/// The silent token that a reply consists of. Only one that can hold a token is read.
fn silent_token(content: &Json) -> Option<String> {
    /// A reply of a token alone is no longer than this as it is spelled, thoughts and signatures before it included.
    const BYTES_MAX: usize = 64 << 10;
    /// How far from the end of the content the token stands at most, in bytes.
    const TAIL: usize = 4 << 10;
    let spelled = content.as_str().as_bytes();
    let tail = spelled.get(spelled.len().saturating_sub(TAIL)..).unwrap_or_default();
    let holds = |word: &[u8]| {
        let letters = word.first().copied().unwrap_or_default();
        memchr::memchr2_iter(letters, letters.to_ascii_uppercase(), tail)
            .any(|at| tail.get(at..at + word.len()).is_some_and(|w| w.eq_ignore_ascii_case(word)))
    };
    if spelled.len() > BYTES_MAX || !(holds(b"silent") || holds(b"reply")) {
        return None;
    }
    let text = content.plain_text();
    Silence::of(&text, &silent::Tokens::default(), Lane::Foreground).token().map(str::to_owned)
}

pub(crate) fn absent(present: bool, name: &str, what: &str) -> Flaw {
    Some(if present {
        (DamageClass::WrongType, format!("{name} is not {what}"))
    } else {
        (DamageClass::MissingField, format!("{name} is absent"))
    })
}

/// Takes text, as it is spelled.
pub(crate) fn string(fields: &mut Fields<'_>, name: &str) -> Result<Json, Flaw> {
    let is_text = |value: &RawValue| value.get().starts_with('"').then(|| Json::verbatim(value));
    let present = fields.has(name);
    fields.take_if(name, is_text).ok_or_else(|| absent(present, name, "text"))
}

/// Takes text or a list of blocks, as it is spelled.
pub(crate) fn content(fields: &mut Fields<'_>, name: &str) -> Result<Json, Flaw> {
    let fits =
        |value: &RawValue| value.get().starts_with(['"', '[']).then(|| Json::verbatim(value));
    let present = fields.has(name);
    fields.take_if(name, fits).ok_or_else(|| absent(present, name, "text or a list of blocks"))
}

/// The tool calls among an assistant's blocks, in the spellings that occur.
pub(crate) fn calls(blocks: &RawValue) -> Vec<Call<'_>> {
    let blocks: Vec<Fields<'_>> = serde_json::from_str(blocks.get()).unwrap_or_default();
    let call = |block: &Fields<'_>| {
        let kinds = ["toolCall", "toolUse", "tool_use", "functionCall", "function_call"];
        block.text("type").is_some_and(|kind| kinds.contains(&&*kind))
    };
    let calls = blocks.into_iter().filter(call).filter_map(|block| {
        let arguments = block.get("arguments").or_else(|| block.get("input"));
        let name = block.text("name").unwrap_or_default();
        Some(Call { id: block.text("id")?, name, arguments })
    });
    calls.collect()
}

/// Takes the tokens, if both directions are told.
fn take_tokens(usage: &mut Fields<'_>) -> Option<Tokens> {
    if !["input", "output"].iter().all(|name| usage.get(name).and_then(fields::count).is_some()) {
        return None;
    }
    let (r#in, out) = (usage.take_count("input")?, usage.take_count("output")?);
    let (cache_read, cache_write) = (usage.take_count("cacheRead"), usage.take_count("cacheWrite"));
    Some(Tokens { r#in, out, cache_read, cache_write })
}

/// The whole cost. It is not taken: micro-dollars are coarser than what the entry tells.
fn cost_micros(usage: &Fields<'_>) -> Option<u64> {
    let cost = Fields::parse(usage.get("cost")?.get())?;
    fields::micros(cost.get("total")?.get())
}
