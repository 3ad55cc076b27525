//! The slots of the lock files: two blocks of 512 bytes, written in turn, so that one of them is always whole. A block
//! is a JSON object on one line with a generation and the trailer of a log line, filled up with spaces.

use super::{checksum, line};
use crate::id::{Crc, Seq};

/// The size of one block in bytes.
pub const BLOCK: usize = 512;

/// The end of what was written: in `lock.append`, by the holder of that lock alone. A hint: it may be ahead of or
/// behind the log after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// What a slot holds: fields of a JSON object in a fixed order. Slots are read and written at every append, so they go
/// without a parser.
pub trait Value: Copy {
    /// Appends the fields, each with a comma before it.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads exactly what [`Value::write`] writes.
    fn read(fields: &mut Fields<'_>) -> Option<Self>;
}

/// What is left of a block's fields.
#[derive(Debug)]
pub struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn label(&mut self, label: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(b",\"")?.strip_prefix(label.as_bytes())?;
        self.0 = self.0.strip_prefix(b"\":")?;
        Some(())
    }

    fn number(&mut self, label: &str) -> Option<u64> {
        self.label(label)?;
        line::take_number(&mut self.0)
    }

    fn flag(&mut self, label: &str) -> Option<bool> {
        self.label(label)?;
        let (value, text): (_, &[u8]) = match self.0.first()? {
            b't' => (true, b"true"),
            _ => (false, b"false"),
        };
        self.0 = self.0.strip_prefix(text)?;
        Some(value)
    }
}

fn push_number(out: &mut Vec<u8>, label: &str, value: u64) {
    push_label(out, label);
    line::push_number(out, value);
}

fn push_label(out: &mut Vec<u8>, label: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(label.as_bytes());
    out.extend_from_slice(b"\":");
}

impl Value for Written {
    fn write(&self, out: &mut Vec<u8>) {
        push_number(out, "segment", self.segment);
        push_number(out, "offset", self.offset);
        push_number(out, "seq", self.seq);
        push_number(out, "check", u64::from(self.check));
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            segment: fields.number("segment")?,
            offset: fields.number("offset")?,
            seq: fields.number("seq")?,
            check: u32::try_from(fields.number("check")?).ok()?,
        })
    }
}

impl Value for Durable {
    fn write(&self, out: &mut Vec<u8>) {
        push_number(out, "segment", self.segment);
        push_number(out, "offset", self.offset);
        push_number(out, "seq", self.seq);
        push_number(out, "check", u64::from(self.check));
        push_label(out, "syncing");
        out.extend_from_slice(if self.syncing { b"true" } else { b"false" });
        push_number(out, "halts", self.halts);
    }

    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        Some(Self {
            segment: fields.number("segment")?,
            offset: fields.number("offset")?,
            seq: fields.number("seq")?,
            check: u32::try_from(fields.number("check")?).ok()?,
            syncing: fields.flag("syncing")?,
            halts: fields.number("halts")?,
        })
    }
}

const OPEN: &[u8] = b"{\"generation\":";

/// The bytes of one block.
#[must_use]
pub fn encode<T: Value>(generation: u64, value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(BLOCK);
    out.extend_from_slice(OPEN);
    line::push_number(&mut out, generation);
    value.write(&mut out);
    checksum::seal(&mut out, 0);
    out.resize(BLOCK, b' ');
    out
}

/// The generation and the value of one block; `None` when it is not whole.
#[must_use]
pub fn decode<T: Value>(block: &[u8]) -> Option<(u64, T)> {
    let end = memchr::memchr(b'\n', block)? + 1;
    let (line, fill) = block.split_at_checked(end)?;
    if block.len() != BLOCK || fill.iter().any(|b| *b != b' ') {
        return None;
    }
    let (body, _) = checksum::open(line)?;
    let mut rest = body.strip_prefix(OPEN)?;
    let generation = line::take_number(&mut rest)?;
    let mut fields = Fields(rest);
    let value = T::read(&mut fields)?;
    fields.0.is_empty().then_some((generation, value))
}

/// The newest of the whole blocks, with the number (0 or 1) of the other one, which is to be written next.
#[must_use]
pub fn newest<T: Value>(file: &[u8]) -> Option<(u64, T, u64)> {
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

    /// The form is JSON with these names, which other programs read, and nothing but that form is taken.
    #[test]
    fn is_json_of_one_form() {
        let value = Durable { segment: 1, offset: 2, seq: 3, check: 4, syncing: false, halts: 5 };
        let block = encode(6, &value);
        let text = std::str::from_utf8(&block).unwrap();
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        let known = r#"{"generation":6,"segment":1,"offset":2,"seq":3,"check":4,"syncing":false,"halts":5,"crc":"#;
        assert!(text.starts_with(known), "{text}");
        assert_eq!(json["halts"], 5);
        assert_eq!(decode::<Written>(&block), None);
        for other in ["1e0", "01", "-1", "", "18446744073709551616"] {
            let mut bytes = format!(
                "{{\"generation\":{other},\"segment\":1,\"offset\":2,\"seq\":3,\"check\":4"
            )
            .into_bytes();
            checksum::seal(&mut bytes, 0);
            bytes.resize(BLOCK, b' ');
            assert_eq!(decode::<Written>(&bytes), None, "{other}");
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
