//! Names as a line and a folder carry them: percent-encoded head strings, and the file names of segments.

use std::borrow::Cow;

use crate::id::Seq;

/// Whether a head string carries this byte as it is: `[A-Za-z0-9:._@+/-]`.
const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'.' | b'_' | b'@' | b'+' | b'/' | b'-')
}

/// [`is_plain`] of each byte.
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] = is_plain(byte);
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

/// Appends raw text, every other byte as `%` and two upper-case hexadecimal digits (RFC 3986, section 2.1).
pub(crate) fn encode(raw: &str, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in raw.bytes() {
        if is_plain(byte) {
            out.push(byte);
        } else {
            out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

/// How many bytes at the front stand for themselves.
pub(super) fn plain(encoded: &[u8]) -> usize {
    encoded.iter().take_while(|b| PLAIN[usize::from(**b)]).count()
}

/// The raw text of a head string; `None` when it is not exactly what [`encode`] writes.
pub(crate) fn decode(encoded: &[u8]) -> Option<Cow<'_, str>> {
    if plain(encoded) == encoded.len() {
        return std::str::from_utf8(encoded).ok().map(Cow::Borrowed);
    }
    let mut raw = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let (digits, tail) = tail.split_first_chunk::<2>()?;
            let byte = upper_digit(digits[0])? << 4 | upper_digit(digits[1])?;
            if is_plain(byte) {
                return None;
            }
            raw.push(byte);
            rest = tail;
        } else if is_plain(*first) {
            raw.push(*first);
            rest = tail;
        } else {
            return None;
        }
    }
    String::from_utf8(raw).ok().map(Cow::Owned)
}

fn upper_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// The folder of the segments.
pub const LOG_DIR: &str = "log";
/// The folder of what recovery took off a tail.
pub const TORN_DIR: &str = "torn";
/// The folder of payloads that are too big for a line.
pub const BLOB_DIR: &str = "blobs";
/// The folder of those of them that are being written.
pub const BLOB_NEW_DIR: &str = "blobs/new";
/// The folder of what is folded from the log.
pub const SNAPSHOT_DIR: &str = "snapshots";
/// The file that says what this folder is.
pub const STORE_FILE: &str = "store.json";
/// The lock of appending, with `written` in its slots.
pub const APPEND_LOCK: &str = "lock.append";
/// The lock of syncing, with `durable` in its slots.
pub const SYNC_LOCK: &str = "lock.sync";
/// The lock of the worker that looks after runs; it is held, never read.
pub const WORKER_LOCK: &str = "lock.worker";
/// The lock of the process that watches files for rules; it is held, never read.
pub const WATCHER_LOCK: &str = "lock.watcher";

/// The file name of the segment whose first line is `first`, in [`LOG_DIR`]: 20 digits, so that the order of names is
/// the order of the log.
#[must_use]
pub fn segment_file(first: Seq) -> String {
    format!("{:020}.jsonl", first.0)
}

/// The name of a segment relative to the store.
#[must_use]
pub fn segment_path(first: Seq) -> String {
    format!("{LOG_DIR}/{:020}.jsonl", first.0)
}

/// The first position of a segment by its file name; `None` for other files.
#[must_use]
pub fn segment_first(file: &str) -> Option<Seq> {
    let digits = file.strip_suffix(".jsonl")?;
    let fits = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    let first = Seq(fits.then(|| digits.parse().ok()).flatten()?);
    (first > Seq::ZERO && first <= Seq::LAST).then_some(first)
}

/// The name of a payload file relative to the store.
#[must_use]
pub fn blob_path(sha256: &str) -> String {
    format!("{BLOB_DIR}/{}/{sha256}", sha256.get(..2).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Raw text and its one encoded form.
    #[test]
    fn head_strings() {
        for (raw, encoded) in [
            ("agent:main:main", "agent:main:main"),
            ("telegram:!Room 1", "telegram:%21Room%201"),
            ("x:100%", "x:100%25"),
            ("x:é", "x:%C3%A9"),
            ("x:\"\\\n\0", "x:%22%5C%0A%00"),
            ("dingtalk:cidNc/9w/E+z8=", "dingtalk:cidNc/9w/E+z8%3D"),
        ] {
            let mut out = Vec::new();
            encode(raw, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), encoded);
            assert_eq!(decode(&out).as_deref(), Some(raw));
        }
    }

    /// A second spelling of the same text is no spelling.
    #[test]
    fn only_one_spelling() {
        for encoded in ["%41", "%c3%a9", "a b", "%", "%2", "%GG", "%C3", "é"] {
            assert_eq!(decode(encoded.as_bytes()), None, "{encoded}");
        }
    }

    /// Segment names and what is none.
    #[test]
    fn segment_names() {
        assert_eq!(segment_first(&segment_file(Seq(134_077))), Some(Seq(134_077)));
        for name in ["1.jsonl", "00000000000000000000.jsonl", "00000000000000000001.idx", "x.jsonl"]
        {
            assert_eq!(segment_first(name), None, "{name}");
        }
        assert_eq!(segment_first("+0000000000000000001.jsonl"), None);
    }
}
