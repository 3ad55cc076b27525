//! The tools of agents, called from a shell: what their arguments may be, and what their answers hold.

use serde_json::Value;

use crate::support::{Home, Ran, append, configure_agents, write};

/// Goal: arguments that do not fit are told in words of arguments, with what would fit, and not in those of the program.
/// Method: values of each sort in the place of others, whole and inside.
#[test]
fn arguments_that_do_not_fit() {
    let home = Home::new();
    home.push("cli", "a", "one");
    for (tool, args, told) in [
        ("sessions_list", "[]", "the arguments are a list, not an object"),
        ("sessions_history", "[\"cli:a\"]", "the arguments are a list, not an object"),
        ("sessions_list", "\"x\"", "the arguments are the text \"x\", not an object"),
        ("agents_list", "7", "the arguments are 7, not an object"),
        ("sessions_list", "{\"kinds\":\"main\"}", "kinds is the text \"main\""),
        ("sessions_list", "{\"kinds\":[[]]}", "kinds[0] is a list"),
        ("sessions_list", "{\"limit\":-1}", "limit is -1"),
        ("sessions_list", "{\"limit\":1.5}", "limit is 1.5"),
        ("sessions_spawn", "{\"task\":{}}", "task is an object"),
        ("sessions_spawn", "{\"task\":\"x\",\"attachAs\":[\"y\"]}", "attachAs is a list"),
        (
            "sessions_spawn",
            "{\"task\":\"x\",\"attachments\":[[\"a\",\"b\",\"utf8\",\"text/plain\"]]}",
            "attachments[0] is a list",
        ),
        (
            "sessions_spawn",
            "{\"task\":\"x\",\"attachments\":[\"y\"]}",
            "attachments[0] is the text \"y\"",
        ),
    ] {
        let answer = home.fails(&["tools", "call", tool, args], 2, "invalid_input");
        let message = answer["error"]["message"].as_str().expect("text");
        assert!(message.contains(told), "{args}: {message}");
        for word in ["struct", "expected", "usize", "u64", "sequence", "invalid type"] {
            assert!(!message.contains(word), "{args}: {word}: {message}");
        }
        assert!(answer["error"]["hint"].is_string(), "{args}: {answer}");
    }
    assert_eq!(home.json(&["tools", "call", "sessions_list", "null"])["total"], 1);
}

/// Goal: who looks again is told how runs ended, also of those that were asked for before the first look, and of no runs of
/// others. Method: a run on each of two sessions, a look, both ends.
#[test]
fn ends_since_the_last_look() {
    let home = Home::new();
    home.push("cli", "a", "one");
    home.push("cli", "b", "two");
    let store = home.store();
    for (run, key) in [("run-a", "cli:a"), ("run-b", "cli:b")] {
        let request = format!(
            "{{'runId':'{run}','sessionKey':'{key}','sessionId':'s','kind':'ask','agentId':'main','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
        );
        append(&store, &format!("run:{run}"), "run.requested", &request);
    }
    let look = |more: &str| {
        let args = format!("{{\"sessionKey\":\"cli:a\"{more}}}");
        home.json(&["tools", "call", "session_status", &args])
    };
    let first = look("");
    assert_eq!(first["openRuns"][0]["runId"], "run-a");
    for run in ["run-b", "run-a"] {
        let end = format!("{{'runId':'{run}','status':'ok','runtimeMs':5}}");
        append(&store, &format!("run:{run}"), "run.finished", &end);
    }
    let since = format!(",\"changesSince\":{}", first["cursor"]);
    let again = look(&since);
    assert_eq!(again["openRuns"], Value::Array(Vec::new()));
    let changes = again["changes"].as_array().expect("changes");
    let told: Vec<(&str, &str)> = changes
        .iter()
        .map(|c| (c["type"].as_str().expect("text"), c["summary"].as_str().expect("text")))
        .collect();
    assert_eq!(told, [("run.finished", "run run-a ok")], "{again}");
}

/// Goal: to say nothing is a mistake of the call, whatever verb it is said by. Method: each verb that takes a text, with
/// none, with blanks, and with nothing on its standard input.
#[test]
fn nothing_said() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["say=hi"])]);
    home.push("cli", "a", "one");
    let turns = |home: &Home| home.json_lines(&["export", "--type", "turn"]).len();
    let before = turns(&home);
    // A turn that is only recorded may be blank, as what is imported may.
    for (verb, texts) in [
        (&["sessions", "send", "cli:a"][..], &["", " \n", "-"][..]),
        (&["sessions", "spawn"], &["", " \n", "-"]),
        (&["subagent", "spawn"], &["", " \n", "-"]),
        (&["ask"], &["", "-"]),
        (&["session", "push", "cli", "a", "user"], &["", "-"]),
    ] {
        for text in texts {
            let ran: Ran = home.run(&[verb, &[*text][..]].concat());
            assert_eq!(
                (ran.code, ran.stdout.as_str()),
                (Some(2), ""),
                "{verb:?} {text:?}: {ran:#?}"
            );
            assert!(ran.stderr.starts_with("error: "), "{ran:#?}");
        }
    }
    assert_eq!(turns(&home), before);
}

/// Goal: a search finds each session in which something was said, however many there are, and says where and when. Method: a
/// thousand sessions that are imported, of which ten say the word.
#[test]
fn a_search_over_a_thousand_sessions() {
    let home = Home::new();
    let mut lines = String::new();
    for number in 0..1_000 {
        let word = if number % 100 == 7 { "ontology" } else { "weather" };
        let head = format!(
            "{{\"annals\":1,\"session\":\"telegram:{number}\",\"time\":\"2026-05-01T10:00:00.000000Z\","
        );
        let id = format!("01a22db0-c305-7523-9d32-{number:012x}");
        lines += &format!(
            "{head}\"type\":\"session.opened\",\"id\":\"{id}\",\"sessionId\":\"s{number}\",\"kind\":\"other\",\"agentId\":\"main\",\"channel\":\"telegram\",\"chatId\":\"{number}\",\"spawnDepth\":0}}\n"
        );
        let id = format!("01a22db0-c305-7524-9d32-{number:012x}");
        lines += &format!(
            "{head}\"type\":\"turn\",\"id\":\"{id}\",\"sessionId\":\"s{number}\",\"role\":\"user\",\"from\":\"external\",\"content\":\"about the {word} of {number}\"}}\n"
        );
    }
    let file = home.path().join("all.jsonl");
    write(&file, lines);
    home.ok(&["import", &file.display().to_string()]);
    let found = home.json(&["tools", "call", "sessions_search", "{\"query\":\"Ontology\"}"]);
    let results = found["results"].as_array().expect("results");
    assert_eq!((results.len(), &found["truncated"]), (10, &false.into()), "{found}");
    for hit in results {
        let key = hit["key"].as_str().expect("a key");
        let number = key.strip_prefix("telegram:").expect("a chat");
        assert_eq!(hit["snippet"], format!("about the ontology of {number}"));
        assert_eq!((&hit["time"], hit["seq"].is_u64()), (&1_777_629_600_000_u64.into(), true));
    }
    assert_eq!(home.json(&["sessions", "list", "--json"])["total"], 1_000);
}
