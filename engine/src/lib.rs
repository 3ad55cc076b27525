//! annals: an append-only, checksummed event log in plain JSON lines, and what is folded from it.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | the handle: open a store, read it, append to it, verify it |
//! | [`store`] | [`store::EventStore`], the contract that everything above speaks, and a store in memory |
//! | [`session`] | the domain: keys, events, and the views that are folded from them |
//! | [`projection`] | folds of the log |
//! | [`config`] | settings: which there are, what they may be, where each came from |
//! | [`import`] | other programs' transcripts as events |
//! | [`log`] | the store in files: several processes, no daemon |
//! | [`format`](mod@format) | the bytes, specified in prose |
//! | [`storage`], [`watch`] | the doors to the disk and to file notification |
//! | [`watcher`] | watch rules at work: files that change start runs |
//! | [`clock`], [`id`], [`error`] | what all of them speak of |
//!
//! What there is not: no async, no network, no global state; no clock but [`clock`]; no file but through [`storage`],
//! transcripts aside that [`import`] reads and files that [`watch`] looks at; no process; no panic on any bytes from a disk; no state that is not a fold of
//! the log.
//!
//! # Example
//!
//! A counter of its own on a store in a folder: events of a type `x.<vendor>.<name>` are the embedder's, stored and
//! indexed like all others.
//!
//! ```
//! use annals_engine::clock::{Clock, SystemClock};
//! use annals_engine::format::Payload;
//! use annals_engine::id::{EventId, EventType, StreamName, Version};
//! use annals_engine::store::{Append, Expected, Item, NewEvent};
//! use annals_engine::{Engine, ErrorKind};
//!
//! # fn main() -> annals_engine::Result<()> {
//! # let home = tempfile::tempdir().unwrap();
//! # let folder = home.path();
//! let engine = Engine::open(folder, Default::default())?;
//! let lamp = StreamName::new("x.acme:lamp")?;
//! let switched = |on: bool| -> annals_engine::Result<NewEvent> {
//!     Ok(NewEvent {
//!         id: EventId::new(SystemClock.now()),
//!         stream: lamp.clone(),
//!         kind: EventType::new("x.acme.switched")?,
//!         cause: None,
//!         flow: None,
//!         data: Payload::from_json(&format!(r#"{{"on":{on}}}"#))?,
//!     })
//! };
//!
//! // On stable storage when it returns, unless Durability::Buffered is asked for.
//! let on = Append::new(vec![switched(true)?]).expecting(lamp.clone(), Expected::NoStream);
//! let first = engine.append(on.clone())?;
//! assert_eq!(first.positions[0].version, Version(1));
//!
//! // The same append again is the same event; another one that expects what is no longer so is a conflict.
//! assert!(engine.append(on)?.repeated);
//! let late = Append::new(vec![switched(false)?]).expecting(lamp.clone(), Expected::NoStream);
//! assert!(matches!(engine.append(late).unwrap_err().kind(), ErrorKind::Conflict { .. }));
//!
//! for item in engine.read_stream(&lamp, Version::ZERO)? {
//!     if let Item::Record(record) = item? {
//!         println!("{} {} {}", record.seq, record.kind, record.data);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub mod clock;
pub mod config;
pub mod engine;
pub mod error;
pub mod format;
pub mod id;
pub mod import;
pub mod log;
pub mod projection;
pub mod session;
pub mod storage;
pub mod store;
pub mod watch;
pub mod watcher;

pub use engine::Engine;
pub use error::{Error, ErrorKind, Result};
