//! The slots of the lock files: two blocks of 512 bytes, written in turn, so that one of them is always whole. A block
//! is a JSON object on one line with a generation and the trailer of a log line, filled up with spaces.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::checksum;
use crate::id::{Crc, Seq};

/// The size of one block in bytes.
pub const BLOCK: usize = 512;

/// The end of what was written: in `lock.append`, by the holder of that lock alone. A hint: it may be ahead of or
/// behind the log after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The segment's first position.
    pub segment: u64,
    /// Its length in bytes.
    pub offset: u64,
    /// The last position.
    pub seq: u64,
    /// The checksum of the last line.
    pub check: u32,
}

/// What is known to be on stable storage: in `lock.sync`, by the holder of that lock alone. A floor: it was written
/// after a sync that succeeded, so it holds in every boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durable {
    /// The segment's first position.
    pub segment: u64,
    /// How many of its bytes.
    pub offset: u64,
    /// The last position.
    pub seq: u64,
    /// The checksum of that line.
    pub check: u32,
    /// A sync was begun and its end is not known.
    pub syncing: bool,
    /// How often a second sync in a row failed, ever. A handle that was opened before the last one takes no appends.
    pub halts: u64,
}

impl Written {
    /// The last position.
    #[must_use]
    pub const fn last(&self) -> Seq {
        Seq(self.seq)
    }

    /// The checksum of the last line.
    #[must_use]
    pub const fn crc(&self) -> Crc {
        Crc(self.check)
    }
}

#[derive(Serialize, Deserialize)]
struct Block<T> {
    generation: u64,
    #[serde(flatten)]
    value: T,
}

/// The bytes of one block.
#[must_use]
pub fn encode<T: Serialize>(generation: u64, value: &T) -> Vec<u8> {
    let mut out = serde_json::to_vec(&Block { generation, value }).unwrap_or_default();
    out.pop();
    checksum::seal(&mut out, 0);
    out.resize(BLOCK, b' ');
    out
}

/// The generation and the value of one block; `None` when it is not whole.
#[must_use]
pub fn decode<T: DeserializeOwned>(block: &[u8]) -> Option<(u64, T)> {
    let end = memchr::memchr(b'\n', block)? + 1;
    let (line, fill) = block.split_at_checked(end)?;
    if block.len() != BLOCK || fill.iter().any(|b| *b != b' ') {
        return None;
    }
    let (body, _) = checksum::open(line)?;
    let mut json = body.to_vec();
    json.push(b'}');
    let block: Block<T> = serde_json::from_slice(&json).ok()?;
    Some((block.generation, block.value))
}

/// The newest of the whole blocks, with the number (0 or 1) of the other one, which is to be written next.
#[must_use]
pub fn newest<T: DeserializeOwned>(file: &[u8]) -> Option<(u64, T, u64)> {
    let (blocks, _) = file.as_chunks::<BLOCK>();
    let whole = blocks.iter().zip([1, 0]).filter_map(|(block, other)| {
        let (generation, value) = decode(block)?;
        Some((generation, value, other))
    });
    whole.max_by_key(|(generation, ..)| *generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bit of a block counts, the fill too.
    #[test]
    fn every_flip_is_seen() {
        let value = Durable {
            segment: 1,
            offset: 4_096,
            seq: 17,
            check: 0xdead_beef,
            syncing: true,
            halts: 2,
        };
        let block = encode(9, &value);
        assert_eq!(decode(&block), Some((9, value)));
        for bit in 0..BLOCK * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode::<Durable>(&flipped), None, "bit {bit}");
        }
    }

    /// The whole block with the higher generation counts, wherever it stands.
    #[test]
    fn newest_whole_block() {
        let (old, new) =
            (Written { seq: 1, ..Written::default() }, Written { seq: 2, ..Written::default() });
        let mut file = [encode(4, &new), encode(3, &old)].concat();
        assert_eq!(
            newest::<Written>(&file).map(|(g, v, other)| (g, v.seq, other)),
            Some((4, 2, 1))
        );
        file[3] ^= 1;
        assert_eq!(
            newest::<Written>(&file).map(|(g, v, other)| (g, v.seq, other)),
            Some((3, 1, 0))
        );
        assert_eq!(newest::<Written>(&[]), None);
    }
}
