//! A hash of short names: for tables that live briefly, each with a seed of its own, so that nobody can choose names that
//! fall together there; and one that is the same everywhere.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A hash of bytes that never changes.
pub(super) fn fixed(bytes: &[u8]) -> u64 {
    let mut mixed = Mixed(0x243f_6a88_85a3_08d3);
    mixed.write(bytes);
    mixed.finish()
}

/// The seed of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0_u8))
    }
}

impl BuildHasher for Seed {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed(self.0)
    }
}

/// Mixes eight bytes at a time by a multiplication of which both halves are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixed(u64);

impl Mixed {
    fn mix(&mut self, word: u64) {
        let [low, high] = halves(u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15);
        self.0 = low ^ high;
    }
}

fn halves(wide: u128) -> [u64; 2] {
    let bytes = wide.to_le_bytes();
    let (low, high) = bytes.split_at(8);
    [low, high].map(|half| u64::from_le_bytes(half.try_into().unwrap_or_default()))
}

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64).rotate_left(56));
    }

    fn write_u8(&mut self, byte: u8) {
        self.mix(u64::from(byte));
    }
}
