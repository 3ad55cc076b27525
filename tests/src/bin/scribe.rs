//! A process that uses a store as the tests tell it: it appends, expects, or holds a lock until it is killed. Every
//! acknowledgement is a line on its standard output, written after the append has returned. It can be told to stop at a
//! call to the disk, and says there which one it is.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use annals_engine::clock::{Clock, SystemClock};
use annals_engine::format::{APPEND_LOCK, Payload};
use annals_engine::id::{EventId, EventType, StreamName, Version};
use annals_engine::log::{Log, Options};
use annals_engine::storage::{Access, Disk, Storage, lock};
use annals_engine::store::{Append, EventStore, Expected, NewEvent};
use annals_engine::{Engine, Error, Result};
use annals_tests::disk::Op;
use annals_tests::sessions::Sessions;
use annals_tests::watched::{Watch, Watched};

fn main() -> std::process::ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["append", store, stream, count, segment] => append(store, stream, count, segment),
        ["expect", store, stream, version] => expect(store, stream, version),
        ["hold", store] => hold(store),
        ["until", store, seed, which, call] => until(store, seed, which, call),
        ["beside", store, seed, count] => beside(store, seed, count),
        _ => Err(Error::invalid(
            "append STORE STREAM COUNT SEGMENT | expect STORE STREAM VERSION | hold STORE | until STORE SEED all|new CALL | \
             beside STORE SEED COUNT",
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

/// Appends sessions without an end, and stops for good at the so-manieth call to the disk, or of those about files that
/// have no name of their own yet: half way when it is a write.
fn until(store: &str, seed: &str, which: &str, call: &str) -> Result<()> {
    let all = which == "all";
    let call = usize::try_from(number(call)?).unwrap_or(usize::MAX);
    let calls = AtomicUsize::new(0);
    let watch = move |op: &Op, name: &str| {
        let counts = all || is_unnamed(name);
        let this = calls.fetch_add(usize::from(counts), Ordering::SeqCst) + usize::from(counts);
        match op {
            _ if this < call => usize::MAX,
            Op::WriteAt { len, .. } if this == call && counts && *len > 1 => len / 2,
            _ => {
                say(&format!("at {op:?} {name}"));
                loop {
                    std::thread::park();
                }
            }
        }
    };
    converse(store, seed, usize::MAX, Arc::new(watch))
}

fn is_unnamed(name: &str) -> bool {
    name.starts_with("blobs/new/") || name.ends_with(".new")
}

/// Appends so many times, and stops at each call about a file that has no name of its own yet until it is told to go on.
/// At the call that locks such a file it stops once: whoever opens the store before it has the lock takes the file for a
/// dead process's, and it begins with another.
fn beside(store: &str, seed: &str, count: &str) -> Result<()> {
    let locked = AtomicUsize::new(0);
    let watch = move |op: &Op, name: &str| {
        // The log's own locks are held while a segment is made: nobody else can open the store then.
        let free = is_unnamed(name) && !name.ends_with(".jsonl.new") && name != "store.json.new";
        if free && (*op != Op::Lock || locked.fetch_add(1, Ordering::SeqCst) == 0) {
            say(&format!("at {op:?} {name}"));
            let mut answer = String::new();
            // Who cannot be heard any more does not hold anything up.
            let _ = std::io::stdin().lock().read_line(&mut answer);
        }
        usize::MAX
    };
    let count = usize::try_from(number(count)?).unwrap_or(usize::MAX);
    converse(store, seed, count, Arc::new(watch))?;
    say("done");
    Ok(())
}

/// Appends sessions with everything that a store keeps: a content too big for a line every few appends, segments that
/// roll, indexes and snapshots.
fn converse(store: &str, seed: &str, appends: usize, watch: Watch) -> Result<()> {
    let options = Options {
        segment_bytes: 24 << 10,
        index_bytes: 2 << 10,
        snapshot_bytes: 1,
        ..Options::default()
    };
    let storage = Arc::new(Watched::new(std::path::Path::new(store), watch));
    let log = Log::open(storage, Arc::new(SystemClock), options)?;
    let engine = Engine::over(Arc::new(log), Arc::new(SystemClock));
    let mut events = Sessions::new(number(seed)?);
    for i in 0..appends {
        let append = if i % 5 == 2 { big(seed, i)? } else { Append::new(events.batch()) };
        engine.append(append)?;
    }
    Ok(())
}

fn big(seed: &str, number: usize) -> Result<Append> {
    let content = format!("{seed}-{number} {}", "x".repeat(1_050_000));
    let data = Payload::of(&serde_json::json!({ "content": content }))?;
    Ok(Append::new(vec![NewEvent { data, ..event("x:big", "")? }]))
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
