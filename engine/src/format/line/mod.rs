//! The line codec: one event is one line is one JSON object in one spelling. Reading needs no JSON parser and no
//! allocation; what is not spelled exactly as [`encode`] spells it is not a line of ours.

mod head;

use std::borrow::Cow;

use super::payload::BlobRef;
use super::{checksum, name};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind};
use crate::id::{Crc, EventId, Seq, Version};

pub(super) use head::take_number;

/// The longest line in bytes, its line feed included.
pub const LINE_MAX: usize = 1 << 20;

/// The shortest line in bytes, its line feed included: so many lines a segment of some size has at the most.
pub const LINE_MIN: usize = 184;

/// What a line says, its checksum apart. Strings are raw here and encoded on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields<'a> {
    /// The position in the log.
    pub seq: Seq,
    /// When it was appended.
    pub time: Timestamp,
    /// The highest position known to be durable.
    pub durable: Seq,
    /// The checksum of the line before.
    pub prev: Crc,
    /// The stream, raw.
    pub stream: Cow<'a, str>,
    /// The position in the stream.
    pub version: Version,
    /// What happened.
    pub kind: &'a str,
    /// The identity.
    pub id: EventId,
    /// `(i, n)` in a batch of several.
    pub batch: Option<(u32, u32)>,
    /// The cause.
    pub cause: Option<EventId>,
    /// The correlation.
    pub flow: Option<EventId>,
    /// Where `content` lies when it is not in `data`.
    pub blob: Option<BlobRef>,
    /// The payload: a minified JSON object.
    pub data: &'a str,
}

/// A verified line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// What it says.
    pub fields: Fields<'a>,
    /// Its checksum.
    pub crc: Crc,
}

/// Why bytes are no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFault {
    /// The trailer is absent or is not the checksum of what stands before it.
    Checksum,
    /// The checksum holds, but this field is not in our form: another program wrote the line.
    Foreign(&'static str),
    /// No line feed within [`LINE_MAX`] bytes.
    TooLong,
}

/// Appends the line of `fields` to `out` and returns its checksum. The length is not limited here: the caller checks
/// what was appended against [`LINE_MAX`].
pub fn encode(fields: &Fields<'_>, out: &mut Vec<u8>) -> Crc {
    let start = out.len();
    out.extend_from_slice(b"{\"seq\":");
    push_number(out, fields.seq.0);
    out.extend_from_slice(b",\"time\":\"");
    out.extend_from_slice(&fields.time.to_text());
    out.extend_from_slice(b"\",\"durable\":");
    push_number(out, fields.durable.0);
    out.extend_from_slice(b",\"prev\":\"");
    out.extend_from_slice(&checksum::hex(fields.prev));
    out.extend_from_slice(b"\",\"stream\":\"");
    name::encode(&fields.stream, out);
    out.extend_from_slice(b"\",\"version\":");
    push_number(out, fields.version.0);
    out.extend_from_slice(b",\"type\":\"");
    out.extend_from_slice(fields.kind.as_bytes());
    push_id(out, b"\",\"id\":\"", fields.id);
    out.push(b'"');
    if let Some((index, count)) = fields.batch {
        out.extend_from_slice(b",\"batch\":\"");
        push_number(out, u64::from(index));
        out.push(b'/');
        push_number(out, u64::from(count));
        out.push(b'"');
    }
    if let Some(cause) = fields.cause {
        push_id(out, b",\"cause\":\"", cause);
        out.push(b'"');
    }
    if let Some(flow) = fields.flow {
        push_id(out, b",\"flow\":\"", flow);
        out.push(b'"');
    }
    if let Some(blob) = &fields.blob {
        out.extend_from_slice(b",\"blob\":{\"sha256\":\"");
        out.extend_from_slice(blob.sha256_hex().as_bytes());
        out.extend_from_slice(b"\",\"bytes\":");
        push_number(out, blob.bytes);
        out.push(b'}');
    }
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(fields.data.as_bytes());
    checksum::seal(out, start)
}

/// Reads a whole line, its line feed included.
///
/// # Errors
/// The fault, when it is not exactly what [`encode`] writes.
pub fn decode(line: &[u8]) -> std::result::Result<Line<'_>, LineFault> {
    if line.len() > LINE_MAX {
        return Err(LineFault::TooLong);
    }
    let (body, crc) = checksum::open(line).ok_or(LineFault::Checksum)?;
    let fields = decode_body(body)?;
    Ok(Line { fields, crc })
}

/// Reads a whole line that is known to be UTF-8, its line feed included.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_text(line: &str) -> std::result::Result<Line<'_>, LineFault> {
    if line.len() > LINE_MAX {
        return Err(LineFault::TooLong);
    }
    let (body, crc) = checksum::open(line.as_bytes()).ok_or(LineFault::Checksum)?;
    // The trailer that was compared is ASCII, so that the text can be cut before it.
    let body = line.get(..body.len()).ok_or(LineFault::Checksum)?;
    Ok(Line { fields: head::read(body)?, crc })
}

fn decode_body(body: &[u8]) -> std::result::Result<Fields<'_>, LineFault> {
    match simdutf8::basic::from_utf8(body) {
        Ok(text) => head::read(text),
        Err(_) => Err(fault_of_bytes(body)),
    }
}

/// What is wrong with a line that is not UTF-8: the field where it stops to be, or one before.
#[cold]
fn fault_of_bytes(body: &[u8]) -> LineFault {
    let valid = std::str::from_utf8(body).map_or_else(|e| e.valid_up_to(), str::len);
    let text = body.get(..valid).and_then(|valid| std::str::from_utf8(valid).ok());
    text.and_then(|text| head::read(text).err()).unwrap_or(LineFault::Foreign("data"))
}

/// Refuses a line that is too long, with what to do.
pub fn too_large(bytes: usize) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!("the event makes a line of {bytes} bytes; a line has at most {LINE_MAX}"),
    )
}

pub(super) fn push_number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn push_id(out: &mut Vec<u8>, label: &[u8], id: EventId) {
    out.extend_from_slice(label);
    let mut text = [0; 36];
    out.extend_from_slice(id.0.hyphenated().encode_lower(&mut text).as_bytes());
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// Goal: no line is shorter than the constant says. Method: the line in which every field is as short as it can be.
    #[test]
    fn the_shortest_line() {
        let fields = Fields {
            seq: Seq(1),
            time: Timestamp::EPOCH,
            durable: Seq::ZERO,
            prev: Crc::NONE,
            stream: Cow::Borrowed("a"),
            version: Version(1),
            kind: "t",
            id: EventId(Uuid::nil()),
            batch: None,
            cause: None,
            flow: None,
            blob: None,
            data: "{}",
        };
        let mut line = Vec::new();
        encode(&fields, &mut line);
        assert_eq!(line.len(), LINE_MIN);
        assert_eq!(decode(&line).map(|line| line.fields), Ok(fields));
    }
}
