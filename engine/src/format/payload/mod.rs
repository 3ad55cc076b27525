//! What an event carries: a JSON object, minified, that every typed reader can read. It is checked once, before it
//! becomes part of a line, and never parsed again by the log.

mod check;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

use check::Check;

/// How deep arrays and objects may nest, the payload itself counted.
pub const DEPTH_MAX: usize = 64;

const CONTENT: &str = "\"content\":";

/// A payload: one JSON object (RFC 8259) without white space between its parts, with no lone surrogates, no key twice
/// in an object, no number that neither a 64-bit integer nor a finite double holds, and at most [`DEPTH_MAX`] levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(Arc<str>);

impl Payload {
    /// Takes JSON text: white space between its parts is dropped, all else stays as it is.
    ///
    /// # Errors
    /// `InvalidInput` with the byte offset and the reason.
    pub fn from_json(text: &str) -> Result<Self> {
        let minified = Check::new(text).whole_object()?;
        Ok(Self(minified.into()))
    }

    /// Takes a value that serialises to an object; the order of its fields is kept.
    ///
    /// # Errors
    /// `InvalidInput` when it does not serialise, or not to what a payload may be.
    pub fn of(value: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_string(value).map_err(|e| {
            Error::invalid("the payload does not serialise").field("data").caused_by(e)
        })?;
        Self::from_json(&text)
    }

    /// Takes text that a good checksum vouches for.
    pub(crate) fn verified(text: &str) -> Self {
        Self(text.into())
    }

    /// The payload without its last member, when that is `content`, and the JSON of that member.
    pub(crate) fn split_content(&self) -> Option<(Self, String)> {
        let inside = self.0.strip_prefix('{')?.strip_suffix('}')?;
        let mut last = 0;
        let mut depth = 0_usize;
        let mut in_string = false;
        let mut escaped = false;
        for (at, byte) in inside.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => last = at + 1,
                _ => {}
            }
        }
        let content = inside.get(last..)?.strip_prefix(CONTENT)?;
        let rest = inside.get(..last.saturating_sub(1))?;
        Some((Self(format!("{{{rest}}}").into()), content.to_owned()))
    }

    /// The payload with `content` as its last member, as [`Payload::split_content`] took it apart.
    pub(crate) fn join_content(&self, content: &str) -> Self {
        let inside = self.0.strip_suffix('}').unwrap_or(&self.0);
        let comma = if inside == "{" { "" } else { "," };
        Self(format!("{inside}{comma}{CONTENT}{content}}}").into())
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads it as a typed value.
    ///
    /// # Errors
    /// `InvalidInput` when it is not of that shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.0).map_err(|e| {
            Error::invalid("the payload is not of the expected shape").field("data").caused_by(e)
        })
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a payload's `content` lies that is too big for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// SHA-256 of the bytes, which are the JSON of `content`.
    pub sha256: [u8; 32],
    /// How many bytes.
    pub bytes: u64,
}

impl BlobRef {
    /// The 64 lower-case hexadecimal digits of the hash.
    #[must_use]
    pub fn sha256_hex(&self) -> String {
        hex(&self.sha256)
    }

    pub(super) fn read_hex(digits: &[u8]) -> Option<[u8; 32]> {
        let mut out = [0_u8; 32];
        let (pairs, rest) = digits.as_chunks::<2>();
        if pairs.len() != out.len() || !rest.is_empty() {
            return None;
        }
        for (to, [high, low]) in out.iter_mut().zip(pairs) {
            let digit = |b: u8| match b {
                b'0'..=b'9' => Some(b - b'0'),
                b'a'..=b'f' => Some(b - b'a' + 10),
                _ => None,
            };
            *to = digit(*high)? << 4 | digit(*low)?;
        }
        Some(out)
    }
}

/// Lower-case hexadecimal text.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: std::result::Result<&str, &str>) {
        let got = Payload::from_json(text);
        match (&got, expect) {
            (Ok(payload), Ok(minified)) => assert_eq!(payload.as_str(), minified),
            (Err(error), Err(message)) => assert!(error.to_string().contains(message), "{error}"),
            _ => panic!("{text}: {got:?}"),
        }
    }

    /// What is taken, and how it is spelled afterwards.
    #[test]
    fn taken() {
        check("{}", Ok("{}"));
        check(
            " { \"a\" : [ 1 , -0.5e+3 , null ] ,\n\"b\":{} } ",
            Ok(r#"{"a":[1,-0.5e+3,null],"b":{}}"#),
        );
        check(
            r#"{"a b":" x  y ","c":"\u00e9\ud83d\ude00"}"#,
            Ok(r#"{"a b":" x  y ","c":"\u00e9\ud83d\ude00"}"#),
        );
        check("{\"line\":\"\u{2028}\"}", Ok("{\"line\":\"\u{2028}\"}"));
        check(
            r#"{"n":18446744073709551615,"m":-9223372036854775808}"#,
            Ok(r#"{"n":18446744073709551615,"m":-9223372036854775808}"#),
        );
        check(r#"{"a":{"x":1},"b":{"x":1}}"#, Ok(r#"{"a":{"x":1},"b":{"x":1}}"#));
    }

    /// What some reader of JSON would take and another would not.
    #[test]
    fn refused() {
        check("[]", Err("a payload is a JSON object"));
        check("{} {}", Err("text after"));
        check(r#"{"a":"\ud83d"}"#, Err("lone surrogate"));
        check(r#"{"a":"\ude00"}"#, Err("lone surrogate"));
        check(r#"{"a":"\ud83dx"}"#, Err("lone surrogate"));
        check(r#"{"a":1,"\u0061":2}"#, Err("stands twice"));
        check(r#"{"a":1e999}"#, Err("no finite double"));
        check(r#"{"a":18446744073709551616}"#, Err("no 64-bit integer"));
        check(r#"{"a":01}"#, Err("no JSON number"));
        check(r#"{"a":1.}"#, Err("no JSON number"));
        check("{\"a\":\"x\ny\"}", Err("control character"));
        check(r#"{"a":1,}"#, Err("a string is expected"));
        check(r#"{"a":[1,]}"#, Err("begins no value"));
        check(r#"{"a""#, Err("is expected"));
        check("", Err("a payload is a JSON object"));
        check("\u{feff}{}", Err("a payload is a JSON object"));
        check(r#"{"a":"\u12"}"#, Err("four hexadecimal"));
    }

    /// A payload is the same after its content was taken out and put back, and only a last member counts.
    #[test]
    fn content_apart() {
        for (whole, rest, content) in [
            (
                r#"{"a":[1,{"content":2}],"b":"x,\"y","content":"t,\\\""}"#,
                r#"{"a":[1,{"content":2}],"b":"x,\"y"}"#,
                r#""t,\\\"""#,
            ),
            (r#"{"content":[1,2]}"#, "{}", "[1,2]"),
        ] {
            let payload = Payload::from_json(whole).unwrap();
            let (left, taken) = payload.split_content().unwrap();
            assert_eq!((left.as_str(), taken.as_str()), (rest, content));
            assert_eq!(left.join_content(&taken), payload);
        }
        for none in ["{}", r#"{"content":1,"a":2}"#, r#"{"a":{"content":1}}"#] {
            assert_eq!(Payload::from_json(none).unwrap().split_content(), None, "{none}");
        }
    }

    /// 64 levels are taken and 65 are not.
    #[test]
    fn depth() {
        let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n - 1), "]".repeat(n - 1));
        assert!(Payload::from_json(&nested(DEPTH_MAX)).is_ok());
        assert!(Payload::from_json(&nested(DEPTH_MAX + 1)).is_err());
        assert!(Payload::from_json(&nested(100_000)).is_err());
    }
}
