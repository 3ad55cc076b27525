//! What is at work and what has ended, at a glance: children in each of their states, runs that never ended, sessions whose
//! earlier parts are closed.

use annals_engine::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::support::{Home, Ran, append, fake_agent, fifo, write};

/// The children by their labels, each with its status, as they are listed.
fn children(home: &Home, more: &[&str]) -> Vec<(String, String)> {
    let list = home.json(&[&["subagent", "list", "--json"], more].concat());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = list["children"].as_array().expect("children");
    let mut told: Vec<_> =
        rows.iter().map(|row| (text(&row["label"]), text(&row["status"]))).collect();
    told.sort();
    told
}

/// Goal: every state of a child is to be seen right after it was reached, in the list and in its own status, and one that is
/// killed is, with who killed it. Method: children that wait, work, end well, fail, run out of time and are killed.
#[test]
fn of_children() {
    let home = Home::new();
    let waits = fifo(&home, "go");
    let slow = ["read".to_owned(), format!("wait={waits}"), "say=done".to_owned()];
    let of = |id: &str, steps: &[String]| {
        json!({ "id": id, "subagents": { "allowAgents": ["*"] },
        "run": { "command": fake_agent(), "args": steps, "timeouts": { "killGrace": 1 } } })
    };
    let config = json!({ "agents": { "list": [
        of("main", &["say=done".into()]), of("slow", &slow), of("bad", &["exit=3".into()]),
        of("never", &["forever".into()]),
    ] } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    let spawn = |label: &str, more: &[&str]| {
        let args = ["subagent", "spawn", "work", "--label", label, "--no-worker", "--json"];
        home.json(&[&args[..], more].concat())
    };
    let child = |answer: &Value| answer["childSessionKey"].as_str().expect("a key").to_owned();
    let status = |answer: &Value| {
        home.json(&["subagent", "status", &child(answer), "--json"])["child"]["status"].clone()
    };
    let waiting = spawn("a", &["--agent", "slow"]);
    assert_eq!(children(&home, &[]), [("a".into(), "waiting".into())]);
    assert_eq!(status(&waiting), "waiting");
    let worker = home.command(&["worker", "--until-idle"]).spawn().expect("it starts");
    // It is at work as long as the pipe is open.
    let pipe = std::fs::OpenOptions::new().write(true).open(&waits).expect("the agent came");
    assert_eq!(children(&home, &[]), [("a".into(), "running".into())]);
    drop(pipe);
    assert_eq!(Ran::end(worker).code, Some(0));
    assert_eq!(status(&waiting), "done");
    let well = spawn("b", &[]);
    let failed = spawn("c", &["--agent", "bad"]);
    home.ok(&["worker", "--until-idle"]);
    let late = spawn("d", &["--agent", "never", "--timeout", "1"]);
    home.ok(&["worker", "--until-idle"]);
    let killed = spawn("e", &["--agent", "never"]);
    home.ok(&["subagent", "kill", &child(&killed)]);
    let states = [(&well, "done"), (&failed, "failed"), (&late, "timeout"), (&killed, "killed")];
    for (answer, state) in states {
        assert_eq!(status(answer), state, "{answer}");
    }
    let told = ["done", "done", "failed", "timeout", "killed"];
    let all: Vec<String> = children(&home, &[]).into_iter().map(|(_, status)| status).collect();
    assert_eq!(all, told);
    let run = killed["runId"].as_str().expect("a run");
    let end = home.json_lines(&["log", "--run", run, "--type", "run.finished", "-o", "jsonl"]);
    assert_eq!((&end[0]["data"]["status"], end.len()), (&"killed".into(), 1));
}

/// Goal: a child that has ended stays in the list until its time to be archived has come, whatever else happens, and is
/// then listed with the archived ones. Method: children whose ends lie 55 and 65 minutes back under a rule of an hour.
#[test]
fn of_ended_children() {
    let home = Home::new();
    write(
        home.path().join(".config/annals/annals.json5"),
        "{ agents: { defaults: { subagents: { archiveAfterMinutes: 60 } } } }",
    );
    home.push("cli", "default", "hello");
    for (label, minutes) in [("young", 55), ("old", 65)] {
        let at = SystemClock.now().as_micros() - minutes * 60_000_000;
        let at = annals_engine::clock::Timestamp::from_micros(at);
        let key = format!("agent:main:subagent:{label}");
        let opened = format!(
            "{{'at':'{at}','sessionId':'{label}','kind':'other','agentId':'main','parentKey':'cli:default','spawnDepth':1,'label':'{label}'}}"
        );
        append(&home.store(), &key, "session.opened", &opened);
        let run = format!(
            "{{'at':'{at}','runId':'run-{label}','sessionKey':'{key}','sessionId':'{label}','kind':'spawn','agentId':'main','requesterKey':'cli:default','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
        );
        append(&home.store(), &format!("run:run-{label}"), "run.requested", &run);
        let accepted = format!("{{'runId':'run-{label}','targetKey':'{key}','hop':0}}");
        append(&home.store(), "cli:default", "spawn.accepted", &accepted);
        let end = format!("{{'at':'{at}','runId':'run-{label}','status':'ok','runtimeMs':5}}");
        append(&home.store(), &format!("run:run-{label}"), "run.finished", &end);
    }
    home.push("telegram", "7", "another session is opened, and time is looked at");
    assert_eq!(children(&home, &[]), [("young".into(), "done".into())]);
    let archived = children(&home, &["--archived"]);
    assert_eq!(archived, [("old".into(), "archived".into())]);
}

/// Goal: of runs of any window those that never ended are one list, with age and owner. Method: three that began, two that
/// ended; windows by place and by time.
#[test]
fn of_runs() {
    let home = Home::new();
    home.push("cli", "a", "hello");
    let store = home.store();
    for run in ["run-1", "run-2", "run-3"] {
        let request = format!(
            "{{'runId':'{run}','sessionKey':'cli:a','sessionId':'s','kind':'ask','agentId':'main','chainId':'{run}','hop':0,'timeoutSeconds':0,'deliver':false}}"
        );
        append(&store, &format!("run:{run}"), "run.requested", &request);
        let claim = format!(
            "{{'runId':'{run}','worker':'w','pid':1,'processStart':'0','bootId':'b','host':'box','leaseUntil':'2999-01-01T00:00:00.000000Z'}}"
        );
        append(&store, &format!("run:{run}"), "run.claimed", &claim);
    }
    for run in ["run-1", "run-3"] {
        let end = format!("{{'runId':'{run}','status':'ok','runtimeMs':5}}");
        append(&store, &format!("run:{run}"), "run.finished", &end);
    }
    let list = |more: &[&str]| {
        let answer = home.json(&[&["runs", "list", "--json"], more].concat());
        answer["runs"].as_array().expect("runs").clone()
    };
    let ids = |runs: &[Value]| -> Vec<String> {
        runs.iter().map(|run| run["runId"].as_str().expect("an id").to_owned()).collect()
    };
    let open = list(&["--open"]);
    assert_eq!(ids(&open), ["run-2"]);
    assert_eq!((&open[0]["owner"]["worker"], open[0]["ageMs"].is_u64()), (&"w".into(), true));
    let first = open[0]["requested"]["seq"].as_u64().expect("a place");
    let (here, before) = (format!("#{first}"), format!("#{}", first - 1));
    assert_eq!(ids(&list(&["--since", &here])), ["run-3", "run-2"]);
    assert_eq!(ids(&list(&["--until", &here])), ["run-2", "run-1"]);
    assert_eq!(ids(&list(&["--open", "--since", &here, "--until", &here])), ["run-2"]);
    assert_eq!(ids(&list(&["--open", "--until", &before])), [""; 0]);
    assert_eq!(ids(&list(&["--open", "--since", "1h"])), ["run-2"]);
    assert_eq!(ids(&list(&["--open", "--until", "1h"])), [""; 0]);
    home.fails(&["runs", "list", "--since", "soon"], 2, "usage");
}

/// Goal: after any number of resets each part can be reached, and whoever reads by key is told that there are others. Method:
/// two resets; the key and each id, by tool and by verb; an archived child by its old id, by name and in the list.
#[test]
fn of_parts() {
    let home = Home::new();
    let push = |text: &str| {
        home.push("telegram", "7", text)["sessionId"].as_str().expect("an id").to_owned()
    };
    let reset = || home.ok(&["session", "reset", "telegram", "7"]);
    let (first, second) = {
        let first = push("one");
        reset();
        let second = push("two");
        reset();
        (first, second)
    };
    push("three");
    let read = |name: &str| {
        let args = json!({ "sessionKey": name }).to_string();
        let answer = home.json(&["tools", "call", "sessions_history", &args]);
        (answer["messages"][0]["content"].clone(), answer["otherParts"].clone())
    };
    let others = json!([first, second]);
    assert_eq!(read("telegram:7"), ("three".into(), others));
    assert_eq!((read(&first).0, read(&second).0), ("one".into(), "two".into()));
    let ran = home.run(&["sessions", "history", "telegram:7"]);
    let note = format!("2 other parts: {first}, {second}");
    assert!(ran.stdout.contains("three") && ran.stderr.contains(&note), "{ran:#?}");
    let all = home.ok(&["sessions", "history", "telegram:7", "--all-parts"]);
    assert!(["one", "two", "three"].iter().all(|text| all.contains(text)), "{all}");

    let child = "agent:main:subagent:c1";
    let opened = "{'sessionId':'part-c1','kind':'other','agentId':'main','parentKey':'telegram:7','spawnDepth':1}";
    append(&home.store(), child, "session.opened", opened);
    let turn = "{'sessionId':'part-c1','role':'assistant','from':'internal','content':'found it'}";
    append(&home.store(), child, "turn", turn);
    let gone =
        "{'sessionId':'part-c1','reason':'ended','effectiveAt':'2026-04-01T00:00:00.000000Z'}";
    append(&home.store(), child, "session.archived", gone);
    assert_eq!((read(child).0, read("part-c1").0), ("found it".into(), "found it".into()));
    let keys = |args: &str| {
        let list = home.json(&["tools", "call", "sessions_list", args]);
        let rows = list["sessions"].as_array().expect("rows").clone();
        rows.iter().filter(|row| row["key"] == child).count()
    };
    assert_eq!((keys("{}"), keys(r#"{"archived":"all"}"#)), (0, 1));
}
