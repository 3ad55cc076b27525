//! `session push` from many processes at once, and after one that died.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{Home, Ran, remove};

/// Goal: pushes of several processes to one session are all there, each once, with versions that have no gap. Method:
/// eight processes chains of 25 pushes, all to one chat.
#[test]
fn eight_processes_push_without_a_gap() {
    const PROCESSES: usize = 8;
    const PUSHES: usize = 25;
    let home = Home::new();
    std::thread::scope(|scope| {
        for process in 0..PROCESSES {
            let home = &home;
            scope.spawn(move || {
                for push in 0..PUSHES {
                    home.push("telegram", "7", &format!("{process}/{push}"));
                }
            });
        }
    });
    let turns = home.json_lines(&["export", "telegram:7", "--type", "turn"]);
    let mut said: Vec<&str> =
        turns.iter().map(|turn| turn["data"]["content"].as_str().expect("text")).collect();
    assert_eq!(said.len(), PROCESSES * PUSHES);
    for process in 0..PROCESSES {
        let own: Vec<usize> = said
            .iter()
            .filter_map(|text| text.strip_prefix(&format!("{process}/"))?.parse().ok())
            .collect();
        assert_eq!(own, (0..PUSHES).collect::<Vec<_>>(), "process {process} in its own order");
    }
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), PROCESSES * PUSHES, "each once");
    let all = home.json_lines(&["export", "telegram:7"]);
    let versions: Vec<String> =
        all.iter().map(|e| e["streamversion"].as_str().expect("text").to_owned()).collect();
    let expect: Vec<String> = (1..=PROCESSES * PUSHES + 1).map(|v| v.to_string()).collect();
    assert_eq!(versions, expect, "the opening and every turn, contiguous");
    assert_eq!(home.json(&["verify", "--json"])["ok"], true);
}

/// Goal: every process that pushes at the same moment gets its own turn. Method: start twenty at once and only then
/// wait for any.
#[test]
fn a_crowd_at_once() {
    let home = Home::new();
    let children: Vec<Child> = (0..20)
        .map(|n| {
            let text = format!("turn {n}");
            let args = ["session", "push", "cli", "default", "user", &text, "--json"];
            home.command(&args).spawn().expect("the program starts")
        })
        .collect();
    let mut seqs = Vec::new();
    for child in children {
        let ran = Ran::end(child);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        seqs.push(answer["seq"].as_u64().expect("a position"));
    }
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), 20);
    assert_eq!(home.json_lines(&["log", "-o", "jsonl", "--type", "turn"]).len(), 20);
}

/// Goal: a lock is gone with the process that held it, however that died; meanwhile readers read, and who waits says
/// for whom. Method: another program takes the append lock and is killed once a push has said that it waits.
#[test]
fn a_killed_lock_holder_holds_nothing() {
    let home = Home::new();
    home.push("cli", "default", "one");
    let lock = home.store().join("lock.append").display().to_string();
    let mut command = home.other("flock", &["--no-fork", &lock, "sh", "-c", "echo held; exec cat"]);
    let mut holder = command.stdin(Stdio::piped()).spawn().expect("flock of util-linux");
    assert_eq!(first_line(holder.stdout.take()), "held\n");

    let push = ["session", "push", "cli", "default", "user", "two"];
    let mut pushing = home.command(&push).spawn().expect("the program starts");
    let told = first_line(pushing.stderr.take());
    assert!(told.contains("lock.append"), "{told}");
    assert_eq!(home.json_lines(&["log", "-o", "jsonl", "--type", "turn"]).len(), 1);

    holder.kill().expect("killed");
    holder.wait().expect("gone");
    assert_eq!(Ran::end(pushing).code, Some(0));
    home.ok(&push);
    assert_eq!(home.json_lines(&["log", "-o", "jsonl", "--type", "turn"]).len(), 3);
    home.ok(&["verify", "--strict"]);
}

fn first_line(stream: Option<impl Read>) -> String {
    let mut line = String::new();
    BufReader::new(stream.expect("a pipe")).read_line(&mut line).expect("a line");
    line
}

/// Goal: a text of any size comes back whole, wherever it lies. Method: two megabytes from standard input, read in
/// every form; then its file is lost, which is told and never passed over.
#[test]
fn a_text_too_big_for_a_line() {
    let home = Home::new();
    let text = "größer als eine Zeile ".repeat(100_000);
    let mut command = home.command(&["session", "push", "cli", "default", "user", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    assert_eq!(Ran::end(child).code, Some(0));
    let turn = ["--type", "turn"];
    for args in [&["tail", "--json"][..], &["log", "-o", "jsonl"], &["export"]] {
        let events = home.json_lines(&[args, &turn].concat());
        assert_eq!(events[0]["data"]["content"].as_str(), Some(text.as_str()), "{args:?}");
    }
    assert!(home.ok(&["log", "-g", "Zeile größer"]).contains("größer als eine Zeile"));
    let history = ["sessions", "history", "cli:default"];
    let page = home.json(&[&history[..], &["--json"]].concat());
    assert_eq!(page["messages"][0]["content"].as_str(), Some(text.as_str()));

    let mut blobs = crate::support::snapshot(&home.store().join("blobs"));
    blobs.retain(|(path, _)| path.is_file());
    assert_eq!(blobs.len(), 1);
    remove(&blobs[0].0);
    let events = home.json_lines(&[&["export"][..], &turn].concat());
    assert!(events[0]["datalost"].is_string() && events[0]["data"]["role"] == "user", "{events:?}");
    assert_eq!(home.run(&["export", "--strict"]).code, Some(6));
    assert_eq!(home.run(&["verify"]).code, Some(6));
    assert!(home.ok(&["tail"]).contains("user"));
    let page = home.json(&[&history[..], &["--json"]].concat());
    let message = &page["messages"][0];
    assert_eq!((page["damaged"].as_bool(), message["content"].is_null()), (Some(true), true));
    assert!(message["lostBytes"].as_u64() > Some(2_000_000), "{message}");
    assert!(home.ok(&history).contains("of content are lost"));
}

/// Pushes what comes from standard input, with what stands behind it on the command line.
fn push_from_stdin(home: &Home, input: &[u8], more: &[&str]) -> Ran {
    let args = [&["session", "push", "cli", "default", "user", "-"][..], more].concat();
    let mut child = home.command(&args).stdin(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(input).expect("written");
    Ran::end(child)
}

/// Goal: what a pipe adds to a text is not pushed, and a pipe with nothing in it pushes nothing. Method: a byte order
/// mark, line ends of both kinds, and empty inputs.
#[test]
fn texts_from_a_pipe() {
    let home = Home::new();
    for empty in [&b""[..], b"\n", b"\r\n", "\u{feff}".as_bytes()] {
        let ran = push_from_stdin(&home, empty, &[]);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("standard input is empty"), "{ran:#?}");
    }
    assert!(!home.store().exists());
    for (input, said) in [
        ("\u{feff}one\n", "one"),
        ("two\n\n", "two\n"),
        ("three\r\n", "three"),
        ("four", "four"),
        (" five \n", " five "),
    ] {
        assert_eq!(push_from_stdin(&home, input.as_bytes(), &[]).code, Some(0));
        let turns = home.json_lines(&["log", "-o", "jsonl", "-n0", "--type", "turn"]);
        assert_eq!(turns.last().expect("a turn")["data"]["content"], said);
    }
}

/// Goal: a key that stands for another turn is told as the key that was given. Method: one key, two texts.
#[test]
fn a_key_for_another_turn() {
    let home = Home::new();
    let key = ["--idempotency-key", "msg-7"];
    assert_eq!(push_from_stdin(&home, b"one\n", &key).code, Some(0));
    assert!(push_from_stdin(&home, b"one\n", &key).stdout.contains("was pushed before"));
    let ran = push_from_stdin(&home, b"two\n", &key);
    assert_eq!(ran.code, Some(7), "{ran:#?}");
    assert!(ran.stderr.contains("\"msg-7\" was used for another turn"), "{ran:#?}");
    assert!(!ran.stderr.contains("the id "), "{ran:#?}");
}
