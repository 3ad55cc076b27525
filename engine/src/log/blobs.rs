//! Contents that are too big for a line, each in a file that bears the name of its hash. The file and its folders are
//! on stable storage before the line that names it is written, also when the file was there before. Until it has its
//! name a file lies in a folder of its own kind, locked by who writes it, so that what a dead process left is told from
//! what a living one is at.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{BLOB_DIR, BLOB_NEW_DIR, BlobRef, Line, Payload, blob_path};
use crate::storage::{Access, File, Locked, Storage, lock, read_full, try_lock, write_full};
use crate::store::blob::{carry, is_big, is_content};
use crate::store::{Append, BLOB_MAX, Damage, DamageClass, Durability, Record, Touched, admit};

use super::Writer;
use super::draft::Batch;

impl Writer {
    /// The append as its lines will carry it, with the contents that lie apart on stable storage.
    ///
    /// # Errors
    /// `InvalidInput` and `TooLarge` for what cannot be appended, and what the disk says.
    pub(super) fn carry(&self, append: Append) -> Result<(Batch, Durability)> {
        admit::check_form(&append)?;
        let Append { mut events, expectations, durability } = append;
        let mut blobs = Vec::new();
        for (at, event) in events.iter_mut().enumerate().filter(|(_, event)| is_big(event)) {
            let (carried, content) = carry(event.clone())?;
            if let (Some(blob), Some(content)) = (&carried.blob, content) {
                keep(&*self.storage, blob, content.as_bytes()).map_err(|e| {
                    let path = self.storage.display(&path_of(blob));
                    Error::io("cannot keep the content of an event", e).path(path)
                })?;
            }
            *event = carried.event;
            blobs.extend(carried.blob.map(|blob| (at, blob)));
        }
        Ok((Batch::new(events, blobs, expectations), durability))
    }
}

fn path_of(blob: &BlobRef) -> String {
    blob_path(&blob.sha256_hex())
}

fn keep(storage: &dyn Storage, blob: &BlobRef, content: &[u8]) -> io::Result<()> {
    let path = path_of(blob);
    let folder = path.rsplit_once('/').map_or(BLOB_DIR, |(folder, _)| folder);
    storage.create_dir(folder)?;
    storage.create_dir(BLOB_NEW_DIR)?;
    storage.sync_dir("")?;
    storage.sync_dir(BLOB_DIR)?;
    if read(storage, blob)?.is_some() {
        storage.open(&path, Access::Read)?.sync_data()?;
        return storage.sync_dir(folder);
    }
    let Begun { name, file, lock } = begin(storage)?;
    let written = write_full(&*file, content, 0)
        .and_then(|()| file.sync_data())
        .and_then(|()| storage.rename(&name, &path));
    if let Err(e) = written {
        // Only a file that no line names is left behind, until the store is opened again.
        let _ = storage.remove(&name);
        return Err(e);
    }
    drop(lock);
    storage.sync_dir(folder)
}

/// A content that has no name yet.
struct Begun {
    name: String,
    file: Arc<dyn File>,
    /// Held as long as the file bears that name.
    lock: Locked,
}

/// A new file that nobody else writes and nobody takes for a dead process's.
fn begin(storage: &dyn Storage) -> io::Result<Begun> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{BLOB_NEW_DIR}/{}-{number}", std::process::id());
        let file = match storage.open(&name, Access::CreateNew) {
            // A process of this number died, or lives in another space of numbers.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        let lock = lock(&file)?;
        if is_named(storage, &name, &*file) {
            return Ok(Begun { name, file, lock });
        }
    }
}

/// Whether the file bears this name still.
fn is_named(storage: &dyn Storage, name: &str, file: &dyn File) -> bool {
    let found = storage.stat(name).and_then(|found| Ok(found.id == file.id()?));
    found.unwrap_or(false)
}

/// Removes what processes that died left of contents that never got their name. One that stays is in nobody's way.
pub(super) fn remove_unnamed(storage: &dyn Storage) {
    for name in storage.list(BLOB_NEW_DIR).unwrap_or_default() {
        let name = format!("{BLOB_NEW_DIR}/{name}");
        let Ok(file) = storage.open(&name, Access::Write) else { continue };
        let Ok(held) = try_lock(&file) else { continue };
        // Who wrote it may have given it its name since the folder was listed.
        if is_named(storage, &name, &*file) {
            let _ = storage.remove(&name);
        }
        drop(held);
    }
}

/// The content, when it is there and is what the hash says.
fn read(storage: &dyn Storage, blob: &BlobRef) -> io::Result<Option<Vec<u8>>> {
    let file = match storage.open(&path_of(blob), Access::Read) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    // The length on the line was not checked by anybody before memory is taken for it.
    let count = usize::try_from(blob.bytes).unwrap_or(usize::MAX);
    if count > BLOB_MAX || file.size()? != blob.bytes {
        return Ok(None);
    }
    let mut bytes = vec![0; count];
    let got = read_full(&*file, &mut bytes, 0)?;
    Ok((got == count && is_content(blob, &bytes)).then_some(bytes))
}

/// The whole payload of a record.
pub(super) fn payload(storage: &dyn Storage, record: &Record) -> Result<Payload> {
    let Some(blob) = &record.blob else { return Ok(record.data.clone()) };
    let path = || storage.display(&path_of(blob));
    let bytes = read(storage, blob)
        .map_err(|e| Error::io("cannot read the content of an event", e).path(path()))?;
    let content = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
        Error::new(ErrorKind::Corrupt, "the content of the event is absent or damaged")
            .path(path())
            .seq(record.seq)
            .hint("see `annals verify`")
    })?;
    Ok(record.data.join_content(&content))
}

/// The damage of a line whose content is absent or wrong.
pub(super) fn damage(storage: &dyn Storage, line: &Line<'_>) -> Option<Damage> {
    let blob = line.fields.blob.as_ref()?;
    if matches!(read(storage, blob), Ok(Some(_))) {
        return None;
    }
    let (stream, version) = (line.fields.stream.clone().into_owned(), line.fields.version);
    Some(Damage {
        class: DamageClass::Blob,
        file: path_of(blob),
        offset: 0,
        bytes: blob.bytes,
        seqs: Some((line.fields.seq, line.fields.seq)),
        touched: vec![Touched { stream, versions: Some((version, version)) }],
        accepted: false,
        detail: "the content of the event is absent or is not what its hash says".to_owned(),
    })
}
