//! The webhook: somebody said something in a chat, and an agent answers. What a body says becomes a turn that asks for its
//! run; the turn is durable before anybody hears that it was taken.

use annals_engine::clock::Timestamp;
use annals_engine::config::Config;
use annals_engine::engine::Engine;
use annals_engine::id::EventId;
use annals_engine::session::event::{ChatType, Event, Ingress, Links, Provenance, Role, RunKind};
use annals_engine::session::key::{Channel, SessionKey};
use annals_engine::session::push::{Chat, Door, Push, Pushed, Target, Wanted, Who};
use annals_engine::store::Append;
use annals_engine::{Error, ErrorKind, Result};
use serde::Deserialize;
use serde_json::Value;

use super::gates::{Blocked, Gates, Mark, decode_json};
use super::inbound::{Taken, take};
use crate::caller::Caller;
use crate::run::Setup;

/// The name of this door: it is the channel of what names none, and calls with the same idempotency key are the same call
/// here alone.
pub const DOOR: &str = "webhook";

/// What a body may say. What else it says is passed over: many senders send more.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    text: Option<String>,
    message: Option<String>,
    channel: Option<String>,
    source: Option<String>,
    #[serde(alias = "chat_id")]
    chat_id: Option<Id>,
    #[serde(alias = "chat_type")]
    chat_type: Option<String>,
    sender: Option<Id>,
    #[serde(alias = "display_name")]
    display_name: Option<String>,
    #[serde(alias = "account_id")]
    account_id: Option<Id>,
    #[serde(alias = "thread_id")]
    thread_id: Option<Id>,
    #[serde(alias = "session_key")]
    session_key: Option<String>,
    wait: Option<bool>,
}

/// An id as senders write it: a text, or a number that is one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(i64),
}

impl Id {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

/// A call, read and checked.
#[derive(Clone, Debug)]
pub struct Call {
    push: Push,
    /// The chat that it named.
    pub chat: Option<String>,
    /// Whether whoever calls waits for the answer.
    pub waits: bool,
    marks: Vec<Mark>,
    channel: String,
}

/// What became of a call that was taken.
#[derive(Clone, Debug)]
pub struct Received {
    /// Where the turn went.
    pub pushed: Pushed,
    /// What was repaired in what came in.
    pub marks: Vec<Mark>,
}

impl Call {
    /// Reads a body.
    ///
    /// # Errors
    /// `InvalidInput` for what is no such body: it names the field; `ReservedChannel`; `Refused` for a session that this
    /// door may not name.
    pub fn read(
        body: &[u8],
        idempotency_key: Option<&str>,
        config: &Config,
        now: Timestamp,
    ) -> Result<Self> {
        let decoded = decode_json(body)
            .ok_or_else(|| Error::invalid("the body is no text in UTF-8").field("body"))?;
        let unfit = |message: String, field: &str| {
            Error::invalid(message).field(field).hint(
                "the body is an object such as {\"text\": \"hello\", \"channel\": \"telegram\", \"chat_id\": \"42\"}",
            )
        };
        let said: Value = serde_json::from_str(&decoded.text)
            .map_err(|e| unfit(format!("the body is no JSON: {e}"), "body"))?;
        if !said.is_object() {
            return Err(unfit("the body is no object".to_owned(), "body"));
        }
        let said: Body = serde_path_to_error::deserialize(said).map_err(|e| {
            unfit(format!("the body does not fit: {}", e.inner()), &e.path().to_string())
        })?;
        let marks = decoded.marks;
        Ok(Self { marks, ..said.call(idempotency_key, config, now)? })
    }
}

impl Body {
    fn call(self, key: Option<&str>, config: &Config, now: Timestamp) -> Result<Call> {
        let text = match (self.text, self.message) {
            (Some(text), None) | (None, Some(text)) => text,
            (Some(_), Some(_)) => {
                return Err(Error::invalid("the body has both text and message").field("message"));
            }
            (None, None) => return Err(Error::invalid("the body has no text").field("text")),
        };
        let chat_type = self.chat_type.as_deref().map(chat_type).transpose()?;
        let channel = self.channel.or(self.source).unwrap_or_else(|| DOOR.to_owned());
        let channel = Channel::open(&channel).map_err(|error| error.field("channel"))?;
        let chat_id = self.chat_id.map(Id::text);
        let chat = chat_id.clone().map(|id| Chat { channel: channel.as_str().to_owned(), id });
        let operator = Caller::operator_of(config)?;
        let (target, over) = match (&self.session_key, chat) {
            _ if !config.is_on("session.enabled") => (Target::hook(DOOR, key, now)?, None),
            (Some(named), over) => {
                let target = Target::named(named, &operator.agent, operator.main)?;
                may_name(&target.key()?, &channel, config)?;
                (target, over)
            }
            (None, Some(chat)) => (Target::Chat(chat), None),
            (None, None) => (Target::hook(DOOR, key, now)?, None),
        };
        let waits = self.wait.unwrap_or(true);
        let sender = self.sender.map(Id::text);
        let door = Door { name: DOOR.to_owned(), who: Who::Person { sender, vouched: true } };
        // Who does not wait for the answer here gets it by the channel's way.
        let wanted = Wanted { deliver: !waits, ..Wanted::new(RunKind::Webhook) };
        let push = Push {
            over,
            chat_type,
            account: self.account_id.map(Id::text),
            thread: self.thread_id.map(Id::text),
            display_name: self.display_name,
            idempotency_key: key.map(str::to_owned),
            run: Some(wanted),
            ..Push::to(target, door, Role::User, &text, operator.agent)
        };
        push.check()?;
        let channel = channel.as_str().to_owned();
        Ok(Call { push, chat: chat_id, waits, marks: Vec::new(), channel })
    }
}

fn chat_type(word: &str) -> Result<ChatType> {
    ChatType::from_word(word).ok_or_else(|| {
        let legal: Vec<&str> = ChatType::ALL.iter().map(|sort| sort.as_str()).collect();
        Error::invalid(format!("{word:?} is no sort of chat"))
            .field("chatType")
            .hint(format!("it is one of {}", legal.join(", ")))
    })
}

/// Whoever knows the token of the door speaks for its channel; a session of another sort is named only where the settings
/// say so.
fn may_name(key: &SessionKey, channel: &Channel, config: &Config) -> Result<()> {
    let key = key.as_str();
    let own = format!("{}:", channel.as_str());
    let mut allowed = config.texts("webhook.sessionPrefixes");
    allowed.extend([own.as_str(), "hook:"]);
    if allowed.iter().any(|beginning| key.starts_with(&beginning.to_ascii_lowercase())) {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Refused, format!("the webhook may not name {key}"));
    Err(error
        .field("sessionKey")
        .hint("webhook.sessionPrefixes in the configuration names the beginnings that it may"))
}

/// Takes a call in. When it returns well, the turn and the request of its run are on stable storage. What a gate keeps out
/// leaves the fact in the stream of its session.
///
/// # Errors
/// `Refused` for what a gate keeps out; `Unavailable` when nobody could answer; what a push says: `IdReused` for the
/// idempotency key of another call.
pub fn receive(engine: &Engine, setup: &Setup, call: Call) -> Result<Received> {
    let (push, mut marks) = (call.push, call.marks);
    let (key, text, who) = (push.check()?, push.text.clone(), push.door.who.clone());
    match take(engine, setup, &Gates::of(&setup.config), push)? {
        Taken::In { pushed, marks: more } => {
            marks.extend(more);
            Ok(Received { pushed, marks })
        }
        Taken::Blocked(blocked) => {
            tell_blocked(engine, &key, (&text, who, call.channel), &blocked)?;
            let message = format!("{}: {}", blocked.rule, blocked.reason);
            Err(Error::new(ErrorKind::Refused, message).field("text").hint(blocked.hint))
        }
        Taken::Refused(reason) => {
            let error =
                Error::new(ErrorKind::Unavailable, format!("nobody can answer: {}", reason.detail));
            Err(error.hint("`annals agents list` says which agents have a command"))
        }
    }
}

fn tell_blocked(
    engine: &Engine,
    key: &SessionKey,
    (text, who, channel): (&str, Who, String),
    blocked: &Blocked,
) -> Result<()> {
    let sender = match who {
        Who::Person { sender, .. } => sender,
        Who::Operator | Who::Program => None,
    };
    let provenance = Provenance { source_channel: Some(channel), sender, ..Provenance::default() };
    let event = blocked.event(text.as_bytes(), Role::User, Ingress::External, Some(provenance));
    let id = EventId::new(engine.clock().now());
    let links = Links { cause: None, flow: Some(id) };
    let event = Event::TurnBlocked(event).to_new(key.stream().clone(), id, links)?;
    engine.append(Append::new(vec![event])).map(drop)
}
