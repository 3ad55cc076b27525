//! Agents: which there are, and a try of one.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use annals_tools::run::reaper;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Home, Ran, configure_agents, fake_agent, write};

/// Goal: what is configured is listed, and who has nothing is shown how to begin. Method: no settings; two agents, one
/// without a command; the lines that were shown, as settings.
#[test]
fn listed() {
    let home = Home::new();
    let ran = home.run(&["agents", "list"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:#?}");
    assert_eq!(home.json(&["agents", "list", "--json"])["agents"], serde_json::json!([]));
    let example: Vec<&str> = ran.stderr.lines().skip_while(|line| !line.starts_with('{')).collect();
    assert_eq!(example.len(), 5, "{ran:#?}");
    let place = home.path().join(".config/annals/annals.json5");
    write(&place, example.join("\n"));
    let table = home.ok(&["agents", "list"]);
    assert!(table.contains("main *  claude -p"), "{table}");
    assert_eq!(home.ok(&["agents", "try", "echo", "to be or"]), "to be or\n");
    write(
        &place,
        "{agents: {list: [{id: 'ops', name: 'O'}, {id: 'dev', default: true, run: {command: 'x', resumeArgs: []}}]}}",
    );
    let agents = home.json_lines(&["agents", "list", "-o", "jsonl"]);
    assert_eq!(
        agents[0],
        serde_json::json!({"id": "ops", "name": "O", "default": false, "configured": false})
    );
    assert_eq!(agents[1]["default"], true);
    assert_eq!((&agents[1]["input"], &agents[1]["dialect"]), (&"stdin".into(), &"none".into()));
    write(&place, "{agents: {list: [{id: 'ops', run: {args: ['x']}}]}}");
    home.fails(&["agents", "list"], 2, "invalid_input");
}

/// Goal: a try prints the reply and nothing else to standard output, says how it ended with the exit code, and stores
/// nothing. Method: agents that end well, badly, at their limit, and one that is not there.
#[test]
fn tried() {
    let home = Home::new();
    configure_agents(
        &home,
        &[
            ("echo", &["err=looking", "echo"]),
            ("bad", &["say=half", "err=no credit", "exit=3"]),
            ("silent", &["say=", "exit=0"]),
        ],
    );
    let ran = home.run(&["agents", "try", "echo", "two\nlines"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "two\nlines\n"), "{ran:#?}");
    assert!(ran.stderr.starts_with("looking\nok · exit 0 · "), "{ran:#?}");
    let ran = home.run(&["agents", "try", "bad", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "half\n"), "{ran:#?}");
    assert!(ran.stderr.contains("the run of bad ended with error (exit)"), "{ran:#?}");
    let answer = home.json(&["agents", "try", "echo", "x", "--json"]);
    assert_eq!((&answer["reply"], &answer["status"]), (&"x".into(), &"ok".into()), "{answer}");
    let answer = home.fails(&["agents", "try", "bad", "x"], 1, "exit");
    assert_eq!((&answer["exit"], &answer["reply"]), (&3.into(), &"half".into()), "{answer}");
    let answer = home.fails(&["agents", "try", "nobody", "x"], 3, "not_found");
    assert_eq!(answer["error"]["hint"], "agents are echo, bad, silent");
    assert!(!home.store().exists());
    let config = serde_json::json!({ "agents": { "list": [
        { "id": "slow", "run": { "command": fake_agent(), "args": ["say=half", "forever"], "timeouts": { "run": 2 } } },
        { "id": "none" },
        { "id": "gone", "run": { "command": "no-such-agent" } },
    ] } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    let ran = home.run(&["agents", "try", "slow", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(4), "half\n"), "{ran:#?}");
    home.fails(&["agents", "try", "none", "x"], 3, "not_found");
    let answer = home.fails(&["agents", "try", "gone", "x"], 1, "spawn_failed");
    assert!(answer["error"]["message"].as_str().expect("text").contains("PATH"), "{answer}");
}

/// Goal: a dialect's reply is the reply, also where nothing of it comes early. Method: a native answer.
#[test]
fn in_a_dialect() {
    let home = Home::new();
    let config = serde_json::json!({ "agents": { "list": [{ "id": "a", "run": {
        "command": fake_agent(), "args": ["native=NO_REPLY"], "dialect": "native" } }] } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    let ran = home.run(&["agents", "try", "a", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "NO_REPLY\n"), "{ran:#?}");
    assert!(ran.stderr.contains("thinking") && ran.stderr.contains("in 900 / out 300"), "{ran:#?}");
}

/// Goal: an agent can call the program that runs it, on the same store and settings. Method: one that lists sessions.
#[test]
fn calls_back() {
    let home = Home::new();
    home.push("cli", "a", "hello");
    configure_agents(&home, &[("a", &["calls=tools|call|sessions_list|{}"])]);
    let text = home.ok(&["agents", "try", "a", "x"]);
    let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["sessions"].as_array().map(Vec::len), Some(1), "{answer}");
}

/// Goal: whoever interrupts a try ends the agent with all that it started. Method: an agent with a child that prints its
/// run and waits; a signal.
#[test]
fn interrupted() {
    let home = Home::new();
    configure_agents(&home, &[("a", &["child=pid", "env=ANNALS_RUN_ID", "forever"])]);
    let mut child = home.command(&["agents", "try", "a", "x"]).spawn().expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
    let mut run_id = String::new();
    stdout.read_line(&mut run_id).expect("a line");
    assert_eq!(reaper::count(run_id.trim(), &home.store()), 2);
    let pid = Pid::from_raw(child.id().try_into().expect("a pid")).expect("a pid");
    kill_process(pid, Signal::INT).expect("interrupted");
    let ran = Ran::end(child);
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.stderr.contains("ended with killed"), "{ran:#?}");
    assert_eq!(reaper::count(run_id.trim(), &home.store()), 0);
}

/// Goal: an agent whose reply nobody reads any more is ended. Method: one that prints without end into a pipe that is closed
/// after a line.
#[test]
fn unread() {
    let home = Home::new();
    configure_agents(&home, &[("a", &["env=ANNALS_RUN_ID", "flood=10000000000"])]);
    let mut child = home.command(&["agents", "try", "a", "x"]).spawn().expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
    let mut run_id = String::new();
    stdout.read_line(&mut run_id).expect("a line");
    drop(stdout);
    let ran = Ran::end(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    // It was ended, which takes the system a moment.
    let left = || reaper::count(run_id.trim(), &home.store());
    assert!((0..10_000).any(|_| left() == 0), "it goes on");
}

/// Goal: what a killed process of ours left running is found by its run and its store, and ended. Method: an agent that
/// ignores TERM, with a child in a session of its own that does not; the program above them is killed; another run, and
/// another store, find nothing.
#[test]
fn left_behind() {
    let home = Home::new();
    configure_agents(&home, &[("a", &["session=pid", "deaf", "env=ANNALS_RUN_ID", "forever"])]);
    let mut child = home.command(&["agents", "try", "a", "x"]).spawn().expect("it starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
    let mut run_id = String::new();
    stdout.read_line(&mut run_id).expect("a line");
    let run_id = run_id.trim();
    child.kill().expect("killed");
    child.wait().expect("it ended");
    assert_eq!(reaper::count(run_id, &home.store()), 2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    let reap = |run_id: &str, store: &std::path::Path| {
        runtime.block_on(reaper::reap(run_id, store, Duration::from_millis(300)))
    };
    assert_eq!(reap("another", &home.store()), 0);
    assert_eq!(reap(run_id, home.path()), 0);
    assert_eq!(reap(run_id, &home.store()), 2);
    assert_eq!(reaper::count(run_id, &home.store()), 0);
    // Both held the pipe: now it is at its end.
    stdout.read_to_string(&mut String::new()).expect("its end");
    assert_eq!(reap(run_id, &home.store()), 0);
}
