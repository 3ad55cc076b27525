//! Records from lines: one JSON object a line, and everything that goes wrong with that. What a record means is the
//! [`Sink`]'s affair; where it begins and ends, and which bytes are none, is told here and nowhere else. Every byte of a
//! file is in a record the sink took, in a damage the sink was told, or white space between records.

use std::borrow::Cow;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use super::claude::Lane;
use super::damage::DamageClass;
use super::lines::{Line, Lines};
use super::mend::{self, Break, Mend};
use super::pursuit::Tail;
use crate::error::{Error, Result};

/// How many lines and bytes a record may go over whose strings hold raw line feeds.
const JOINED_LINES_MAX: usize = 64;
const JOINED_BYTES_MAX: usize = 4 << 20;

/// How many places of a broken line are tried for the beginning of a record.
const STARTS_MAX: usize = 256;

/// Text that may be a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    /// Where its bytes begin in the file.
    pub(crate) offset: u64,
    /// Its bytes as they stand in the file.
    pub(crate) raw: &'a [u8],
    /// Its text: that of the bytes, mended where that was needed.
    pub(crate) text: &'a str,
    /// Whether the tolerant reader gave the text: then every reader takes it, and there is nothing to mend any more.
    pub(crate) scanned: bool,
}

/// What a sink says about text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is a record, and it is taken.
    Taken,
    /// It is JSON, and no record. Nothing was taken.
    Foreign(DamageClass, String),
    /// It is not JSON that can be taken as it is. Nothing was taken.
    Unfit,
}

/// A range of the file and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) class: DamageClass,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) recovered: u64,
    pub(crate) detail: Cow<'static, str>,
}

/// Who takes records.
pub(crate) trait Sink {
    /// Takes the text if it is a record.
    ///
    /// # Errors
    /// What ends the reading.
    fn record(&mut self, found: &Found<'_>) -> Result<Verdict>;

    /// Whether text that stands behind a broken piece is a record beyond doubt. Takes nothing.
    fn is_record(&self, text: &str) -> bool;

    /// Takes note of damage.
    ///
    /// # Errors
    /// What ends the reading.
    fn flaw(&mut self, flaw: Flaw) -> Result<()>;

    /// Told after each line how far the file is read, in bytes.
    ///
    /// # Errors
    /// What ends the reading.
    fn progress(&mut self, _offset: u64) -> Result<()> {
        Ok(())
    }
}

/// Reads a file to its end, and returns how long it was, in bytes.
///
/// # Errors
/// What reading the file meets, and what the sink says.
pub(crate) fn read_records<R: Read>(reader: R, sink: &mut dyn Sink) -> Result<u64> {
    read_lines(Lines::new(reader), &[], Tail::Final, sink)
}

/// Reads the lines of a file that grows from a place on, and returns the place behind the last record that is whole.
///
/// # Errors
/// As [`read_records`].
pub(crate) fn read_on<R: Read + Seek>(
    mut reader: R,
    from: u64,
    sink: &mut dyn Sink,
) -> Result<u64> {
    reader.seek(SeekFrom::Start(from)).map_err(|e| Error::io("the file cannot be read", e))?;
    read_lines(Lines::from(reader, from), &[], Tail::Growing, sink)
}

/// Reads the lines of a file that belong to a lane, and returns how long they were, in bytes. A piece that belongs to a lane
/// of its own has its end, whether the file grows or not.
///
/// # Errors
/// As [`read_records`].
pub(crate) fn read_lane<R: Read + Seek>(
    mut reader: R,
    lane: &Lane,
    tail: Tail,
    sink: &mut dyn Sink,
) -> Result<u64> {
    let failed = |e| Error::io("the file cannot be read", e);
    match lane {
        Lane::Whole => read_records(reader, sink),
        Lane::Without(ranges) => {
            Ok(lane.bytes(read_lines(Lines::new(reader), ranges, tail, sink)?))
        }
        Lane::Only(ranges) => {
            for range in ranges.iter() {
                reader.seek(SeekFrom::Start(range.start)).map_err(failed)?;
                let piece = reader.by_ref().take(range.end - range.start);
                read_lines(Lines::piece(piece, range), &[], Tail::Final, sink)?;
            }
            Ok(lane.bytes(0))
        }
    }
}

/// Reads one value of a file: a record, and what is wrong with its text.
///
/// # Errors
/// What the sink says.
pub(crate) fn read_value(offset: u64, bytes: &[u8], sink: &mut dyn Sink) -> Result<()> {
    Split { sink, held: None }.alone(offset, bytes, true)
}

/// Tells what had to be changed in a record that begins at `offset`, by places in the file.
///
/// # Errors
/// What the sink says.
pub(crate) fn tell_mends(
    offset: u64,
    len: usize,
    mends: &[Mend],
    sink: &mut dyn Sink,
) -> Result<()> {
    Split { sink, held: None }.mended(0, offset, len, mends)
}

fn read_lines<R: Read>(
    mut lines: Lines<R>,
    without: &[Range<u64>],
    tail: Tail,
    sink: &mut dyn Sink,
) -> Result<u64> {
    let mut split = Split { sink, held: None };
    let mut without = without.iter().peekable();
    loop {
        let line = lines.next().map_err(|e| Error::io("the file cannot be read", e))?;
        let Some(line) = line else { break };
        if tail == Tail::Growing && !line.is_ended() {
            return Ok(split.held.map_or(line.offset(), |held| held.offset));
        }
        while without.next_if(|range| range.end <= line.offset()).is_some() {}
        if without.peek().is_some_and(|range| range.contains(&line.offset())) {
            continue;
        }
        match line {
            Line::Whole { offset, bytes, ended } => split.line(offset, bytes, ended)?,
            Line::TooLong { offset, bytes, only_nul, .. } => {
                split.too_long(offset, bytes, only_nul)?;
            }
        }
        let offset = lines.offset();
        split.sink.progress(offset)?;
    }
    if tail == Tail::Growing {
        return Ok(split.held.map_or(lines.offset(), |held| held.offset));
    }
    split.end()?;
    Ok(lines.offset())
}

struct Split<'s> {
    sink: &'s mut dyn Sink,
    /// Lines that end inside a string: a torn record, or one with raw line feeds.
    held: Option<Held>,
}

struct Held {
    offset: u64,
    bytes: Vec<u8>,
    lines: usize,
}

impl Split<'_> {
    fn line(&mut self, offset: u64, bytes: &[u8], ended: bool) -> Result<()> {
        match self.held.take() {
            Some(held) => self.join(held, offset, bytes, ended),
            None => self.alone(offset, bytes, ended),
        }
    }

    /// A line with no open string before it.
    fn alone(&mut self, offset: u64, bytes: &[u8], ended: bool) -> Result<()> {
        let mut start = 0;
        if offset == 0 && bytes.starts_with(b"\xef\xbb\xbf") {
            start = 3;
            self.tell(DamageClass::ByteOrderMark, 0, 3, 1, "a byte order mark")?;
        }
        let bytes = bytes.get(start..).unwrap_or_default();
        let offset = offset + start as u64;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match self.offer_whole(offset, bytes)? {
            Verdict::Taken => Ok(()),
            Verdict::Foreign(class, detail) => self.tell(class, offset, bytes.len(), 0, detail),
            Verdict::Unfit => self.pieces(offset, bytes, ended),
        }
    }

    /// Offers a line as it is, without the white space around it.
    fn offer_whole(&mut self, offset: u64, line: &[u8]) -> Result<Verdict> {
        let raw = line.trim_ascii();
        let Ok(text) = std::str::from_utf8(raw) else { return Ok(Verdict::Unfit) };
        let before = line.len() - line.trim_ascii_start().len();
        self.sink.record(&Found { offset: offset + before as u64, raw, text, scanned: false })
    }

    /// A line that is not simply a record: each value on it is offered, and what lies between is damage.
    fn pieces(&mut self, offset: u64, bytes: &[u8], ended: bool) -> Result<()> {
        let (mut at, mut taken, mut whole) = (0, 0, true);
        loop {
            at = self.blank(offset, bytes, at)?;
            if at >= bytes.len() {
                break;
            }
            match mend::scan(bytes, at) {
                Ok(value) => {
                    taken += u64::from(self.offer(offset, bytes, at, &value)?);
                    at = value.end;
                }
                Err(broken) => {
                    whole = false;
                    let Some(next) = self.next_start(bytes, at + 1) else {
                        return self.broken(offset, bytes, at, broken, ended);
                    };
                    let lost = offset + at as u64;
                    let detail = "a record breaks off and another follows on the same line";
                    self.tell(DamageClass::TornGlued, lost, next - at, 0, detail)?;
                    at = next;
                }
            }
        }
        if taken > 1 && whole {
            let detail = format!("{taken} records on one line");
            self.tell(DamageClass::Glued, offset, bytes.len(), taken, detail)?;
        }
        Ok(())
    }

    /// Offers a value and says whether it was taken; if so, tells what had to be mended.
    fn offer(&mut self, offset: u64, bytes: &[u8], at: usize, value: &mend::Value) -> Result<bool> {
        let raw = bytes.get(at..value.end).unwrap_or_default();
        let start = offset + at as u64;
        match self.sink.record(&Found { offset: start, raw, text: &value.text, scanned: true })? {
            Verdict::Taken => {
                self.mended(offset, start, raw.len(), &value.mends)?;
                Ok(true)
            }
            Verdict::Foreign(class, detail) => {
                self.tell(class, start, raw.len(), 0, detail)?;
                Ok(false)
            }
            Verdict::Unfit => {
                let detail = "the record cannot be taken, mended or not";
                self.tell(DamageClass::InvalidJson, start, raw.len(), 0, detail)?;
                Ok(false)
            }
        }
    }

    /// One damage for each kind of mend in a record, over the range from the first to the last.
    fn mended(&mut self, base: u64, record: u64, len: usize, mends: &[Mend]) -> Result<()> {
        let mut classes: Vec<DamageClass> = Vec::new();
        for mend in mends {
            if !classes.contains(&mend.class) {
                classes.push(mend.class);
            }
        }
        for class in classes {
            if class == DamageClass::RawNewline {
                self.tell(class, record, len, 1, "line feeds inside a string")?;
                continue;
            }
            let places: Vec<&Mend> = mends.iter().filter(|mend| mend.class == class).collect();
            let (Some(first), Some(last)) = (places.first(), places.last()) else { continue };
            let bytes = last.at + last.len - first.at;
            let detail = format!("{} places", places.len());
            self.tell(class, base + first.at as u64, bytes, 1, detail)?;
        }
        Ok(())
    }

    /// Passes over white space and runs of NUL.
    fn blank(&mut self, offset: u64, bytes: &[u8], from: usize) -> Result<usize> {
        let mut at = from;
        while let Some(byte) = bytes.get(at) {
            match byte {
                0 => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let len = rest.iter().position(|b| *b != 0).unwrap_or(rest.len());
                    self.tell(DamageClass::NulRun, offset + at as u64, len, 0, "bytes of NUL")?;
                    at += len;
                }
                byte if byte.is_ascii_whitespace() => at += 1,
                _ => break,
            }
        }
        Ok(at)
    }

    /// Where the next whole record begins on a line that is broken before it.
    fn next_start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let rest = bytes.get(from..)?;
        memchr::memmem::find_iter(rest, b"{\"")
            .take(STARTS_MAX)
            .map(|at| from + at)
            .find(|at| mend::scan(bytes, *at).is_ok_and(|value| self.sink.is_record(&value.text)))
    }

    /// The rest of a line that is no value and has none behind it.
    fn broken(
        &mut self,
        offset: u64,
        bytes: &[u8],
        at: usize,
        broken: Break,
        ended: bool,
    ) -> Result<()> {
        let rest = bytes.get(at..).unwrap_or_default();
        let start = offset + at as u64;
        let (class, detail) = match broken {
            Break::EndInString if ended => {
                self.held = Some(Held { offset: start, bytes: rest.to_vec(), lines: 1 });
                return Ok(());
            }
            Break::Syntax(place) => {
                let column = place.saturating_sub(at) + 1;
                (DamageClass::InvalidJson, format!("no JSON from byte {column} on"))
            }
            _ if ended => (DamageClass::TornLine, "the line ends inside a record".to_owned()),
            _ => (DamageClass::TornTail, "the file ends inside a record".to_owned()),
        };
        self.tell(class, start, rest.len(), 0, detail)
    }

    /// A line behind one that ended inside a string: a record of its own, or the rest of the string.
    fn join(&mut self, mut held: Held, offset: u64, bytes: &[u8], ended: bool) -> Result<()> {
        if self.offer_whole(offset, bytes)? == Verdict::Taken {
            return self.torn(&held, DamageClass::TornLine);
        }
        let before = held.bytes.len();
        held.bytes.push(b'\n');
        held.bytes.extend_from_slice(bytes);
        held.lines += 1;
        match mend::scan(&held.bytes, 0) {
            Ok(_) => return self.pieces(held.offset, &held.bytes, ended),
            Err(Break::EndInString)
                if ended
                    && held.lines < JOINED_LINES_MAX
                    && held.bytes.len() < JOINED_BYTES_MAX =>
            {
                self.held = Some(held);
                return Ok(());
            }
            Err(_) => {}
        }
        held.bytes.truncate(before);
        self.torn(&held, DamageClass::TornLine)?;
        self.alone(offset, bytes, ended)
    }

    fn too_long(&mut self, offset: u64, bytes: u64, only_nul: bool) -> Result<()> {
        if let Some(held) = self.held.take() {
            self.torn(&held, DamageClass::TornLine)?;
        }
        let (class, detail) = if only_nul {
            (DamageClass::NulRun, "bytes of NUL".into())
        } else {
            let max = super::lines::LINE_BYTES_MAX;
            (DamageClass::LineTooLong, format!("a line has at most {max} bytes").into())
        };
        self.sink.flaw(Flaw { class, offset, bytes, recovered: 0, detail })
    }

    fn end(mut self) -> Result<()> {
        match self.held.take() {
            Some(held) => self.torn(&held, DamageClass::TornTail),
            None => Ok(()),
        }
    }

    fn torn(&mut self, held: &Held, class: DamageClass) -> Result<()> {
        let detail = if class == DamageClass::TornTail {
            "the file ends inside a string"
        } else {
            "the line ends inside a string"
        };
        self.tell(class, held.offset, held.bytes.len(), 0, detail)
    }

    fn tell(
        &mut self,
        class: DamageClass,
        offset: u64,
        bytes: usize,
        recovered: u64,
        detail: impl Into<Cow<'static, str>>,
    ) -> Result<()> {
        let (bytes, detail) = (bytes as u64, detail.into());
        self.sink.flaw(Flaw { class, offset, bytes, recovered, detail })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::format::Payload;

    /// Takes objects with an `id`, and writes down what it is told.
    #[derive(Default)]
    struct Notes(Vec<String>);

    #[derive(Deserialize)]
    struct Numbered {
        id: u32,
    }

    impl Sink for Notes {
        fn record(&mut self, found: &Found<'_>) -> Result<Verdict> {
            let Ok(value) = serde_json::from_str::<serde_json::Value>(found.text) else {
                return Ok(Verdict::Unfit);
            };
            let Some(numbered) =
                value.is_object().then(|| serde_json::from_value::<Numbered>(value).ok()).flatten()
            else {
                return Ok(Verdict::Foreign(DamageClass::WrongType, String::new()));
            };
            if Payload::from_json(found.text).is_err() {
                return Ok(Verdict::Unfit);
            }
            self.0.push(format!("{}@{}+{}", numbered.id, found.offset, found.raw.len()));
            Ok(Verdict::Taken)
        }

        fn is_record(&self, text: &str) -> bool {
            serde_json::from_str::<Numbered>(text).is_ok()
        }

        fn flaw(&mut self, flaw: Flaw) -> Result<()> {
            let Flaw { class, offset, bytes, recovered, .. } = flaw;
            self.0.push(format!("{class}@{offset}+{bytes}/{recovered}"));
            Ok(())
        }
    }

    fn notes(bytes: &[u8]) -> String {
        let mut notes = Notes::default();
        read_records(bytes, &mut notes).unwrap();
        notes.0.join(" ")
    }

    fn check(bytes: impl AsRef<[u8]>, expect: &str) {
        let bytes = bytes.as_ref();
        assert_eq!(notes(bytes), expect, "{}", String::from_utf8_lossy(bytes));
    }

    /// Goal: ordinary files are read without a word. Method: line ends of both kinds, blank lines, no last line feed.
    #[test]
    fn whole_files() {
        check("", "");
        check("{\"id\":1}\n{\"id\":2}\n", "1@0+8 2@9+8");
        check("{\"id\":1}\r\n\r\n {\"id\":2} \r\n", "1@0+8 2@13+8");
        check("\n\n{\"id\":1}", "1@2+8");
    }

    /// Goal: a torn record is told apart by what follows it, and what follows is taken. Method: the same beginning of
    /// a record at the end of the file, of a line, and glued to a whole one.
    #[test]
    fn torn_records() {
        check("{\"id\":1}\n{\"id\":2,\"x\":\"ab", "1@0+8 torn_tail@9+15/0");
        check("{\"id\":1}\n{\"id\":2,\"x\":\"ab\n", "1@0+8 torn_tail@9+15/0");
        check("{\"id\":1}\n{\"id\":2,", "1@0+8 torn_tail@9+8/0");
        check("{\"id\":2,\"x\":\"ab\n{\"id\":2}\n", "2@16+8 torn_line@0+15/0");
        check("{\"id\":2,\n{\"id\":2}\n", "torn_line@0+8/0 2@9+8");
        check("{\"id\":2,\"x\":\"ab{\"id\":3}\n", "torn_glued@0+15/0 3@15+8");
        check("{\"id\":2,\"x\":{\"y\":[{\"id\":3}{\"id\":4}\n", "torn_glued@0+18/0 3@18+8 4@26+8");
        check(
            "{\"id\":1}{\"id\":2,\"x{\"id\":3}{\"id\":4",
            "1@0+8 torn_glued@8+10/0 3@18+8 torn_tail@26+7/0",
        );
    }

    /// Goal: a file that is cut anywhere gives its whole records and at most one torn tail. Method: every prefix.
    #[test]
    fn every_prefix() {
        let text = "{\"id\":1,\"x\":\"a\\u00e9\"}\n{\"id\":2,\"y\":[1,{\"z\":null}]}\n{\"id\":3}\n";
        let ends = [22, 50, 59];
        for cut in 0..=text.len() {
            let got = notes(&text.as_bytes()[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let taken = got.split(' ').filter(|note| note.starts_with(['1', '2', '3'])).count();
            assert_eq!(taken, whole, "{cut}: {got}");
            let last = ends.iter().rev().find(|end| **end <= cut).map_or(0, |end| end + 1);
            assert_eq!(got.contains("torn_tail"), cut > last, "{cut}: {got}");
            assert_eq!(
                got.split(' ').filter(|note| !note.is_empty()).count(),
                whole + usize::from(cut > last)
            );
        }
    }

    /// Goal: whole records that share a line are all taken. Method: two and three of them, with blanks and NULs.
    #[test]
    fn glued_records() {
        check("{\"id\":1}{\"id\":2}\n", "1@0+8 2@8+8 glued@0+16/2");
        check("{\"id\":1} {\"id\":2}{\"id\":3}", "1@0+8 2@9+8 3@17+8 glued@0+25/3");
        check("{\"id\":1}\0\0\0{\"id\":2}\n", "1@0+8 nul_run@8+3/0 2@11+8 glued@0+19/2");
    }

    /// Goal: a record whose string holds raw line feeds is one record, and a torn one before whole ones is none.
    /// Method: the string over two and four lines, with a blank one, and lines that look alike but do not fit.
    #[test]
    fn raw_line_feeds() {
        check("{\"id\":1,\"x\":\"a\nb\"}\n{\"id\":2}\n", "1@0+18 raw_newline@0+18/1 2@19+8");
        check("{\"id\":1,\"x\":\"a\n\nb\nc\"}\n", "1@0+21 raw_newline@0+21/1");
        check("{\"id\":1,\"x\":\"a\nplain words\n{\"id\":2}\n", "2@27+8 torn_line@0+26/0");
        check(
            "{\"id\":1,\"x\":\"a\nplain \"words\"\n{\"id\":2}\n",
            "torn_line@0+14/0 invalid_json@15+13/0 2@29+8",
        );
        check(
            "{\"id\":1,\"x\":\"a\nb\"}{\"id\":2}\n",
            "1@0+18 raw_newline@0+18/1 2@18+8 glued@0+26/2",
        );
    }

    /// Goal: bytes that are no text and escapes that are no character are mended and told. Method: one record each.
    #[test]
    fn mended_records() {
        check(b"{\"id\":1,\"x\":\"\xff\xfe\"}\n", "1@0+17 invalid_utf8@13+2/1");
        check("{\"id\":1,\"x\":\"\\ud83d\"}\n", "1@0+21 lone_surrogate@13+6/1");
        check("{\"id\":1,\"x\":\"a\tb\0\"}\n", "1@0+19 raw_control@14+1/1 nul_run@16+1/1");
        check("{\"id\":1,\"x\":1e999}\n", "1@0+18 number_out_of_range@12+5/1");
        check("{\"id\":2,\"id\":1}\n", "1@0+15 duplicate_key@8+4/1");
        check("\u{feff}{\"id\":1}\n", "byte_order_mark@0+3/1 1@3+8");
    }

    /// Goal: what is no record is told and ends nothing. Method: JSON that is no record, no JSON, runs of NUL.
    #[test]
    fn no_records() {
        check(
            "\"massive error\"\n{\"silly\":1}\n42\n[1]\n{\"id\":1}\n",
            "wrong_type@0+15/0 wrong_type@16+11/0 wrong_type@28+2/0 wrong_type@31+3/0 1@35+8",
        );
        check("{this is no json}\n{\"id\":1}\n", "invalid_json@0+17/0 1@18+8");
        check("{\"id\":1}\n\0\0\0\0\n\0\0", "1@0+8 nul_run@9+4/0 nul_run@14+2/0");
    }
}
