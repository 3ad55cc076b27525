//! One file of the simulated disk: what processes see (the page cache), what the platter holds, and everything in
//! between that a power loss may leave. It knows no names and no processes.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use super::choose::Choose;
use super::fault::{Cache, Persisted, SyncFault};

/// The unit in which data reaches the platter.
pub(super) const PIECE: usize = 512;

type Piece = [u8; PIECE];

/// A file's data.
#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    /// What every process reads.
    cache: Vec<u8>,
    /// What the platter holds; a piece that is absent is zeros.
    platter: BTreeMap<usize, Piece>,
    /// The size on the platter.
    platter_len: usize,
    /// Everything before this was covered by a sync that succeeded.
    synced_len: usize,
    /// The pieces that a write-back would put on the platter.
    dirty: BTreeSet<usize>,
    /// What each piece held, oldest first, since it was last synced: write-back may have put any of it on the platter.
    versions: BTreeMap<usize, Vec<Piece>>,
    /// The sizes that the file had since it was last synced.
    sizes: Vec<usize>,
    /// How many write-back errors there were, ever.
    errors: u64,
    /// Some descriptor has been told of the last one.
    error_seen: bool,
    /// Mode 0400, now and on the platter.
    read_only: bool,
    platter_read_only: bool,
}

impl Data {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.cache
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(super) fn make_read_only(&mut self) {
        self.read_only = true;
    }

    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.sizes.is_empty()
    }

    /// The error count that a new descriptor begins with: an error that nobody was told of is still to be told
    /// (Linux, `errseq_sample`).
    pub(super) fn error_sample(&self) -> u64 {
        if self.error_seen { self.errors } else { self.errors.saturating_sub(1) }
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (before, end) = (self.cache.len(), offset + bytes.len());
        if end > before {
            self.cache.resize(end, 0);
            self.sizes.push(end);
        }
        self.cache[offset..end].copy_from_slice(bytes);
        self.touch(offset.min(before), end);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        let before = self.cache.len();
        self.cache.resize(len, 0);
        if len != before {
            self.sizes.push(len);
        }
        if len < before {
            self.dirty.retain(|piece| piece * PIECE < len);
            if !len.is_multiple_of(PIECE) {
                self.touch(len, len);
            }
        } else {
            self.touch(before, len);
        }
    }

    /// Puts all of it on the platter, or fails as told; then answers as the descriptor's error count demands.
    pub(super) fn sync(&mut self, seen: &mut u64, fault: Option<SyncFault>, rng: &mut Rng) -> bool {
        let direct = match fault {
            Some(fault) => {
                self.fail_sync(fault, rng);
                !fault.recorded
            }
            None => {
                self.persist_all();
                false
            }
        };
        if self.errors != *seen {
            *seen = self.errors;
            self.error_seen = true;
            return false;
        }
        !direct
    }

    /// Background write-back of one dirty piece; a failure loses it and is told at the next sync.
    pub(super) fn write_back(&mut self, fails: bool, rng: &mut Rng) {
        let Some(piece) = rng.choice(self.dirty.iter().copied().collect::<Vec<_>>()) else {
            return;
        };
        self.dirty.remove(&piece);
        if fails {
            self.versions.remove(&piece);
            self.errors += 1;
            self.error_seen = false;
            return;
        }
        self.persist(piece);
        if rng.bool() {
            let end = self.cache.len().min((piece + 1) * PIECE);
            self.platter_len = self.platter_len.max(end);
        }
    }

    /// What the file is after a power loss.
    pub(super) fn after_power_loss(&self, choose: &mut dyn Choose) -> Self {
        let sizes = self.possible_sizes();
        let len = sizes[choose.pick(sizes.len())];
        let mut image = vec![0; len];
        for (piece, to) in image.chunks_mut(PIECE).enumerate() {
            let options = self.possible_pieces(piece);
            let from = options[choose.pick(options.len())];
            to.copy_from_slice(&from[..to.len()]);
        }
        let modes = [self.platter_read_only, self.read_only];
        let modes = if modes[0] == modes[1] { &modes[..1] } else { &modes[..] };
        let read_only = modes[choose.pick(modes.len())];
        Self { read_only, platter_read_only: read_only, ..Self::at_rest(image) }
    }

    /// A file that lies on the platter.
    pub(super) fn at_rest(bytes: Vec<u8>) -> Self {
        let mut data = Self { cache: bytes, error_seen: true, ..Self::default() };
        data.dirty = (0..data.cache.len().div_ceil(PIECE)).collect();
        data.persist_all();
        data
    }

    /// Changes bytes behind everybody's back, in the cache and on the platter.
    pub(super) fn damage(&mut self, offset: usize, bytes: &[u8]) {
        self.cache[offset..offset + bytes.len()].copy_from_slice(bytes);
        for piece in offset / PIECE..(offset + bytes.len()).div_ceil(PIECE) {
            self.persist(piece);
        }
    }

    /// Oldest first: the size on the platter, the others since, and sizes between the smallest and the greatest.
    fn possible_sizes(&self) -> Vec<usize> {
        let Some(newest) = self.sizes.last().copied() else {
            return vec![self.platter_len];
        };
        let all = || self.sizes.iter().copied().chain([self.platter_len]);
        let (low, high) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        let mut between: BTreeSet<usize> = all().collect();
        between.extend(
            (low / PIECE + 1..=high / PIECE).map(|piece| piece * PIECE).filter(|n| *n < high),
        );
        between.insert(low.midpoint(high));
        between.remove(&self.platter_len);
        between.remove(&newest);
        let mut sizes = vec![self.platter_len];
        sizes.extend(between);
        if newest != self.platter_len {
            sizes.push(newest);
        }
        sizes
    }

    /// Oldest first: what the platter holds, zeros where nothing was synced, and what was written since.
    fn possible_pieces(&self, piece: usize) -> Vec<Piece> {
        let old = self.platter.get(&piece).copied().unwrap_or([0; PIECE]);
        let Some((newest, earlier)) = self.versions.get(&piece).and_then(|all| all.split_last())
        else {
            return vec![old];
        };
        let mut options = vec![old];
        let zeros = (piece * PIECE >= self.synced_len).then_some(&[0; PIECE]);
        for option in zeros.into_iter().chain(earlier) {
            if option != newest && !options.contains(option) {
                options.push(*option);
            }
        }
        if *newest != old || options.len() > 1 {
            options.push(*newest);
        }
        options
    }

    fn fail_sync(&mut self, fault: SyncFault, rng: &mut Rng) {
        let reaches = |rng: &mut Rng| match fault.persisted {
            Persisted::Nothing => false,
            Persisted::Some => rng.bool(),
            Persisted::Everything => true,
        };
        for piece in self.dirty.clone() {
            if reaches(rng) {
                self.persist(piece);
            }
        }
        if reaches(rng) {
            self.platter_len = self.cache.len();
        }
        match fault.cache {
            Cache::Dirty => {}
            Cache::Clean => self.forget(),
            Cache::Reverted => {
                self.cache = self.platter_image();
                self.forget();
            }
        }
        if fault.recorded {
            self.errors += 1;
            self.error_seen = false;
        }
    }

    /// Takes everything for clean. The sizes stay open: the platter's may be the old one or any since.
    fn forget(&mut self) {
        self.dirty.clear();
        self.versions.clear();
        if self.platter_len == self.cache.len() {
            self.sizes.clear();
        }
    }

    fn platter_image(&self) -> Vec<u8> {
        let mut image = vec![0; self.platter_len];
        for (piece, to) in image.chunks_mut(PIECE).enumerate() {
            if let Some(from) = self.platter.get(&piece) {
                to.copy_from_slice(&from[..to.len()]);
            }
        }
        image
    }

    fn persist_all(&mut self) {
        for piece in std::mem::take(&mut self.dirty) {
            self.persist(piece);
        }
        let len = self.cache.len();
        self.platter.retain(|piece, _| piece * PIECE < len);
        self.versions.clear();
        self.sizes.clear();
        self.platter_len = len;
        self.synced_len = len;
        self.platter_read_only = self.read_only;
    }

    fn persist(&mut self, piece: usize) {
        self.platter.insert(piece, self.cached(piece));
    }

    fn cached(&self, piece: usize) -> Piece {
        let mut out = [0; PIECE];
        let from = self.cache.get(piece * PIECE..).unwrap_or_default();
        let count = from.len().min(PIECE);
        out[..count].copy_from_slice(&from[..count]);
        out
    }

    /// Makes the pieces of `from..to` dirty, that of `from` at least.
    fn touch(&mut self, from: usize, to: usize) {
        for piece in from / PIECE..to.div_ceil(PIECE).max(from / PIECE + 1) {
            let now = self.cached(piece);
            self.dirty.insert(piece);
            self.versions.entry(piece).or_default().push(now);
        }
    }
}
