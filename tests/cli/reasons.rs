//! Why something was not told, and why a reply did not come: each cause has its own word.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Child;

use serde_json::{Value, json};

use crate::support::{Home, Ran, append, fake_agent, fifo, write};

/// So often is looked for something that comes by itself.
const LOOKS: u32 = 2_000;

/// An address at which somebody answers so many requests with this status.
fn answering(status: &'static str, times: usize) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        for _ in 0..times {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut request = Vec::new();
            let mut buffer = [0; 4_096];
            // A message is one object, and its line ends with it.
            while !request.ends_with(b"}\n") {
                let count = stream.read(&mut buffer).expect("a request");
                assert!(count > 0, "the request broke off");
                request.extend_from_slice(&buffer[..count]);
            }
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops");
            stream.write_all(answer.as_bytes()).expect("answered");
        }
    });
    (address, server)
}

/// A home whose agents do these steps, with these sinks.
fn home(agents: &[(&str, &[&str])], sinks: &Value) -> Home {
    let home = Home::new();
    let of = |(id, steps): &(&str, &[&str])| json!({ "id": id, "run": { "command": fake_agent(), "args": steps } });
    let config =
        json!({ "agents": { "list": agents.iter().map(of).collect::<Vec<_>>() }, "sinks": sinks });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    home
}

/// Has everything done that can be done now.
fn work(home: &Home) {
    let ran = home.run(&["worker", "--until-idle"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

/// Stops a worker.
fn stop(worker: Child) {
    let pid = rustix::process::Pid::from_child(&worker);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("stopped");
    assert_eq!(Ran::end(worker).code, Some(143));
}

/// The announce of a run, once it is asked for.
fn announce(home: &Home, run: &str) -> Value {
    let shown = home.json(&["runs", "show", run, "--json"]);
    let outgoing = shown["outgoing"].as_array().expect("them");
    let found = outgoing.iter().find(|one| one["cargo"] == "announce");
    found.unwrap_or_else(|| panic!("no announce: {shown}")).clone()
}

/// A child of a session, and its end; gives its run.
fn child_of(home: &Home, requester: &str) -> String {
    let spawn = ["sessions", "spawn", "count", "--as", requester, "--no-worker", "--json"];
    let run = home.json(&spawn)["runId"].as_str().expect("a run").to_owned();
    work(home);
    run
}

/// Goal: what kept an announce from its channel is told by a word of its own: a policy, the want of a session or of a
/// channel, an address that fails. Method: one of each, the last with a worker that goes on trying.
#[test]
fn announces() {
    let (address, server) = answering("500 Internal Server Error", 1);
    let sinks = json!({ "mail": { "type": "http", "url": address }, "telegram": { "type": "exec", "command": "/bin/true" } });
    let home = home(&[("main", &["say=done"])], &sinks);
    for (channel, chat) in [("telegram", "7"), ("telegram", "8"), ("mail", "a")] {
        home.push(channel, chat, "hello");
    }
    home.ok(&["session", "patch", "telegram", "8", "sendPolicy=deny"]);
    let store = home.store();
    append(
        &store,
        "agent:main:main",
        "session.opened",
        "{'sessionId':'m','kind':'main','agentId':'main','channel':'internal','spawnDepth':0}",
    );
    let told = |requester: &str| {
        let announce = announce(&home, &child_of(&home, requester));
        (announce["state"].clone(), announce["reason"].clone())
    };
    assert_eq!(told("telegram:7"), ("delivered".into(), Value::Null));
    assert_eq!(told("telegram:8"), ("suppressed".into(), "policy (session)".into()));
    assert_eq!(told("agent:main:main"), ("failed".into(), "no_route".into()));
    let child = "agent:main:subagent:n";
    for (stream, kind, data) in [
        (
            "run:run-none",
            "run.requested",
            format!(
                "{{'runId':'run-none','sessionKey':'{child}','sessionId':'s','kind':'spawn','agentId':'main','requesterKey':'telegram:gone','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
            ),
        ),
        (
            "run:run-none",
            "run.finished",
            "{'runId':'run-none','status':'ok','runtimeMs':5}".to_owned(),
        ),
        (
            "telegram:gone",
            "announce.requested",
            format!(
                "{{'runId':'run-none','childKey':'{child}','target':{{'channel':'telegram','to':'9'}}}}"
            ),
        ),
    ] {
        append(&store, stream, kind, &data);
    }
    work(&home);
    let none = announce(&home, "run-none");
    assert_eq!((&none["state"], &none["reason"]), (&"failed".into(), &"no_session".into()));

    let spawn = ["sessions", "spawn", "count", "--as", "mail:a", "--no-worker", "--json"];
    let run = home.json(&spawn)["runId"].as_str().expect("a run").to_owned();
    let worker = home.command(&["worker"]).spawn().expect("it starts");
    server.join().expect("it was asked once");
    let waiting = (0..LOOKS).map(|_| announce(&home, &run)).find(|one| one["state"] == "deferred");
    let failing = waiting.expect("what came of the try is not there");
    stop(worker);
    let reason = failing["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("http_status: 500"), "{reason}");
    assert_eq!(failing["attempts"][0]["reason"], reason);
}

/// Goal: of tries that fail differently each keeps its cause. Method: two tries and the end, as a worker records them.
#[test]
fn tries_that_fail_differently() {
    let home = Home::new();
    home.push("telegram", "7", "hello");
    let store = home.store();
    let request = "{'runId':'run-1','sessionKey':'agent:main:subagent:c','sessionId':'s','kind':'spawn','agentId':'main','requesterKey':'telegram:7','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}";
    append(&store, "run:run-1", "run.requested", request);
    for (step, more) in [
        ("requested", ""),
        ("attempted", ",'attemptId':'a1','sink':'http'"),
        ("deferred", ",'attemptId':'a1','sink':'http','reason':'http_status: 500 oops'"),
        ("attempted", ",'attemptId':'a2','sink':'http'"),
        ("failed", ",'attemptId':'a2','sink':'http','reason':'not_connected: refused'"),
    ] {
        let data = format!("{{'runId':'run-1','childKey':'agent:main:subagent:c'{more}}}");
        append(&store, "telegram:7", &format!("announce.{step}"), &data);
    }
    let announce = announce(&home, "run-1");
    let reasons: Vec<&Value> =
        announce["attempts"].as_array().expect("two").iter().map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["http_status: 500 oops", "not_connected: refused"]);
    assert_eq!(announce["reason"], "not_connected: refused");
    let text = home.ok(&["runs", "show", "run-1"]);
    assert!(text.contains("a1 through http: http_status: 500 oops\n"), "{text}");
    assert!(text.contains("a2 through http: not_connected: refused\n"), "{text}");
}

/// Goal: who has sent in vain is told whether nobody works, another run stands in the way, or the model behind the target
/// fails, and of a failure what its program said last. Method: nobody at work; an agent that tells of its retries and
/// goes on; a second message behind it; one that fails.
#[test]
fn replies_that_do_not_come() {
    let home = Home::new();
    let waits = fifo(&home, "go");
    let retries = ["read", "err=overloaded_error 529, retry 3", &format!("wait={waits}"), "exit=9"];
    let of = |id: &str, steps: &[&str]| json!({ "id": id, "run": { "command": fake_agent(), "args": steps } });
    let agents = [of("main", &retries), of("bad", &["err=first", "err=model not found", "exit=3"])];
    let config = json!({ "agents": { "list": agents } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    home.push("telegram", "7", "hello");
    append(
        &home.store(),
        "chan:bad",
        "session.opened",
        "{'sessionId':'b','kind':'other','agentId':'bad','spawnDepth':0}",
    );
    let send = |to: &str, key: &str, more: &[&str]| {
        let args = ["sessions", "send", to, "well?", "--idempotency-key", key, "--json"];
        let ran = home.run(&[&args[..], more].concat());
        (ran.code, serde_json::from_str::<Value>(&ran.stdout).expect("JSON"))
    };
    let short = ["--timeout", "1", "--no-worker"];
    let (code, nobody) = send("telegram:7", "one", &short);
    assert_eq!((code, &nobody["status"]), (Some(4), &"timeout".into()), "{nobody}");
    assert_eq!(nobody["work"], json!({ "state": "requested" }));
    let worker = home.command(&["worker"]).spawn().expect("it starts");
    let came = (0..LOOKS).any(|_| {
        let said = home.json_lines(&["log", "--type", "run.output", "-o", "jsonl"]);
        said.iter().any(|event| event["data"]["text"].as_str().is_some_and(|t| t.contains("529")))
    });
    assert!(came, "what the agent said is not there");
    let (code, fails) = send("telegram:7", "one", &short);
    assert_eq!((code, &fails["status"]), (Some(4), &"timeout".into()), "{fails}");
    let sign = "overloaded_error 529, retry 3";
    assert_eq!(fails["work"], json!({ "state": "running", "lastSign": sign }));
    let (_, behind) = send("telegram:7", "two", &short);
    let work = json!({ "state": "requested", "waitsFor": fails["runId"], "lastSign": sign });
    assert_eq!(behind["work"], work, "{behind}");
    let (code, bad) = send("chan:bad", "three", &["--timeout", "60", "--no-worker"]);
    assert_eq!((code, &bad["status"], &bad["reason"]), (Some(1), &"error".into(), &"exit".into()));
    let error = bad["error"].as_str().expect("text");
    assert!(error.contains("exit code 3") && error.ends_with(": model not found"), "{error}");
    stop(worker);
}
