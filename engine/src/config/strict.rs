//! JSON5 as a tree of values, nothing of which is lost in silence: a name that stands twice in one object and a number that
//! JSON does not have are errors that say where they stand.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What is wrong with a text.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is not JSON5.
    Syntax(json5::Error),
    /// Something at a path of it would be lost.
    Lost {
        /// Where.
        path: String,
        /// What is wrong there.
        why: String,
    },
}

/// The value that a text is.
///
/// # Errors
/// What is wrong with it.
pub(super) fn value(text: &str) -> Result<Value, Wrong> {
    let lost = RefCell::new(None);
    let mut reader = json5::Deserializer::from_str(text);
    let value = At { path: String::new(), lost: &lost }.deserialize(&mut reader);
    if let Some((path, why)) = lost.into_inner() {
        return Err(Wrong::Lost { path, why });
    }
    // What stands behind the value is for the library to judge.
    let behind = json5::from_str::<serde::de::IgnoredAny>(text);
    value.and_then(|value| behind.map(|_| value)).map_err(Wrong::Syntax)
}

/// A place in the tree, from the root on.
struct At<'w> {
    path: String,
    /// What would be lost, and where.
    lost: &'w RefCell<Option<(String, String)>>,
}

impl At<'_> {
    fn below(&self, path: String) -> Self {
        Self { path, lost: self.lost }
    }

    fn member(&self, name: &str) -> Self {
        let root = self.path.is_empty();
        self.below(if root { name.to_owned() } else { format!("{}.{name}", self.path) })
    }

    /// Ends the reading.
    fn would_lose<E: serde::de::Error>(self, why: String) -> E {
        self.lost.replace(Some((self.path, why)));
        E::custom("something would be lost")
    }
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).map(Value::Number);
        number.ok_or_else(|| self.would_lose(format!("{value} is no value that can be set")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let place = self.below(format!("{}[{}]", self.path, list.len()));
            let Some(item) = items.next_element_seed(place)? else { break };
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let place = self.member(&name);
            if object.contains_key(&name) {
                return Err(place.would_lose("it is said twice".to_owned()));
            }
            object.insert(name, members.next_value_seed(place)?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a tree is the library's own, and what that would lose is an error with its place. Method: values of each sort;
    /// names that stand twice, numbers that are none, and text behind the value.
    #[test]
    fn values() {
        let same = "{a: [1, -2, 2.5, 'x', null, true, {}], 'b': {c: .5}, // d\n e: +1e3}";
        assert_eq!(value(same).unwrap(), json5::from_str::<Value>(same).unwrap());
        for (text, place, told) in [
            ("{a: 1, b: {c: [{d: 1, d: 2}]}}", "b.c[0].d", "it is said twice"),
            ("{a: 1, 'a': 1}", "a", "it is said twice"),
            ("{a: {b: NaN}}", "a.b", "NaN is no value"),
            ("[1, -Infinity]", "[1]", "-inf is no value"),
            ("{a: 1e999}", "a", "inf is no value"),
            ("NaN", "", "NaN is no value"),
        ] {
            let Err(Wrong::Lost { path, why }) = value(text) else { panic!("{text}") };
            assert_eq!(path, place, "{text}");
            assert!(why.contains(told), "{text}: {why}");
        }
        for text in ["{} x", "{a: 1} {", "{", ""] {
            assert!(matches!(value(text), Err(Wrong::Syntax(_))), "{text}");
        }
    }
}
