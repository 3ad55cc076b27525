//! Sessions of Gemini CLI.

use super::*;

const USER: &str = r#"{"id":"m1","timestamp":"2026-03-01T09:00:01.000Z","type":"user","content":[{"text":"List"}]}"#;
const CALLED: &str = r#"{"id":"m2","timestamp":"2026-03-01T09:00:02.000Z","type":"gemini","content":"Looking.","thoughts":[{"subject":"s"}],"tokens":{"input":100,"output":10,"cached":40,"thoughts":5,"tool":0,"total":115},"model":"gemini-3","toolCalls":[{"id":"c1","name":"ls","args":{"dir":"."},"result":[{"functionResponse":{"id":"c1"}}],"status":"success","timestamp":"2026-03-01T09:00:03.000Z","resultDisplay":"a.txt"}]}"#;
const SAID: &str = r#"{"id":"m3","timestamp":"2026-03-01T09:00:04.000Z","type":"gemini","content":"One file.","tokens":{"input":20,"output":2,"cached":0,"total":22},"model":"gemini-3"}"#;
const HEAD: &str = r#""sessionId":"g1","projectHash":"h","startTime":"2026-03-01T09:00:00.000Z","lastUpdated":"2026-03-01T09:00:09.000Z","kind":"main""#;

fn told() -> [&'static str; 5] {
    [
        "opened g1",
        r#"user external [{"text":"List"}]"#,
        r#"assistant internal [{"text":"Looking.","type":"text"},{"arguments":{"dir":"."},"id":"c1","name":"ls","type":"toolCall"}]"#,
        r#"toolResult internal [{"functionResponse":{"id":"c1"}}]"#,
        r#"assistant internal "One file.""#,
    ]
}

/// Goal: both forms of a session come to the same events, and one brings nothing beside the other. Method: one session
/// as a file of lines, with a change of its header, and as one object.
#[test]
fn both_forms() {
    let set = r#"{"$set":{"lastUpdated":"2026-03-01T09:00:05.000Z"}}"#;
    let lines = format!("{{{HEAD}}}\n{USER}\n{set}\n{CALLED}\n{SAID}\n");
    let tree = MemoryTree::new([("g/chats/session-1.jsonl", lines)]);
    let world = World::new();
    let report = world.import(&tree, "g");
    assert_eq!(damages(&report), [""; 0]);
    let mut stream = world.stream("gemini:g1");
    assert_eq!(stream.remove(2), "x.gemini.set");
    assert_eq!(stream, told());
    let sessions = world.sessions();
    let row = sessions.row(&crate::id::StreamName::new("gemini:g1").unwrap()).unwrap();
    assert_eq!((row.turns, row.total_tokens), (3, 60 + 15 + 20 + 2));
    let document = format!("{{{HEAD},\n \"messages\": [{USER},\n{CALLED},{SAID}]\n}}\n");
    let tree = MemoryTree::new([("g/chats/session-1.json", document.as_str())]);
    assert_eq!(world.import(&tree, "g").totals().new, 0);
    let alone = World::new();
    assert_eq!(damages(&alone.import(&tree, "g")), [""; 0]);
    assert_eq!(alone.stream("gemini:g1"), told());
    let at = document.find("{\"id\":\"m2\"").unwrap();
    let data = alone.records().into_iter().find(|r| r.data.as_str().contains("Looking.")).unwrap();
    assert!(data.data.as_str().contains(&format!("\"offset\":{at},\"bytes\":{}", CALLED.len())));
}

/// Goal: a message that is told again with more in it is one message: what is new of it comes once. Method: a message
/// before its tool ran, and after.
#[test]
fn a_message_told_twice() {
    let before = CALLED.split(",\"toolCalls\"").next().unwrap().to_owned() + "}";
    let lines = format!("{{{HEAD}}}\n{before}\n{CALLED}\n");
    let world = World::new();
    let report = world.import(&MemoryTree::new([("g/session-1.jsonl", lines)]), "g");
    assert_eq!(damages(&report), [""; 0]);
    assert_eq!(
        world.stream("gemini:g1"),
        [
            "opened g1",
            r#"assistant internal "Looking.""#,
            r#"assistant internal [{"arguments":{"dir":"."},"id":"c1","name":"ls","type":"toolCall"}]"#,
            r#"toolResult internal [{"functionResponse":{"id":"c1"}}]"#,
        ]
    );
    let sessions = world.sessions();
    let row = sessions.row(&crate::id::StreamName::new("gemini:g1").unwrap()).unwrap();
    assert_eq!((row.turns, row.total_tokens), (1, 75));
}

/// Goal: a sub-agent is a child of the session in whose folder it lies. Method: both.
#[test]
fn sub_agents() {
    let child = HEAD.replace("g1", "g2").replace("main", "subagent");
    let tree = MemoryTree::new([
        ("g/chats/session-1.jsonl", format!("{{{HEAD}}}\n{USER}\n")),
        ("g/chats/g1/g2.jsonl", format!("{{{child}}}\n{USER}\n{SAID}\n")),
    ]);
    let world = World::new();
    assert_eq!(world.import(&tree, "g").totals().runs, 1);
    let key = "agent:gemini:subagent:g2";
    assert_eq!(world.stream(key)[1], r#"user inter_session [{"text":"List"}]"#);
    assert!(world.stream("gemini:g1").contains(&format!("spawn.accepted {key}")));
    assert_eq!(world.stream("run:g2")[1], "finished interrupted imported");
}

/// Goal: a file that breaks off gives what is whole of it, and says what is not. Method: an object cut at every byte
/// keeps every message that ends before the cut, and importing the whole afterwards adds the rest once.
#[test]
fn cut_anywhere() {
    let document = format!("{{{HEAD},\"messages\":[{USER},{SAID}]}}");
    let whole = World::new();
    whole.import(&MemoryTree::new([("g/session-1.json", document.as_str())]), "g");
    let first = document.find(USER).unwrap() + USER.len();
    for end in HEAD.len()..document.len() {
        let world = World::new();
        let report = world.import(&MemoryTree::new([("g/session-1.json", &document[..end])]), "g");
        let turns = u64::from(end >= first) + u64::from(end >= first + 1 + SAID.len());
        assert_eq!(report.totals().turns, turns, "{end}");
        assert!(report.sources[0].damage_count(DamageClass::TornTail) == 1, "{end}: {report:?}");
        world.import(&MemoryTree::new([("g/session-1.json", document.as_str())]), "g");
        assert_eq!(world.stream("gemini:g1"), whole.stream("gemini:g1"), "{end}");
    }
}
