//! One line of a session, read once: the entry's own fields, and those of its message apart.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::clock::Timestamp;
use crate::import::fields::{Fields, Name, Names, time};

/// An entry. The bulk of it is not looked into here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry<'a> {
    /// Its fields without `message`, if that is an object.
    pub(crate) fields: Fields<'a>,
    /// The fields of its message.
    pub(crate) message: Option<Fields<'a>>,
}

/// How many fields most entries have at most.
const FIELDS: usize = 20;

/// What sort of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Session,
    Message,
    ModelChange,
    ThinkingLevelChange,
    SessionInfo,
    Compaction,
    BranchSummary,
    CustomMessage,
    Custom,
    Label,
    Other,
}

impl Kind {
    const WORDS: [(&'static str, Self); 10] = [
        ("session", Self::Session),
        ("message", Self::Message),
        ("model_change", Self::ModelChange),
        ("thinking_level_change", Self::ThinkingLevelChange),
        ("session_info", Self::SessionInfo),
        ("compaction", Self::Compaction),
        ("branch_summary", Self::BranchSummary),
        ("custom_message", Self::CustomMessage),
        ("custom", Self::Custom),
        ("label", Self::Label),
    ];

    fn of(word: &str) -> Self {
        Self::WORDS.iter().find(|(have, _)| *have == word).map_or(Self::Other, |(_, kind)| *kind)
    }
}

impl<'a> Entry<'a> {
    /// Reads an entry; `None` when the text is no object, or no unambiguous one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        // A message that is no object fails the quick way, and is one of the fields then.
        serde_json::from_str(text)
            .ok()
            .or_else(|| Some(Self { fields: Fields::parse(text)?, message: None }))
    }

    /// What sort of entry it is; `None` when it does not say.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.fields.text("type").map(|word| Kind::of(&word))
    }

    /// Whether nobody else writes such a line: a known type, and the time or place that its entries have.
    pub(crate) fn is_certain(&self) -> bool {
        let known = self.kind().is_some_and(|kind| kind != Kind::Other);
        known && (self.fields.has("timestamp") || self.fields.has("parentId"))
    }

    /// A time of it that is none, as it is spelled.
    pub(crate) fn impossible_time(&self) -> Option<&'a str> {
        let own = self.fields.get("timestamp");
        let inside = self.message.as_ref().and_then(|message| message.get("timestamp"));
        let told = [own, inside].into_iter().flatten();
        told.map(|value| (value, value.get()))
            .find(|(value, spelled)| *spelled != "null" && time(value).is_none())
            .map(|(_, spelled)| spelled)
    }

    /// When it was written, as it says itself.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        let own = self.fields.get("timestamp").and_then(time);
        own.or_else(|| self.message.as_ref()?.get("timestamp").and_then(time))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TwoLevels;
        impl<'de> Visitor<'de> for TwoLevels {
            type Value = Entry<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry<'de>, A::Error> {
                let mut entry = Entry { fields: Fields::with_capacity(FIELDS), message: None };
                let mut names = Names::default();
                while let Some(Name(name)) = map.next_key()? {
                    if names.may_have(&name)
                        && (entry.fields.has(&name)
                            || (name == "message" && entry.message.is_some()))
                    {
                        return Err(A::Error::custom("a name stands twice"));
                    }
                    if name == "message" {
                        entry.message = Some(map.next_value()?);
                    } else {
                        entry.fields.push(name, map.next_value()?);
                    }
                }
                Ok(entry)
            }
        }
        deserializer.deserialize_map(TwoLevels)
    }
}
