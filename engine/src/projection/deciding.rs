//! Deciding under the append lock on a fold that has seen everything.

use crate::clock::Timestamp;
use crate::error::Result;
use crate::store::{Append, Cursor, Decider, Item};

use super::{Folded, Projection};

/// A decision on the state of a projection. It begins with a state that was given out, which it copies where it
/// changes; what it saw is not given out, for it may not be durable.
#[derive(Debug)]
pub struct Deciding<P, D> {
    folded: Folded<P>,
    decide: D,
}

impl<P, D> Deciding<P, D>
where
    P: Projection + Clone,
    D: FnMut(&P, Timestamp) -> Result<Append>,
{
    /// A decision that goes on from this fold. `decide` is pure and may be asked more than once.
    pub fn on(folded: &Folded<P>, decide: D) -> Self {
        Self { folded: folded.clone(), decide }
    }
}

impl<P, D> Decider for Deciding<P, D>
where
    P: Projection + Clone,
    D: FnMut(&P, Timestamp) -> Result<Append>,
{
    fn seen(&self) -> Option<Cursor> {
        self.folded.cursor
    }

    fn apply(&mut self, item: &Item, cursor: &Cursor) {
        match item {
            Item::Record(record) => {
                self.folded.state.apply(&record.fields());
                self.folded.events += 1;
            }
            Item::Gap(damage) => self.folded.state.gap(damage),
        }
        self.folded.cursor = Some(*cursor);
    }

    fn restart(&mut self) {
        self.folded = Folded::default();
    }

    fn decide(&mut self, now: Timestamp) -> Result<Append> {
        (self.decide)(&self.folded.state, now)
    }
}
