//! Appending. Callers queue; one of them leads: it takes the append lock, writes what waits with one call, gives the
//! lock and the lead on, and syncs for all of its group while the next group fills. Processes do the same with each
//! other: whoever finds that another process's sync was its own too does not sync again.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, TryLockError};

use crate::clock::Timestamp;
use crate::error::{Error, ErrorKind, Result};
use crate::format::slot::{Durable, Written};
use crate::format::{SYNC_LOCK, segment_path};
use crate::id::{Crc, Seq, Version};
use crate::storage::{File, write_full};
use crate::store::{Append, Appended, Cursor, Decider, Durability, Record, View};

use super::draft::{Batch, Draft, Lines, Planned};
use super::queue::{self, Lead, Role, Waiting};
use super::recover::durable_at;
use super::slots::{LockFile, Need};
use super::tail::{End, Tail, trailer_is};
use super::{AppendSide, SyncSide, Writer, locked, reader, segments};

/// How many bytes of waiting appends one group takes.
const GROUP_BYTES: usize = 4 << 20;

/// How often an append whose lines were cut is made again.
const ATTEMPTS: u32 = 8;

/// So many lines lie between the floor and the end of an append's own when one other process appends too: the line
/// that is being synced, and its own. With more it is likely that somebody else's sync is for all.
const ALONE: u64 = 2;

/// One append of a group.
struct Job<'a> {
    work: Work<'a>,
    /// The caller that waits for it; `None` for the one that leads.
    waiting: Option<Waiting>,
    outcome: Option<Result<Planned>>,
    /// Whether an earlier attempt wrote its lines: what is found of them then is not somebody else's.
    wrote: bool,
}

enum Work<'a> {
    Batch(Batch, Durability),
    Decide { decider: &'a mut (dyn Decider + Send), durability: Durability, decided: Option<Batch> },
}

impl Job<'_> {
    fn durability(&self) -> Durability {
        match &self.work {
            Work::Batch(_, durability) => *durability,
            Work::Decide { durability, .. } => *durability,
        }
    }

    /// The answer for its caller.
    fn answer(&mut self) -> Result<Appended> {
        let planned = self.outcome.take().unwrap_or_else(|| Err(unplanned()))?;
        let Appended { positions, repeated } = planned.appended;
        Ok(Appended { positions, repeated: repeated && !self.wrote })
    }

    /// After lines were written once, an error that is no judgement of the append itself says nothing about them.
    fn doubt(&mut self) {
        use ErrorKind::{Conflict, IdReused, Indeterminate, PartialDuplicate, Refused};
        if let Some(Err(e)) = &self.outcome
            && !matches!(
                e.kind(),
                Conflict { .. } | IdReused | PartialDuplicate | Refused | Indeterminate
            )
        {
            self.outcome = Some(Err(indeterminate(e.clone())));
        }
    }

    /// Whether lines of it were written by the last attempt.
    fn is_written(&self) -> bool {
        matches!(&self.outcome, Some(Ok(planned)) if !planned.appended.repeated)
    }

    /// Whether a line that it needs is damaged.
    fn met_damage(&self) -> bool {
        matches!(&self.outcome, Some(Err(e)) if *e.kind() == ErrorKind::Corrupt)
    }

    /// The end of its lines, when they are written and have to be synced.
    fn to_sync(&self) -> Option<End> {
        match &self.outcome {
            Some(Ok(planned)) if self.durability() == Durability::Synced => Some(planned.end),
            _ => None,
        }
    }
}

/// Whether lines of the jobs may be in the log already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// Nothing of them was written yet.
    First,
    /// They were written and perhaps cut: an error no longer says that nothing is there.
    Again,
}

/// What a sync told about lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ack {
    /// They are on stable storage.
    Durable,
    /// They are not where they were written: append again, by id.
    Again,
}

impl Writer {
    pub(super) fn append_batch(&self, append: Append) -> Result<Appended> {
        let batch = self.carry(append)?;
        self.queue(Work::Batch(batch.0, batch.1))
    }

    pub(super) fn append_decided<'q>(
        &'q self,
        decider: &'q mut (dyn Decider + Send),
        durability: Durability,
    ) -> Result<Appended> {
        self.queue(Work::Decide { decider, durability, decided: None })
    }

    fn queue<'q>(&'q self, work: Work<'q>) -> Result<Appended> {
        let mut work = Some(work);
        let role = self.queue.join(|| match work.take() {
            Some(Work::Batch(batch, durability)) => Some((batch, durability)),
            decides => {
                work = decides;
                None
            }
        });
        let lead = match role {
            Role::Done(result) => return result,
            Role::Leads(lead) => lead,
            Role::LeadsNow(lead, batch) => {
                work = work.or(batch.map(|(batch, durability)| Work::Batch(batch, durability)));
                lead
            }
        };
        match work {
            Some(work) => self.lead(work, lead),
            None => Err(unplanned()),
        }
    }

    fn lead<'q>(&'q self, work: Work<'q>, lead: Lead<'_>) -> Result<Appended> {
        let mut jobs = vec![Job { work, waiting: None, outcome: None, wrote: false }];
        {
            let mut side = locked(&self.append);
            self.write_group(&mut side, &mut jobs, Attempt::First);
        }
        self.acknowledge(&mut jobs, lead);
        let mut own = None;
        let mut answers = Vec::with_capacity(jobs.len());
        for mut job in jobs {
            let answer = job.answer();
            match job.waiting.take() {
                Some(waiting) => answers.push((waiting, answer)),
                None => own = Some(answer),
            }
        }
        if !answers.is_empty() {
            queue::answer(answers);
        }
        self.keep_indexes();
        own.unwrap_or_else(|| Err(unplanned()))
    }

    /// Writes the jobs, and at the first attempt what waits in the queue behind them; every job has an outcome then.
    fn write_group<'q>(&'q self, side: &mut AppendSide, jobs: &mut Vec<Job<'q>>, attempt: Attempt) {
        if let Err(e) = self.try_write_group(side, jobs, attempt) {
            let e = match attempt {
                Attempt::First => e,
                Attempt::Again => indeterminate(e),
            };
            // What was found in the log is there; what was refused stays refused.
            let undone = |job: &&mut Job<'_>| job.outcome.is_none() || job.is_written();
            for job in jobs.iter_mut().filter(undone) {
                job.outcome = Some(Err(e.clone()));
            }
        }
        if attempt == Attempt::Again {
            jobs.iter_mut().for_each(Job::doubt);
        }
    }

    fn try_write_group<'q>(
        &'q self,
        side: &mut AppendSide,
        jobs: &mut Vec<Job<'q>>,
        attempt: Attempt,
    ) -> Result<()> {
        if side.crowded {
            // What others wrote is read before the lock is taken, so that little is left to read under it. What hinders
            // that is met again there, if it is still so.
            let _ = self.learn_delta(side);
        }
        let held = side.lock.acquire()?;
        let durable = self.make_current(side)?;
        let mut lines = self.plan_group(side, jobs, attempt, durable)?;
        if jobs.iter().any(Job::met_damage) {
            // A known line that is no longer whole: a sync that failed may have taken it, and that is not settled yet. Until
            // it is, no answer says anything.
            jobs.iter_mut().for_each(|job| job.outcome = None);
            let durable = self.settle_now(side)?;
            lines = self.plan_group(side, jobs, attempt, durable)?;
        }
        if !lines.bytes().is_empty() {
            self.write_lines(&mut side.tail, &lines)?;
            side.lock.write(&lines.end.written()).map_err(indeterminate)?;
            self.view.marks.raise(Seq::ZERO, lines.end.seq);
        }
        side.room = lines.into_room(GROUP_BYTES).unwrap_or_default();
        if side.tail.end.offset >= self.view.options.segment_bytes {
            let mut sync = locked(&self.sync);
            let also_held = sync.lock.acquire().map_err(indeterminate)?;
            // The group is written; a roll that fails is finished, or its error reported, by the next append.
            let _ = self.roll(side, &mut sync);
            drop(also_held);
        }
        let due = side.tail.known().is_due(&side.tail.end, self.view.options.index_bytes);
        self.index_due.fetch_or(due, Ordering::SeqCst);
        drop(held);
        Ok(())
    }

    /// Plans the jobs, and at the first attempt what waits in the queue behind them. Returns the lines to write.
    fn plan_group<'q>(
        &'q self,
        side: &mut AppendSide,
        jobs: &mut Vec<Job<'q>>,
        attempt: Attempt,
        durable: Seq,
    ) -> Result<Lines> {
        for job in jobs.iter_mut() {
            if let Work::Decide { decider, .. } = &mut job.work {
                reader::feed(&self.view, &mut **decider, &side.tail.end)?;
            }
        }
        let room = std::mem::take(&mut side.room);
        let mut draft = Draft::in_room(&side.tail, durable, room);
        let now = self.clock.now();
        for job in jobs.iter_mut() {
            job.outcome = Some(self.plan(&mut draft, job, now));
        }
        let room = self.view.options.segment_bytes.saturating_sub(draft.end.offset);
        if attempt == Attempt::First && room > 0 {
            let most = usize::try_from(room).unwrap_or(usize::MAX).min(GROUP_BYTES);
            for (waiting, (batch, durability)) in self.queue.take(most) {
                let work = Work::Batch(batch, durability);
                let waiting = Some(waiting);
                let mut job = Job { work, waiting, outcome: None, wrote: false };
                job.outcome = Some(self.plan(&mut draft, &mut job, now));
                jobs.push(job);
            }
        }
        Ok(draft.finish())
    }

    fn plan(&self, draft: &mut Draft<'_>, job: &mut Job<'_>, now: Timestamp) -> Result<Planned> {
        match &mut job.work {
            Work::Batch(batch, _) => draft.plan(&*self.storage, batch, now),
            Work::Decide { decider, decided, .. } => {
                // Lines of an earlier attempt may still be there; then they are the answer.
                if let Some(batch) = decided.take()
                    && let Some(known) = draft.repeated(&*self.storage, &batch)?
                {
                    return Ok(known);
                }
                decider.begins(draft.next_seq(now));
                let (batch, _) = self.carry(decider.decide(now)?)?;
                let planned = draft.plan(&*self.storage, &batch, now)?;
                *decided = Some(batch);
                Ok(planned)
            }
        }
    }

    /// Makes sure, under the append lock, that the knowledge is the log's whole content and its end takes lines.
    /// Returns the highest position that is known to be durable.
    pub(super) fn make_current(&self, side: &mut AppendSide) -> Result<Seq> {
        let durable: Option<Durable> = side.durable.read()?;
        self.check_halts(&durable.unwrap_or_default())?;
        let known = self.learn_delta(side)?;
        // Without a floor nobody knows whether a sync failed: the lines have to be made durable from the start.
        if let Some(durable) = durable
            && known
            && !side.tail.sealed
            && self.end_is_in_place(&side.tail)?
        {
            return Ok(Seq(durable.seq));
        }
        self.settle_now(side)
    }

    /// Reads what others wrote; returns whether the log ends where this process now knows it to end, as the slot tells.
    fn learn_delta(&self, side: &mut AppendSide) -> Result<bool> {
        let written: Option<Written> = side.lock.read()?;
        let is_known = |tail: &Tail| written.is_some_and(|written| tail.end.is(&written));
        side.crowded = !is_known(&side.tail);
        if side.crowded && !written.is_some_and(|written| side.tail.read_to(&written)) {
            self.learn(side)?;
        }
        Ok(is_known(&side.tail))
    }

    /// What this process knows of the log, when that is all that is there, and nothing is appended now: a reading waits for no append, which may itself wait for another process, or be what asks.
    fn known_side(&self) -> Result<Option<MutexGuard<'_, AppendSide>>> {
        let mut side = match self.append.try_lock() {
            Ok(side) => side,
            Err(TryLockError::Poisoned(side)) => side.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        // A line is there before the slot names it, and a reading shows it.
        let known = self.learn_delta(&mut side)? && self.end_is_in_place(&side.tail)?;
        Ok(known.then_some(side))
    }

    /// The version of a stream, under the same conditions as [`Writer::known_end`].
    pub(super) fn known_version(&self, stream: &str) -> Result<Option<Version>> {
        self.known_side()?.map(|side| side.tail.version(stream)).transpose()
    }

    /// The events of a stream that are of some types, under the same conditions as [`Writer::known_end`].
    pub(super) fn known_of(&self, stream: &str, types: &[&str]) -> Result<Option<Vec<Record>>> {
        let Some(side) = self.known_side()? else { return Ok(None) };
        side.tail.events_of(&*self.storage, stream, types)
    }

    /// The end of the log in a view, when this process knows all that is there and nothing is appended now; `None` when
    /// only reading can tell.
    pub(super) fn known_end(&self, view: View) -> Result<Option<Cursor>> {
        let Some(side) = self.known_side()? else { return Ok(None) };
        let end = side.tail.end;
        let (seq, crc) = match view {
            View::Written => (end.seq, end.crc),
            View::Durable => {
                let floor: Durable = side.durable.read()?.unwrap_or_default();
                (Seq(floor.seq), Crc(floor.check))
            }
        };
        let known = seq > Seq::ZERO && seq <= end.seq;
        Ok(known.then_some(Cursor { store: self.id, seq, crc }))
    }

    /// Settles under the append lock. Returns the highest position, which is durable then.
    fn settle_now(&self, side: &mut AppendSide) -> Result<Seq> {
        let mut sync = locked(&self.sync);
        let held = sync.lock.acquire()?;
        self.settle(side, &mut sync)?;
        drop(held);
        Ok(side.tail.end.seq)
    }

    /// Whether the segment that is written to is still the one of that name, and ends where it should.
    fn end_is_in_place(&self, tail: &Tail) -> Result<bool> {
        match self.storage.stat(&segment_path(tail.end.segment)) {
            Ok(named) => Ok(Some(named.id) == tail.file_id && named.len == tail.end.offset),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(segments::error(&*self.storage, tail.end.segment, "look at", e)),
        }
    }

    /// A store whose sync failed twice takes no appends from handles that were open then.
    fn check_halts(&self, durable: &Durable) -> Result<()> {
        if durable.halts <= self.halts.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::ReadOnly,
            "the store takes no appends since a second sync failed",
        )
        .path(self.storage.display(SYNC_LOCK))
        .hint("look at the disk, then open the store again"))
    }

    /// Writes whole lines at the end of the log, or nothing.
    pub(super) fn write_lines(&self, tail: &mut Tail, lines: &Lines) -> Result<()> {
        let segment = tail.end.segment;
        let fail = |e| segments::error(&*self.storage, segment, "write to", e);
        let Some(file) = tail.file.clone() else {
            return Err(Error::new(ErrorKind::Unavailable, "no segment is open for appending"));
        };
        if let Err(e) = write_full(&*file, lines.bytes(), tail.end.offset) {
            let error = fail(e);
            return Err(match file.truncate(tail.end.offset) {
                Ok(()) => error,
                Err(_) => indeterminate(error),
            });
        }
        *locked(&self.active) = Some((segment, file));
        tail.apply_all(lines);
        Ok(())
    }

    /// Syncs for the jobs that want it. A job whose lines were cut is appended again. The lead is given on when the
    /// sync can begin: while it runs one group is written behind it, and all who come meanwhile wait for the next, so
    /// that a slow disk makes groups big instead of many.
    fn acknowledge<'q>(&'q self, jobs: &mut Vec<Job<'q>>, lead: Lead<'_>) {
        let mut lead = Some(lead);
        for _ in 0..ATTEMPTS {
            let Some(last) = jobs.iter().filter_map(Job::to_sync).max_by_key(|end| end.seq) else {
                return;
            };
            match self.sync_through(&last, &mut lead) {
                Ok(Ack::Durable) => return,
                Ok(Ack::Again) => {
                    let mut again: Vec<Job<'q>> = Vec::new();
                    let (cut, kept) = std::mem::take(jobs)
                        .into_iter()
                        .partition::<Vec<_>, _>(|job| job.to_sync().is_some() || job.is_written());
                    again.extend(cut);
                    again.iter_mut().for_each(|job| job.wrote |= job.is_written());
                    self.write_group(&mut locked(&self.append), &mut again, Attempt::Again);
                    jobs.extend(kept);
                    jobs.extend(again);
                }
                Err(e) => return fail_unsynced(jobs, &e),
            }
        }
        let e =
            Error::new(ErrorKind::Unavailable, "the lines were cut each time they were written");
        fail_unsynced(jobs, &e);
    }

    /// Makes lines durable that were written by this process and end at `mine`.
    fn sync_through(&self, mine: &End, lead: &mut Option<Lead<'_>>) -> Result<Ack> {
        {
            let mut side = locked(&self.sync);
            drop(lead.take());
            let need = |lock: &LockFile| self.need_of_sync(lock, mine).unwrap_or(Need::Sure);
            let Some(held) = side.lock.acquire_if(need)? else { return Ok(Ack::Durable) };
            let answer = self.try_sync(&side, mine)?;
            drop(held);
            if let Some(ack) = answer {
                return Ok(ack);
            }
        }
        // The order of the locks is append, then sync.
        let mut append = locked(&self.append);
        let held = append.lock.acquire()?;
        let mut sync = locked(&self.sync);
        let also_held = sync.lock.acquire()?;
        self.check_halts(&sync.lock.read()?.unwrap_or_default())?;
        self.settle(&mut append, &mut sync)?;
        drop(also_held);
        drop(held);
        Ok(Ack::Again)
    }

    /// Whether lines are still to be synced, as far as can be told without the sync lock. They are not when the floor
    /// lies behind them and they are what lies there: a floor never sinks, and nothing below one is cut.
    fn need_of_sync(&self, lock: &LockFile, mine: &End) -> Result<Need> {
        let floor: Durable = lock.read()?.unwrap_or_default();
        self.check_halts(&floor)?;
        if floor.seq < mine.seq.0 {
            let crowded = mine.seq.0 - floor.seq > ALONE;
            return Ok(if crowded { Need::Perhaps } else { Need::Sure });
        }
        let file = self.sync_file(mine.segment)?;
        if !trailer_is(&*self.storage, &*file, mine.segment, mine.offset, mine.crc)? {
            return Ok(Need::Sure);
        }
        self.view.marks.raise(Seq(floor.seq), Seq::ZERO);
        Ok(Need::None)
    }

    /// Under the sync lock: `None` when the log has to be settled.
    fn try_sync(&self, side: &SyncSide, mine: &End) -> Result<Option<Ack>> {
        let floor: Durable = side.lock.read()?.unwrap_or_default();
        self.check_halts(&floor)?;
        let file = match self.sync_file(mine.segment) {
            Ok(file) => file,
            Err(e) if *e.kind() == ErrorKind::NotFound => return Ok(Some(Ack::Again)),
            Err(e) => return Err(e),
        };
        if !trailer_is(&*self.storage, &*file, mine.segment, mine.offset, mine.crc)? {
            return Ok(Some(Ack::Again));
        }
        if floor.seq >= mine.seq.0 {
            self.view.marks.raise(Seq(floor.seq), Seq::ZERO);
            return Ok(Some(Ack::Durable));
        }
        let written: Written = side.written.read()?.unwrap_or_default();
        let fits = written.segment == floor.segment
            && written.segment == mine.segment.0
            && written.seq >= mine.seq.0;
        if floor.syncing || !fits {
            return Ok(None);
        }
        side.lock.write(&Durable { syncing: true, ..floor })?;
        if file.sync_data().is_err() {
            return Ok(None);
        }
        let end = End {
            segment: Seq(written.segment),
            offset: written.offset,
            seq: Seq(written.seq),
            crc: written.crc(),
            time: mine.time,
        };
        side.lock.write(&durable_at(&end, floor.halts))?;
        self.view.marks.raise(end.seq, Seq::ZERO);
        Ok(Some(Ack::Durable))
    }

    /// The descriptor to sync a segment by: one that was open before its lines were written, so that an error of the
    /// kernel's own write-back is seen by it.
    fn sync_file(&self, segment: Seq) -> Result<Arc<dyn File>> {
        let kept = locked(&self.active).clone();
        match kept {
            Some((first, file)) if first == segment => Ok(file),
            _ => segments::open(&*self.storage, segment, crate::storage::Access::Read),
        }
    }
}

fn fail_unsynced(jobs: &mut [Job<'_>], error: &Error) {
    for job in jobs.iter_mut().filter(|job| job.to_sync().is_some()) {
        job.outcome = Some(Err(indeterminate(error.clone())));
    }
}

/// The lines may be in the log and may be durable; only a repeat with the same ids tells.
pub(super) fn indeterminate(error: Error) -> Error {
    Error::new(ErrorKind::Indeterminate, "the events are perhaps in the log")
        .hint("append them again with the same ids")
        .caused_by(error)
}

pub(super) fn unplanned() -> Error {
    Error::new(ErrorKind::Unavailable, "the append was not made")
}
