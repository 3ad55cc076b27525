//! Transcripts of this program: out of one store and into another.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::real::fixtures;
use super::*;
use crate::format::Payload;
use crate::id::{EventId, EventType, StreamName};
use crate::session::context::{ContextLimits, context};
use crate::session::event::happened_at;
use crate::session::history::{HistoryQuery, Span, ToolResults, history};
use crate::session::index::Found;
use crate::session::transcript;
use crate::store::{Append, NewEvent};

/// What a store says of its sessions, a line an event.
fn exported(world: &World) -> String {
    let mut text = String::new();
    for record in world.records() {
        let data = world.store.payload(&record).unwrap();
        let at = happened_at(record.time, data.as_str());
        if let Some(line) = transcript::write(&record, &data, at, None).unwrap() {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn file(text: &str) -> MemoryTree {
    let mut tree = MemoryTree::default();
    tree.put("all.jsonl".to_owned(), text);
    tree
}

/// Everything that a store tells of a session and does not depend on where its events stand: the row without what runs
/// do to it, and every part's history and context.
fn told_of(world: &World, key: &StreamName) -> Vec<Value> {
    let sessions = world.sessions();
    let mut row = serde_json::to_value(sessions.row(key).unwrap()).unwrap();
    for of_runs in
        ["status", "startedAt", "systemSent", "abortedLastRun", "totalTokens", "updatedAt"]
    {
        row[of_runs] = Value::Null;
    }
    let mut told = vec![row];
    for part in sessions.parts(key) {
        let found = Found { key: key.clone(), part: Some(part.to_owned()) };
        let query = HistoryQuery {
            span: Span::Part,
            tool_results: ToolResults::Shown,
            limit: usize::MAX,
            before: None,
        };
        let page = history(&world.store, &sessions, &found, &query).unwrap();
        for message in &page.messages {
            let mut message = serde_json::to_value(message).unwrap();
            // The store that an event was made in calls it by another name than those that it went to.
            (message["seq"], message["id"]) = (Value::Null, Value::Null);
            told.push(message);
        }
        told.push(page.total.into());
        let limits = ContextLimits { turns: 40, chars: None };
        let context = context(&world.store, &sessions, &found, &limits).unwrap();
        for message in context.messages {
            let said = message.content.as_ref().map(|said| said.as_str().to_owned());
            let links = (message.call_id, message.tool_name, message.synthetic);
            told.push(serde_json::to_value((message.role, said, links)).unwrap());
        }
    }
    told
}

/// Brings a store's sessions into an empty one and holds both side by side; then again, into both.
fn check_round_trip(from: &World) -> World {
    let text = exported(from);
    let tree = file(&text);
    let to = World::new();
    to.clock.advance(Duration::from_secs(40 * 86_400));
    let report = to.import(&tree, "all.jsonl");
    assert_eq!(damages(&report), [""; 0]);
    let counts = report.totals();
    assert_eq!((counts.new, counts.records), (counts.records, text.lines().count() as u64));
    let keys = |world: &World| {
        let sessions = world.sessions();
        let streams = world.records().into_iter().map(|record| record.stream);
        streams.filter(|key| sessions.row(key).is_some()).collect::<BTreeSet<_>>()
    };
    assert_eq!(keys(from), keys(&to));
    for key in keys(from) {
        assert_eq!(told_of(from, &key), told_of(&to, &key), "{key}");
    }
    let (there, here) = (to.len(), from.len());
    assert_eq!((to.import(&tree, "all.jsonl").totals().new, to.len()), (0, there));
    assert_eq!((from.import(&tree, "all.jsonl").totals().new, from.len()), (0, here));
    let back = file(&exported(&to));
    assert_eq!((from.import(&back, "all.jsonl").totals().new, from.len()), (0, here));
    assert_eq!((to.import(&back, "all.jsonl").totals().new, to.len()), (0, there));
    to
}

const ODD_KEYS: [&str; 5] =
    ["x:../a\0\n", "x:e\u{301}", "x:\u{e9}", "node-7", "agent:ops:cron:Job"];

/// A store with an imported session that has two parts, a call with its result, usage, a branch and what pi keeps beside.
fn small() -> World {
    let world = World::new();
    let call = r#"{"type":"message","id":"b","parentId":"a","timestamp":"2026-03-01T09:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"on\tit"},{"type":"toolCall","id":"c1","name":"exec","arguments":{"command":"ls"}}],"model":"tiny-1","usage":{"input":3,"output":4,"cost":{"total":0.01}}}}"#;
    let result = r#"{"type":"message","id":"c","parentId":"b","timestamp":"2026-03-01T09:00:03.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"exec","content":[{"type":"text","text":"notes.txt"}],"isError":false}}"#;
    let label = r#"{"type":"label","id":"d","targetId":"a","timestamp":"2026-03-01T09:00:04.000Z","label":"x"}"#;
    let model = r#"{"type":"model_change","id":"e","timestamp":"2026-03-01T09:00:05.000Z","provider":"p","modelId":"tiny-2"}"#;
    let mut tree = MemoryTree::default();
    tree.put(
        "pi/s.jsonl".to_owned(),
        session("s", &[&said("a", 1, "what is here?"), call, result, label, model]),
    );
    world.import(&tree, "pi");
    let made_in = |stream: &str, kind: &str, data: &str| {
        let new = NewEvent {
            id: EventId::new(world.clock.now()),
            stream: StreamName::new(stream).unwrap(),
            kind: EventType::new(kind).unwrap(),
            cause: None,
            flow: None,
            data: Payload::from_json(data).unwrap(),
        };
        world.store.append(Append::new(vec![new])).unwrap();
        world.clock.advance(Duration::from_secs(30));
    };
    let engine_made = |kind: &str, data: &str| made_in("cli:a", kind, data);
    let turn = |part: &str, text: &str| {
        format!(
            r#"{{"sessionId":"{part}","role":"user","from":"external","provenance":{{"sender":"Ana"}},"content":"{text}"}}"#
        )
    };
    engine_made(
        "session.opened",
        r#"{"sessionId":"p","kind":"other","agentId":"ops","channel":"cli","spawnDepth":0,"label":"desk"}"#,
    );
    engine_made("turn", &turn("p", "ok"));
    engine_made("turn", &turn("p", "ok"));
    engine_made("session.patched", r#"{"sessionId":"p","set":{"sendPolicy":"deny"}}"#);
    engine_made(
        "session.reset",
        r#"{"sessionId":"q","previousSessionId":"p","reason":"manual","effectiveAt":"2026-09-21T00:00:00.000000Z"}"#,
    );
    engine_made("turn", &turn("q", "again"));
    for (n, key) in ODD_KEYS.into_iter().enumerate() {
        let opened = r#"{"sessionId":"N","kind":"other","agentId":"main","spawnDepth":0}"#;
        made_in(key, "session.opened", &opened.replace('N', &n.to_string()));
        made_in(key, "turn", &turn(&n.to_string(), "hello"));
    }
    world
}

/// Goal: sessions that go out as lines come in as they were, into an empty store and into their own. Method: a small
/// store; what both tell of every session, message by message.
#[test]
fn a_small_store() {
    let to = check_round_trip(&small());
    assert_eq!(to.sessions().len(), 2 + ODD_KEYS.len());
    assert!(exported(&to).contains(r#""type":"x.pi.label""#));
}

/// Goal: the same of real sessions. Method: every program's transcripts that are there.
#[test]
fn real_sessions() {
    for folder in ["openclaw-state", "openclaw-redacted", "pi", "claude"] {
        let Some(path) = fixtures(folder) else { return };
        let world = World::new();
        world.import(&DiskTree, path.to_str().unwrap());
        check_round_trip(&world);
    }
}

/// Goal: a file that has grown adds what is new, also when only its end is there. Method: the first lines, then all,
/// and the last alone.
#[test]
fn a_file_that_grows() {
    let text = exported(&small());
    let lines: Vec<&str> = text.lines().collect();
    let to = World::new();
    assert_eq!(to.import(&file(&lines[..2].join("\n")), "all.jsonl").totals().new, 2);
    assert_eq!(to.import(&file(lines[2]), "all.jsonl").totals().new, 1);
    assert_eq!(to.import(&file(&text), "all.jsonl").totals().new, lines.len() as u64 - 3);
    assert_eq!(exported(&to).lines().count(), lines.len());
    assert_eq!(to.stream("pi:s"), small().stream("pi:s"));
}

/// Goal: a session of the same key that the store has is left alone, and the imported one is read beside it, also when
/// it comes again. Method: a key with other turns.
#[test]
fn a_key_that_is_taken() {
    let text = exported(&small());
    let to = World::new();
    let own = r#"{"annals":1,"session":"pi:s","type":"turn","time":"2026-03-02T00:00:00Z","sessionId":"mine","role":"user","from":"external","content":"mine"}"#;
    to.import(&file(own), "all.jsonl");
    for _ in 0..2 {
        let report = to.import(&file(&text), "all.jsonl");
        assert_eq!(report.sources[0].sessions[0].key, "annals:s");
    }
    assert_eq!(to.stream("pi:s"), ["user external \"mine\""]);
    assert_eq!(to.stream("annals:s"), small().stream("pi:s"));
    assert_eq!(to.stream("import").iter().filter(|told| told.starts_with("damage")).count(), 1);
}

/// Goal: what is wrong in a file is told with its place, and the rest is taken. Method: a torn end, a gap, a type that
/// is none, a line by hand without an id; the same file twice.
#[test]
fn damaged_files() {
    let by_hand = r#"{"annals":1,"session":"cli:a","type":"turn","sessionId":"p","role":"user","from":"external","content":"hi"}"#;
    let run = r#"{"annals":1,"session":"cli:a","type":"run.requested"}"#;
    let gap = transcript::write_gap("3 events are missing").unwrap();
    let text = [by_hand, run, &gap, "[1]", &by_hand[..40]].join("\n");
    let to = World::new();
    let report = to.import(&file(&text), "all.jsonl");
    let at = |line: &str| text.find(line).unwrap();
    assert_eq!(
        damages(&report),
        [
            format!("unknown_record all.jsonl {}+{}/0", at(run), run.len()),
            format!("missing_field all.jsonl {}+{}/0", at(&gap), gap.len()),
            format!("wrong_type all.jsonl {}+3/0", at("[1]")),
            format!("torn_tail all.jsonl {}+40/0", at("[1]") + 4),
        ]
    );
    assert_eq!(to.stream("cli:a"), ["user external \"hi\""]);
    assert_eq!(to.import(&file(&text), "all.jsonl").totals().new, 0);
    let other: PathBuf = "other.jsonl".into();
    assert!(to.try_import(&file(&text), other.to_str().unwrap()).is_err());
}
