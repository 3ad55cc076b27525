//! Repairing: an operator accepts damage. No byte of a damaged segment is changed; lines say what is missing, the bytes
//! are copied aside, and where the damage is in the active segment a new one begins behind it.

use std::sync::Arc;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::format::segment_first;
use crate::format::slot::Durable;
use crate::format::{LOG_DIR, control};
use crate::id::Seq;
use crate::storage::{Access, Storage, read_full};
use crate::store::{Damage, DamageClass};

use super::draft::Draft;
use super::recover::{Judged, Verdict};
use super::tail::Tail;
use super::verify::{Progress, Report, verify};
use super::visit::{At, SegmentVisit};
use super::walk::Link;
use super::{AppendSide, Log, Options, SyncSide, Writer, gaps, locked, segments};

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The store as it was found.
    pub report: Report,
    /// The damage that is accepted now.
    pub accepted: Vec<Damage>,
    /// Where copies of the damaged bytes lie, relative to the store.
    pub copies: Vec<String>,
}

/// Accepts every damage of a store that is not accepted yet, for this reason. On return the lines that say so are on
/// stable storage, and the store takes appends.
///
/// # Errors
/// `NotFound` when there is no store, and what opening and appending say.
pub fn repair(
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    options: Options,
    reason: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<Accepted> {
    let report = verify(&storage, progress)?;
    let log = Log::open(storage, clock, options)?;
    let writer = log.writer()?;
    let mut append = locked(&writer.append);
    let held = append.lock.acquire()?;
    let mut sync = locked(&writer.sync);
    let also_held = sync.lock.acquire()?;
    // What opening has settled is settled; what another process did meanwhile counts too.
    let now = verify(&writer.storage, &mut |_| {})?;
    let mut pending: Vec<Damage> =
        now.damages.iter().filter(|damage| !damage.accepted).cloned().collect();
    if pending.iter().all(|damage| damage.class == DamageClass::Torn) {
        // The next append sets a torn tail aside. Behind damage it stays where it is, and is accepted with it.
        pending.clear();
    }
    let mut copies = Vec::new();
    if !pending.is_empty() {
        for damage in pending.iter().filter(|damage| damage.bytes > 0) {
            copies.extend(writer.copy(damage)?);
        }
        writer.take_away(&now, &pending)?;
        writer.accept(&mut append, &mut sync, &now, &pending, reason)?;
        writer.settle(&mut append, &mut sync)?;
    }
    drop(also_held);
    drop(held);
    Ok(Accepted { report, accepted: pending, copies })
}

impl Writer {
    fn copy(&self, damage: &Damage) -> Result<Option<String>> {
        let name = damage.file.rsplit('/').next().unwrap_or_default();
        let Some(first) = segment_first(name) else { return Ok(None) };
        let fail = |e| segments::error(&*self.storage, first, "read", e);
        let file = segments::open(&*self.storage, first, Access::Read)?;
        let size = file.size().map_err(fail)?.saturating_sub(damage.offset);
        let count = usize::try_from(damage.bytes.min(size)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; count];
        let got = read_full(&*file, &mut bytes, damage.offset).map_err(fail)?;
        bytes.truncate(got);
        self.keep(first, damage.offset, &bytes).map(Some)
    }

    /// Takes away files that are no segments of this log and would stand behind the next one; their copies are kept.
    fn take_away(&self, report: &Report, pending: &[Damage]) -> Result<()> {
        let next = report.last.map_or(Seq::ZERO, |(seq, ..)| seq).max(report.durable).next();
        let is_stray = |damage: &&Damage| {
            let name = damage.file.rsplit('/').next().unwrap_or_default();
            let behind = segment_first(name).is_some_and(|first| first > next);
            behind && damage.class == DamageClass::Misplaced && damage.seqs.is_none()
        };
        for damage in pending.iter().filter(is_stray) {
            let gone =
                self.storage.remove(&damage.file).and_then(|()| self.storage.sync_dir(LOG_DIR));
            gone.map_err(|e| {
                Error::io("cannot take a stray file away", e)
                    .path(self.storage.display(&damage.file))
            })?;
        }
        Ok(())
    }

    fn accept(
        &self,
        append: &mut AppendSide,
        sync: &mut SyncSide,
        report: &Report,
        pending: &[Damage],
        reason: &str,
    ) -> Result<()> {
        let lines: Vec<control::Gap> =
            pending.iter().map(|damage| gaps::gap(damage, reason)).collect();
        if self.active_is_whole(append, sync)? {
            self.learn(append)?;
            let now = self.clock.now();
            let mut draft = Draft::new(&append.tail, report.durable);
            for line in &lines {
                draft.control(control::GAP, line, draft.control_time(now))?;
            }
            let (bytes, end) = (draft.bytes, draft.end);
            self.write_lines(&mut append.tail, &bytes, end)?;
            return self.sync_here(append, sync);
        }
        let last = report.last.map_or(Seq::ZERO, |(seq, _, _)| seq);
        let first = last.max(report.durable).next();
        append.tail = Tail::new(&self.storage, self.id);
        append.tail.learn_before(&*self.storage, first)?;
        let crc = report.last.map(|(_, crc, _)| crc);
        let link = Link { seq: Seq(first.0 - 1), crc };
        let floor: Durable = sync.lock.read()?.unwrap_or_default();
        self.open_segment(append, sync, first, link, &floor, &lines)?;
        append.lock.write(&append.tail.end.written())
    }

    /// Whether the active segment takes lines as it is.
    fn active_is_whole(&self, append: &mut AppendSide, sync: &SyncSide) -> Result<bool> {
        let floor: Durable = sync.lock.read()?.unwrap_or_default();
        let Some(first) = segments::list(&*self.storage)?.last().copied() else {
            return Ok(false);
        };
        self.learn(append)?;
        let visit = SegmentVisit { store: self.id, first, next: None, durable: Seq::ZERO };
        let start = At { offset: 0, link: append.tail.before, ahead: 0 };
        let judged = Judged::read(&*self.storage, &visit, start, Seq(floor.seq))?;
        Ok(matches!(judged.verdict(), Verdict::Clean) && judged.reached() >= first)
    }
}
