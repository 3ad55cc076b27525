//! Cuts bytes into lines: split on the line feed and on nothing else. It does not judge: order, chain and watermark
//! belong to the log.

use super::line::{self, LINE_MAX, Line, LineFault};

/// So many bytes are checked to be UTF-8 at a time: one check of many lines costs half of a check a line, and they are
/// still in the nearest cache when they are cut.
const BLOCK: usize = 32 << 10;

/// A stretch of a segment.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// A whole line that verifies.
    Line(Line<'a>),
    /// Bytes up to and with a line feed that are no line.
    Bad(LineFault),
    /// Bytes at the end without a line feed.
    Rest,
}

/// The pieces of `bytes` in order, each with its offset in them and its length.
#[derive(Clone, Debug)]
pub struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Lines from `at` on that are known to be UTF-8.
    text: &'a str,
    /// Up to here it is known which are.
    looked: usize,
}

/// Bytes up to and with a line feed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raw<'a> {
    /// UTF-8.
    Text(&'a str),
    /// Perhaps none.
    Bytes(&'a [u8]),
}

impl<'a> Raw<'a> {
    /// How many bytes, the line feed included.
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// The line that they are.
    ///
    /// # Errors
    /// The fault, when they are none.
    #[inline]
    pub(crate) fn decode(self) -> std::result::Result<Line<'a>, LineFault> {
        match self {
            Self::Text(text) => line::decode_text(text),
            Self::Bytes(bytes) => line::decode(bytes),
        }
    }
}

impl<'a> Scan<'a> {
    /// Scans from the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, text: "", looked: 0 }
    }

    /// Where the next piece begins.
    pub(crate) const fn offset(&self) -> usize {
        self.at
    }

    /// The bytes that are not cut yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Goes on at another place.
    pub(crate) fn go_to(&mut self, at: usize) {
        let text = at.checked_sub(self.at).and_then(|count| self.text.get(count..));
        if text.is_none() {
            self.looked = at;
        }
        self.at = at;
        self.text = text.unwrap_or_default();
    }

    /// The next bytes up to a line feed; `None` when there is no line feed any more.
    #[inline]
    pub(crate) fn raw(&mut self) -> Option<Raw<'a>> {
        if self.text.is_empty() && self.at >= self.looked {
            self.look();
        }
        if let Some(end) = memchr::memchr(b'\n', self.text.as_bytes())
            && let Some((line, text)) = self.text.split_at_checked(end + 1)
        {
            self.at += line.len();
            self.text = text;
            return Some(Raw::Text(line));
        }
        let rest = self.rest();
        let end = memchr::memchr(b'\n', rest)?;
        let line = rest.get(..=end)?;
        self.at += line.len();
        Some(Raw::Bytes(line))
    }

    /// Finds out which of the next lines are UTF-8.
    fn look(&mut self) {
        let rest = self.rest();
        let block = rest.get(..BLOCK).unwrap_or(rest);
        let whole = memchr::memrchr(b'\n', block).and_then(|end| block.get(..=end));
        let whole = whole.unwrap_or_default();
        self.text = simdutf8::basic::from_utf8(whole).unwrap_or_default();
        self.looked = self.at + if whole.is_empty() { block.len() } else { whole.len() };
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = (usize, usize, Piece<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let Some(raw) = self.raw() else {
            let rest = self.rest().len();
            self.go_to(self.bytes.len());
            return (rest > 0).then_some((offset, rest, Piece::Rest));
        };
        let piece = if raw.len() > LINE_MAX {
            Piece::Bad(LineFault::TooLong)
        } else {
            raw.decode().map_or_else(Piece::Bad, Piece::Line)
        };
        Some((offset, raw.len(), piece))
    }
}
