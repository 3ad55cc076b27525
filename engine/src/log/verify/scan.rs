//! What one segment says by itself: its lines, its damage, and how far each stream goes in it. Segments are scanned
//! apart from each other, so that several may be at once; what lies between them is judged where they are joined.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::format::{Line, control};
use crate::id::{Crc, Seq, StoreId, Version};
use crate::storage::{Advice, Storage};
use crate::store::Damage;

use crate::log::recover::{Judged, Verdict};
use crate::log::visit::{At, SegmentVisit};
use crate::log::walk::{Link, Span, Step};
use crate::log::{blobs, gaps, segments};

/// What a segment says, read as if it followed a certain line.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) last: Option<(Seq, Crc, Timestamp)>,
    /// The highest position that a line states to be durable.
    pub(super) durable: Seq,
    /// The offset behind the last line that verified.
    pub(super) last_end: Option<u64>,
    pub(super) accepted: Vec<control::Gap>,
    pub(super) streams: HashMap<Box<str>, Run, rustc_hash::FxBuildHasher>,
    /// In the order of the segment.
    pub(super) found: Vec<Found>,
    /// What the next segment has to follow.
    pub(super) reached: Link,
    /// How the segment was judged, when it is the active one.
    pub(super) judged: Option<Box<Judged>>,
}

/// What was found at some place.
#[derive(Debug)]
pub(super) enum Found {
    Damage(Damage),
    Jump(Jump),
}

/// A stream whose versions do not go on from one line to its next.
#[derive(Debug)]
pub(super) struct Jump {
    pub(super) stream: Box<str>,
    /// The versions that are missing, first and last.
    pub(super) versions: (Version, Version),
    /// The positions of the two lines.
    pub(super) between: (Seq, Seq),
}

impl Jump {
    /// The jump from one line of a stream to its next; `None` when nothing is missing.
    pub(super) fn between(stream: &str, from: (Version, Seq), to: (Version, Seq)) -> Option<Self> {
        (to.0 != from.0.next()).then(|| Self {
            stream: stream.into(),
            versions: (from.0.next(), Version(to.0.0.saturating_sub(1))),
            between: (from.1, to.1),
        })
    }
}

/// The first and the last line of a stream in a segment.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) first: (Version, Seq),
    pub(super) last: (Version, Seq),
    /// How much was found before the first line.
    pub(super) order: usize,
}

/// A segment as it lies in the list of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) store: StoreId,
    pub(super) first: Seq,
    pub(super) next: Option<Seq>,
    /// What is known to be durable without the log's lines.
    pub(super) floor: Seq,
}

impl Job {
    /// Scans the segment as what follows `link`.
    pub(super) fn scan(&self, storage: &dyn Storage, link: Link) -> Result<Scanned> {
        let start = At { offset: 0, link, ahead: 0 };
        let Self { store, first, next, floor } = *self;
        let visit = SegmentVisit { store, first, next, durable: Seq::ZERO };
        if next.is_none() {
            return scan_active(storage, SegmentVisit { durable: floor, ..visit }, start);
        }
        let bytes = segments::map(storage, first)?;
        bytes.advise(Advice::Whole);
        let mut scanned = Scanned::new(link);
        scanned.bytes = bytes.len() as u64;
        scanned.steps(storage, &visit, &bytes, start)?;
        Ok(scanned)
    }
}

/// The active segment is judged by the recovery table, as an opening judges it.
fn scan_active(storage: &dyn Storage, mut visit: SegmentVisit, start: At) -> Result<Scanned> {
    let floor = visit.durable;
    let judge = |scanned: &mut Scanned| {
        Judged::read_each(storage, &visit, start, floor, &mut |span, line| {
            scanned.line(storage, span, line);
        })
    };
    let mut scanned = Scanned::new(start.link);
    let mut judged = judge(&mut scanned)?;
    // An append may have been on its way while the bytes were read.
    for _ in 0..3 {
        if matches!(judged.verdict(), Verdict::Clean) {
            break;
        }
        let mut other = Scanned::new(start.link);
        let again = judge(&mut other)?;
        if again.bytes() == judged.bytes() {
            break;
        }
        (judged, scanned) = (again, other);
    }
    scanned.reached = judged.link();
    if matches!(judged.verdict(), Verdict::Damaged(_)) {
        visit.durable = judged.durable;
        scanned = Scanned::new(start.link);
        scanned.steps(storage, &visit, judged.bytes(), start)?;
    }
    scanned.bytes = judged.bytes().len() as u64;
    scanned.judged = Some(Box::new(judged));
    Ok(scanned)
}

impl Scanned {
    fn new(link: Link) -> Self {
        Self {
            bytes: 0,
            lines: 0,
            last: None,
            durable: Seq::ZERO,
            last_end: None,
            accepted: Vec::new(),
            streams: HashMap::default(),
            found: Vec::new(),
            reached: link,
            judged: None,
        }
    }

    fn steps(
        &mut self,
        storage: &dyn Storage,
        visit: &SegmentVisit,
        bytes: &[u8],
        start: At,
    ) -> Result<()> {
        let reached = visit.steps(storage, bytes, start, &mut |step| {
            match step {
                Step::Line(span, line) => self.line(storage, span, line),
                Step::Break(found) => {
                    let damage = gaps::damage(visit.first, &found, &[]);
                    self.found.push(Found::Damage(damage));
                }
            }
            Ok(true)
        })?;
        self.reached = reached.at.link;
        Ok(())
    }

    fn line(&mut self, storage: &dyn Storage, span: Span, line: &Line<'_>) {
        let fields = &line.fields;
        self.lines += 1;
        self.last = Some((fields.seq, line.crc, fields.time));
        self.durable = self.durable.max(fields.durable);
        self.last_end = Some(span.end());
        if fields.stream == control::STREAM && fields.kind == control::GAP {
            self.accepted.extend(serde_json::from_str::<control::Gap>(fields.data));
        }
        self.found.extend(blobs::damage(storage, line).map(Found::Damage));
        let here = (fields.version, fields.seq);
        let stream = fields.stream.as_ref();
        if let Some(run) = self.streams.get_mut(stream) {
            let jump = Jump::between(stream, run.last, here);
            run.last = here;
            self.found.extend(jump.map(Found::Jump));
        } else {
            let run = Run { first: here, last: here, order: self.found.len() };
            self.streams.insert(stream.into(), run);
        }
    }
}
