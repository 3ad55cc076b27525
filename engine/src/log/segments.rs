//! The segments of a store as files: which there are, their bytes, and how a new one comes to be.

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    LINE_MIN, LOG_DIR, STORE_FILE, TRAILER, decode, segment_first, segment_path, trailer_crc,
};
use crate::id::Seq;
use crate::storage::{Access, Advice, File, Mapping, Storage, read_full, write_full};

use super::walk::{Link, is_seal};

/// The first positions of all segments, in order.
pub(super) fn list(storage: &dyn Storage) -> Result<Vec<Seq>> {
    names(storage).map(|names| firsts(&names))
}

/// The first positions of the segments among these names, in order.
pub(super) fn firsts(names: &[String]) -> Vec<Seq> {
    names.iter().filter_map(|name| segment_first(name)).collect()
}

/// The names of all files in the folder of the segments, in order. A store that is not there any more is no empty one.
pub(super) fn names(storage: &dyn Storage) -> Result<Vec<String>> {
    match storage.list(LOG_DIR) {
        Ok(names) => Ok(names),
        Err(e) if e.kind() == io::ErrorKind::NotFound => still_there(storage).map(|()| Vec::new()),
        Err(e) => Err(Error::io("cannot list the segments", e).path(storage.display(LOG_DIR))),
    }
}

/// Whether the folder still says that it is a store. It says so for as long as there is one.
fn still_there(storage: &dyn Storage) -> Result<()> {
    match storage.open(STORE_FILE, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(Error::new(ErrorKind::NotFound, "the store is not there any more")
                .path(storage.display(""))
                .hint("its folder was moved or removed while this was at work: put it back, or open it where it is now"))
        }
        // What else is wrong with that file does not make the store absent.
        _ => Ok(()),
    }
}

/// The largest segment in bytes: so much is read into memory at the most, whatever the size of the file.
pub(super) const SEGMENT_MAX: u64 = 1 << 30;

/// So many lines a segment has at the most.
pub(super) const LINES_MAX: u64 = SEGMENT_MAX / LINE_MIN as u64;

/// The bytes of a segment.
#[derive(Debug)]
pub(super) enum Bytes {
    Mapped(Mapping),
    Read(Vec<u8>),
}

impl Bytes {
    /// Says what they are about to be read for.
    pub(super) fn advise(&self, advice: Advice) {
        if let Self::Mapped(map) = self {
            map.advise(advice);
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
}

/// The bytes of a segment that has a successor.
pub(super) fn map(storage: &dyn Storage, first: Seq) -> Result<Bytes> {
    map_file(storage, first, &*open(storage, first, Access::Read)?)
}

/// The bytes of a segment that has a successor, from its file. When it ends with its seal it is mapped: nobody writes
/// or cuts it any more. Another one was left behind damage, or what follows it is a stray file, and once that is taken
/// away the end of this one may be cut: its bytes are copied.
pub(super) fn map_file(storage: &dyn Storage, first: Seq, file: &dyn File) -> Result<Bytes> {
    if !ends_with_seal(file).map_err(|e| error(storage, first, "read", e))? {
        return read_from(storage, first, file, 0);
    }
    file.map().map(Bytes::Mapped).map_err(|e| error(storage, first, "map", e))
}

/// The bytes of the active segment, mapped. Nobody may look at those that are not durable, since they may be cut.
pub(super) fn map_durable(file: &dyn File) -> io::Result<Bytes> {
    file.map().map(Bytes::Mapped)
}

/// So many bytes at the end of a segment hold its seal.
const SEAL_MAX: usize = 1_024;

fn ends_with_seal(file: &dyn File) -> io::Result<bool> {
    let mut end = [0; SEAL_MAX];
    let start = file.size()?.saturating_sub(SEAL_MAX as u64);
    let got = read_full(file, &mut end, start)?;
    let end = end.get(..got).unwrap_or_default();
    let before = end.split_last().and_then(|(_, rest)| memchr::memrchr(b'\n', rest));
    let last = before.and_then(|at| end.get(at + 1..)).unwrap_or_default();
    Ok(decode(last).is_ok_and(|line| is_seal(&line)))
}

/// The bytes of the active segment from an offset to its present end, copied: it may grow or be cut meanwhile.
pub(super) fn read_from(
    storage: &dyn Storage,
    first: Seq,
    file: &dyn File,
    offset: u64,
) -> Result<Bytes> {
    let read = || {
        let size = file.size()?;
        if size > SEGMENT_MAX {
            let what = format!("the file has {size} bytes, more than any segment");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let count = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; count];
        let got = read_full(file, &mut bytes, offset)?;
        bytes.truncate(got);
        Ok(bytes)
    };
    read().map(Bytes::Read).map_err(|e| error(storage, first, "read", e))
}

/// What the segment `first` follows when nothing is wrong with the end of the one before it.
pub(super) fn link_behind(storage: &dyn Storage, before: Option<Seq>, first: Seq) -> Link {
    let Some(before) = before else {
        let unknown = Link { seq: Seq(first.0 - 1), crc: None };
        return if first == Seq(1) { Link::START } else { unknown };
    };
    let crc = || {
        let file = open(storage, before, Access::Read).ok()?;
        let mut end = [0; TRAILER];
        let start = file.size().ok()?.checked_sub(TRAILER as u64)?;
        let got = read_full(&*file, &mut end, start).ok()?;
        trailer_crc(end.get(..got)?)
    };
    Link { seq: Seq(first.0 - 1), crc: crc() }
}

pub(super) fn open(storage: &dyn Storage, first: Seq, access: Access) -> Result<Arc<dyn File>> {
    storage.open(&segment_path(first), access).map_err(|e| error(storage, first, "open", e))
}

/// Makes a segment of these whole lines: written to a temporary name and synced, renamed, and the folder synced, so
/// that a segment is there with its header or not at all. Replaces a file of that name that has no header.
pub(super) fn create(storage: &dyn Storage, first: Seq, lines: &[u8]) -> Result<Arc<dyn File>> {
    let path = segment_path(first);
    let temporary = format!("{path}{TEMPORARY}");
    let fail = |verb: &'static str| move |e| error(storage, first, verb, e);
    let file = storage.open(&temporary, Access::WriteOrCreate).map_err(fail("make"))?;
    let written = file
        .truncate(0)
        .and_then(|()| write_full(&*file, lines, 0))
        .and_then(|()| file.sync_data());
    if let Err(e) = written {
        // What is left is a temporary file, which the next opening removes as well.
        let _ = storage.remove(&temporary);
        return Err(error(storage, first, "write", e));
    }
    storage.rename(&temporary, &path).map_err(fail("rename"))?;
    storage.sync_dir(LOG_DIR).map_err(fail("sync the folder of"))?;
    Ok(file)
}

const TEMPORARY: &str = ".new";

/// Removes what a dead process left among these names of a segment or an index that was never named. An index that a process is writing at
/// this moment may go with it, or be named before it can: that process goes on without, or with it.
pub(super) fn remove_temporary(storage: &dyn Storage, names: &[String]) -> Result<()> {
    for name in names.iter().filter(|name| name.ends_with(TEMPORARY)) {
        let path = format!("{LOG_DIR}/{name}");
        match storage.remove(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                let error = Error::io("cannot remove a leftover file", e);
                return Err(error.path(storage.display(&path)));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn error(storage: &dyn Storage, first: Seq, verb: &str, source: io::Error) -> Error {
    Error::io(format!("cannot {verb} a segment"), source)
        .path(storage.display(&segment_path(first)))
}
