//! The lines of a file of any size, read once from front to back in bounded memory. A line is what stands between two
//! line feeds; what its bytes mean is not known here.

use std::io::{self, Read};
use std::ops::Range;

use crate::format::LINE_MAX;
use crate::store::BLOB_MAX;

/// The longest line that is held, in bytes: the longest content that a store takes, and as much again as the other fields
/// of an event may be. A longer one is passed over without being held, and said so.
pub(crate) const LINE_BYTES_MAX: usize = BLOB_MAX + LINE_MAX;

/// What is read at once, and what is kept between long lines, in bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A line that fits.
    Whole {
        /// Where it begins, in bytes.
        offset: u64,
        /// Its bytes without the line feed.
        bytes: &'a [u8],
        /// Whether a line feed follows; only the last line of a file has none.
        ended: bool,
    },
    /// A line beyond the limit.
    TooLong {
        /// Where it begins, in bytes.
        offset: u64,
        /// How long it is without the line feed, in bytes.
        bytes: u64,
        /// Whether every byte of it is NUL.
        only_nul: bool,
        /// Whether a line feed follows.
        ended: bool,
    },
}

impl Line<'_> {
    /// Where it begins, in bytes.
    pub(crate) const fn offset(&self) -> u64 {
        match self {
            Self::Whole { offset, .. } | Self::TooLong { offset, .. } => *offset,
        }
    }

    /// Whether a line feed follows, as far as that is known.
    pub(crate) const fn is_ended(&self) -> bool {
        !matches!(self, Self::Whole { ended: false, .. } | Self::TooLong { ended: false, .. })
    }
}

/// Reads lines one after the other.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// What of the buffer is filled and not given out yet.
    start: usize,
    end: usize,
    /// The offset in the file of `buffer[start]`.
    offset: u64,
    line_bytes_max: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self::with_limits(reader, BUFFER_BYTES, LINE_BYTES_MAX)
    }

    /// Reads lines of a file that stands at this place.
    pub(crate) fn from(reader: R, offset: u64) -> Self {
        Self { offset, ..Self::new(reader) }
    }

    /// Reads lines of a piece of a file, of which the first byte stands at `range.start`.
    pub(crate) fn piece(reader: R, range: &Range<u64>) -> Self {
        let bytes = usize::try_from(range.end - range.start).unwrap_or(BUFFER_BYTES);
        // One byte more, so that the end is met without room being made for it.
        let buffer_bytes = bytes.saturating_add(1).min(BUFFER_BYTES);
        Self { offset: range.start, ..Self::with_limits(reader, buffer_bytes, LINE_BYTES_MAX) }
    }

    fn with_limits(reader: R, buffer_bytes: usize, line_bytes_max: usize) -> Self {
        let buffer = vec![0; buffer_bytes];
        Self { reader, buffer, start: 0, end: 0, offset: 0, line_bytes_max }
    }

    /// How far the file has been given out, in bytes.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.shrink();
        let mut searched = 0;
        loop {
            let held = self.buffer.get(self.start..self.end).unwrap_or_default();
            let found = held.get(searched..).and_then(|rest| memchr::memchr(b'\n', rest));
            if let Some(at) = found {
                return Ok(Some(self.give(searched + at, true)));
            }
            searched = held.len();
            if searched > self.line_bytes_max {
                return self.pass_over().map(Some);
            }
            if self.fill()? == 0 {
                return Ok(if searched == 0 { None } else { Some(self.give(searched, false)) });
            }
        }
    }

    fn give(&mut self, len: usize, ended: bool) -> Line<'_> {
        let (offset, from) = (self.offset, self.start);
        self.start += len + usize::from(ended);
        self.offset += (len + usize::from(ended)) as u64;
        let bytes = self.buffer.get(from..from + len).unwrap_or_default();
        if len > self.line_bytes_max {
            let only_nul = bytes.iter().all(|b| *b == 0);
            return Line::TooLong { offset, bytes: len as u64, only_nul, ended };
        }
        Line::Whole { offset, bytes, ended }
    }

    /// Reads to the end of a line that is too long and keeps nothing of it.
    fn pass_over(&mut self) -> io::Result<Line<'static>> {
        let offset = self.offset;
        let mut only_nul = true;
        loop {
            let held = self.buffer.get(self.start..self.end).unwrap_or_default();
            let found = memchr::memchr(b'\n', held);
            let len = found.unwrap_or(held.len());
            only_nul &= held.iter().take(len).all(|b| *b == 0);
            let passed = len + usize::from(found.is_some());
            self.start += passed;
            self.offset += passed as u64;
            if found.is_some() || self.fill()? == 0 {
                let bytes = self.offset - offset - u64::from(found.is_some());
                return Ok(Line::TooLong { offset, bytes, only_nul, ended: found.is_some() });
            }
        }
    }

    /// Reads more behind what is held, and returns how much came.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        let got = loop {
            match self.reader.read(room) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                answer => break answer?,
            }
        };
        self.end += got;
        Ok(got)
    }

    /// Gives back what a long line took, once little of it is in use.
    fn shrink(&mut self) {
        if self.buffer.len() > 4 * BUFFER_BYTES && self.end - self.start < BUFFER_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            self.buffer.truncate(BUFFER_BYTES);
            self.buffer.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives a few bytes at a time.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let mut piece = self.0.get(..self.1.min(self.0.len())).unwrap();
            let got = piece.read(buf)?;
            self.0 = &self.0[got..];
            Ok(got)
        }
    }

    /// The lines of `text` in words: `offset:bytes`, with `$` where no line feed follows and `#n` for one of `n` bytes
    /// that is too long.
    fn check(text: &str, line_bytes_max: usize, expect: &str) {
        for step in 1..=text.len().max(1) {
            let reader = Dribble(text.as_bytes(), step);
            let mut lines = Lines::with_limits(reader, 4, line_bytes_max);
            let mut got = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                got.push(match line {
                    Line::Whole { offset, bytes, ended } => {
                        let text = std::str::from_utf8(bytes).unwrap();
                        format!("{offset}:{text}{}", if ended { "" } else { "$" })
                    }
                    Line::TooLong { offset, bytes, only_nul, .. } => {
                        format!("{offset}#{bytes}{}", if only_nul { "0" } else { "" })
                    }
                });
            }
            assert_eq!(got.join(" "), expect, "{text:?} in steps of {step}");
            assert_eq!(lines.offset(), text.len() as u64);
        }
    }

    /// Goal: every byte is in exactly one line, at its offset, however the file is cut into reads. Method: small
    /// texts in every size of step, with a buffer of four bytes.
    #[test]
    fn lines_and_offsets() {
        check("", 100, "");
        check("a\nbb\n", 100, "0:a 2:bb");
        check("a\nbb", 100, "0:a 2:bb$");
        check("\n\nx\n", 100, "0: 1: 2:x");
        check("a long line of text\nb\n", 100, "0:a long line of text 20:b");
    }

    /// Goal: a line beyond the limit is passed over and the ones behind it are read. Method: a limit of six bytes.
    #[test]
    fn long_lines_are_passed_over() {
        check("sixsix\nseven77\nb\n", 6, "0:sixsix 7#7 15:b");
        check("far too long for this\nb", 6, "0#21 22:b$");
        check("b\nfar too long for this", 6, "0:b 2#21");
        check("\0\0\0\0\0\0\0\0\nb\n", 6, "0#80 9:b");
    }

    /// Goal: memory does not follow the longest line. Method: the buffer after a long line and a short one.
    #[test]
    fn a_long_line_gives_its_memory_back() {
        let mut text = "x".repeat(8 * BUFFER_BYTES);
        text.push_str("\nshort\nshort\n");
        let mut lines = Lines::new(text.as_bytes());
        assert!(matches!(lines.next(), Ok(Some(Line::Whole { offset: 0, .. }))));
        lines.next().unwrap();
        assert_eq!(lines.buffer.len(), BUFFER_BYTES);
    }
}
