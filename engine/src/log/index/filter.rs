//! A Bloom filter over the hashes of ids, in blocks of one cache line (Putze, Sanders and Singler, "Cache-, Hash- and
//! Space-Efficient Bloom Filters", 2007). It says of nearly every new id with one look that no index has it, so that an
//! append does not ask each of them.

/// The bits of a block.
const BLOCK: u64 = 512;

/// How many bits of its block an id sets.
const PROBES: u32 = 6;

/// Bits for each id; with these about one answer in a hundred is a needless "perhaps".
const BITS_PER_ID: u64 = 12;

#[derive(Debug)]
pub(in crate::log) struct Filter {
    blocks: Vec<[u64; 8]>,
    count: u64,
}

impl Filter {
    /// An empty filter with room for so many ids.
    pub(in crate::log) fn with_room(ids: u64) -> Self {
        let blocks = (ids.max(1_024) * BITS_PER_ID).div_ceil(BLOCK);
        Self { blocks: vec![[0; 8]; usize::try_from(blocks).unwrap_or(usize::MAX)], count: 0 }
    }

    /// Whether more ids than it was made for are in it.
    pub(in crate::log) fn is_full(&self) -> bool {
        self.count * BITS_PER_ID > self.blocks.len() as u64 * BLOCK
    }

    pub(in crate::log) fn insert(&mut self, hash: u64) {
        let at = self.block_of(hash);
        if let Some(block) = self.blocks.get_mut(at) {
            for (word, bit) in probes(hash) {
                block[word] |= bit;
            }
            self.count += 1;
        }
    }

    /// Whether the id may have been put in; `false` is certain.
    pub(in crate::log) fn may_have(&self, hash: u64) -> bool {
        let block = self.blocks.get(self.block_of(hash));
        block.is_none_or(|block| probes(hash).all(|(word, bit)| block[word] & bit != 0))
    }

    fn block_of(&self, hash: u64) -> usize {
        let count = self.blocks.len() as u128;
        usize::try_from((u128::from(hash) * count) >> 64).unwrap_or_default()
    }
}

/// The word of its block and the bit in it for each probe, from bits of the hash that do not choose the block.
fn probes(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..PROBES).map(move |probe| {
        let bits = mixed >> (9 * probe) & (BLOCK - 1);
        (usize::try_from(bits / 64).unwrap_or_default() % 8, 1 << (bits % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u64) -> u64 {
        super::super::hash(&n.to_le_bytes())
    }

    /// Goal: what was put in is never denied, and nearly all else is. Method: the filter at its fullest.
    #[test]
    fn denies_only_what_is_not_there() {
        const COUNT: u64 = 20_000;
        let mut filter = Filter::with_room(COUNT);
        (0..COUNT).for_each(|n| filter.insert(hash(n)));
        assert!(!filter.is_full());
        assert!((0..COUNT).all(|n| filter.may_have(hash(n))));
        let wrong = (COUNT..2 * COUNT).filter(|n| filter.may_have(hash(*n))).count();
        assert!(wrong < 600, "{wrong} of {COUNT} were not denied");
        (COUNT..2 * COUNT).for_each(|n| filter.insert(hash(n)));
        assert!(filter.is_full());
    }
}
