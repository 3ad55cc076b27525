//! The fields of a line's object, each read on its own: a value of another shape than expected is a field that is not
//! there.

use std::borrow::Cow;

use annals_engine::format::Payload;
use annals_engine::session::event::{Json, Members};
use serde::de::DeserializeOwned;

/// An object of a line.
#[derive(Debug)]
pub(super) struct Line {
    fields: Members,
    kind: String,
}

impl Line {
    /// Reads an object whose `type` is a string; `None` for all else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // A failed try is dear, and most of what is no object shows it at once.
        if !text.starts_with('{') {
            return None;
        }
        let fields: Members = serde_json::from_str(&whole_pairs(text)).ok()?;
        let kind = fields.get("type")?.read()?;
        Some(Self { fields, kind })
    }

    /// An object that is the whole output, with a `type` or without.
    pub(super) fn of(fields: Members) -> Self {
        let kind = fields.text("type").unwrap_or_default();
        Self { fields, kind }
    }

    /// Its `type`; empty when it has none.
    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    /// The fields.
    pub(super) fn fields(&self) -> &Members {
        &self.fields
    }
}

/// Reading a field of an object as what it should be.
pub(super) trait Lenient {
    /// The value of a field; `None` when it is not of that shape.
    fn take<T: DeserializeOwned>(&self, name: &str) -> Option<T>;

    /// The text of a field that is not empty.
    fn text(&self, name: &str) -> Option<String> {
        self.take::<String>(name).filter(|text| !text.is_empty())
    }

    /// An object, without fields when it is none.
    fn object(&self, name: &str) -> Members {
        self.take(name).unwrap_or_default()
    }

    /// A number that is not negative; a fraction is cut off, and what is beyond 64 bits is the largest.
    fn count(&self, name: &str) -> Option<u64> {
        let number: f64 = self.take(name)?;
        self.take::<u64>(name).or_else(|| (number >= 0.0).then(|| whole(number)))
    }

    /// Dollars as millionths of a dollar.
    fn micros(&self, name: &str) -> Option<u64> {
        let dollars: f64 = self.take(name)?;
        (dollars >= 0.0).then(|| whole((dollars * 1e6).round()))
    }
}

impl Lenient for Members {
    fn take<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.get(name)?.read()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float saturates, which is what is said of it"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

/// The value as a payload of the log takes it inside a list: as it is, or else its JSON as a block of text. A payload
/// refuses a key that stands twice, numbers beyond 64 bits and values nested too deep.
pub(super) fn storable(value: &Json) -> Json {
    let text = value.as_str();
    if Payload::from_json(&format!("{{\"content\":[{text}]}}")).is_ok() {
        return value.clone();
    }
    let spelled = Members(vec![("type".into(), string("text")), ("text".into(), string(text))]);
    Json::of(&spelled).unwrap_or_else(|_| Json::null())
}

/// The object as a block that says which tool it calls.
pub(super) fn named(fields: &Members, tool: Option<&str>) -> Json {
    let tool = tool.filter(|_| fields.get("name").is_none());
    let name = tool.map(|tool| ("name".to_owned(), string(tool)));
    let block = Members(name.into_iter().chain(fields.0.iter().cloned()).collect());
    Json::of(&block).unwrap_or_else(|_| Json::null())
}

/// Text as a JSON string.
pub(super) fn string(text: &str) -> Json {
    Json::of(text).unwrap_or_else(|_| Json::null())
}

/// JSON text in which every escape of half a surrogate pair without its other half is one of U+FFFD.
pub(super) fn whole_pairs(text: &str) -> Cow<'_, str> {
    let mut whole = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        let unit = unit_at(text, at);
        match unit {
            Some(0xD800..=0xDBFF) if matches!(unit_at(text, at + 6), Some(0xDC00..=0xDFFF)) => {
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                whole.push_str(text.get(kept..at).unwrap_or_default());
                whole.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            // Of any other escape the next character is a part, which is one byte long where this is JSON.
            _ => at += 2,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    whole.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(whole)
}

/// The UTF-16 unit that an escape at this place names.
fn unit_at(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}
