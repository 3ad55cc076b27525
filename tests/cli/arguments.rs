//! The command line: exit codes, the form of failures, and which store is meant.

use crate::support::{Home, snapshot, write};

/// Goal: what makes no sense is refused with exit code 2 before anything is read, and the message names the option and
/// what it takes. Method: one bad value for each option, on a store that does not even exist.
#[test]
fn bad_values_are_usage_errors() {
    let home = Home::new();
    for (args, told) in [
        (&["log", "--type", "spwan"][..], "spwan"),
        (&["log", "--since", "soon"], "--since"),
        (&["log", "--until", "2026-13-01"], "--until"),
        (&["log", "--since", "1h", "--until", "2h"], "--since"),
        (&["log", "-g", "("], "--grep"),
        (&["log", "--kind", "nonsense"], "nonsense"),
        (&["log", "--run", "0"], "--run"),
        (&["log", "--session", ""], "--session"),
        (&["log", "--after", "12"], "12"),
        (&["log", "--nonsense"], "--nonsense"),
        (&["nonsense"], "nonsense"),
        (&["session", "push", "cli", "default", "nobody", "hi"], "nobody"),
        (&["sessions", "search"], "QUERY"),
        (&["sessions", "list", "--kind", "x"], "cron"),
        (&["usage", "--by", "week"], "model"),
    ] {
        let answer = home.fails(args, 2, "usage");
        let message = answer["error"]["message"].as_str().expect("text");
        assert!(message.contains(told), "{args:?}: {message}");
        let ran = home.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:#?}");
        assert!(ran.stderr.contains(told), "{ran:#?}");
    }
    let answer = home.fails(&["log", "--typ", "turn"], 2, "usage");
    assert!(
        answer["error"]["hint"].as_str().is_some_and(|hint| hint.contains("'--type'")),
        "{answer}"
    );
    let ran = home.run(&["verify", "-o", "csv"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("it has table, json"), "{ran:#?}");
    assert!(!home.store().exists());
}

/// Goal: a verb that reads says that there is no store, says what to do, and makes nothing. Method: every such verb in
/// an empty home.
#[test]
fn no_store_is_not_found() {
    let home = Home::new();
    for args in [
        &["tail"][..],
        &["tail", "-f"],
        &["log"],
        &["export"],
        &["stats"],
        &["verify"],
        &["repair"],
        &["repair", "--apply"],
        &["sessions", "list"],
        &["sessions", "history", "cli:default"],
    ] {
        let answer = home.fails(args, 3, "not_found");
        let hint = answer["error"]["hint"].as_str().expect("a hint");
        assert!(hint.contains("annals quickstart"), "{hint}");
        assert_eq!(home.run(args).code, Some(3), "{args:?}");
    }
    assert_eq!(snapshot(home.path()), [], "nothing was made");
}

/// Goal: the flag beats the environment, ours beats the names of channel sessions, and the plain one of these beats
/// its alias. Method: a push with ever fewer of them set; the reply names the store.
#[test]
fn the_store_is_the_one_named_first() {
    let home = Home::new();
    let folder = |name: &str| home.path().join(name).display().to_string();
    let push = ["session", "push", "cli", "default", "user", "hi"];
    let variables = ["ANNALS_HOME", "MESSAGE_SESSIONS_DIR", "HERMES_SESSIONS_DIR"];
    for first in 0..=variables.len() {
        let mut command = home.command(&push);
        for name in &variables[first..] {
            command.env(name, folder(name));
        }
        if first > 0 {
            command.env(variables[first - 1], "");
        }
        assert_eq!(crate::support::Ran::of(command).code, Some(0));
        let expect = variables.get(first).map_or(home.store(), |name| home.path().join(name));
        assert!(expect.join("store.json").exists(), "{first}: {}", expect.display());
    }
    let mut command = home.command(&[&["--store", "flag"], &push[..]].concat());
    command.env("ANNALS_HOME", folder("unused"));
    assert_eq!(crate::support::Ran::of(command).code, Some(0));
    assert!(home.path().join("flag/store.json").exists());
    assert!(!home.path().join("unused").exists());
}

/// Goal: the sessions of another program are never mixed with ours. Method: MESSAGE_SESSIONS_DIR names a folder that
/// holds its files and no store; after a store is there too, it is ours.
#[test]
fn a_folder_of_another_program_is_refused() {
    let home = Home::new();
    let folder = home.path().join("message-sessions");
    write(folder.join("cli_default.json"), "{}");
    let before = snapshot(&folder);
    for args in [&["session", "push", "cli", "default", "user", "hi"][..], &["log"]] {
        let mut command = home.command(args);
        command.env("MESSAGE_SESSIONS_DIR", &folder);
        let ran = crate::support::Ran::of(command);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(ran.stderr.contains("annals import"), "{ran:#?}");
    }
    assert_eq!(snapshot(&folder), before);
    home.push("cli", "default", "hi");
    write(home.store().join("notes.json"), "{}");
    let mut command = home.command(&["log"]);
    command.env("MESSAGE_SESSIONS_DIR", home.store());
    assert_eq!(crate::support::Ran::of(command).code, Some(0));
}

/// Goal: JSON is one object for an answer and one a line for a stream. Method: every verb that answers, on a small
/// store.
#[test]
fn shapes_of_json() {
    let home = Home::new();
    home.push("cli", "default", "one");
    home.push("telegram", "7", "two");
    for args in [
        &["log", "--json"][..],
        &["stats", "--json"],
        &["verify", "--json"],
        &["repair", "--json"],
        &["sessions", "list", "--json"],
        &["sessions", "history", "cli:default", "--json"],
    ] {
        let answer = home.json(args);
        assert_eq!(answer["ok"], true, "{args:?}: {answer}");
    }
    for args in [&["tail", "--json"][..], &["tail", "-o", "jsonl"], &["log", "-o", "jsonl"]] {
        let events = home.json_lines(args);
        assert!(events.len() >= 4, "{args:?}");
        for event in events {
            for field in ["seq", "time", "stream", "version", "type", "id", "data", "cursor"] {
                assert!(!event[field].is_null(), "{args:?}: {field} in {event}");
            }
        }
    }
}
