//! The names and numbers that the log speaks of, each a type of its own so that a sequence number is never taken for
//! a version or an offset. It does no I/O and knows no format.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// The position of an event in the log: 1 for the first line, one more for each line after it, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// The position before the first line.
    pub const ZERO: Self = Self(0);
    /// The last position that a line can have.
    pub const LAST: Self = Self((1 << 62) - 1);

    /// The position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The position of an event in its stream: contiguous from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The version of a stream that has no event.
    pub const ZERO: Self = Self(0);

    /// The version after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A CRC-32 (IEEE 802.3, as zlib and gzip compute it) of a line's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Crc(pub u32);

impl Crc {
    /// What stands for the checksum of the line before the very first one.
    pub const NONE: Self = Self(0);
}

impl fmt::Display for Crc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// The identity of an event: a UUID, remembered for the life of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub Uuid);

impl EventId {
    /// A new UUIDv7 (RFC 9562, section 5.7) that carries `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let micros = now.as_micros().max(0).unsigned_abs();
        let seconds = micros / 1_000_000;
        let nanos = u32::try_from(micros % 1_000_000).unwrap_or(0) * 1_000;
        Self(Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos)))
    }

    /// The UUIDv8 (RFC 9562, section 5.8) that SHA-256 gives for the length-prefixed parts: the same parts, the same
    /// identity, on any machine. `kind` is `import`, `key`, `watch` or,
    /// for the log's own lines, `log`.
    #[must_use]
    pub fn derived(kind: &str, scope: &str, key: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [kind, scope, key] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let mut bytes = [0_u8; 16];
        for (to, from) in bytes.iter_mut().zip(hash.finalize()) {
            *to = from;
        }
        Self(Uuid::new_v8(bytes))
    }

    /// The time that a UUIDv7 carries, to the millisecond; `None` for every other kind.
    #[must_use]
    pub fn embedded_time(self) -> Option<Timestamp> {
        if self.0.get_version_num() != 7 {
            return None;
        }
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
        Some(Timestamp::from_micros(micros + i64::from(nanos / 1_000)))
    }
}

impl std::str::FromStr for EventId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Uuid::try_parse(text)
            .map(Self)
            .map_err(|e| Error::invalid(format!("{text:?} is not the id of an event")).caused_by(e))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// The identity of a store, made once when the store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreId(pub Uuid);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// The name of a stream: a session key, `run:<id>`, `policy`, `watch:<name>`, `import` or `log`. Raw text of 1 to
/// [`StreamName::BYTES_MAX`] bytes; what a line cannot carry is percent-encoded by the line codec and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(Arc<str>);

impl StreamName {
    /// The longest name, in bytes of raw text.
    pub const BYTES_MAX: usize = 1_024;

    /// Takes a name as it is.
    ///
    /// # Errors
    /// `InvalidInput` when it is empty or longer than [`StreamName::BYTES_MAX`].
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() || name.len() > Self::BYTES_MAX {
            return Err(Error::invalid(format!(
                "a stream name has 1 to {} bytes, this one has {}",
                Self::BYTES_MAX,
                name.len()
            ))
            .field("stream"));
        }
        Ok(Self(name))
    }

    /// The raw text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for StreamName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happened: `turn`, `run.requested`, `log.sealed`, `x.<vendor>.<name>`. 1 to [`EventType::BYTES_MAX`] bytes of
/// `[A-Za-z0-9._-]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventType(Arc<str>);

impl EventType {
    /// The longest type name in bytes.
    pub const BYTES_MAX: usize = 128;

    /// Takes a type name.
    ///
    /// # Errors
    /// `InvalidInput` when it is empty, too long, or has a byte outside `[A-Za-z0-9._-]`.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self> {
        let name = name.into();
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > Self::BYTES_MAX || !name.bytes().all(fits) {
            return Err(Error::invalid(format!(
                "an event type has 1 to {} bytes of letters, digits, '.', '_' and '-'",
                Self::BYTES_MAX
            ))
            .field("type"));
        }
        Ok(Self(name))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
