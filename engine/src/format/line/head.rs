//! Reading the head of a line, field by field, in the one order and the one spelling that a writer gives it.

use std::borrow::Cow;

use uuid::Uuid;

use super::{Fields, LineFault};
use crate::clock::Timestamp;
use crate::format::payload::BlobRef;
use crate::format::{checksum, name};
use crate::id::{Crc, EventId, EventType, Seq, StreamName, Version};

/// Reads a line without its trailer.
#[inline]
pub(super) fn read(body: &str) -> std::result::Result<Fields<'_>, LineFault> {
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
    let id = head.field(b"\",\"id\":\"", Head::quoted_id).ok_or(LineFault::Foreign("id"))?;
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

/// Reads the hyphenated form in lower case and no other (RFC 9562, section 4).
fn read_uuid(text: &[u8; 36]) -> Option<Uuid> {
    let (high, rest) = text.split_first_chunk::<8>()?;
    let (h1, a, rest) = group(rest)?;
    let (h2, b, rest) = group(rest)?;
    let (h3, c, rest) = group(rest)?;
    let (h4, rest) = rest.split_first()?;
    let (d, rest) = rest.split_first_chunk::<4>()?;
    let lowest = checksum::digits(*rest.first_chunk::<8>()?)?;
    let both = |[a, b, c, d]: [u8; 4], [e, f, g, h]: [u8; 4]| [a, b, c, d, e, f, g, h];
    let high = checksum::digits(*high)?;
    let middle = checksum::digits(both(a, b))?;
    let lower = checksum::digits(both(c, *d))?;
    let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let hyphens = [h1, h2, h3, *h4] == *b"----";
    hyphens.then(|| Uuid::from_u64_pair(wide(high, middle), wide(lower, lowest)))
}

/// A hyphen, or what stands in its place, and the four digits behind it.
fn group(rest: &[u8]) -> Option<(u8, [u8; 4], &[u8])> {
    let ([hyphen, digits @ ..], rest) = rest.split_first_chunk::<5>()?;
    Some((*hyphen, *digits, rest))
}

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);

/// Takes decimal digits without a leading zero from the front.
#[inline]
pub(in crate::format) fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let Some(word) = rest.first_chunk::<8>() else { return take_long_number(rest) };
    let digits = u64::from_le_bytes(*word) ^ ZEROS;
    // A byte that is no digit has its highest bit set here; it may carry into those behind it, which do not count.
    let others = (digits.wrapping_add(u64::from_le_bytes([0x76; 8])) | digits) & HIGH_BITS;
    let count = others.trailing_zeros() / 8;
    if others == 0 {
        return take_long_number(rest);
    }
    if count == 0 || count > 1 && word.first() == Some(&b'0') {
        return None;
    }
    *rest = rest.get(count as usize..)?;
    // The digits in front of zeros, and then two, four and eight of them put together at a time.
    let digits = digits << (64 - 8 * count);
    let twos = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = twos.wrapping_mul(100).wrapping_add(twos >> 16) & 0x0000_FFFF_0000_FFFF;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF)
}

/// The same for a number of any length.
fn take_long_number(rest: &mut &[u8]) -> Option<u64> {
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, behind) = rest.split_at_checked(count)?;
    if digits.is_empty() || (digits.len() > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    *rest = behind;
    digits.iter().try_fold(0_u64, |sum, b| sum.checked_mul(10)?.checked_add(u64::from(b - b'0')))
}

/// What is left of a line's head. Every method takes what it names from the front, or gives `None`.
struct Head<'a>(&'a str);

impl<'a> Head<'a> {
    #[inline]
    fn literal<const N: usize>(&mut self, text: &[u8; N]) -> Option<()> {
        let first = self.0.as_bytes().first_chunk::<N>()?;
        if first != text {
            return None;
        }
        self.0 = self.0.get(N..)?;
        Some(())
    }

    #[inline]
    fn field<T, const N: usize>(
        &mut self,
        label: &[u8; N],
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.literal(label)?;
        read(self)
    }

    #[inline]
    fn optional<T, const N: usize>(
        &mut self,
        label: &[u8; N],
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.literal(label) {
            Some(()) => read(self).map(Some),
            None => Some(None),
        }
    }

    #[inline]
    fn take(&mut self, count: usize) -> Option<&'a str> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn take_bytes<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let bytes = self.0.as_bytes().first_chunk::<N>()?;
        self.0 = self.0.get(N..)?;
        Some(bytes)
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut rest = self.0.as_bytes();
        let number = take_number(&mut rest)?;
        self.0 = self.0.get(self.0.len() - rest.len()..)?;
        Some(number)
    }

    #[inline]
    fn time(&mut self) -> Option<Timestamp> {
        Timestamp::from_text(self.take_bytes::<27>()?)
    }

    #[inline]
    fn crc(&mut self) -> Option<Crc> {
        checksum::digits(*self.take_bytes::<8>()?).map(Crc)
    }

    #[inline]
    fn stream(&mut self) -> Option<Cow<'a, str>> {
        let plain = name::plain(self.0.as_bytes());
        if self.0.as_bytes().get(plain) == Some(&b'"') {
            let fits = (1..=StreamName::BYTES_MAX).contains(&plain);
            return self.take(plain).filter(|_| fits).map(Cow::Borrowed);
        }
        let end = memchr::memchr(b'"', self.0.as_bytes())?;
        let raw = name::decode(self.take(end)?.as_bytes())?;
        (!raw.is_empty() && raw.len() <= StreamName::BYTES_MAX).then_some(raw)
    }

    #[inline]
    fn kind(&mut self) -> Option<&'a str> {
        let fits = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let count = self.0.bytes().take_while(fits).count();
        self.take(count).filter(|_| (1..=EventType::BYTES_MAX).contains(&count))
    }

    #[inline]
    fn quoted_id(&mut self) -> Option<EventId> {
        let id = read_uuid(self.take_bytes::<36>()?)?;
        self.literal(b"\"")?;
        Some(EventId(id))
    }

    fn batch(&mut self) -> Option<(u32, u32)> {
        let index = u32::try_from(self.number()?).ok()?;
        self.literal(b"/")?;
        let count = u32::try_from(self.number()?).ok()?;
        self.literal(b"\"")?;
        (1 <= index && index <= count && count > 1).then_some((index, count))
    }

    fn blob(&mut self) -> Option<BlobRef> {
        let sha256 = BlobRef::read_hex(self.take_bytes::<64>()?)?;
        self.literal(b"\",\"bytes\":")?;
        let bytes = self.number()?;
        self.literal(b"}")?;
        Some(BlobRef { sha256, bytes })
    }

    /// The rest: an object. Its inside was checked when it was appended and is covered by the checksum.
    #[inline]
    fn data(&mut self) -> Option<&'a str> {
        let text = std::mem::take(&mut self.0);
        (text.starts_with('{') && text.ends_with('}')).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a number is read the same however long it is and whatever stands behind it. Method: numbers around every
    /// length, by the way that takes eight bytes at once and by the one that takes one after the other.
    #[test]
    fn numbers() {
        let mut texts: Vec<String> =
            ["", "0", "00", "01", "07,", "-1", "x", "/", ":"].map(str::to_owned).into();
        for length in 0..=20 {
            let power = 10_u128.pow(length);
            texts.extend([power - 1, power, power + 1, power * 7].map(|n| n.to_string()));
        }
        texts.extend([u64::MAX.to_string(), (u128::from(u64::MAX) + 1).to_string()]);
        for text in texts {
            for behind in [
                "",
                ",",
                "\",\"time\":\"",
                "/12345678",
                ":::::::::",
                "\u{e9}\u{ff}",
                "\0\0\0\0\0\0\0\0",
            ] {
                let whole = format!("{text}{behind}");
                let (mut fast, mut slow) = (whole.as_bytes(), whole.as_bytes());
                let found = take_number(&mut fast);
                assert_eq!(found, take_long_number(&mut slow), "{whole}");
                if found.is_some() {
                    assert_eq!(fast, slow, "{whole}");
                }
            }
        }
    }
}
