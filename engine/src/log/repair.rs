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

/// What a repair does with one damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// It is left to the next append, which keeps the bytes aside and cuts them off.
    NextAppend,
    /// A line records what is missing; there are no bytes of the log to keep.
    Record,
    /// A line records what is missing, and the bytes are copied aside.
    CopyAndRecord,
    /// The same, and the file, which is no segment of the log, is taken away.
    TakeAway,
}

/// What a repair of a store that was found like this does with each damage that is not accepted yet.
#[must_use]
pub fn remedies(report: &Report) -> Vec<(&Damage, Remedy)> {
    let pending = || report.damages.iter().filter(|damage| !damage.accepted);
    // Behind damage a torn tail stays where it is, and is accepted with it.
    let only_torn = pending().all(|damage| damage.class == DamageClass::Torn);
    let next = report.last.map_or(Seq::ZERO, |(seq, ..)| seq).max(report.durable).next();
    let remedy = |damage: &Damage| match segment_of(damage) {
        _ if only_torn => Remedy::NextAppend,
        Some(first) if is_stray(damage) && first > next => Remedy::TakeAway,
        Some(_) if damage.bytes > 0 => Remedy::CopyAndRecord,
        _ => Remedy::Record,
    };
    pending().map(|damage| (damage, remedy(damage))).collect()
}

/// The segment that a damage lies in.
fn segment_of(damage: &Damage) -> Option<Seq> {
    segment_first(damage.file.rsplit('/').next().unwrap_or_default())
}

/// Whether the whole file is no segment of this log.
fn is_stray(damage: &Damage) -> bool {
    damage.class == DamageClass::Misplaced && damage.seqs.is_none()
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
    let mut plan = remedies(&now);
    plan.retain(|(_, remedy)| *remedy != Remedy::NextAppend);
    let pending: Vec<Damage> = plan.iter().map(|(damage, _)| (*damage).clone()).collect();
    let mut copies = Vec::new();
    if !pending.is_empty() {
        for (damage, remedy) in &plan {
            if matches!(remedy, Remedy::CopyAndRecord | Remedy::TakeAway) {
                copies.extend(writer.copy(damage)?);
            }
        }
        writer.take_away(&plan)?;
        writer.accept(&mut append, &mut sync, &now, &pending, reason)?;
        writer.settle(&mut append, &mut sync)?;
    }
    drop(also_held);
    drop(held);
    Ok(Accepted { report, accepted: pending, copies })
}

impl Writer {
    fn copy(&self, damage: &Damage) -> Result<Option<String>> {
        let Some(first) = segment_of(damage) else { return Ok(None) };
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
    fn take_away(&self, plan: &[(&Damage, Remedy)]) -> Result<()> {
        for (damage, _) in plan.iter().filter(|(_, remedy)| *remedy == Remedy::TakeAway) {
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
            let lines = draft.finish();
            self.write_lines(&mut append.tail, &lines)?;
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
