//! Sinks with real processes, sockets and files.
#![expect(clippy::expect_used, reason = "a scene that cannot be set fails the test")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::{self, JoinHandle};

use annals_engine::config::{Config, Sources, load};
use annals_engine::session::run::Tried;
use annals_tools::run::Sinks;
use annals_tools::run::deliver::Sent;
use annals_tools::run::worker::{Carrier, Parcel};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;

fn config(folder: &Path, sinks: &str) -> Config {
    let file = folder.join("annals.json5");
    let text = format!("{{ sinks: {{ {sinks} }} }}");
    let sources = Sources { flags: &[], variable: &|_| None, file: Some((&file, &text)) };
    let (config, warnings) = load(&sources).expect("a configuration");
    assert_eq!(warnings, []);
    config
}

fn parcel(text: &str) -> Parcel {
    Parcel {
        attempt_id: "try-1".to_owned(),
        idempotency_key: "delivery:v1:telegram:42:run:7".to_owned(),
        run_id: Some("run".to_owned()),
        session_key: "telegram:42".to_owned(),
        channel: "telegram".to_owned(),
        to: Some("42".to_owned()),
        account_id: None,
        thread_id: Some("9".to_owned()),
        text: text.to_owned(),
        kind: "reply".to_owned(),
        turn_seq: Some(7),
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let done = runtime.block_on(future);
    runtime.shutdown_background();
    done
}

/// Sends through the sink of telegram.
fn send(folder: &Path, sinks: &str, text: &str) -> Sent {
    let sinks = Sinks::of(&config(folder, sinks)).expect("sinks");
    wait(sinks.for_channel("telegram").send(&parcel(text)))
}

fn told(sent: &Sent) -> String {
    match sent {
        Sent::Delivered => "delivered".to_owned(),
        Sent::Retry { reason, detail } => format!("retry {reason} {detail}"),
        Sent::Refused { reason, detail } => format!("refused {reason} {detail}"),
        Sent::Unknown { reason, detail } => format!("unknown {reason} {detail}"),
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A sink that runs a script of the shell.
fn script(text: &str) -> String {
    let script = serde_json::to_string(text).expect("JSON");
    format!(
        "telegram: {{ type: 'exec', command: '/bin/sh', args: ['-c', {script}], timeoutSeconds: 1 }}"
    )
}

/// Goal: a command gets the whole message as one line and says by its exit what became of it. Method: scripts with every
/// sort of end.
#[test]
fn a_command_says_what_became_of_it() {
    let home = folder();
    let run = |text: &str| told(&send(home.path(), &script(text), "hello\n\"wörld\""));
    assert_eq!(run("cat > got.json"), "delivered");
    let got = fs::read_to_string(home.path().join("got.json")).expect("what it got");
    assert_eq!(got.lines().count(), 1);
    let got: Value = serde_json::from_str(&got).expect("JSON");
    assert_eq!(got["text"], "hello\n\"wörld\"");
    assert_eq!(
        (&got["to"], &got["threadId"], &got["turnSeq"]),
        (&"42".into(), &"9".into(), &7.into())
    );
    assert_eq!(got["idempotencyKey"], "delivery:v1:telegram:42:run:7");
    assert!(got.get("accountId").is_none());
    assert_eq!(run("echo busy >&2; exit 75"), "retry try_again busy");
    assert_eq!(run("echo no such chat >&2; exit 3"), "refused exit 3 no such chat");
    assert_eq!(run("kill -9 $$"), "unknown signal ");
}

/// Goal: a command that reads nothing of a long message is judged by its exit all the same. Method: a megabyte.
#[test]
fn a_command_that_does_not_read() {
    let home = folder();
    let long = "x".repeat(1 << 20);
    assert_eq!(told(&send(home.path(), &script("exec 0<&-; exit 0"), &long)), "delivered");
}

/// Goal: a command that does not end in time is ended with all that it started, and nobody knows what became of the
/// message. Method: a shell that waits for another process; both are gone afterwards.
#[test]
fn a_command_that_does_not_end() {
    let home = folder();
    let sent = send(home.path(), &script("sleep 600 & echo $! > pid; wait"), "hi");
    assert_eq!(told(&sent), "unknown timeout no end after 1 s");
    let pid = fs::read_to_string(home.path().join("pid")).expect("a pid");
    // The signal is sent: when the system gets round to it is its own. Without it this would last ten minutes.
    let lives = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
        !matches!(state, None | Some('Z' | 'X'))
    };
    while lives() {
        std::thread::yield_now();
    }
}

/// Goal: something that a command left behind does not hold up the answer. Method: a process that keeps standard error
/// open.
#[test]
fn a_command_that_leaves_something_behind() {
    let home = folder();
    let sent = send(home.path(), &script("sleep 600 & echo $! > pid; echo no >&2; exit 4"), "hi");
    assert!(told(&sent).starts_with("refused exit 4"), "{sent:?}");
    let pid = fs::read_to_string(home.path().join("pid")).expect("a pid");
    #[expect(clippy::disallowed_methods, reason = "what was left behind is ended")]
    let ended = std::process::Command::new("kill").arg(pid.trim()).status().expect("kill");
    assert!(ended.success(), "it was alive");
}

/// Goal: a command that cannot be started certainly sent nothing; its variables come from the settings and are never
/// shown. Method: a program that is not there; a script that writes a variable.
#[test]
fn how_a_command_starts() {
    let home = folder();
    let sent = send(home.path(), "telegram: { type: 'exec', command: '/nowhere/to/be' }", "hi");
    assert!(told(&sent).starts_with("retry spawn_failed /nowhere/to/be"), "{sent:?}");
    let sinks = "telegram: { type: 'exec', command: '/bin/sh', args: ['-c', 'echo $KEY > key'], env: { KEY: 'hush' } }";
    assert_eq!(send(home.path(), sinks, "hi"), Sent::Delivered);
    assert_eq!(fs::read_to_string(home.path().join("key")).expect("a file"), "hush\n");
    let shown = format!("{:?}", Sinks::of(&config(home.path(), sinks)).expect("sinks"));
    assert!(!shown.contains("hush"), "{shown}");
}

/// What a server got.
struct Got {
    head: String,
    body: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        values.next().map_or("", |(_, value)| value)
    }
}

/// Reads one request.
fn request(stream: &mut TcpStream) -> Got {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).expect("a request");
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).expect("text");
        let got = Got { head, body: bytes[end + 4..].to_vec() };
        let length: usize = got.header("content-length").parse().expect("a length");
        if got.body.len() >= length {
            return got;
        }
    }
}

/// A server that gives these answers, one a request, and then goes.
fn server(answers: Vec<&'static str>) -> (String, JoinHandle<Vec<Got>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
    let served = thread::spawn(move || {
        let serve = |answer: &&str| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let got = request(&mut stream);
            stream.write_all(answer.as_bytes()).expect("answered");
            got
        };
        answers.iter().map(serve).collect()
    });
    (url, served)
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn http(url: &str) -> String {
    format!("telegram: {{ type: 'http', url: '{url}', secret: '{SECRET}', timeoutSeconds: 1 }}")
}

fn answer(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Goal: a post is signed so that any receiver of Standard Webhooks takes it, and its id is the same for each try. Method:
/// two tries, verified from the bytes that came in.
#[test]
fn posts_are_signed() {
    let home = folder();
    let answers = vec![
        "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy",
        "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
    ];
    let (url, served) = server(answers);
    assert_eq!(told(&send(home.path(), &http(&url), "hi")), "retry http_status 503 busy");
    assert_eq!(told(&send(home.path(), &http(&url), "hi")), "delivered");
    let got = served.join().expect("the server");
    let key = STANDARD.decode(&SECRET["whsec_".len()..]).expect("a key");
    for got in &got {
        let (id, time) = (got.header("webhook-id"), got.header("webhook-timestamp"));
        assert_eq!(id, "delivery:v1:telegram:42:run:7");
        let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(&key).expect("a key");
        mac.update(format!("{id}.{time}.").as_bytes());
        mac.update(&got.body);
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        assert_eq!(got.header("webhook-signature"), format!("v1,{signature}"));
        assert_eq!(got.header("content-type"), "application/json");
        let body: Value = serde_json::from_slice(&got.body).expect("JSON");
        assert_eq!((&body["text"], &body["channel"]), (&"hi".into(), &"telegram".into()));
    }
    assert!(got[0].head.starts_with("POST /hook HTTP/1.1"), "{}", got[0].head);
    let shown = format!("{:?}", Sinks::of(&config(home.path(), &http(&url))).expect("sinks"));
    assert!(!shown.contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "{shown}");
}

/// Goal: an answer's status says what became of a post, and a redirect is not followed. Method: one of each sort.
#[test]
fn statuses() {
    let home = folder();
    for (status, expect) in [
        ("200 OK", "delivered"),
        ("202 Accepted", "delivered"),
        ("408 Late", "retry http_status 408 why"),
        ("425 Early", "retry http_status 425 why"),
        ("429 Many", "retry http_status 429 why"),
        ("500 Oops", "retry http_status 500 why"),
        ("400 Bad", "refused http_status 400 why"),
        ("404 Gone", "refused http_status 404 why"),
        ("302 Found\r\nlocation: http://127.0.0.1:1/", "refused http_status 302 why"),
    ] {
        let (url, served) = server(vec![answer(status, "why").leak()]);
        assert_eq!(told(&send(home.path(), &http(&url), "hi")), expect, "{status}");
        assert_eq!(served.join().expect("the server").len(), 1);
    }
}

/// Goal: a post that certainly was not sent is tried again, and one that may have arrived is not. Method: nobody listens;
/// somebody who speaks no TLS; somebody who reads it and goes; somebody who reads it and says nothing.
#[test]
fn posts_without_an_answer() {
    let home = folder();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let sent =
        |scheme: &str| told(&send(home.path(), &http(&format!("{scheme}://{address}/")), "hi"));
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.write_all(b"this is no TLS\r\n\r\n").expect("written");
        drop(stream);
        let (mut stream, _) = listener.accept().expect("a connection");
        let read = request(&mut stream);
        drop(stream);
        let (mut stream, _) = listener.accept().expect("a connection");
        let silent = request(&mut stream);
        (listener, stream, read, silent)
    });
    assert!(sent("https").starts_with("retry not_connected"));
    assert!(sent("http").starts_with("unknown no_answer"));
    assert!(sent("http").starts_with("unknown timeout"));
    let (listener, stream, ..) = served.join().expect("the server");
    drop((listener, stream));
    assert!(sent("http").starts_with("retry not_connected"));
}

/// Goal: a file gets a line for each message, whole lines only, whatever a writer before left in it. Method: a file that is
/// new, one with a torn line, a folder that is not there.
#[test]
fn a_file_gets_lines() {
    let home = folder();
    let sinks = "telegram: { type: 'file', path: 'out.jsonl' }";
    let path = home.path().join("out.jsonl");
    assert_eq!(send(home.path(), sinks, "one"), Sent::Delivered);
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(b"{\"torn"))
        .expect("torn");
    assert_eq!(send(home.path(), sinks, "two\nlines"), Sent::Delivered);
    let text = fs::read_to_string(&path).expect("a file");
    let lines: Vec<&str> = text.lines().collect();
    let [one, torn, two] = lines[..] else { panic!("{text}") };
    assert_eq!(torn, "{\"torn");
    let said = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["text"].clone();
    assert_eq!((said(one), said(two)), ("one".into(), "two\nlines".into()));
    assert!(text.ends_with('\n'));
    let sent = send(home.path(), "telegram: { type: 'file', path: 'none/out.jsonl' }", "x");
    assert!(told(&sent).starts_with("retry file_unavailable"), "{sent:?}");
}

/// Goal: messages to one file from several sinks at once stay whole lines. Method: four threads, fifty messages each.
#[test]
fn writers_of_one_file_take_turns() {
    let home = folder();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let config = config(home.path(), "telegram: { type: 'file', path: 'out.jsonl' }");
                let sinks = Sinks::of(&config).expect("sinks");
                let sink = sinks.for_channel("telegram");
                wait(async {
                    for _ in 0..50 {
                        assert_eq!(
                            sink.send(&parcel(&"long ".repeat(2_000))).await,
                            Sent::Delivered
                        );
                    }
                });
            });
        }
    });
    let text = fs::read_to_string(home.path().join("out.jsonl")).expect("a file");
    assert_eq!(text.lines().count(), 200);
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

/// Goal: a channel has its own sink, else that of all others, else the log; and what the worker is told carries the reason.
/// Method: three channels, by any case; a try through the seam of the worker.
#[test]
fn which_sink() {
    let home = folder();
    let named = "Telegram: { type: 'log', threads: true }, '*': { type: 'exec', command: 'false' }";
    let sinks = Sinks::of(&config(home.path(), named)).expect("sinks");
    assert_eq!(sinks.for_channel("telegram").name(), "log");
    assert!(sinks.for_channel("TELEGRAM").threads && !sinks.for_channel("matrix").threads);
    assert_eq!(sinks.for_channel("matrix").name(), "exec");
    let other = Parcel { channel: "matrix".to_owned(), ..parcel("hi") };
    assert_eq!(wait(sinks.carry(other)), Tried::Refused("exit: 1".to_owned()));
    assert_eq!(wait(sinks.carry(parcel("hi"))), Tried::Delivered);
    let none = Sinks::of(&config(home.path(), "")).expect("sinks");
    assert_eq!(none.for_channel("telegram").name(), "log");
}

/// Goal: a sink that cannot be is told before anything is sent, by its setting, and without the secret. Method: one that
/// lacks each thing, and values that are none.
#[test]
fn sinks_that_cannot_be() {
    let home = folder();
    for (sinks, field) in [
        ("a: { url: 'http://x' }", "sinks.a.type"),
        ("a: { type: 'exec' }", "sinks.a.command"),
        ("a: { type: 'http' }", "sinks.a.url"),
        ("a: { type: 'file' }", "sinks.a.path"),
        ("a: { type: 'http', url: 'ftp://x/' }", "sinks.a.url"),
        ("a: { type: 'http', url: 'http://x/', secret: 'hush-hush' }", "sinks.a.secret"),
        ("'a.b': { type: 'exec', env: { 'c.type': 'x' } }", "sinks.a.b.command"),
    ] {
        let error = Sinks::of(&config(home.path(), sinks)).expect_err(sinks);
        assert_eq!(error.place().field.as_deref(), Some(field), "{error}");
        assert!(error.hint_text().is_some() && !format!("{error:?}").contains("hush-hush"));
    }
}
