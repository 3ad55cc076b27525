//! Verifying: every line of every segment, every damage with its class and place, and nothing changed.

mod ahead;
mod scan;
mod strays;

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::format::slot::Durable;
use crate::format::{SYNC_LOCK, control, segment_path};
use crate::id::{Crc, Seq, StoreId, Version};
use crate::storage::Storage;
use crate::store::{Damage, DamageClass, Touched};

use super::recover::{Judged, Verdict};
use super::slots::peek;
use super::visit::{At, SegmentVisit};
use super::walk::Link;
use super::{create, gaps, segments};

use ahead::{Ahead, in_order};
use scan::{Found, Job, Jump, Scanned};

/// How far a verification has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were looked at.
    pub done: u64,
    /// Bytes that there are.
    pub total: u64,
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The store.
    pub store: StoreId,
    /// How many segments there are.
    pub segments: u64,
    /// How many lines verify.
    pub lines: u64,
    /// How many bytes the segments have.
    pub bytes: u64,
    /// The last line that verifies: its position, its checksum, and its time.
    pub last: Option<(Seq, Crc, Timestamp)>,
    /// The highest position that is known to be on stable storage.
    pub durable: Seq,
    /// Whether the store says so itself. Otherwise only stamps in the log do, and a loss behind the last one looks like
    /// a torn tail.
    pub floor_known: bool,
    /// How many streams there are, the log's own counted.
    pub streams: u64,
    /// The damage, in the order of the log; a torn tail counts as one.
    pub damages: Vec<Damage>,
    /// What is odd and costs nothing, in words.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether every acknowledged event is there, or its loss was accepted; a torn tail is no loss.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damages.iter().all(|damage| damage.accepted || damage.class == DamageClass::Torn)
    }
}

/// Verifies a store, and tells now and then how far it has come.
///
/// # Errors
/// `NotFound`, `Unsupported`, and what the disk says; damage is no error but in the report.
pub fn verify(storage: &Arc<dyn Storage>, progress: &mut dyn FnMut(Progress)) -> Result<Report> {
    verify_with(storage, NonZero::<usize>::MIN, progress)
}

/// Verifies a store as [`verify`] does and says the same, with so many segments at a time.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    storage: &Arc<dyn Storage>,
    workers: NonZero<usize>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report> {
    let store = create::read_store(&**storage)?;
    let known: Option<Durable> = peek(&**storage, SYNC_LOCK)?;
    let floor = known.unwrap_or_default();
    let mut check = Check {
        storage: &**storage,
        floor: Seq(floor.seq),
        found: Report {
            store,
            segments: 0,
            lines: 0,
            bytes: 0,
            last: None,
            durable: Seq(floor.seq),
            floor_known: known.is_some(),
            streams: 0,
            damages: Vec::new(),
            notes: Vec::new(),
        },
        versions: HashMap::default(),
        accepted: Vec::new(),
        last_end: None,
    };
    check.all(workers, progress)?;
    check.found.notes.extend(strays::notes(&**storage));
    if check.found.segments == 0 {
        let note = "there is no segment: nothing was ever appended, or everything is gone";
        check.found.notes.push(note.to_owned());
    } else if known.is_none() {
        check.found.notes.push(format!(
            "{SYNC_LOCK} does not say what is durable: a loss of the last acknowledged events, back to the last stamp \
             in the log, would look like a torn tail; the next append writes it anew"
        ));
    }
    Ok(check.found)
}

struct Check<'a> {
    storage: &'a dyn Storage,
    /// What is known to be durable without the log's lines.
    floor: Seq,
    found: Report,
    /// The last version of each stream and the position where it stood.
    versions: HashMap<Box<str>, (Version, Seq), rustc_hash::FxBuildHasher>,
    accepted: Vec<control::Gap>,
    /// The segment and the offset behind the last line that verified.
    last_end: Option<(Seq, u64)>,
}

impl Check<'_> {
    fn all(&mut self, workers: NonZero<usize>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let segments = segments::list(self.storage)?;
        let mut total = 0;
        for first in &segments {
            total += self.storage.stat(&segment_path(*first)).map_or(0, |stat| stat.len);
        }
        let strays = self.strays_at_the_end(&segments)?;
        let segments = segments.get(..segments.len() - strays).unwrap_or_default();
        let jobs: Vec<Job> = segments
            .iter()
            .enumerate()
            .map(|(i, first)| Job {
                store: self.found.store,
                first: *first,
                next: segments.get(i + 1).copied(),
                floor: self.floor,
            })
            .collect();
        let mut link = Link::START;
        in_order(self.storage, &jobs, workers, &mut |job, ahead| {
            self.join(job, &mut link, ahead)?;
            progress(Progress { done: self.found.bytes, total: total.max(self.found.bytes) });
            Ok(())
        })?;
        if segments.is_empty() && self.found.durable > Seq::ZERO {
            self.missing_before(self.found.durable.next(), Link::START);
        }
        for damage in &mut self.found.damages {
            damage.accepted = self.accepted.iter().any(|gap| gaps::accepts(gap, damage));
        }
        self.found.streams = self.versions.len() as u64;
        Ok(())
    }

    /// Takes over what a segment says behind those before it, of which `link` is the last line.
    fn join(&mut self, job: &Job, link: &mut Link, ahead: Ahead) -> Result<()> {
        if link.seq >= job.first {
            return self.copied(job.first);
        }
        if link.seq.next() != job.first {
            self.missing_before(job.first, *link);
            *link = Link { seq: Seq(job.first.0 - 1), crc: None };
        }
        let scanned = match ahead {
            Some((assumed, scanned)) if assumed == *link => scanned?,
            _ => job.scan(self.storage, *link)?,
        };
        *link = scanned.reached;
        self.found.segments += 1;
        self.take(job.first, scanned);
        Ok(())
    }

    fn take(&mut self, first: Seq, scanned: Scanned) {
        self.found.bytes += scanned.bytes;
        self.found.lines += scanned.lines;
        self.found.last = scanned.last.or(self.found.last);
        self.found.durable = self.found.durable.max(scanned.durable);
        self.last_end = scanned.last_end.map(|end| (first, end)).or(self.last_end);
        self.accepted.extend(scanned.accepted);
        let mut entered = Vec::new();
        for (stream, run) in scanned.streams {
            let known = self.versions.get(&stream).copied().unwrap_or_default();
            let jump = Jump::between(&stream, known, run.first);
            entered.extend(jump.map(|jump| (run.order, jump)));
            self.versions.insert(stream, run.last);
        }
        entered.sort_by_key(|(order, jump)| (*order, jump.between.1));
        let mut entered = entered.into_iter().peekable();
        for (order, found) in scanned.found.into_iter().enumerate() {
            while let Some((_, jump)) = entered.next_if(|(before, _)| *before <= order) {
                self.jump(jump);
            }
            match found {
                Found::Damage(damage) => self.found.damages.push(damage),
                Found::Jump(jump) => self.jump(jump),
            }
        }
        entered.for_each(|(_, jump)| self.jump(jump));
        if let Some(judged) = scanned.judged {
            self.end(&judged, scanned.reached);
        }
    }

    /// What the recovery table says of the active segment.
    fn end(&mut self, judged: &Judged, reached: Link) {
        self.found.durable = self.found.durable.max(judged.durable);
        let behind = judged.bytes().get(judged.chain().len()..).unwrap_or_default();
        match judged.verdict() {
            Verdict::Clean if judged.sealed && !behind.is_empty() => {
                self.tail(judged, DamageClass::Foreign, "bytes stand behind the seal");
            }
            Verdict::Torn => self.tail(judged, DamageClass::Torn, self.torn_detail()),
            Verdict::Damaged(damage) if reached.seq < judged.durable => self.lost(*damage, reached),
            Verdict::Damaged(damage) => self.torn_behind(&damage),
            Verdict::Clean => {}
        }
    }

    /// How many files at the end of the list are no segments of this log: they have no header of their own, and begin
    /// far behind everything that is known to be durable.
    fn strays_at_the_end(&mut self, segments: &[Seq]) -> Result<usize> {
        let mut count = 0;
        for (i, first) in segments.iter().enumerate().rev() {
            let Some(before) = i.checked_sub(1).and_then(|i| segments.get(i)) else { break };
            if !self.is_stray(*before, *first)? {
                break;
            }
            self.copied(*first)?;
            count += 1;
        }
        Ok(count)
    }

    /// Whether `first` has no header of its own and the segment before it does not lead to it.
    fn is_stray(&self, before: Seq, first: Seq) -> Result<bool> {
        let unknown = |segment: Seq| At {
            offset: 0,
            link: Link { seq: Seq(segment.0 - 1), crc: None },
            ahead: 0,
        };
        let visit = |segment: Seq| SegmentVisit {
            store: self.found.store,
            first: segment,
            next: None,
            durable: Seq::ZERO,
        };
        if visit(first).has_header(self.storage)? {
            return Ok(false);
        }
        let judged = Judged::read(self.storage, &visit(before), unknown(before), Seq::ZERO)?;
        Ok(judged.reached().next() < first && self.found.durable.next() < first)
    }

    /// A whole file that is not where it belongs.
    fn copied(&mut self, first: Seq) -> Result<()> {
        let path = segment_path(first);
        let bytes = self
            .storage
            .stat(&path)
            .map_err(|e| segments::error(self.storage, first, "look at", e))?
            .len;
        self.found.segments += 1;
        self.found.bytes += bytes;
        self.found.damages.push(Damage {
            class: DamageClass::Misplaced,
            file: path,
            offset: 0,
            bytes,
            seqs: None,
            touched: Vec::new(),
            accepted: false,
            detail: "no segment of this log, or a copy of one: nothing leads to it".to_owned(),
        });
        Ok(())
    }

    /// A segment file is gone, or the first ones are.
    fn missing_before(&mut self, first: Seq, link: Link) {
        if first <= link.seq {
            return;
        }
        let seqs = (link.seq.next(), Seq(first.0 - 1));
        self.found.damages.push(gaps::missing(seqs));
    }

    fn tail(&mut self, judged: &Judged, class: DamageClass, detail: &str) {
        let offset = judged.chain().len() as u64;
        self.found.damages.push(Damage {
            class,
            file: segment_path(judged.active),
            offset,
            bytes: judged.bytes().len() as u64 - offset,
            seqs: None,
            touched: Vec::new(),
            accepted: false,
            detail: detail.to_owned(),
        });
    }

    const fn torn_detail(&self) -> &'static str {
        if self.found.floor_known {
            "no whole batch, and never acknowledged"
        } else {
            "no whole batch; nothing says whether it was acknowledged"
        }
    }

    /// What lies behind the last line of a damaged segment, and was never acknowledged.
    fn torn_behind(&mut self, whole: &Damage) {
        let end = whole.offset + whole.bytes;
        let Some((_, offset)) = self.last_end.filter(|(_, offset)| *offset < end) else { return };
        self.found.damages.push(Damage {
            class: DamageClass::Torn,
            offset,
            bytes: end - offset,
            seqs: None,
            touched: Vec::new(),
            detail: self.torn_detail().to_owned(),
            ..whole.clone()
        });
    }

    /// The end of the log is missing, behind the last line that can be believed.
    fn lost(&mut self, whole: Damage, reached: Link) {
        let behind = self.found.damages.last().filter(|last| last.file == whole.file);
        let end = whole.offset + whole.bytes;
        let offset = match (behind, self.last_end) {
            (_, Some((file, offset))) if segment_path(file) == whole.file => offset,
            (Some(last), None) => last.offset + last.bytes,
            _ => whole.offset,
        };
        self.found.damages.push(Damage {
            offset,
            bytes: end.saturating_sub(offset),
            seqs: whole.seqs.map(|(_, last)| (reached.seq.next(), last)),
            ..whole
        });
    }

    /// Versions of a stream are missing between two of its lines: the damage between them has taken them.
    fn jump(&mut self, jump: Jump) {
        let Jump { stream, versions, between } = jump;
        let mut taken = false;
        for damage in &mut self.found.damages {
            let inside = damage.seqs.is_some_and(|(from, to)| from < between.1 && to > between.0);
            if !inside {
                continue;
            }
            taken = true;
            match damage.touched.iter_mut().find(|touched| *touched.stream == *stream) {
                Some(touched) => touched.versions = Some(versions),
                None => damage
                    .touched
                    .push(Touched { stream: stream.to_string(), versions: Some(versions) }),
            }
        }
        if !taken {
            let (from, to) = versions;
            self.found.notes.push(format!(
                "the versions of {stream} go from {} to {} at position {} without damage between",
                from.0 - 1,
                to.0 + 1,
                between.1
            ));
        }
    }
}

#[cfg(test)]
mod tests;
