//! The session tools, called by clients of the Model Context Protocol that others wrote: each holds what it is told against
//! the protocol as it understands it.

use std::io::Write;
use std::path::Path;

use serde_json::json;

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
            // Not by a macro: what those write is not shown of a test that passes.
            let said = format!("skipped: no {name} in the folder that {FOLDER} names\n");
            std::io::stderr().write_all(said.as_bytes()).expect("standard error");
            None
        }
    }
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

/// Goal: the official Python SDK can do with the server all that there is, in both eras. Method: a script calls every tool
/// well and wrongly, reads and watches resources, hears of progress and gives a call up.
#[test]
fn python() {
    let Some(python) = interpreter("python") else { return };
    for era in ERAS {
        let (home, pipe) = chats();
        let server = [env!("CARGO_BIN_EXE_annals"), "mcp", "--as", "cli:default"];
        let ran = Ran::of(home.other(
            &python,
            &[&["-B", "-W", "ignore", &script("client.py"), era, &pipe], &server[..]].concat(),
        ));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "all well\n"), "{era}: {ran:#?}");
        assert_eq!(ran.stderr, "", "{era}");
    }
}
