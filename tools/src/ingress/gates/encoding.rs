//! Bytes into text that can be stored: what is no UTF-8, half a surrogate pair or a control character is replaced by
//! something that is seen, and marked.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// Text, and what was repaired in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// What was repaired, one mark for each kind that there was.
    pub marks: Vec<Mark>,
}

/// Something that was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// What it was.
    pub kind: MarkKind,
    /// How often.
    pub count: usize,
}

/// What was repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// A byte order mark at the beginning: taken away.
    ByteOrderMark,
    /// Bytes that are no UTF-8: U+FFFD in their place.
    InvalidUtf8,
    /// Half of a surrogate pair, as bytes or as an escape in JSON: U+FFFD in its place.
    LoneSurrogate,
    /// A control character other than tab and line ends: its picture in its place, such as U+2400 for NUL.
    Control,
}

impl fmt::Display for MarkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByteOrderMark => "byte-order-mark",
            Self::InvalidUtf8 => "invalid-utf8",
            Self::LoneSurrogate => "lone-surrogate",
            Self::Control => "control",
        })
    }
}

/// So many faults are repaired whatever the length of the text.
const FAULTS_FREE: usize = 16;

/// Above that, one fault in so many bytes is repaired.
const BYTES_PER_FAULT: usize = 20;

/// Reads bytes as text. `None` when too much of it is none.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Decoded<'_>> {
    let mut tally = Tally::default();
    let without_mark = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    tally.add(MarkKind::ByteOrderMark, usize::from(without_mark.len() < bytes.len()));
    let text = match std::str::from_utf8(without_mark) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(repaired(without_mark, &mut tally)),
    };
    let text =
        if text.contains(is_unseen) { Cow::Owned(pictured(&text, &mut tally)) } else { text };
    let faults: usize = tally.0.iter().map(|mark| mark.count).sum();
    if faults > FAULTS_FREE && faults.saturating_mul(BYTES_PER_FAULT) > bytes.len() {
        return None;
    }
    Some(Decoded { text, marks: tally.0 })
}

/// Reads bytes as the text of a JSON document, in which a half of a surrogate pair may be spelled as an escape; `None`
/// when too much of it is no text. It is not looked at whether it is JSON.
#[must_use]
pub fn decode_json(bytes: &[u8]) -> Option<Decoded<'_>> {
    let Decoded { text, mut marks } = decode(bytes)?;
    let mut lone = 0;
    let mended = paired(&text, &mut lone);
    if lone == 0 {
        return Some(Decoded { text, marks });
    }
    let mut tally = Tally(std::mem::take(&mut marks));
    tally.add(MarkKind::LoneSurrogate, lone);
    Some(Decoded { text: Cow::Owned(mended), marks: tally.0 })
}

#[derive(Default)]
struct Tally(Vec<Mark>);

impl Tally {
    fn add(&mut self, kind: MarkKind, count: usize) {
        if count == 0 {
            return;
        }
        match self.0.iter_mut().find(|mark| mark.kind == kind) {
            Some(mark) => mark.count += count,
            None => self.0.push(Mark { kind, count }),
        }
    }
}

/// The text of bytes of which some are no UTF-8.
fn repaired(bytes: &[u8], tally: &mut Tally) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut after_surrogate = 0_u8;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        if !chunk.valid().is_empty() {
            after_surrogate = 0;
        }
        match chunk.invalid() {
            [] => {}
            // A surrogate as three bytes comes as three faults: the first says so, the others belong to it.
            [0xed] => {
                after_surrogate = 2;
                tally.add(MarkKind::LoneSurrogate, 1);
                text.push(char::REPLACEMENT_CHARACTER);
            }
            [0x80..=0xbf] if after_surrogate > 0 => after_surrogate -= 1,
            _ => {
                after_surrogate = 0;
                tally.add(MarkKind::InvalidUtf8, 1);
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }
    text
}

fn is_unseen(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')
}

/// Control characters as their pictures; those that have none as U+FFFD.
fn pictured(text: &str, tally: &mut Tally) -> String {
    let mut count = 0;
    let picture = |c: char| {
        if !is_unseen(c) {
            return c;
        }
        count += 1;
        match u32::from(c) {
            0x7f => '\u{2421}',
            low @ 0..0x20 => char::from_u32(0x2400 + low).unwrap_or(char::REPLACEMENT_CHARACTER),
            _ => char::REPLACEMENT_CHARACTER,
        }
    };
    let pictured = text.chars().map(picture).collect();
    tally.add(MarkKind::Control, count);
    pictured
}

/// JSON text with U+FFFD for every escape that is half of a surrogate pair.
fn paired(text: &str, lone: &mut usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                *lone += 1;
                out.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            (Some(_), _) => 6,
            // Another escape: whatever stands behind the backslash belongs to it.
            (None, _) => escape.chars().take(2).map(char::len_utf8).sum(),
        };
        let (escape, behind) = escape.split_at(taken);
        out.push_str(escape);
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The unit of UTF-16 that an escape at the beginning of a text spells.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}
