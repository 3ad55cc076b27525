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
pub(super) fn digits(text: [u8; 8]) -> Option<u32> {
    let [a, b, c, d, e, f, g, h] = text.map(|byte| LOWER_HEX[usize::from(byte)]);
    let wrong = (a | b | c | d | e | f | g | h) & NO_DIGIT;
    let pair = |high: u8, low: u8| high << 4 | low;
    (wrong == 0).then(|| u32::from_be_bytes([pair(a, b), pair(c, d), pair(e, f), pair(g, h)]))
}

const NO_DIGIT: u8 = 0xF0;

/// The value of each byte as a lower-case hexadecimal digit.
const LOWER_HEX: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit as usize] as usize] = digit;
        digit += 1;
    }
    table
};
