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
    let parts = OPEN.iter().chain(&hex(crc)).chain(CLOSE).copied().collect::<Vec<_>>();
    for (to, from) in out.iter_mut().zip(parts) {
        *to = from;
    }
    out
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
pub(crate) fn unhex(digits: &[u8]) -> Option<Crc> {
    if digits.len() != 8 {
        return None;
    }
    let value = digits.iter().try_fold(0_u32, |sum, b| {
        let digit = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' => b - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u32::from(digit))
    })?;
    Some(Crc(value))
}
