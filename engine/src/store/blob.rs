//! Payloads that are too big for a line: the `content` that ends a payload lies apart, under the hash of its JSON, and
//! the line names it. Where it lies is the store's matter.

use sha2::{Digest, Sha256};

use super::NewEvent;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{BlobRef, LINE_MAX};

/// A payload of more bytes than this keeps its content apart; the rest of the largest line fits into what is left.
const PAYLOAD_MAX: usize = LINE_MAX - (8 << 10);

/// The largest content, in bytes of JSON.
pub const BLOB_MAX: usize = 64 << 20;

/// An event as its line will carry it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Carried {
    /// The event, without the content that lies apart.
    pub(crate) event: NewEvent,
    /// Where that content lies.
    pub(crate) blob: Option<BlobRef>,
}

/// Whether the payload is so big that its content lies apart, if it has one that can.
pub(crate) fn is_big(event: &NewEvent) -> bool {
    event.data.as_str().len() > PAYLOAD_MAX
}

/// Takes the content of a big payload out of it; the content comes second.
///
/// # Errors
/// `TooLarge` for more than [`BLOB_MAX`] bytes of content.
pub(crate) fn carry(event: NewEvent) -> Result<(Carried, Option<String>)> {
    let big = is_big(&event);
    let Some((rest, content)) = big.then(|| event.data.split_content()).flatten() else {
        return Ok((Carried { event, blob: None }, None));
    };
    if content.len() > BLOB_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("the content has {} bytes; it has at most {BLOB_MAX}", content.len()),
        )
        .field("data.content"));
    }
    let sha256 = Sha256::digest(content.as_bytes()).into();
    let blob = Some(BlobRef { sha256, bytes: content.len() as u64 });
    Ok((Carried { event: NewEvent { data: rest, ..event }, blob }, Some(content)))
}

/// Whether the bytes are those that a line names.
pub(crate) fn is_content(blob: &BlobRef, bytes: &[u8]) -> bool {
    bytes.len() as u64 == blob.bytes && Sha256::digest(bytes)[..] == blob.sha256
}
