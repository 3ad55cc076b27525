//! Where a fold of the past ends.

use crate::clock::Timestamp;
use crate::id::Seq;
use crate::store::Item;

/// Where a fold of the past ends. The order is the log's: what follows the first event that lies beyond is not seen,
/// whatever time it bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// With this position.
    Seq(Seq),
    /// Before the first event that was recorded after this instant.
    Time(Timestamp),
}

impl Until {
    /// Whether the end lies before an item. Nobody knows when lost events were recorded: the end lies before those only
    /// that come after a position.
    #[must_use]
    pub fn is_before(self, item: &Item) -> bool {
        match (self, item) {
            (Self::Seq(last), Item::Record(record)) => record.seq > last,
            (Self::Seq(last), Item::Gap(damage)) => {
                damage.seqs.is_some_and(|(first, _)| first > last)
            }
            (Self::Time(last), Item::Record(record)) => record.time > last,
            (Self::Time(_), Item::Gap(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Damage, DamageClass};

    fn gap(seqs: Option<(Seq, Seq)>) -> Item {
        Item::Gap(Box::new(Damage {
            class: DamageClass::Corrupt,
            file: String::new(),
            offset: 7,
            bytes: 1,
            seqs,
            touched: Vec::new(),
            accepted: false,
            detail: String::new(),
        }))
    }

    /// Goal: losses behind the end are not counted, and those that may lie before it are. Method: gaps on both sides of
    /// a position, over it, and of unknown place.
    #[test]
    fn losses_at_the_end() {
        let until = Until::Seq(Seq(3));
        assert!(!until.is_before(&gap(Some((Seq(1), Seq(2))))));
        assert!(!until.is_before(&gap(Some((Seq(3), Seq(9))))));
        assert!(until.is_before(&gap(Some((Seq(4), Seq(9))))));
        assert!(!until.is_before(&gap(None)));
        assert!(!Until::Time(Timestamp::EPOCH).is_before(&gap(Some((Seq(4), Seq(9))))));
    }
}
