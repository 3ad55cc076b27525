//! One follower of the log on a thread of its own, and the forms in which it tells what it reads.

use std::time::{Duration, Instant};

use annals_engine::engine::Engine;
use annals_engine::format::control;
use annals_engine::session::audit::{Audit, ORIGINS};
use annals_engine::store::{
    Cursor, Filter, Follow, Followed, Item, NamePattern, Read, Record, View,
};
use annals_engine::{Error, ErrorKind, Result};
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

use crate::fault::fault;
use crate::host::Host;
use crate::mask::Mask;
use crate::shown::{Shown, cloud_event, gap, wire};

/// So soon it is noticed that a reader has gone, or that the server is to end.
const NOTICES: Duration = Duration::from_millis(500);

/// A reader hears something so often, or takes the connection for dead.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// A reader who takes nothing for so long is let go: his place and his thread are another's.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);
const LOOKS_AGAIN: Duration = Duration::from_millis(20);

/// The most events of a batch, and about the most bytes.
const BATCH_EVENTS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Server-sent events (the HTML standard, section 9.2).
    Events,
    /// One object a line.
    Lines,
    /// An array of CloudEvents of what is there, and no more.
    Batch,
}

impl Form {
    /// The form that a reader accepts: the first that it names, and server-sent events where it takes anything; `None` where
    /// it takes none of them.
    pub(super) fn of(accept: &str) -> Option<Self> {
        let of = |kind: &str| match kind.split(';').next().unwrap_or_default().trim() {
            "application/cloudevents-batch+json" => Some(Self::Batch),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
                Some(Self::Lines)
            }
            "text/event-stream" | "text/*" | "*/*" => Some(Self::Events),
            _ => None,
        };
        if accept.trim().is_empty() { Some(Self::Events) } else { accept.split(',').find_map(of) }
    }

    /// What says that the log is followed although nothing happens.
    const fn sign_of_life(self) -> &'static str {
        match self {
            Self::Events => ": still here\n\n",
            Self::Lines | Self::Batch => "\n",
        }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream",
            Self::Lines => "application/x-ndjson",
            Self::Batch => "application/cloudevents-batch+json",
        }
    }
}

/// What looks at items of the log and tells those that are wanted.
#[derive(Debug)]
pub(super) struct Looks {
    engine: Engine,
    filter: Filter,
    mask: Option<Mask>,
    audit: Audit,
    form: Form,
}

impl Looks {
    pub(super) fn new(host: &Host, filter: Filter, masked: bool, form: Form) -> Self {
        let mask = masked.then(|| Mask::of(host.config()));
        Self { engine: host.engine().clone(), filter, mask, audit: Audit::default(), form }
    }

    /// Learns from what lies before, whose events those are that come.
    fn learn(&mut self) -> Result<()> {
        let types = ORIGINS.map(|name| NamePattern::Exact(name.to_owned())).into();
        let filter = Filter { streams: Vec::new(), types };
        for item in self.engine.read(Read::default().view(View::Durable).filter(filter))? {
            if let Item::Record(record) = item? {
                self.audit.message(&record, 0);
            }
        }
        Ok(())
    }

    /// Whether an event is wanted; what the log tells of itself only when it is named.
    fn wants(&self, record: &Record) -> bool {
        let (stream, kind) = (record.stream.as_str(), record.kind.as_str());
        let named = !self.filter.streams.is_empty() || !self.filter.types.is_empty();
        (named || stream != control::STREAM) && self.filter.matches(stream, kind)
    }

    /// An item in the form of the answer; `None` for one that is not wanted.
    fn tell(&mut self, item: Item) -> Result<Option<String>> {
        let store = self.engine.id();
        let record = match item {
            Item::Record(record) => record,
            Item::Gap(damage) => {
                return Ok(Some(match self.form {
                    Form::Events => format!("event: gap\n{}", data(&gap::wire(&damage))),
                    Form::Lines => line(&gap::wire(&damage)),
                    Form::Batch => json(&cloud_event::of_gap(&damage, store)),
                }));
            }
        };
        let message = self.audit.message(&record, usize::MAX);
        if !self.wants(&record) {
            return Ok(None);
        }
        let cursor = record.cursor(store);
        let mut shown = Shown::new(record, message, &*self.engine)?;
        if let Some(mask) = &self.mask {
            shown.mask(mask);
        }
        Ok(Some(match self.form {
            Form::Events => format!("id: {cursor}\n{}", data(&wire::wire(&shown, store))),
            Form::Lines => line(&wire::wire(&shown, store)),
            Form::Batch => json(&cloud_event::of_event(&shown, store)),
        }))
    }

    /// What is there after a cursor, as one array; a header has the cursor to go on from.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(super) fn batch(mut self, read: Read, limit: Option<usize>) -> Result<Response> {
        let most = limit.unwrap_or(BATCH_EVENTS).min(BATCH_EVENTS);
        let mut after = read.after;
        if after.is_some() {
            self.learn()?;
        }
        let store = self.engine.id();
        let (mut events, mut bytes) = (Vec::new(), 0);
        for item in self.engine.clone().read(read)? {
            let item = item?;
            let behind = match &item {
                Item::Record(record) => Some(record.cursor(store)),
                Item::Gap(_) => None,
            };
            let told = self.tell(item)?;
            after = behind.or(after);
            bytes += told.as_ref().map_or(0, String::len);
            events.extend(told);
            if events.len() >= most || bytes >= BATCH_BYTES {
                break;
            }
        }
        let cursor = after.map(|cursor: Cursor| cursor.to_string()).unwrap_or_default();
        let headers = [
            (header::CONTENT_TYPE, self.form.content_type().to_owned()),
            (header::HeaderName::from_static("annals-cursor"), cursor),
        ];
        Ok((headers, format!("[{}]", events.join(","))).into_response())
    }
}

/// Who takes what a follower tells.
pub(super) struct Reader {
    /// Is told whether the place to follow from was found.
    pub(super) begun: oneshot::Sender<Result<()>>,
    pub(super) pieces: mpsc::Sender<Bytes>,
}

impl Looks {
    /// Tells what comes until nobody takes it any more or all is to end. An error is told and ends it.
    pub(super) fn feed(
        mut self,
        read: impl FnOnce() -> Result<Read>,
        reader: Reader,
        stop: &watch::Receiver<bool>,
    ) {
        let engine = self.engine.clone();
        let follower = read().and_then(|read| {
            if read.after.is_some() {
                self.learn()?;
            }
            engine.follow(read)
        });
        let follower = match follower {
            Ok(follower) => follower,
            Err(error) => {
                // Whoever asked may have gone already.
                drop(reader.begun.send(Err(error)));
                return;
            }
        };
        if reader.begun.send(Ok(())).is_err() {
            return;
        }
        if let Err(error) = self.follow(follower, &reader.pieces, stop) {
            let told = match self.form {
                Form::Events => format!("event: error\n{}", data(&fault(&error))),
                _ => line(&fault(&error)),
            };
            // Whoever does not take it any more has no use for it.
            send(&reader.pieces, told, stop);
        }
    }

    fn follow(
        &mut self,
        mut follower: Box<dyn Follow + '_>,
        pieces: &mpsc::Sender<Bytes>,
        stop: &watch::Receiver<bool>,
    ) -> Result<()> {
        let mut alive = Instant::now();
        loop {
            let told = match follower.next(Some(NOTICES))? {
                Followed::Item(item) => self.tell(item)?,
                Followed::CaughtUp(_) | Followed::Quiet => None,
            };
            let over = alive.elapsed() >= ALIVE_EVERY;
            let told = told.or_else(|| over.then(|| self.form.sign_of_life().to_owned()));
            if *stop.borrow() || pieces.is_closed() {
                return Ok(());
            }
            if let Some(told) = told {
                alive = Instant::now();
                if !send(pieces, told, stop) {
                    return Ok(());
                }
            }
        }
    }
}

/// Hands a piece to the reader, as soon as he takes one; false when there is none any more, or one who takes nothing.
fn send(pieces: &mpsc::Sender<Bytes>, piece: String, stop: &watch::Receiver<bool>) -> bool {
    let begun = Instant::now();
    let mut piece = Bytes::from(piece);
    loop {
        piece = match pieces.try_send(piece) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(piece)) => piece,
        };
        if *stop.borrow() || begun.elapsed() >= TAKEN_WITHIN {
            return false;
        }
        std::thread::park_timeout(LOOKS_AGAIN);
    }
}

/// One object of server-sent events.
fn data(object: &impl Serialize) -> String {
    format!("data: {}\n\n", json(object))
}

fn line(object: &impl Serialize) -> String {
    format!("{}\n", json(object))
}

fn json(object: &impl Serialize) -> String {
    serde_json::to_string(object).unwrap_or_else(|e| {
        fault(&Error::new(ErrorKind::Corrupt, "an event is no JSON").caused_by(e)).to_string()
    })
}
