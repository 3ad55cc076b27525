//! What can be imported under a path, what is refused, and with which words.

use std::path::PathBuf;

use super::*;
use crate::error::ErrorKind;

/// Goal: an index that cannot be read is told with its file and the place, its sessions are left alone, those of other
/// agents are imported, and a later import with a whole index brings the rest. Method: an index that breaks off beside
/// another agent's, then a whole one; then one with a byte order mark and with entries that are none.
#[test]
fn a_broken_index() {
    let world = World::new();
    let files = || {
        [
            ("a.jsonl", one("a", "09:00:00", "x")),
            ("agents/ops/sessions/b.jsonl", one("b", "09:00:00", "y")),
        ]
    };
    let name = format!("{MAIN}/sessions.json");
    let report = world.import(&state("{\n \"agent:main:main\": oh", &files()), "o");
    assert_eq!(damages(&report), [format!("broken_index {name} 22+2/0")]);
    assert!(report.sources[0].damages[0].detail.contains("restore it"), "{report:?}");
    assert_eq!(report.totals().sessions, 1);
    assert_eq!(world.stream("openclaw:b").len(), 2);
    let whole = r#"{"agent:main:main":{"sessionId":"a"}}"#;
    assert_eq!(world.import(&state(whole, &files()), "o").totals().sessions, 2);
    assert_eq!(world.stream("agent:main:main").len(), 2);
    let odd = "\u{feff}{\"agent:main:main\":{\"sessionId\":\"a\"},\"agent:main:x\":[],\"agent:main:y\":{}}";
    let report = world.import(&state(odd, &files()), "o");
    assert_eq!(
        damages(&report),
        [
            format!("byte_order_mark {name} 0+3/1"),
            format!("wrong_type {name} 55+2/0"),
            format!("missing_field {name} 73+2/0"),
        ]
    );
}

/// Goal: a transcript that is a link out of the folder is told and not read; one inside is. Method: both, in a state
/// folder and in a folder of sessions.
#[test]
fn links_out_of_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let outside = home.path().join("outside.jsonl");
    let write = |path: &Path, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test makes its own source")]
        std::fs::write(path, text).unwrap();
    };
    write(&outside, &one("secret", "09:00:00", "x"));
    for (folder, refused) in [("state/agents/main/sessions", 0), ("pi/w", 1)] {
        let folder = home.path().join(folder);
        write(&folder.join("a.jsonl"), &one("a", "09:00:00", "x"));
        std::os::unix::fs::symlink(&outside, folder.join("b.jsonl")).unwrap();
        let root = folder.parent().unwrap().to_str().unwrap();
        let report = World::new().import(&DiskTree, root);
        assert_eq!((report.totals().sessions, report.refused.len()), (1, refused), "{report:?}");
        let told = report.sources[0].copies.iter().chain(&report.refused);
        let told: Vec<_> = told.filter(|skipped| skipped.path.ends_with("b.jsonl")).collect();
        assert!(told.len() == 1 && told[0].reason.contains("leads out"), "{report:?}");
    }
}

/// Goal: sessions in SQLite are refused with the number of the schema, whatever files lie beside them, and a database
/// of earlier versions, which holds other things, hinders nothing. Method: databases of a header and a schema.
#[test]
fn sqlite_is_refused() {
    let database = |tables: &str| {
        let mut bytes = b"SQLite format 3\0".to_vec();
        bytes.resize(63, 0);
        bytes.push(23);
        bytes.resize(100_000, 0);
        bytes.extend_from_slice(tables.as_bytes());
        bytes
    };
    let path = "o/agents/main/agent/openclaw-agent.sqlite";
    let file = || ("a.jsonl.reset.2026-03-01T09-30-00.000Z", one("a", "09:00:00", "x"));
    for (tree, refused) in [(MemoryTree::default(), true), (state("", &[file()]), true)] {
        let mut tree = tree;
        tree.put(path, database("CREATE TABLE transcript_events(session_id TEXT)"));
        let error = discover_in(&tree, Path::new("o")).unwrap_err();
        assert_eq!(*error.kind() == ErrorKind::Unsupported, refused);
        assert!(error.to_string().contains("schema 23"), "{error}");
        assert!(error.to_string().contains("openclaw-agent.sqlite"), "{error}");
        let above = discover_in(&tree, Path::new("")).unwrap_err();
        assert_eq!(*above.kind(), ErrorKind::Unsupported);
    }
    let mut tree = state("", &[file()]);
    tree.put(path, database("CREATE TABLE auth(id TEXT)"));
    assert_eq!(World::new().import(&tree, "o").totals().sessions, 1);
    tree.put(path, database("CREATE TABLE transcript_events(session_id TEXT)"));
    let named = World::new().import(&tree, &format!("o/{MAIN}"));
    assert_eq!(named.totals().sessions, 1, "files from before, named by themselves");
}

/// Goal: files of other programs are refused by name when they are named, and told when they are found. Method: a file
/// of each, alone and beside one that can be imported.
#[test]
fn others_are_refused_by_name() {
    let mut tree = MemoryTree::new([
        ("h/qwen.jsonl", br#"{"sessionId":"s","message":{"parts":[]}}"#.to_vec()),
        ("h/rollout-1.jsonl.zst", b"\x28\xb5\x2f\xfd\x04".to_vec()),
        ("h/rollout-2.jsonl.gz", b"\x1f\x8b\x08\0".to_vec()),
        ("h/notes.txt", b"notes".to_vec()),
    ]);
    for (file, name) in [
        ("qwen.jsonl", "Qwen Code"),
        ("rollout-1.jsonl.zst", "zstd -d"),
        ("rollout-2.jsonl.gz", "gunzip"),
    ] {
        let error = discover_in(&tree, Path::new("h").join(file).as_path()).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Unsupported, "{file}");
        assert!(error.to_string().contains(name) && error.to_string().contains(file), "{error}");
    }
    let unknown = discover_in(&tree, Path::new("h/notes.txt")).unwrap_err();
    assert_eq!(*unknown.kind(), ErrorKind::InvalidInput);
    assert_eq!(*discover_in(&tree, Path::new("nowhere")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(*discover_in(&tree, Path::new("h")).unwrap_err().kind(), ErrorKind::Unsupported);
    tree.put("h/pi.jsonl", session("s", &[&said("a", 1, "x")]));
    let report = World::new().import(&tree, "h");
    assert_eq!((report.refused.len(), report.unknown.len()), (3, 1));
    assert_eq!(report.totals().sessions, 1);
}

/// Goal: a part of a state folder that is named is imported as it would be with the whole. Method: a transcript, an
/// agent's sessions and its folder, then the whole, which adds only what is missing.
#[test]
fn parts_of_a_state_folder() {
    let world = World::new();
    let tree = sample_tree();
    let parent = "sample/agents/demo/sessions/6b0f3a52-1c84-4d7e-9a51-0c2d7e1f4a01.jsonl";
    let named = world.import(&tree, parent);
    assert_eq!(named.totals().sessions, 1);
    assert_eq!(damages(&named), [""; 0], "that others were not named is no damage");
    let alone = world.stream("agent:demo:main").len();
    assert!(alone > 14);
    world.import(&tree, "sample/agents/lab/sessions");
    world.import(&tree, "sample/agents/demo");
    let whole = World::new();
    whole.import(&tree, "sample");
    world.import(&tree, "sample");
    for key in ["agent:demo:main", "agent:lab:main", "run:run-north", "run:run-south"] {
        let sorted = |world: &World| {
            let mut told = world.stream(key);
            told.sort();
            told
        };
        assert_eq!(sorted(&world), sorted(&whole), "{key}");
    }
}

/// Goal: the first steps can offer what lies in the usual places, newest first and up to a size. Method: a home folder
/// on disk with two programs' sessions.
#[test]
fn usual_places() {
    let tree = MemoryTree::new([
        ("home/.openclaw/agents/main/sessions/a.jsonl", one("a", "09:00:00", "x")),
        ("home/.pi/agent/sessions/--w--/s.jsonl", session("s", &[])),
        (
            "home/.clawdbot/agents/main/agent/openclaw-agent.sqlite",
            "SQLite format 3\0".to_owned() + &"\0".repeat(84),
        ),
    ]);
    let places = discover_usual(&tree, &Homes::of("home"));
    let found: Vec<(Program, u64)> =
        places.transcripts.iter().map(|u| (u.program, u.transcript.bytes)).collect();
    let (a, s) = (one("a", "09:00:00", "x").len() as u64, header("s", "09:00:00").len() as u64);
    assert_eq!(found, [(Program::OpenClaw, a), (Program::Pi, s)]);
    assert_eq!(places.refused.len(), 1);
    assert_eq!(newest(&places.transcripts, a).len(), 1);
    assert_eq!(newest(&places.transcripts, a + s).len(), 2);
    assert_eq!(newest(&places.transcripts, 1).len(), 1);
    assert_eq!(newest(&[], 1).len(), 0);
    let only = newest(&places.transcripts, a).iter().map(|u| u.transcript.path.clone());
    let only: std::collections::BTreeSet<PathBuf> = only.collect();
    let found = discover_in(&tree, Path::new("home/.openclaw")).unwrap();
    let world = World::new();
    let how = Options { mode: Mode::Append, only: Some(only) };
    assert_eq!(world.take(&tree, &found, &how).unwrap().totals().sessions, 1);
    let none = Options { mode: Mode::Append, only: Some(Default::default()) };
    assert_eq!(world.take(&tree, &found, &none).unwrap().totals().sessions, 0);
}

/// Goal: every program's usual folder is looked into, and the folder that a variable names instead. Method: one
/// session of each program in its place, then the same under other folders.
#[test]
fn usual_places_of_all() {
    let rollout =
        r#"{"timestamp":"2026-03-01T09:00:00Z","type":"session_meta","payload":{"id":"t"}}"#;
    let chat = r#"{"key":"k","channel":"telegram","chat_id":"1","turns":[]}"#;
    let agent = r#"{"id":"0123456789","task":"t","status":"done","session_channel":"telegram"}"#;
    let gemini = r#"{"sessionId":"g","projectHash":"h"}"#;
    let hermes = r#"{"session_id":"h","platform":"cli","messages":[]}"#;
    let usual = MemoryTree::new([
        ("home/.codex/sessions/2026/03/01/rollout-t.jsonl", rollout),
        ("home/.codex/archived_sessions/rollout-u.jsonl", rollout),
        ("home/.gemini/tmp/h/chats/session-g.jsonl", gemini),
        ("home/.hermes/sessions/session_h.json", hermes),
        ("home/.config/arka/message-sessions/a.json", chat),
        ("home/.config/fish/message-sessions/b.json", chat),
        ("home/.cache/arka/subagents/0123456789.json", agent),
        ("home/.cache/fish-agent/subagents/0123456789.json", agent),
    ]);
    let programs = |tree: &MemoryTree, homes: &Homes| {
        let found = discover_usual(tree, homes);
        let mut found: Vec<Program> = found.transcripts.iter().map(|u| u.program).collect();
        found.sort();
        found
    };
    use Program::{Arka, Codex, Gemini, Hermes};
    let all = [Codex, Codex, Gemini, Hermes, Arka, Arka, Arka, Arka];
    assert_eq!(programs(&usual, &Homes::of("home")), all);
    let mut moved = MemoryTree::new([
        ("x/sessions/rollout-t.jsonl", rollout),
        ("chats/a.json", chat),
        ("agents/0123456789.json", agent),
    ]);
    let homes = Homes {
        codex: Some("x".into()),
        chats: Some("chats".into()),
        subagents: Some("agents".into()),
        ..Homes::of("home")
    };
    assert_eq!(programs(&moved, &homes), [Codex, Arka, Arka]);
    moved.put("chats/store.json", "{}");
    assert_eq!(programs(&moved, &homes), [Codex, Arka], "a store of our own is none");
}
