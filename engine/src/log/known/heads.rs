//! The table of heads in what is known: it is asked for versions in place of the segments that it covers, and a new one is
//! due when it lacks enough.

use std::sync::Arc;

use super::{Known, end_of};
use crate::error::Result;
use crate::id::{Seq, Version};
use crate::log::index::{Head, Heads, Part, Stretch};
use crate::log::tail::End;
use crate::log::walk::Link;

/// What a new table of heads is made of: the one before it, and the segments that it lacks.
pub(in crate::log) type Material = (Option<Arc<Heads>>, Vec<Stretch>);

impl Known {
    /// Takes over what the table of heads knows, when there is one for a store with these segments and nothing else is
    /// known yet; returns where the last of its segments ends.
    pub(in crate::log) fn take_heads(&mut self, segments: &[Seq]) -> Option<End> {
        let heads = Heads::open(&*self.storage, self.store, segments)?;
        let last = heads.segments().last()?.stretch;
        *self.parts.get_mut() = heads.segments().iter().copied().map(Part::unopened).collect();
        *self.heads.get_mut() = Some(Arc::new(heads));
        let end = end_of(&last);
        self.begin(last.segment, end.offset, Link { seq: end.seq, crc: Some(end.crc) });
        Some(end)
    }

    /// What a new table of heads is to be made of, when one is due.
    pub(in crate::log) fn material(&mut self) -> Option<Material> {
        if !self.heads_are_due() {
            return None;
        }
        // When it cannot be written now, it is not tried again before something more is lacking.
        self.lacking.set(0);
        let (heads, covered) = (self.heads.borrow().clone(), self.covered());
        let parts = self.parts.borrow();
        let mut found: Vec<Stretch> = Vec::new();
        let mut before = match &heads {
            Some(heads) => heads.segments().last().map(|known| known.stretch.last)?,
            None => Seq(parts.first()?.stretch().segment.0.saturating_sub(1)),
        };
        for part in parts.iter().skip(covered) {
            let stretch = part.stretch();
            let is_whole = stretch.start == 0 && stretch.segment == before.next();
            if !is_whole || stretch.segment == self.recent.segment {
                break;
            }
            before = stretch.last;
            found.push(*stretch);
        }
        // The last one binds the table to the log.
        let count = found.iter().rposition(Stretch::is_sound).map_or(0, |at| at + 1);
        found.truncate(count);
        (count > 0).then_some((heads, found))
    }

    /// Takes a new table, when it is about the segments that are known.
    pub(in crate::log) fn take_table(&mut self, heads: Heads) {
        let parts = self.parts.get_mut();
        let mut pairs = heads.segments().iter().zip(parts.iter());
        let same = pairs.all(|(known, part)| {
            let (a, b) = (&known.stretch, part.stretch());
            (a.segment, a.start, a.last, a.last_crc) == (b.segment, b.start, b.last, b.last_crc)
        });
        if same && heads.segments().len() <= parts.len() {
            *self.heads.get_mut() = Some(Arc::new(heads));
        }
    }

    /// Forgets a table that was found damaged, so that a new one is made of the indexes.
    pub(in crate::log) fn drop_heads(&self) {
        *self.heads.borrow_mut() = None;
        self.lack(u64::MAX);
    }

    /// The version of a stream. The last stretch that names it knows it, unless lines of that one are damaged: what
    /// these still show may be too low, and what stands before counts as well.
    pub(in crate::log) fn version(&self, stream: &str) -> Result<Version> {
        let mut highest = self.recent.builder.version(stream);
        if highest.is_some() && !self.recent.broken {
            return Ok(highest.unwrap_or_default());
        }
        let covered = self.covered();
        let mut parts = self.parts.borrow_mut();
        for part in parts.iter_mut().skip(covered).rev() {
            let broken = part.stretch().broken;
            let version = self.ask(part, |index| index.version(stream))?;
            highest = highest.max(version);
            if version.is_some() && !broken {
                return Ok(highest.unwrap_or_default());
            }
        }
        if let Some(head) = self.head(stream) {
            return Ok(highest.max(head.map(|head| head.version)).unwrap_or_default());
        }
        for part in parts.iter_mut().take(covered).rev() {
            let broken = part.stretch().broken;
            let version = self.ask(part, |index| index.version(stream))?;
            highest = highest.max(version);
            if version.is_some() && !broken {
                break;
            }
        }
        Ok(highest.unwrap_or_default())
    }

    /// How many of the first parts the table covers.
    pub(super) fn covered(&self) -> usize {
        self.heads.borrow().as_ref().map_or(0, |heads| heads.segments().len())
    }

    /// The position behind which a stream has no line in the segments that the table covers; `None` without one.
    pub(super) fn end_in_heads(&self, stream: &str) -> Option<Seq> {
        self.head(stream).map(|head| head.map_or(Seq::ZERO, |head| head.seq))
    }

    /// What the table says of a stream; `None` when there is no table that can be read.
    fn head(&self, stream: &str) -> Option<Option<Head>> {
        let heads = self.heads.borrow().clone()?;
        let head = heads.head(stream);
        if heads.is_damaged() {
            self.drop_heads();
            return None;
        }
        Some(head)
    }

    /// Whether a new table of heads is due: when the segments that it lacks have as many bytes as it has, so that
    /// however many streams there are, writing tables does not cost more than writing the log.
    pub(super) fn heads_are_due(&self) -> bool {
        let lacking = self.lacking.get();
        lacking > 0 && lacking >= self.heads.borrow().as_ref().map_or(0, |heads| heads.file_bytes())
    }

    /// Counts a stretch that was closed or taken over, when it is one that a new table could end with.
    pub(super) fn lack_one(&self, stretch: &Stretch) {
        if stretch.sealed && !stretch.broken {
            self.lack(stretch.end);
        }
    }

    fn lack(&self, bytes: u64) {
        self.lacking.set(self.lacking.get().saturating_add(bytes));
    }
}
