//! State folders of OpenClaw: keys, parts, children, runs, queued messages, and what is refused.

use std::path::PathBuf;

use super::*;
use crate::error::ErrorKind;
use crate::id::StreamName;
use crate::import::time::parse_rfc3339 as parse;
use crate::session::index::{Names, Status};
use crate::session::key::AgentId;

const MAIN: &str = "agents/main/sessions";

/// A state folder `o` of the agent `main` with this index and these files.
fn state(index: &str, files: &[(&str, String)]) -> MemoryTree {
    let mut tree = MemoryTree::default();
    if !index.is_empty() {
        tree.put(format!("o/{MAIN}/sessions.json"), index);
    }
    for (name, text) in files {
        let folder = if name.contains('/') { String::new() } else { format!("{MAIN}/") };
        tree.put(format!("o/{folder}{name}"), text.as_str());
    }
    tree
}

fn one(id: &str, time: &str, text: &str) -> String {
    format!("{}{}\n", header(id, time), said(&format!("{id}1"), 1, text))
}

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
        "agent:main:subagent:8f2d6c10-4b7a-4e59-9c3d-5a1e0b7f2c11",
        "agent:main:subagent:0a9b4e73-6d18-4c2f-8e50-b7c3d9f1a412",
    );
    assert_eq!(
        kinds("agent:main:main"),
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
            "send.accepted agent:ops:main",
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
        kinds("agent:ops:main")[3..],
        ["user inter_session", "assistant internal", "patched "]
    );
    assert_eq!(
        world.stream("run:run-south"),
        [
            format!("requested {south} of agent:main:main"),
            "finished error subagent-error".to_owned(),
        ]
    );
    assert_eq!(
        world.stream("run:run-ask-ops"),
        ["requested agent:ops:main of agent:main:main", "finished ok -",]
    );
    let keys: Vec<&str> = report.sources[0].sessions.iter().map(|s| s.key.as_str()).collect();
    let place = |key: &str| keys.iter().position(|have| *have == key).unwrap();
    assert!(place("agent:main:main") < place(north) && place("agent:main:main") < place(south));
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
    let main = row("agent:main:main");
    assert_eq!((main.turns, main.parts, main.total_tokens), (9, 1, 5_687));
    assert_eq!((main.pending_announces, main.open_runs), (0, 0));
    assert_eq!(main.last_human_at, parse("2026-03-02T09:00:05Z"), "no child counts as a person");
    assert_eq!(
        main.transcript_path.as_deref().map(|path| path.starts_with("sample/agents/main")),
        Some(true)
    );
    let south = row("agent:main:subagent:0a9b4e73-6d18-4c2f-8e50-b7c3d9f1a412");
    assert_eq!(south.parent_key.as_deref(), Some("agent:main:main"));
    assert_eq!((south.status, south.label.as_deref()), (Status::Failed, Some("south-log")));
    assert_eq!((south.last_human_at, south.spawn_depth), (None, 1));
}

/// Goal: a session that a person began beside another one is its child and no spawn; a folder that no agent can own and
/// an id that no key can hold stop nothing. Method: one of each.
#[test]
fn odd_folders_and_ids() {
    let long = "l".repeat(2_000);
    let mut tree = state(
        r#"{"agent:main:main":{"sessionId":"a"},"agent:main:side":{"sessionId":"b","parentSessionKey":"agent:main:main"},"agent:main:none":{"sessionId":""}}"#,
        &[
            ("a.jsonl", one("a", "09:00:00", "x")),
            ("b.jsonl", one("b", "09:01:00", "mine")),
            ("c.jsonl", one(&long, "09:01:00", "long")),
        ],
    );
    tree.put("o/agents/No Agent!/sessions/d.jsonl", one("d", "09:00:00", "x"));
    let world = World::new();
    let report = world.import(&tree, "o");
    assert_eq!(report.totals().sessions, 3);
    assert_eq!(report.sources[0].copies.len(), 1);
    assert_eq!(world.stream("agent:main:side")[1], r#"user external "mine""#);
    let side = world.sessions().row(&StreamName::new("agent:main:side").unwrap()).unwrap().clone();
    assert_eq!(side.parent_key.as_deref(), Some("agent:main:main"));
    assert!(
        report.sources[0]
            .sessions
            .iter()
            .any(|s| s.key.starts_with("openclaw:") && s.key.len() == 73)
    );
}

/// Goal: archives of resets are earlier parts of the key that went on, and of no key when that is not certain. Method:
/// one key and an archive; two keys, of which one goes on at once; two keys that go on later; a family in the index.
#[test]
fn archives_of_resets() {
    let archive = ("old.jsonl.reset.2026-03-01T09-30-00.000Z", one("old", "09:00:00", "before"));
    let a = ("a.jsonl", one("a", "10:00:00", "after"));
    let parts = [
        "opened old",
        r#"user external "before""#,
        "reset old > a",
        "opened a",
        r#"user external "after""#,
    ];
    let world = World::new();
    let tree = state(r#"{"agent:main:main":{"sessionId":"a"}}"#, &[archive.clone(), a.clone()]);
    world.import(&tree, "o");
    assert_eq!(world.stream("agent:main:main"), parts);
    assert_eq!(world.import(&tree, "o").totals().new, 0);

    let two =
        r#"{"agent:main:main":{"sessionId":"a"},"agent:main:web:direct:1":{"sessionId":"b"}}"#;
    let soon = ("b.jsonl", one("b", "09:30:02", "soon"));
    let world = World::new();
    world.import(&state(two, &[archive.clone(), a.clone(), soon]), "o");
    assert_eq!(world.stream("agent:main:web:direct:1")[2], "reset old > b");
    assert_eq!(world.stream("agent:main:main")[0], "opened a");

    let later = ("b.jsonl", one("b", "10:00:01", "later"));
    let world = World::new();
    world.import(&state(two, &[archive.clone(), a.clone(), later.clone()]), "o");
    assert_eq!(
        world.stream("openclaw:old"),
        ["opened old", r#"user external "before""#, "archived old ended",]
    );

    let family =
        two.replace(r#""sessionId":"a""#, r#""sessionId":"a","usageFamilySessionIds":["old","a"]"#);
    let world = World::new();
    world.import(&state(&family, &[archive, a, later]), "o");
    assert_eq!(world.stream("agent:main:main")[..5], parts);
}

/// Goal: what was decided stands when the source changes. Method: a session is imported while it lives, then reset; an
/// archive that was missing turns up after its successor; an index that is lost and comes back.
#[test]
fn decisions_stand() {
    let index = r#"{"agent:main:main":{"sessionId":"a"}}"#;
    let world = World::new();
    world.import(&state(index, &[("a.jsonl", one("a", "09:00:00", "one"))]), "o");
    let more = format!("{}{}\n", one("a", "09:00:00", "one"), said("a2", 5, "two"));
    let after = state(
        r#"{"agent:main:main":{"sessionId":"b"}}"#,
        &[
            ("a.jsonl.reset.2026-03-01T09-30-00.000Z", more),
            ("b.jsonl", one("b", "09:31:00", "three")),
        ],
    );
    let report = world.import(&after, "o");
    assert_eq!((report.totals().new, report.totals().known), (4, 2));
    let stream = [
        "opened a",
        r#"user external "one""#,
        r#"user external "two""#,
        "reset a > b",
        "opened b",
        r#"user external "three""#,
    ];
    assert_eq!(world.stream("agent:main:main"), stream);

    let mut late = after;
    late.put(
        format!("o/{MAIN}/z.jsonl.reset.2026-03-01T08-30-00.000Z"),
        one("z", "08:00:00", "zero"),
    );
    let report = world.import(&late, "o");
    assert_eq!(report.sources[0].damage_count(DamageClass::KeyTaken), 1);
    assert_eq!(world.stream("agent:main:main"), stream);
    let zero = ["opened z", r#"user external "zero""#, "archived z ended"];
    assert_eq!(world.stream("openclaw:z"), zero);

    late.remove(Path::new(&format!("o/{MAIN}/sessions.json")));
    assert_eq!(world.import(&late, "o").totals().new, 0);
    assert_eq!(world.stream("agent:main:main"), stream);

    let b = format!("o/{MAIN}/b.jsonl");
    late.remove(Path::new(&b));
    late.put(format!("{b}.deleted.2026-03-01T11-00-00.000Z"), one("b", "09:31:00", "three"));
    assert_eq!(world.import(&late, "o").totals().new, 1);
    assert_eq!(world.stream("agent:main:main").last().unwrap(), "archived b cleanup");
}

/// Goal: deleted sessions and those that the index does not know are there under their own ids; copies are not sessions
/// and are named. Method: a file of each sort that lies in a folder of sessions.
#[test]
fn every_file_of_a_folder() {
    let world = World::new();
    let tree = state(
        "{\n \"agent:main:main\": {\"sessionId\": \"a\"}\n}",
        &[
            ("a.jsonl", one("a", "09:00:00", "one")),
            ("b-topic-7.jsonl", one("b", "09:00:00", "topic")),
            ("b.jsonl", one("b", "09:00:00", "plain")),
            ("gone.jsonl.deleted.2026-03-01T09-30-00.000Z", one("gone", "09:00:00", "gone")),
            (
                "a.checkpoint.5f3d2c1b-0a9e-4d8c-b7a6-123456789abc.jsonl",
                one("a", "09:00:00", "one"),
            ),
            ("a.trajectory.jsonl", "{}\n".to_owned()),
            ("a.jsonl.bak-7-1737420882", one("a", "09:00:00", "one")),
            ("c.jsonl.reset.2026-03-01T09-30-00.000Z.zst", "\u{28}".to_owned()),
        ],
    );
    let report = world.import(&tree, "o");
    assert_eq!(world.stream("openclaw:gone")[2], "archived gone cleanup");
    assert_eq!(world.stream("openclaw:b")[1], r#"user external "plain""#);
    assert_eq!(world.stream("openclaw:b-topic-7")[1], r#"user external "topic""#);
    assert_eq!(report.totals().sessions, 4);
    let copies: Vec<&str> =
        report.sources[0].copies.iter().map(|c| c.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(copies.len(), 4);
    assert!(report.sources[0].copies.iter().any(|c| c.reason.contains("Zstandard")));
    let named = world.try_import(&tree, &format!("o/{MAIN}/a.trajectory.jsonl")).unwrap_err();
    assert!(named.to_string().contains("a trace of a session's runs"), "{named}");
}

/// Goal: spellings of one key that stand side by side become one session with all turns reachable, the last used one
/// last. Method: an index with `main`, `agent:main:main` and a spelling in capitals.
#[test]
fn aliases_are_joined() {
    let index = r#"{"main":{"sessionId":"a","updatedAt":3000},"agent:main:main":{"sessionId":"b","updatedAt":1000},"AGENT:main:MAIN":{"sessionId":"c","updatedAt":2000}}"#;
    let files = ["a", "b", "c"].map(|id| (format!("{id}.jsonl"), one(id, "09:00:00", id)));
    let files: Vec<(&str, String)> = files.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    let world = World::new();
    world.import(&state(index, &files), "o");
    let stream = world.stream("agent:main:main");
    let said: Vec<&String> = stream.iter().filter(|t| t.starts_with("user")).collect();
    assert_eq!(said.len(), 3);
    assert_eq!(stream.iter().rfind(|t| t.starts_with("opened")).unwrap(), "opened a");
}

/// Goal: one session id under two keys leads to both: each key has the whole transcript, and usage is counted once.
/// Method: a job and the run of it that has its id, imported twice and once more when the job has gone on.
#[test]
fn one_id_under_two_keys() {
    let paid = r#"{"type":"message","id":"r","timestamp":"2026-03-01T09:00:04Z","message":{"role":"assistant","content":[],"usage":{"input":5,"output":6}}}"#;
    let transcript = format!("{}{paid}\n", one("a", "09:00:00", "go"));
    let index = r#"{"cron:j1:run:r1":{"sessionId":"a"},"cron:j1":{"sessionId":"a"}}"#;
    let world = World::new();
    let tree = state(index, &[("a.jsonl", transcript.clone())]);
    world.import(&tree, "o");
    let expect = ["opened a", r#"user internal "go""#, "assistant internal []"];
    assert_eq!(world.stream("cron:j1")[1], r#"user internal "go""#);
    assert_eq!(world.stream("cron:j1:run:r1").len(), expect.len());
    let counted = |world: &World| {
        let with = world.records().into_iter().filter(|r| r.data.as_str().contains("\"tokens\":"));
        with.map(|r| r.stream.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(counted(&world), ["cron:j1"]);
    assert_eq!(world.import(&tree, "o").totals().new, 0);
    let main = AgentId::parse("main").unwrap();
    let ambiguous = world.sessions().find("a", &main, Names::Whole).unwrap_err();
    assert!(ambiguous.to_string().contains("ambiguous"), "{ambiguous}");
    for key in ["cron:j1", "cron:j1:run:r1"] {
        assert!(ambiguous.to_string().contains(key), "{ambiguous}");
        assert_eq!(world.sessions().find(key, &main, Names::Whole).unwrap().key.as_str(), key);
    }
    let index = r#"{"cron:j1:run:r1":{"sessionId":"a"},"cron:j1":{"sessionId":"b"}}"#;
    let tree = state(index, &[("a.jsonl", transcript), ("b.jsonl", one("b", "10:00:00", "next"))]);
    assert_eq!(world.import(&tree, "o").totals().new, 3);
    assert_eq!(
        world.stream("cron:j1")[3..],
        ["reset a > b", "opened b", r#"user internal "next""#]
    );
    assert_eq!(world.stream("cron:j1:run:r1").len(), expect.len());
    assert_eq!(counted(&world).len(), 1);
}

/// Goal: ids are bytes, labels stay as they are, and nothing is lost for its script. Method: two spellings of one
/// letter as chat ids, and a label in Hindi.
#[test]
fn ids_and_labels_of_any_script() {
    let index = "{\"agent:main:web:direct:\u{e9}\":{\"sessionId\":\"a\",\"label\":\"नमस्ते\"},\"agent:main:web:direct:e\u{301}\":{\"sessionId\":\"b\"}}";
    let world = World::new();
    let tree = state(
        index,
        &[("a.jsonl", one("a", "09:00:00", "x")), ("b.jsonl", one("b", "09:00:00", "y"))],
    );
    world.import(&tree, "o");
    assert_eq!(
        world.stream("agent:main:web:direct:\u{e9}")[..2],
        ["opened a", r#"user external "x""#]
    );
    assert_eq!(
        world.stream("agent:main:web:direct:e\u{301}")[..2],
        ["opened b", r#"user external "y""#]
    );
    let opened = world.records().into_iter().find(|r| r.data.as_str().contains("\"label\""));
    assert!(opened.unwrap().data.as_str().contains("\"label\":\"नमस्ते\""));
}

/// Goal: what the index says of a session is a patch when it says something new, and only then. Method: a policy that
/// changes, changes back, and stays.
#[test]
fn the_index_patches() {
    let world = World::new();
    let go = |policy: &str| {
        let index = format!(r#"{{"agent:main:main":{{"sessionId":"a","sendPolicy":"{policy}"}}}}"#);
        let tree = state(&index, &[("a.jsonl", one("a", "09:00:00", "x"))]);
        world.import(&tree, "o").totals().new
    };
    assert_eq!([go("allow"), go("allow"), go("deny"), go("allow"), go("allow")], [3, 0, 1, 1, 0]);
    let patches: Vec<String> =
        world.stream("agent:main:main").into_iter().filter(|t| t.starts_with("patched")).collect();
    assert_eq!(
        patches,
        ["allow", "deny", "allow"].map(|p| format!("patched {{\"sendPolicy\":\"{p}\"}}"))
    );
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

/// Goal: an index that cannot be read stops the import before anything is done, and a later one succeeds. Method: an
/// index of garbage, then a whole one.
#[test]
fn a_broken_index_stops() {
    let world = World::new();
    let file = ("a.jsonl", one("a", "09:00:00", "x"));
    let error =
        world.try_import(&state("\u{1}garbage", std::slice::from_ref(&file)), "o").unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("o/agents/main/sessions/sessions.json"), "{error}");
    assert!(error.hint_text().is_some() || std::error::Error::source(&error).is_some());
    assert_eq!(world.len(), 0);
    let report = world.import(&state(r#"{"agent:main:main":{"sessionId":"a"}}"#, &[file]), "o");
    assert_eq!(report.totals().sessions, 1);
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
        ("h/claude.jsonl", r#"{"parentUuid":null,"sessionId":"s","type":"user","message":{}}"#),
        ("h/rollout-1.jsonl", r#"{"timestamp":"t","type":"session_meta","payload":{}}"#),
        ("h/gemini.json", r#"{"sessionId":"s","projectHash":"h"}"#),
        ("h/hermes.json", "{\n \"session_id\": \"s\",\n \"platform\": \"cli\"\n}"),
        ("h/arka.json", r#"{"key":"k","channel":"cli","chat_id":"1","turns":[]}"#),
        ("h/notes.txt", "notes"),
    ]);
    for (file, name) in [
        ("claude.jsonl", "Claude Code"),
        ("rollout-1.jsonl", "Codex"),
        ("gemini.json", "Gemini CLI"),
        ("hermes.json", "Hermes"),
        ("arka.json", "Arka"),
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
    assert_eq!((report.refused.len(), report.unknown.len()), (5, 1));
    assert_eq!(report.totals().sessions, 1);
}

/// Goal: a part of a state folder that is named is imported as it would be with the whole. Method: a transcript, an
/// agent's sessions and its folder, then the whole, which adds only what is missing.
#[test]
fn parts_of_a_state_folder() {
    let world = World::new();
    let tree = sample_tree();
    let parent = "sample/agents/main/sessions/6b0f3a52-1c84-4d7e-9a51-0c2d7e1f4a01.jsonl";
    let named = world.import(&tree, parent);
    assert_eq!(named.totals().sessions, 1);
    assert_eq!(damages(&named), [""; 0], "that others were not named is no damage");
    let alone = world.stream("agent:main:main").len();
    assert!(alone > 14);
    world.import(&tree, "sample/agents/ops/sessions");
    world.import(&tree, "sample/agents/main");
    let whole = World::new();
    whole.import(&tree, "sample");
    world.import(&tree, "sample");
    for key in ["agent:main:main", "agent:ops:main", "run:run-north", "run:run-south"] {
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
    let places = discover_usual(&tree, Path::new("home"));
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
