//! Cuts bytes into lines: split on the line feed and on nothing else. It does not judge: order, chain and watermark
//! belong to the log.

use super::line::{self, LINE_MAX, Line, LineFault};

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
}

impl<'a> Scan<'a> {
    /// Scans from the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = (usize, usize, Piece<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let offset = self.at;
        let Some(end) = memchr::memchr(b'\n', rest) else {
            self.at = self.bytes.len();
            return Some((offset, rest.len(), Piece::Rest));
        };
        let len = end + 1;
        self.at += len;
        let raw = rest.get(..len).unwrap_or(rest);
        let piece = if len > LINE_MAX {
            Piece::Bad(LineFault::TooLong)
        } else {
            line::decode(raw).map_or_else(Piece::Bad, Piece::Line)
        };
        Some((offset, len, piece))
    }
}
