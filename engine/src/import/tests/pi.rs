//! Each sort of entry and the event that it becomes.

use super::*;

/// The events that a line becomes behind a header, as `type data`, with what identifies its bytes left out.
fn check(line: &str, expect: &str) {
    let world = World::new();
    let tree = MemoryTree::new([("p/s.jsonl", session("s", &[line]))]);
    world.import(&tree, "p");
    let mut got = Vec::new();
    for record in world.records().iter().filter(|r| r.stream.as_str() == "pi:s").skip(1) {
        let mut data: Value = serde_json::from_str(record.data.as_str()).unwrap();
        let source = data["source"].as_object_mut().unwrap();
        assert_eq!(source.remove("file"), Some("s.jsonl".into()));
        assert_eq!(source.remove("bytes"), Some(line.len().into()));
        source.remove("offset");
        source.remove("sha256");
        let source = source.clone();
        if source.is_empty() {
            data.as_object_mut().unwrap().remove("source");
        }
        let order = record.data.as_str();
        let names: Vec<String> = data.as_object().unwrap().keys().cloned().collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_by_key(|name| order.find(&format!("\"{name}\":")));
        let fields: Vec<String> =
            names.iter().map(|name| format!("\"{name}\":{}", data[*name])).collect();
        got.push(format!("{} {{{}}}", record.kind, fields.join(",")));
    }
    assert_eq!(got.join("\n"), expect, "{line}");
}

/// Goal: what is said is a turn, with its content as it was spelled and its times, tokens, costs and calls in place,
/// and nothing of the entry is lost. Method: a message of each role; `source.rest` is what the turn does not carry.
#[test]
fn messages() {
    check(
        r#"{"type":"message","id":"m","parentId":"p","timestamp":"2026-03-01T09:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"a\u00e9"}],"timestamp":1772355601000}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"user","from":"external","messageId":"m","source":{"rest":{"parentId":"p"}},"content":[{"text":"aé","type":"text"}]}"#,
    );
    check(
        r#"{"type":"message","id":"m","timestamp":"2026-03-01T09:00:01.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{}}],"api":"x","model":"m-1","usage":{"input":3,"output":4,"cacheRead":1,"totalTokens":8,"cost":{"total":0.0000155}},"stopReason":"toolUse","timestamp":1772355600000}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"assistant","from":"internal","messageId":"m","calls":["c1"],"model":"m-1","tokens":{"cacheRead":1,"in":3,"out":4},"costMicros":16,"source":{"rest":{"message":{"api":"x","stopReason":"toolUse","timestamp":1772355600000,"usage":{"cost":{"total":0.0000155},"totalTokens":8}}}},"content":[{"arguments":{},"id":"c1","name":"read","type":"toolCall"}]}"#,
    );
    check(
        r#"{"type":"message","timestamp":"2026-03-01T09:00:01.000Z","message":{"role":"assistant","content":[],"stopReason":"aborted","errorMessage":"Request was aborted"}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"assistant","from":"internal","source":{"rest":{"message":{"errorMessage":"Request was aborted","stopReason":"aborted"}}},"content":[]}"#,
    );
    check(
        r#"{"type":"message","id":"m","timestamp":"2026-03-01T09:00:01Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":"x","details":{"diff":"-"},"isError":true}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"toolResult","from":"internal","messageId":"m","callId":"c1","toolName":"read","isError":true,"source":{"rest":{"message":{"details":{"diff":"-"}}}},"content":"x"}"#,
    );
    check(
        r#"{"type":"message","id":"m","timestamp":"2026-03-01T11:00:01+02:00","message":{"role":"bashExecution","command":"ls -l","output":"a\n","exitCode":0}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"user","from":"external","messageId":"m","source":{"rest":{"message":{"exitCode":0,"role":"bashExecution"},"timestamp":"2026-03-01T11:00:01+02:00"}},"content":"$ ls -l\na\n"}"#,
    );
}

/// Goal: a reply that keeps silent says so, and one that only speaks of it does not. Method: replies of each sort.
#[test]
fn silent_replies() {
    for (content, silent) in [
        (r#""NO_REPLY""#, Some("NO_REPLY")),
        (
            r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":" [silent]\n"}]"#,
            Some("[silent]"),
        ),
        (r#""I will send NO_REPLY""#, None),
        (
            r#"[{"type":"text","text":"NO_REPLY"},{"type":"toolCall","id":"c","name":"read","arguments":{}}]"#,
            None,
        ),
    ] {
        let line = format!(
            r#"{{"type":"message","id":"m","timestamp":"2026-03-01T09:00:01Z","message":{{"role":"assistant","content":{content}}}}}"#
        );
        let world = World::new();
        world.import(&MemoryTree::new([("p/s.jsonl", session("s", &[&line]))]), "p");
        let data: Value = serde_json::from_str(world.records()[2].data.as_str()).unwrap();
        assert_eq!(data["silent"].as_str(), silent, "{content}");
    }
}

/// Goal: a time that is none is told, and the record is taken without it. Method: months and days that there are not, a
/// time in seconds, one beyond all, and `null`, which says nothing.
#[test]
fn impossible_times() {
    for (time, told) in [
        (r#""2026-13-01T09:00:00Z""#, true),
        (r#""2026-02-30T09:00:00Z""#, true),
        ("1772355601", true),
        ("99999999999999999", true),
        ("null", false),
        ("1772355601000", false),
    ] {
        let line = format!(
            r#"{{"type":"message","id":"m","timestamp":{time},"message":{{"role":"user","content":"x"}}}}"#
        );
        let world = World::new();
        let tree = MemoryTree::new([("p/s.jsonl", session("s", &[&line]))]);
        let report = world.import(&tree, "p");
        let count = report.sources[0].damage_count(DamageClass::ImpossibleTime);
        assert_eq!((count, report.totals().turns), (u64::from(told), 1), "{time}");
    }
}

/// Goal: what comes from elsewhere says where from. Method: a user's message with each kind of provenance.
#[test]
fn provenance() {
    check(
        r#"{"type":"message","id":"m","timestamp":"2026-03-01T09:00:01Z","message":{"role":"user","content":"x","provenance":{"kind":"inter_session","sourceSessionKey":"AGENT:Main:main","sourceChannel":"web","sourceTool":"sessions_send"}}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"user","from":"inter_session","messageId":"m","provenance":{"sourceChannel":"web","sourceSessionKey":"agent:main:main","sourceTool":"sessions_send"},"source":{"rest":{"message":{"provenance":{"kind":"inter_session","sourceChannel":"web","sourceSessionKey":"AGENT:Main:main","sourceTool":"sessions_send"}}}},"content":"x"}"#,
    );
    check(
        r#"{"type":"message","id":"m","timestamp":"2026-03-01T09:00:01Z","message":{"role":"user","content":"x","provenance":{"kind":"internal_system"}}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"user","from":"internal","messageId":"m","content":"x"}"#,
    );
}

/// Goal: what is part of the context is a turn of the system, what changes the session is a patch, and everything else
/// is kept and is neither. Method: an entry of each sort.
#[test]
fn entries() {
    check(
        r#"{"type":"compaction","id":"e","parentId":"p","timestamp":"2026-03-01T09:00:01Z","summary":"short","firstKeptEntryId":"k","tokensBefore":9}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"system","from":"internal","messageId":"e","source":{"rest":{"firstKeptEntryId":"k","parentId":"p","tokensBefore":9,"type":"compaction"}},"content":"short"}"#,
    );
    check(
        r#"{"type":"custom_message","customType":"c","content":"ctx","display":false,"id":"e","timestamp":"2026-03-01T09:00:01Z"}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"system","from":"internal","messageId":"e","source":{"rest":{"customType":"c","display":false,"type":"custom_message"}},"content":"ctx"}"#,
    );
    check(
        r#"{"type":"message","id":"e","timestamp":"2026-03-01T09:00:01Z","message":{"role":"hookMessage","customType":"c","content":"ctx"}}"#,
        r#"turn {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","role":"system","from":"internal","messageId":"e","source":{"rest":{"message":{"customType":"c","role":"hookMessage"},"type":"message"}},"content":"ctx"}"#,
    );
    check(
        r#"{"type":"model_change","id":"e","timestamp":"2026-03-01T09:00:01Z","provider":"acme","modelId":"m-2"}"#,
        r#"session.patched {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","set":{"model":"m-2"},"source":{"rest":{"id":"e","provider":"acme"}}}"#,
    );
    check(
        r#"{"type":"thinking_level_change","timestamp":"2026-03-01T09:00:01Z","thinkingLevel":"high"}"#,
        r#"session.patched {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","set":{"thinkingLevel":"high"}}"#,
    );
    check(
        r#"{"type":"session_info","id":"e","timestamp":"2026-03-01T09:00:01Z","name":"ferries"}"#,
        r#"session.patched {"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","set":{"displayName":"ferries"},"source":{"rest":{"id":"e"}}}"#,
    );
    for entry in [
        r#"{"type":"label","id":"e","timestamp":"2026-03-01T09:00:01Z","targetId":"m","label":"here"}"#,
        r#"{"type":"custom","id":"e","timestamp":"2026-03-01T09:00:01Z","customType":"c","data":{"n":1}}"#,
        r#"{"type":"leaf.v2","id":"e","timestamp":"2026-03-01T09:00:01Z","entryId":"m"}"#,
    ] {
        let mut content: Value = serde_json::from_str(entry).unwrap();
        let kind = content["type"].as_str().unwrap().to_owned();
        content.sort_all_objects();
        check(
            entry,
            &format!(
                r#"x.pi.{kind} {{"at":"2026-03-01T09:00:01.000000Z","sessionId":"s","content":{content}}}"#
            ),
        );
    }
}

/// Goal: an entry that lacks what its sort needs is kept as it is, and said to be odd. Method: wrong types and absent
/// fields of each sort.
#[test]
fn odd_entries_are_kept() {
    for (entry, kind, class) in [
        (r#"{"type":"message","id":"e","message":"text"}"#, "message", "wrong_type"),
        (r#"{"type":"message","id":"e"}"#, "message", "missing_field"),
        (r#"{"type":"message","id":"e","message":{"content":"x"}}"#, "message", "missing_field"),
        (
            r#"{"type":"message","id":"e","message":{"role":7,"content":"x"}}"#,
            "message",
            "wrong_type",
        ),
        (r#"{"type":"message","id":"e","message":{"role":"user"}}"#, "message", "missing_field"),
        (
            r#"{"type":"message","id":"e","message":{"role":"user","content":null}}"#,
            "message",
            "wrong_type",
        ),
        (
            r#"{"type":"message","id":"e","message":{"role":"oracle","content":"x"}}"#,
            "message",
            "unknown_record",
        ),
        (r#"{"type":"model_change","id":"e"}"#, "model_change", "missing_field"),
        (r#"{"type":"compaction","id":"e","summary":1}"#, "compaction", "wrong_type"),
        (r#"{"silly":"this"}"#, "entry", "missing_field"),
        (r#"{"type":"né","id":"e"}"#, "entry", "-"),
    ] {
        let world = World::new();
        let tree = MemoryTree::new([("p/s.jsonl", session("s", &[entry]))]);
        let report = world.import(&tree, "p");
        let kept = world.records().into_iter().find(|r| r.kind.as_str().starts_with("x.")).unwrap();
        assert_eq!(kept.kind.as_str(), format!("x.pi.{kind}"));
        let data: Value = serde_json::from_str(kept.data.as_str()).unwrap();
        assert_eq!(data["content"], serde_json::from_str::<Value>(entry).unwrap());
        let told = damages(&report)
            .first()
            .map_or("-".into(), |d| d.split(' ').next().unwrap().to_owned());
        assert_eq!(told, class, "{entry}");
        assert_eq!(report.totals().turns, 0);
    }
}

/// Goal: format 1, which has no ids and no parents, is read in its order; its header also sets the model. Method: a
/// session whose lines repeat, which is no reason to leave one out.
#[test]
fn format_one() {
    let text = concat!(
        r#"{"type":"session","id":"old","timestamp":"2025-11-20T09:00:00Z","cwd":"/w","provider":"p","modelId":"m-1","thinkingLevel":"off"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-11-20T09:00:01Z","message":{"role":"user","content":"a"}}"#,
        "\n",
        r#"{"type":"thinking_level_change","timestamp":"2025-11-20T09:00:02Z","thinkingLevel":"low"}"#,
        "\n",
        r#"{"type":"thinking_level_change","timestamp":"2025-11-20T09:00:02Z","thinkingLevel":"low"}"#,
        "\n",
    );
    let world = World::new();
    let tree = MemoryTree::new([("p/s.jsonl", text)]);
    let report = world.import(&tree, "p/s.jsonl");
    assert_eq!(
        world.stream("pi:old"),
        [
            "opened old",
            r#"patched {"model":"m-1","thinkingLevel":"off"}"#,
            r#"user external "a""#,
            r#"patched {"thinkingLevel":"low"}"#,
            r#"patched {"thinkingLevel":"low"}"#,
        ]
    );
    assert_eq!(damages(&report), [""; 0]);
}

/// Goal: what of a record is long and not content does not keep it from fitting into a line. Method: a tool result with
/// two hundred kilobytes of details.
#[test]
fn long_details_have_an_event_of_their_own() {
    let details = "x".repeat(200 << 10);
    let line = format!(
        r#"{{"type":"message","id":"m","timestamp":"2026-03-01T09:00:01Z","message":{{"role":"toolResult","toolCallId":"c","content":"ok","details":"{details}"}}}}"#
    );
    let world = World::new();
    let tree = MemoryTree::new([("p/s.jsonl", session("s", &[&line]))]);
    world.import(&tree, "p");
    let records = world.records();
    let turn = records.iter().find(|r| r.kind.as_str() == "turn").unwrap();
    assert!(turn.data.as_str().len() < 1_000);
    let rest = records.iter().find(|r| r.kind.as_str() == "x.pi.rest").unwrap();
    let data: Value = serde_json::from_str(rest.data.as_str()).unwrap();
    assert_eq!(data["content"]["message"]["details"].as_str().map(str::len), Some(200 << 10));
    assert_eq!(world.import(&tree, "p").totals().new, 0);
}
