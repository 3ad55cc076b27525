//! The Model Context Protocol over HTTP, message by message.

use std::net::TcpStream;

use serde_json::{Value, json};

use super::wire::{Answer, OWNER, Server};
use super::{GUEST, chats, first_line};

/// Posts one message.
fn post(server: &Server, token: &str, more: &[String], message: &Value) -> Answer {
    let mut bytes = Vec::new();
    let mut stream = begin(server, token, more, message);
    std::io::Read::read_to_end(&mut stream, &mut bytes).expect("an answer");
    Answer::read(&bytes)
}

/// The same, and does not wait for the answer.
fn begin(server: &Server, token: &str, more: &[String], message: &Value) -> TcpStream {
    let mut headers = vec![
        format!("Host: {}", server.address),
        format!("Authorization: Bearer {token}"),
        "Content-Type: application/json".to_owned(),
        "Accept: application/json, text/event-stream".to_owned(),
    ];
    headers.extend_from_slice(more);
    server.begin("POST /mcp", &headers, message.to_string().as_bytes())
}

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } })
}

fn list(id: u64) -> Value {
    let params = json!({ "name": "sessions_list", "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// A session of the way with a handshake, as the header that names it.
fn session(server: &Server, token: &str) -> String {
    let answer = post(server, token, &[], &hello());
    assert_eq!(answer.status, 200, "{answer:?}");
    let id = answer.header("mcp-session-id").expect("a session");
    let header = format!("Mcp-Session-Id: {id}");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let answer = post(server, token, std::slice::from_ref(&header), &ready);
    assert_eq!(answer.status, 202, "{answer:?}");
    header
}

/// The number of sessions that a list holds.
fn total(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer =
        answer.events().pop().unwrap_or_else(|| serde_json::from_str(&answer.body).expect("JSON"));
    answer["result"]["structuredContent"]["total"].clone()
}

/// Goal: both ways of the protocol work over HTTP, and each caller sees what its token lets it see. Method: a list of each
/// caller in each way.
#[test]
fn both_ways() {
    let home = chats(&[("main", &["echo"])]);
    let server = Server::of(&home, &["--no-worker"]);
    for (token, sees) in [(OWNER, 2), (GUEST, 1)] {
        let header = session(&server, token);
        assert_eq!(total(&post(&server, token, &[header], &list(2))), sees);

        let answer = post(&server, token, &modern_headers("sessions_list"), &modern_list(3));
        assert_eq!(answer.header("mcp-session-id"), None);
        assert_eq!(total(&answer), sees);
    }
}

/// Goal: a session belongs to who began it, and a server that was started anew says that it does not know it. Method: its
/// id with another token, to each method; after its end; and after a restart.
#[test]
fn sessions_belong_to_their_callers() {
    let home = chats(&[("main", &["echo"])]);
    let server = Server::of(&home, &["--no-worker"]);
    let header = session(&server, OWNER);
    let stolen = post(&server, GUEST, std::slice::from_ref(&header), &list(2));
    assert_eq!(stolen.status, 404, "{stolen:?}");
    let headers = |token: &str| {
        [
            format!("Host: {}", server.address),
            format!("Authorization: Bearer {token}"),
            "Accept: text/event-stream".to_owned(),
            header.clone(),
        ]
    };
    // What is not there is ended already, whoever asks.
    for (what, status) in [("GET /mcp", 404), ("DELETE /mcp", 204)] {
        let stolen = server.say(what, &headers(GUEST), b"");
        assert_eq!(stolen.status, status, "{what}: {stolen:?}");
    }
    assert_eq!(total(&post(&server, OWNER, std::slice::from_ref(&header), &list(3))), 2);
    let ended = server.say("DELETE /mcp", &headers(OWNER), b"");
    assert_eq!((ended.status, ended.body.as_str()), (204, ""));
    assert_eq!(post(&server, OWNER, std::slice::from_ref(&header), &list(3)).status, 404);
    let header = session(&server, OWNER);
    server.end();
    let server = Server::of(&home, &["--no-worker"]);
    let unknown = post(&server, OWNER, &[header], &list(4));
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let big = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(5_000) });
    assert_eq!(post(&server, OWNER, &[], &big).status, 413);
}

/// Goal: a server that is told to stop answers who waits over the protocol, in both ways. Method: calls that wait for an
/// agent that never ends, and a signal when the agent is at work.
#[test]
fn a_stop_answers_who_waits() {
    let home = chats(&[("main", &["say=begun", "forever"])]);
    let server = Server::of(&home, &[]);
    let send = json!({ "sessionKey": "telegram:42", "message": "x", "timeoutSeconds": 0 });
    let run = server.call("sessions_send", OWNER, &send).ok()["runId"].clone();
    first_line(home.command(&["tail", "-f", "--json", "--type", "run.output"]));
    let params =
        json!({ "name": "runs_wait", "arguments": { "runIds": [run], "timeoutSeconds": 60 } });
    let mut call = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    let header = session(&server, OWNER);
    let legacy = begin(&server, OWNER, &[header], &call);
    call["params"]["_meta"] = meta();
    let modern = begin(&server, OWNER, &modern_headers("runs_wait"), &call);
    // Both wait when a third call that came after them is answered.
    assert_eq!(total(&post(&server, OWNER, &modern_headers("sessions_list"), &modern_list(10))), 2);
    server.signal();
    for mut waits in [legacy, modern] {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut waits, &mut bytes).unwrap();
        let answer = Answer::read(&bytes);
        let said =
            answer.events().pop().unwrap_or_else(|| serde_json::from_str(&answer.body).unwrap());
        let runs = &said["result"]["structuredContent"]["runs"];
        assert!(runs[0]["status"].is_string(), "{answer:?}");
    }
    assert_eq!(server.end().code, Some(143));
}

/// What every request says of itself in the way without a handshake.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} })
}

fn modern_headers(tool: &str) -> [String; 3] {
    [
        "MCP-Protocol-Version: 2026-07-28".to_owned(),
        "Mcp-Method: tools/call".to_owned(),
        format!("Mcp-Name: {tool}"),
    ]
}

fn modern_list(id: u64) -> Value {
    let mut message = list(id);
    message["params"]["_meta"] = meta();
    message
}
