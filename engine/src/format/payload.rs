//! What an event carries: a JSON object, minified, that every typed reader can read. It is checked once, before it
//! becomes part of a line, and never parsed again by the log.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

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

/// A strict reader of JSON that leaves white space out. It recurses, at most [`DEPTH_MAX`] deep.
struct Check<'a> {
    text: &'a str,
    at: usize,
    /// What is kept of the text before `kept`: all of it but white space between parts.
    out: String,
    kept: usize,
    /// The keys of the objects that are open, those of the innermost last.
    keys: Vec<Cow<'a, str>>,
}

impl<'a> Check<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, out: String::new(), kept: 0, keys: Vec::new() }
    }

    fn whole_object(mut self) -> Result<Cow<'a, str>> {
        self.space();
        if self.peek() != Some(b'{') {
            return Err(self.error("a payload is a JSON object"));
        }
        self.value(1)?;
        self.space();
        if self.at < self.text.len() {
            return Err(self.error("there is text after the object"));
        }
        if self.kept == 0 {
            return Ok(Cow::Borrowed(self.text));
        }
        self.out.push_str(self.text.get(self.kept..).unwrap_or_default());
        Ok(Cow::Owned(self.out))
    }

    fn value(&mut self, depth: usize) -> Result<()> {
        match self.peek() {
            Some(b'{' | b'[') if depth > DEPTH_MAX => {
                Err(self.error(&format!("more than {DEPTH_MAX} levels")))
            }
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(_) => Err(self.error("this begins no value")),
            None => Err(self.error("the text ends inside a value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<()> {
        self.expect(b'{')?;
        self.space();
        let first = self.keys.len();
        let (mut seen, mut alike) = (0_u64, false);
        while self.peek() != Some(b'}') {
            if self.keys.len() > first {
                self.expect(b',')?;
                self.space();
            }
            let key = self.key()?;
            // Most keys of an object differ in their length or their first byte; only others are compared.
            let begin = key.as_bytes().first().copied().unwrap_or_default();
            let bit = 1 << ((key.len() * 7 + usize::from(begin)) % 64);
            alike |= seen & bit != 0;
            seen |= bit;
            self.keys.push(key);
            self.space();
            self.expect(b':')?;
            self.space();
            self.value(depth + 1)?;
            self.space();
        }
        self.expect(b'}')?;
        let keys = self.keys.get_mut(first..).unwrap_or_default();
        if alike {
            keys.sort_unstable();
            if let Some([key, _]) = keys.array_windows().find(|[a, b]| a == b) {
                let twice = format!("the key {key:?} stands twice in this object");
                return Err(self.error(&twice));
            }
        }
        self.keys.truncate(first);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<()> {
        self.expect(b'[')?;
        self.space();
        let mut first = true;
        while self.peek() != Some(b']') {
            if !first {
                self.expect(b',')?;
                self.space();
            }
            first = false;
            self.value(depth + 1)?;
            self.space();
        }
        self.expect(b']')
    }

    /// A key, by its meaning.
    fn key(&mut self) -> Result<Cow<'a, str>> {
        let at = self.at;
        let spelled = self.string()?;
        let inside = spelled.get(1..spelled.len() - 1).unwrap_or_default();
        if !inside.contains('\\') {
            return Ok(Cow::Borrowed(inside));
        }
        serde_json::from_str(spelled).map(Cow::Owned).map_err(|e| {
            Error::invalid("this is no string").field("data").offset(at as u64).caused_by(e)
        })
    }

    /// A string as it is spelled. What it means is not asked.
    fn string(&mut self) -> Result<&'a str> {
        if self.peek() != Some(b'"') {
            return Err(self.error("a string is expected here"));
        }
        let start = self.at;
        self.at += 1;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            self.at += plain(rest);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.error("a raw control character inside a string")),
                None => return Err(self.error("the text ends inside a string")),
            }
        }
        self.at += 1;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    fn escape(&mut self) -> Result<()> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => self.unicode_escape()?,
            _ => return Err(self.error("an escape that JSON does not have")),
        }
        Ok(())
    }

    /// At the `u` of an escape; a high surrogate takes the low one that must follow (RFC 8259, section 7).
    fn unicode_escape(&mut self) -> Result<()> {
        match self.hex4()? {
            0xD800..=0xDBFF => {
                if self.text.get(self.at..self.at + 2) != Some("\\u") {
                    return Err(self.error("a lone surrogate"));
                }
                self.at += 1;
                if !(0xDC00..=0xDFFF).contains(&self.hex4()?) {
                    return Err(self.error("a lone surrogate"));
                }
                Ok(())
            }
            0xDC00..=0xDFFF => Err(self.error("a lone surrogate")),
            _ => Ok(()),
        }
    }

    fn hex4(&mut self) -> Result<u32> {
        let digits = self
            .text
            .get(self.at + 1..self.at + 5)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        let code = code.ok_or_else(|| self.error("\\u takes four hexadecimal digits"))?;
        self.at += 5;
        Ok(code)
    }

    fn number(&mut self) -> Result<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest
            .bytes()
            .position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or_default();
        let fraction = text.contains(['.', 'e', 'E']);
        let held = if fraction {
            text.parse::<f64>().is_ok_and(f64::is_finite)
        } else {
            text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
        };
        if !is_json_number(text) {
            return Err(self.error("this is no JSON number"));
        }
        if !held {
            return Err(self.error("no 64-bit integer and no finite double holds this number"));
        }
        self.at += end;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if !self.text.get(self.at..).unwrap_or_default().starts_with(word) {
            return Err(self.error("this begins no value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek() != Some(byte) {
            return Err(self.error(&format!("{:?} is expected here", char::from(byte))));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over white space and leaves it out of what is kept.
    fn space(&mut self) {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        if self.at > start {
            self.out.push_str(self.text.get(self.kept..start).unwrap_or_default());
            self.kept = self.at;
        }
    }

    fn error(&self, message: &str) -> Error {
        Error::invalid(message).field("data").offset(self.at as u64)
    }
}

/// How many bytes come before the first that is a quote, a backslash or a control character. Eight at a time: most strings
/// are too short, and texts with escapes have runs too short, for a wider search to pay.
fn plain(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let marks = special(u64::from_le_bytes(*word));
        if marks != 0 {
            let byte = usize::try_from(marks.trailing_zeros() / 8).unwrap_or_default();
            return place * 8 + byte;
        }
    }
    let tail = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20));
    words.len() * 8 + tail.unwrap_or(rest.len())
}

/// The lowest bit that is set marks the first byte, from the lowest, that is a quote, a backslash or below 0x20; no bit is
/// set when there is none. A borrow may set bits above the lowest, which say nothing (Warren, Hacker's Delight, 6-1).
const fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const fn below(word: u64, limit: u8) -> u64 {
        word.wrapping_sub(ONES * limit as u64) & !word & HIGH
    }
    below(word ^ (ONES * b'"' as u64), 1)
        | below(word ^ (ONES * b'\\' as u64), 1)
        | below(word, 0x20)
}

/// The grammar of numbers (RFC 8259, section 6).
fn is_json_number(text: &str) -> bool {
    fn digits(text: &str) -> Option<&str> {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < text.len()).then_some(rest)
    }
    let text = text.strip_prefix('-').unwrap_or(text);
    let whole = match text.strip_prefix('0') {
        Some(rest) => Some(rest),
        None => digits(text),
    };
    let fraction = whole.and_then(|rest| match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => Some(rest),
    });
    fraction.is_some_and(|rest| match rest.strip_prefix(['e', 'E']) {
        Some(rest) => digits(rest.strip_prefix(['+', '-']).unwrap_or(rest)) == Some(""),
        None => rest.is_empty(),
    })
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

    /// Goal: the first byte that ends a run is found wherever it stands, whatever stands around it. Method: every byte at
    /// every place of texts of up to three words, among others that borrow from their neighbours.
    #[test]
    fn runs_of_plain_text() {
        for len in 0..24 {
            for fill in [b'a', 0x20, 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                assert_eq!(plain(&vec![fill; len]), len, "{fill}");
                for at in 0..len {
                    for byte in 0..=u8::MAX {
                        let mut text = vec![fill; len];
                        text[at] = byte;
                        let ends = matches!(byte, b'"' | b'\\' | 0..0x20);
                        assert_eq!(plain(&text), if ends { at } else { len }, "{text:?}");
                    }
                }
            }
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
