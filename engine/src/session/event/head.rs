//! Cheap readers: what a fold needs of a payload, borrowed, without its bulky part. Everything that reads a payload
//! only in part does so here.
//!
//! A head that stands in the schema's own order, without an escape in its strings, is read by comparing bytes, and
//! reading ends where the bulk begins: the payload was checked before it became part of a line. Any other head is
//! parsed with the whole payload; both ways give the same.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use crate::clock::Timestamp;

use super::scan::Scan;
use super::turn::{Ingress, Role, Tokens};

/// The head of a turn: everything but source and content.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnHead<'a> {
    /// When it happened, if elsewhere or earlier.
    pub at: Option<Timestamp>,
    /// The part that it belongs to.
    #[serde(borrow)]
    pub session_id: Text<'a>,
    /// Whose turn it is.
    pub role: Role,
    /// The door that it came through.
    pub from: Ingress,
    /// The run that produced it.
    #[serde(borrow)]
    pub run_id: Option<Text<'a>>,
    /// The message that it is a piece of.
    #[serde(borrow)]
    pub message_id: Option<Text<'a>>,
    /// The tool calls that it opens.
    #[serde(borrow, default)]
    pub calls: Vec<Text<'a>>,
    /// The tool call that it answers.
    #[serde(borrow)]
    pub call_id: Option<Text<'a>>,
    /// The tool that it answers for.
    #[serde(borrow)]
    pub tool_name: Option<Text<'a>>,
    /// Whether the tool failed.
    pub is_error: Option<bool>,
    /// The silent token that it consists of.
    #[serde(borrow)]
    pub silent: Option<Text<'a>>,
    /// The model that produced it.
    #[serde(borrow)]
    pub model: Option<Text<'a>>,
    /// Tokens used.
    pub tokens: Option<Tokens>,
    /// What it cost, in millionths of a dollar.
    pub cost_micros: Option<u64>,
    /// Where it came from.
    #[serde(borrow)]
    pub provenance: Option<ProvenanceHead<'a>>,
}

/// What a fold needs of a turn's provenance.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvenanceHead<'a> {
    /// The key of the session that sent it.
    #[serde(borrow)]
    pub source_session_key: Option<Text<'a>>,
    /// The channel that it came over.
    #[serde(borrow)]
    pub source_channel: Option<Text<'a>>,
}

impl<'a> TurnHead<'a> {
    /// Reads the head of a turn; `None` when the payload is none of a turn known here.
    #[must_use]
    pub fn read(payload: &'a str) -> Option<Self> {
        if payload.starts_with(super::LATER_VERSION) {
            return None;
        }
        Self::scan(payload).or_else(|| serde_json::from_str(payload).ok())
    }

    /// Reads a head in the schema's own order; `None` for any other.
    fn scan(text: &'a str) -> Option<Self> {
        let mut scan = Scan::object(text)?;
        let at = match scan.text("at")? {
            Some(at) => Some(Timestamp::from_text(at.as_bytes())?),
            None => None,
        };
        let head = Self {
            at,
            session_id: Text::plain(scan.text("sessionId")??),
            role: Role::from_word(scan.text("role")??)?,
            from: Ingress::from_word(scan.text("from")??)?,
            run_id: scan.text("runId")?.map(Text::plain),
            message_id: scan.text("messageId")?.map(Text::plain),
            calls: scan.texts("calls")?.into_iter().map(Text::plain).collect(),
            call_id: scan.text("callId")?.map(Text::plain),
            tool_name: scan.text("toolName")?.map(Text::plain),
            is_error: scan.flag("isError")?,
            silent: scan.text("silent")?.map(Text::plain),
            model: scan.text("model")?.map(Text::plain),
            tokens: scan.inside("tokens", Tokens::scan)?,
            cost_micros: scan.number("costMicros")?,
            provenance: scan.inside("provenance", ProvenanceHead::scan)?,
        };
        (scan.is_at("source") || scan.is_at("content") || scan.is_at_end()).then_some(head)
    }
}

impl Tokens {
    fn scan(scan: &mut Scan<'_>) -> Option<Self> {
        Some(Self {
            r#in: scan.number("in")??,
            out: scan.number("out")??,
            cache_read: scan.number("cacheRead")?,
            cache_write: scan.number("cacheWrite")?,
        })
    }
}

impl<'a> ProvenanceHead<'a> {
    fn scan(scan: &mut Scan<'a>) -> Option<Self> {
        let head = Self {
            source_session_key: scan.text("sourceSessionKey")?.map(Text::plain),
            source_channel: scan.text("sourceChannel")?.map(Text::plain),
        };
        scan.text("sourceTool")?;
        scan.text("sender")?;
        scan.text("runId")?;
        scan.number("round")?;
        Some(head)
    }
}

/// When what an event tells happened: `at` where its payload has one, else the time when it was appended.
#[must_use]
pub fn happened_at(time: Timestamp, payload: &str) -> Timestamp {
    #[derive(Deserialize)]
    struct Head {
        at: Option<Timestamp>,
    }
    const AT: &str = "{\"at\":\"";
    let short = payload.strip_prefix(AT).and_then(|rest| rest.as_bytes().get(..27));
    match short {
        Some(stamp) => Timestamp::from_text(stamp),
        None if payload.starts_with(super::LATER_VERSION) => {
            serde_json::from_str::<Head>(payload).ok().and_then(|head| head.at)
        }
        None => None,
    }
    .unwrap_or(time)
}

/// Text of a payload: borrowed where JSON spells it without an escape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    const fn plain(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                text: &'de str,
            ) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowed)
    }
}
