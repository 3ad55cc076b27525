//! Sessions of Claude Code, written by hand.

use super::*;
use crate::session::index::Row;

const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const B: &str = "bbbbbbbb-0000-4000-8000-000000000002";

/// The id of the row of this number.
fn uuid(n: u32) -> String {
    format!("{n:08x}-0000-4000-8000-00000000000f")
}

/// A row of a session: its number, that of its parent (0 for none), and what else it has.
fn row(session: &str, n: u32, parent: u32, rest: &str) -> String {
    let parent = if parent == 0 { "null".to_owned() } else { format!("\"{}\"", uuid(parent)) };
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/w\",\"sessionId\":\"{session}\",\
         \"version\":\"2.1.0\",\"uuid\":\"{}\",\"timestamp\":\"2026-05-01T09:{:02}:{:02}.000Z\",{rest}}}\n",
        uuid(n),
        n / 60,
        n % 60,
    )
}

fn asked(text: &str) -> String {
    format!(r#""type":"user","message":{{"role":"user","content":"{text}"}}"#)
}

/// A piece of an API message with one block, and the tokens that it says were put out so far.
fn piece(message: &str, out: u32, block: &str) -> String {
    format!(
        r#""type":"assistant","requestId":"req-{message}","message":{{"id":"{message}","type":"message","role":"assistant","model":"m-1","content":[{block}],"stop_reason":null,"usage":{{"input_tokens":3,"output_tokens":{out},"cache_read_input_tokens":7,"service_tier":"standard"}}}}"#
    )
}

fn text(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn call(id: &str, tool: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{input}}}"#)
}

fn result(call: &str, content: &str) -> String {
    format!(
        r#""type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"{content}"}}]}},"toolUseResult":{{"stdout":"{content}"}}"#
    )
}

fn side(row: &str) -> String {
    row.replace("\"isSidechain\":false", "\"isSidechain\":true")
}

fn view(world: &World, key: &str) -> Row {
    world.sessions().row(&crate::id::StreamName::new(key).unwrap()).unwrap().clone()
}

/// The session A in the folder of a project.
fn one_session(rows: &[String]) -> MemoryTree {
    MemoryTree::new([(format!("c/projects/-w/{A}.jsonl"), rows.concat())])
}

/// A session with a row of each kind.
fn one_of_each_kind() -> MemoryTree {
    one_session(&[
        format!(
            "{{\"type\":\"permission-mode\",\"permissionMode\":\"ask\",\"sessionId\":\"{A}\"}}\n"
        ),
        row(A, 1, 0, &asked("日本語で")),
        row(A, 2, 1, &format!("\"isMeta\":true,{}", asked("a caveat"))),
        row(A, 3, 2, &piece("msg_1", 1, r#"{"type":"thinking","thinking":"hm","signature":"s"}"#)),
        row(A, 4, 3, &piece("msg_1", 9, &call("t1", "Bash", r#"{"command":"ls"}"#))),
        row(A, 5, 4, &result("t1", "a b")),
        row(A, 6, 5, r#""type":"progress","data":{"type":"hook_progress"}"#),
        row(
            A,
            7,
            6,
            r#""type":"attachment","attachment":{"type":"queued_command","prompt":"wait","commandMode":"prompt"}"#,
        ),
        row(A, 8, 7, r#""type":"attachment","attachment":{"type":"skill_listing","content":"x"}"#),
        row(
            A,
            9,
            8,
            r#""type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":9}"#,
        ),
        row(A, 10, 9, &format!("\"isCompactSummary\":true,{}", asked("so far"))),
        format!("{{\"type\":\"summary\",\"summary\":\"Another\",\"leafUuid\":\"{}\"}}\n", uuid(99)),
        format!("{{\"type\":\"summary\",\"summary\":\"Ferries\",\"leafUuid\":\"{}\"}}\n", uuid(10)),
        format!(
            "{{\"type\":\"file-history-snapshot\",\"messageId\":\"{}\",\"snapshot\":{{}}}}\n",
            uuid(10)
        ),
        format!(
            "{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\"sessionId\":\"{A}\",\"timestamp\":\"2026-05-01T09:00:11.000Z\"}}\n"
        ),
    ])
}

/// Goal: each kind of row is what the table says. Method: a session with one of each, and the events of its stream.
#[test]
fn kinds_of_rows() {
    let world = World::new();
    let report = world.import(&one_of_each_kind(), "c");
    let key = format!("claude-code:{A}");
    assert_eq!(
        world.stream(&key),
        [
            &format!("opened {A}"),
            "x.claude-code.permission-mode",
            r#"user external "日本語で""#,
            r#"user internal "a caveat""#,
            r#"assistant internal [{"signature":"s","thinking":"hm","type":"thinking"}]"#,
            r#"assistant internal [{"id":"t1","input":{"command":"ls"},"name":"Bash","type":"tool_use"}]"#,
            r#"toolResult internal "a b""#,
            r#"user external "wait""#,
            "x.claude-code.attachment",
            "x.claude-code.system.compact_boundary",
            r#"system internal "so far""#,
            "x.claude-code.summary",
            r#"patched {"displayName":"Ferries"}"#,
            "x.claude-code.queue-operation",
        ]
    );
    assert_eq!(damages(&report), [""; 0]);
    let totals = report.totals();
    assert_eq!((totals.records, totals.passed, totals.turns), (15, 2, 6));
    assert_eq!(
        report.sources[0].passed.keys().collect::<Vec<_>>(),
        ["file-history-snapshot", "progress"]
    );
    let row = view(&world, &key);
    assert_eq!(
        (row.turns, row.total_tokens, row.display_name.as_deref()),
        (4, 12, Some("Ferries"))
    );
    let turn =
        world.records().into_iter().find(|r| r.data.as_str().contains("toolResult")).unwrap();
    assert!(turn.data.as_str().contains(r#""callId":"t1","toolName":"Bash""#), "{turn:?}");
}

/// Goal: a second import adds nothing, and a file that grew adds its new rows alone, also when they are pieces of an API
/// message whose first pieces came earlier: it stays one turn, and its usage the largest. Method: a session cut behind
/// each of its rows and inside each, then imported whole.
#[test]
fn a_session_that_grows() {
    let rows = [
        row(A, 1, 0, &asked("x")),
        row(A, 2, 1, &piece("msg_1", 1, &text("one"))),
        row(A, 3, 2, &piece("msg_1", 9, &call("t1", "Bash", "{}"))),
        row(A, 4, 3, &result("t1", "y")),
        row(A, 5, 4, &piece("msg_1", 20, &text("two"))),
    ];
    let whole = World::new();
    whole.import(&one_session(&rows), "c");
    let key = format!("claude-code:{A}");
    let all = rows.concat();
    for cut in (0..rows.len()).flat_map(|n| {
        let end = rows[..=n].concat().len();
        [end, end - 30]
    }) {
        let world = World::new();
        let path = format!("c/projects/-w/{A}.jsonl");
        world.import(&MemoryTree::new([(path.clone(), all[..cut].to_owned())]), &path);
        let before = world.stream(&key).len();
        world.import(&one_session(&rows), "c");
        assert_eq!(world.stream(&key), whole.stream(&key), "cut at {cut}");
        assert!(before <= whole.stream(&key).len());
        assert_eq!(world.import(&one_session(&rows), "c/projects").totals().new, 0);
        let row = view(&world, &key);
        assert_eq!((row.turns, row.total_tokens), (2, 23), "cut at {cut}");
    }
}

/// The run of a sub-agent names its first turn.
fn run_names_task(records: &[Record], key: &str) {
    let task = records.iter().find(|r| r.stream.as_str() == key && r.kind.as_str() == "turn");
    let requested = records.iter().find(|r| r.kind.as_str() == "run.requested").unwrap();
    let seq = format!("\"turnSeq\":{}", task.unwrap().seq.0);
    assert!(requested.data.as_str().contains(&seq), "{requested:?}");
}

/// Goal: a sub-agent is a child of the session that spawned it, in each of the places where its rows may stand, with one
/// run that has its end. Method: the same story told by each layout.
#[test]
fn sub_agents() {
    let parent = |extra: &str| {
        [
            row(A, 1, 0, &asked("go")),
            row(A, 2, 1, &piece("msg_1", 5, &call("t1", "Task", r#"{"description":"look","prompt":"find it","subagent_type":"general-purpose"}"#))),
            extra.to_owned(),
            row(A, 9, 2, &result("t1", "found").replace("\"stdout\"", "\"agentId\":\"a1b2c3d4e5f60718a\",\"status\":\"completed\",\"totalDurationMs\":1500,\"stdout\"")),
            row(A, 10, 9, &piece("msg_2", 5, &text("done"))),
        ]
        .concat()
    };
    let child = [
        side(&row(A, 3, 0, &asked("find it"))),
        side(&row(A, 4, 3, &piece("msg_9", 5, &text("here")))),
    ]
    .concat();
    let agent = child.replace("\"uuid\"", "\"agentId\":\"a1b2c3d4e5f60718a\",\"uuid\"");
    let folder = "c/projects/-w";
    let file = "agent-a1b2c3d4e5f60718a.jsonl";
    let layouts: [(&str, Vec<(String, String)>); 3] = [
        (
            "a1b2c3d4e5f60718a",
            vec![
                (format!("{folder}/{A}.jsonl"), parent("")),
                (format!("{folder}/{A}/subagents/{file}"), agent.clone()),
                (
                    format!("{folder}/{A}/subagents/agent-a1b2c3d4e5f60718a.meta.json"),
                    r#"{"agentType":"general-purpose","spawnDepth":1}"#.to_owned(),
                ),
            ],
        ),
        (
            "a1b2c3d4e5f60718a",
            vec![(format!("{folder}/{A}.jsonl"), parent("")), (format!("{folder}/{file}"), agent)],
        ),
        (&uuid(3), vec![(format!("{folder}/{A}.jsonl"), parent(&child))]),
    ];
    for (id, files) in layouts {
        let world = World::new();
        let tree = MemoryTree::new(files);
        let report = world.import(&tree, "c");
        assert_eq!(damages(&report), [""; 0]);
        assert_eq!(
            (report.totals().sessions, report.totals().runs, report.totals().unresolved),
            (2, 1, 0)
        );
        assert_eq!(report.totals().records, 6, "every row once");
        let key = format!("agent:claude-code:subagent:{id}");
        assert_eq!(
            world.stream(&key),
            [
                &format!("opened {id}"),
                r#"user inter_session "find it""#,
                r#"assistant internal [{"text":"here","type":"text"}]"#
            ]
        );
        let main = format!("claude-code:{A}");
        let told = world.stream(&main);
        assert_eq!(told[3], format!("spawn.accepted {key}"));
        assert!(told.iter().all(|told| !told.contains("here")), "{told:?}");
        assert_eq!(
            world.stream(&format!("run:{id}")),
            [format!("requested {key} of {main}"), "finished ok completed".to_owned()]
        );
        assert_eq!(view(&world, &key).parent_key, Some(main));
        run_names_task(&world.records(), &key);
        assert_eq!(world.import(&tree, "c").totals().new, 0);
    }
}

/// Goal: a session that was resumed under another id gives no turn twice, whether both are imported at once or one after
/// the other. Method: a second file that repeats the rows of the first and goes on.
#[test]
fn a_resumed_session() {
    let rows = |session: &str| {
        [row(session, 1, 0, &asked("x")), row(session, 2, 1, &piece("msg_1", 5, &text("y")))]
            .concat()
    };
    let tree = MemoryTree::new([
        (format!("c/projects/-w/{A}.jsonl"), rows(A)),
        (format!("c/projects/-w/{B}.jsonl"), rows(B) + &row(B, 3, 2, &asked("again"))),
    ]);
    let (first, second) = (format!("claude-code:{A}"), format!("claude-code:{B}"));
    let check = |world: &World| {
        assert_eq!(world.stream(&first).len(), 3);
        assert_eq!(world.stream(&second), [&format!("opened {B}"), r#"user external "again""#]);
        assert_eq!(world.import(&tree, "c").totals().new, 0);
    };
    let world = World::new();
    let report = world.import(&tree, "c");
    assert_eq!(report.sources[0].damage_count(DamageClass::ReplayedFork), 1);
    assert_eq!(view(&world, &second).parent_key, Some(first.clone()));
    check(&world);
    let world = World::new();
    world.import(&tree, &format!("c/projects/-w/{A}.jsonl"));
    let later = world.import(&tree, &format!("c/projects/-w/{B}.jsonl"));
    assert_eq!((later.totals().known, world.stream(&second).len()), (2, 2));
}

/// Goal: damage is told by its kind and its bytes, and everything whole is taken. Method: a session with a torn tail, two
/// rows on one line, and values that are none.
#[test]
fn damaged_rows() {
    let (one, two, three) =
        (row(A, 1, 0, &asked("a")), row(A, 2, 1, &asked("b")), row(A, 3, 2, &asked("c")));
    let glued = format!("{}{}", one.trim_end(), two);
    let odd = "\"text\"\n[1]\n";
    let broken = "{nothing}\n";
    let torn = &three[..three.len() - 20];
    let file = [glued.as_str(), odd, broken, torn].concat();
    let world = World::new();
    let path = format!("c/projects/-w/{A}.jsonl");
    let report = world.import(&MemoryTree::new([(path, file)]), "c/projects/-w");
    let (name, at) = (format!("{A}.jsonl"), glued.len());
    assert_eq!(
        damages(&report),
        [
            format!("glued {name} 0+{}/2", at - 1),
            format!("wrong_type {name} {at}+6/0"),
            format!("wrong_type {name} {}+3/0", at + 7),
            format!("invalid_json {name} {}+9/0", at + odd.len()),
            format!("torn_tail {name} {}+{}/0", at + odd.len() + broken.len(), torn.len()),
        ]
    );
    assert_eq!(report.totals().turns, 2);
}

/// Goal: the program's folder, its projects, a project and a session are each imported by their names, and nothing else
/// of the folder is looked at. Method: a folder with other files in it.
#[test]
fn parts_of_the_folder() {
    let mut tree = one_session(&[row(A, 1, 0, &asked("x"))]);
    tree.put(format!("c/projects/-w/{A}/tool-results/t1.txt"), "long");
    tree.put("c/projects/-v/empty.jsonl", row(B, 2, 0, &asked("y")));
    tree.put("c/history.jsonl", r#"{"display":"x","project":"/w"}"#);
    tree.put("c/todos/1.json", "[]");
    for (path, sessions) in [("c", 2), ("c/projects", 2), ("c/projects/-w", 1), ("", 2)] {
        let report = World::new().import(&tree, path);
        assert_eq!((report.totals().sessions, report.unknown.len()), (sessions, 0), "{path:?}");
    }
    let named = World::new().import(&tree, &format!("c/projects/-w/{A}.jsonl"));
    assert_eq!(named.totals().sessions, 1);
    assert_eq!(named.sources[0].copies.len(), 1, "what lies apart is told");
    let homes = Homes { claude: Some("c".into()), ..Homes::of("home") };
    let usual = discover_usual(&tree, &homes);
    assert_eq!(usual.transcripts.len(), 2);
}
