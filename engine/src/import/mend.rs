//! A tolerant reader of JSON: where a value ends that may be followed by something else, and what a value says that a
//! strict reader refuses. It changes only what the list of [`MendKind`] names; everything else that is not JSON is a
//! [`Break`]. It does not recurse, and it knows no record.

use std::collections::HashMap;

use super::damage::DamageClass;

/// How deep a record may nest to fit into an event, the record itself counted: an event holds pieces of a record up to
/// two levels deeper than they stood there.
pub(crate) const DEPTH_MAX: usize = crate::format::DEPTH_MAX - 4;

/// How deep a value may nest to be read at all.
const STACK_MAX: usize = 10_000;

/// How many keys that stand twice are told apart in one value.
const DUPLICATES_MAX: usize = 64;

/// A value that was read to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// Where it ends in the bytes given.
    pub(crate) end: usize,
    /// Its text, minified: JSON that every reader takes.
    pub(crate) text: String,
    /// What had to be changed, in order.
    pub(crate) mends: Vec<Mend>,
}

/// A change to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mend {
    /// Where, in the bytes given.
    pub(crate) at: usize,
    /// How many of them.
    pub(crate) len: usize,
    /// What was wrong with them.
    pub(crate) class: DamageClass,
}

/// Why a value has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// The bytes end inside a string.
    EndInString,
    /// The bytes end inside the value, but not in a string.
    End,
    /// Something that is no JSON stands at this place.
    Syntax(usize),
}

/// Reads one value that begins at `start`, where there is neither white space nor NUL.
pub(crate) fn scan(bytes: &[u8], start: usize) -> Result<Value, Break> {
    let rest = bytes.len().saturating_sub(start);
    let mut scan = Scan {
        bytes,
        at: start,
        out: Vec::with_capacity(rest + 16),
        mends: Vec::new(),
        stack: Vec::new(),
        deep: None,
        duplicates: 0,
    };
    scan.value()?;
    while !scan.stack.is_empty() {
        scan.step()?;
    }
    let text = String::from_utf8(scan.out).map_err(|_| Break::Syntax(start))?;
    Ok(Value { end: scan.at, text, mends: scan.mends })
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
    mends: Vec<Mend>,
    stack: Vec<Frame>,
    /// A container that is too deep: where it began in the bytes and in the output, and how high the stack was.
    deep: Option<(usize, usize, usize)>,
    duplicates: usize,
}

/// An open array or object.
enum Frame {
    Array { empty: bool },
    Object { keys: HashMap<String, usize>, starts: Vec<usize> },
}

impl Scan<'_> {
    /// One element, one member, or the end of the innermost container.
    fn step(&mut self) -> Result<(), Break> {
        self.space();
        let next = self.peek().ok_or(Break::End)?;
        match self.stack.last() {
            Some(Frame::Array { empty }) => {
                let empty = *empty;
                if next == b']' {
                    return self.close(b']');
                }
                self.comma(empty)?;
                if let Some(Frame::Array { empty }) = self.stack.last_mut() {
                    *empty = false;
                }
                self.value()
            }
            Some(Frame::Object { starts, .. }) => {
                let empty = starts.is_empty();
                if next == b'}' {
                    return self.close(b'}');
                }
                self.comma(empty)?;
                self.member()
            }
            None => Ok(()),
        }
    }

    fn comma(&mut self, first: bool) -> Result<(), Break> {
        if first {
            return Ok(());
        }
        self.expect(b',')?;
        self.space();
        Ok(())
    }

    fn member(&mut self) -> Result<(), Break> {
        let from = self.out.len();
        if self.peek().ok_or(Break::End)? != b'"' {
            return Err(Break::Syntax(self.at));
        }
        let at = self.at;
        self.string()?;
        let spelled = self.out.get(from..).unwrap_or_default();
        let name: String = serde_json::from_slice(spelled).map_err(|_| Break::Syntax(at))?;
        self.name(&name, from, at)?;
        self.space();
        self.expect(b':')?;
        self.space();
        self.value()
    }

    /// Remembers a key whose spelling begins at `from` in the output; one that was there before gives up its name.
    fn name(&mut self, name: &str, from: usize, at: usize) -> Result<(), Break> {
        let len = self.at - at;
        let Some(Frame::Object { keys, starts }) = self.stack.last_mut() else {
            return Err(Break::Syntax(at));
        };
        starts.push(from);
        let index = starts.len() - 1;
        let Some(earlier) = keys.insert(name.to_owned(), index) else { return Ok(()) };
        self.duplicates += 1;
        if self.duplicates > DUPLICATES_MAX {
            return Err(Break::Syntax(at));
        }
        let other = (1..)
            .map(|n| format!("{name}#{n}"))
            .find(|other| !keys.contains_key(other))
            .unwrap_or_default();
        let old = serde_json::to_string(name).map_err(|_| Break::Syntax(at))?.len();
        let new = serde_json::to_string(&other).map_err(|_| Break::Syntax(at))?;
        let begin = starts.get(earlier).copied().unwrap_or(from);
        // The old spelling may hold escapes that the new one has not, so its end is looked for.
        let end = spelling_end(&self.out, begin).unwrap_or(begin + old);
        for start in starts.iter_mut().filter(|start| **start > begin) {
            *start = (*start + new.len()).saturating_sub(end - begin);
        }
        self.out.splice(begin..end, new.bytes());
        keys.insert(other, earlier);
        self.mends.push(Mend { at, len, class: DamageClass::DuplicateKey });
        Ok(())
    }

    fn value(&mut self) -> Result<(), Break> {
        match self.peek().ok_or(Break::End)? {
            b'{' => self.open(b'{', Frame::Object { keys: HashMap::new(), starts: Vec::new() }),
            b'[' => self.open(b'[', Frame::Array { empty: true }),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => Err(Break::Syntax(self.at)),
        }
    }

    fn open(&mut self, bracket: u8, frame: Frame) -> Result<(), Break> {
        if self.stack.len() >= STACK_MAX {
            return Err(Break::Syntax(self.at));
        }
        if self.stack.len() >= DEPTH_MAX && self.deep.is_none() {
            self.deep = Some((self.at, self.out.len(), self.stack.len()));
        }
        self.out.push(bracket);
        self.at += 1;
        self.stack.push(frame);
        Ok(())
    }

    fn close(&mut self, bracket: u8) -> Result<(), Break> {
        self.out.push(bracket);
        self.at += 1;
        self.stack.pop();
        let Some((at, from, height)) = self.deep.filter(|deep| deep.2 == self.stack.len()) else {
            return Ok(());
        };
        debug_assert!(height >= DEPTH_MAX);
        self.deep = None;
        let inner = String::from_utf8(self.out.split_off(from)).map_err(|_| Break::Syntax(at))?;
        let text = serde_json::to_string(&inner).map_err(|_| Break::Syntax(at))?;
        self.out.extend_from_slice(text.as_bytes());
        self.mends.push(Mend { at, len: self.at - at, class: DamageClass::TooDeep });
        Ok(())
    }

    fn string(&mut self) -> Result<(), Break> {
        self.out.push(b'"');
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let Some(step) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..0x20)) else {
                return Err(Break::EndInString);
            };
            self.text(step);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(control) => self.control(control),
                None => return Err(Break::EndInString),
            }
        }
        self.out.push(b'"');
        self.at += 1;
        Ok(())
    }

    /// Takes `len` bytes of plain text; what is no UTF-8 in it becomes U+FFFD.
    fn text(&mut self, len: usize) {
        let run = self.bytes.get(self.at..self.at + len).unwrap_or_default();
        for chunk in run.utf8_chunks() {
            self.out.extend_from_slice(chunk.valid().as_bytes());
            self.at += chunk.valid().len();
            let invalid = chunk.invalid().len();
            if invalid > 0 {
                self.out.extend_from_slice("\u{fffd}".as_bytes());
                self.mend(invalid, DamageClass::InvalidUtf8);
            }
        }
    }

    fn control(&mut self, control: u8) {
        self.out.extend_from_slice(format!("\\u{control:04x}").as_bytes());
        let class = match control {
            b'\n' => DamageClass::RawNewline,
            0 => DamageClass::NulRun,
            _ => DamageClass::RawControl,
        };
        self.mend(1, class);
    }

    fn escape(&mut self) -> Result<(), Break> {
        let escape = self.bytes.get(self.at + 1).ok_or(Break::EndInString)?;
        match escape {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.copy(2);
                Ok(())
            }
            b'u' => self.unicode_escape(),
            _ => Err(Break::Syntax(self.at)),
        }
    }

    fn unicode_escape(&mut self) -> Result<(), Break> {
        let lone = match self.hex4(self.at)? {
            0xD800..=0xDBFF => match self.hex4(self.at + 6) {
                Ok(0xDC00..=0xDFFF) => {
                    self.copy(12);
                    return Ok(());
                }
                Err(Break::EndInString) => return Err(Break::EndInString),
                _ => true,
            },
            0xDC00..=0xDFFF => true,
            _ => false,
        };
        if lone {
            self.out.extend_from_slice(b"\\ufffd");
            self.mend(6, DamageClass::LoneSurrogate);
        } else {
            self.copy(6);
        }
        Ok(())
    }

    /// The code of the escape `\uXXXX` at `at`.
    fn hex4(&self, at: usize) -> Result<u32, Break> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let Some(escape) = rest.get(..6) else {
            let begun = rest.iter().zip(b"\\u").all(|(have, want)| have == want);
            return Err(if begun { Break::EndInString } else { Break::Syntax(at) });
        };
        let digits = escape.strip_prefix(b"\\u").and_then(|d| std::str::from_utf8(d).ok());
        digits
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or(Break::Syntax(at))
    }

    fn number(&mut self) -> Result<(), Break> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let number = |b: &u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let len = rest.iter().position(|b| !number(b)).unwrap_or(rest.len());
        let text = rest.get(..len).and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(text) =
            text.filter(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
        else {
            return Err(if len == rest.len() { Break::End } else { Break::Syntax(self.at) });
        };
        let held = if text.contains(['.', 'e', 'E']) {
            text.parse::<f64>().is_ok_and(f64::is_finite)
        } else {
            text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
        };
        if held {
            self.copy(len);
        } else {
            self.out.extend_from_slice(format!("\"{text}\"").as_bytes());
            self.mend(len, DamageClass::NumberOutOfRange);
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Break> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.copy(word.len());
            return Ok(());
        }
        Err(if word.starts_with(rest) { Break::End } else { Break::Syntax(self.at) })
    }

    fn expect(&mut self, byte: u8) -> Result<(), Break> {
        if self.peek().ok_or(Break::End)? != byte {
            return Err(Break::Syntax(self.at));
        }
        self.copy(1);
        Ok(())
    }

    fn copy(&mut self, len: usize) {
        self.out.extend_from_slice(self.bytes.get(self.at..self.at + len).unwrap_or_default());
        self.at += len;
    }

    fn mend(&mut self, len: usize, class: DamageClass) {
        self.mends.push(Mend { at: self.at, len, class });
        self.at += len;
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                0 => self.mend(1, DamageClass::NulRun),
                _ => break,
            }
        }
    }
}

/// Where the string ends that begins at `begin`.
fn spelling_end(out: &[u8], begin: usize) -> Option<usize> {
    let rest = out.get(begin + 1..)?;
    let mut escaped = false;
    let len = rest.iter().position(|b| {
        let end = *b == b'"' && !escaped;
        escaped = *b == b'\\' && !escaped;
        end
    })?;
    Some(begin + 1 + len + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Payload;

    /// `end|text|class@at+len …`, or the break.
    fn check(bytes: &[u8], expect: &str) {
        let got = match scan(bytes, 0) {
            Ok(value) => {
                let mends: Vec<String> =
                    value.mends.iter().map(|m| format!("{}@{}+{}", m.class, m.at, m.len)).collect();
                format!("{}|{}|{}", value.end, value.text, mends.join(" "))
            }
            Err(broken) => format!("{broken:?}"),
        };
        assert_eq!(got, expect, "{}", String::from_utf8_lossy(bytes));
    }

    /// Goal: what is JSON is taken as it is, and the end is found whatever follows. Method: values with tails.
    #[test]
    fn whole_values() {
        check(
            br#"{"a":[1,-2.5e3,"x\"\u00e9",true,null,{}]}{"b"#,
            r#"41|{"a":[1,-2.5e3,"x\"\u00e9",true,null,{}]}|"#,
        );
        check(b"{ \"a\" : [ 1 , 2 ] }  ", r#"19|{"a":[1,2]}|"#);
        check(br#""massive error" 42"#, r#"15|"massive error"|"#);
        check(b"42", "2|42|");
        check(br#"{"a":"\ud83d\ude00"}"#, r#"20|{"a":"\ud83d\ude00"}|"#);
    }

    /// Goal: each thing that can be mended is, at its place. Method: one value each.
    #[test]
    fn mended_values() {
        check(br#"{"a":"x\ud83dy"}"#, r#"16|{"a":"x\ufffdy"}|lone_surrogate@7+6"#);
        check(
            br#"{"a":"\ude00\ud83d"}"#,
            r#"20|{"a":"\ufffd\ufffd"}|lone_surrogate@6+6 lone_surrogate@12+6"#,
        );
        check(
            b"{\"a\":\"x\ny\tz\"}",
            r#"13|{"a":"x\u000ay\u0009z"}|raw_newline@7+1 raw_control@9+1"#,
        );
        check(
            b"{\"a\":\"x\xff\xfey\"}",
            "12|{\"a\":\"x\u{fffd}\u{fffd}y\"}|invalid_utf8@7+1 invalid_utf8@8+1",
        );
        check(b"{\"a\":\0\0 1}", r#"10|{"a":1}|nul_run@5+1 nul_run@6+1"#);
        check(
            br#"{"a":1e999,"b":18446744073709551616}"#,
            r#"36|{"a":"1e999","b":"18446744073709551616"}|number_out_of_range@5+5 number_out_of_range@15+20"#,
        );
        check(
            br#"{"a":1,"b":2,"\u0061":3,"a":4}"#,
            r#"30|{"a#1":1,"b":2,"a#2":3,"a":4}|duplicate_key@13+8 duplicate_key@24+3"#,
        );
        check(
            br#"{"a":{"x":1,"x":2},"a":[],"c":0}"#,
            r##"32|{"a#1":{"x#1":1,"x":2},"a":[],"c":0}|duplicate_key@12+3 duplicate_key@19+3"##,
        );
    }

    /// Goal: torn, torn in a string and wrong are three answers. Method: one value each, cut or spoilt.
    #[test]
    fn breaks() {
        for text in [
            r#"{"a":"x"#,
            r#"{"a"#,
            r#"{"a":"\"#,
            r#"{"a":"\u12"#,
            r#"{"a":"\ud83d"#,
            r#"{"a":"\ud83d\"#,
        ] {
            check(text.as_bytes(), "EndInString");
        }
        for text in
            ["{", r#"{"a""#, r#"{"a":"#, r#"{"a":1"#, r#"{"a":tr"#, r#"{"a":-"#, r#"{"a":[1,"#]
        {
            check(text.as_bytes(), "End");
        }
        check(b"{this is not", "Syntax(1)");
        check(br#"{"a":01}"#, "Syntax(5)");
        check(br#"{"a":"\x"}"#, "Syntax(6)");
        check(br#"{"a":1 "b":2}"#, "Syntax(7)");
        check(br#"{"a":1,}"#, "Syntax(7)");
        check(br#"["a"}"#, "Syntax(4)");
    }

    /// Goal: a value of any depth ends in text that an event can hold. Method: nesting around the limit, and far
    /// beyond what is read at all.
    #[test]
    fn depth() {
        let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n - 1), "]".repeat(n - 1));
        let fits = scan(nested(DEPTH_MAX).as_bytes(), 0).unwrap();
        assert_eq!((fits.text, fits.mends), (nested(DEPTH_MAX), vec![]));
        for n in [DEPTH_MAX + 1, DEPTH_MAX + 50] {
            let value = scan(nested(n).as_bytes(), 0).unwrap();
            assert_eq!(value.mends.len(), 1);
            assert_eq!(value.mends[0].class, DamageClass::TooDeep);
            Payload::from_json(&value.text).unwrap();
        }
        assert!(matches!(scan(nested(200_000).as_bytes(), 0), Err(Break::Syntax(_))));
    }
}
