//! The server: real sockets, and a client that says every byte itself.

mod events;
mod mcp;
mod webhook;
pub(crate) mod wire;

use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::support::{Home, configure_agents, kinds, write};
use wire::{Answer, OWNER, Server};

const GUEST: &str = "guest-token-0123456789";

/// A home with two chats, and agents with these steps; the first chat has a token of its own.
fn chats(agents: &[(&str, &[&str])]) -> Home {
    let home = Home::new();
    configure_agents(&home, agents);
    let path = home.path().join(".config/annals/annals.json5");
    let text = std::fs::read_to_string(&path).expect("the configuration");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    let tokens = json!({ "guest": { "token": GUEST, "session": "telegram:42" },
        "nobody": { "token": "nobody-token-0123456789", "session": "telegram:4" } });
    config["http"] = json!({ "tokens": tokens, "maxBodyBytes": 4096 });
    write(path, config.to_string());
    home.push("cli", "default", "the owner's plans");
    home.push("telegram", "42", "hello");
    home
}

/// Goal: nobody comes in but who addresses this host, from no other site's page, with a token that is somebody's; and every
/// refusal says what was wrong. Method: requests with every header right but one.
#[test]
fn who_comes_in() {
    let home = chats(&[("main", &["echo"])]);
    let server = Server::of(&home, &[]);
    let host = format!("Host: {}", server.address);
    let token = format!("Authorization: Bearer {OWNER}");
    let say = |headers: &[&str]| {
        let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
        server.say("GET /v1/sessions", &headers, b"")
    };
    let port = server.address.port();
    for own in [
        vec![host.clone(), token.clone()],
        vec![format!("Host: localhost:{port}"), token.clone()],
        vec![format!("Host: [::1]:{port}"), format!("authorization: bEARER  {OWNER}")],
        vec![host.clone(), token.clone(), format!("Origin: http://localhost:{port}")],
    ] {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        assert_eq!(say(&own).ok()["total"], 2, "{own:?}");
    }
    for (headers, status, field) in [
        (vec!["Host: evil.example", &token], 421, "Host"),
        (vec!["Host: localhost.evil.example", &token], 421, "Host"),
        (vec!["Host: 127.0.0.2", &token], 421, "Host"),
        (vec!["Host: a@b@c", &token], 421, "Host"),
        (vec![&host, "Host: evil.example", &token], 421, "Host"),
        (vec![&token], 421, "Host"),
        (vec![&host, &token, "Origin: http://evil.example"], 403, "Origin"),
        (vec![&host, &token, "Origin: null"], 403, "Origin"),
        (
            vec![&host, &token, "Origin: http://localhost", "Origin: http://evil.example"],
            403,
            "Origin",
        ),
        (vec![&host], 401, "Authorization"),
        (vec![&host, &token, &token], 401, "Authorization"),
        (vec![&host, "Authorization: Basic b3duZXI6"], 401, "Authorization"),
        (vec![&host, "Authorization: Bearer "], 401, "Authorization"),
        (vec![&host, "Authorization: Bearer owner-token-0123456788"], 401, "token"),
        (vec![&host, "Authorization: Bearer nobody-token-0123456789"], 401, ""),
    ] {
        let answer = say(&headers);
        let error = answer.refused(status, "refused");
        assert_eq!(error["field"].as_str().unwrap_or_default(), field, "{headers:?}: {error}");
        let challenge = answer.header("www-authenticate").is_some();
        assert_eq!(challenge, status == 401, "{answer:?}");
        assert!(!answer.body.contains("plans"), "{answer:?}");
    }
    for (path, headers, status) in [
        ("/livez", vec![host.clone()], 200),
        ("/readyz", vec![host.clone()], 200),
        ("/livez", vec!["Host: evil.example".to_owned()], 421),
        ("/mcp", vec![host.clone()], 401),
        ("/nowhere", vec![host.clone()], 401),
        ("/nowhere", vec![host.clone(), token.clone()], 404),
    ] {
        assert_eq!(server.say(&format!("GET {path}"), &headers, b"").status, status, "{path}");
    }
    // What addresses another host in the request's line is refused too.
    let whole = server.say("GET http://evil.example/v1/sessions", &[host, token], b"");
    whole.refused(421, "refused");
    let ended = server.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(143), ""));
}

/// Goal: a token says who calls, and the tools answer over HTTP what they answer elsewhere. Method: all that the two routes
/// of sessions and the tools say to the owner and to a session's token, beside the command line.
#[test]
fn callers_and_tools() {
    let home = chats(&[("main", &["echo"])]);
    let server = Server::of(&home, &["--no-worker"]);
    let all = server.json("/v1/sessions?limit=10&kinds=other,main");
    let told = home.json(&["tools", "call", "sessions_list", r#"{"limit":10}"#, "--json"]);
    assert_eq!(
        (&all["total"], &all["sessions"][0]["key"]),
        (&told["total"], &json!("telegram:42"))
    );
    let guest = server.call("sessions_list", GUEST, &json!({})).ok();
    assert_eq!((&guest["total"], &guest["sessions"][0]["key"]), (&json!(1), &json!("telegram:42")));
    let history = server.json("/v1/sessions/cli%3Adefault/history?limit=1");
    assert_eq!(history["messages"][0]["content"], "the owner's plans");
    let history = "/v1/sessions/cli%3Adefault/history";
    server.ask("GET", history, GUEST, "").refused(404, "not_found");
    let found = server.call("sessions_search", OWNER, &json!({ "query": "plans" })).ok();
    assert_eq!(found["results"][0]["key"], "cli:default");
    let tools = server.json("/v1/tools");
    let listed = home.json(&["tools", "list", "--json"]);
    let named = |list: &Value| -> Vec<(Value, Value)> {
        let tools = list["tools"].as_array().unwrap().iter();
        tools.map(|tool| (tool["name"].clone(), tool["inputSchema"].clone())).collect()
    };
    assert_eq!(named(&tools), named(&listed));
    let no_body = server.ask("POST", "/v1/tools/agents_list", OWNER, "");
    assert_eq!(no_body.ok()["agents"][0]["id"], "main");

    let big = format!("{{\"query\":\"{}\"}}", "x".repeat(5_000));
    for (what, body, status, code) in [
        ("GET /v1/sessions?limit=many", "", 400, "invalid_input"),
        ("GET /v1/sessions?nonsense=1", "", 400, "invalid_input"),
        ("GET /v1/sessions/cli%3Adefault/history?sessionKey=x", "", 400, "invalid_input"),
        ("GET /v1/sessions/no%3Aone/history", "", 404, "not_found"),
        ("GET /v1/sessions/%ff%fe/history", "", 400, "invalid_input"),
        ("POST /v1/tools/sessions_sing", "{}", 404, "not_found"),
        ("POST /v1/tools/sessions_list", "[]", 400, "invalid_input"),
        ("POST /v1/tools/sessions_list", "{", 400, "invalid_input"),
        ("POST /v1/tools/sessions_search", &big, 413, "too_large"),
        ("DELETE /v1/sessions", "", 405, "invalid_input"),
        ("GET /v1/tools/sessions_list", "", 405, "invalid_input"),
        ("GET /v1/webhook", "", 405, "invalid_input"),
    ] {
        let (method, path) = what.split_once(' ').unwrap();
        let error = server.ask(method, path, OWNER, body).refused(status, code);
        assert!(!error["message"].as_str().unwrap().is_empty(), "{what}: {error}");
    }
    assert_eq!(server.end().code, Some(143));
}

/// Goal: runs that were asked for over HTTP are made here, their agents reach the server with a token of their own that
/// ends with the run, and children have no tools. Method: an agent that asks the server who it may see and gives away
/// its token, as the agent of a chat and as a child.
#[test]
fn runs_have_tokens_of_their_own() {
    let ask = "http=/v1/tools/sessions_list";
    let home = chats(&[("main", &["read", ask, "env=ANNALS_TOKEN"])]);
    let server = Server::of(&home, &[]);
    let send = json!({ "sessionKey": "telegram:42", "message": "who do you see?" });
    let sent = server.call("sessions_send", OWNER, &send).ok();
    assert_eq!(sent["status"], "ok", "{sent}");
    let reply = sent["reply"].as_str().unwrap();
    let (list, token) = reply.trim().rsplit_once('\n').unwrap();
    let list: Value = serde_json::from_str(list).unwrap();
    assert_eq!((&list["total"], &list["sessions"][0]["key"]), (&json!(1), &json!("telegram:42")));
    let error = server.call("sessions_list", token, &json!({})).refused(401, "refused");
    assert!(error["message"].as_str().unwrap().contains("no caller has"), "{error}");

    let spawn = json!({ "task": "look around" });
    let spawned = server.call("sessions_spawn", OWNER, &spawn).ok();
    assert_eq!(spawned["status"], "accepted", "{spawned}");
    let run = json!({ "runIds": [spawned["runId"]], "timeoutSeconds": 30 });
    let waited = server.call("runs_wait", OWNER, &run).ok();
    let said = waited["runs"][0]["reply"].as_str().unwrap_or_else(|| panic!("{waited}"));
    let refused: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert_eq!(refused["error"]["code"], "refused", "{refused}");
    assert_eq!(server.end().code, Some(143));
    assert!(kinds(&home).iter().any(|kind| kind == "access.denied"));
}

/// Goal: a server that is told to stop answers who waits, ends its runs as interrupted, and says nothing of it. Method:
/// a call that waits for an agent that never ends, and a signal when the agent is at work.
#[test]
fn a_stop_answers_who_waits() {
    let home = chats(&[("main", &["say=begun", "forever"])]);
    let server = Server::of(&home, &[]);
    let send = json!({ "sessionKey": "telegram:42", "message": "x", "timeoutSeconds": 0 });
    let sent = server.call("sessions_send", OWNER, &send).ok();
    assert_eq!(sent["status"], "accepted", "{sent}");
    let body = json!({ "runIds": [sent["runId"]], "timeoutSeconds": 60 }).to_string();
    let head = [format!("Host: {}", server.address), format!("Authorization: Bearer {OWNER}")];
    let mut waits = server.begin("POST /v1/tools/runs_wait", &head, body.as_bytes());
    let log = home.command(&["tail", "-f", "--json", "--type", "run.output"]);
    first_line(log);
    let mut bytes = Vec::new();
    server.signal();
    std::io::Read::read_to_end(&mut waits, &mut bytes).unwrap();
    let answer = Answer::read(&bytes).ok();
    assert!(answer["runs"][0]["status"].is_string(), "{answer}");
    let ended = server.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(143), ""));
    let show = home.json(&["runs", "show", sent["runId"].as_str().unwrap(), "--json"]);
    assert_eq!(show["run"]["state"], "interrupted", "{show}");
}

/// Goal: ready is a store that takes appends. Method: its append lock held by somebody else.
#[test]
fn not_ready() {
    let home = chats(&[("main", &["echo"])]);
    let server = Server::of(&home, &["--no-worker", "--no-watch"]);
    let is_ready = || while server.get("/readyz").status != 200 {};
    is_ready();
    let lock = std::fs::File::open(home.store().join("lock.append")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let answer = server.get("/readyz");
    answer.refused(503, "busy");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(!answer.body.contains(home.path().to_str().unwrap()), "{answer:?}");
    // However many ask, one alone waits for the lock, and whoever reads is served.
    let host = [format!("Host: {}", server.address)];
    let probes: Vec<_> = (0..40).map(|_| server.begin("GET /readyz", &host, b"")).collect();
    assert_eq!(server.get("/livez").status, 200);
    assert_eq!(server.json("/v1/sessions")["total"], 2);
    drop((probes, lock));
    is_ready();
}

/// Goal: settings under which the server cannot be are told before anything begins. Method: tokens that are too short,
/// equal, missing; an address that is no address, and one that is taken.
#[test]
fn what_cannot_be_served() {
    let home = Home::new();
    let path = home.path().join(".config/annals/annals.json5");
    let same = "0123456789abcdef";
    for (http, field) in [
        (json!({ "token": "short" }), "http.token"),
        (json!({ "token": "münchen-münchen-münchen" }), "http.token"),
        (json!({ "tokens": { "a": { "token": "has a space inside" } } }), "http.tokens.a.token"),
        (json!({ "tokens": { "a": { "session": "cli:default" } } }), "http.tokens.a.token"),
        (json!({ "tokens": { "a": { "token": same } } }), "http.tokens.a.session"),
        (json!({ "tokens": { "a": { "token": same, "session": "" } } }), "http.tokens.a.session"),
        (json!({ "allowedHosts": ["example.org:80"] }), "http.allowedHosts"),
        (
            json!({ "token": same, "tokens": { "a": { "token": same, "session": "main" } } }),
            "http.tokens.a.token",
        ),
    ] {
        write(&path, json!({ "http": http }).to_string());
        let told = home.fails(&["serve"], 2, "invalid_input");
        assert!(told["error"]["message"].as_str().unwrap().contains(field), "{told}");
        assert!(!told.to_string().contains(same), "{told}");
    }
    write(&path, "{}");
    home.fails(&["serve", "--listen", "nowhere"], 1, "io");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|at| (taken, at.to_string())).unwrap();
    let told = home.fails(&["serve", "--listen", &taken.1], 1, "io");
    assert!(told["error"]["hint"].as_str().unwrap().contains("--listen"), "{told}");
}

/// Waits for the first line of a program, and ends it.
fn first_line(mut command: std::process::Command) {
    use std::io::BufRead;
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.as_mut().expect("its output and a line"))
        .read_line(&mut line)
        .expect("its output and a line");
    child.kill().expect("killed");
    child.wait().expect("its end");
    assert!(!line.is_empty());
}
