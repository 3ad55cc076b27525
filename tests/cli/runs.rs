//! `runs`: waited for, ended, and shown with all that became of them.

use std::io::Read;

use annals_tools::run::reaper;
use serde_json::{Value, json};

use crate::support::{Home, Ran, configure_agents, fake_agent, fifo, kinds, write};

/// The run of a child that nobody works on.
fn spawned(home: &Home, task: &str) -> String {
    let answer = home.json(&["sessions", "spawn", task, "--no-worker", "--json"]);
    answer["runId"].as_str().expect("a run").to_owned()
}

fn shown(home: &Home, run: &str) -> Value {
    home.json(&["runs", "show", run, "--json"])
}

/// Goal: the exit code of a wait says what became of all, and a wait starts nothing. Method: a run that nobody works on,
/// one that ends well, one that does not, names that fit none and several.
#[test]
fn waited_for() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["say=done"])]);
    let run = spawned(&home, "x");
    let ran = home.run(&["runs", "wait", &run, "--timeout", "0"]);
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert!(ran.stdout.contains("requested") && ran.stderr.contains("annals worker"), "{ran:#?}");
    assert_eq!(shown(&home, &run)["run"]["state"], "requested");
    let waiting = home
        .command(&["runs", "wait", &run[..run.len() - 1], "--json"])
        .spawn()
        .expect("it starts");
    home.ok(&["worker", "--until-idle"]);
    let ran = Ran::end(waiting);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&answer["ok"], &answer["runs"][0]["reply"]), (&true.into(), &"done".into()));
    configure_agents(&home, &[("main", &["exit=3"])]);
    home.run(&["ask", "x"]);
    let runs = home.json(&["runs", "list", "--json"]);
    let failed = runs["runs"][0]["runId"].as_str().expect("a run");
    let ran = home.run(&["runs", "wait", &run, failed, "-o", "jsonl"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(1), 2), "{ran:#?}");
    home.fails(&["runs", "wait", "0000"], 3, "not_found");
    home.fails(&["runs", "wait", &run[..4]], 2, "ambiguous");
}

/// Goal: a run that nobody has ends at once, one at work is ended by its worker, and why is recorded; what has ended stays.
/// Method: one of each.
#[test]
fn killed() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["child=pid", "env=ANNALS_RUN_ID", "forever"])]);
    let run = spawned(&home, "x");
    let text = home.ok(&[
        "runs",
        "kill",
        &run[..run.len() - 1],
        "--no-worker",
        "--reason",
        "wrong branch",
    ]);
    assert_eq!(text, format!("{run} killed\n"));
    let end = shown(&home, &run);
    assert_eq!(
        (&end["run"]["state"], &end["run"]["kill"]["reason"]),
        (&"killed".into(), &"wrong branch".into())
    );
    assert_eq!(home.ok(&["runs", "kill", &run, "--no-worker"]), format!("{run} had ended\n"));
    home.fails(&["runs", "kill", "0000"], 3, "not_found");

    let mut child = home.command(&["ask", "x"]).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("its output");
    let mut id = [0; 36];
    stdout.read_exact(&mut id).expect("an id");
    let id = std::str::from_utf8(&id).expect("an id");
    assert_eq!(home.json(&["runs", "kill", id, "--json"])["runs"][0]["status"], "kill_requested");
    let ran = Ran::end(child);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("ended with killed"), "{ran:#?}");
    assert_eq!(reaper::count(id, &home.store()), 0);
}

/// So often is looked for something that comes by itself.
const LOOKS: u32 = 2_000;

/// Goal: what a run said before its end stands before it in the log, and what comes later is shown as late and changes
/// nothing. Method: an agent that prints up to its end, and leaves a process that prints behind it.
#[test]
fn late_output() {
    let home = Home::new();
    let waits = fifo(&home, "go");
    let later = format!("later={waits}=behind the end");
    configure_agents(&home, &[("main", &["say=one", "err=two", &later, "say=three"])]);
    let run = spawned(&home, "x");
    let worker = home.command(&["worker"]).spawn().expect("it starts");
    let waited = home.json(&["runs", "wait", &run, "--timeout", "60", "--json"]);
    assert_eq!(waited["runs"][0]["reply"], "one\nthree");
    let order = kinds(&home);
    let end = order.iter().position(|kind| kind == "run.finished").expect("an end");
    assert!(!order[end..].iter().any(|kind| kind == "run.output"), "{order:?}");
    assert_eq!(shown(&home, &run)["run"]["lateOutputs"], 0);
    write(&waits, "");
    // Each look is a process of its own: many are enough for one line of another.
    let came = (0..LOOKS).any(|_| shown(&home, &run)["run"]["lateOutputs"] == 1);
    assert!(came, "the late line is not there");
    let show = shown(&home, &run);
    assert_eq!(
        (&show["run"]["lateOutputs"], &show["run"]["state"]),
        (&1.into(), &"ok".into()),
        "{show}"
    );
    assert!(
        home.ok(&["runs", "show", &run])
            .contains("late       it said something 1 time behind its end")
    );
    let pid = rustix::process::Pid::from_child(&worker);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("stopped");
    assert_eq!(Ran::end(worker).code, Some(143));
}

/// Goal: a run that was claimed again shows each claim, and one that follows another up shows which. Method: a worker that
/// is killed and one that goes on; an announce step.
#[test]
fn claims_and_what_is_followed() {
    let home = Home::new();
    let waits = fifo(&home, "go");
    let config = |args: Value| {
        let run = json!({"command": fake_agent(), "args": args, "cwd": home.path(), "onLost": "retry",
            "timeouts": {"killGrace": 1}});
        let config = json!({"agents": {"list": [{"id": "main", "run": run}],
            "defaults": {"subagents": {"announce": "step"}}}});
        write(home.path().join(".config/annals/annals.json5"), config.to_string());
    };
    config(json!(["env=ANNALS_RUN_ID", format!("wait={waits}")]));
    let mut child = home.command(&["ask", "x"]).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("its output");
    let mut id = [0; 36];
    stdout.read_exact(&mut id).expect("an id");
    let id = std::str::from_utf8(&id).expect("an id").to_owned();
    child.kill().expect("killed");
    child.wait().expect("it ended");
    config(json!(["say=again"]));
    home.ok(&["worker", "--until-idle"]);
    let show = shown(&home, &id);
    assert_eq!(
        (&show["run"]["state"], &show["run"]["claims"]),
        (&"ok".into(), &2.into()),
        "{show}"
    );
    let workers: Vec<&Value> =
        show["claims"].as_array().expect("claims").iter().map(|claim| &claim["worker"]).collect();
    assert_eq!(workers.len(), 2);
    assert_ne!(workers[0], workers[1]);
    assert!(home.ok(&["runs", "show", &id]).contains(", claim 2\n"));

    config(json!(["read", "say=Result: it is told"]));
    let answer = home.json(&["subagent", "spawn", "x", "--sync", "--json", "--no-worker"]);
    let run = answer["runId"].as_str().expect("a run");
    let runs = home.json(&["runs", "list", "--json"]);
    let step = runs["runs"].as_array().expect("runs").iter().find(|run| run["kind"] == "announce");
    let step = step.expect("the step is made in the foreground too");
    assert_eq!((&step["followsRunId"], &step["state"]), (&run.into(), &"ok".into()));
    let show = home.ok(&["runs", "show", step["runId"].as_str().expect("an id")]);
    assert!(show.contains(&format!("follows    {run}\n")), "{show}");
    assert!(show.contains("preamble\n  [Announce step"), "{show}");
    assert!(home.ok(&["session", "context", "cli", "default"]).contains("Result: it is told"));
}
