//! `session` verbs beside the push: contexts, parts, resets, patches, what time changes.

use annals_engine::clock::{Clock, SystemClock};

use crate::support::{Home, Ran, append, snapshot, write};

fn config(home: &Home, text: &str) {
    write(home.path().join(".config/annals/annals.json5"), text);
}

/// A chat whose only turn from outside is years old.
fn old_chat(home: &Home) -> String {
    let id = home.push("telegram", "7", "hello")["sessionId"].as_str().expect("an id").to_owned();
    append(
        &home.store(),
        "telegram:8",
        "session.opened",
        "{'at':'2020-05-01T22:00:00.000000Z','sessionId':'old','kind':'other','agentId':'main','channel':'telegram','chatId':'8','spawnDepth':0}",
    );
    append(
        &home.store(),
        "telegram:8",
        "turn",
        "{'at':'2020-05-01T23:00:00.000000Z','sessionId':'old','role':'user','from':'external','content':'long ago'}",
    );
    id
}

/// Goal: a context is what the last turns said, within the limits, and asking for it changes no byte. Method: 41 turns
/// by the default of 40; fewer turns and characters; the files before and after.
#[test]
fn contexts() {
    let home = Home::new();
    for n in 0..41 {
        home.push("cli", "default", &format!("turn {n}"));
    }
    let files = || home.ok(&["export", "-o", "raw"]);
    let before = files();
    let text = home.ok(&["session", "context", "cli", "default"]);
    assert!(text.starts_with("user: turn 1\n\nuser: turn 2\n"), "{text}");
    assert!(text.ends_with("\n\nuser: turn 40\n"), "{text}");
    assert_eq!(text.matches("user: ").count(), 40);
    let ran = home.run(&["session", "context", "cli", "default"]);
    assert!(ran.stderr.contains("trimmed: 1 turn before these"), "{ran:#?}");
    let all = home.json(&["session", "context", "cli", "default", "--json"]);
    assert_eq!((&all["turns"], &all["trimmed"]["turns"]), (&40.into(), &1.into()), "{all}");
    let few = home.ok(&["session", "context", "cli", "default", "--turns", "2"]);
    assert_eq!(few, "user: turn 39\n\nuser: turn 40\n");
    let short = home.ok(&["session", "context", "cli", "default", "--limit-chars", "28"]);
    assert_eq!(short, "user: turn 39\n\nuser: turn 40\n");
    let shorter = home.ok(&["session", "context", "cli", "default", "--limit-chars", "27"]);
    assert_eq!(shorter, "user: turn 40\n");
    let shorter = ["session", "context", "cli", "default", "--limit-chars", "9"];
    assert_eq!(home.ok(&shorter), "user: […]\n");
    let ran = home.run(&shorter);
    assert!(ran.stderr.contains("39 messages left out"), "{ran:#?}");
    assert!(ran.stderr.contains("4 characters left out"), "{ran:#?}");
    let shorter = home.json(&[&shorter[..], &["--json"]].concat());
    let of = |field: &str| shorter[field].as_u64().expect("a number");
    assert_eq!((of("turns"), of("leftOut"), of("shortened")), (1, 39, 4), "{shorter}");
    let most = usize::MAX.to_string();
    let whole = home.ok(&["session", "context", "cli", "default", "--limit-chars", &most]);
    assert_eq!(whole, text);
    let mut command = home.command(&["session", "context", "cli", "default"]);
    command.env("MESSAGE_SESSION_MAX_TURNS", "3");
    let ran = crate::support::Ran::of(command);
    assert_eq!(ran.stdout.matches("user: ").count(), 3, "{ran:#?}");
    assert_eq!(files(), before);
    home.fails(&["session", "context", "cli", "other"], 3, "not_found");
}

/// Goal: a reset keeps everything: the earlier part is listed under the key, readable by its id, and can be made current
/// again. Method: there and back.
#[test]
fn parts() {
    let home = Home::new();
    let first = home.push("telegram", "7", "one")["sessionId"].as_str().expect("an id").to_owned();
    let reset = home.json(&["session", "reset", "telegram", "7", "--json"]);
    assert_eq!(reset["changed"], true);
    let second = home.push("telegram", "7", "two")["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(reset["sessionId"].as_str(), Some(second.as_str()));
    let history = home.json(&["sessions", "history", "telegram:7", "--json"]);
    assert_eq!(history["messages"][0]["content"], "two");
    assert_eq!(history["otherParts"][0], first.as_str());
    let old = home.json(&["sessions", "history", &first, "--json"]);
    assert_eq!(old["messages"][0]["content"], "one");
    assert!(home.ok(&["session", "resume", "telegram", "7"]).contains("two"));
    let back = home.ok(&["session", "resume", "telegram", "7", "--part", &first]);
    assert!(back.contains("resumed") && back.contains("one"), "{back}");
    assert_eq!(home.push("telegram", "7", "three")["sessionId"], first.as_str());
    let so = home.ok(&["session", "resume", "telegram", "7", "--part", &first]);
    assert!(so.contains("is so already"), "{so}");
    home.fails(&["session", "resume", "telegram", "7", "--part", "nope"], 3, "not_found");
    let shared: String =
        first.chars().zip(second.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    assert!(shared.len() >= 4, "both ids begin with the same hour");
    let ambiguous = ["session", "resume", "telegram", "7", "--part", &shared];
    let answer = home.fails(&ambiguous, 2, "ambiguous");
    let message = answer["error"]["message"].as_str().expect("text");
    assert!(message.contains(&first) && message.contains(&second), "{message}");
    let part = |name: &str| {
        append(
            &home.store(),
            "cli:parts",
            "session.opened",
            &format!(
                "{{'sessionId':'{name}','kind':'other','agentId':'main','channel':'cli','chatId':'parts','spawnDepth':0}}"
            ),
        );
        append(
            &home.store(),
            "cli:parts",
            "turn",
            &format!(
                "{{'sessionId':'{name}','role':'user','from':'external','content':'in {name}'}}"
            ),
        );
    };
    part("day");
    let reset = "{'sessionId':'day-two','previousSessionId':'day','reason':'manual','effectiveAt':'2026-04-01T00:00:00.000000Z'}";
    append(&home.store(), "cli:parts", "session.reset", reset);
    let of = |name| home.ok(&["session", "context", "cli", "parts", "--part", name]);
    assert_eq!(of("day"), "user: in day\n", "the id, although another begins so");
    assert_eq!(of("day-"), "");
    let short = ["session", "context", "cli", "parts", "--part", "da"];
    home.fails(&short, 3, "not_found");
    home.fails(&["session", "reset", "telegram", "9"], 3, "not_found");
    let empty = Home::new();
    empty.fails(&["session", "reset", "telegram", "9"], 3, "not_found");
    assert!(!empty.store().exists(), "a reset makes no store");
}

/// Goal: where all share one bucket, `main` is that one for every verb that reads, also when the agent has a bucket of its
/// own. Method: both side by side.
#[test]
fn the_bucket_of_all() {
    let home = Home::new();
    for (key, said) in [("agent:main:main", "of the agent"), ("global", "of all")] {
        let opened = "{'sessionId':'s','kind':'main','agentId':'main','spawnDepth':0}";
        append(&home.store(), key, "session.opened", &opened.replace("'s'", &format!("'{key}'")));
        let turn =
            format!("{{'sessionId':'{key}','role':'user','from':'external','content':'{said}'}}");
        append(&home.store(), key, "turn", &turn);
    }
    let said = |key| {
        let history = home.json(&["sessions", "history", key, "--json"]);
        history["messages"][0]["content"].as_str().expect("text").to_owned()
    };
    assert_eq!(said("main"), "of the agent");
    config(&home, "{ session: { scope: 'global' } }");
    assert_eq!(said("main"), "of all");
    assert_eq!(said("agent:main:main"), "of the agent");
}

/// Goal: a turn or a change that is stored is answered, whatever becomes of the upkeep behind it. Method: a log that may
/// grow by a turn but not by the archiving of 60 sessions.
#[test]
#[cfg(target_os = "linux")]
fn upkeep_that_fails_is_a_note() {
    let home = Home::new();
    for n in 0..60 {
        home.push("cli", &format!("{n}"), "hi");
    }
    config(&home, "{ session: { maintenance: { mode: 'enforce', maxEntries: 1 } } }");
    let cramped = |args: &[&str]| {
        let sizes = snapshot(&home.store()).into_iter().map(|(_, bytes)| bytes.len());
        let blocks = (sizes.max().unwrap_or(0) / 512 + 8).to_string();
        let script = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
        let program = env!("CARGO_BIN_EXE_annals");
        let args = [&["-c", script, &blocks, program][..], args, &["--json"]].concat();
        let ran = Ran::of(home.other("/bin/sh", &args));
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.stderr.contains("note: what time and the limits archive"), "{ran:#?}");
        let answer = ran.stdout.lines().next().expect("a line");
        serde_json::from_str::<serde_json::Value>(answer).expect("JSON")
    };
    let pushed = cramped(&["session", "push", "cli", "new", "user", "hello"]);
    assert_eq!((&pushed["ok"], &pushed["opened"]), (&true.into(), &true.into()));
    let patched = cramped(&["session", "patch", "cli", "new", "label=x"]);
    assert_eq!((&patched["ok"], &patched["changed"]), (&true.into(), &true.into()));
    home.ok(&["session", "patch", "cli", "new", "label=y"]);
    assert_eq!(home.json(&["session", "status", "--json"])["archived"], 60);
}

/// Goal: fields are set one by one and taken back, what is wrong is refused, and an override outlives a reset. Method:
/// good and bad patches, the row after each.
#[test]
fn patches() {
    let home = Home::new();
    home.push("telegram", "7", "one");
    let row = || home.json(&["session", "list", "--json"])["sessions"][0].clone();
    home.ok(&["session", "patch", "telegram", "7", "sendPolicy=DENY", "label=night shift"]);
    assert_eq!((&row()["sendPolicy"], &row()["label"]), (&"deny".into(), &"night shift".into()));
    home.ok(&["session", "reset", "telegram", "7"]);
    assert_eq!(row()["sendPolicy"], "deny");
    let same = home.json(&["session", "patch", "telegram", "7", "sendPolicy=deny", "--json"]);
    assert_eq!(same["changed"], false);
    home.ok(&["session", "patch", "telegram", "7", "sendPolicy=null", "thinkingLevel=off"]);
    assert_eq!((&row()["sendPolicy"], &row()["thinkingLevel"]), (&().into(), &"off".into()));
    home.fails(&["session", "patch", "telegram", "7", "sendPolicy=ask"], 2, "invalid_input");
    home.fails(&["session", "patch", "telegram", "7", "turns=3"], 2, "invalid_input");
    home.fails(&["session", "patch", "telegram", "7", "label"], 2, "usage");
}

/// Goal: an owner's command is obeyed and stored as no turn. Method: each from the command line.
#[test]
fn commands() {
    let home = Home::new();
    home.push("cli", "default", "hello");
    let off = home.push("cli", "default", "/send off");
    assert_eq!(off["command"], "/send off");
    let new = home.push("cli", "default", "/new");
    assert_eq!((&new["command"], &new["reset"]), (&"/reset".into(), &"manual".into()));
    let row = home.json(&["session", "list", "--json"])["sessions"][0].clone();
    assert_eq!((&row["turns"], &row["parts"]), (&0.into(), &2.into()));
    assert_eq!(row["sendPolicy"], "deny");
    let said = home.json_lines(&["export", "--type", "turn"]);
    assert_eq!(said.len(), 1, "{said:?}");
}

/// Goal: with nothing configured no session ever expires. Method: a chat of years ago.
#[test]
fn nothing_expires_by_itself() {
    let home = Home::new();
    old_chat(&home);
    let rows = home.json(&["session", "list", "--json"])["sessions"].clone();
    assert!(rows.as_array().expect("rows").iter().all(|row| row["status"] == "idle"), "{rows}");
    assert_eq!(home.ok(&["session", "context", "telegram", "8"]), "user: long ago\n");
    let next = home.push("telegram", "8", "again");
    assert_eq!((&next["sessionId"], &next["reset"]), (&"old".into(), &().into()));
}

/// Goal: from the boundary on every view shows the session as expired, and the next human turn begins another part with
/// that moment as its effective time, once. Method: a daily rule in a zone that is not the host's, over a chat that
/// nobody wrote in since 2020; an answer and two pushes.
#[test]
fn an_expired_session() {
    let home = Home::new();
    old_chat(&home);
    config(
        &home,
        "{ session: { reset: { mode: 'daily', atHour: 4, timeZone: 'Asia/Shanghai' } } }",
    );
    let rows = home.json(&["session", "list", "--json"])["sessions"].clone();
    let row = rows.as_array().expect("rows").iter().find(|row| row["key"] == "telegram:8");
    // 04:00 in Shanghai on the day after 23:00Z is 20:00Z.
    let boundary = 1_588_449_600_000_i64;
    let row = row.expect("the old chat");
    assert_eq!((&row["status"], &row["expiredAt"]), (&"expired".into(), &boundary.into()));
    let ran = home.run(&["session", "context", "telegram", "8"]);
    assert_eq!(ran.stdout, "", "{ran:#?}");
    assert!(ran.stderr.contains("expired at 2020-05-02T20:00:00"), "{ran:#?}");
    let status = home.ok(&["session", "status", "telegram", "8"]);
    assert!(status.contains("daily at 4:00 Asia/Shanghai"), "{status}");
    let answer =
        home.json(&["session", "push", "telegram", "8", "assistant", "an answer", "--json"]);
    assert_eq!(answer["sessionId"], "old");
    let next = home.push("telegram", "8", "again");
    assert_eq!(next["reset"], "daily");
    assert_ne!(next["sessionId"], "old");
    let more = home.push("telegram", "8", "and again");
    assert_eq!((&more["sessionId"], &more["reset"]), (&next["sessionId"], &().into()));
    let resets = home.json_lines(&["export", "--type", "session.reset"]);
    assert_eq!(resets.len(), 1);
    let data = &resets[0]["data"];
    assert_eq!(data["effectiveAt"], "2020-05-02T20:00:00.000000Z");
    assert_eq!(data["rule"]["timeZone"], "Asia/Shanghai");
    let whole = home.ok(&["sessions", "history", "telegram:8", "--all-parts"]);
    assert!(whole.contains("long ago") && whole.contains("and again"), "{whole}");
}

/// Goal: a reset that waits for a run is told with the run, the session goes on meanwhile, and what a context leaves out is
/// told too. Method: a turn of an hour and a half ago under an idle time of one hour, a run that has not ended; a limit of
/// two turns.
#[test]
fn a_reset_that_waits() {
    let home = Home::new();
    config(&home, "{ session: { maxTurns: 2, reset: { mode: 'idle', idleMinutes: 60 } } }");
    let long_ago = SystemClock.now().minus(std::time::Duration::from_secs(90 * 60));
    let event = |stream: &str, kind: &str, data: &str| append(&home.store(), stream, kind, data);
    event(
        "cli:a",
        "session.opened",
        &format!(
            "{{'at':'{long_ago}','sessionId':'p','kind':'other','agentId':'main','spawnDepth':0}}"
        ),
    );
    for n in 0..3 {
        event(
            "cli:a",
            "turn",
            &format!(
                "{{'at':'{long_ago}','sessionId':'p','role':'user','from':'external','content':'{n}'}}"
            ),
        );
    }
    let run = "{'runId':'r7','sessionKey':'cli:a','sessionId':'p','kind':'ask','agentId':'main','chainId':'x','hop':0,'timeoutSeconds':0,'deliver':false}";
    event("run:r7", "run.requested", run);
    assert!(home.ok(&["session", "status"]).contains("cli:a: reset deferred by run r7\n"));
    let one = home.ok(&["session", "status", "cli", "a"]);
    assert!(one.contains("reset deferred by run r7\n"), "{one}");
    assert!(one.contains("turns     3, 1 of them left out of the context\n"), "{one}");
    let context = home.json(&["session", "context", "cli", "a", "--json"]);
    assert_eq!((&context["turns"], &context["trimmed"]["turns"]), (&2.into(), &1.into()));
    assert_eq!(home.push("cli", "a", "more")["sessionId"], "p");
    event("run:r7", "run.finished", "{'runId':'r7','status':'ok','runtimeMs':1}");
    assert!(!home.ok(&["session", "status"]).contains("deferred"));
    assert_eq!(home.push("cli", "a", "and more")["sessionId"], "p");
}

/// Goal: an archived session leaves the lists, stays readable, and comes back with its next turn. Method: all three.
#[test]
fn archived() {
    let home = Home::new();
    home.push("cli", "a", "one");
    home.ok(&["session", "archive", "cli", "a"]);
    let keys = |args: &[&str]| home.json(args)["sessions"].as_array().expect("rows").len();
    assert_eq!(keys(&["session", "list", "--json"]), 0);
    assert_eq!(keys(&["session", "list", "--archived", "--json"]), 1);
    assert!(home.ok(&["sessions", "history", "cli:a"]).contains("one"));
    home.push("cli", "a", "two");
    assert_eq!(keys(&["session", "list", "--json"]), 1);
}

/// Goal: the two status verbs count what there is. Method: chats and a child that runs.
#[test]
fn statuses() {
    let home = Home::new();
    home.push("cli", "a", "one");
    home.push("telegram", "7", "two");
    let child = "agent:main:subagent:c";
    append(
        &home.store(),
        child,
        "session.opened",
        "{'sessionId':'c','kind':'other','agentId':'main','parentKey':'cli:a','spawnDepth':1}",
    );
    append(
        &home.store(),
        "run:r",
        "run.requested",
        "{'runId':'r','sessionKey':'agent:main:subagent:c','sessionId':'c','kind':'spawn','agentId':'main','chainId':'x','hop':0,'timeoutSeconds':0,'deliver':false}",
    );
    let beat = home.json(&["heartbeat", "status", "--json"]);
    assert_eq!(beat["channelSessions"]["total"], 2);
    assert_eq!(
        (&beat["subagents"]["total"], &beat["subagents"]["waiting"]),
        (&1.into(), &1.into())
    );
    assert!(
        home.ok(&["heartbeat", "status"]).contains("sub-agents        1: 0 running, 1 waiting")
    );
    let status = home.json(&["session", "status", "--json"]);
    assert_eq!((&status["sessions"], &status["channelSessions"]), (&3.into(), &2.into()));
    assert_eq!((&status["enabled"], &status["maxTurns"]), (&true.into(), &40.into()));
    assert!(home.ok(&["session", "status"]).contains("reset             never"));
    let list = home.json(&["session", "list", "--json"]);
    assert_eq!(list["total"], 2);
}

/// Goal: a search finds a word right after its append, in any script, and says where. Method: pushes and searches, good
/// and bad.
#[test]
fn searches() {
    let home = Home::new();
    home.push("cli", "a", "the ontology of birds");
    home.push("telegram", "7", "今天的天气怎么样");
    let found = home.json(&["sessions", "search", "ONTOLOGY", "--json"]);
    let hit = &found["results"][0];
    assert_eq!((&hit["key"], &hit["role"]), (&"cli:a".into(), &"user".into()));
    assert_eq!(hit["snippet"], "the ontology of birds");
    assert_eq!(home.json_lines(&["sessions", "search", "天气", "-o", "jsonl"]).len(), 1);
    let text = home.ok(&["sessions", "search", "birds", "ontology"]);
    assert!(text.contains("cli:a") && text.contains("the ontology of birds"), "{text}");
    let none = home.run(&["sessions", "search", "birds", "--session", "telegram:7"]);
    assert_eq!(
        (none.code, none.stderr.contains("nothing was found")),
        (Some(0), true),
        "{none:#?}"
    );
    home.fails(&["sessions", "search", "x", "--session", "telegram:8"], 3, "not_found");
    home.fails(&["sessions", "search", "x", "--since", "someday"], 2, "usage");
    home.fails(&["sessions", "search", " "], 2, "invalid_input");
}

/// Goal: the tools of agents can be called from a shell, as the operator and as a session that sees what it may and has
/// the tools that it has. Method: a child and a stranger; both callers, the child with tools and without; wrong names and
/// arguments.
#[test]
fn tools_from_a_shell() {
    let home = Home::new();
    home.push("cli", "a", "of the stranger");
    let child = "agent:main:subagent:c";
    append(
        &home.store(),
        child,
        "session.opened",
        "{'sessionId':'c','kind':'other','agentId':'main','spawnDepth':1}",
    );
    let all = home.json(&["tools", "call", "sessions_list", "{}"]);
    assert_eq!((&all["total"], &all["visibility"]), (&2.into(), &().into()), "{all}");
    home.fails(&["tools", "call", "sessions_list", "--as", child], 5, "refused");
    config(
        &home,
        "{ tools: { subagents: { tools: { allow: ['sessions_list', 'sessions_history'] } } } }",
    );
    let own = home.json(&["tools", "call", "sessions_list", "--as", child]);
    assert_eq!((&own["total"], &own["visibility"]["mode"]), (&1.into(), &"tree".into()), "{own}");
    let read = |key: &str| format!("{{\"sessionKey\":\"{key}\"}}");
    home.fails(
        &["tools", "call", "sessions_history", &read("cli:a"), "--as", child],
        3,
        "not_found",
    );
    let denied = home.json_lines(&["export", "--type", "access.denied"]);
    assert_eq!((denied.len(), &denied[1]["data"]["target"]), (2, &"cli:a".into()));
    home.fails(&["tools", "call", "sessions_lost"], 3, "not_found");
    home.fails(&["tools", "call", "sessions_list", "{\"kind\":1}"], 2, "invalid_input");
    home.fails(&["tools", "call", "sessions_list", "{"], 2, "usage");
    assert!(home.ok(&["tools", "list"]).contains("sessions_search"));
    let tools = home.json(&["tools", "list", "--json"]);
    assert_eq!(tools["tools"][0]["inputSchema"]["type"], "object");
}

/// Goal: what cannot be searched because it is lost is told. Method: a text that lies apart, found and then removed.
#[test]
fn losses_are_told() {
    let home = Home::new();
    let large = format!("{}needle", "x".repeat(2 << 20));
    let mut child = home
        .command(&["session", "push", "cli", "a", "user", "-"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), large.as_bytes())
        .expect("the text is read");
    assert_eq!(crate::support::Ran::end(child).code, Some(0));
    let found = home.json(&["sessions", "search", "needle", "--json"]);
    assert_eq!(
        (found["results"].as_array().map(Vec::len), &found["damaged"]),
        (Some(1), &false.into())
    );
    crate::support::remove_below(&home.store().join("blobs"));
    let lost = home.json(&["sessions", "search", "needle", "--json"]);
    assert_eq!(
        (lost["results"].as_array().map(Vec::len), &lost["damaged"]),
        (Some(0), &true.into())
    );
}

/// Goal: what a run's context left out is shown as its event says. Method: a part over the limit, and such an event.
#[test]
fn what_the_last_run_left_out() {
    let home = Home::new();
    for n in 0..3 {
        home.push("cli", "a", &format!("turn {n}"));
    }
    config(&home, "{ session: { maxTurns: 2 } }");
    let status = || home.json(&["session", "status", "cli", "a", "--json"]);
    assert!(status()["lastTrimmed"].is_null());
    let part = status()["sessionId"].as_str().expect("an id").to_owned();
    let seq = home.push("cli", "a", "turn 3")["seq"].as_u64().expect("a position");
    let (from, to) = (seq - 3, seq - 2);
    let told = format!("{{'sessionId':'{part}','kept':2,'fromSeq':{from},'toSeq':{to}}}");
    append(&home.store(), "cli:a", "session.trimmed", &told);
    assert_eq!(status()["lastTrimmed"]["toSeq"], to);
    let said = format!("the last run had 2 turns and none of #{from} to #{to} (#{})", seq + 1);
    let text = home.ok(&["session", "status", "cli", "a"]);
    assert!(text.contains(&format!("trimmed   {said}\n")), "{text}");
    let ran = home.run(&["session", "context", "cli", "a"]);
    assert!(ran.stderr.contains(&said), "{ran:#?}");
    let context = home.json(&["session", "context", "cli", "a", "--json"]);
    assert_eq!(context["lastTrimmed"]["kept"], 2);
}
