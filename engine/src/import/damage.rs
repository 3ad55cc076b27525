//! What an import says about bytes that it could not take as they are, and about records that tell a broken story. There
//! is one type for all of it, and nothing that is reported here was passed over in silence.

use serde::Serialize;

/// A range of a source file and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// What kind.
    pub class: DamageClass,
    /// The file, relative to what was imported.
    pub file: String,
    /// Where the range begins, in bytes.
    pub offset: u64,
    /// How long the range is, in bytes.
    pub bytes: u64,
    /// How many records were taken from the range nevertheless.
    pub recovered: u64,
    /// What was seen, in words.
    pub detail: String,
}

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// What kind of damage, or of odd story.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(into = "&'static str")]
        #[non_exhaustive]
        pub enum DamageClass {
            $($(#[$doc])* $variant,)+
        }

        impl DamageClass {
            /// Every class, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable word.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

classes! {
    /// The file ends inside a record.
    TornTail = "torn_tail",
    /// A line ends inside a record, and other lines follow.
    TornLine = "torn_line",
    /// A record breaks off and a whole one follows on the same line. The range is the piece that is lost.
    TornGlued = "torn_glued",
    /// Several whole records on one line: each was taken.
    Glued = "glued",
    /// A line feed inside a string: the record goes over several lines and was taken.
    RawNewline = "raw_newline",
    /// Other control characters inside a string, taken as escapes.
    RawControl = "raw_control",
    /// Bytes that are NUL.
    NulRun = "nul_run",
    /// Halves of surrogate pairs, taken as U+FFFD.
    LoneSurrogate = "lone_surrogate",
    /// Bytes that are not UTF-8, taken as U+FFFD.
    InvalidUtf8 = "invalid_utf8",
    /// A byte order mark before the first record.
    ByteOrderMark = "byte_order_mark",
    /// A number that no 64-bit integer and no finite double holds, taken as text.
    NumberOutOfRange = "number_out_of_range",
    /// A key that stands twice in an object: the last one counts, earlier ones are kept as `key#1`, `key#2`.
    DuplicateKey = "duplicate_key",
    /// Values nested deeper than an event may be, taken as the text of their JSON.
    TooDeep = "too_deep",
    /// A line that is no JSON.
    InvalidJson = "invalid_json",
    /// A line beyond the limit of what is held: passed over.
    LineTooLong = "line_too_long",
    /// A record that makes a bigger event than the store takes: passed over.
    TooLarge = "too_large",
    /// A file that holds something else than its name says.
    WrongFormat = "wrong_format",
    /// A value of another type than the record needs.
    WrongType = "wrong_type",
    /// A field that the record needs is absent.
    MissingField = "missing_field",
    /// A record of a kind that is not known: kept as it is.
    UnknownRecord = "unknown_record",
    /// A record that the file has already.
    Duplicate = "duplicate",
    /// The id of another record of the file.
    IdReused = "id_reused",
    /// Records copied from the session that this one was forked from. They are taken; their usage is not counted twice.
    ReplayedFork = "replayed_fork",
    /// The record's parent is not in the file.
    OrphanParent = "orphan_parent",
    /// The record is older than the one before.
    ClockBack = "clock_back",
    /// A tool call without a result.
    UnansweredCall = "unanswered_call",
    /// A tool result without a call.
    OrphanResult = "orphan_result",
    /// A session with a header and nothing else.
    HeaderOnly = "header_only",
    /// A session without a header: its name is taken for its id.
    MissingHeader = "missing_header",
    /// A file without a byte.
    EmptyFile = "empty_file",
    /// A time that is none, or that no program of this sort has seen: the record is taken without it.
    ImpossibleTime = "impossible_time",
    /// An index that cannot be read: nobody knows which keys the transcripts beside it have, so they are left alone.
    BrokenIndex = "broken_index",
    /// The index names a session whose file is not there.
    MissingFile = "missing_file",
    /// The key is in use for other sessions: this one has a key of its own.
    KeyTaken = "key_taken",
}

impl From<DamageClass> for &'static str {
    fn from(class: DamageClass) -> Self {
        class.code()
    }
}

impl std::fmt::Display for DamageClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}
