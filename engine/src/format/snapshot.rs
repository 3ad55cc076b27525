//! The file of a snapshot: a header that says whose state it is and as of which line, and the state.

use uuid::Uuid;

use super::checksum::crc32;
use crate::id::{Crc, Seq, StoreId};

const MAGIC: [u8; 8] = *b"annalss1";

/// Bytes of the header before the name.
const FIXED: usize = 60;

/// The longest name of a projection.
const NAME_MAX: usize = 32;

/// The most bytes that a header has.
pub const HEADER_MAX: usize = FIXED + NAME_MAX + 4;

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The projection.
    pub projection: String,
    /// The store.
    pub store: StoreId,
    /// The form of the state and the fold that made it.
    pub schema: u64,
    /// The position of the last event in the state.
    pub seq: Seq,
    /// The checksum of its line.
    pub crc: Crc,
    /// How many bytes the state has.
    pub bytes: u64,
    /// CRC-32 of the state.
    pub check: Crc,
}

impl Header {
    /// The bytes of the header, which stand before those of the state.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_MAX);
        out.extend(MAGIC);
        out.extend(self.store.0.as_bytes());
        out.extend(self.schema.to_le_bytes());
        out.extend(self.seq.0.to_le_bytes());
        out.extend(self.bytes.to_le_bytes());
        out.extend(self.crc.0.to_le_bytes());
        out.extend(self.check.0.to_le_bytes());
        out.extend(u32::try_from(self.projection.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend(self.projection.as_bytes());
        out.extend(crc32(&out).0.to_le_bytes());
        out
    }

    /// Reads a header from the beginning of a file, and tells how many bytes it has; `None` when it is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let name_len = usize::try_from(word(56)?).ok().filter(|len| *len <= NAME_MAX)?;
        let end = FIXED + name_len;
        if !bytes.starts_with(&MAGIC) || word(end)? != crc32(bytes.get(..end)?).0 {
            return None;
        }
        let header = Self {
            projection: std::str::from_utf8(bytes.get(FIXED..end)?).ok()?.to_owned(),
            store: StoreId(Uuid::from_bytes(*bytes.get(8..)?.first_chunk()?)),
            schema: long(24)?,
            seq: Seq(long(32)?),
            bytes: long(40)?,
            crc: Crc(word(48)?),
            check: Crc(word(52)?),
        };
        Some((header, end + 4))
    }
}

/// The file name of a snapshot.
#[must_use]
pub fn file_name(projection: &str, seq: Seq) -> String {
    format!("{projection}-{:020}.snap", seq.0)
}

/// The position in the file name of a snapshot of this projection.
#[must_use]
pub fn file_seq(name: &str, projection: &str) -> Option<Seq> {
    let digits = name.strip_prefix(projection)?.strip_prefix('-')?.strip_suffix(".snap")?;
    let fits = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| digits.parse().ok().map(Seq)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            projection: "sessions".into(),
            store: StoreId(Uuid::from_u128(7)),
            schema: 0x0102_0304_0506_0708,
            seq: Seq(42),
            crc: Crc(0x9f1c_2b7a),
            bytes: 3,
            check: Crc(1),
        }
    }

    /// Goal: a header is read as it was written, and nothing else is read as one. Method: each bit flipped, each
    /// beginning of it, and lengths of a name that no file has.
    #[test]
    fn one_form() {
        let bytes = header().encode();
        assert_eq!(Header::decode(&bytes), Some((header(), bytes.len())));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&flipped), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Header::decode(&bytes[..len]), None, "{len} bytes");
        }
    }

    /// Goal: the files of one projection are told from those of another and from all else. Method: names of both kinds.
    #[test]
    fn names() {
        let name = file_name("sessions", Seq(134_077));
        assert_eq!(name, "sessions-00000000000000134077.snap");
        assert_eq!(file_seq(&name, "sessions"), Some(Seq(134_077)));
        for other in ["usage", "session", "sessions-0"] {
            assert_eq!(file_seq(&name, other), None, "{other}");
        }
        for name in ["sessions-1.snap", "sessions-+0000000000000000001.snap", "lock"] {
            assert_eq!(file_seq(name, "sessions"), None, "{name}");
        }
    }
}
