//! What cannot be read of a log, counted while it is folded.

use std::collections::BTreeMap;

use crate::format::Fields;
use crate::id::Seq;
use crate::store::Damage;

use super::{Digestible, Projection};

/// The damaged ranges that a fold met, by file and offset. One that is told again is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<(String, u64), Option<(Seq, Seq)>>);

impl Losses {
    /// How many ranges there are.
    #[must_use]
    pub fn ranges(&self) -> u64 {
        u64::try_from(self.0.len()).unwrap_or(u64::MAX)
    }

    /// How many events lay in them, as far as it is known.
    #[must_use]
    pub fn events(&self) -> u64 {
        let lost = |(first, last): &(Seq, Seq)| last.0.saturating_sub(first.0).saturating_add(1);
        self.0.values().flatten().map(lost).fold(0, u64::saturating_add)
    }
}

impl Projection for Losses {
    fn apply(&mut self, _: &Fields<'_>) {}

    fn gap(&mut self, damage: &Damage) {
        self.0.insert((damage.file.clone(), damage.offset), damage.seqs);
    }
}

impl Digestible for Losses {
    type Digest = Self;

    fn take(&mut self, digest: Self) {
        self.0.extend(digest.0);
    }
}
