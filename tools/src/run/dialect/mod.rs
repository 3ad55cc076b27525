//! What an agent's program prints, read line by line: the reply, the turns behind it, what it cost and the id that the
//! program gives its own session. One reader a run.
//!
//! No bytes are an error and none make a reader panic. A line is *of the dialect* when it is a JSON object whose `type`
//! is a string. A line that is not (a warning, a banner, a torn end) is told as progress. When not one line was of the
//! dialect, the program spoke plainly, and its output is the reply. A line of the dialect whose `type` the reader does
//! not know is passed over: the protocols grow. Bytes that are no UTF-8 and halves of surrogate pairs become U+FFFD.
//!
//! A reader keeps what it was given and nothing beyond it: its caller bounds lines and bytes.

mod claude;
mod codex;
mod fields;
mod gemini;
mod native;
mod openclaw;
mod plain;
mod turns;

use annals_engine::session::event::{Json, Role, Tokens};

use claude::Claude;
use codex::Codex;
use fields::Line;
use gemini::Gemini;
use native::Native;
use openclaw::Openclaw;
use plain::Plain;

/// The language that a program speaks on its standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// None: what it prints is what it says.
    #[default]
    None,
    /// One object a line, `{"type": "progress" | "message" | "tool" | "usage" | "result"}`; the module `native`
    /// has the fields.
    Native,
    /// `claude -p --output-format stream-json --verbose`, or `--output-format json`.
    ClaudeStreamJson,
    /// `codex exec --json`.
    CodexJsonl,
    /// `gemini --output-format stream-json`, or `--output-format json`.
    GeminiStreamJson,
    /// `openclaw agent exec --json`, or `openclaw agent --json`.
    OpenclawExec,
}

impl Dialect {
    /// Every dialect, by the word that the configuration has for it.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("none", Self::None),
        ("native", Self::Native),
        ("claude-stream-json", Self::ClaudeStreamJson),
        ("codex-jsonl", Self::CodexJsonl),
        ("gemini-stream-json", Self::GeminiStreamJson),
        ("openclaw-exec", Self::OpenclawExec),
    ];

    /// The dialect of a word; `None` for any other text.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find_map(|(have, dialect)| (*have == word).then_some(*dialect))
    }

    /// The word that the configuration has for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, dialect)| *dialect == self);
        found.map_or("none", |(word, _)| word)
    }
}

/// How the output is cut into values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputForm {
    /// Text. A dialect reads it line by line all the same.
    #[default]
    Text,
    /// One JSON value, over as many lines as it likes; a list is read as its values one after the other.
    Json,
    /// One JSON value a line.
    Jsonl,
}

impl OutputForm {
    /// The form of a word; `None` for any other text.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            "jsonl" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

/// What a line told while the run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// What the agent says to whoever asked: a whole message with a line feed behind it, or a piece of one without.
    Text(String),
    /// A report of progress: a tool called, a retry, a line that is not of the dialect.
    Progress(String),
    /// The id that the program gives its own session, by which it can be resumed.
    AgentSession(String),
}

impl Told {
    /// A whole message.
    fn message(text: &str) -> Self {
        Self::Text(format!("{text}\n"))
    }
}

/// What a whole output told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// What the agent answered, one trailing line feed removed; `None` when it said nothing, or only that it failed.
    pub text: Option<String>,
    /// What the agent said and what its tools answered, in order. When there is a `text`, the last turn is an
    /// assistant's that says it.
    pub turns: Vec<ReplyTurn>,
    /// Tokens used.
    pub tokens: Option<Tokens>,
    /// What it cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
    /// What tokens and cost are counted over.
    pub counted: Counted,
    /// The model that answered last.
    pub model: Option<String>,
    /// The id that the program gives its own session.
    pub agent_session_id: Option<String>,
    /// What the program says went wrong, in its words. How the run ended is for its exit to say.
    pub error: Option<String>,
}

/// What a program counts its tokens and its cost over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// This run alone.
    #[default]
    Run,
    /// The program's own session since it began: see [`Reply::beyond`].
    AgentSession,
}

impl Reply {
    /// Takes off what earlier runs of the same agent's session used, where the program counts the whole of it.
    pub fn beyond(&mut self, earlier: &Tokens) {
        if self.counted == Counted::Run {
            return;
        }
        let rest = |all: Option<u64>, before: Option<u64>| {
            all.map(|all| all.saturating_sub(before.unwrap_or_default()))
        };
        if let Some(all) = &mut self.tokens {
            all.r#in = all.r#in.saturating_sub(earlier.r#in);
            all.out = all.out.saturating_sub(earlier.out);
            all.cache_read = rest(all.cache_read, earlier.cache_read);
            all.cache_write = rest(all.cache_write, earlier.cache_write);
        }
        self.counted = Counted::Run;
    }

    /// Lets the last turn say the text: where none of the program's does, it is a turn of its own.
    fn close(&mut self) {
        let Some(text) = &self.text else { return };
        let said = self.turns.last().filter(|turn| turn.role == Role::Assistant);
        if said.is_none_or(|turn| turn.content.plain_text().trim() != text.trim()) {
            self.turns.push(plain::turn(text));
        }
    }
}

/// A turn that the output tells, as the log takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyTurn {
    /// `Assistant`, or `ToolResult`.
    pub role: Role,
    /// The message of the model's interface that it is a piece of.
    pub message_id: Option<String>,
    /// The tool calls that it opens.
    pub calls: Vec<String>,
    /// The tool call that it answers.
    pub call_id: Option<String>,
    /// The tool that it answers for.
    pub tool_name: Option<String>,
    /// Whether the tool failed.
    pub is_error: Option<bool>,
    /// The model that produced it.
    pub model: Option<String>,
    /// Tokens of the message; its pieces each tell the whole.
    pub tokens: Option<Tokens>,
    /// A JSON string, or the blocks as the program spelled them. A payload of the log takes it.
    pub content: Json,
}

/// The reader of one run's output.
#[derive(Debug)]
pub struct Reader {
    form: OutputForm,
    speech: Speech,
    /// The lines that are not of the dialect; of one JSON value all of them.
    others: Plain,
    /// Whether a line was of the dialect.
    spoken: bool,
}

#[derive(Debug)]
enum Speech {
    None,
    Native(Box<Native>),
    Claude(Box<Claude>),
    Codex(Box<Codex>),
    Gemini(Box<Gemini>),
    Openclaw(Box<Openclaw>),
}

impl Reader {
    /// A reader that was told nothing yet.
    #[must_use]
    pub fn new(dialect: Dialect, form: OutputForm) -> Self {
        let speech = match dialect {
            Dialect::None => Speech::None,
            Dialect::Native => Speech::Native(Box::default()),
            Dialect::ClaudeStreamJson => Speech::Claude(Box::default()),
            Dialect::CodexJsonl => Speech::Codex(Box::default()),
            Dialect::GeminiStreamJson => Speech::Gemini(Box::default()),
            Dialect::OpenclawExec => Speech::Openclaw(Box::default()),
        };
        let form = if dialect == Dialect::OpenclawExec { OutputForm::Json } else { form };
        Self { form, speech, others: Plain::default(), spoken: false }
    }

    /// Lets ids that a program makes unique within one output alone name the run too.
    #[must_use]
    pub fn in_run(mut self, run_id: &str) -> Self {
        if let Speech::Codex(codex) = &mut self.speech {
            codex.scope = Some(run_id.to_owned());
        }
        self
    }

    /// Takes a complete line, with its line feed or without.
    pub fn line(&mut self, line: &[u8]) -> Option<Told> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let text = String::from_utf8_lossy(line);
        if self.form == OutputForm::Json {
            self.others.push(&text);
            return None;
        }
        self.told_by(&text)
    }

    fn told_by(&mut self, text: &str) -> Option<Told> {
        if matches!(self.speech, Speech::None) {
            self.others.push(text);
            return Some(Told::message(text));
        }
        let Some(line) = Line::parse(text) else {
            self.others.push(text);
            return (!text.trim().is_empty()).then(|| Told::Progress(text.to_owned()));
        };
        self.take(&line)
    }

    fn take(&mut self, line: &Line) -> Option<Told> {
        self.spoken = true;
        match &mut self.speech {
            Speech::None => None,
            Speech::Native(native) => native.line(line),
            Speech::Claude(claude) => claude.line(line),
            Speech::Codex(codex) => codex.line(line),
            Speech::Gemini(gemini) => gemini.line(line),
            Speech::Openclaw(openclaw) => {
                openclaw.line(line);
                None
            }
        }
    }

    /// Says what the whole output told.
    #[must_use]
    pub fn finish(mut self) -> Reply {
        if matches!(self.speech, Speech::None) {
            return self.others.reply(self.form);
        }
        if self.form == OutputForm::Json {
            self.values();
        }
        if !self.spoken {
            return self.others.reply(OutputForm::Text);
        }
        let mut reply = match self.speech {
            Speech::None => self.others.reply(self.form),
            Speech::Native(native) => native.finish(&self.others),
            Speech::Claude(claude) => claude.finish(),
            Speech::Codex(codex) => codex.finish(),
            Speech::Gemini(gemini) => gemini.finish(),
            Speech::Openclaw(openclaw) => openclaw.finish(),
        };
        reply.close();
        reply
    }

    /// Takes the one JSON value, and reads output without one line by line.
    fn values(&mut self) {
        let objects = self.others.objects();
        if objects.is_empty() {
            let others = std::mem::take(&mut self.others);
            others.lines().iter().for_each(|line| drop(self.told_by(line)));
        }
        objects.into_iter().for_each(|object| drop(self.take(&Line::of(object))));
    }
}

#[cfg(test)]
mod tests;
