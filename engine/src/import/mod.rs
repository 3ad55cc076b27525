//! Other programs' transcripts as events: what is under a path, and every record of it once.
//!
//! [`discover`] looks, [`import`] reads and appends. State folders of OpenClaw from the time when its sessions were
//! files, session files of pi, formats 1 to 3, sessions of Claude Code, Codex, Gemini CLI, Hermes and Arka, and transcripts
//! that this program wrote are imported; files of other programs are known by sight and refused by name, never half
//! imported. The source is opened for reading, without a lock, and not touched. Memory does not follow the size of files
//! of lines: of a record that is behind only its identity is held. A session that is one object is held while it is read.
//!
//! # Keys
//!
//! | session | key |
//! |---|---|
//! | of pi, Codex, Gemini CLI, Hermes | `<program>:<id>` |
//! | of Claude Code | `claude-code:<id>` |
//! | of a sub-agent of these | `agent:<program>:subagent:<id>` |
//! | of a chat of Arka | `<channel>:<chat>`, under which it goes on here |
//! | that OpenClaw's index names | its key there, made canonical; spellings of one key become one session |
//! | of OpenClaw without a key | `openclaw:<id>`; archived when its transcript is that of a reset or a deletion |
//!
//! An archive of a reset is an earlier part of the key that went on from it, where that is certain; `session.reset`
//! stands between parts, with the reason `imported`. One transcript under two keys is in both sessions, and its usage is
//! counted in the one with the shorter key. A key that the store uses for a session of its own is left alone, and what
//! was decided by an earlier import stands, whatever the source says by now.
//!
//! # Events
//!
//! Every record becomes one event with an id derived from the program, its session and the record's own id, or else its
//! place and its bytes. What a stream has is not appended again, so that an import can be repeated, interrupted, and
//! done again when the source has grown. Order is the file's; `at` holds the record's own time. `source` says which
//! bytes of which file the event was made from, and `rest` in it what of the record the event does not carry.
//!
//! Calls of session tools, the registry of sub-agents and the provenance of turns become `spawn.accepted`,
//! `send.accepted` and `announce.*` in the requester's stream and `run.*` in the run's: every run with its end, and none
//! that could be claimed. A run that its program has not seen end is `interrupted`, an announce or a message that was
//! still to go out is `suppressed` or `expired` (`unknown` when it may have gone out), each with the reason `imported`.
//! `import.started` and `import.finished` are appended only when an import brings something.
//!
//! # Growth
//!
//! [`Following`] imports what is new of files that grow. It keeps in mind how far each was read, and throws that away when
//! the file is another one, is shorter, or has other bytes before that place; then the file is read from its beginning,
//! and what the store has is known by its ids. What breaks off at the end is not whole yet, and is left for later; so is
//! a run that has not ended, and an object that cannot be read to its end.
//!
//! # Damage
//!
//! Nothing is passed over in silence: every byte of a transcript is in a record that was taken, in a [`Damage`], or white
//! space between records. Each damage is in the report, and an `import.damage` event once.

mod annals;
mod arka;
mod claude;
mod codex;
mod damage;
mod dialect;
mod discover;
mod document;
mod examine;
mod fields;
mod follow;
mod gemini;
mod hermes;
mod importer;
mod known;
mod lines;
mod mend;
mod openclaw;
mod pi;
mod placing;
mod plan;
mod pursuit;
mod reading;
mod records;
mod relations;
mod report;
mod run;
mod sample;
mod session;
mod sniff;
mod story;
mod stream;
mod time;
mod transcript;
mod tree;
mod usual;
mod writer;

pub use damage::{Damage, DamageClass};
pub use discover::{Discovery, Refused, Source, Transcript, discover, discover_in};
pub use examine::{Examined, examine};
pub use follow::{Following, files_under};
pub use importer::{Options, import};
pub use report::{Counts, Progress, Report, SessionReport, Skipped, SourceReport, Unresolved};
pub use sample::{discover_sample, sample_tree};
pub use sniff::Program;
pub use tree::{DiskTree, MemoryTree, Node, NodeKind, SourceFile, SourceTree};
pub use usual::{Homes, Usual, UsualPlaces, discover_usual, newest};
pub use writer::Mode;

#[cfg(test)]
mod tests;
