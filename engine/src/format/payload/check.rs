//! The check of a payload's text, once, before it becomes part of a line: JSON as RFC 8259 has it, and what the log asks
//! beyond that.

use std::borrow::Cow;

use super::DEPTH_MAX;
use crate::error::{Error, Result};

/// A strict reader of JSON that leaves white space out. It recurses, at most [`DEPTH_MAX`] deep.
pub(super) struct Check<'a> {
    text: &'a str,
    at: usize,
    /// What is kept of the text before `kept`: all of it but white space between parts.
    out: String,
    kept: usize,
    /// The keys of the objects that are open, those of the innermost last.
    keys: Vec<Cow<'a, str>>,
}

impl<'a> Check<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, out: String::new(), kept: 0, keys: Vec::new() }
    }

    pub(super) fn whole_object(mut self) -> Result<Cow<'a, str>> {
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
}
