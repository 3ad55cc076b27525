//! One opaque error for the whole library: a kind to act on, a sentence to read, the place it speaks of, and a hint.
//! Callers decide by [`Error::kind`], never by the text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::id::{Seq, Version};

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as far as a caller may want to act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A stream is not at the expected version. Nothing was written.
    Conflict {
        /// The stream.
        stream: String,
        /// The version that the caller expected.
        expected: Version,
        /// The version that it has.
        actual: Version,
    },
    /// The same id was used before for another event. Nothing was written.
    IdReused,
    /// Some ids of a batch are known and some are not. Nothing was written.
    PartialDuplicate,
    /// A line, a batch or a payload is over its named limit. Nothing was written.
    TooLarge,
    /// What was given is not in a form that can be stored or used. Nothing was written.
    InvalidInput,
    /// A channel cannot have that name: keys and streams of another sort begin so. Nothing was written.
    ReservedChannel,
    /// A name fits several things. Nothing was written.
    Ambiguous,
    /// There is no room on the disk. Nothing was written; reads go on.
    Full,
    /// The store cannot be reached now. Certainly nothing was written.
    Unavailable,
    /// Perhaps written: repeat with the same ids. Never to be taken for a failure.
    Indeterminate,
    /// Stored bytes are damaged.
    Corrupt,
    /// A format, a version or a file system that this program does not know.
    Unsupported,
    /// The store was opened for reading, lies on a read-only mount, or refuses writes after a failed sync.
    ReadOnly,
    /// A cursor does not belong to the history that the store has now.
    HistoryChanged,
    /// There is nothing under the name given.
    NotFound,
    /// Somebody else holds what is needed.
    Busy,
    /// The decision made under the append lock was a refusal.
    Refused,
    /// The operating system said no in a way that none of the above names.
    Io,
}

impl ErrorKind {
    /// Whether it is said of the one thing that was asked for, where reading met it: asking again changes nothing, and of
    /// others it says nothing.
    #[must_use]
    pub const fn is_about_one_thing(&self) -> bool {
        matches!(self, Self::Corrupt | Self::InvalidInput | Self::NotFound | Self::Unsupported)
    }

    /// Whether the same may be taken later: the store says no now, or does not know whether it said yes.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Indeterminate | Self::Full | Self::Unavailable | Self::Busy | Self::Io)
    }

    /// The stable word for this kind, for JSON and logs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::IdReused => "id_reused",
            Self::PartialDuplicate => "partial_duplicate",
            Self::TooLarge => "too_large",
            Self::InvalidInput => "invalid_input",
            Self::ReservedChannel => "reserved_channel",
            Self::Ambiguous => "ambiguous",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
            Self::Indeterminate => "indeterminate",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::ReadOnly => "read_only",
            Self::HistoryChanged => "history_changed",
            Self::NotFound => "not_found",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::Io => "io",
        }
    }
}

/// Where it went wrong; every part is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file or folder.
    pub path: Option<PathBuf>,
    /// The byte offset in that file.
    pub offset: Option<u64>,
    /// The position in the log.
    pub seq: Option<Seq>,
    /// The field of the line or of the input.
    pub field: Option<String>,
}

/// An error of the library.
#[derive(Clone, Debug)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    kind: ErrorKind,
    message: String,
    place: Place,
    hint: Option<String>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of a kind, with one sentence that says what was wrong.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            kind,
            message: message.into(),
            place: Place::default(),
            hint: None,
            source: None,
        }))
    }

    /// Input that cannot be taken.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// What the operating system answered while `doing` something; its kind follows from the system's code.
    #[must_use]
    pub fn io(doing: impl Into<String>, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match source.kind() {
            Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::Full,
            Io::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            Io::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        Self::new(kind, doing).caused_by(source)
    }

    /// Adds the file or folder.
    #[must_use]
    pub fn path(mut self, path: impl AsRef<Path>) -> Self {
        self.0.place.path = Some(path.as_ref().to_path_buf());
        self
    }

    /// Adds the byte offset.
    #[must_use]
    pub fn offset(mut self, offset: u64) -> Self {
        self.0.place.offset = Some(offset);
        self
    }

    /// Adds the position in the log.
    #[must_use]
    pub fn seq(mut self, seq: Seq) -> Self {
        self.0.place.seq = Some(seq);
        self
    }

    /// Adds the field.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.0.place.field = Some(field.into());
        self
    }

    /// Adds what the reader can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The kind, to act on.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The sentence without place, cause and hint.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// What the reader can do about it.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        let place = &self.0.place;
        let mut open = " (";
        if let Some(path) = &place.path {
            write!(f, "{open}{}", path.display())?;
            open = ", ";
        }
        if let Some(offset) = place.offset {
            write!(f, "{open}offset {offset}")?;
            open = ", ";
        }
        if let Some(seq) = place.seq {
            write!(f, "{open}seq {seq}")?;
            open = ", ";
        }
        if let Some(field) = &place.field {
            write!(f, "{open}field {field}")?;
            open = ", ";
        }
        if open == ", " { f.write_str(")") } else { Ok(()) }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn std::error::Error + 'static))
    }
}
