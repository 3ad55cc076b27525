//! Sessions and sub-agents of Arka.

use super::*;

/// A chat's file with these turns and more members.
fn chat(turns: &[(&str, &str, &str)], more: &str) -> String {
    let turns: Vec<String> = turns
        .iter()
        .map(|(role, text, ts)| {
            format!("{{\"role\":\"{role}\",\"text\":\"{text}\",\"ts\":{ts},\"when\":\"then\"}}")
        })
        .collect();
    format!(
        "{{\"key\":\"telegram:42\",\"channel\":\"telegram\",\"chat_id\":\"42\",\"title\":\"Home\",\n\
         \"turns\":[{}],\"created\":1774929600.5,\"last_activity\":1774929700.0{more}}}",
        turns.join(",")
    )
}

fn tree(text: &str) -> MemoryTree {
    MemoryTree::new([("a/message-sessions/telegram_42.json", text)])
}

const ONE: (&str, &str, &str) = ("user", "one", "1774929601.25");
const TWO: (&str, &str, &str) = ("assistant", "two", "1774929602.5");
const THREE: (&str, &str, &str) = ("user", "three", "1774929603.0");

/// Goal: a chat goes on under its own key, with its times. Method: one of two turns.
#[test]
fn a_chat() {
    let world = World::new();
    let tree = tree(&chat(&[ONE, TWO], ""));
    let report = world.import(&tree, "a");
    assert_eq!(damages(&report), [""; 0]);
    assert_eq!(
        world.stream("telegram:42"),
        [
            "opened telegram:42",
            r#"user external "one""#,
            r#"assistant internal "two""#,
            r#"patched {"displayName":"Home"}"#,
        ]
    );
    let records = world.records();
    let one = records.iter().find(|r| r.data.as_str().contains("\"one\"")).unwrap();
    let data: Value = serde_json::from_str(one.data.as_str()).unwrap();
    assert_eq!(data["at"], "2026-03-31T04:00:01.250000Z");
    assert_eq!(data["source"]["rest"]["ts"].to_string(), "1774929601.25");
    assert_eq!(world.import(&tree, "a").totals().new, 0);
}

/// Goal: turns that were dropped from the front, and a reset that drops all, neither lose nor double what was imported
/// before. Method: a file that is written anew three times, also in another layout, with an import after each.
#[test]
fn written_anew() {
    let world = World::new();
    let import = |text: &str| world.import(&tree(text), "a");
    import(&chat(&[ONE, TWO], ""));
    import(&chat(&[TWO, THREE], ""));
    let reset = ",\"reset_reason\":\"idle\",\"reset_at\":1774930000.0";
    let four = ("user", "four", "1774930001.0");
    import(&chat(&[], reset));
    import(&chat(&[four], reset).replace(":[{", ": [\n  {").replace(",\"", ", \""));
    let said: Vec<String> = world
        .stream("telegram:42")
        .into_iter()
        .filter(|told| !told.starts_with("patched"))
        .collect();
    assert_eq!(
        said,
        [
            "opened telegram:42",
            r#"user external "one""#,
            r#"assistant internal "two""#,
            r#"user external "three""#,
            "reset telegram:42 > telegram:42@2026-03-31T04:06:40.000000Z",
            "opened telegram:42@2026-03-31T04:06:40.000000Z",
            r#"user external "four""#,
        ]
    );
}

/// Goal: turns that are alike in everything are counted. Method: one that stands twice, and both again after another
/// was dropped.
#[test]
fn equal_turns() {
    let world = World::new();
    world.import(&tree(&chat(&[TWO, ONE, ONE], "")), "a");
    world.import(&tree(&chat(&[ONE, ONE, THREE], "")), "a");
    let users = world.stream("telegram:42");
    let users: Vec<&String> = users.iter().filter(|told| told.starts_with("user")).collect();
    let one = r#"user external "one""#;
    assert_eq!(users, [one, one, r#"user external "three""#]);
}

/// Goal: sub-agents are children of their chats with runs that have ended and cannot be claimed, wherever their files
/// lie. Method: the chat imported first, then its sub-agents by themselves: one done, one failed, one at work, which is
/// done later.
#[test]
fn sub_agents() {
    let agent = |id: &str, status: &str, more: &str| {
        let text = format!(
            "{{\"id\":\"{id}\",\"task\":\"Dig\",\"status\":\"{status}\",\"session_channel\":\"telegram\",\
             \"session_chat_id\":\"42\",\"created\":1774929610.0,\"started\":1774929611.0{more}}}"
        );
        (format!("c/subagents/{id}.json"), text)
    };
    let world = World::new();
    world.import(&tree(&chat(&[ONE, TWO], "")), "a");
    let ended = ",\"finished\":1774929620.0,\"exit_code\":0,\"result\":\"Dug\"";
    let files = MemoryTree::new([
        agent("00000000aa", "done", ended),
        agent("00000000bb", "failed", ",\"finished\":1774929620.0,\"exit_code\":1,\"result\":null"),
        agent("00000000cc", "running", ",\"finished\":null,\"exit_code\":null,\"result\":null"),
    ]);
    let report = world.import(&files, "c");
    let counts = report.totals();
    assert_eq!((counts.sessions, counts.runs, counts.unresolved, counts.damages), (3, 3, 0, 0));
    let key = |id: &str| format!("agent:arka:subagent:{id}");
    assert_eq!(
        world.stream(&key("00000000aa")),
        ["opened 00000000aa", r#"user inter_session "Dig""#, r#"assistant internal "Dug""#]
    );
    for (id, end) in [
        ("00000000aa", "finished ok -"),
        ("00000000bb", "finished error -"),
        ("00000000cc", "finished interrupted imported"),
    ] {
        let requested = format!("requested {} of telegram:42", key(id));
        assert_eq!(world.stream(&format!("run:{id}")), [requested, end.to_owned()]);
        assert!(world.stream("telegram:42").contains(&format!("spawn.accepted {}", key(id))));
    }
    for record in world.records().iter().filter(|r| r.kind.as_str() == "run.requested") {
        assert!(record.data.as_str().contains("\"imported\":true"), "{}", record.data.as_str());
    }
    assert_eq!(world.import(&files, "c").totals().new, 0);
    world.import(&MemoryTree::new([agent("00000000cc", "done", ended)]), "c");
    assert_eq!(world.stream(&key("00000000cc")).last().unwrap(), r#"assistant internal "Dug""#);
    assert_eq!(world.stream("run:00000000cc").len(), 2, "what an import has decided stands");
}
