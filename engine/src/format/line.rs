//! The line codec: one event is one line is one JSON object in one spelling. Reading needs no JSON parser and no
//! allocation; what is not spelled exactly as [`encode`] spells it is not a line of ours.

use std::borrow::Cow;

use uuid::Uuid;

use super::payload::BlobRef;
use super::{checksum, name};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind};
use crate::id::{Crc, EventId, EventType, Seq, StreamName, Version};

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

fn decode_body(body: &[u8]) -> std::result::Result<Fields<'_>, LineFault> {
    let mut head = Head(body);
    head.literal(b"{\"seq\":").ok_or(LineFault::Foreign("seq"))?;
    let seq = head.number().filter(|n| *n > 0).map(Seq).ok_or(LineFault::Foreign("seq"))?;
    let time = head.field(b",\"time\":\"", Head::time).ok_or(LineFault::Foreign("time"))?;
    let durable =
        head.field(b"\",\"durable\":", Head::number).ok_or(LineFault::Foreign("durable"))?;
    let prev = head.field(b",\"prev\":\"", Head::crc).ok_or(LineFault::Foreign("prev"))?;
    let stream =
        head.field(b"\",\"stream\":\"", Head::stream).ok_or(LineFault::Foreign("stream"))?;
    let version =
        head.field(b"\",\"version\":", Head::number).ok_or(LineFault::Foreign("version"))?;
    let kind = head.field(b",\"type\":\"", Head::kind).ok_or(LineFault::Foreign("type"))?;
    let id = head.field(b"\",\"id\":\"", Head::id).ok_or(LineFault::Foreign("id"))?;
    head.literal(b"\"").ok_or(LineFault::Foreign("id"))?;
    let batch = head.optional(b",\"batch\":\"", Head::batch).ok_or(LineFault::Foreign("batch"))?;
    let cause =
        head.optional(b",\"cause\":\"", Head::quoted_id).ok_or(LineFault::Foreign("cause"))?;
    let flow = head.optional(b",\"flow\":\"", Head::quoted_id).ok_or(LineFault::Foreign("flow"))?;
    let blob =
        head.optional(b",\"blob\":{\"sha256\":\"", Head::blob).ok_or(LineFault::Foreign("blob"))?;
    let data = head.field(b",\"data\":", Head::data).ok_or(LineFault::Foreign("data"))?;
    // Positions and versions count from 1, and what a writer knows to be durable was written before.
    if seq.0 > Seq::LAST.0 {
        return Err(LineFault::Foreign("seq"));
    }
    if durable >= seq.0 {
        return Err(LineFault::Foreign("durable"));
    }
    if version == 0 || version > Seq::LAST.0 {
        return Err(LineFault::Foreign("version"));
    }
    let (durable, version) = (Seq(durable), Version(version));
    Ok(Fields {
        seq,
        time,
        durable,
        prev,
        stream,
        version,
        kind,
        id,
        batch,
        cause,
        flow,
        blob,
        data,
    })
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

/// Reads the hyphenated form in lower case and no other (RFC 9562, section 4).
fn read_uuid(text: &[u8; 36]) -> Option<Uuid> {
    let [a, b, c, d, e, f, g, h, h1, i, j, k, l, h2, m, n, o, p, h3, q, r, s, t, h4, rest @ ..] =
        text;
    let high = checksum::digits([*a, *b, *c, *d, *e, *f, *g, *h])?;
    let middle = checksum::digits([*i, *j, *k, *l, *m, *n, *o, *p])?;
    let [u0, u1, u2, u3, low @ ..] = rest;
    let lower = checksum::digits([*q, *r, *s, *t, *u0, *u1, *u2, *u3])?;
    let lowest = checksum::digits(*low)?;
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let hyphens = [*h1, *h2, *h3, *h4] == *b"----";
    hyphens.then(|| Uuid::from_u64_pair(wide(high, middle), wide(lower, lowest)))
}

/// Takes decimal digits without a leading zero from the front.
pub(super) fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, behind) = rest.split_at_checked(count)?;
    if digits.is_empty() || (digits.len() > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    *rest = behind;
    digits.iter().try_fold(0_u64, |sum, b| sum.checked_mul(10)?.checked_add(u64::from(b - b'0')))
}

/// What is left of a line's head. Every method takes what it names from the front, or gives `None`.
struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    fn literal<const N: usize>(&mut self, text: &[u8; N]) -> Option<()> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        (first == text).then_some(())
    }

    fn field<T, const N: usize>(
        &mut self,
        label: &[u8; N],
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.literal(label)?;
        read(self)
    }

    fn optional<T, const N: usize>(
        &mut self,
        label: &[u8; N],
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.0.split_first_chunk::<N>() {
            Some((first, rest)) if first == label => {
                self.0 = rest;
                read(self).map(Some)
            }
            _ => Some(None),
        }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        take_number(&mut self.0)
    }

    fn time(&mut self) -> Option<Timestamp> {
        Timestamp::from_text(self.take(27)?)
    }

    fn crc(&mut self) -> Option<Crc> {
        let (text, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        checksum::digits(*text).map(Crc)
    }

    fn stream(&mut self) -> Option<Cow<'a, str>> {
        let plain = name::plain(self.0);
        if self.0.get(plain) == Some(&b'"') {
            let text = std::str::from_utf8(self.take(plain)?).ok()?;
            return (1..=StreamName::BYTES_MAX).contains(&plain).then_some(Cow::Borrowed(text));
        }
        let end = memchr::memchr(b'"', self.0)?;
        let raw = name::decode(self.take(end)?)?;
        (!raw.is_empty() && raw.len() <= StreamName::BYTES_MAX).then_some(raw)
    }

    fn kind(&mut self) -> Option<&'a str> {
        let fits = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let count = self.0.iter().take_while(fits).count();
        let text = std::str::from_utf8(self.take(count)?).ok()?;
        (1..=EventType::BYTES_MAX).contains(&count).then_some(text)
    }

    fn id(&mut self) -> Option<EventId> {
        let (text, rest) = self.0.split_first_chunk::<36>()?;
        self.0 = rest;
        read_uuid(text).map(EventId)
    }

    fn quoted_id(&mut self) -> Option<EventId> {
        let id = self.id()?;
        self.literal(b"\"")?;
        Some(id)
    }

    fn batch(&mut self) -> Option<(u32, u32)> {
        let index = u32::try_from(self.number()?).ok()?;
        self.literal(b"/")?;
        let count = u32::try_from(self.number()?).ok()?;
        self.literal(b"\"")?;
        (1 <= index && index <= count && count > 1).then_some((index, count))
    }

    fn blob(&mut self) -> Option<BlobRef> {
        let sha256 = BlobRef::read_hex(self.take(64)?)?;
        self.literal(b"\",\"bytes\":")?;
        let bytes = self.number()?;
        self.literal(b"}")?;
        Some(BlobRef { sha256, bytes })
    }

    /// The rest: an object. Its inside was checked when it was appended and is covered by the checksum.
    fn data(&mut self) -> Option<&'a str> {
        let text = simdutf8::basic::from_utf8(std::mem::take(&mut self.0)).ok()?;
        (text.starts_with('{') && text.ends_with('}')).then_some(text)
    }
}

#[cfg(test)]
mod tests {
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
