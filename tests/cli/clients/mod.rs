//! The session tools, called by clients of the Model Context Protocol that others wrote: each holds what it is told against
//! the protocol as it understands it.

mod claude;

use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

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

/// The server, as a client starts it, for one of the chats.
const SERVER: [&str; 4] = [env!("CARGO_BIN_EXE_annals"), "mcp", "--as", "cli:default"];

/// Goal: the official Python SDK can do with the server all that there is, in both eras. Method: a script calls every tool
/// well and wrongly, reads and watches resources, hears of progress and gives a call up.
#[test]
fn python() {
    let Some(python) = interpreter("python") else { return };
    for era in ERAS {
        let (home, pipe) = chats();
        let script = script("client.py");
        let args = [&["-B", "-W", "ignore", &script, era, &pipe], &SERVER[..]].concat();
        says_all_well(home.other(&python, &args));
    }
}

/// Goal: so can the official TypeScript SDK. Method: the same in another language.
#[test]
fn typescript() {
    let Some(node) = interpreter("node") else { return };
    let folder = std::env::var(FOLDER).expect("the folder");
    for era in ERAS {
        let (home, pipe) = chats();
        let script = script("client.mjs");
        let args = [&[&*script, &folder, era, &pipe], &SERVER[..]].concat();
        says_all_well(home.other(&node, &args));
    }
}

fn says_all_well(command: Command) {
    let ran = Ran::of(command);
    let said = (ran.code, ran.stdout.as_str(), ran.stderr.as_str());
    assert_eq!(said, (Some(0), "all well\n", ""), "{ran:#?}");
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
            let how = ["--format", "json", "--protocol-era", era];
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
