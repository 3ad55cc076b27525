//! The file that settings stand in: found, read, never written.

use std::path::Path;

use crate::error::{Error, Result};

/// The most bytes that a configuration has.
const BYTES_MAX: u64 = 4 << 20;

/// The text of a file; `None` when there is no such file.
///
/// # Errors
/// `TooLarge` over 4 MiB; `InvalidInput` when it is not UTF-8; what the system says when it cannot be read.
pub fn read_file(path: &Path) -> Result<Option<String>> {
    let cannot = |e| Error::io("the configuration cannot be read", e).path(path);
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot(e)),
        Ok(meta) if meta.len() > BYTES_MAX => {
            let message =
                format!("the configuration has {} bytes, at most {BYTES_MAX}", meta.len());
            return Err(Error::new(crate::error::ErrorKind::TooLarge, message).path(path));
        }
        Ok(_) => {}
    }
    let bytes = std::fs::read(path).map_err(cannot)?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = u64::try_from(e.utf8_error().valid_up_to()).unwrap_or(0);
        Error::invalid("the configuration is not UTF-8").path(path).offset(at)
    })?;
    Ok(Some(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned)))
}
