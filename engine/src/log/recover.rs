//! Settling: what an opening, odd bytes at the tail and a failed sync have in common. Both locks are held. The lines
//! from the floor to the last whole batch are verified, kept, written again where they are and synced; what lies behind
//! them is a torn tail, and set aside, or damage, and left alone.

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::format::scan::{Piece, Scan};
use crate::format::slot::Durable;
use crate::format::{LOG_DIR, Line, TORN_DIR, control, hex};
use crate::id::Seq;
use crate::storage::{Access, Storage, write_full};
use crate::store::{Damage, DamageClass};

use super::draft::Draft;
use super::segments::{self, Bytes};
use super::tail::{End, Tail};
use super::visit::{At, SegmentVisit};
use super::walk::{Link, Span, Walk, classify_rest, legible};
use super::{AppendSide, Notice, SyncSide, Writer};

/// The active segment as it lies on the disk, judged.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) active: Seq,
    /// The bytes from `base` on; what is before was verified once.
    bytes: Bytes,
    base: u64,
    /// How many of them the unbroken chain has, which ends with a whole batch.
    whole: usize,
    /// What the next line must follow.
    link: Link,
    pub(super) sealed: bool,
    /// The highest position that anything states to be durable.
    pub(super) durable: Seq,
}

/// The answer of the recovery table.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing lies behind the last whole batch.
    Clean,
    /// What lies behind was never acknowledged.
    Torn,
    /// Acknowledged events are lost or damaged.
    Damaged(Box<Damage>),
}

impl Judged {
    /// Reads and judges the active segment from a place on: its start, or a place up to which it was verified and
    /// synced before.
    pub(super) fn read(
        storage: &dyn Storage,
        visit: &SegmentVisit,
        from: At,
        floor: Seq,
    ) -> Result<Self> {
        Self::read_each(storage, visit, from, floor, &mut |_, _| {})
    }

    /// Reads and judges as [`Judged::read`] does, and shows every line of the unbroken chain.
    pub(super) fn read_each(
        storage: &dyn Storage,
        visit: &SegmentVisit,
        from: At,
        floor: Seq,
        line_seen: &mut dyn FnMut(Span, &Line<'_>),
    ) -> Result<Self> {
        let file = segments::open(storage, visit.first, Access::Read)?;
        let base = from.offset;
        let bytes = segments::read_from(storage, visit.first, &*file, base)?;
        let mut walk = Walk::new(&bytes, base, from.link, Seq::ZERO);
        let (mut whole, mut link, mut durable) = (0, from.link, floor);
        while let Some((span, line)) = walk.next_unbroken() {
            if span.offset == 0 && visit.header_fault(storage, &line)?.is_some() {
                break;
            }
            line_seen(span, &line);
            durable = durable.max(line.fields.durable);
            whole = usize::try_from(span.end() - base).unwrap_or(usize::MAX);
            link = walk.link();
        }
        let sealed = walk.is_sealed();
        let rest = bytes.get(whole..).unwrap_or_default();
        if !sealed {
            for (_, _, piece) in Scan::new(rest) {
                if let Piece::Line(line) = piece {
                    durable = durable.max(line.fields.durable);
                }
            }
        }
        Ok(Self { active: visit.first, base, whole, link, sealed, durable, bytes })
    }

    /// What the table says.
    pub(super) fn verdict(&self) -> Verdict {
        if self.link.seq < self.durable {
            let rest = self.rest();
            let (class, detail) = if rest.is_empty() {
                (DamageClass::Lost, "the segment ends before acknowledged events".to_owned())
            } else {
                classify_rest(rest)
            };
            return Verdict::Damaged(Box::new(Damage {
                class,
                file: crate::format::segment_path(self.active),
                offset: self.end(),
                bytes: rest.len() as u64,
                seqs: Some((self.link.seq.next(), self.durable)),
                touched: super::gaps::touched(&legible(rest)),
                accepted: false,
                detail,
            }));
        }
        if self.sealed || self.rest().is_empty() { Verdict::Clean } else { Verdict::Torn }
    }

    /// The damage of a segment without a header of its own, whose first line nothing in the log leads to: a file that
    /// somebody put there, or a copy of another segment. `before` is what its first line would have to follow.
    pub(super) fn stray(&self, before: Link) -> Option<Damage> {
        (self.end() == 0 && self.active > Seq(1) && before.crc.is_none()).then(|| Damage {
            class: DamageClass::Misplaced,
            file: crate::format::segment_path(self.active),
            offset: 0,
            bytes: self.bytes.len() as u64,
            seqs: None,
            touched: Vec::new(),
            accepted: false,
            detail: "no segment of this log: nothing in the log leads to it".to_owned(),
        })
    }

    /// All bytes that were judged.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the unbroken chain.
    pub(super) fn chain(&self) -> &[u8] {
        self.bytes.get(..self.whole).unwrap_or_default()
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.whole..).unwrap_or_default()
    }

    /// The bytes of the unbroken chain from an offset of the segment on.
    fn body(&self, storage: &dyn Storage, from: u64) -> Result<Vec<u8>> {
        if let Some(start) = from.checked_sub(self.base) {
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            return Ok(self.bytes.get(start..self.whole).unwrap_or_default().to_vec());
        }
        let file = segments::open(storage, self.active, Access::Read)?;
        let mut body = segments::read_from(storage, self.active, &*file, from)?.to_vec();
        body.truncate(usize::try_from(self.end() - from).unwrap_or(usize::MAX));
        Ok(body)
    }

    /// What a line behind the unbroken chain has to follow.
    pub(super) const fn link(&self) -> Link {
        self.link
    }

    /// The last position of the unbroken chain.
    pub(super) const fn reached(&self) -> Seq {
        self.link.seq
    }

    /// Where the unbroken chain ends in the segment.
    fn end(&self) -> u64 {
        self.base + self.whole as u64
    }
}

impl Writer {
    /// Settles the log. On return the knowledge of `append` is the log's whole content, all of it durable, both slots
    /// name its end, and the active segment takes lines.
    ///
    /// # Errors
    /// `Corrupt` with the damage when acknowledged events are lost or damaged: nothing was touched. What the
    /// disk says when a second sync in a row fails; handles that are open then get `ReadOnly` from now on.
    pub(super) fn settle(&self, append: &mut AppendSide, sync: &mut SyncSide) -> Result<()> {
        let halts = |sync: &SyncSide| -> Result<u64> {
            Ok(sync.lock.read::<Durable>()?.unwrap_or_default().halts)
        };
        let before = halts(sync)?;
        match self.settle_once(append, sync) {
            // The last sync may have told of a failure that was settled before it; a disk that goes on failing raises
            // the count.
            Err(e) if *e.kind() == ErrorKind::Io && halts(sync)? == before => {
                self.settle_once(append, sync)
            }
            settled => settled,
        }
    }

    fn settle_once(&self, append: &mut AppendSide, sync: &mut SyncSide) -> Result<()> {
        let storage = &*self.storage;
        let names = segments::names(storage)?;
        segments::remove_temporary(storage, &names)?;
        let floor: Durable = sync.lock.read()?.unwrap_or_default();
        let segments = segments::firsts(&names);
        let Some(active) = segments.last().copied() else {
            return self.begin(append, sync, &floor);
        };
        let before = (append.tail.end.segment, append.tail.file_id);
        if !append.tail.approach(storage, &segments)? {
            append.tail = Tail::new(&self.storage, self.id);
            append.tail.approach(storage, &segments)?;
        }
        // The floor speaks of the file that was there before.
        let floor_holds =
            before.0 != active || before.1.is_none() || before.1 == append.tail.file_id;
        let visit = SegmentVisit { store: self.id, first: active, next: None, durable: Seq::ZERO };
        let from = append.tail.checkpoint(active, &floor);
        let mut learn = |span, line: &Line<'_>| append.tail.follow(span, line);
        let mut judged = Judged::read_each(storage, &visit, from, Seq(floor.seq), &mut learn)?;
        let reaches = judged.end() >= floor.offset && judged.reached().0 >= floor.seq;
        if from.offset > 0 && !reaches {
            judged = Judged::read(storage, &visit, append.tail.start(), Seq(floor.seq))?;
        }
        if let Some(damage) = judged.stray(append.tail.before) {
            return Err(self.refuse(&damage));
        }
        match judged.verdict() {
            Verdict::Damaged(damage) => return Err(self.refuse(&damage)),
            Verdict::Torn => self.set_aside(&judged, sync, &floor)?,
            Verdict::Clean => {}
        }
        if judged.end() == 0 {
            self.roll_into(append, sync, active, judged.link, &floor)?;
        } else {
            self.make_durable(&judged, append, sync, (&floor, floor_holds))?;
        }
        if append.tail.sealed {
            self.finish_roll(append, sync)?;
        }
        self.name_torn(append, sync)?;
        append.lock.write(&append.tail.end.written())?;
        self.view.marks.raise(append.tail.end.seq, append.tail.end.seq);
        Ok(())
    }

    /// Makes the first segment of a store.
    fn begin(&self, append: &mut AppendSide, sync: &mut SyncSide, floor: &Durable) -> Result<()> {
        if floor.seq > 0 {
            return Err(self.refuse(&Damage {
                class: DamageClass::Lost,
                file: LOG_DIR.to_owned(),
                offset: 0,
                bytes: 0,
                seqs: Some((Seq(1), Seq(floor.seq))),
                touched: Vec::new(),
                accepted: false,
                detail: "every segment is gone".to_owned(),
            }));
        }
        self.make_folder_durable()?;
        append.tail = Tail::new(&self.storage, self.id);
        self.roll_into(append, sync, Seq(1), Link::START, floor)?;
        append.lock.write(&append.tail.end.written())?;
        self.view.marks.raise(append.tail.end.seq, append.tail.end.seq);
        Ok(())
    }

    /// Makes the entries of the store's own folder durable before anything is acknowledged: who made them may have died
    /// before he synced them, and a power loss may have taken the folder of the segments again.
    fn make_folder_durable(&self) -> Result<()> {
        let made = self.storage.create_dir(LOG_DIR).and_then(|()| self.storage.sync_dir(""));
        made.map_err(|e| Error::io("cannot make the store", e).path(self.storage.display("")))
    }

    /// Brings the knowledge up to the end of the unbroken chain, anew where lines that it has seen are gone.
    pub(super) fn learn(&self, append: &mut AppendSide) -> Result<()> {
        if !append.tail.catch_up(&*self.storage)? {
            append.tail = Tail::new(&self.storage, self.id);
            append.tail.catch_up(&*self.storage)?;
        }
        Ok(())
    }

    fn refuse(&self, damage: &Damage) -> Error {
        let what = damage.class.code();
        let message = match damage.seqs {
            Some((first, _)) => {
                format!("the log is {what} at position {first}; nothing is appended")
            }
            None => format!("a file of the log is {what}; nothing is appended"),
        };
        let error = Error::new(ErrorKind::Corrupt, message)
            .path(self.storage.display(&damage.file))
            .offset(damage.offset);
        let error = match damage.seqs {
            Some((first, _)) => error.seq(first),
            None => error,
        };
        error.hint("reading goes on; `annals verify` shows the damage, and `annals repair --apply` accepts it")
    }

    /// Copies what lies behind the last whole batch to its own file and cuts it off.
    fn set_aside(&self, judged: &Judged, sync: &SyncSide, floor: &Durable) -> Result<()> {
        let rest = judged.rest();
        let path = self.keep(judged.active, judged.end(), rest)?;
        sync.lock.write(&Durable { syncing: true, ..*floor })?;
        let file = segments::open(&*self.storage, judged.active, Access::Write)?;
        file.truncate(judged.end())
            .map_err(|e| segments::error(&*self.storage, judged.active, "cut", e))?;
        self.notice(&Notice::TornTail {
            segment: judged.active,
            offset: judged.end(),
            bytes: rest.len() as u64,
            kept: path,
        });
        Ok(())
    }

    /// Keeps bytes under a name that tells where they were and what they are; durable on return.
    pub(super) fn keep(&self, segment: Seq, offset: u64, bytes: &[u8]) -> Result<String> {
        let path = format!("{TORN_DIR}/{}", torn_name(segment, offset, bytes));
        self.write_torn(&path, bytes)?;
        Ok(path)
    }

    /// Writes a file of torn bytes. One of that name with the same bytes in it, durable or not, has them at any moment.
    fn write_torn(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let storage = &*self.storage;
        let write = || {
            storage.create_dir(TORN_DIR)?;
            storage.sync_dir("")?;
            let file = storage.open(path, Access::WriteOrCreate)?;
            write_full(&*file, bytes, 0)?;
            file.truncate(bytes.len() as u64)?;
            file.sync_data()?;
            storage.sync_dir(TORN_DIR)
        };
        write().map_err(|e| {
            Error::io("cannot keep the bytes of a torn tail", e).path(storage.display(path))
        })
    }

    /// Writes the lines above the floor again where they are, so that their pages are dirty whatever an earlier sync
    /// did to them, and syncs. Twice at most; then the store takes no appends until it is opened again.
    fn make_durable(
        &self,
        judged: &Judged,
        append: &mut AppendSide,
        sync: &SyncSide,
        (floor, floor_holds): (&Durable, bool),
    ) -> Result<()> {
        if append.tail.end.offset != judged.end() || append.tail.end.seq != judged.link.seq {
            append.tail = Tail::new(&self.storage, self.id);
            append.tail.catch_up(&*self.storage)?;
        }
        let end = append.tail.end;
        let named = floor.segment == end.segment.0 && floor.offset <= end.offset;
        let settled = named && !floor.syncing && floor.seq == end.seq.0 && floor.check == end.crc.0;
        if settled && floor_holds && matches!(judged.verdict(), Verdict::Clean) {
            return Ok(());
        }
        let from = if named { floor.offset } else { 0 };
        let body = judged.body(&*self.storage, from)?;
        sync.lock.write(&Durable { syncing: true, ..*floor })?;
        let file = segments::open(&*self.storage, end.segment, Access::Write)?;
        let attempt = || {
            write_full(&*file, &body, from)?;
            file.sync_data()
        };
        if attempt().is_err()
            && let Err(e) = attempt()
        {
            sync.lock.write(&Durable { syncing: true, halts: floor.halts + 1, ..*floor })?;
            return Err(Error::io("a second sync in a row failed", e)
                .path(self.storage.display(&crate::format::segment_path(end.segment)))
                .hint("look at the disk; the store takes no appends until it is opened again"));
        }
        self.storage.sync_dir(LOG_DIR).map_err(|e| {
            Error::io("cannot sync the folder", e).path(self.storage.display(LOG_DIR))
        })?;
        sync.lock.write(&durable_at(&end, floor.halts))
    }

    /// Writes a line for every complete torn file that no line names yet.
    fn name_torn(&self, append: &mut AppendSide, sync: &SyncSide) -> Result<()> {
        let storage = &*self.storage;
        let names = storage.list(TORN_DIR).unwrap_or_default();
        if names.is_empty() {
            return Ok(());
        }
        let named = append.tail.torn_named(storage)?;
        let mut unnamed = Vec::new();
        for name in names {
            let path = format!("{TORN_DIR}/{name}");
            if named.contains(&path) {
                continue;
            }
            if let Some(recovered) = self.complete_torn(&name, &path)? {
                unnamed.push(recovered);
            }
        }
        if unnamed.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let mut draft = Draft::new(&append.tail, append.tail.end.seq);
        for recovered in &unnamed {
            draft.control(control::RECOVERED, recovered, draft.control_time(now))?;
        }
        let lines = draft.finish();
        self.write_lines(&mut append.tail, &lines)?;
        self.sync_here(append, sync)
    }

    /// The line for a torn file, if its copy was finished: its name ends with the beginning of its hash. Who made the copy
    /// may have died before it was durable, so it is made durable before a line says that it is there.
    fn complete_torn(&self, name: &str, path: &str) -> Result<Option<control::Recovered>> {
        let Some((segment, rest)) = name.split_once('@') else { return Ok(None) };
        let Some((offset, sum)) = rest.split_once('.') else { return Ok(None) };
        let Ok(offset) = offset.parse::<u64>() else { return Ok(None) };
        let read = || {
            let file = self.storage.open(path, Access::Read)?;
            let mut bytes = vec![0; usize::try_from(file.size()?).unwrap_or(usize::MAX)];
            let got = crate::storage::read_full(&*file, &mut bytes, 0)?;
            bytes.truncate(got);
            Ok(bytes)
        };
        let bytes = read().map_err(|e| {
            Error::io("cannot read the bytes of a torn tail", e).path(self.storage.display(path))
        })?;
        let sha256 = hex(&Sha256::digest(&bytes));
        if !sha256.starts_with(sum) {
            return Ok(None);
        }
        self.write_torn(path, &bytes)?;
        Ok(Some(control::Recovered {
            segment: format!("{segment}.jsonl"),
            offset,
            bytes: bytes.len() as u64,
            sha256,
            torn: path.to_owned(),
        }))
    }

    /// Syncs the active segment and publishes its end as durable; both locks are held and nothing is unsettled.
    pub(super) fn sync_here(&self, append: &AppendSide, sync: &SyncSide) -> Result<()> {
        let floor: Durable = sync.lock.read()?.unwrap_or_default();
        sync.lock.write(&Durable { syncing: true, ..floor })?;
        let end = append.tail.end;
        let file = append.tail.file.as_ref();
        let synced = file.map_or(Ok(()), |file| file.sync_data());
        synced.map_err(|e| segments::error(&*self.storage, end.segment, "sync", e))?;
        sync.lock.write(&durable_at(&end, floor.halts))
    }
}

/// The durable slot of a log that is on stable storage up to its end.
pub(super) fn durable_at(end: &End, halts: u64) -> Durable {
    Durable {
        segment: end.segment.0,
        offset: end.offset,
        seq: end.seq.0,
        check: end.crc.0,
        syncing: false,
        halts,
    }
}

fn torn_name(segment: Seq, offset: u64, bytes: &[u8]) -> String {
    let sum = hex(&Sha256::digest(bytes));
    format!("{:020}@{offset}.{}", segment.0, sum.get(..8).unwrap_or_default())
}
