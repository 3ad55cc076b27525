//! The file that settings stand in: read, and written whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// The most bytes that a configuration has.
const BYTES_MAX: u64 = 4 << 20;

/// The text of a file; `None` when there is no such file.
///
/// # Errors
/// `TooLarge` over 4 MiB; `InvalidInput` when it is not UTF-8; what the system says when it cannot be read.
pub fn read_file(path: &Path) -> Result<Option<String>> {
    let cannot = |e| Error::io("the configuration cannot be read", e).path(path);
    let file = match File::open(path) {
        Err(e) if e.kind() == IoErrorKind::NotFound => return Ok(None),
        other => other.map_err(cannot)?,
    };
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err(Error::invalid("the configuration is no file").path(path));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if u64::try_from(bytes.len()).is_ok_and(|read| read > BYTES_MAX) {
        let message = format!("the configuration has more than {BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message).path(path));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = u64::try_from(e.utf8_error().valid_up_to()).unwrap_or(0);
        Error::invalid("the configuration is not UTF-8").path(path).offset(at)
    })?;
    Ok(Some(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned)))
}

/// Writes a file that holds `before`, or that is absent for `None`; the folders above it are made. When it returns, the
/// file is on stable storage; a reader at any moment sees what was there or what is. Its permissions stay; a new one is its
/// owner's alone, for tokens may stand in it.
///
/// # Errors
/// `Busy` when the file holds something else; what the system says.
#[expect(clippy::disallowed_methods, reason = "the file of settings is no part of the store")]
pub fn write_file(path: &Path, before: Option<&str>, text: &str) -> Result<()> {
    let cannot = |e| Error::io("the configuration cannot be written", e).path(path);
    // What the name stands for is written, and not the name.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    fs::create_dir_all(&folder).map_err(cannot)?;
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".new");
    let new = folder.join(name);
    // Whoever writes at the same time has this name.
    let options = &mut OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(&new);
    let mut file = made.map_err(|e| match e.kind() {
        IoErrorKind::AlreadyExists => {
            Error::new(ErrorKind::Busy, "somebody else writes the configuration")
                .path(&new)
                .hint("if nobody does, remove this file: a program was stopped while it wrote")
        }
        _ => cannot(e),
    })?;
    let written = replace(&mut file, (path, &target, &new), before, text, &cannot);
    if written.is_err() {
        // What went wrong first is told.
        drop(fs::remove_file(&new));
    }
    written?;
    File::open(&folder).and_then(|folder| folder.sync_all()).map_err(cannot)
}

#[expect(clippy::disallowed_methods, reason = "the file of settings is no part of the store")]
fn replace(
    file: &mut File,
    (path, target, new): (&Path, &Path, &Path),
    before: Option<&str>,
    text: &str,
    cannot: &dyn Fn(std::io::Error) -> Error,
) -> Result<()> {
    if read_file(path)?.as_deref() != before {
        let message = "the configuration was changed by somebody else meanwhile";
        return Err(Error::new(ErrorKind::Busy, message).path(path).hint("try again"));
    }
    if before.is_some() {
        let permissions = fs::metadata(target).map_err(cannot)?.permissions();
        file.set_permissions(permissions).map_err(cannot)?;
    }
    file.write_all(text.as_bytes()).map_err(cannot)?;
    file.sync_all().map_err(cannot)?;
    fs::rename(new, target).map_err(cannot)
}
