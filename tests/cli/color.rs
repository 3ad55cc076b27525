//! Colour: where, when, and never as the only sign.

use crate::support::{Home, Ran, on_terminal};

const ESCAPE: char = '\u{1b}';

/// Goal: a pipe never gets colour unless it is asked for, a terminal does unless it is told not to. Method: every
/// combination that decides, and the same words with and without.
#[test]
fn when_there_is_colour() {
    let home = Home::new();
    home.push("cli", "default", "hi");
    assert!(!home.ok(&["tail"]).contains(ESCAPE));
    assert!(home.ok(&["tail", "--color", "always"]).contains(ESCAPE));
    let terminal = |args: &[&str], variable: Option<(&str, &str)>| {
        let mut command = home.command(args);
        command.envs(variable);
        on_terminal(command, 80).1
    };
    assert!(terminal(&["tail"], None).contains(ESCAPE));
    assert!(terminal(&["tail"], Some(("NO_COLOR", ""))).contains(ESCAPE), "empty is not set");
    assert!(!terminal(&["tail"], Some(("NO_COLOR", "1"))).contains(ESCAPE));
    assert!(!terminal(&["tail"], Some(("TERM", "dumb"))).contains(ESCAPE));
    assert!(!terminal(&["tail", "--color", "never"], None).contains(ESCAPE));
    assert!(terminal(&["tail", "--color", "always"], Some(("NO_COLOR", "1"))).contains(ESCAPE));
    assert!(!terminal(&["tail", "--json"], None).contains(ESCAPE));
}

/// Goal: without colour nothing is missing. Method: the words of a coloured answer, its escapes taken out, are the
/// words of the plain one.
#[test]
fn colour_carries_no_meaning() {
    let home = Home::new();
    home.push("cli", "default", "hi");
    let plain = home.ok(&["tail"]);
    let coloured = home.ok(&["tail", "--color", "always"]);
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once(ESCAPE) {
        stripped.push_str(before);
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

/// Goal: what somebody wrote cannot command the terminal of who reads it. Method: push an escape sequence and read it
/// in every form for eyes.
#[test]
fn text_commands_no_terminal() {
    let home = Home::new();
    home.push("cli", "default", "\u{1b}[2J\u{7}\u{202e}gone");
    for args in [&["tail"][..], &["log"], &["sessions", "history", "cli:default"]] {
        let text = home.ok(args);
        assert!(!text.contains([ESCAPE, '\u{7}', '\u{202e}']), "{args:?}: {text}");
        assert!(text.contains("\\u{1b}[2J"), "{args:?}: {text}");
    }
}

/// Goal: talk goes to standard error, plain when that is no terminal. Method: a failure with its standard output on a
/// terminal.
#[test]
fn failures_are_talk() {
    let home = Home::new();
    let (code, text) = on_terminal(home.command(&["log"]), 80);
    assert_eq!((code, text.as_str()), (Some(3), ""));
    let ran = Ran::of(home.command(&["log"]));
    assert!(ran.stderr.starts_with("error: there is no store in "), "{ran:#?}");
    assert!(ran.stderr.contains("\n  hint: "), "{ran:#?}");
}
