//! The session tools over the Model Context Protocol, spoken line by line: no client stands between a test and the server.

pub(crate) mod client;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use crate::support::{Home, Ran, append, configure_agents, snapshot, write};
use client::{Client, ERAS};

/// A server of this home, for the operator or for a session.
fn server(home: &Home, session: Option<&str>) -> Command {
    match session {
        Some(key) => home.command(&["mcp", "--as", key]),
        None => home.command(&["mcp"]),
    }
}

/// A home in which two chats speak.
fn chats() -> Home {
    let home = Home::new();
    home.push("cli", "default", "hello");
    home.push("telegram", "42", "secret plans");
    home
}

/// Goal: a client of every revision is served, one of an unknown revision is offered a known one, and all see the same
/// tools in the same order. Method: a connection of each; what the server says of itself.
#[test]
fn revisions() {
    let home = chats();
    let mut lists = Vec::new();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2026-07-28"),
    ] {
        let mut client = Client::start(server(&home, None));
        let hello = client.speak(asked);
        let me = match hello["protocolVersion"].as_str() {
            Some(version) => {
                assert_eq!(version, given, "{hello}");
                &hello["serverInfo"]
            }
            None => {
                let known = hello["supportedVersions"].as_array().unwrap();
                assert!(known.contains(&json!(given)), "{hello}");
                &hello["_meta"]["io.modelcontextprotocol/serverInfo"]
            }
        };
        assert_eq!(*me, json!({ "name": "annals", "version": env!("CARGO_PKG_VERSION") }));
        assert!(hello["instructions"].as_str().unwrap().contains("no failure"), "{hello}");
        lists.push(client.ok("tools/list", json!({}))["tools"].take());
        lists.push(client.ok("tools/list", json!({}))["tools"].take());
        let (failed, list) = client.call("sessions_list", &json!({}));
        assert_eq!((failed, &list["total"]), (false, &json!(2)));
        let ended = client.end();
        assert_eq!((ended.code, ended.stderr.as_str(), ended.rest), (Some(0), "", vec![]));
    }
    assert!(lists.iter().all(|list| *list == lists[0]));
    let cli = home.json(&["tools", "list", "--json"]);
    for (tool, same) in lists[0].as_array().unwrap().iter().zip(cli["tools"].as_array().unwrap()) {
        assert_eq!((&tool["name"], &tool["inputSchema"]), (&same["name"], &same["inputSchema"]));
        let reads = tool["annotations"]["readOnlyHint"] == true;
        let does = ["sessions_send", "sessions_spawn", "runs_cancel"];
        assert_eq!(reads, !does.iter().any(|name| tool["name"] == *name), "{tool}");
    }
    assert_eq!(lists[0].as_array().map(Vec::len), Some(9));
}

/// Goal: what fails in a tool is the tool's answer and says what would have been right; a tool that does not exist is an
/// error of the protocol; and the connection goes on. Method: wrong arguments of every sort, in both eras.
#[test]
fn wrong_calls() {
    let home = chats();
    for era in ERAS {
        let mut client = Client::speaking(server(&home, None), era);
        for (tool, arguments, code, words) in [
            ("sessions_list", json!({ "limit": "x" }), "invalid_input", "\"maximum\":200"),
            ("sessions_list", json!({ "kinds": ["boat"] }), "invalid_input", "main, group, cron"),
            ("sessions_list", json!({ "archived": "never" }), "invalid_input", "\"all\""),
            ("sessions_list", json!({ "nonsense": 1 }), "invalid_input", "activeMinutes"),
            ("sessions_history", json!({}), "invalid_input", "sessionKey (must be there)"),
            ("sessions_history", json!({ "sessionKey": "cli:gone" }), "not_found", "cli:gone"),
            (
                "sessions_search",
                json!({ "query": "x", "role": "bard" }),
                "invalid_input",
                "assistant",
            ),
            ("sessions_spawn", json!({ "task": 7 }), "invalid_input", "task is"),
            ("runs_wait", json!({ "runIds": [] }), "invalid_input", "1 to 32"),
            ("runs_cancel", json!({ "runId": "x" }), "not_found", "\"x\""),
        ] {
            let (failed, answer) = client.call(tool, &arguments);
            assert!(failed, "{tool}: {answer}");
            assert_eq!(answer["error"]["code"], code, "{tool}: {answer}");
            let told = format!("{} {}", answer["error"]["message"], answer["error"]["hint"]);
            assert!(told.replace("\\\"", "\"").contains(words), "{tool}: {words}: {told}");
        }
        let burnt = json!({ "task": "x", "cleanup": "burn" });
        let (failed, answer) = client.call("sessions_spawn", &burnt);
        assert_eq!((failed, &answer["status"]), (true, &json!("error")), "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("delete, keep"), "{answer}");
        let error = client.refused("tools/call", json!({ "name": "sessions_sing" }));
        assert_eq!(error["code"], -32602);
        let told = error["message"].as_str().unwrap();
        assert!(told.contains("sessions_list, sessions_history"), "{error}");
        let odd = json!({ "name": "sessions_list", "arguments": [1] });
        assert_eq!(client.refused("tools/call", odd)["code"], -32602);
        assert_eq!(client.refused("tools/sing", json!({}))["code"], -32601);
        assert_eq!(client.refused("tools/list", json!({ "cursor": "x" }))["code"], -32602);
        assert_eq!(client.refused("resources/list", json!({ "cursor": "x" }))["code"], -32602);
        assert_eq!(client.call("sessions_list", &json!({})).1["total"], 2);
        assert_eq!(client.end().code, Some(0));
    }
}

/// Goal: no line, whatever is in it, ends the server or makes it say anything but the protocol. Method: hostile lines before
/// the first request and after it, one of 17 MiB; after each a request that is answered.
#[test]
fn hostile_lines() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"sessions_list","arguments":{{"kinds":{deep}}}}}}}"#
    );
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(17 << 20));
    let lines: [&[u8]; 18] = [
        b"",
        b"hello",
        b"{",
        b"null",
        b"[]",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}]",
        b"\xff\xfe\x00\x01",
        b"\xef\xbb\xbf{}",
        b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"tools/list\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/list\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/list\"}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/sing\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":-1,\"message\":\"x\"}}",
        deep.as_bytes(),
        nested.as_bytes(),
        huge.as_bytes(),
    ];
    let home = chats();
    let before = snapshot(&home.store().join("log"));
    for era in ERAS {
        let mut first = Client::start(server(&home, None));
        for line in lines {
            first.line(line);
        }
        first.next_id(1_000);
        first.speak(era);
        for line in lines {
            first.line(line);
            let id = first.request("tools/list", json!({}));
            let tools = first.answer(id)["result"]["tools"].as_array().map(Vec::len);
            assert_eq!(
                tools,
                Some(9),
                "after {:?}",
                String::from_utf8_lossy(&line[..line.len().min(80)])
            );
        }
        let ended = first.end();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    }
    assert!(snapshot(&home.store().join("log")) == before, "the log has changed");
}

/// Goal: standard output carries the protocol alone, whatever there is to say: of a damaged store, of logs that somebody
/// turned on, of arguments that make no sense. Method: such starts; every line is held against the protocol.
#[test]
fn nothing_but_the_protocol() {
    let home = chats();
    let segment = home.store().join("log/00000000000000000001.jsonl");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(5).position(|window| window == b"hello").unwrap();
    bytes[at] ^= 1;
    bytes.extend(b"{\"torn");
    write(&segment, bytes);
    for era in ERAS {
        let mut command = server(&home, Some("telegram:42"));
        command.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "full");
        let mut client = Client::speaking(command, era);
        let (failed, history) =
            client.call("sessions_history", &json!({ "sessionKey": "telegram:42" }));
        assert_eq!((failed, &history["messages"][0]["content"]), (false, &"secret plans".into()));
        let ended = client.end();
        assert_eq!((ended.code, ended.rest), (Some(0), vec![]), "{}", ended.stderr);
    }
    for (args, code) in
        [(&["mcp", "--as", "cli:gone"][..], 3), (&["mcp", "nonsense"], 2), (&["mcp", "--as"], 2)]
    {
        let ran = home.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{ran:#?}");
        assert!(!ran.stderr.is_empty());
    }
    let nowhere = Home::new().run(&["mcp"]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (Some(3), ""), "{nowhere:#?}");
}

/// Goal: who is bound to a session is that session: it sees what the session sees, no argument changes it, and what it names
/// beyond is recorded. Method: the same call from two sessions, for oneself and for the other; the log.
#[test]
fn bound_to_a_session() {
    let home = chats();
    for (own, other) in [("cli:default", "telegram:42"), ("telegram:42", "cli:default")] {
        let mut client = Client::speaking(server(&home, Some(own)), ERAS[0]);
        let (_, list) = client.call("sessions_list", &json!({}));
        assert_eq!((&list["total"], &list["sessions"][0]["key"]), (&json!(1), &json!(own)));
        let (_, mine) = client.call("sessions_history", &json!({ "sessionKey": "current" }));
        assert_eq!(mine["sessionKey"], own);
        let (failed, answer) = client.call("sessions_history", &json!({ "sessionKey": other }));
        assert_eq!((failed, &answer["error"]["code"]), (true, &json!("not_found")));
        let (failed, _) = client.call("sessions_list", &json!({ "as": other }));
        assert!(failed);
        let listed = client.ok("resources/list", json!({}));
        assert_eq!(listed["resources"].as_array().map(Vec::len), Some(1), "{listed}");
        let uri = format!("session://{}", other.replace(':', "%3A"));
        assert_eq!(client.refused("resources/read", json!({ "uri": uri }))["code"], -32002);
        assert_eq!(client.refused("resources/subscribe", json!({ "uri": uri }))["code"], -32002);
        client.end();
        let denied =
            home.json_lines(&["log", "--session", own, "--type", "access.denied", "-o", "jsonl"]);
        assert_eq!(denied[0]["data"]["target"], other, "{denied:?}");
    }
    let mut inside = server(&home, Some("cli:default"));
    inside.env("ANNALS_TOKEN", "x");
    let ran = Ran::of(inside);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{ran:#?}");
}

/// Goal: a spawned child has no session tools unless the configuration gives it some: they are not listed, and a call is
/// refused and recorded. Method: a child under the defaults, and under a configuration that gives it one tool.
#[test]
fn children() {
    let home = chats();
    let opened =
        "'sessionId':'s1','kind':'other','agentId':'main','spawnDepth':1,'parentKey':'cli:default'";
    append(&home.store(), CHILD, "session.opened", &format!("{{{opened}}}"));
    let mut child = Client::speaking(server(&home, Some(CHILD)), ERAS[0]);
    assert_eq!(child.ok("tools/list", json!({}))["tools"], json!([]));
    assert_eq!(child.ok("resources/list", json!({}))["resources"], json!([]));
    let own = json!({ "uri": "session://current" });
    assert_eq!(child.refused("resources/read", own.clone())["code"], -32002);
    assert_eq!(child.refused("resources/subscribe", own.clone())["code"], -32002);
    let (failed, answer) = child.call("sessions_list", &json!({}));
    assert!(
        failed && answer["error"]["message"].as_str().unwrap().contains("forbidden"),
        "{answer}"
    );
    child.end();
    let denied =
        home.json_lines(&["log", "--session", CHILD, "--type", "access.denied", "-o", "jsonl"]);
    let verbs: Vec<_> = denied.iter().map(|e| (&e["data"]["verb"], &e["data"]["reason"])).collect();
    let refused = json!("tool_not_allowed");
    let history = json!("sessions_history");
    assert_eq!(
        verbs,
        [(&history, &refused), (&history, &refused), (&json!("sessions_list"), &refused)]
    );

    let config = r#"{tools: {subagents: {tools: {allow: ["sessions_history"]}}}}"#;
    write(home.path().join(".config/annals/annals.json5"), config);
    let mut child = Client::speaking(server(&home, Some(CHILD)), ERAS[1]);
    let tools = child.ok("tools/list", json!({}));
    assert_eq!(tools["tools"][0]["name"], "sessions_history");
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(1));
    assert!(!child.call("sessions_history", &json!({ "sessionKey": "current" })).0);
    assert!(child.call("sessions_send", &json!({ "sessionKey": "main", "message": "x" })).0);
    child.ok("resources/read", own);
    child.end();
}

const CHILD: &str = "agent:main:subagent:1";

/// Goal: sessions can be read as resources, by names that hold whatever keys hold; lists come in pages; what is not there is
/// an error. Method: 120 sessions, one with an odd key, walked and read; a name of each sort.
#[test]
fn resources() {
    let home = Home::new();
    let opened =
        |n: u32| format!("{{'sessionId':'s{n}','kind':'other','agentId':'main','spawnDepth':0}}");
    append(&home.store(), "x:a/b ?#%ü", "session.opened", &opened(0));
    for n in 1..120 {
        append(&home.store(), &format!("chat:{n}"), "session.opened", &opened(n));
    }
    for era in ERAS {
        let mut client = Client::speaking(server(&home, None), era);
        let templates = client.ok("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][1]["uriTemplate"], "run://{id}");
        let first = client.ok("resources/list", json!({}));
        let second = client.ok("resources/list", json!({ "cursor": first["nextCursor"] }));
        assert!(second["nextCursor"].is_null());
        let both = [&first, &second].map(|page| page["resources"].as_array().unwrap().clone());
        let mut uris: Vec<String> =
            both.concat().iter().map(|one| one["uri"].as_str().unwrap().to_owned()).collect();
        uris.sort();
        uris.dedup();
        assert_eq!(uris.len(), 120);
        let odd = uris.iter().find(|uri| uri.starts_with("session://x")).unwrap();
        assert_eq!(odd, "session://x%3Aa%2Fb%20%3F%23%25%C3%BC");
        let read = client.ok("resources/read", json!({ "uri": odd }));
        assert_eq!(read["contents"][0]["mimeType"], "application/json");
        let page: serde_json::Value =
            serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(page["sessionKey"], "x:a/b ?#%ü");
        let absent = if era == ERAS[0] { -32002 } else { -32602 };
        for uri in
            ["session://chat%3A999", "run://nothing", "file:///etc/passwd", "session://%FF", ""]
        {
            let error = client.refused("resources/read", json!({ "uri": uri }));
            assert_eq!(error["code"], absent, "{uri}: {error}");
        }
        client.end();
    }
}

/// Goal: who subscribes to a session hears that it has changed, whoever changed it, and hears nothing of other sessions; who
/// wants to hear of the list hears of a new session. Method: another process pushes to the one, then to the other, then to a
/// new chat; in both eras.
#[test]
fn updates() {
    let home = chats();
    let uri = "session://telegram%3A42";

    let mut client = Client::speaking(server(&home, None), ERAS[0]);
    client.ok("resources/subscribe", json!({ "uri": uri }));
    home.push("cli", "default", "not of interest");
    home.push("telegram", "42", "one");
    assert_eq!(client.hear()["params"], json!({ "uri": uri }));
    client.ok("resources/unsubscribe", json!({ "uri": uri }));
    home.push("telegram", "42", "two");
    home.push("matrix", "new", "three");
    assert_eq!(client.hear()["method"], "notifications/resources/list_changed");
    client.end();

    let mut client = Client::speaking(server(&home, None), ERAS[1]);
    let wanted = json!({ "resourceSubscriptions": [uri, "session://chat%3Agone"], "resourcesListChanged": true });
    let id = client.request("subscriptions/listen", json!({ "notifications": wanted }));
    let accepted = client.hear();
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged", "{accepted}");
    home.push("telegram", "42", "one");
    assert_eq!(client.hear()["params"]["uri"], uri);
    home.push("matrix", "newer", "four");
    let mut told = client.hear();
    while told["params"]["uri"] == uri {
        told = client.hear();
    }
    assert_eq!(told["method"], "notifications/resources/list_changed", "{told}");
    client.notify("notifications/cancelled", &json!({ "requestId": id }));
    home.push("telegram", "42", "five");
    assert_eq!(client.call("sessions_list", &json!({ "limit": 1 })).1["total"], 4);
    let ended = client.end();
    assert_eq!((ended.code, ended.rest), (Some(0), vec![]));
}

/// A home with a chat of an agent that works until somebody has written to a pipe and closed it.
fn at_work() -> (Home, PathBuf) {
    let home = Home::new();
    let pipe = home.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let wait = format!("wait={}", pipe.display());
    configure_agents(&home, &[("main", &["read", &wait, "say=done"])]);
    home.ok(&["config", "set", "tools.sessions.visibility", "agent"]);
    home.push("cli", "default", "hello");
    home.push("telegram", "42", "hello");
    // One run and no more: another would wait at the pipe for ever.
    home.ok(&["config", "set", "session.agentToAgent.maxPingPongTurns", "0"]);
    home.ok(&["session", "patch", "telegram", "42", "sendPolicy=deny"]);
    (home, pipe)
}

/// Waits until the agent is at work; it ends when what this gives is dropped.
fn agent_at(pipe: &Path) -> File {
    OpenOptions::new().write(true).open(pipe).expect("the agent")
}

/// Goal: a call that lasts tells of progress to who asked for it, ends when it is given up, and is then never answered; the
/// run goes on, and its reply can be had. Method: a send to an agent at work, in both eras.
#[test]
fn given_up() {
    for era in ERAS {
        let (home, pipe) = at_work();
        let mut client = Client::speaking(server(&home, Some("cli:default")), era);
        let args = json!({ "sessionKey": "telegram:42", "message": "go", "timeoutSeconds": 60, "idempotencyKey": "k" });
        let send = json!({ "name": "sessions_send", "arguments": args, "_meta": { "progressToken": "p" } });
        let id = client.request("tools/call", send);
        let told = client.hear();
        assert_eq!(told["method"], "notifications/progress", "{told}");
        assert_eq!(told["params"]["progressToken"], "p");
        let agent = agent_at(&pipe);
        client.notify("notifications/cancelled", &json!({ "requestId": id, "reason": "enough" }));
        assert_eq!(client.call("agents_list", &json!({})).1["requester"], "main");
        drop(agent);
        let again = json!({ "sessionKey": "telegram:42", "message": "go", "idempotencyKey": "k" });
        let (failed, answer) = client.call("sessions_send", &again);
        assert_eq!(
            (failed, &answer["status"], &answer["reply"]),
            (false, &json!("ok"), &json!("done"))
        );
        let ended = client.end();
        assert!(ended.rest.iter().all(|message| message["id"] != id), "{ended:?}");
    }
}

/// Goal: at the end of its input the server ends at once, and who waited is told that the message is delivered. Method: a
/// send to an agent at work that would wait for an hour.
#[test]
fn end_of_input_while_waiting() {
    let (home, pipe) = at_work();
    let mut client = Client::speaking(server(&home, Some("cli:default")), ERAS[0]);
    let args = json!({ "sessionKey": "telegram:42", "message": "go", "timeoutSeconds": 3600 });
    let id = client.request("tools/call", json!({ "name": "sessions_send", "arguments": args }));
    let agent = agent_at(&pipe);
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answer = ended.rest.iter().find(|message| message["id"] == id).unwrap();
    let answer = &answer["result"]["structuredContent"];
    assert_eq!((&answer["status"], &answer["delivered"]), (&json!("timeout"), &json!(true)));
    drop(agent);
    let run = answer["runId"].as_str().unwrap();
    let waited = json!({ "runIds": [run], "timeoutSeconds": 60 }).to_string();
    assert_eq!(home.json(&["tools", "call", "runs_wait", &waited])["runs"][0]["status"], "ok");
}

/// Goal: what was asked before the end of the input is answered, and nothing is waited for that cannot come. Method: a
/// request to listen, a call that waits and tells of progress, and the end at once behind both.
#[test]
fn end_of_input_at_once() {
    let (home, pipe) = at_work();
    let mut client = Client::speaking(server(&home, Some("cli:default")), ERAS[1]);
    let sent = json!({ "sessionKey": "telegram:42", "message": "go", "timeoutSeconds": 0 });
    let run = client.call("sessions_send", &sent).1["runId"].take();
    let agent = agent_at(&pipe);
    let wait = json!({ "name": "runs_wait", "arguments": { "runIds": [run], "timeoutSeconds": 60 },
        "_meta": { "progressToken": "p" } });
    let waits = client.request("tools/call", wait);
    let wanted = json!({ "notifications": { "resourcesListChanged": true } });
    let listens = client.request("subscriptions/listen", wanted);
    let ended = client.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let result = |id: u64| ended.rest.iter().find(|m| m["id"] == id).map(|m| &m["result"]);
    let waited = &result(waits).unwrap()["structuredContent"]["runs"][0]["status"];
    assert!(["running", "timeout"].iter().any(|status| waited == status), "{ended:?}");
    assert!(result(listens).unwrap().is_object(), "{ended:?}");
    drop(agent);
}
