//! Values inside payloads that are not ours to change: verbatim JSON, and instants in the text form of a line.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// A JSON value kept as it was spelled.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes JSON text as it is.
    ///
    /// # Errors
    /// `InvalidInput` when it is not one JSON value.
    pub fn from_text(text: impl Into<String>) -> Result<Self> {
        let raw = RawValue::from_string(text.into())
            .map_err(|e| Error::invalid("this is not a JSON value").caused_by(e))?;
        Ok(Self(raw))
    }

    /// Takes a value as it was spelled in JSON that was read.
    #[must_use]
    pub fn verbatim(raw: &RawValue) -> Self {
        Self(raw.to_owned())
    }

    /// Takes a value that serialises.
    ///
    /// # Errors
    /// `InvalidInput` when it does not.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        let raw = serde_json::value::to_raw_value(value)
            .map_err(|e| Error::invalid("the value does not serialise").caused_by(e))?;
        Ok(Self(raw))
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Reads it as a typed value; `None` when it is not of that shape.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.as_str()).ok()
    }

    /// Sets a field to this value; `null` takes it back, and what is no value of the field leaves it.
    pub fn patch<T: DeserializeOwned>(&self, field: &mut Option<T>) {
        if self.is_null() {
            *field = None;
        } else if let Some(value) = self.read() {
            *field = Some(value);
        }
    }

    /// `null`.
    #[must_use]
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }
}

impl Json {
    /// The blocks of this content and then those of another, as one list; text becomes a block of text.
    #[must_use]
    pub fn followed_by(&self, other: &Self) -> Self {
        let [first, second] = [self.blocks(), other.blocks()];
        let comma = if first.is_empty() || second.is_empty() { "" } else { "," };
        Self::from_text(format!("[{first}{comma}{second}]")).unwrap_or_else(|_| self.clone())
    }

    /// The text of a content: a string as it is; of blocks those that hold text, one a line. Of anything else nothing.
    #[must_use]
    pub fn plain_text(&self) -> String {
        #[derive(Deserialize)]
        struct Block {
            text: Option<String>,
        }
        if let Some(text) = self.read::<String>() {
            return text;
        }
        let blocks = self.read::<Vec<Json>>().unwrap_or_default();
        let texts = blocks.iter().filter_map(|block| block.read::<Block>()?.text);
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The blocks as they stand between the brackets of a list.
    fn blocks(&self) -> String {
        let text = self.as_str();
        match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(blocks) => blocks.to_owned(),
            None if text.starts_with('"') => format!("{{\"type\":\"text\",\"text\":{text}}}"),
            None => text.to_owned(),
        }
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

/// The members of a JSON object in their order, each value as it was spelled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members(pub Vec<(String, Json)>);

impl Members {
    /// The value under a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find_map(|(key, value)| (key == name).then_some(value))
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an instant such as 2026-11-29T23:04:05.123456Z")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::from_text(text.as_bytes())
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
