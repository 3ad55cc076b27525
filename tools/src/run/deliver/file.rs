//! A file that every message is appended to as one line of JSON, on stable storage before it counts as delivered.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use annals_engine::Result;

use super::line_of;
use super::sink::{Said, Sent};
use crate::run::worker::Parcel;

/// The file of a sink.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
}

impl File {
    pub(super) fn of(said: &Said<'_>) -> Result<Self> {
        let path = Path::new(said.needed("path", "the file that messages are appended to")?);
        let folder = said.config.folder().unwrap_or(Path::new(""));
        Ok(Self { path: folder.join(path) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn send(&self, parcel: &Parcel) -> Sent {
        let (path, line) = (self.path.clone(), line_of(parcel));
        let appended = tokio::task::spawn_blocking(move || append(&path, &line)).await;
        appended.unwrap_or_else(|e| Sent::unknown("lost", &e))
    }
}

/// Appends a line. Writers take turns; a line that was left unfinished is ended first, and one that cannot be finished is
/// taken back.
fn append(path: &Path, line: &[u8]) -> Sent {
    let name = path.display();
    let opened = fs::OpenOptions::new().read(true).append(true).create(true).open(path);
    let locked = opened.and_then(|file| file.lock().map(|()| file));
    let (mut file, start) =
        match locked.and_then(|mut file| ready(&mut file).map(|start| (file, start))) {
            Ok(ready) => ready,
            Err(e) => return Sent::retry("file_unavailable", &format!("{name}: {e}")),
        };
    if let Err(e) = file.write_all(line) {
        return match file.set_len(start) {
            Ok(()) => Sent::retry("write_failed", &format!("{name}: {e}")),
            Err(_) => Sent::unknown("write_failed", &format!("{name}: {e}")),
        };
    }
    match file.sync_all().and_then(|()| sync_folder(path, start)) {
        Ok(()) => Sent::Delivered,
        Err(e) => Sent::unknown("sync_failed", &format!("{name}: {e}")),
    }
}

/// Ends a line that was left unfinished, and tells where the next one begins.
fn ready(file: &mut fs::File) -> std::io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    if end == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(end - 1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(end);
    }
    file.write_all(b"\n")?;
    Ok(end + 1)
}

/// A file that is new has a name on stable storage too.
fn sync_folder(path: &Path, start: u64) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if start == 0 && !folder.as_os_str().is_empty() => {
            fs::File::open(folder)?.sync_all()
        }
        _ => Ok(()),
    }
}
