//! Visits one segment between its neighbours: its header, its lines, and what is missing before the next one.

use crate::error::{Error, ErrorKind, Result};
use crate::format::{self, LINE_MAX, Line, control, segment_file};
use crate::id::{Seq, StoreId};
use crate::storage::{Access, Storage, read_full};
use crate::store::DamageClass;

use super::segments;
use super::walk::{Break, Link, Step, Walk, classify_rest, legible};

/// A segment of a store as it lies between its neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentVisit {
    pub(super) store: StoreId,
    /// Its first position, which is its name.
    pub(super) first: Seq,
    /// The first position of the segment after it; `None` for the active one.
    pub(super) next: Option<Seq>,
    /// In the active segment, a line that stands alone behind damage is believed up to this position.
    pub(super) durable: Seq,
}

/// A place in a segment between two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) offset: u64,
    pub(super) link: Link,
    /// How many lines of the present batch are still to come.
    pub(super) ahead: u32,
}

/// How far a visit came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// Where it stands; at the end of the segment, `link` is what the next segment follows.
    pub(super) at: At,
    /// Whether there is nothing more in the segment.
    pub(super) done: bool,
}

impl SegmentVisit {
    /// Gives every step of the segment's bytes from a place on, until the sink says `false`. Behind the last line of a
    /// segment that has a successor, what is missing or left over is a break as well.
    pub(super) fn steps(
        &self,
        storage: &dyn Storage,
        bytes: &[u8],
        from: At,
        sink: &mut dyn FnMut(Step<'_>) -> Result<bool>,
    ) -> Result<Reached> {
        let bound = self.bound();
        let start = usize::try_from(from.offset).unwrap_or(usize::MAX);
        let bytes = bytes.get(start..).unwrap_or_default();
        let mut walk = Walk::new(bytes, from.offset, from.link, bound).inside_batch(from.ahead);
        loop {
            let on = if let Some((span, line)) = walk.next_unbroken() {
                if span.offset == 0
                    && let Some(detail) = self.header_fault(storage, &line)?
                {
                    sink(Step::Break(self.whole(bytes, bound, detail)))?;
                    return Ok(self.ended(u64::MAX, Link { seq: bound, crc: None }));
                }
                sink(Step::Line(span, &line))?
            } else if let Some(found) = walk.next_break() {
                sink(Step::Break(found))?
            } else {
                break;
            };
            if !on {
                let at = At { offset: walk.offset(), link: walk.link(), ahead: walk.ahead() };
                return Ok(Reached { at, done: false });
            }
        }
        if self.next.is_some() {
            self.end(&walk, bound, sink)?;
        }
        // Lines may reach beyond the next segment's name when that is a stray or a copy of this one.
        let whole = self.next.is_none() || walk.link().seq >= bound;
        let link = if whole { walk.link() } else { Link { seq: bound, crc: None } };
        Ok(self.ended(walk.offset(), link))
    }

    fn ended(&self, offset: u64, link: Link) -> Reached {
        Reached { at: At { offset, link, ahead: 0 }, done: true }
    }

    /// The last position that can be believed here: before the successor's name, or durable.
    fn bound(&self) -> Seq {
        self.next.map_or(self.durable, |next| Seq(next.0.saturating_sub(1)))
    }

    /// What lies between the last line and the next segment.
    fn end(
        &self,
        walk: &Walk<'_>,
        bound: Seq,
        sink: &mut dyn FnMut(Step<'_>) -> Result<bool>,
    ) -> Result<()> {
        let rest = walk.rest();
        let missing = (walk.link().seq < bound).then(|| (walk.link().seq.next(), bound));
        if rest.is_empty() && missing.is_none() {
            return Ok(());
        }
        let (class, detail) = match (rest.is_empty(), walk.is_sealed()) {
            (true, _) => (DamageClass::Lost, "the segment ends before its last line".into()),
            (false, true) => (DamageClass::Foreign, "bytes stand behind the seal".into()),
            (false, false) => classify_rest(rest),
        };
        sink(Step::Break(Break {
            class,
            offset: walk.offset(),
            bytes: rest.len() as u64,
            seqs: missing,
            legible: legible(rest),
            detail,
        }))?;
        Ok(())
    }

    /// Whether the segment begins with a header of its own, whatever it follows.
    ///
    /// # Errors
    /// `Unsupported` for a format that this program does not know, and what the disk says.
    pub(super) fn has_header(&self, storage: &dyn Storage) -> Result<bool> {
        let file = segments::open(storage, self.first, Access::Read)?;
        let mut bytes = vec![0; LINE_MAX];
        let got = read_full(&*file, &mut bytes, 0)
            .map_err(|e| segments::error(storage, self.first, "read", e))?;
        bytes.truncate(got);
        let link = Link { seq: Seq(self.first.0 - 1), crc: None };
        match Walk::new(&bytes, 0, link, Seq::ZERO).next_unbroken() {
            Some((_, line)) => Ok(self.header_fault(storage, &line)?.is_none()),
            None => Ok(false),
        }
    }

    fn whole(&self, bytes: &[u8], bound: Seq, detail: String) -> Break {
        Break {
            class: DamageClass::Misplaced,
            offset: 0,
            bytes: bytes.len() as u64,
            seqs: (bound >= self.first).then_some((self.first, bound)),
            legible: legible(bytes),
            detail,
        }
    }

    /// What is wrong with `line` as the header of this segment; `None` when nothing is.
    ///
    /// # Errors
    /// `Unsupported` for a format that this program does not know.
    pub(super) fn header_fault(
        &self,
        storage: &dyn Storage,
        line: &Line<'_>,
    ) -> Result<Option<String>> {
        if line.fields.kind != control::OPENED || line.fields.stream != control::STREAM {
            return Ok(Some("the segment does not begin with its header".into()));
        }
        let Ok(opened) = serde_json::from_str::<control::Opened>(line.fields.data) else {
            return Ok(Some("the header of the segment cannot be read".into()));
        };
        if opened.format != control::FORMAT || opened.checksum != control::CHECKSUM {
            let what = format!("format {} with checksum {}", opened.format, opened.checksum);
            return Err(Error::new(ErrorKind::Unsupported, format!("the segment has {what}"))
                .path(storage.display(&format::segment_path(self.first)))
                .hint("use the program that wrote it, or a newer one"));
        }
        if opened.store != self.store.to_string() {
            return Ok(Some(format!("the segment belongs to the store {}", opened.store)));
        }
        if opened.first_seq != self.first.0 {
            let name = segment_file(Seq(opened.first_seq));
            return Ok(Some(format!("the segment's own name is {name}")));
        }
        Ok(None)
    }
}
