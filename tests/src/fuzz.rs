//! What must hold for any bytes at all. Each function takes bytes as they come and panics where a reader breaks its
//! promise; the fuzz targets and the test over the committed corpus call the same ones.
#![expect(clippy::unwrap_used, reason = "a broken promise ends the run")]

mod follow;

use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use annals_engine::Engine;
use annals_engine::clock::SystemClock;
use annals_engine::config::{Sources, load};
use annals_engine::format::scan::{Piece, Scan};
use annals_engine::format::slot::{self, Durable, Written};
use annals_engine::format::{self, Payload, TRAILER};
use annals_engine::id::{EventType, StreamName};
use annals_engine::import::{MemoryTree, Options, Program, discover_in, import as imports};
use annals_engine::session::event::{Event, Role, TurnHead};
use annals_engine::session::key::{AgentId, SessionKey};
use annals_engine::store::{Item, Read, Record};
use annals_tools::ingress::webhook::{Call, receive};
use annals_tools::run::Setup;
use annals_tools::run::dialect::{Dialect, OutputForm, Reader};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use crate::protocol::{self, Served};

pub use follow::follow;

/// A target: bytes in, nothing out.
pub type Target = fn(&[u8]);

/// Every target by the name of its corpus.
pub const TARGETS: [(&str, Target); 15] = [
    ("line", line),
    ("scan", scan),
    ("slot", slot),
    ("payload", payload),
    ("key", key),
    ("event", event),
    ("import", import),
    ("codex", codex),
    ("gemini", gemini),
    ("hermes", hermes),
    ("arka", arka),
    ("dialect", dialect),
    ("follow", follow),
    ("mcp", mcp),
    ("webhook", webhook),
];

/// A line that is accepted is exactly what the codec writes for it. Tried as it is, and once more with a trailer that
/// fits, so that the head is read too.
pub fn line(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes)] {
        let Ok(line) = format::decode(bytes) else { continue };
        let mut again = Vec::new();
        assert_eq!(format::encode(&line.fields, &mut again), line.crc);
        assert_eq!(again, bytes);
        let record = Record::from_line(&line).unwrap();
        assert_eq!(record.to_line(), bytes);
    }
}

/// The pieces of a segment cover it without a hole and without a line feed inside one.
pub fn scan(bytes: &[u8]) {
    let mut at = 0;
    for (offset, len, piece) in Scan::new(bytes) {
        assert_eq!(offset, at);
        at += len;
        let raw = &bytes[offset..at];
        let feed = raw.iter().position(|byte| *byte == b'\n');
        match piece {
            Piece::Line(line) => assert_eq!(format::decode(raw), Ok(line)),
            Piece::Bad(fault) => {
                assert_eq!((format::decode(raw), feed), (Err(fault), Some(len - 1)));
            }
            Piece::Rest => assert_eq!((at, feed), (bytes.len(), None)),
        }
    }
    assert_eq!(at, bytes.len());
}

/// A block of a lock file that is accepted says the same when it is written again, and the newest of two is one of them.
pub fn slot(bytes: &[u8]) {
    read_slot::<Written>(bytes);
    read_slot::<Durable>(bytes);
}

fn read_slot<T: slot::Value + PartialEq + Debug>(bytes: &[u8]) {
    for bytes in [bytes, &block(bytes)] {
        if let Some((generation, value)) = slot::decode::<T>(bytes) {
            assert_eq!(slot::decode(&slot::encode(generation, &value)), Some((generation, value)));
        }
        if let Some((generation, value, other)) = slot::newest::<T>(bytes) {
            let newest = bytes.chunks(slot::BLOCK).nth([1, 0][usize::try_from(other).unwrap()]);
            assert_eq!(slot::decode(newest.unwrap()), Some((generation, value)));
        }
    }
}

/// A payload that is accepted is JSON with the meaning that a general parser finds in the text, and stays as it is when
/// it is taken again.
pub fn payload(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(payload) = Payload::from_json(text) else { return };
    let meaning: Value = serde_json::from_str(text).unwrap();
    assert!(meaning.is_object());
    assert_eq!(serde_json::from_str::<Value>(payload.as_str()).unwrap(), meaning);
    assert_eq!(Payload::from_json(payload.as_str()).unwrap(), payload);
    assert!(payload.as_str().bytes().all(|byte| byte >= 0x20));
}

/// A session key that is accepted is canonical: it parses to itself, names a stream, and its parts make it again.
pub fn key(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let agent = AgentId::parse("main").unwrap();
    let Ok(key) = SessionKey::parse(text, &agent) else { return };
    assert_eq!(SessionKey::parse(key.as_str(), &agent).unwrap(), key);
    assert_eq!(SessionKey::of(&key.parts()).unwrap(), key);
    let stream = StreamName::new(key.as_str()).unwrap();
    assert_eq!(SessionKey::of_stream(&stream), Some(key));
}

/// An event that is accepted has a payload, and reads as the same event from it. The bytes are a type, a line feed and
/// a payload.
pub fn event(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((kind, text)) = text.split_once('\n') else { return };
    let (Ok(kind), Ok(payload)) = (EventType::new(kind), Payload::from_json(text)) else { return };
    let Ok(event) = Event::parse(&kind, &payload) else { return };
    let again = event.payload().unwrap();
    assert_eq!(Event::parse(&kind, &again).unwrap(), event);
    if let Event::Turn(turn) = &event {
        let head = TurnHead::read(again.as_str()).unwrap();
        assert_eq!(head.role, turn.role);
    }
}

/// A file of any bytes, in the place of a transcript or of an index, is imported or refused.
pub fn import(bytes: &[u8]) {
    let index = "o/agents/main/sessions/sessions.json";
    let places = [
        "p/s.jsonl",
        "c/projects/-w/0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f.jsonl",
        "c/projects/-w/agent-0123abcd.jsonl",
        "o/agents/main/sessions/s.jsonl",
        index,
    ];
    let place = places[usize::from(Sha256::digest(bytes)[0]) % places.len()];
    let mut tree = MemoryTree::new([(place, bytes)]);
    if place == index {
        tree.put("o/agents/main/sessions/s.jsonl", "{\"type\":\"session\",\"id\":\"s\"}\n");
    }
    takes(&tree, place, bytes);
}

/// A rollout of any bytes beside one that it may be a fork or a child of.
pub fn codex(bytes: &[u8]) {
    let place = "c/sessions/2026/03/01/rollout-b.jsonl";
    let other = "{\"timestamp\":\"2026-03-01T09:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"p\"}}\n";
    let tree = MemoryTree::new([
        (place, bytes),
        ("c/sessions/2026/03/01/rollout-a.jsonl", other.as_bytes()),
    ]);
    takes(&tree, place, bytes);
}

/// A session of Gemini CLI of any bytes, of either form.
pub fn gemini(bytes: &[u8]) {
    let places = ["g/chats/session-1.json", "g/chats/p/s.jsonl"];
    let place = places[usize::from(Sha256::digest(bytes)[0]) % places.len()];
    takes(&MemoryTree::new([(place, bytes)]), place, bytes);
}

/// A session of Hermes of any bytes.
pub fn hermes(bytes: &[u8]) {
    let place = "h/sessions/session_1.json";
    takes(&MemoryTree::new([(place, bytes)]), place, bytes);
}

/// A chat or a sub-agent of Arka of any bytes.
pub fn arka(bytes: &[u8]) {
    let places = ["a/message-sessions/telegram_1.json", "a/subagents/0123456789.json"];
    let place = places[usize::from(Sha256::digest(bytes)[0]) % places.len()];
    takes(&MemoryTree::new([(place, bytes)]), place, bytes);
}

/// A tree with a file of any bytes is imported or refused; every event of a record names bytes of the file by their hash,
/// unless it names those of the file that it was first made from; every run that is requested has its end; and a second
/// import adds nothing.
fn takes(tree: &MemoryTree, place: &str, bytes: &[u8]) {
    let Ok(found) = discover_in(tree, Path::new("")) else { return };
    let engine = Engine::in_memory(Arc::new(SystemClock));
    let take = || {
        let options = Options::default();
        imports(engine.store(), engine.clock(), tree, &found, &options, &mut |_| {}).unwrap()
    };
    take();
    let own = found.sources.iter().any(|source| source.program == Program::Annals);
    let mut open = 0;
    for item in engine.store().read(Read::default()).unwrap() {
        let Item::Record(record) = item.unwrap() else { panic!("a gap in memory") };
        open += i32::from(record.kind.as_str() == "run.requested" && !own);
        open -= i32::from(record.kind.as_str() == "run.finished" && !own);
        let data: Value = serde_json::from_str(record.data.as_str()).unwrap();
        let source = &data["source"];
        if own || source["file"].as_str().is_none_or(|file| !place.ends_with(file)) {
            continue;
        }
        let number = |name: &str| usize::try_from(source[name].as_u64().unwrap()).unwrap();
        let range = number("offset")..number("offset") + number("bytes");
        let hash = Sha256::digest(&bytes[range]);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(source["sha256"], hash);
    }
    assert_eq!(open, 0);
    assert_eq!(take().totals().new, 0);
}

/// An output in any dialect has a reply: the log takes each of its turns, and the last of them says the text. Which
/// dialect it is read as is taken from its hash.
pub fn dialect(bytes: &[u8]) {
    let hash = Sha256::digest(bytes);
    let (_, dialect) = Dialect::WORDS[usize::from(hash[0]) % Dialect::WORDS.len()];
    let form = [OutputForm::Jsonl, OutputForm::Json][usize::from(hash[1]) % 2];
    let mut reader = Reader::new(dialect, form);
    bytes.split_inclusive(|byte| *byte == b'\n').for_each(|line| drop(reader.line(line)));
    let reply = reader.finish();
    for turn in &reply.turns {
        Payload::from_json(&format!("{{\"content\":{}}}", turn.content.as_str())).unwrap();
    }
    if let Some(text) = &reply.text {
        let last = reply.turns.last().unwrap();
        assert_eq!((last.role, last.content.plain_text().trim()), (Role::Assistant, text.trim()));
    }
}

/// Any bytes in the place of what a client of the Model Context Protocol sends: what comes back is lines of the protocol and
/// nothing else, says nothing of a session that the client does not see, and leaves a store whose events are all events.
pub fn mcp(bytes: &[u8]) {
    let served = Served::default();
    let (write, mut read) = tokio::io::duplex(1 << 26);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut said = String::new();
    runtime.block_on(async {
        served.serve(std::io::Cursor::new(bytes.to_vec()), write).await;
        read.read_to_string(&mut said).await.unwrap();
    });
    for line in said.split_terminator('\n') {
        let message: Value = serde_json::from_str(line).unwrap();
        let kinds = ["method", "result", "error"].map(|kind| !message[kind].is_null());
        let one = kinds.iter().filter(|is| **is).count() == 1;
        assert!(message["jsonrpc"] == "2.0" && one, "{line}");
        assert!(!line.contains(protocol::SECRET), "{line}");
    }
    for item in served.engine.store().read(Read::default()).unwrap() {
        let Item::Record(record) = item.unwrap() else { panic!("a gap in memory") };
        Event::of(&record).unwrap();
    }
    let sessions = served.engine.sessions().unwrap();
    let chat = StreamName::new(protocol::CHAT).unwrap();
    assert!(sessions.state().row(&chat).is_some());
}

/// Any bytes as the body of a webhook: what is taken is one turn that asks for one run, also when it comes twice, and of
/// what is not there is nothing but the fact that a gate kept it out.
pub fn webhook(bytes: &[u8]) {
    static SETUP: OnceLock<Setup> = OnceLock::new();
    let setup = SETUP.get_or_init(|| {
        let file = Path::new("/annals.json5");
        let text = "{agents: {list: [{id: 'main', run: {command: '/bin/cat'}}]}}";
        let sources = Sources { flags: &[], variable: &|_| None, file: Some((file, text)) };
        Setup::of(&load(&sources).unwrap().0, file.into()).unwrap()
    });
    let engine = Engine::in_memory(Arc::new(SystemClock));
    let read = || Call::read(bytes, Some("key"), &setup.config, engine.clock().now());
    let kinds = || -> Vec<String> {
        let items = engine.read(Read::default()).unwrap();
        let records = items.filter_map(|item| match item.unwrap() {
            Item::Record(record) => Some(record),
            Item::Gap(_) => None,
        });
        records.map(|record| Event::of(&record).map(|_| record.kind.to_string()).unwrap()).collect()
    };
    let Ok(call) = read() else { return };
    let Ok(received) = receive(&engine, setup, call) else {
        assert!(kinds().iter().all(|kind| kind == "turn.blocked"), "{:?}", kinds());
        return;
    };
    assert_eq!(kinds(), ["session.opened", "turn", "run.requested"]);
    let again = receive(&engine, setup, read().unwrap()).unwrap();
    assert_eq!((again.pushed.run_id, again.pushed.repeated), (received.pushed.run_id, true));
    assert_eq!(kinds().len(), 3);
}

/// The bytes with their last 19 replaced by the trailer that belongs there.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let body = &bytes[..bytes.len().saturating_sub(TRAILER)];
    [body, format!(",\"crc\":\"{}\"}}\n", format::crc32(body)).as_bytes()].concat()
}

/// The first line of the bytes as a whole block.
fn block(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let mut block = sealed(&bytes[..end]);
    block.resize(slot::BLOCK, b' ');
    block
}
