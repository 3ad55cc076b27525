//! A file that is one JSON object with a list of records in it. The object without the list is the header; each element
//! of the list is a record, by its own bytes in the file. A file that breaks off gives what is whole of it.

use std::io::{Read, Seek, SeekFrom};

use super::damage::DamageClass;
use super::lines::LINE_BYTES_MAX;
use super::mend::{self, Break, Mend, Value};
use super::pursuit::Tail;
use super::records::{Flaw, Found, Sink, Verdict, read_value, tell_mends};
use crate::error::{Error, Result};

/// Reads a file, and returns how long it is, in bytes.
///
/// # Errors
/// What reading the file meets, and what the sink says.
pub(crate) fn read_document<R: Read>(
    reader: R,
    list: &str,
    tail: Tail,
    sink: &mut dyn Sink,
) -> Result<u64> {
    let failed = |e| Error::io("the file cannot be read", e);
    let mut bytes = Vec::new();
    let limit = LINE_BYTES_MAX as u64;
    reader.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    let len = bytes.len() as u64;
    if len > limit {
        let detail = "the file is longer than what is held of one".into();
        let class = DamageClass::LineTooLong;
        sink.flaw(Flaw { class, offset: 0, bytes: len, recovered: 0, detail })?;
        return Ok(len);
    }
    let mut start = 0;
    if bytes.starts_with(b"\xef\xbb\xbf") {
        start = 3;
        let (class, detail) = (DamageClass::ByteOrderMark, "a byte order mark".into());
        sink.flaw(Flaw { class, offset: 0, bytes: 3, recovered: 1, detail })?;
    }
    let mut walk = Walk::new(&bytes, start);
    walk.blank();
    start = walk.at;
    if start >= bytes.len() {
        return Ok(len);
    }
    let ended = walk.object(list);
    if tail == Tail::Growing && ended.is_err() {
        // It is being written: it changes again.
        return Ok(len);
    }
    let Walk { at, mut header, mends, elements, .. } = walk;
    header.push('}');
    let raw = bytes.get(start..if ended.is_ok() { at } else { bytes.len() }).unwrap_or_default();
    let found = Found { offset: start as u64, raw, text: &header, scanned: true };
    if let Verdict::Foreign(class, detail) = sink.record(&found)? {
        let (offset, bytes) = (start as u64, raw.len() as u64);
        return sink
            .flaw(Flaw { class, offset, bytes, recovered: 0, detail: detail.into() })
            .map(|()| len);
    }
    tell_mends(start as u64, raw.len(), &mends, sink)?;
    for (from, to) in elements {
        read_value(from as u64, bytes.get(from..to).unwrap_or_default(), sink)?;
        sink.progress(to as u64)?;
    }
    if let Some(flaw) = leftover(&bytes, at, ended) {
        sink.flaw(flaw)?;
    }
    Ok(len)
}

/// The members of the object that a file begins with, as far as its first bytes tell them, without the list.
pub(crate) fn members_of(prefix: &[u8], list: &str) -> String {
    let start = if prefix.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut walk = Walk::new(prefix, start);
    walk.blank();
    // What breaks off is not told.
    let _ = walk.object(list);
    walk.header + "}"
}

/// Whether a file is one object with such a list, and not a line for each record. Reads its beginning, and leaves the
/// file where it was at first.
///
/// # Errors
/// Whatever reading the file meets.
pub(crate) fn is_document(file: &mut (impl Read + Seek), list: &str) -> Result<bool> {
    const BYTES: u64 = 64 << 10;
    let failed = |e| Error::io("the file cannot be read", e);
    let mut prefix = Vec::new();
    file.by_ref().take(BYTES).read_to_end(&mut prefix).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let line = prefix.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut walk = Walk::new(line, if line.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 });
    walk.blank();
    let whole = walk.object(list).is_ok();
    Ok(!whole || walk.has_list)
}

/// What stands behind the last whole piece of the file.
fn leftover(bytes: &[u8], at: usize, ended: Result<(), Break>) -> Option<Flaw> {
    let rest = bytes.get(at..).unwrap_or_default();
    let blank = rest.len() - rest.trim_ascii_start().len();
    let (class, detail) = match ended {
        Ok(()) if rest.trim_ascii().is_empty() => return None,
        Ok(()) => (DamageClass::InvalidJson, "more follows behind the end of the record"),
        Err(Break::Syntax(_)) => (DamageClass::InvalidJson, "no JSON from here on"),
        Err(_) => (DamageClass::TornTail, "the file ends inside a record"),
    };
    let (offset, bytes) = ((at + blank) as u64, (rest.len() - blank) as u64);
    Some(Flaw { class, offset, bytes, recovered: 0, detail: detail.into() })
}

struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The members that do not belong to the list, without the last brace.
    header: String,
    /// What had to be changed in them.
    mends: Vec<Mend>,
    /// The elements of the list: where each begins and ends.
    elements: Vec<(usize, usize)>,
    has_list: bool,
}

impl<'b> Walk<'b> {
    fn new(bytes: &'b [u8], at: usize) -> Self {
        let header = String::from("{");
        Self { bytes, at, header, mends: Vec::new(), elements: Vec::new(), has_list: false }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == 0) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Result<(), Break> {
        self.blank();
        match self.peek() {
            Some(have) if have == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Break::Syntax(self.at)),
            None => Err(Break::End),
        }
    }

    /// Reads a value, and stays in front of it when it breaks off.
    fn value(&mut self) -> Result<Value, Break> {
        self.blank();
        if self.at >= self.bytes.len() {
            return Err(Break::End);
        }
        let value = mend::scan(self.bytes, self.at)?;
        self.at = value.end;
        Ok(value)
    }

    fn object(&mut self, list: &str) -> Result<(), Break> {
        self.take(b'{')?;
        loop {
            self.blank();
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(());
            }
            if self.peek().is_some_and(|byte| byte != b'"') {
                return Err(Break::Syntax(self.at));
            }
            let before = self.at;
            let name = self.value()?.text;
            self.take(b':')?;
            self.blank();
            let is_list = name.get(1..name.len().saturating_sub(1)) == Some(list);
            if is_list && self.peek() == Some(b'[') {
                self.list()?;
            } else {
                let value = self.value().inspect_err(|_| self.at = before)?;
                if self.header.len() > 1 {
                    self.header.push(',');
                }
                self.header.extend([name.as_str(), ":", value.text.as_str()]);
                self.mends.extend(value.mends);
            }
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') | None => {}
                Some(_) => return Err(Break::Syntax(self.at)),
            }
            if self.at >= self.bytes.len() {
                return Err(Break::End);
            }
        }
    }

    fn list(&mut self) -> Result<(), Break> {
        self.take(b'[')?;
        self.has_list = true;
        loop {
            self.blank();
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b',') => self.at += 1,
                _ => {
                    let from = self.at;
                    let to = self.value()?.end;
                    self.elements.push((from, to));
                }
            }
        }
    }
}
