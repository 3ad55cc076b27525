//! Text that somebody types as an argument, or gives on standard input where the argument is `-`.

use std::io::Read;

use crate::exit::Failure;

/// What was given, as bytes: from standard input without a byte order mark and without the last line feed.
///
/// # Errors
/// Usage, for standard input that cannot be read or is empty.
pub(crate) fn bytes(text: &str) -> Result<Vec<u8>, Failure> {
    if text != "-" {
        return Ok(text.as_bytes().to_vec());
    }
    let mut given = Vec::new();
    std::io::stdin()
        .read_to_end(&mut given)
        .map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    let said = given.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&given);
    let said = match said.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => said,
    };
    if said.is_empty() {
        return Err(Failure::usage("standard input is empty: the text would say nothing"));
    }
    Ok(said.to_vec())
}

/// The same as text.
///
/// # Errors
/// Usage, for standard input that is no text as well.
pub(crate) fn text(text: &str) -> Result<String, Failure> {
    String::from_utf8(bytes(text)?)
        .map_err(|error| Failure::usage(format!("standard input is no text in UTF-8: {error}")))
}
