//! A process that uses a store as the tests tell it: it appends, expects, or holds a lock until it is killed. Every
//! acknowledgement is a line on its standard output, written after the append has returned.

use std::io::Write;
use std::sync::Arc;

use annals_engine::clock::{Clock, SystemClock};
use annals_engine::format::{APPEND_LOCK, Payload};
use annals_engine::id::{EventId, EventType, StreamName, Version};
use annals_engine::log::{Log, Options};
use annals_engine::storage::{Access, Disk, Storage, lock};
use annals_engine::store::{Append, EventStore, Expected, NewEvent};
use annals_engine::{Error, Result};

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["append", store, stream, count, segment] => append(store, stream, count, segment),
        ["expect", store, stream, version] => expect(store, stream, version),
        ["hold", store] => hold(store),
        _ => Err(Error::invalid(
            "append STORE STREAM COUNT SEGMENT | expect STORE STREAM VERSION | hold STORE",
        )),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            say(&format!("error {}", e.kind().code()));
            std::process::ExitCode::FAILURE
        }
    }
}

/// Appends so many events to one stream, one by one.
fn append(store: &str, stream: &str, count: &str, segment: &str) -> Result<()> {
    let log = open(store, number(segment)?)?;
    for i in 0..number(count)? {
        let event = event(stream, &format!("{}-{i}", std::process::id()))?;
        let appended = log.append(Append::new(vec![event.clone()]))?;
        for position in appended.positions {
            say(&format!("{} {} {}", position.seq, position.version, event.id));
        }
    }
    Ok(())
}

/// Appends one event if the stream is at a version.
fn expect(store: &str, stream: &str, version: &str) -> Result<()> {
    let log = open(store, 64 << 20)?;
    let expected = Expected::Version(Version(number(version)?));
    let append = Append::new(vec![event(stream, "expected")?]);
    let appended = log.append(append.expecting(StreamName::new(stream)?, expected))?;
    for position in appended.positions {
        say(&format!("{} {} {}", position.seq, position.version, position.id));
    }
    Ok(())
}

/// Takes the append lock and keeps it.
fn hold(store: &str) -> Result<()> {
    let file = Disk::new(store)
        .open(APPEND_LOCK, Access::WriteOrCreate)
        .map_err(|e| Error::io("cannot open the lock", e))?;
    let _held = lock(&file).map_err(|e| Error::io("cannot lock", e))?;
    say("held");
    loop {
        std::thread::park();
    }
}

fn open(store: &str, segment_bytes: u64) -> Result<Log> {
    let options = Options { segment_bytes, index_bytes: segment_bytes / 3, ..Options::default() };
    Log::open(Arc::new(Disk::new(store)), Arc::new(SystemClock), options)
}

fn event(stream: &str, text: &str) -> Result<NewEvent> {
    Ok(NewEvent {
        id: EventId::new(SystemClock.now()),
        stream: StreamName::new(stream)?,
        kind: EventType::new("x.test.said")?,
        cause: None,
        flow: None,
        data: Payload::of(&serde_json::json!({ "text": text }))?,
    })
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| Error::invalid(format!("{text:?} is no number")))
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever listens may be gone; the log goes on.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
