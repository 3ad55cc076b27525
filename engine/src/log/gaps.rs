//! Damage in the words of the store: which events are missing, whose they were, and whether an operator has accepted
//! it.

use crate::error::Result;
use crate::format::scan::{Piece, Scan};
use crate::format::{LOG_DIR, control, segment_path};
use crate::id::Seq;
use crate::storage::{Access, Storage};
use crate::store::{Damage, DamageClass, Touched};

use super::segments;
use super::walk::{Break, Legible};

/// The streams of legible text, with the versions where they can be read.
pub(super) fn touched(legible: &[Legible]) -> Vec<Touched> {
    let touched =
        |(stream, versions): &Legible| Touched { stream: stream.clone(), versions: *versions };
    legible.iter().map(touched).collect()
}

/// A break of the segment `first` as damage.
pub(super) fn damage(first: Seq, found: &Break, accepted: &[control::Gap]) -> Damage {
    let mut damage = Damage {
        class: found.class,
        file: segment_path(first),
        offset: found.offset,
        bytes: found.bytes,
        seqs: found.seqs,
        touched: touched(&found.legible),
        accepted: false,
        detail: found.detail.clone(),
    };
    damage.accepted = accepted.iter().any(|gap| accepts(gap, &damage));
    damage
}

/// Positions that no segment holds.
pub(super) fn missing(seqs: (Seq, Seq)) -> Damage {
    Damage {
        class: DamageClass::Lost,
        file: LOG_DIR.to_owned(),
        offset: 0,
        bytes: 0,
        seqs: Some(seqs),
        touched: Vec::new(),
        accepted: false,
        detail: "no segment holds these positions".to_owned(),
    }
}

/// The line that accepts a damage.
pub(super) fn gap(damage: &Damage, reason: &str) -> control::Gap {
    let (from, to) = damage.seqs.unwrap_or_default();
    control::Gap {
        segment: damage.file.clone(),
        offset: damage.offset,
        bytes: damage.bytes,
        from_seq: from.0,
        to_seq: to.0,
        class: damage.class.code().to_owned(),
        reason: reason.to_owned(),
    }
}

/// Whether a line accepts this very damage, or a wider one.
pub(super) fn accepts(gap: &control::Gap, damage: &Damage) -> bool {
    let inside = gap.offset <= damage.offset
        && damage.offset + damage.bytes <= gap.offset.saturating_add(gap.bytes);
    let seqs = damage.seqs.is_none_or(|(from, to)| gap.from_seq <= from.0 && to.0 <= gap.to_seq);
    gap.segment == damage.file && inside && seqs
}

/// Every `log.gap` of the log. It is asked for only where there is damage, so it may read everything.
pub(super) fn accepted(storage: &dyn Storage) -> Result<Vec<control::Gap>> {
    let mut gaps = Vec::new();
    for first in segments::list(storage)? {
        let file = segments::open(storage, first, Access::Read)?;
        let bytes = segments::read_from(storage, first, &*file, 0)?;
        for (_, _, piece) in Scan::new(&bytes) {
            if let Piece::Line(line) = piece
                && line.fields.kind == control::GAP
                && line.fields.stream == control::STREAM
            {
                gaps.extend(serde_json::from_str::<control::Gap>(line.fields.data));
            }
        }
    }
    Ok(gaps)
}
