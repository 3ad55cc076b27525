//! Readers that go away, writers that cannot write, and signals.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Home, Ran};

/// Goal: `| head -1` is no error and makes no noise, also while a follower has nothing to write. Method: read one line
/// of a big answer, and of a follower, then close the pipe; the program must end by itself.
#[test]
fn a_closed_pipe_is_silent() {
    let home = Home::new();
    let text = "x".repeat(20_000);
    for n in 0..20 {
        home.push("cli", "default", &format!("{n} {text}"));
    }
    for args in [
        &["log", "-n", "0"][..],
        &["log", "--json"],
        &["export"],
        &["tail", "-o", "raw"],
        &["sessions", "history", "cli:default", "-n", "0"],
        &["session", "context", "cli", "default", "--limit-chars", "0"],
        &["session", "resume", "cli", "default", "-n", "0", "--json"],
        &["replay", "--tree", "cli:default"],
        &["replay", "--json"],
        &["tools", "list", "--json"],
        &["subagent", "list", "--json"],
        &["config", "show", "--all"],
        &["tail", "-f"],
        &["tail", "-f", "--json"],
    ] {
        let mut child = home.command(args).spawn().expect("the program starts");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("a line");
        assert!(!line.is_empty(), "{args:?}");
        drop(stdout);
        let ran = Ran::end(child);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

/// Goal: help to a closed pipe is silent too. Method: a pipe whose reading side was closed before the program started.
#[test]
fn help_to_a_closed_pipe() {
    let home = Home::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = home.command(&["--help"]);
    command.stdout(writer);
    let ran = Ran::of(command);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

/// Goal: an answer that could not be written is a failure. Method: a device that is always full.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let home = Home::new();
    home.push("cli", "default", "hi");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device");
    let mut command = home.command(&["log"]);
    command.stdout(full);
    let ran = Ran::of(command);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("standard output"), "{ran:#?}");
}

/// Goal: signals end a follower with the exit codes that shells give them. Method: wait until it has shown something,
/// then send the signal.
#[test]
fn signals_end_a_follower() {
    use rustix::process::{Pid, Signal, kill_process};
    let home = Home::new();
    home.push("cli", "default", "hi");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = home.command(&["tail", "-f"]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        stdout.read_line(&mut String::new()).expect("a line");
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("the signal is sent");
        let ran = Ran::end(child);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""));
    }
}
