//! The file that settings stand in: found, read, never written.

use std::io::Read;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// The most bytes that a configuration has.
const BYTES_MAX: u64 = 4 << 20;

/// The text of a file; `None` when there is no such file.
///
/// # Errors
/// `TooLarge` over 4 MiB; `InvalidInput` when it is not UTF-8; what the system says when it cannot be read.
pub fn read_file(path: &Path) -> Result<Option<String>> {
    let cannot = |e| Error::io("the configuration cannot be read", e).path(path);
    let file = match std::fs::File::open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
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
