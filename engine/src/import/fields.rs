//! The fields of a JSON object, borrowed from its text and kept in their order: what an event carries is taken out, and
//! what is left is what the event does not carry.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::time::{parse_millis, parse_rfc3339};
use crate::clock::Timestamp;
use crate::session::event::{Json, Members};

/// The fields of an object that are still there. No name stands twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads an object; `None` for other JSON, for text that is none, and for a name that stands twice.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        // A failed try is dear, and most of what is no object shows it at once.
        if !text.trim_ascii_start().starts_with('{') {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(have, _)| have == name).map(|(_, value)| *value)
    }

    /// The text of a string; `None` for any other value.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(text)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(have, _)| have == name)?;
        Some(self.0.remove(at).1)
    }

    /// Takes a value that `read` understands; one that it does not stays.
    pub(crate) fn take_if<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Option<T> {
        let value = read(self.get(name)?)?;
        self.take(name);
        Some(value)
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        self.take_if(name, text)
    }

    /// Takes a whole number that is not negative.
    pub(crate) fn take_count(&mut self, name: &str) -> Option<u64> {
        self.take_if(name, count)
    }

    pub(crate) fn take_flag(&mut self, name: &str) -> Option<bool> {
        self.take_if(name, |value| value.get().parse().ok())
    }

    /// Takes an object apart.
    pub(crate) fn take_fields(&mut self, name: &str) -> Option<Fields<'a>> {
        self.take_if(name, |value| Fields::parse(value.get()))
    }

    /// Reads an instant and takes it, if the instant says all that the text did.
    pub(crate) fn take_time(&mut self, name: &str) -> Option<Timestamp> {
        let value = self.get(name)?;
        let at = time(value)?;
        let same = match text(value) {
            // `2026-04-01T00:00:01.250Z`, or the same without a fraction: it can be told from the instant again.
            Some(text) => {
                matches!(text.len(), 20 | 24) && text.contains('T') && text.ends_with('Z')
            }
            None => value.get().parse() == Ok(at.as_millis()),
        };
        if same {
            self.take(name);
        }
        Some(at)
    }

    pub(crate) fn push(&mut self, name: Cow<'a, str>, value: &'a RawValue) {
        self.0.push((name, value));
    }

    pub(crate) fn with_capacity(fields: usize) -> Self {
        Self(Vec::with_capacity(fields))
    }

    /// What is left, to be kept.
    pub(crate) fn members(&self) -> Members {
        let member =
            |(name, value): &(Cow<'a, str>, &RawValue)| (name.to_string(), Json::verbatim(value));
        Members(self.0.iter().map(member).collect())
    }
}

/// The text of a string; `None` for any other value.
pub(crate) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    let inside = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    serde_json::from_str::<Name<'_>>(value.get()).ok().map(|name| name.0)
}

/// A whole number that is not negative, also when it is spelled with a fraction of nothing.
pub(crate) fn count(value: &RawValue) -> Option<u64> {
    let number = value.get();
    let whole = number
        .split_once('.')
        .map_or(number, |(whole, rest)| if rest.bytes().all(|b| b == b'0') { whole } else { "" });
    whole.parse().ok()
}

/// Dollars as millionths of one; `None` for what is no such number, and for debts.
pub(crate) fn micros(dollars: &str) -> Option<u64> {
    let micros = (dollars.parse::<f64>().ok()? * 1e6).round();
    if micros < 0.0 {
        return None;
    }
    format!("{micros:.0}").parse().ok()
}

/// An instant, as text or in milliseconds.
pub(crate) fn time(value: &RawValue) -> Option<Timestamp> {
    match text(value) {
        Some(text) => parse_rfc3339(&text),
        None => parse_millis(value.get()),
    }
}

/// The names of an object so far, as a filter: most of them differ in their length or in how they begin.
#[derive(Default)]
pub(crate) struct Names(u64);

impl Names {
    /// Whether a name may have been there before; it is from now on.
    pub(crate) fn may_have(&mut self, name: &str) -> bool {
        let first = name.as_bytes().first().copied().unwrap_or_default();
        let bit = 1 << ((name.len() * 7 + usize::from(first)) % 64);
        let had = self.0 & bit != 0;
        self.0 |= bit;
        had
    }
}

/// Text that is borrowed where JSON spells it without an escape.
pub(crate) struct Name<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowed)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Fields<'de>, A::Error> {
                let mut fields = Fields(Vec::with_capacity(8));
                let mut names = Names::default();
                while let Some(Name(name)) = map.next_key()? {
                    if names.may_have(&name) && fields.has(&name) {
                        return Err(A::Error::custom("a name stands twice"));
                    }
                    fields.0.push((name, map.next_value()?));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is taken is gone and what is left keeps its order and spelling. Method: one object with a value of
    /// each sort, some of which are of another type than is asked for.
    #[test]
    fn taking_leaves_the_rest() {
        let text = r#"{"a":"x\u00e9","b":1.0,"c":true,"d":{"e":[1, 2]},"f":-1,"t":"2026-04-01T00:00:01.000Z","g":null}"#;
        let mut fields = Fields::parse(text).unwrap();
        assert_eq!(fields.take_text("a").as_deref(), Some("x\u{e9}"));
        assert_eq!(fields.take_count("b"), Some(1));
        assert_eq!(fields.take_flag("c"), Some(true));
        assert_eq!(fields.take_count("f"), None);
        assert_eq!(fields.take_text("d"), None);
        assert_eq!(fields.take_time("t"), parse_rfc3339("2026-04-01T00:00:01Z"));
        assert_eq!(fields.take("none").map(|v| v.get()), None);
        let rest = serde_json::to_string(&fields.members()).unwrap();
        assert_eq!(rest, r#"{"d":{"e":[1, 2]},"f":-1,"g":null}"#);
    }

    /// Goal: an instant is only taken away when it can be told again. Method: spellings that `at` does not keep.
    #[test]
    fn times_that_say_more_stay() {
        for (spelled, stays) in [
            (r#""2026-04-01T00:00:01.250Z""#, false),
            (r#""2026-04-01T00:00:01Z""#, false),
            ("1775001601250", false),
            (r#""2026-04-01T00:00:01.2500000001Z""#, true),
            (r#""2026-04-01T02:00:01+02:00""#, true),
            ("1775001601250.5", true),
        ] {
            let text = format!("{{\"t\":{spelled}}}");
            let mut fields = Fields::parse(&text).unwrap();
            assert!(fields.take_time("t").is_some(), "{spelled}");
            assert_eq!(fields.has("t"), stays, "{spelled}");
        }
    }

    /// Goal: what is no object, or no unambiguous one, is not read. Method: arrays too, which would do for a struct.
    #[test]
    fn objects_only() {
        for text in ["[]", "1", "\"a\"", "{\"a\":1,\"a\":2}", "{\"a\":1", "{} {}"] {
            assert!(Fields::parse(text).is_none(), "{text}");
        }
    }
}
