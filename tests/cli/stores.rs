//! The protocol of models over stores that are not as they should be: damaged, read-only, gone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::mcp::client::{Client, ERAS};
use crate::support::{Home, snapshot, write};

/// A home in which two chats speak, and the tools that read with what each of them answers there.
fn chats() -> Home {
    let home = Home::new();
    home.push("cli", "default", "hello");
    home.push("telegram", "42", "secret plans");
    home
}

const READS: [(&str, &str); 6] = [
    ("sessions_list", "{}"),
    ("sessions_history", r#"{"sessionKey":"telegram:42"}"#),
    ("sessions_search", r#"{"query":"plans"}"#),
    ("session_status", r#"{"sessionKey":"telegram:42"}"#),
    ("agents_list", "{}"),
    ("runs_wait", r#"{"runIds":["none"]}"#),
];

const WORKS: [(&str, &str); 2] = [
    ("sessions_send", r#"{"sessionKey":"telegram:42","message":"x","timeoutSeconds":0}"#),
    ("sessions_spawn", r#"{"task":"x"}"#),
];

fn call(client: &mut Client, (tool, arguments): (&str, &str)) -> (bool, Value) {
    let arguments: Value = serde_json::from_str(arguments).expect("JSON");
    client.call(tool, &arguments)
}

/// The server, as somebody starts it who wants to see everything.
fn loud(home: &Home) -> std::process::Command {
    let mut command = home.command(&["mcp"]);
    command.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "full");
    command
}

/// Goal: whatever is wrong with a store, what comes on standard output is the protocol, every request is answered, and the
/// end of the input is the end. Method: bits flipped, the middle cut out, a segment that is a folder, no file that says
/// what store it is, half a line at the end; every tool, in both eras.
#[test]
fn damaged() {
    type Harm = fn(&Path);
    let harms: [Harm; 5] = [
        |store| {
            let path = segment(store);
            let mut bytes = fs::read(&path).expect("bytes");
            bytes.iter_mut().step_by(97).for_each(|byte| *byte ^= 1);
            write(path, bytes);
        },
        |store| {
            let path = segment(store);
            let mut bytes = fs::read(&path).expect("bytes");
            let third = bytes.len() / 3;
            bytes.drain(third..2 * third);
            write(path, bytes);
        },
        |store| write(store.join("log/00000000000000000999.jsonl/x"), "x"),
        |store| write(store.join("log/00000000000000000500.jsonl"), [0; 4_096]),
        |store| {
            let mut bytes = fs::read(segment(store)).expect("bytes");
            bytes.extend(b"{\"torn");
            write(segment(store), bytes);
        },
    ];
    for (number, harm) in harms.iter().enumerate() {
        let home = chats();
        harm(&home.store());
        for era in ERAS {
            let mut client = Client::speaking(loud(&home), era);
            for tool in READS.into_iter().chain(WORKS) {
                let (_, answer) = call(&mut client, tool);
                assert!(answer.is_object(), "{number}: {tool:?}: {answer}");
            }
            assert_eq!(client.refused("tools/call", json!({ "name": "sing" }))["code"], -32602);
            assert!(call(&mut client, ("sessions_list", r#"{"limit":"x"}"#)).0);
            let ended = client.end();
            assert_eq!((ended.code, ended.rest), (Some(0), vec![]), "{number}: {}", ended.stderr);
        }
    }
    let home = chats();
    write(home.store().join("store.json"), "{");
    let ran = home.run(&["mcp"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(6), ""), "{ran:#?}");
    assert!(ran.stderr.contains("store.json"), "{ran:#?}");
}

fn segment(store: &Path) -> PathBuf {
    store.join("log/00000000000000000001.jsonl")
}

/// Goal: where nothing can be written every tool that reads answers as ever, and one that asks for work says why it cannot.
/// Method: permissions taken away; as somebody who stands above permissions there is nothing to be seen.
#[test]
fn read_only() {
    let home = chats();
    let before = snapshot(&home.store());
    permit(&home.store(), 0o500, 0o400);
    if fs::OpenOptions::new().append(true).open(segment(&home.store())).is_ok() {
        permit(&home.store(), 0o700, 0o600);
        println!("skipped: permissions are none for this user");
        return;
    }
    for era in ERAS {
        let mut client = Client::speaking(loud(&home), era);
        for tool in READS {
            let (failed, answer) = call(&mut client, tool);
            assert!(!failed, "{tool:?}: {answer}");
        }
        for tool in WORKS {
            let (failed, answer) = call(&mut client, tool);
            assert_eq!((failed, &answer["error"]["code"]), (true, &json!("read_only")), "{answer}");
            assert!(answer["error"]["hint"].is_string(), "{answer}");
        }
        let ended = client.end();
        assert_eq!((ended.code, ended.rest), (Some(0), vec![]), "{}", ended.stderr);
    }
    permit(&home.store(), 0o700, 0o600);
    assert!(snapshot(&home.store()) == before, "something was written");
}

/// Sets the permissions of a folder and of all in it.
fn permit(dir: &Path, folders: u32, files: u32) {
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    set(dir, 0o700);
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { permit(&path, folders, files) } else { set(&path, files) }
    }
    set(dir, folders);
}

/// Goal: a store whose folder is taken away while it is served is told to be gone, and is no empty store; back in its place
/// it is served as before. Method: the folder renamed, and back; nothing is made in its place.
#[test]
fn gone() {
    let home = chats();
    let aside = home.path().join("aside");
    for era in ERAS {
        let mut client = Client::speaking(loud(&home), era);
        assert_eq!(call(&mut client, READS[0]).1["total"], 2);
        rename(&home.store(), &aside);
        for tool in READS.into_iter().chain(WORKS) {
            let (failed, answer) = call(&mut client, tool);
            let told = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(failed && told.contains("not there any more"), "{tool:?}: {answer}");
        }
        assert!(client.refused("resources/list", json!({})).is_object());
        assert!(!home.store().exists(), "something was made in its place");
        rename(&aside, &home.store());
        assert_eq!(call(&mut client, READS[0]).1["total"], 2);
        let ended = client.end();
        assert_eq!((ended.code, ended.rest), (Some(0), vec![]), "{}", ended.stderr);
    }
}

#[expect(clippy::disallowed_methods, reason = "somebody moves the store")]
fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).expect("moved");
}
