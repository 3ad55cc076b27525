//! The session tools, called by clients of the Model Context Protocol that others wrote: each holds what it is told against
//! the protocol as it understands it.

mod claude;

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::http::wire::{OWNER, Server};
use crate::mcp::client::ERAS;
use crate::support::{Home, Ran, fake_agent, fifo, write};

/// The variable that names a folder with the clients: `bin/python` has the Python SDK, and `bin/node` runs what is in
/// `node_modules`. `.ci/run` makes such a folder.
const FOLDER: &str = "ANNALS_MCP_CLIENTS";

/// An interpreter of the clients; `None`, said on standard error, where it is absent.
fn interpreter(name: &str) -> Option<String> {
    let found = std::env::var_os(FOLDER).map(|folder| Path::new(&folder).join("bin").join(name));
    match found {
        Some(path) if path.is_file() => Some(path.to_str().expect("UTF-8").to_owned()),
        _ => {
            skipped(name, FOLDER);
            None
        }
    }
}

/// Says that what is tried with a program is not.
fn skipped(name: &str, folder: &str) {
    // Not by a macro: what those write is not shown of a test that passes.
    let said = format!("skipped: no {name} in the folder that {folder} names\n");
    std::io::stderr().write_all(said.as_bytes()).expect("standard error");
}

/// A home with two chats, an agent that says "done" and one that waits at a pipe, whose path comes with it.
fn chats() -> (Home, String) {
    let home = Home::new();
    let pipe = fifo(&home, "pipe");
    let run = |steps: &[&str]| json!({ "command": fake_agent(), "args": steps, "cwd": home.path(), "timeouts": { "killGrace": 1 } });
    let config = json!({
        "tools": { "sessions": { "visibility": "all" } },
        "session": { "agentToAgent": { "maxPingPongTurns": 0 } },
        "http": { "tokens": { "chat": { "token": TOKEN, "session": "cli:default" } } },
        "agents": { "list": [
            { "id": "main", "subagents": { "allowAgents": ["*"] }, "run": run(&["read", "say=done"]) },
            { "id": "slow", "run": run(&["read", &format!("wait={pipe}"), "say=done"]) },
        ] },
    });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    home.push("cli", "default", "hello");
    home.push("telegram", "42", "secret plans");
    (home, pipe)
}

/// A script of this folder.
fn script(name: &str) -> String {
    format!("{}/../tests/cli/clients/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Tries a script on a home with two chats, with the program that a client starts and with the server that it
/// reaches, in both eras.
fn tried(script: &str, interpreter: &str, first: &[&str]) {
    let script = self::script(script);
    for era in ERAS {
        for over_http in [false, true] {
            let (home, pipe) = chats();
            let served = over_http.then(|| Server::of(&home, &[]));
            let url = served.as_ref().map(|served| format!("http://{}/mcp", served.address));
            let server = match &url {
                Some(url) => vec![SERVER[0], url, TOKEN],
                None => SERVER.to_vec(),
            };
            let args = [first, &[&script, era, &pipe], &server].concat();
            let ran = Ran::of(home.other(interpreter, &args));
            let said = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
            assert_eq!(said, (Some(0), "all well\n", ""), "{era}, HTTP {over_http}: {ran:#?}");
        }
    }
}

/// The token of a chat.
const TOKEN: &str = "chat-token-0123456789";

/// The server, as a client starts it, for one of the chats.
const SERVER: [&str; 4] = [env!("CARGO_BIN_EXE_annals"), "mcp", "--as", "cli:default"];

/// Goal: the official Python SDK can do with the server all that there is, in both eras. Method: a script calls every tool
/// well and wrongly, reads and watches resources, hears of progress and gives a call up.
#[test]
fn python() {
    let Some(python) = interpreter("python") else { return };
    tried("client.py", &python, &["-B", "-W", "ignore"]);
}

/// Goal: so can the official TypeScript SDK. Method: the same in another language.
#[test]
fn typescript() {
    let Some(node) = interpreter("node") else { return };
    tried("client.mjs", &node, &[]);
}

/// Goal: the Inspector, which people look at servers with, shows this one, and its strict rules for schemas, by which it
/// tells which models would stumble, find nothing. Method: its command line, in both eras.
#[test]
fn inspector() {
    let Some(node) = interpreter("node") else { return };
    let folder = std::env::var(FOLDER).expect("the folder");
    let program = format!("{folder}/node_modules/.bin/mcp-inspector");
    for era in ["legacy", "modern"] {
        let (home, _) = chats();
        let ask = |args: &[&str]| {
            let how = ["--format", "json", "--protocol-era", era, "--connect-timeout", "0"];
            let args = [&[&*program, "--cli"], &SERVER[..], args, &how[..]].concat();
            let ran = Ran::of(home.other(&node, &args));
            assert!(ran.code == Some(5) || ran.stderr.is_empty(), "{args:?}: {ran:#?}");
            let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
            (ran.code, answer["result"].clone())
        };
        let (code, tools) = ask(&["--method", "tools/list", "--strict"]);
        assert_eq!((code, tools["tools"].as_array().map(Vec::len)), (Some(0), Some(9)), "{tools}");
        let call = ["--method", "tools/call", "--tool-name", "sessions_list", "--tool-args-json"];
        let (code, list) = ask(&[&call[..], &[r#"{"limit":1}"#]].concat());
        assert_eq!((code, &list["structuredContent"]["total"]), (Some(0), &json!(2)), "{list}");
        let (code, odd) = ask(&[&call[..], &[r#"{"kinds":["boat"]}"#]].concat());
        assert_eq!((code, &odd["isError"]), (Some(5), &json!(true)), "{odd}");
        assert!(odd["content"][0]["text"].as_str().expect("text").contains("group"), "{odd}");
        let (code, list) = ask(&["--method", "resources/list"]);
        assert_eq!((code, list["resources"].as_array().map(Vec::len)), (Some(0), Some(2)));
        let uri = list["resources"][0]["uri"].as_str().expect("a name");
        let (code, read) = ask(&["--method", "resources/read", "--uri", uri]);
        assert_eq!((code, &read["contents"][0]["uri"]), (Some(0), &json!(uri)), "{read}");
    }
}

/// What of the conformance suite is about any server: the rest calls tools, prompts and resources of a server that is made
/// for it, or asks for what we do not claim to have.
const SCENARIOS: [&str; 6] = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

/// Goal: the conformance suite of the protocol finds no fault with the server. Method: the scenarios that are about any
/// server, over HTTP; each checks something, and nothing of it fails.
#[test]
fn conformance() {
    let Some(node) = interpreter("node") else { return };
    let (home, _) = chats();
    let server = Server::of(&home, &[]);
    let url = format!("http://{}/mcp", server.address);
    let script = script("conformance.mjs");
    let args = [&[&*script, &url, OWNER][..], &SCENARIOS].concat();
    let ran = Ran::of(home.other(&node, &args));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    for scenario in SCENARIOS {
        let checks = ran.stdout.lines().filter_map(|line| line.strip_prefix(scenario));
        let (good, bad): (Vec<_>, Vec<_>) = checks.partition(|check| check.ends_with(": SUCCESS"));
        assert!(!good.is_empty() && bad.is_empty(), "{scenario}: {}", ran.stdout);
    }
}
