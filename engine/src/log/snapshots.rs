//! Snapshots as files. They are read by everybody and written by appending processes alone, one at a time, after an
//! append was answered and with no other lock of the store held. Whatever is wrong with one, it is passed over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::format::slot::Durable;
use crate::format::snapshot::{HEADER_MAX, Header, file_name, file_seq};
use crate::format::{SNAPSHOT_DIR, SYNC_LOCK, crc32, segment_path};
use crate::id::Seq;
use crate::storage::{Access, File, read_full, try_lock, write_full};
use crate::store::{Cursor, Snapshot, View};

use super::slots::peek;
use super::{LogView, Writer, locked, reader, segments};

/// Held while a snapshot is made; a process that finds it held leaves the work to the one that holds it.
const LOCK: &str = "snapshots/lock";

/// What has grown since the last snapshot may reach so many times its size before another is made, so that keeping
/// snapshots costs a bounded share of appending, however many sessions there are.
const SIZES: u64 = 4;

const TEMPORARY: &str = ".new";

impl LogView {
    /// The newest snapshot that can be used; see `EventStore::snapshot`.
    pub(super) fn snapshot(
        self: &Arc<Self>,
        projection: &str,
        schema: u64,
        below: Option<Seq>,
    ) -> Option<Snapshot> {
        let mut known = self.kept(projection);
        known.retain(|seq| below.is_none_or(|below| *seq < below));
        known.into_iter().rev().find_map(|seq| {
            let (file, header, len) = self.header(projection, schema, seq)?;
            let count = usize::try_from(header.bytes).ok().filter(|n| *n <= Snapshot::BYTES_MAX)?;
            let whole = (len as u64).checked_add(header.bytes)?;
            if file.size().ok()? != whole || !self.is_durable(seq) {
                return None;
            }
            let mut state = vec![0; count];
            let got = read_full(&*file, &mut state, len as u64).ok()?;
            let cursor = Cursor { store: self.id, seq, crc: header.crc };
            (got == count && crc32(&state) == header.check).then_some(Snapshot {
                cursor,
                schema,
                state,
            })
        })
    }

    /// The positions of the snapshots of a projection, in order.
    fn kept(&self, projection: &str) -> Vec<Seq> {
        let names = self.storage.list(SNAPSHOT_DIR).unwrap_or_default();
        names.iter().filter_map(|name| file_seq(name, projection)).collect()
    }

    /// A snapshot of this name, with its header and how long that is, if it is what its name says.
    fn header(
        &self,
        projection: &str,
        schema: u64,
        seq: Seq,
    ) -> Option<(Arc<dyn File>, Header, usize)> {
        let path = format!("{SNAPSHOT_DIR}/{}", file_name(projection, seq));
        let file = self.storage.open(&path, Access::Read).ok()?;
        let mut head = [0; HEADER_MAX];
        let got = read_full(&*file, &mut head, 0).ok()?;
        let (header, len) = Header::decode(head.get(..got)?)?;
        let fits = header.projection == projection
            && header.store == self.id
            && header.schema == schema
            && header.seq == seq;
        fits.then_some((file, header, len))
    }

    fn is_durable(self: &Arc<Self>, seq: Seq) -> bool {
        let slot = || peek::<Durable>(&*self.storage, SYNC_LOCK).ok().flatten();
        let end = || reader::end(self, View::Durable).ok().flatten();
        seq <= self.marks.durable()
            || slot().is_some_and(|floor| seq.0 <= floor.seq)
            || end().is_some_and(|end| seq <= end.seq)
    }
}

impl Writer {
    /// See `EventStore::keep_snapshot`.
    pub(super) fn keep_snapshot(
        &self,
        projection: &str,
        schema: u64,
        make: &mut dyn FnMut() -> Result<Option<Snapshot>>,
    ) -> Result<bool> {
        if !self.has_grown_for(projection) || !self.is_due(projection, schema)? {
            return Ok(false);
        }
        let fail = |doing: &'static str| {
            move |e| Error::io(doing, e).path(self.storage.display(SNAPSHOT_DIR))
        };
        self.storage.create_dir(SNAPSHOT_DIR).map_err(fail("cannot make the folder"))?;
        let file = self.storage.open(LOCK, Access::WriteOrCreate).map_err(fail("cannot open"))?;
        let held = match try_lock(&file) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            other => other.map_err(fail("cannot lock"))?,
        };
        // Another process may have made one between the two looks.
        let made = match self.is_due(projection, schema)? {
            true => make()?,
            false => None,
        };
        let kept = match made {
            Some(snapshot) => self.write_snapshot(projection, &snapshot),
            None => Ok(false),
        };
        drop(held);
        kept
    }

    /// Whether another stretch was closed since this was asked for this projection.
    fn has_grown_for(&self, projection: &str) -> bool {
        let closed = self.closed.load(Ordering::SeqCst);
        let mut seen = locked(&self.seen_closed);
        match seen.get_mut(projection) {
            Some(seen) => std::mem::replace(seen, closed) != closed,
            None => seen.insert(projection.to_owned(), closed).is_none() && closed > 0,
        }
    }

    /// Whether so much was appended since the last snapshot that another is worth its price.
    fn is_due(&self, projection: &str, schema: u64) -> Result<bool> {
        let usable = |seq: &Seq| self.view.header(projection, schema, *seq);
        let last = self.view.kept(projection).into_iter().rev().find_map(|seq| {
            let (_, header, _) = usable(&seq)?;
            Some((seq, header.bytes))
        });
        let (seq, bytes) = last.unwrap_or_default();
        let least = self.view.options.snapshot_bytes.max(bytes.saturating_mul(SIZES));
        Ok(self.bytes_behind(seq)? >= least)
    }

    /// About how many bytes of the log lie behind a position: in the segment that holds it lines are taken to be of
    /// even length.
    fn bytes_behind(&self, seq: Seq) -> Result<u64> {
        let end = locked(&self.append).tail.end.seq;
        let segments = segments::list(&*self.storage)?;
        let holding = segments.partition_point(|first| *first <= seq).saturating_sub(1);
        let mut bytes = 0_u64;
        for (i, first) in segments.iter().enumerate().skip(holding) {
            let path = segment_path(*first);
            let size = match self.storage.stat(&path) {
                Ok(stat) => stat.len,
                Err(e) if e.kind() == io::ErrorKind::NotFound => 0,
                Err(e) => {
                    return Err(segments::error(&*self.storage, *first, "look at", e));
                }
            };
            let last = segments.get(i + 1).map_or(end.0, |next| next.0 - 1);
            let lines = (last + 1).saturating_sub(first.0).max(1);
            let behind = last.saturating_sub(seq.0.max(first.0 - 1)).min(lines);
            let share = u128::from(size) * u128::from(behind) / u128::from(lines);
            bytes = bytes.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
        }
        Ok(bytes)
    }

    /// Puts a snapshot in its place, durable before it has its name, and removes what it replaces. The caller holds the
    /// lock, so that every temporary file is a dead process's. `false` for a state that is too big to keep.
    fn write_snapshot(&self, projection: &str, snapshot: &Snapshot) -> Result<bool> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        self.remove_leftovers();
        let bytes = snapshot.state.len();
        if bytes > Snapshot::BYTES_MAX || snapshot.cursor.store != self.id {
            return Ok(false);
        }
        let header = Header {
            projection: projection.to_owned(),
            store: self.id,
            schema: snapshot.schema,
            seq: snapshot.cursor.seq,
            crc: snapshot.cursor.crc,
            bytes: bytes as u64,
            check: crc32(&snapshot.state),
        }
        .encode();
        let name = file_name(projection, snapshot.cursor.seq);
        let path = format!("{SNAPSHOT_DIR}/{name}");
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{path}.{}-{number}{TEMPORARY}", std::process::id());
        let write = || {
            let file = self.storage.open(&temporary, Access::CreateNew)?;
            write_full(&*file, &header, 0)?;
            write_full(&*file, &snapshot.state, header.len() as u64)?;
            file.sync_data()?;
            self.storage.rename(&temporary, &path)?;
            self.storage.sync_dir(SNAPSHOT_DIR)
        };
        write().map_err(|e| {
            // Nobody looks for it under this name.
            let _ = self.storage.remove(&temporary);
            Error::io("cannot write a snapshot", e).path(self.storage.display(&path))
        })?;
        self.remove_replaced(projection, snapshot.cursor.seq);
        Ok(true)
    }

    /// Removes what processes that died left of snapshots, if no other makes one now.
    pub(super) fn remove_unnamed_snapshots(&self) {
        let names = self.storage.list(SNAPSHOT_DIR).unwrap_or_default();
        if !names.iter().any(|name| name.ends_with(TEMPORARY)) {
            return;
        }
        let Ok(file) = self.storage.open(LOCK, Access::Write) else { return };
        let Ok(held) = try_lock(&file) else { return };
        self.remove_leftovers();
        drop(held);
    }

    fn remove_leftovers(&self) {
        for name in self.storage.list(SNAPSHOT_DIR).unwrap_or_default() {
            if name.ends_with(TEMPORARY) {
                // One that stays is in nobody's way.
                let _ = self.storage.remove(&format!("{SNAPSHOT_DIR}/{name}"));
            }
        }
    }

    /// Keeps the snapshot of this position and the one before it. One of a later position is of a history that is gone,
    /// or of another program's fold.
    fn remove_replaced(&self, projection: &str, seq: Seq) {
        let kept = self.view.kept(projection);
        let before = kept.iter().copied().filter(|other| *other < seq).max();
        for other in kept.into_iter().filter(|other| *other != seq && Some(*other) != before) {
            // One that stays is passed over or tried in vain.
            let _ =
                self.storage.remove(&format!("{SNAPSHOT_DIR}/{}", file_name(projection, other)));
        }
    }
}
