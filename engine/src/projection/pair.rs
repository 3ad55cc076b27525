//! Two folds at once: one reading of the log serves both, and neither sees the other.

use crate::format::Fields;
use crate::store::Damage;

use super::{Digestible, Folded, Projection};

/// The fold that sees nothing.
impl Projection for () {
    fn apply(&mut self, _: &Fields<'_>) {}

    fn gap(&mut self, _: &Damage) {}
}

impl<A: Projection, B: Projection> Projection for (A, B) {
    fn apply(&mut self, event: &Fields<'_>) {
        self.0.apply(event);
        self.1.apply(event);
    }

    fn gap(&mut self, damage: &Damage) {
        self.0.gap(damage);
        self.1.gap(damage);
    }
}

impl<A: Digestible, B: Digestible> Digestible for (A, B) {
    type Digest = (A::Digest, B::Digest);

    fn take(&mut self, digest: Self::Digest) {
        self.0.take(digest.0);
        self.1.take(digest.1);
    }
}

impl<A, B> Folded<(A, B)> {
    /// The first fold as one by itself, and the state of the second.
    #[must_use]
    pub fn split(self) -> (Folded<A>, B) {
        let (first, second) = self.state;
        (Folded { state: first, cursor: self.cursor, events: self.events }, second)
    }
}
