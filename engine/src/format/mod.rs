//! The log on disk, format 1: bytes to values and back. This page is the specification; it is enough to write a reader
//! or a checker in any language. The code below does no I/O and reads no clock.
//!
//! # The folder
//!
//! ```text
//! store.json                       what this folder is: {"format":1,"store":"<uuid>","created":"<time>"}
//! log/00000000000000000001.jsonl   segments: the events, in order
//! log/00000000000000134077.jsonl
//! log/00000000000000000001.idx     where the lines of a segment are: derived, and no part of this format
//! log/heads.idx                    the last version of each stream in the full segments: derived likewise
//! blobs/53/533e7d45…               payloads that are too big for a line, each named by its SHA-256
//! snapshots/sessions-00…4077.snap  what is folded from the log: derived, see below
//! torn/00…01@8192.5e0d11aa         what recovery took off the end of a segment
//! lock.append, lock.sync           kernel locks, with two slots each that say how far the log goes
//! lock.worker, lock.watcher         kernel locks that are held and never read: who looks after runs, who watches files
//! ```
//!
//! The events are in `log/` and `blobs/`. `store.json` is written once, and `lock.sync` holds a floor that a crash must
//! not lose. Everything else can be deleted while no program runs, and no answer changes. Folders have mode 0700, files
//! 0600, segments that no longer change 0400.
//!
//! A file gets its name when it is whole. Until then it is `log/….new`, `snapshots/….new`, `store.json.new` or a file
//! in `blobs/new/`; what a process that died left of these is removed when the store is next opened for appending. A
//! process that dies between a content and its line leaves the content in `blobs/`, where no line names it: it is in
//! nobody's way, and the same content takes it up again.
//!
//! # Segments
//!
//! A segment is named by the position of its first line: 20 decimal digits and `.jsonl`, so that sorting names sorts the
//! log and `cat log/*.jsonl` is the log. A name is never used twice. The segment with the highest name is the active
//! one: lines are appended to it and to no other. Every segment begins with a `log.opened` line; one that is full ends
//! with a `log.sealed` line, and what stands behind a seal is not part of the log. Names of other forms in `log/` are
//! no segments.
//!
//! # Lines
//!
//! A line is one event: one JSON object, UTF-8, and a line feed (0x0A), together at most 1,048,576 bytes. No other byte
//! below 0x20 stands in it, so the log is cut at 0x0A and nowhere else. There is no white space between the parts, and
//! the fields stand in this order, each spelled in the one way given here:
//!
//! ```text
//! {"seq":42,"time":"2026-03-14T09:26:53.589793Z","durable":41,"prev":"9f1c2b7a","stream":"agent:main:main",
//!  "version":7,"type":"turn","id":"019cebab-8995-7003-8015-5eed00003003","batch":"1/3","cause":"…","flow":"…",
//!  "blob":{"sha256":"…","bytes":123456},"data":{…},"crc":"5e0d11aa"}
//! ```
//!
//! | field | spelling | meaning |
//! |---|---|---|
//! | `seq` | number, from 1 | position in the log, one more than the line before; control lines count, no number is used twice |
//! | `time` | 27 bytes, UTC, microseconds, `Z`; years 1970 to 9999 | when the line was appended; never before the time of the line before it, unless the line is a `log.clock` |
//! | `durable` | number, from 0 | the highest `seq` that the writer knew to be on stable storage when it wrote the line; always below `seq` |
//! | `prev` | 8 hexadecimal digits, lower case | the `crc` of the line before, across segments; `00000000` in the first line of a store |
//! | `stream` | head string | the stream; 1 to 1,024 bytes when decoded |
//! | `version` | number, from 1 | position in the stream, one more than the stream's event before |
//! | `type` | 1 to 128 of `A-Z a-z 0-9 . _ -` | what happened; a reader keeps and passes over types that it does not know |
//! | `id` | UUID, 36 bytes, lower case | identity of the event; no two events of a store share one |
//! | `batch` | `"i/n"`, 1 ≤ i ≤ n, n ≥ 2 | absent for an event alone; otherwise it is the i-th of n lines that stand in a row in one segment and count all or not at all |
//! | `cause` | UUID | optional: the event that directly caused this one |
//! | `flow` | UUID | optional: the same for all events that follow from one stimulus |
//! | `blob` | `{"sha256":"<64 hex>","bytes":<number>}` | optional: the last member of the payload, `content`, is not in `data`; its JSON is the file `blobs/<first 2 digits>/<64 digits>` |
//! | `data` | JSON object | the payload, see below |
//! | `crc` | 8 hexadecimal digits, lower case | checksum of the line |
//!
//! *Numbers* are decimal digits without sign, point, exponent or leading zero, and fit in 64 bits.
//!
//! *Head strings* carry the bytes `A-Z a-z 0-9 : . _ @ + / -` as they are and every other byte of the UTF-8 text as `%`
//! and two upper-case hexadecimal digits (RFC 3986, section 2.1). No byte has a second spelling: `%41` is not an `A`.
//!
//! *The checksum* is CRC-32 as in IEEE 802.3, gzip and zlib (`zlib.crc32`), of every byte of the line before its last
//! 19. Those 19 are always `,"crc":"`, the 8 digits, `"}` and the line feed, so a checksum is found from the end of the
//! line without looking for anything.
//!
//! *The payload* is an object without white space between its parts, at most 64 levels deep, itself counted. No key
//! stands twice in an object, no escape names a lone surrogate, and every number fits a signed or unsigned 64-bit
//! integer or, if it has a point or an exponent, a finite double. Strings and numbers keep the spelling that the writer
//! was given. So any JSON reader reads the same from it. Where a `blob` is named, the whole payload is `data` with
//! `,"content":` and the bytes of that file before its last brace.
//!
//! A line that is spelled in another way is not a line of this format, even if its checksum is right: it is *foreign*.
//!
//! # Checking a log
//!
//! Take the segments in the order of their names and cut them at 0x0A. For each line: the last 19 bytes are a trailer,
//! byte by byte; its 8 digits are the checksum of what stands before; the head is spelled as above; `seq` is one more
//! than in the line before; `prev` is the checksum of the line before. The first line of each segment has the `seq` that
//! the segment is named by and is a `log.opened` of this store and format; a segment that is not the last ends with
//! `log.sealed`. Batches are whole. No JSON parser is needed for any of it.
//!
//! # Control lines
//!
//! The stream `log` is written by the log alone, and so are the types that begin with `log.`.
//!
//! | type | `data`, in order | when |
//! |---|---|---|
//! | `log.opened` | `store`, `format` (1), `checksum` (`crc32`), `firstSeq` (the line's own `seq`), `previous` (`null` or `{"segment","crc"}`: file name and last checksum), `writer` (`{"pid","host","program"}`) | first line of a segment |
//! | `log.sealed` | `lines`, `bytes` (of the lines before this one), `firstSeq`, `lastSeq`, `firstTime`, `lastTime` | last line of a full segment |
//! | `log.recovered` | `segment`, `offset`, `bytes`, `sha256`, `torn` (the file that holds the bytes now) | after recovery took a torn tail off |
//! | `log.gap` | `segment`, `offset`, `bytes`, `fromSeq`, `toSeq`, `class`, `reason` | an operator accepted damage |
//! | `log.clock` | `before` (the time of the line before) | the clock stepped back by more than a second; smaller steps make the time stand still |
//! | `log.mark` | none | nothing was appended for a while: its `durable` covers the lines before it |
//!
//! `log.root`, `log.redacted` and `log.dropped` are reserved. A number of format or a name of checksum that a reader does
//! not know is an answer of its own, *unsupported*, and no damage.
//!
//! A `log.gap` for damage in a segment that has a successor is appended like any line. For damage in the active segment
//! a new segment is made, with the gap behind its `log.opened`: its first `seq` is one more than the highest that was
//! ever known to be durable or can be read, its first `prev` the checksum of the last line that can be read. Either way
//! the damaged segment stays as it is, a checker knows the range from the gap, the numbers in it are lost for good, and
//! versions of streams may jump there.
//!
//! # Torn or corrupt
//!
//! A crash may leave half a line, half a batch or old bytes at the end of the active segment. That is no damage: nobody
//! was told that those events are stored. What tells it from damage is the highest position D that is known to have
//! been durable: the greatest `durable` of any line that verifies, or the floor in `lock.sync`, whichever is higher. Let
//! L be the last line of the unbroken chain that ends a whole batch.
//!
//! | behind L | and | so |
//! |---|---|---|
//! | nothing | D ≤ L | the log is clean |
//! | bytes that do not continue the chain, or a batch without its end | D ≤ L | torn: kept in `torn/`, cut off, told by a `log.recovered` |
//! | anything or nothing | D > L | acknowledged events are lost or damaged: nothing is touched, reading goes on behind the damage, appends are refused until an operator accepts it |
//!
//! A tail that is cut is first copied to `torn/<20 digits of the segment>@<offset>.<first 8 hexadecimal digits of the
//! SHA-256 of the bytes>` and synced there.
//!
//! A reader that changes nothing reads up to the watermark: on the active segment, the highest of the stamps and the
//! floor. A line above it that does not verify is *not yet*, a line below it that does not is damage.
//!
//! # Lock files
//!
//! `lock.append` is held (`flock`, exclusive) while lines are written, `lock.sync` while they are synced. Both locks are
//! taken only in that order, and the files are never unlinked. Each holds two blocks of 512 bytes that are written in
//! turn: a JSON object that begins with `generation`, in the same form as a line (the same trailer and line feed), then
//! spaces. The whole block with the higher generation counts. `lock.append` names the end of what was written:
//! `segment` (first position), `offset`, `seq`, `check` (the last checksum as a number); a hint, which a crash may leave
//! behind the log or ahead of it. `lock.sync` names what is durable with the same four, then `syncing` (a sync has begun
//! and its end is not known) and `halts` (how often a second sync in a row failed); a floor, because it is written only
//! after a sync that succeeded.
//!
//! Lines are written with one positioned write at the end that `lock.append` names, never with `O_APPEND`. A sync that
//! failed is not tried again on the same pages: the lines above the floor are verified, written again where they are and
//! synced once more, and when that fails too the store takes no appends until it is opened again.
//!
//! # Snapshots
//!
//! `snapshots/<projection>-<20 digits>.snap` holds the state of a projection after the event at that position. Only the
//! program that wrote it need understand it, and a program that does not, or that finds anything wrong, folds the log
//! from the start. Numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `annalss1` |
//! | 16 | the store |
//! | 8 | a number for the form of the state and the fold that made it |
//! | 8 | the position of the last event in it, as in the name |
//! | 8 | how many bytes the state has |
//! | 4 | the `crc` of the line at that position: where the log has another line there, the state is of another history |
//! | 4 | CRC-32 of the state |
//! | 4, then as many | how long the name of the projection is, and the name |
//! | 4 | CRC-32 of everything before |
//! | the rest | the state |
//!
//! A snapshot is written by a process that appends, when the log has grown by more than a few times the size of the last
//! one, under the lock `snapshots/lock`: to a temporary name that ends in `.new`, synced, renamed, and the folder synced.
//! Two are kept. One of a position that is not known to be durable is not used. A state that was folded before lines of
//! the log were damaged still counts them; once an operator has given those lines up, which a `log.gap` behind the
//! snapshot tells, it is not used.

pub mod control;
pub mod scan;
pub mod slot;
pub mod snapshot;

mod checksum;
mod layout;
mod line;
mod name;
mod payload;

pub use checksum::{TRAILER, crc32, trailer, trailer_crc};
pub use layout::is_of_a_store;
pub use line::{Fields, LINE_MAX, LINE_MIN, Line, LineFault, decode, encode, too_large};
pub(crate) use name::decode as head_string;
pub use name::{
    APPEND_LOCK, BLOB_DIR, BLOB_NEW_DIR, LOG_DIR, SNAPSHOT_DIR, STORE_FILE, SYNC_LOCK, TORN_DIR,
    WATCHER_LOCK, WORKER_LOCK, blob_path, segment_file, segment_first, segment_path,
};
pub use payload::{BlobRef, DEPTH_MAX, Payload, hex};
