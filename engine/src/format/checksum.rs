//! The checksum of a line and its text form: `,"crc":"` + 8 lower-case hexadecimal digits + `"}` + a line feed, always
//! the last 19 bytes.

use crate::id::Crc;

/// How many bytes the trailer has.
pub const TRAILER: usize = 19;

const OPEN: &[u8; 8] = b",\"crc\":\"";
const CLOSE: &[u8; 3] = b"\"}\n";

/// CRC-32 (IEEE 802.3, as zlib and gzip compute it) of the bytes.
#[must_use]
pub fn crc32(bytes: &[u8]) -> Crc {
    Crc(crc32fast::hash(bytes))
}

/// The trailer of a line with this checksum.
#[must_use]
pub fn trailer(crc: Crc) -> [u8; TRAILER] {
    let mut out = [0; TRAILER];
    let digits = hex(crc);
    let parts = OPEN.iter().chain(&digits).chain(CLOSE).copied();
    out.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
    out
}

/// What these bytes state as the trailer of a line; `None` when they are none.
#[must_use]
pub fn trailer_crc(trailer: &[u8]) -> Option<Crc> {
    unhex(trailer.strip_prefix(OPEN)?.strip_suffix(CLOSE)?)
}

/// Appends the trailer for everything from `start` on.
pub(crate) fn seal(out: &mut Vec<u8>, start: usize) -> Crc {
    let crc = crc32(out.get(start..).unwrap_or_default());
    out.extend_from_slice(OPEN);
    out.extend_from_slice(&hex(crc));
    out.extend_from_slice(CLOSE);
    crc
}

/// Splits a whole line into the bytes that are covered and the checksum that its trailer states. Every fixed byte is
/// compared; `None` when one differs or the checksum is not the bytes'.
pub(crate) fn open(line: &[u8]) -> Option<(&[u8], Crc)> {
    let (body, trailer) = line.split_at_checked(line.len().checked_sub(TRAILER)?)?;
    let (start, rest) = trailer.split_first_chunk::<8>()?;
    let (digits, end) = rest.split_first_chunk::<8>()?;
    let crc = crc32(body);
    (start == OPEN && end == CLOSE && *digits == hex(crc)).then_some((body, crc))
}

/// The 8 digits, as the line before states them in `prev`.
pub(crate) fn hex(crc: Crc) -> [u8; 8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = [0; 8];
    for (i, to) in out.iter_mut().enumerate() {
        *to = DIGITS[(crc.0 >> (28 - 4 * i)) as usize & 15];
    }
    out
}

/// Reads 8 lower-case digits.
pub(crate) fn unhex(text: &[u8]) -> Option<Crc> {
    digits(text.try_into().ok()?).map(Crc)
}

/// The number that 8 lower-case hexadecimal digits are.
#[inline]
pub(super) fn digits(text: [u8; 8]) -> Option<u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_be_bytes(text);
    // Letters have a bit that digits do not; what remains of a letter counts from 1.
    let letters = (word >> 6) & ONES;
    let values = (word & (ONES * 0x0F)) + letters * 9;
    let halves = (word & (ONES * 0xF0)) ^ ((ONES + letters) * 0x30);
    let kinds = ((values + ONES * 6) & (ONES * 0x10)) ^ (letters << 4);
    let wrong = halves | kinds | (values & (ONES * 0x10));
    let pairs = (values | (values >> 4)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs | (pairs >> 8)) & 0x0000_FFFF_0000_FFFF;
    let number = u32::try_from((fours | (fours >> 16)) & 0xFFFF_FFFF).ok()?;
    (wrong == 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only lower-case digits are digits. Method: every byte in every place, between others that are.
    #[test]
    fn every_byte_as_a_digit() {
        for place in 0..8 {
            for byte in 0..=u8::MAX {
                let mut text = *b"9a0f1b8c";
                text[place] = byte;
                let lower = byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                let known = std::str::from_utf8(&text).ok().filter(|_| lower);
                let known = known.and_then(|text| u32::from_str_radix(text, 16).ok());
                assert_eq!(digits(text), known, "{byte} at {place}");
            }
        }
    }
}
