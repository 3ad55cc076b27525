//! `doctor`: what would keep annals from its work, told with what to do.

use crate::support::{Home, append, snapshot, write};

fn told(home: &Home, exit: i32) -> Vec<(String, String)> {
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(exit), "{}{}", ran.stdout, ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("json");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let checks = answer["checks"].as_array().expect("checks");
    checks.iter().map(|check| (text(&check["what"]), text(&check["result"]))).collect()
}

fn pairs(told: &[(String, String)]) -> Vec<(&str, &str)> {
    told.iter().map(|(what, result)| (what.as_str(), result.as_str())).collect()
}

/// Goal: a new machine has nothing wrong, and each note says what comes next. Method: an empty home.
#[test]
fn nothing_yet() {
    let home = Home::new();
    let told = told(&home, 0);
    let expect = [
        ("settings", "note"),
        ("store", "note"),
        ("agents", "note"),
        ("http", "well"),
        ("transcripts", "well"),
    ];
    assert_eq!(pairs(&told), expect);
    let text = home.ok(&["doctor"]);
    for hint in ["annals config init", "annals quickstart", "preset: \"claude\""] {
        assert!(text.contains(hint), "{hint}: {text}");
    }
    assert!(!home.store().exists(), "it makes nothing");
}

/// Goal: an agent whose program is absent, a run of a dead worker and damage are each wrong, and nothing is changed by
/// looking. Method: one of each; a program that is there.
#[test]
fn wrong() {
    let home = Home::new();
    let store = home.store();
    home.push("cli", "a", "hello");
    let config = "{agents: {list: [{id: 'a', run: {command: '/bin/sh'}}, {id: 'b', run: {command: 'no-such-program-1'}}]}}";
    write(home.path().join(".config/annals/annals.json5"), config);
    let run = "{'runId':'r','sessionKey':'cli:a','sessionId':'s','kind':'ask','agentId':'a','chainId':'c','hop':0,\
               'timeoutSeconds':0,'deliver':false}";
    append(&store, "run:r", "run.requested", run);
    let claim = "{'runId':'r','worker':'w','pid':1,'processStart':'0','bootId':'none','host':'h',\
                 'leaseUntil':'2026-04-01T00:00:00.000000Z'}";
    append(&store, "run:r", "run.claimed", claim);
    let before = snapshot(&store);
    let found = told(&home, 1);
    let expect = [
        ("settings", "well"),
        ("store", "well"),
        ("runs", "wrong"),
        ("agent", "well"),
        ("agent", "wrong"),
        ("http", "well"),
        ("transcripts", "well"),
    ];
    assert_eq!(pairs(&found), expect);
    assert!(snapshot(&store) == before, "looking changed something");
    write(home.path().join(".config/annals/annals.json5"), "{agents: [");
    assert_eq!(pairs(&told(&home, 1))[0], ("settings", "wrong"));
}

/// Goal: whether a worker lives is the worker's own rule: on another machine its lease tells, on this one its boot and its
/// process. Method: a claim of another machine that still stands, and one that does not; one of an earlier boot here.
#[test]
fn claims_of_other_machines() {
    let here = rustix::system::uname().nodename().to_str().expect("UTF-8").to_owned();
    for (host, until, result) in [
        ("another", "2999-01-01", "well"),
        ("another", "2026-01-01", "wrong"),
        (here.as_str(), "2999-01-01", "wrong"),
    ] {
        let home = Home::new();
        home.push("cli", "a", "hello");
        let run = "{'runId':'r','sessionKey':'cli:a','sessionId':'s','kind':'ask','agentId':'a','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}";
        append(&home.store(), "run:r", "run.requested", run);
        let claim = format!(
            "{{'runId':'r','worker':'w','pid':1,'processStart':'0','bootId':'none','host':'{host}','leaseUntil':'{until}T00:00:00.000000Z'}}"
        );
        append(&home.store(), "run:r", "run.claimed", &claim);
        let exit = i32::from(result == "wrong");
        let told = told(&home, exit);
        assert!(pairs(&told).contains(&("runs", result)), "{host} {until}: {told:?}");
    }
}

/// Goal: a sink that nothing could go out by is wrong before anything is lost by it. Method: a program and a file that are
/// there; a program, a folder that are not; a folder in the place of a file; an address, which is not tried.
#[test]
fn sinks() {
    let home = Home::new();
    let sinks = "{sinks: {a: {type: 'exec', command: '/bin/sh'}, b: {type: 'exec', command: 'no-such-program-1'},
        c: {type: 'file', path: 'out.jsonl'}, d: {type: 'file', path: 'nowhere/out.jsonl'},
        e: {type: 'file', path: '.'}, f: {type: 'http', url: 'http://127.0.0.1:1/'}}}";
    write(home.path().join(".config/annals/annals.json5"), sinks);
    let ran = home.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let checks = answer["checks"].as_array().expect("checks");
    let found: Vec<(&str, &str)> = checks
        .iter()
        .filter(|check| check["what"] == "sink")
        .map(|check| (check["result"].as_str().expect("a"), check["found"].as_str().expect("b")))
        .collect();
    let results: Vec<&str> = found.iter().map(|(result, _)| *result).collect();
    assert_eq!(results, ["well", "wrong", "well", "wrong", "wrong", "well"], "{found:?}");
    for (at, words) in [(1, "no-such-program-1"), (3, "there is no folder"), (4, "is a folder")] {
        assert!(found[at].1.contains(words), "{found:?}");
    }
    let folder = home.path().join(".config/annals");
    assert!(!folder.join("out.jsonl").exists(), "looking made a file");
}

/// Goal: what `serve` would not begin with is wrong here too, in the words that it would say. Method: a configuration of each
/// sort; where it is no address, `serve` is asked as well.
#[test]
fn what_serve_refuses() {
    for (config, what, words) in [
        ("{http: {token: 'short'}}", "http", "http.token"),
        (
            "{http: {token: '0123456789abcdef', tokens: {a: {token: '0123456789abcdef', session: 'cli:a'}}}}",
            "http",
            "another caller",
        ),
        ("{http: {address: 'nonsense'}}", "http", "nonsense"),
        ("{webhook: {enabled: true}}", "http", "anybody could call it"),
        ("{watch: [{name: 'n', paths: ['x'], agent: 'nobody'}]}", "settings", "nobody"),
        ("{watch: [{name: 'n', paths: ['x'], prompt: '{pth}'}]}", "settings", "{pth}"),
    ] {
        let home = Home::new();
        write(home.path().join(".config/annals/annals.json5"), config);
        let ran = home.run(&["doctor", "--json"]);
        assert_eq!(ran.code, Some(1), "{config}: {ran:#?}");
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let checks = answer["checks"].as_array().expect("checks");
        let wrong: Vec<_> = checks.iter().filter(|check| check["result"] == "wrong").collect();
        assert!(wrong.len() == 1 && wrong[0]["what"] == what, "{config}: {wrong:?}");
        let found = wrong[0]["found"].as_str().expect("text");
        assert!(found.contains(words), "{config}: {found}");
        let serve = home.run(&["serve"]);
        assert_ne!(serve.code, Some(0), "{config}: {serve:#?}");
        assert!(serve.stderr.contains(words), "{config}: {serve:#?}");
    }
}

/// Goal: a rule that is stopped is wrong, one that was to be notified and is not a note, each with what helps. Method: a log
/// that tells so of two rules of three.
#[test]
fn rules() {
    let home = Home::new();
    home.push("cli", "a", "hello");
    let rules = "{watch: [{name: 'a', paths: ['x']}, {name: 'b', paths: ['y']}, {name: 'c', paths: ['z']}]}";
    write(home.path().join(".config/annals/annals.json5"), rules);
    append(&home.store(), "watch:a", "watch.stopped", "{'rule':'a','reason':'loop'}");
    append(&home.store(), "watch:b", "watch.degraded", "{'rule':'b','reason':'limit'}");
    let found = told(&home, 1);
    let rules: Vec<&str> =
        pairs(&found).into_iter().filter(|(what, _)| *what == "rule").map(|(_, is)| is).collect();
    assert_eq!(rules, ["wrong", "note", "well"]);
    let text = home.run(&["doctor"]).stdout;
    for words in ["a is stopped: loop", "annals watch --reset a", "limit", "fs.inotify"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
