//! Real transcripts, read in place from the folder that `ANNALS_FIXTURES` names.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use super::*;

/// A folder of real transcripts; says that the test was skipped where there is none.
pub(super) fn fixtures(folder: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("ANNALS_FIXTURES") else {
        // Not by a macro: what those write is not shown of a test that passes.
        let said = b"skipped: ANNALS_FIXTURES names no folder of real transcripts\n";
        std::io::stderr().write_all(said).unwrap();
        return None;
    };
    Some(Path::new(&root).join(folder))
}

fn imported(folder: &str) -> Option<(World, Report)> {
    let path = fixtures(folder)?;
    let world = World::new();
    let report = world.import(&DiskTree, path.to_str().unwrap());
    let again = world.import(&DiskTree, path.to_str().unwrap()).totals();
    assert_eq!((again.new, again.records), (0, report.totals().records));
    hold_invariants(&world, &path);
    Some((world, report))
}

/// What holds for every import: each event of a record names the bytes that it was made from, no two the same bytes of
/// a file unless they are parts of one record; versions have no gap; a run that is requested has its one end.
fn hold_invariants(world: &World, root: &Path) {
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    let mut runs: BTreeMap<String, i32> = BTreeMap::new();
    for record in world.records() {
        let version = versions.entry(record.stream.to_string()).or_default();
        *version += 1;
        assert_eq!(record.version.0, *version);
        match record.kind.as_str() {
            "run.requested" => *runs.entry(record.stream.to_string()).or_default() += 1,
            "run.finished" => *runs.entry(record.stream.to_string()).or_default() -= 1,
            _ => {}
        }
        let data: Value = serde_json::from_str(record.data.as_str()).unwrap();
        let source = &data["source"];
        let Some(file) = source["file"].as_str() else { continue };
        let bytes = std::fs::read(root.join(file)).unwrap();
        let start = usize::try_from(source["offset"].as_u64().unwrap()).unwrap();
        let len = usize::try_from(source["bytes"].as_u64().unwrap()).unwrap();
        use sha2::Digest;
        let sha256 = crate::format::hex(&sha2::Sha256::digest(&bytes[start..start + len]));
        assert_eq!(source["sha256"].as_str(), Some(sha256.as_str()), "{file} at {start}");
        whole(&data, &bytes[start..start + len], &record);
    }
    assert!(runs.values().all(|open| *open == 0), "{runs:?}");
}

/// Nothing of a turn's record is lost: every value in it is in the event, or in what the event keeps beside.
fn whole(data: &Value, record: &[u8], event: &Record) {
    let stream = event.stream.as_str();
    if event.kind.as_str() != "turn" {
        return;
    }
    let record: Value = serde_json::from_slice(record).unwrap();
    if ["codex:", "gemini:", "hermes:"].iter().any(|program| stream.starts_with(program)) {
        if data["role"] == "toolResult" && record.get("toolCalls").is_some() {
            // What a message tells of a tool is told in a turn behind its own.
            return;
        }
        return every_leaf(&data.to_string(), &record, "");
    }
    let rest = &data["source"]["rest"];
    let inside = ["message", "attachment"].into_iter().find(|name| record.get(name).is_some());
    let message = inside.map_or(&record, |name| &record[name]);
    let kept = inside.map_or(rest, |name| &rest[name]);
    for (name, value) in message.as_object().unwrap() {
        let carried = match name.as_str() {
            "content" | "summary" | "prompt" => data["content"] == *value || is_result(data, value),
            "type" => *value == "message" || *value == "queued_command",
            "role" => data["role"] == *value,
            "model" => data["model"] == *value,
            "toolCallId" => data["callId"] == *value,
            "toolName" => data["toolName"] == *value,
            "isError" => data["isError"] == *value,
            "id" => data["messageId"] == *value,
            "timestamp" => !data["at"].is_null(),
            "provenance" => data["provenance"]["sourceSessionKey"] == value["sourceSessionKey"],
            "usage" => value.as_object().unwrap().iter().all(|(name, value)| {
                let tokens = &data["tokens"];
                match name.as_str() {
                    "input" | "input_tokens" => tokens["in"] == *value,
                    "output" | "output_tokens" => tokens["out"] == *value,
                    "cacheRead" | "cache_read_input_tokens" => tokens["cacheRead"] == *value,
                    "cacheWrite" | "cache_creation_input_tokens" => tokens["cacheWrite"] == *value,
                    name => kept["usage"][name] == *value,
                }
            }),
            _ => false,
        };
        assert!(carried || kept[name] == *value, "{name} of {record} is not in {data}");
    }
}

/// Every value of a turn's record, however deep, is somewhere in the event: for programs whose records are not taken
/// field by field. Words for the role, the type and the time are other words there.
fn every_leaf(data: &str, record: &Value, name: &str) {
    match record {
        Value::Object(members) => members.iter().for_each(|(name, v)| every_leaf(data, v, name)),
        Value::Array(values) => values.iter().for_each(|value| every_leaf(data, value, name)),
        _ if ["type", "role", "timestamp", "created_at"].contains(&name) => {}
        Value::String(text) if text.is_empty() => {}
        leaf => assert!(data.contains(&leaf.to_string()), "{name}: {leaf} is not in {data}"),
    }
}

/// Whether an event's content is that of a result among blocks.
fn is_result(data: &Value, blocks: &Value) -> bool {
    let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
    data["role"] == "toolResult"
        && blocks.iter().any(|block| {
            block["content"] == data["content"] && block["is_error"] == data["isError"]
        })
}

/// Goal: a whole state folder comes out as it is described: every whole line is an event once, one torn tail with its
/// bytes, parent and child linked, the archive an earlier part, the queued message told and not sent.
#[test]
fn a_state_folder() {
    let Some((world, report)) = imported("openclaw-state") else { return };
    let totals = report.totals();
    assert_eq!((totals.sessions, totals.transcripts, totals.records), (2, 3, 13));
    assert_eq!((totals.turns, totals.runs, totals.unresolved, totals.undelivered), (8, 1, 0, 1));
    let child = "agents/main/sessions/c4e0d7f6-18a2-4b35-8d9c-2a6f1b3e9d02.jsonl";
    assert_eq!(damages(&report)[1], format!("torn_tail {child} 760+28/0"));
    let main = world.stream("agent:main:main");
    assert_eq!(
        main[1],
        "reset 0d9c8b7a-6f5e-4d3c-9b2a-1f0e9d8c7b6a > 7b1c9a52-3f0e-4c6d-9a10-5e2f8d4b7c01"
    );
    let child = "agent:main:subagent:5f3d2c1b-0a9e-4d8c-b7a6-123456789abc";
    assert!(main.contains(&format!("spawn.accepted {child}")));
    assert_eq!(
        main.iter().filter(|told| told.starts_with("delivery.")).collect::<Vec<_>>(),
        ["delivery.requested -", "delivery.expired imported",]
    );
    let opened = world.records().into_iter().find(|r| r.stream.as_str() == child).unwrap();
    assert!(opened.data.as_str().contains("\"parentKey\":\"agent:main:main\""));
    let made_of_lines = |record: &&Record| {
        let data: Value = serde_json::from_str(record.data.as_str()).unwrap();
        data["source"]["file"].as_str().is_some_and(|file| file.contains(".jsonl"))
    };
    assert_eq!(world.records().iter().filter(made_of_lines).count(), 13, "one event a line");
}

/// Goal: transcripts without an index are read in the order of their files. Method: two of them, whose parents are the
/// ids of calls and whose clock goes back once.
#[test]
fn transcripts_without_an_index() {
    let Some((world, report)) = imported("openclaw-redacted") else { return };
    assert_eq!(
        (report.totals().sessions, report.totals().records, report.totals().turns),
        (2, 16, 10)
    );
    let source = &report.sources[0];
    assert_eq!(source.damage_count(DamageClass::OrphanParent), 3);
    assert_eq!(source.damage_count(DamageClass::ClockBack), 1);
    let large = world.stream("openclaw:openclaw-stage0-large");
    assert_eq!(
        large[3..6],
        [
            "x.openclaw.custom",
            r#"system internal "System context injected before the turn.""#,
            r#"user external [{"text":"Open /tmp/large and run status","type":"text"}]"#,
        ]
    );
}

/// Goal: a session of format 1 with a thousand lines is read in its order; changes of the thinking level are no turns,
/// and the empty replies of aborted runs are. Method: its counts.
#[test]
fn sessions_of_pi() {
    let Some((world, report)) = imported("pi") else { return };
    assert_eq!((report.totals().sessions, report.totals().records), (2, 1_019 + 9));
    let stream = world.stream("pi:d703a1a9-1b7b-4fb1-b512-c9738b1fe617");
    let count = |begin: &str| stream.iter().filter(|told| told.starts_with(begin)).count();
    assert_eq!(count("patched {\"thinkingLevel\""), 103);
    assert_eq!((count("user"), count("assistant"), count("toolResult")), (88, 453, 373));
    assert_eq!(stream.iter().filter(|told| *told == "assistant internal []").count(), 14);
    assert_eq!(stream[2], r#"user external [{"text":"/mode","type":"text"}]"#);
    let small = world.stream("pi:019e19b4-eb48-746a-aa6b-8dfcfa37954b");
    assert_eq!(small.iter().filter(|told| told.starts_with("system internal")).count(), 2);
}

/// Goal: sessions of Claude Code are one each, sub-agents are their children, the rows of one API message are one turn
/// whose usage counts once. Method: every session's own counts, of versions from 1.0.98 to 2.1.
#[test]
fn sessions_of_claude_code() {
    let Some((world, report)) = imported("claude/projects") else { return };
    let totals = report.totals();
    assert_eq!((totals.transcripts, totals.records, totals.passed), (6, 616, 3));
    assert_eq!((totals.runs, totals.unresolved), (8, 0));
    let sessions = world.sessions();
    let row = |key: &str| sessions.row(&crate::id::StreamName::new(key).unwrap()).unwrap().clone();
    for (key, turns, tokens) in [
        ("claude-code:1af7fc5e-8455-4414-9ccd-011d40f70b2a", 9, 1_046),
        ("claude-code:5c0375b4-57a5-4f26-b12d-d022ee4e51b7", 12, 2_067),
        ("claude-code:fe5e1c67-53e7-4862-81ae-d0e013e3270b", 12, 3_009),
        ("claude-code:0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f", 2, 0),
        ("agent:claude-code:subagent:a0ad4f44468bdf20d", 2, 0),
    ] {
        let row = row(key);
        assert_eq!((row.turns, row.total_tokens), (turns, tokens), "{key}");
    }
    let child = row("agent:claude-code:subagent:a0ad4f44468bdf20d");
    let parent = "claude-code:0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f";
    assert_eq!(child.parent_key.as_deref(), Some(parent));
    assert!(world.stream(parent).iter().any(|told| told.starts_with("spawn.accepted agent:")));
    let chains = |parent: &str| {
        let rows = report.sources[0].sessions.iter().map(|session| row(&session.key));
        rows.filter(|row| row.parent_key.as_deref() == Some(parent)).count()
    };
    assert_eq!(chains("claude-code:fe5e1c67-53e7-4862-81ae-d0e013e3270b"), 5);
    assert_eq!(chains("claude-code:5c0375b4-57a5-4f26-b12d-d022ee4e51b7"), 2);
    let japanese = world
        .records()
        .iter()
        .any(|record| record.data.as_str().contains("ファイルを最新の状態にアップデートしました"));
    assert!(japanese, "text is kept as it is spelled");
}

/// Goal: broken lines are told by kind and place, glued records are two. Method: every file of the folder is examined;
/// those of Claude Code are imported with every record that is there, and that of another program is refused.
#[test]
fn damaged_files() {
    let Some(folder) = fixtures("damaged") else { return };
    let check = |file: &str, records: u64, expect: &[&str]| {
        let path = folder.join(file);
        let found = examine(&DiskTree, &path).unwrap();
        let told = |d: &Damage| format!("{} {}+{}/{}", d.class, d.offset, d.bytes, d.recovered);
        let got: Vec<String> = found.damages.iter().map(told).collect();
        assert_eq!(
            (found.records, got),
            (records, expect.iter().map(|e| (*e).to_owned()).collect()),
            "{file}"
        );
        if file == "two-objects-one-line.jsonl" {
            let refused = discover(&path).unwrap_err();
            assert_eq!(*refused.kind(), crate::error::ErrorKind::Unsupported, "{refused}");
            return;
        }
        let world = World::new();
        let report = world.import(&DiskTree, path.to_str().unwrap());
        assert_eq!((report.totals().records, report.totals().sessions), (records, 1), "{file}");
        assert_eq!(world.import(&DiskTree, path.to_str().unwrap()).totals().new, 0, "{file}");
    };
    check("truncated.jsonl", 2, &["torn_tail 450+161/0"]);
    check("invalid_json.jsonl", 3, &["invalid_json 210+60/0", "invalid_json 509+220/0"]);
    check("two-objects-one-line.jsonl", 2, &["glued 0+780/2"]);
    check(
        "wrong_types.jsonl",
        7,
        &[
            "wrong_type 0+219/1",
            "wrong_type 220+211/1",
            "wrong_type 432+224/1",
            "wrong_type 657+186/1",
            "wrong_type 844+191/1",
            "wrong_type 1036+191/1",
            "wrong_type 1228+190/1",
        ],
    );
    check(
        "missing_fields.jsonl",
        7,
        &[
            "missing_field 0+181/1",
            "missing_field 540+194/1",
            "missing_field 735+151/1",
            "missing_field 887+199/1",
            "missing_field 1087+177/1",
        ],
    );
    check(
        "edge_cases.jsonl",
        16,
        &[
            "missing_field 7181+459/1",
            "wrong_type 7641+219/1",
            "missing_field 7641+219/1",
            "wrong_type 8268+15/0",
            "missing_field 8284+17/1",
            "wrong_type 8302+2/0",
            "wrong_type 8305+3/0",
            "wrong_type 9179+327/1",
        ],
    );
}

/// Goal: rollouts are sessions whose usage is the last sum that they tell, and a message that an event repeats is one
/// turn. Method: a whole session of an early version; a collection of the kinds of records up to 0.149, in which
/// the first 26 are a session; and a file of another shape under the name of a rollout.
#[test]
fn rollouts_of_codex() {
    let Some((world, report)) = imported("codex") else { return };
    let totals = report.totals();
    assert_eq!((totals.sessions, totals.transcripts, totals.records), (3, 3, 143));
    let usage = Folded::<crate::session::usage::Usage>::of(&world.store, View::Durable).unwrap();
    let sums = usage.state().sums(crate::session::usage::By::Session);
    let sum = |key: &str| {
        let sum = &sums[key];
        (sum.tokens_in() + sum.cache_read() + sum.cache_write(), sum.tokens_out())
    };
    assert_eq!(sum("codex:019b2ea4-aaaa-bbbb-cccc-58208e1f0000"), (12_091, 182));
    assert_eq!(sum("codex:019fc8be-3658-7ca3-9e29-000000000000"), (16_341, 81));
    let told = world.stream("codex:019fc8be-3658-7ca3-9e29-000000000000");
    let found = told.iter().filter(|told| told.contains("Found 2 files.")).count();
    assert_eq!(found, 1, "{told:?}");
    let large = world.stream("codex:019b2ea4-aaaa-bbbb-cccc-58208e1f0000");
    let count = |begin: &str| large.iter().filter(|told| told.starts_with(begin)).count();
    assert_eq!((count("user external"), count("user internal"), count("toolResult")), (6, 1, 1));
    assert_eq!(count("assistant"), 1 + 1 + 1 + 1 + 5);
}

/// Goal: both forms of sessions are imported, with every message once. Method: one of each.
#[test]
fn sessions_of_gemini() {
    let Some((world, report)) = imported("gemini") else { return };
    assert_eq!(damages(&report), [""; 0]);
    let totals = report.totals();
    assert_eq!((totals.sessions, totals.records, totals.turns), (2, 3 + 5, 2 + 4));
    let old = "gemini:session-2026-01-16T18-34-3739ef95";
    assert_eq!(world.stream(old)[1..], ["user external \"Hello\"", "assistant internal \"Hi!\""]);
    let new = world.stream("gemini:gemini_stage0_jsonl");
    assert!(new.iter().any(|told| told.starts_with("toolResult internal")), "{new:?}");
}

/// Goal: sessions of Hermes are imported, with every message once. Method: three files, one of which has fields that no
/// other has.
#[test]
fn sessions_of_hermes() {
    let Some((world, report)) = imported("hermes") else { return };
    assert_eq!(damages(&report), [""; 0]);
    let totals = report.totals();
    assert_eq!((totals.sessions, totals.records, totals.turns), (3, 6 + 5 + 3, 4 + 3 + 2));
    let large = world.stream("hermes:20260429_hermes_large");
    assert_eq!(large[3], "toolResult internal \"/Users/dev/Repository/Codex-History\"");
}
