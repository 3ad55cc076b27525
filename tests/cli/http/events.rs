//! The log over HTTP, as it comes.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::wire::{OWNER, Server};
use super::{GUEST, chats};
use crate::support::{Home, lines_of, snapshot, write};

/// A stream that is being read.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn of(server: &Server, path: &str, more: &[String]) -> Self {
        let head = [format!("Host: {}", server.address), format!("Authorization: Bearer {OWNER}")];
        let headers = [&head, more].concat();
        Self(BufReader::new(server.begin(&format!("GET {path}"), &headers, b"")))
    }

    /// The next line that begins so, without that beginning.
    fn line(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("the stream") > 0, "the stream has ended");
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim_end().to_owned();
            }
        }
    }

    fn object(&mut self, beginning: &str) -> Value {
        serde_json::from_str(&self.line(beginning)).expect("JSON")
    }
}

fn text(event: &Value) -> &str {
    event["data"]["content"].as_str().unwrap_or_default()
}

/// What `tail` says of all events.
fn tail(home: &Home) -> Vec<Value> {
    lines_of(&home.ok(&["tail", "-n", "1000", "--json"]))
}

/// Goal: a reader hears what is appended by other processes, goes on after the last event that it has seen, and hears what
/// `tail` prints. Method: server-sent events from the beginning and from an id on, and lines, while turns are pushed.
#[test]
fn followed_and_gone_on_with() {
    let home = chats(&[("main", &["echo"])]);
    let server = Server::of(&home, &["--no-worker", "--no-watch"]);
    let mut now = Stream::of(&server, "/v1/events?type=turn", &[]);
    assert!(now.line("HTTP/1.1 ").starts_with("200"));
    assert_eq!(now.line("content-type: "), "text/event-stream");
    // An empty line ends the head: from here on it is followed.
    now.line("\r");
    home.push("telegram", "42", "a later word");
    assert_eq!(text(&now.object("data: ")), "a later word");

    let known = tail(&home);
    let mut all = Stream::of(&server, "/v1/events?after=0", &[]);
    let mut last = String::new();
    for event in &known {
        last = all.line("id: ");
        assert_eq!((&all.object("data: "), &json!(last)), (event, &event["cursor"]));
    }
    home.push("cli", "default", "one more");
    let from = format!("Last-Event-ID: {last}");
    for mut more in [
        Stream::of(&server, "/v1/events?after=0&type=turn", std::slice::from_ref(&from)),
        Stream::of(&server, &format!("/v1/events?after={last}&type=turn"), &[]),
    ] {
        assert_eq!(text(&more.object("data: ")), "one more");
    }
    let lines = ["Accept: application/x-ndjson".to_owned()];
    let mut lines =
        Stream::of(&server, "/v1/events?after=0&session=tele*,cli:default&type=turn", &lines);
    assert_eq!(lines.line("content-type: "), "application/x-ndjson");
    let known: Vec<Value> = tail(&home).into_iter().filter(|e| e["type"] == "turn").collect();
    assert_eq!(known.len(), 4);
    for event in known {
        let line = format!("{{\"seq\"{}", lines.line("{\"seq\""));
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), event);
    }
    // Streams are no reason to stay.
    let ended = server.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(143), ""));
}

/// Goal: whoever asks now and then gets everything once, as CloudEvents, a batch at a time. Method: batches until one is
/// empty, beside what `export` writes.
#[test]
fn batches() {
    let home = chats(&[("main", &["echo"])]);
    for turn in 0..5 {
        home.push("telegram", "42", &format!("turn {turn}"));
    }
    let server = Server::of(&home, &["--no-worker", "--no-watch"]);
    let head = [
        format!("Host: {}", server.address),
        format!("Authorization: Bearer {OWNER}"),
        "Accept: application/cloudevents-batch+json".to_owned(),
    ];
    let mut after = "0".to_owned();
    let mut all: Vec<Value> = Vec::new();
    loop {
        let path = format!("GET /v1/events?session=telegram:42&limit=2&after={after}");
        let answer = server.say(&path, &head, b"");
        let events = answer.ok();
        assert_eq!(answer.header("content-type"), Some("application/cloudevents-batch+json"));
        after = answer.header("annals-cursor").expect("a cursor").to_owned();
        let count = events.as_array().expect("an array").len();
        assert!(count <= 2, "{events}");
        if count == 0 {
            break;
        }
        all.extend(events.as_array().expect("an array").clone());
    }
    assert_eq!(all, home.json_lines(&["export", "telegram:42"]));
    home.push("telegram", "42", "later");
    let later = server.say(&format!("GET /v1/events?after={after}&type=turn"), &head, b"").ok();
    assert_eq!((later.as_array().map(Vec::len), text(&later[0])), (Some(1), "later"));
}

/// Goal: secrets are masked unless the owner wants them, damage is told where it is, and nobody else reads the log. Method:
/// a turn with a key; a line of the log with another byte in it; a session's token; queries and cursors that cannot be.
#[test]
fn what_is_told_and_to_whom() {
    let home = chats(&[("main", &["echo"])]);
    home.push("telegram", "42", "my key is AKIAIOSFODNN7EXAMPLE");
    home.push("telegram", "42", "the last word");
    let server = Server::of(&home, &["--no-worker", "--no-watch"]);
    for (query, shown) in [("", false), ("&mask=true", false), ("&mask=false", true)] {
        let path = format!("/v1/events?after=0&type=turn&session=telegram:42{query}");
        let mut stream = Stream::of(&server, &path, &[]);
        stream.line("data: ");
        assert_eq!(stream.line("data: ").contains("AKIAIOSFODNN7EXAMPLE"), shown, "{query}");
    }
    server.ask("GET", "/v1/events", GUEST, "").refused(403, "refused");
    let head = [format!("Host: {}", server.address), format!("Authorization: Bearer {OWNER}")];
    let image =
        server.say("GET /v1/events", &[&head[..], &["Accept: image/png".to_owned()]].concat(), b"");
    image.refused(406, "invalid_input");
    for (query, status, code) in [
        ("nonsense=1", 400, "invalid_input"),
        ("after=12", 400, "invalid_input"),
        ("mask=maybe", 400, "invalid_input"),
        ("limit=0", 400, "invalid_input"),
        ("after=1.00000000.00000000000000000000000000000000", 410, "history_changed"),
    ] {
        server.get(&format!("/v1/events?{query}")).refused(status, code);
    }
    server.end();

    let (path, mut log) = snapshot(&home.store().join("log"))
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|e| e == "jsonl"))
        .expect("a segment");
    let at = log.windows(4).position(|w| w == b"AKIA").expect("the key");
    log[at] = b'B';
    write(path, log);
    let server = Server::of(&home, &["--no-worker", "--no-watch"]);
    let mut stream = Stream::of(&server, "/v1/events?after=0", &[]);
    assert_eq!(stream.line("event: "), "gap");
    let gap = stream.object("data: ");
    assert!(gap["gap"]["fromSeq"].is_u64(), "{gap}");
    loop {
        let event = stream.object("data: ");
        if text(&event) == "the last word" {
            break;
        }
    }
}
