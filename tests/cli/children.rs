//! Children: spawned from the command line, worked on behind it, announced, looked at, ended.

use std::process::Child;

use serde_json::{Value, json};

use crate::support::{Home, Ran, configure_agents, fake_agent, fifo, kinds, write};

/// The messages of a session, all roles.
fn messages(home: &Home, key: &str) -> Vec<Value> {
    let history = home.json(&["sessions", "history", key, "-n", "0", "--include-tools", "--json"]);
    history["messages"].as_array().expect("messages").clone()
}

/// Waits for the announces of as many runs, by working on what is left; gives their texts.
fn announces(home: &Home, key: &str) -> Vec<String> {
    home.run(&["worker", "--until-idle"]);
    let announced = |message: &&Value| message["provenance"]["sourceTool"] == "subagent_announce";
    let text = |message: &Value| message["content"].as_str().expect("text").to_owned();
    messages(home, key).iter().filter(announced).map(text).collect()
}

/// The answer of a spawn that was started.
fn answer(child: Child) -> (Option<i32>, Value) {
    let ran = Ran::end(child);
    (ran.code, serde_json::from_str(&ran.stdout).expect("JSON"))
}

/// Goal: who spawns is answered at once, and the child is worked on behind the end of the call by a worker that holds
/// nothing of it. Method: a shell that holds a lock takes the answer into a variable while the agent waits; then its end is
/// let come.
#[test]
fn behind_the_call() {
    let home = Home::new();
    let waits = fifo(&home, "go");
    configure_agents(&home, &[("main", &["read", &format!("wait={waits}"), "say=counted"])]);
    let lock = home.path().join("lock").display().to_string();
    let script = format!(
        "exec 9>'{lock}'; flock 9; \
         child=$({} subagent spawn 'count the words' --label words 2>&1) && echo \"<$child>\"",
        env!("CARGO_BIN_EXE_annals")
    );
    let ran = Ran::of(home.other("/bin/sh", &["-c", &script]));
    let free = Ran::of(home.other("flock", &["-n", &lock, "true"]));
    assert_eq!(free.code, Some(0), "the lock of the shell went with it: {free:#?}");
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.starts_with("<agent:main:subagent:"), "{ran:#?}");
    assert!(ran.stdout.contains("announced to cli:default"), "{ran:#?}");
    let key = ran.stdout.trim_start_matches('<').lines().next().expect("a line").to_owned();
    let id = key.rsplit(':').next().expect("an id");
    let list = home.json(&["subagent", "list", "--json"]);
    let child = &list["children"][0];
    assert_eq!(
        (&child["key"], &child["id"], &child["label"]),
        (&key.as_str().into(), &id.into(), &"words".into())
    );
    assert_eq!(
        (&child["task"], &child["requesterKey"]),
        (&"count the words".into(), &"cli:default".into())
    );
    assert!(child["status"] == "running" || child["status"] == "waiting", "{child}");
    write(&waits, "");
    let run = child["runId"].as_str().expect("a run");
    let waited = home.json(&["runs", "wait", run, "--timeout", "60", "--json"]);
    assert_eq!(
        (&waited["runs"][0]["status"], &waited["runs"][0]["reply"]),
        (&"ok".into(), &"counted".into())
    );
    let announced = announces(&home, "cli:default");
    assert_eq!(announced.len(), 1);
    assert!(announced[0].starts_with("Status: ok\nResult: counted\n"), "{announced:?}");
    for name in [key.as_str(), id, &id[..id.len() - 1]] {
        let status = home.json(&["subagent", "status", name, "--json"]);
        assert_eq!(
            (&status["child"]["key"], &status["child"]["status"]),
            (&key.as_str().into(), &"done".into())
        );
    }
    let text = home.ok(&["subagent", "resume", id]);
    assert!(text.contains("result\n  counted\n") && text.contains("ended      ok"), "{text}");
    home.fails(&["subagent", "status", "nobody-there"], 3, "not_found");
    home.fails(&["subagent", "resume", "cli:default"], 3, "not_found");
}

/// Goal: no more children than the limit are accepted, whoever asks and however fast, a refusal leaves no session, and a
/// slot is free when a child ends. Method: ten processes at once; then a kill, and one more.
#[test]
fn as_many_as_may_be() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["say=done"])]);
    home.push("cli", "default", "hello");
    let spawn = |n: usize| {
        let task = format!("task {n}");
        home.command(&["sessions", "spawn", &task, "--no-worker", "--json"])
            .spawn()
            .expect("it starts")
    };
    let started: Vec<Child> = (0..10).map(spawn).collect();
    let answers: Vec<(Option<i32>, Value)> = started.into_iter().map(answer).collect();
    let (accepted, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|(_, answer)| answer["status"] == "accepted");
    assert_eq!((accepted.len(), refused.len()), (3, 7), "{answers:?}");
    for (code, answer) in &refused {
        assert_eq!(
            (code, &answer["status"], &answer["reason"]),
            (&Some(5), &"forbidden".into(), &"children_total".into())
        );
    }
    assert!(accepted[0].1["worker"].as_str().is_some_and(|how| how.starts_with("none: ")));
    let kinds = kinds(&home);
    let count = |kind: &str| kinds.iter().filter(|known| *known == kind).count();
    assert_eq!(
        (count("session.opened"), count("spawn.refused"), count("run.requested")),
        (4, 7, 3)
    );
    let list = home.json(&["subagent", "list", "--json"]);
    assert_eq!(list["total"], 3);
    let status = home.json(&["subagent", "status", "--json"]);
    assert_eq!(
        (&status["waiting"], &status["running"], &status["max"]),
        (&3.into(), &0.into(), &3.into())
    );
    let key = accepted[0].1["childSessionKey"].as_str().expect("a key");
    let killed = home.json(&["subagent", "kill", key, "--no-worker", "--json"]);
    assert_eq!(killed["runs"][0]["status"], "killed");
    let again = home.json(&["subagent", "kill", key, "--no-worker", "--json"]);
    assert_eq!(again["runs"], json!([]));
    assert_eq!(answer(spawn(10)).1["status"], "accepted");
    assert_eq!(answer(spawn(11)).1["status"], "forbidden");
    let ran = home.run(&["subagent", "spawn", "x", "--no-worker"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), ""), "{ran:#?}");
    assert!(ran.stderr.contains("SUBAGENT_MAX"), "{ran:#?}");
    let refused = home.fails(&["subagent", "spawn", "x", "--no-worker"], 5, "children_total");
    assert_eq!(refused["status"], "forbidden");
}

/// Goal: children that end together are each announced, once, in the order of their ends, without anybody saying anything,
/// while somebody does. Method: three children for one worker; a person who writes meanwhile.
#[test]
fn three_at_once() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["read", "env=ANNALS_RUN_ID"])]);
    let runs: Vec<String> = (0..3)
        .map(|n| {
            let answer =
                home.json(&["subagent", "spawn", &format!("task {n}"), "--no-worker", "--json"]);
            answer["runId"].as_str().expect("a run").to_owned()
        })
        .collect();
    let worker = home.command(&["worker", "--until-idle"]).spawn().expect("it starts");
    for n in 0..5 {
        home.push("cli", "default", &format!("meanwhile {n}"));
    }
    assert_eq!(Ran::end(worker).code, Some(0));
    let of_announces: Vec<String> = messages(&home, "cli:default")
        .iter()
        .filter(|message| message["provenance"]["sourceTool"] == "subagent_announce")
        .map(|message| message["provenance"]["runId"].as_str().expect("a run").to_owned())
        .collect();
    let log = home.json_lines(&["log", "-o", "jsonl", "-n", "0", "--type", "run.finished"]);
    let ends: Vec<String> = log
        .iter()
        .filter_map(|event| Some(event["stream"].as_str()?.trim_start_matches("run:").to_owned()))
        .collect();
    assert_eq!(of_announces, ends);
    let mut sorted = (runs, ends);
    sorted.0.sort();
    sorted.1.sort();
    assert_eq!(sorted.0, sorted.1);
    let before = kinds(&home);
    assert_eq!(home.run(&["worker", "--until-idle"]).code, Some(0));
    assert_eq!(kinds(&home), before, "nothing is announced again");
}

/// Goal: what a child did before it failed, or ran out of time, is reached by the ids of the answer. Method: one that says
/// three things and fails, one that never ends.
#[test]
fn what_came_of_the_failed() {
    let home = Home::new();
    let message = |text: &str| format!("say={}", json!({"type": "message", "text": text}));
    let config = json!({ "agents": { "list": [
        { "id": "main", "subagents": { "allowAgents": ["*"] }, "run": { "command": fake_agent(), "dialect": "native",
            "args": [message("one"), message("two"), message("three"), "exit=4"] } },
        { "id": "slow", "run": { "command": fake_agent(), "args": ["say=half", "forever"] } },
    ] } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    let failed = home.fails(&["subagent", "spawn", "three things", "--sync"], 1, "exit");
    assert_eq!((&failed["status"], &failed["exit"]), (&"error".into(), &4.into()), "{failed}");
    let key = failed["childSessionKey"].as_str().expect("a key");
    let said: Vec<Value> = messages(&home, key).iter().map(|m| m["content"].clone()).collect();
    assert_eq!(said, ["three things", "one", "two", "three"]);
    let slow = ["subagent", "spawn", "for ever", "--agent", "slow", "--timeout", "1", "--sync"];
    let late = home.fails(&slow, 4, "deadline");
    assert_eq!((&late["status"], &late["output"]), (&"timeout".into(), &"half".into()), "{late}");
    assert!(late["runtimeMs"].as_u64().is_some_and(|ms| ms >= 1_000), "{late}");
    assert!(late["childSessionKey"].is_string() && late["runId"].is_string());
    let announced = announces(&home, "cli:default");
    assert_eq!(announced.len(), 2);
    assert!(announced[0].starts_with("Status: error (exit)\nResult: three\n"), "{announced:?}");
    assert!(
        announced[1].starts_with("Status: timeout (deadline)\nResult: half\n"),
        "{announced:?}"
    );
    let list = home.ok(&["subagent", "list"]);
    assert!(list.contains("failed") && list.contains("timeout"), "{list}");
}

/// Goal: an announce is of its run, and a child begins with its task and nothing else, although its label was another's.
/// Method: two children of one label, of which the first one's announce is still pending when the second begins.
#[test]
fn each_its_own() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["echo"])]);
    let spawn = |task: &str| {
        let answer =
            home.json(&["sessions", "spawn", task, "--label", "twin", "--no-worker", "--json"]);
        let text = |name: &str| answer[name].as_str().expect("text").to_owned();
        (text("runId"), text("childSessionKey"))
    };
    let (first, _) = spawn("task one");
    let (second, key) = spawn("task two");
    let said = messages(&home, &key);
    assert_eq!((said.len(), &said[0]["content"]), (1, &"task two".into()), "{said:?}");
    assert_eq!(home.run(&["worker", "--until-idle"]).code, Some(0));
    for (run, result) in [(first, "task one"), (second, "task two")] {
        let of_run = |message: &&Value| message["provenance"]["runId"] == run.as_str();
        let told = messages(&home, "cli:default");
        let told: Vec<&Value> = told.iter().filter(of_run).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        let text = told[0]["content"].as_str().expect("text");
        assert!(text.contains(&format!("Result: {result}\n")), "{text}");
    }
}

/// Goal: work in the foreground prints the result, leaves the announce done, and says the same by flag and by variable.
/// Method: both; a child that asks for silence.
#[test]
fn in_the_foreground() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["echo"]), ("quiet", &["say=NO_REPLY"])]);
    let ran = home.run(&["subagent", "spawn", "to be or", "--sync", "--no-worker"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "to be or\n", ""));
    let mut command = home.command(&["subagent", "spawn", "not to be", "--json", "--no-worker"]);
    command.env("SUBAGENT_SYNC", "1");
    let answer: Value = serde_json::from_str(&Ran::of(command).stdout).expect("JSON");
    assert_eq!(
        (&answer["output"], &answer["status"]),
        (&"not to be".into(), &"ok".into()),
        "{answer}"
    );
    let told = messages(&home, "cli:default");
    assert_eq!(told.len(), 2, "both announces are there: {told:?}");
    let kinds = kinds(&home);
    assert_eq!(kinds.iter().filter(|kind| *kind == "announce.requested").count(), 2);
    let config = json!({ "agents": { "list": [ { "id": "main", "subagents": { "allowAgents": ["quiet"] } },
        { "id": "quiet", "run": { "command": fake_agent(), "args": ["say=NO_REPLY"] } } ] } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    assert_eq!(home.ok(&["subagent", "spawn", "x", "--agent", "quiet", "--sync"]), "");
}

/// Goal: a child for another chat is told what was said there, in its prompt and no transcript, and its announce goes
/// there. Method: a chat with a question; a child that repeats its prompt.
#[test]
fn for_another_chat() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["echo"])]);
    home.push("telegram", "42", "Who wrote it?");
    home.push("cli", "default", "something else");
    let chat = ["--session-channel", "telegram", "--session-chat-id", "42"];
    let spawn = [&["subagent", "spawn", "Answer her.", "--sync", "--json"][..], &chat].concat();
    let answer = home.json(&spawn);
    let prompt = answer["output"].as_str().expect("text");
    assert!(prompt.contains("user: Who wrote it?") && prompt.ends_with("Answer her."), "{prompt}");
    assert!(!prompt.contains("something else"), "{prompt}");
    let key = answer["childSessionKey"].as_str().expect("a key");
    assert_eq!(messages(&home, key)[0]["content"], "Answer her.");
    let shown = home.json(&["runs", "show", answer["runId"].as_str().expect("a run"), "--json"]);
    assert!(
        shown["preamble"].as_str().is_some_and(|text| text.contains("Who wrote it?")),
        "{shown}"
    );
    assert_eq!(announces(&home, "telegram:42").len(), 1);
    assert_eq!(messages(&home, "cli:default").len(), 1);
    let long = "word ".repeat(4_000);
    home.push("telegram", "42", &long);
    let answer = home.json(&spawn);
    let chars = answer["output"].as_str().expect("text").chars().count();
    assert!((11_000..13_000).contains(&chars), "{chars}");
}

/// Goal: files go along whole, whatever is in them, and a receipt says which. Method: text and bytes; one that is not
/// there; a mount.
#[test]
fn with_files() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["echo"])]);
    write(home.path().join("in/a.txt"), "text");
    write(home.path().join("in/b.bin"), [0, 255, 254]);
    let args = [
        "subagent", "spawn", "read", "--attach", "in/a.txt", "--attach", "in/b.bin", "--mount",
        "docs",
    ];
    let answer = home.json(&[&args[..], &["--sync", "--json"]].concat());
    let files = answer["attachments"].as_array().expect("receipts");
    assert_eq!((&files[0]["name"], &files[1]["bytes"]), (&"a.txt".into(), &3.into()), "{answer}");
    let path = files[1]["path"].as_str().expect("a path");
    assert!(path.ends_with("docs/b.bin"), "{path}");
    assert_eq!(std::fs::read(path).expect("a file"), [0, 255, 254]);
    assert!(answer["output"].as_str().is_some_and(|prompt| prompt.contains(path)), "{answer}");
    let before = kinds(&home);
    home.fails(&["subagent", "spawn", "read", "--attach", "in/none"], 3, "not_found");
    assert_eq!(kinds(&home), before);
    home.fails(&["subagent", "spawn", "read", "--mount", "docs"], 2, "usage");
}

/// Goal: where nothing is set a child of this verb has ten minutes, and one of the tool none. Method: both; the variable;
/// the option.
#[test]
fn time_limits() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["say=x"])]);
    let limit = |args: &[&str], variable: Option<&str>| -> Value {
        let mut command = home.command(&[args, &["--no-worker", "--json"]].concat());
        variable.map(|value| command.env("SUBAGENT_TIMEOUT", value));
        command.env("SUBAGENT_MAX", "9");
        let answer: Value = serde_json::from_str(&Ran::of(command).stdout).expect("JSON");
        let run = answer["runId"].as_str().expect("a run");
        home.json(&["runs", "show", run, "--json"])["run"]["timeoutSeconds"].clone()
    };
    assert_eq!(limit(&["subagent", "spawn", "x"], None), 600);
    assert_eq!(limit(&["sessions", "spawn", "x"], None), 0);
    assert_eq!(limit(&["subagent", "spawn", "x"], Some("7")), 7);
    assert_eq!(limit(&["sessions", "spawn", "x"], Some("7")), 7);
    assert_eq!(limit(&["subagent", "spawn", "x", "--timeout", "5"], Some("7")), 5);
}

/// Goal: a child can be asked again, and its answer is printed. Method: a finished child, a text.
#[test]
fn asked_again() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["read", "env=ANNALS_RUN_ID"])]);
    let answer = home.json(&["subagent", "spawn", "first", "--sync", "--json"]);
    let key = answer["childSessionKey"].as_str().expect("a key");
    let reply = home.ok(&["subagent", "resume", key, "And then?", "--timeout", "60"]);
    let shown = home.json(&["runs", "show", reply.trim(), "--json"]);
    assert_eq!((&shown["run"]["kind"], &shown["run"]["sessionKey"]), (&"send".into(), &key.into()));
    let resumed = home.json(&["subagent", "resume", key, "--json"]);
    assert_eq!(
        (&resumed["result"], &resumed["run"]["kind"]),
        (&reply.trim().into(), &"send".into())
    );
    assert_eq!(resumed["messages"].as_array().map(Vec::len), Some(4));
}
