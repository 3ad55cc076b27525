//! How a store comes to be, and how an existing one is recognised: `store.json`, written once.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{APPEND_LOCK, LOG_DIR, STORE_FILE, SYNC_LOCK, control};
use crate::id::{EventId, StoreId};
use crate::storage::{Access, Sharing, Storage, read_full, write_full};

use super::Options;
use super::slots::LockFile;

/// `store.json`.
#[derive(Debug, Serialize, Deserialize)]
struct StoreFile {
    format: u32,
    store: String,
    created: String,
}

/// Refuses what several writers cannot share.
pub(super) fn check_sharing(storage: &dyn Storage) -> Result<()> {
    match storage.sharing() {
        Sharing::Local => Ok(()),
        Sharing::Network(name) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("the store lies on a network file system ({name}), where locks do not hold"),
        )
        .path(storage.display(""))
        .hint("keep the store on a local disk")),
    }
}

/// The store's identity, made and written durably when there is no store yet.
pub(super) fn open_or_create(storage: &Arc<dyn Storage>, clock: &dyn Clock) -> Result<StoreId> {
    match read_store(&**storage) {
        Err(e) if *e.kind() == ErrorKind::NotFound => {}
        known => return known,
    }
    let fail = |e| Error::io("cannot make the store", e).path(storage.display(""));
    storage.create_dir("").map_err(fail)?;
    check_empty(&**storage)?;
    let mut lock = LockFile::open(storage, APPEND_LOCK)?;
    let held = lock.acquire()?;
    match read_store(&**storage) {
        Err(e) if *e.kind() == ErrorKind::NotFound => {}
        known => return known,
    }
    storage.create_dir(LOG_DIR).map_err(fail)?;
    let now = clock.now();
    let id = StoreId(EventId::new(now).0);
    let file =
        StoreFile { format: control::FORMAT, store: id.to_string(), created: now.to_string() };
    let mut text = serde_json::to_vec(&file).unwrap_or_default();
    text.push(b'\n');
    write_store(&**storage, &text).map_err(fail)?;
    drop(held);
    Ok(id)
}

fn write_store(storage: &dyn Storage, text: &[u8]) -> io::Result<()> {
    let temporary = format!("{STORE_FILE}.new");
    let file = storage.open(&temporary, Access::WriteOrCreate)?;
    file.truncate(0)?;
    write_full(&*file, text, 0)?;
    file.sync_data()?;
    storage.rename(&temporary, STORE_FILE)?;
    storage.sync_dir("")
}

/// A store is made in an empty folder only, so that a mistyped path does not become one.
fn check_empty(storage: &dyn Storage) -> Result<()> {
    let names = storage
        .list("")
        .map_err(|e| Error::io("cannot list the folder", e).path(storage.display("")))?;
    if names.iter().any(|name| name == STORE_FILE) {
        // Another process has made it since it was looked for.
        return Ok(());
    }
    let ours = [APPEND_LOCK, SYNC_LOCK, LOG_DIR, "store.json.new"];
    match names.iter().find(|name| !ours.contains(&name.as_str())) {
        None => Ok(()),
        Some(other) => Err(Error::invalid(format!("the folder holds {other:?} and no store"))
            .path(storage.display(""))
            .hint("name an empty folder, or one that does not exist yet")),
    }
}

/// The identity of the store that is there.
pub(super) fn read_store(storage: &dyn Storage) -> Result<StoreId> {
    let path = || storage.display(STORE_FILE);
    let open = || match storage.open(STORE_FILE, Access::Read) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(|e| Error::io("cannot open the store", e).path(path())),
    };
    let file = match open()? {
        Some(file) => file,
        None if storage.list(LOG_DIR).is_ok_and(|names| !names.is_empty()) => {
            // The file comes before the first segment: whoever sees a segment sees it, or it is gone.
            open()?.ok_or_else(|| absent(storage))?
        }
        None => {
            let error = Error::new(ErrorKind::NotFound, "there is no store here");
            return Err(error.path(storage.display("")));
        }
    };
    let mut text = vec![0; 4_096];
    let got = read_full(&*file, &mut text, 0)
        .map_err(|e| Error::io("cannot read the store", e).path(path()))?;
    let text = text.get(..got).unwrap_or_default();
    let corrupt = || {
        Error::new(ErrorKind::Corrupt, "the file does not say what store this is")
            .path(path())
            .hint(
                "its identity also stands in the first line of every segment: write \
             {\"format\":1,\"store\":\"<uuid>\",\"created\":\"<time>\"} with that store",
            )
    };
    let found: StoreFile = serde_json::from_slice(text).map_err(|_| corrupt())?;
    if found.format != control::FORMAT {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "the store has format {}, this program knows {}",
                found.format,
                control::FORMAT
            ),
        )
        .path(path())
        .hint("use the program that wrote it, or a newer one"));
    }
    Uuid::try_parse(&found.store).map(StoreId).map_err(|_| corrupt())
}

fn absent(storage: &dyn Storage) -> Error {
    Error::new(ErrorKind::Corrupt, "there are segments but no store file")
        .path(storage.display(STORE_FILE))
        .hint(
            "its identity stands in the first line of every segment: write \
             {\"format\":1,\"store\":\"<uuid>\",\"created\":\"<time>\"} with that store",
        )
}

/// Who writes, for the headers of segments.
pub(super) fn writer(options: &Options) -> control::Writer {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    control::Writer { pid: std::process::id(), host, program: options.program.clone() }
}
