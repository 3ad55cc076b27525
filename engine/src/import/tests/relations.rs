//! Who sent to whom: spawns, sends, announces and queued messages, and what has no other side.

use super::*;
use crate::id::StreamName;
use crate::import::time::parse_rfc3339 as parse;
use crate::session::index::Status;

/// Goal: the sample is what it says: a parent, two children, an exchange and two announces, with both sides of each
/// joined. Method: the events of each stream.
#[test]
fn the_sample() {
    let world = World::new();
    let tree = sample_tree();
    let report = world.import(&tree, "sample");
    assert_eq!(damages(&report), [""; 0]);
    assert_eq!((report.totals().unresolved, report.totals().runs), (0, 3));
    let kinds = |stream: &str| -> Vec<String> {
        world
            .stream(stream)
            .iter()
            .map(|t| t.split([' ', '{']).take(2).collect::<Vec<_>>().join(" "))
            .collect()
    };
    let (north, south) = (
        "agent:demo:subagent:8f2d6c10-4b7a-4e59-9c3d-5a1e0b7f2c11",
        "agent:demo:subagent:0a9b4e73-6d18-4c2f-8e50-b7c3d9f1a412",
    );
    assert_eq!(
        kinds("agent:demo:main"),
        [
            "opened 6b0f3a52-1c84-4d7e-9a51-0c2d7e1f4a01",
            "patched ",
            "user external",
            "assistant internal",
            "toolResult internal",
            &format!("spawn.accepted {north}"),
            "toolResult internal",
            &format!("spawn.accepted {south}"),
            "user inter_session",
            "announce.requested -",
            "announce.delivered -",
            "assistant internal",
            "user inter_session",
            "announce.requested -",
            "announce.delivered -",
            "assistant internal",
            "toolResult internal",
            "send.accepted agent:lab:main",
            "user inter_session",
            "assistant internal",
            "assistant internal",
            "patched ",
        ]
    );
    assert_eq!(
        world.stream(north)[1],
        r#"user inter_session "[Subagent Task]: Read logs/north.txt and say when the north ferry turned.""#
    );
    assert_eq!(
        kinds("agent:lab:main")[3..],
        ["user inter_session", "assistant internal", "patched "]
    );
    assert_eq!(
        world.stream("run:run-south"),
        [
            format!("requested {south} of agent:demo:main"),
            "finished error subagent-error".to_owned(),
        ]
    );
    assert_eq!(
        world.stream("run:run-ask-ops"),
        ["requested agent:lab:main of agent:demo:main", "finished ok -",]
    );
    let keys: Vec<&str> = report.sources[0].sessions.iter().map(|s| s.key.as_str()).collect();
    let place = |key: &str| keys.iter().position(|have| *have == key).unwrap();
    assert!(place("agent:demo:main") < place(north) && place("agent:demo:main") < place(south));
}

/// Goal: the views show imported sessions as what they are: whose child, how they ended, with nothing left to run or to
/// tell. Method: the rows of the sample's sessions.
#[test]
fn the_sample_in_the_views() {
    let world = World::new();
    world.import(&sample_tree(), "sample");
    let sessions = world.sessions();
    assert_eq!((sessions.len(), sessions.passed_over()), (4, 0));
    let row = |key: &str| sessions.row(&StreamName::new(key).unwrap()).unwrap().clone();
    let main = row("agent:demo:main");
    assert_eq!((main.turns, main.parts, main.total_tokens), (9, 1, 5_687));
    assert_eq!((main.pending_announces, main.open_runs), (0, 0));
    assert_eq!(main.last_human_at, parse("2026-03-02T09:00:05Z"), "no child counts as a person");
    assert_eq!(
        main.transcript_path.as_deref().map(|path| path.starts_with("sample/agents/demo")),
        Some(true)
    );
    let south = row("agent:demo:subagent:0a9b4e73-6d18-4c2f-8e50-b7c3d9f1a412");
    assert_eq!(south.parent_key.as_deref(), Some("agent:demo:main"));
    assert_eq!((south.status, south.label.as_deref()), (Status::Failed, Some("south-log")));
    assert_eq!((south.last_human_at, south.spawn_depth), (None, 1));
}

/// Goal: every run that is imported has its end and is no work for anybody; announces and messages that were still to
/// go out do not. Method: a registry with a run that goes on, one that was killed and one whose announce is pending,
/// and queued messages of which one was perhaps sent.
#[test]
fn nothing_is_left_to_do() {
    let child = |n: u32| format!("agent:main:subagent:c{n}");
    let run = |n: u32, more: &str| {
        format!(
            r#""r{n}":{{"runId":"r{n}","childSessionKey":"{}","requesterSessionKey":"agent:main:main","createdAt":1000,"startedAt":1000{more}}}"#,
            child(n)
        )
    };
    let runs = [
        run(1, ""),
        run(
            2,
            r#","endedAt":3000,"outcome":{"status":"error","error":"manual kill"},"endedReason":"subagent-killed""#,
        ),
        run(3, r#","endedAt":3000,"outcome":{"status":"ok"},"frozenResultText":"done""#),
    ];
    let index = format!(
        r#"{{"agent:main:main":{{"sessionId":"a","lastChannel":"web","lastTo":"7"}},"{}":{{"sessionId":"c1"}},"{}":{{"sessionId":"c2"}},"{}":{{"sessionId":"c3"}}}}"#,
        child(1),
        child(2),
        child(3)
    );
    let world = World::new();
    let tree = state(&index, &[
        ("a.jsonl", one("a", "09:00:00", "x")),
        ("c1.jsonl", one("c1", "09:00:01", "task")),
        ("c2.jsonl", one("c2", "09:00:01", "task")),
        ("c3.jsonl", one("c3", "09:00:01", "task")),
        ("subagents/runs.json", format!(r#"{{"version":2,"runs":{{{}}}}}"#, runs.join(","))),
        ("delivery-queue/q1.json", r#"{"id":"q1","enqueuedAt":5000,"channel":"web","to":"7","payloads":[{"text":"hi"}],"retryCount":0}"#.to_owned()),
        ("delivery-queue/q2.json", r#"{"id":"q2","enqueuedAt":5000,"channel":"web","to":"7","payloads":[],"recoveryState":"unknown_after_send"}"#.to_owned()),
        ("delivery-queue/q3.json", r#"{"id":"q3","enqueuedAt":5000,"channel":"mail","to":"x","payloads":[]}"#.to_owned()),
        ("delivery-queue/q4.json", "not json".to_owned()),
    ]);
    let report = world.import(&tree, "o");
    assert_eq!(world.stream("run:r1")[1], "finished interrupted imported");
    assert_eq!(world.stream("run:r2")[1], "finished killed subagent-killed");
    assert_eq!(world.stream("run:r3")[1], "finished ok -");
    let requested = world.records().into_iter().filter(|r| r.kind.as_str() == "run.requested");
    assert!(requested.into_iter().all(|r| r.data.as_str().contains("\"imported\":true")));
    let told: Vec<String> = world
        .stream("agent:main:main")
        .into_iter()
        .filter(|t| t.starts_with("announce.") || t.starts_with("delivery."))
        .collect();
    assert_eq!(
        told,
        [
            "announce.requested -",
            "announce.suppressed imported",
            "announce.requested -",
            "announce.suppressed killed",
            "announce.requested -",
            "announce.suppressed imported",
            "delivery.requested -",
            "delivery.expired imported",
            "delivery.requested -",
            "delivery.unknown imported",
        ]
    );
    assert_eq!((report.totals().undelivered, report.totals().unresolved), (3, 1));
    assert_eq!(report.sources[0].unresolved[0].named.as_deref(), Some("mail:x"));
    assert_eq!(damages(&report), ["wrong_format delivery-queue/q4.json 0+8/0"]);
    assert_eq!(
        world.stream(&child(1))[1],
        r#"user inter_session "task""#,
        "parents from the registry"
    );
    assert_eq!(world.import(&tree, "o").totals().new, 0);
}

/// Goal: what has no other side is counted and told. Method: a send to nobody that is known, a spawn whose child has no
/// transcript, a call without an answer, and a turn from a session that is not there.
#[test]
fn unresolved() {
    let call = |id: &str, tool: &str, arguments: &str| {
        format!(
            r#"{{"type":"message","id":"m{id}","timestamp":"2026-03-01T09:00:02Z","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"{id}","name":"{tool}","arguments":{arguments}}}]}}}}"#
        )
    };
    let answer = |id: &str, text: &str| {
        format!(
            r#"{{"type":"message","id":"r{id}","timestamp":"2026-03-01T09:00:03Z","message":{{"role":"toolResult","toolCallId":"{id}","toolName":"t","content":{text:?}}}}}"#
        )
    };
    let from = r#"{"type":"message","id":"f","timestamp":"2026-03-01T09:00:04Z","message":{"role":"user","content":"x","provenance":{"kind":"inter_session","sourceSessionKey":"agent:main:gone","sourceTool":"sessions_send"}}}"#;
    let lines = [
        call("1", "sessions_send", r#"{"sessionKey":"agent:ops:main","message":"x"}"#),
        answer("1", r#"{"status":"accepted","runId":"r1"}"#),
        call("2", "sessions_spawn", r#"{"task":"x"}"#),
        answer(
            "2",
            r#"{"status":"accepted","runId":"r2","childSessionKey":"agent:main:subagent:9"}"#,
        ),
        call("3", "sessions_send", r#"{"label":"nobody","message":"x"}"#),
        call("4", "sessions_send", r#"{"sessionKey":"agent:ops:main","message":"x"}"#),
        answer("4", r#"{"status":"forbidden","error":"no"}"#),
        from.to_owned(),
    ];
    let transcript = format!("{}{}\n", header("a", "09:00:00"), lines.join("\n"));
    let world = World::new();
    let tree = state(r#"{"agent:main:main":{"sessionId":"a"}}"#, &[("a.jsonl", transcript)]);
    let report = world.import(&tree, "o");
    let told = |u: &Unresolved| {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "?".to_owned());
        format!("{} -> {} by {} to {}", side(&u.from), side(&u.to), u.tool, side(&u.named))
    };
    let mut got: Vec<String> = report.sources[0].unresolved.iter().map(told).collect();
    got.sort();
    assert_eq!(
        got,
        [
            "? -> agent:main:main by sessions_send to agent:main:gone",
            "agent:main:main -> ? by sessions_send to agent:ops:main",
            "agent:main:main -> ? by sessions_send to nobody",
            "agent:main:main -> ? by sessions_spawn to agent:main:subagent:9",
        ]
    );
    assert_eq!(world.stream("run:r1")[1], "finished interrupted imported");
    assert_eq!(world.import(&tree, "o").totals().new, 0);
}
