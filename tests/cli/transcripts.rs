//! `import`: other programs' transcripts.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{Home, append, lines_of, snapshot, write};

const SESSIONS: &str = "agents/main/sessions";

/// A state folder of OpenClaw with a group chat and a child that it spawned, whose transcript ends in half a line.
pub(crate) fn openclaw(folder: &Path) {
    let index = r#"{
        "agent:main:telegram:group:-100": {"sessionId": "11111111-1111-4111-8111-111111111111", "updatedAt": 1775001660000, "chatType": "group", "channel": "telegram", "displayName": "Family"},
        "agent:main:subagent:22222222-2222-4222-8222-222222222222": {"sessionId": "33333333-3333-4333-8333-333333333333", "updatedAt": 1775001650000, "spawnedBy": "agent:main:telegram:group:-100", "spawnDepth": 1, "label": "counter"}
    }"#;
    let parent = [
        r#"{"type":"session","version":3,"id":"11111111-1111-4111-8111-111111111111","timestamp":"2026-04-01T00:00:00.000Z","cwd":"/srv"}"#,
        r#"{"type":"message","id":"aaaa0001","parentId":null,"timestamp":"2026-04-01T00:00:01.000Z","message":{"role":"user","content":"how many words are in notes.txt?","timestamp":1775001601000}}"#,
        r#"{"type":"message","id":"aaaa0002","parentId":"aaaa0001","timestamp":"2026-04-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"call_1","name":"sessions_spawn","arguments":{"task":"count","label":"counter"}}],"model":"tiny-1","usage":{"input":10,"output":2},"timestamp":1775001602000}}"#,
        r#"{"type":"message","id":"aaaa0003","parentId":"aaaa0002","timestamp":"2026-04-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"call_1","toolName":"sessions_spawn","content":[{"type":"text","text":"{\"status\":\"accepted\",\"childSessionKey\":\"agent:main:subagent:22222222-2222-4222-8222-222222222222\",\"runId\":\"run-1\"}"}],"isError":false,"timestamp":1775001603000}}"#,
        "",
    ];
    let child = [
        r#"{"type":"session","version":3,"id":"33333333-3333-4333-8333-333333333333","timestamp":"2026-04-01T00:00:03.000Z","cwd":"/srv"}"#,
        r#"{"type":"message","id":"bbbb0001","parentId":null,"timestamp":"2026-04-01T00:00:03.500Z","message":{"role":"user","content":"count","timestamp":1775001603500}}"#,
        r#"{"type":"message","id":"bbbb0002","parentId":"bbbb0001","timestamp":"2026-04-01T00:00:09.000Z","message":{"role":"assistant","content":"412 words","model":"tiny-1","timestamp":1775001609000}}"#,
        r#"{"type":"message","id":"bbbb0003","parentId":"bb"#,
    ];
    let sessions = folder.join(SESSIONS);
    write(sessions.join("sessions.json"), index);
    write(sessions.join("11111111-1111-4111-8111-111111111111.jsonl"), parent.join("\n"));
    write(sessions.join("33333333-3333-4333-8333-333333333333.jsonl"), child.join("\n"));
}

/// The folder of Claude Code with a session of two rows, of which the last belongs to a message that is not whole yet.
pub(crate) fn claude_code(folder: &Path) -> PathBuf {
    let id = "44444444-4444-4444-8444-444444444444";
    let row = |n: u32, rest: &str| {
        format!(
            "{{\"parentUuid\":null,\"isSidechain\":false,\"sessionId\":\"{id}\",\"version\":\"2.1.0\",\
             \"uuid\":\"5555555{n}-5555-4555-8555-555555555555\",\"timestamp\":\"2026-04-01T00:00:0{n}.000Z\",{rest}}}\n"
        )
    };
    let text = row(1, r#""type":"user","message":{"role":"user","content":"how many ferries?"}"#)
        + &row(
            2,
            r#""type":"assistant","message":{"id":"msg_1","role":"assistant","model":"tiny-1","content":[{"type":"text","text":"Two."}],"usage":{"input_tokens":3,"output_tokens":2}}"#,
        );
    let file = folder.join("projects/-srv").join(format!("{id}.jsonl"));
    write(&file, text);
    file
}

/// Goal: sessions of Claude Code go in by the name of their folder, and again adds nothing. Method: the folder, its
/// projects, and the one file, one after the other.
#[test]
fn imports_claude_code() {
    let home = Home::new();
    let file = claude_code(&home.path().join(".claude"));
    let before = snapshot(&home.path().join(".claude"));
    let report = home.json(&["import", ".claude", "--json"]);
    assert_eq!(report["sources"][0]["program"], "claude-code", "{report}");
    assert_eq!((&report["totals"]["sessions"], &report["totals"]["turns"]), (&1.into(), &2.into()));
    for path in [".claude/projects", file.to_str().expect("a path of text")] {
        assert_eq!(home.json(&["import", path, "--json"])["totals"]["new"], 0);
    }
    let history =
        home.ok(&["sessions", "history", "claude-code:44444444-4444-4444-8444-444444444444"]);
    assert!(history.contains("how many ferries?") && history.contains("Two."), "{history}");
    assert_eq!(snapshot(&home.path().join(".claude")), before);
}

fn source(home: &Home) -> PathBuf {
    let folder = home.path().join("backup");
    openclaw(&folder);
    folder
}

/// Goal: every whole record is an event once; damage is told with its place; parent and child are joined; the source
/// is untouched; a second run adds nothing. Method: a small state folder, imported twice.
#[test]
fn imports_once() {
    let home = Home::new();
    let folder = source(&home);
    let before = snapshot(&folder);
    let report = home.json(&["import", "backup", "--json"]);
    assert_eq!((&report["ok"], &report["dryRun"]), (&true.into(), &false.into()));
    let totals = &report["totals"];
    assert_eq!((totals["sessions"].as_u64(), totals["transcripts"].as_u64()), (Some(2), Some(2)));
    assert!(totals["new"].as_u64() > Some(5), "{report}");
    let torn = &report["sources"][0]["damages"][0];
    assert_eq!(torn["class"], "torn_tail", "{report}");
    assert_eq!(torn["bytes"], 48, "{report}");
    let turns = home.json_lines(&["export", "--type", "turn"]);
    assert_eq!(turns.len(), 5);
    let messages = home.json_lines(&["tail", "-m", "--json", "--type", "turn"]);
    let message = &messages[0]["message"];
    assert_eq!(message["from"], "agent:main:telegram:group:-100", "{message}");
    assert_eq!(message["to"], "agent:main:subagent:22222222-2222-4222-8222-222222222222");
    assert_eq!(snapshot(&folder), before);

    let events = home.ok(&["export", "-o", "raw"]);
    let again = home.json(&["import", "backup", "--json"]);
    assert_eq!(again["totals"]["new"], 0, "{again}");
    assert_eq!(again["totals"]["known"], totals["new"]);
    assert_eq!(home.ok(&["export", "-o", "raw"]), events);
    assert!(home.ok(&["import", "backup"]).contains("torn_tail"));
    assert_eq!(home.run(&["import", "backup", "--strict"]).code, Some(6));
}

/// Goal: a broken index ends in the exit code of damage with its file, its place and the reason, and the rest of what was
/// named is imported. Method: two state folders, of which the first has the beginning of an index.
#[test]
fn a_broken_index() {
    let home = Home::new();
    source(&home);
    openclaw(&home.path().join("second"));
    write(
        home.path().join("backup").join(SESSIONS).join("sessions.json"),
        "{\"agent:main:main\": ",
    );
    let ran = home.run(&["import", "backup", "second"]);
    assert_eq!(ran.code, Some(6), "{ran:#?}");
    for part in ["broken_index", "agents/main/sessions/sessions.json offset ", "EOF"] {
        assert!(ran.stdout.contains(part), "{part}: {ran:#?}");
    }
    assert!(home.ok(&["sessions", "list", "--all"]).contains("agent:main:telegram:group:-100"));
}

/// Goal: a dry run says the same and writes nothing, also where there is no store yet. Method: dry run, import, dry
/// run.
#[test]
fn dry_runs_write_nothing() {
    let home = Home::new();
    source(&home);
    let before = snapshot(home.path());
    let dry = home.json(&["import", "--dry-run", "backup", "--json"]);
    assert_eq!(snapshot(home.path()), before);
    let wet = home.json(&["import", "backup", "--json"]);
    assert_eq!((&dry["dryRun"], &dry["totals"]), (&true.into(), &wet["totals"]));
    let before = snapshot(home.path());
    let dry = home.json(&["import", "--dry-run", "backup", "--json"]);
    assert_eq!(dry["totals"]["new"], 0);
    assert_eq!(snapshot(home.path()), before);
}

/// Goal: what cannot be imported is a clear failure, and nothing is half imported. Method: nothing there, nothing
/// known, and one bad path beside a good one.
#[test]
fn what_cannot_be_imported() {
    let home = Home::new();
    source(&home);
    write(home.path().join("letter.txt"), "Dear all,\n");
    home.fails(&["import", "nowhere"], 3, "not_found");
    home.fails(&["import", "letter.txt"], 2, "invalid_input");
    home.fails(&["import", "backup", "nowhere"], 3, "not_found");
    home.fails(&["import"], 2, "usage");
    assert!(!home.store().exists());
}

/// Goal: imported history is asked like any other, by its own time. Method: filters of kind, agent, time and text.
#[test]
fn imported_history_is_queried() {
    let home = Home::new();
    source(&home);
    home.ok(&["import", "backup"]);
    let count =
        |args: &[&str]| home.json_lines(&[&["log", "-o", "jsonl", "-n0"][..], args].concat()).len();
    assert_eq!(count(&["--kind", "group", "--type", "turn"]), 3);
    assert_eq!(count(&["--type", "turn", "--until", "2026-04-01T00:00:02Z"]), 2);
    assert_eq!(count(&["--type", "turn", "-g", "412 words"]), 1);
    let text = home.ok(&["sessions", "history", "3333"]);
    assert!(text.contains("412 words"), "{text}");
    let list = home.ok(&["sessions", "list"]);
    assert!(list.contains("Family") && list.contains("counter"), "{list}");
}

/// Goal: real transcripts come through with every whole line, and twice changes nothing. Method: the folder that
/// `ANNALS_FIXTURES` names.
#[test]
fn real_transcripts() {
    let Some(fixtures) = std::env::var_os("ANNALS_FIXTURES").map(PathBuf::from) else {
        // Not by a macro: what those write is not shown of a test that passes.
        let said = b"skipped: ANNALS_FIXTURES names no folder of transcripts\n";
        std::io::stderr().write_all(said).expect("standard error");
        return;
    };
    let home = Home::new();
    for name in ["openclaw-state", "pi"] {
        let path = fixtures.join(name).display().to_string();
        let report = home.json(&["import", &path, "--json"]);
        assert!(report["totals"]["turns"].as_u64() > Some(0), "{report}");
        assert_eq!(home.json(&["import", &path, "--json"])["totals"]["new"], 0);
    }
    home.ok(&["verify", "--strict"]);
    assert!(!lines_of(&home.ok(&["tail", "-m", "--json"])).is_empty());
    assert!(home.ok(&["sessions", "list", "-n0"]).lines().count() > 2);
}

/// Goal: what `export --as jsonl` writes goes into another store, where the history is the same, and comes in once; what
/// has no place in it is counted. Method: a state folder, out of one home and into another; a content that lies apart
/// from its line; the same file into its own store.
#[test]
fn exported_sessions_come_back() {
    let home = Home::new();
    source(&home);
    home.ok(&["import", "backup"]);
    let id = home.push("cli", "default", "hello")["sessionId"].as_str().expect("an id").to_owned();
    let long = "größer als eine Zeile ".repeat(60_000);
    let turn = format!("{{'sessionId':'{id}','role':'user','from':'external','content':'{long}'}}");
    append(&home.store(), "cli:default", "turn", &turn);
    let ran = home.run(&["export", "--as", "jsonl"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("left out: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("run.requested 1") && !ran.stderr.contains("log."));
    let lines = lines_of(&ran.stdout);
    assert!(lines.iter().all(|line| line["annals"] == 1 && line["session"].is_string()));
    let other = Home::new();
    write(other.path().join("sessions.jsonl"), &ran.stdout);
    let report = other.json(&["import", "sessions.jsonl", "--json"]);
    assert_eq!(report["sources"][0]["program"], "annals");
    assert_eq!(report["totals"]["new"], lines.len());
    let told = |home: &Home| {
        let list = home.json(&["sessions", "list", "--all", "-n0", "--json"]);
        let keys = list["sessions"].as_array().expect("rows").iter().map(|row| {
            let id = row["sessionId"].as_str().expect("an id");
            let mut page = home.json(&["sessions", "history", id, "--include-tools", "--json"]);
            // The place is the store's own, and what it made itself has another name elsewhere.
            for message in page["messages"].as_array_mut().expect("messages") {
                (message["seq"], message["id"]) = (0.into(), 0.into());
            }
            (row["key"].to_string(), page["messages"].clone())
        });
        keys.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(told(&other), told(&home));
    assert_eq!(other.json(&["import", "sessions.jsonl", "--json"])["totals"]["new"], 0);
    write(home.path().join("sessions.jsonl"), &ran.stdout);
    assert_eq!(home.json(&["import", "sessions.jsonl", "--json"])["totals"]["new"], 0);
    let one = home.json_lines(&["export", "cli:default", "--as", "jsonl"]);
    assert_eq!((one.len(), &one[2]["content"]), (3, &long.into()));
    home.fails(&["export", "--as", "jsonl", "-o", "raw"], 2, "usage");
}

/// Goal: of several paths those that hold something known are imported, and the others are told. Method: a state folder
/// between a file that nobody knows and one of another program; then the strangers alone.
#[test]
fn strangers_among_the_paths() {
    let home = Home::new();
    source(&home);
    write(home.path().join("notes.txt"), "notes");
    write(home.path().join("qwen.jsonl"), "{\"sessionId\":\"s\",\"message\":{\"parts\":[]}}\n");
    let report = home.json(&["import", "notes.txt", "backup", "qwen.jsonl", "--json"]);
    assert_eq!(report["totals"]["sessions"], 2, "{report}");
    let refused: Vec<&str> = report["refused"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|refused| refused["path"].as_str())
        .collect();
    assert_eq!(refused, ["notes.txt", "qwen.jsonl"], "{report}");
    assert_ne!(home.run(&["import", "notes.txt", "qwen.jsonl"]).code, Some(0));
}
