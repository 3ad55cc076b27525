//! Contents that are too big for a line, each in a file that bears the name of its hash. The file and its folders are
//! on stable storage before the line that names it is written, also when the file was there before.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{BLOB_DIR, BlobRef, Line, Payload, blob_path};
use crate::storage::{Access, Storage, read_full, write_full};
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
        Ok((Batch { events, blobs, expectations }, durability))
    }
}

fn path_of(blob: &BlobRef) -> String {
    blob_path(&blob.sha256_hex())
}

fn keep(storage: &dyn Storage, blob: &BlobRef, content: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let path = path_of(blob);
    let folder = path.rsplit_once('/').map_or(BLOB_DIR, |(folder, _)| folder);
    storage.create_dir(folder)?;
    storage.sync_dir("")?;
    storage.sync_dir(BLOB_DIR)?;
    if read(storage, blob)?.is_some() {
        storage.open(&path, Access::Read)?.sync_data()?;
        return storage.sync_dir(folder);
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = format!("{path}.{}-{number}.new", std::process::id());
    let file = storage.open(&temporary, Access::WriteOrCreate)?;
    let written = file
        .truncate(0)
        .and_then(|()| write_full(&*file, content, 0))
        .and_then(|()| file.sync_data())
        .and_then(|()| storage.rename(&temporary, &path));
    if let Err(e) = written {
        // Only a file that no line names is left behind.
        let _ = storage.remove(&temporary);
        return Err(e);
    }
    storage.sync_dir(folder)
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
