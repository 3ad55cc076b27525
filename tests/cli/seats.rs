//! Inside a run the command line is the run's session: what its verbs see, and what they refuse.

use serde_json::{Value, json};

use crate::support::{Home, Ran, fifo, kinds, write};

/// Settings with shell scripts as agents. `$A` is the program under test.
fn scripts(home: &Home, more: &Value, agents: &[(&str, &str)]) {
    let of = |(id, script): &(&str, &str)| {
        json!({ "id": id, "run": { "command": "/bin/sh", "args": ["-c", script], "cwd": home.path(),
            "env": { "A": env!("CARGO_BIN_EXE_annals") } } })
    };
    let list: Vec<Value> = agents.iter().map(of).collect();
    let mut config = json!({ "agents": { "list": list } });
    for (name, value) in more.as_object().expect("an object") {
        config[name] = value.clone();
    }
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
}

/// Goal: a verb inside a run acts as the run's session and sees what that sees. Method: an agent that asks for its own
/// status and lists sessions and runs, with a stranger beside it.
#[test]
fn as_the_session_of_the_run() {
    let home = Home::new();
    home.push("cli", "stranger", "hello");
    scripts(
        &home,
        &json!({}),
        &[(
            "main",
            "$A tools call session_status | grep -o '\"key\":\"[^\"]*\"'; $A sessions list -o csv | grep -v ^key, | cut -d, -f1; \
             $A runs list -o csv | grep -c ask; $A sessions history cli:stranger; echo $?; \
             $A sessions history current -o jsonl | grep -c hello",
        )],
    );
    // A run of the stranger's that is none of this session's business.
    home.ok(&["ask", "hi", "--chat", "stranger"]);
    let ran = home.run(&["ask", "hello", "--key", "main"]);
    assert_eq!(ran.stdout, "\"key\":\"agent:main:main\"\nmain\n1\n3\n1\n", "{ran:#?}");
    let denied = home.json_lines(&["export", "--type", "access.denied"]);
    let of_main: Vec<&Value> =
        denied.iter().filter(|event| event["subject"] == "agent:main:main").collect();
    assert_eq!(of_main.len(), 1, "{denied:?}");
    assert_eq!(of_main[0]["data"]["target"], "cli:stranger");
}

/// Goal: what the guard does not stand before is refused inside a run, with a way out, and so is a session named by hand.
/// Method: an agent that tries each verb, and one that gives the token up.
#[test]
fn what_is_the_operators() {
    let home = Home::new();
    let refused = [
        "tail",
        "log",
        "export",
        "ask x",
        "session push cli a user x",
        "session context cli default",
        "session list",
        "verify",
        "repair",
        "replay",
        "stats",
        "usage",
        "import x",
        "worker --until-idle",
        "agents try main x",
        "config set session.maxTurns 7",
        "config init",
        "heartbeat status",
        "quickstart",
        "runs show 0000",
        "sessions spawn x --as cli:default",
        "sessions send main x --as cli:default",
        "tools call sessions_list --as cli:default",
        "subagent spawn x --session-chat-id 7",
        "graph",
        "timeline",
    ];
    let works = [
        "agents list",
        "config path",
        "config show",
        "config get session.maxTurns",
        "completions bash",
        "--help",
        "tail --help",
        "--version",
        "tools list",
        "subagent list",
        "subagent status",
        "sessions list",
        "runs list",
    ];
    let each = |verbs: &[&str]| -> String {
        verbs.iter().map(|verb| format!("$A {verb} >/dev/null 2>err; echo $? '{verb}'; ")).collect()
    };
    let script = format!(
        "{}{} env -u ANNALS_TOKEN $A stats >/dev/null; echo $?; $A tail 2>&1; true",
        each(&refused),
        each(&works)
    );
    scripts(&home, &json!({}), &[("main", &script)]);
    let said = home.ok(&["ask", "hello"]);
    for verb in refused {
        assert!(said.contains(&format!("5 {verb}\n")), "{verb}: {said}");
    }
    for verb in works {
        assert!(said.contains(&format!("0 {verb}\n")), "{verb}: {said}");
    }
    assert!(said.contains("\n0\nerror: this verb is the operator's"), "{said}");
    assert!(said.ends_with("hint: `unset ANNALS_TOKEN` to act as the operator\n"), "{said}");
}

/// Goal: a token ends with its run, and is none of another store. Method: an agent that prints its token; verbs with it
/// afterwards.
#[test]
fn a_token_ends_with_its_run() {
    let home = Home::new();
    scripts(&home, &json!({}), &[("main", "echo $ANNALS_TOKEN")]);
    let token = home.ok(&["ask", "hello"]);
    for token in [token.trim(), "never-given"] {
        for args in [
            &["sessions", "list", "--json"][..],
            &["tools", "call", "sessions_list", "--json"],
            &["tools", "list", "--json"],
            &["runs", "list", "--json"],
            &["subagent", "spawn", "x", "--json"],
            &["subagent", "list", "--json"],
            &["sessions", "send", "main", "x", "--json"],
        ] {
            let before = kinds(&home);
            let mut command = home.command(args);
            command.env("ANNALS_TOKEN", token);
            let ran = Ran::of(command);
            assert_eq!(ran.code, Some(5), "{args:?}: {ran:#?}");
            assert!(ran.stdout.contains("\"token_ended\""), "{args:?}: {ran:#?}");
            assert_eq!(kinds(&home), before, "{args:?}");
        }
    }
}

/// Goal: a spawned child has no session tools unless the settings give it some, whatever verb they come by. Method: a child
/// that lists, spawns and waits, under both.
#[test]
fn children_have_the_tools_of_children() {
    let script = "$A sessions list >/dev/null; echo $?; $A subagent spawn x; echo $?; $A runs list; echo $?; \
                  $A subagent list >/dev/null; echo $?; $A tools list -o json | grep -o '\"name\":' | wc -l";
    for (settings, said) in [
        (json!({}), "5\n5\n5\n5\n0"),
        (json!({"tools": {"subagents": {"tools": {"allow": ["sessions_list"]}}}}), "0\n5\n5\n0\n1"),
    ] {
        let home = Home::new();
        scripts(&home, &settings, &[("main", script)]);
        let result = home.json(&["subagent", "spawn", "look", "--sync", "--json"]);
        assert_eq!(result["output"], said, "{result}");
        let denied = home.json_lines(&["export", "--type", "access.denied"]);
        assert!(denied.iter().all(|event| event["data"]["reason"] == "tool_not_allowed"));
        assert!(denied.len() >= 2, "{denied:?}");
    }
}

/// Goal: a run ends what it has asked for itself and nothing else. Method: an agent with the runs of two children, of which
/// one is the operator's.
#[test]
fn runs_of_its_own() {
    let home = Home::new();
    scripts(
        &home,
        &json!({}),
        &[(
            "main",
            "id=$($A sessions spawn x --no-worker --json | sed 's/.*\"runId\":\"\\([^\"]*\\).*/\\1/'); \
                 $A runs kill $id | cut -d' ' -f2-; $A runs kill $(cat other); echo $?; $A runs wait $id -o jsonl | grep -c killed",
        )],
    );
    let other = home.json(&["sessions", "spawn", "of the operator", "--no-worker", "--json"]);
    let other = other["runId"].as_str().expect("an id");
    write(home.path().join("other"), other);
    assert_eq!(home.ok(&["ask", "hello", "--key", "main"]), "killed\n3\n1\n");
    let shown = home.json(&["runs", "show", other, "--json"]);
    assert_ne!(shown["run"]["state"], "killed", "{shown}");
}

/// Goal: what a run asks for is done by a worker that is not part of the run: neither while the run waits for it nor when it
/// ends is it cut off. Method: an agent that sends to another and spawns a third, whose work goes on behind its end.
#[test]
fn workers_are_the_operators() {
    let home = Home::new();
    home.push("cli", "desk", "hello");
    let waits = fifo(&home, "go");
    let script = format!(
        "case $ANNALS_SESSION_KEY in *subagent*) cat {waits}; echo counted;; cli:desk) echo from the desk;; \
         *) $A sessions spawn count --json | sed 's/.*\"runId\":\"\\([^\"]*\\).*/\\1/'; \
         $A sessions send cli:desk 'And?' --timeout 60;; esac"
    );
    let settings = json!({"tools": {"sessions": {"visibility": "agent"}},
        "session": {"agentToAgent": {"maxPingPongTurns": 0}}});
    scripts(&home, &settings, &[("main", &script)]);
    let said = home.ok(&["ask", "hello", "--key", "main"]);
    let (child, reply) = said.split_once('\n').expect("two lines");
    assert_eq!(reply, "from the desk\n");
    let shown = home.json(&["runs", "show", child, "--json"]);
    assert_eq!(shown["run"]["open"], true, "{shown}");
    write(&waits, "");
    let waited = home.json(&["runs", "wait", child, "--timeout", "60", "--json"]);
    assert_eq!(
        (&waited["runs"][0]["status"], &waited["runs"][0]["reply"]),
        (&"ok".into(), &"counted".into())
    );
}
