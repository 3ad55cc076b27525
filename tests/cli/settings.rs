//! Settings: where they come from, what is wrong with them, and that nothing secret is shown.

use crate::support::{Home, Ran, write};

fn config(home: &Home, text: &str) {
    write(home.path().join(".config/annals/annals.json5"), text);
}

fn with(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = home.command(args);
    command.envs(variables.iter().copied());
    Ran::of(command)
}

/// Goal: every value is shown with its origin, and a secret is not shown. Method: a file and the environment.
#[test]
fn origins() {
    let home = Home::new();
    config(&home, "{ session: { maxTurns: 7 }, webhook: { token: 'hush-hush' } }");
    let args = ["config", "show", "--json"];
    let ran = with(&home, &args, &[("HERMES_SESSION_CHANNEL", "matrix")]);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let of = |path: &str| {
        let all = answer["settings"].as_array().expect("a list");
        let found = all.iter().find(|setting| setting["path"] == path).expect("the setting");
        format!("{} {}", found["value"], found["origin"])
    };
    assert_eq!(of("session.maxTurns"), r#"7 "file""#);
    assert_eq!(of("session.channel"), r#""matrix" "environment HERMES_SESSION_CHANNEL""#);
    assert_eq!(of("session.chatId"), r#""default" "default""#);
    let text = home.ok(&["config", "show", "--all"]);
    assert!(text.contains("MESSAGE_SESSION_MAX_TURNS") && text.contains("(hidden)"), "{text}");
    assert!(!text.contains("hush") && !ran.stdout.contains("hush"));
    assert_eq!(home.ok(&["config", "get", "session.maxTurns"]), "7\n");
    home.fails(&["config", "get", "webhook.token"], 5, "secret");
    home.fails(&["config", "get", "session.reset.mode"], 3, "not_found");
    home.fails(&["config", "get", "session.maxTurn"], 3, "not_found");
    assert!(home.ok(&["config", "path"]).ends_with(".config/annals/annals.json5\n"));
}

/// Goal: what is wrong in a file is said with its place, and a slip of the pen is only a note. Method: bad JSON5, a bad
/// value, an unknown name, a file that is named and not there.
#[test]
fn wrong_files() {
    let home = Home::new();
    config(&home, "{\n  session: {\n    maxTurns: none\n  }\n}");
    let answer = home.fails(&["session", "status"], 2, "invalid_input");
    assert!(answer["error"]["message"].as_str().expect("text").contains("line 3"), "{answer}");
    config(&home, "{ session: { reset: { mode: 'hourly' } } }");
    let answer = home.fails(&["config", "show"], 2, "invalid_input");
    assert!(answer["error"]["hint"].as_str().expect("text").contains("none, idle, daily"));
    config(&home, "{ session: { maxTurn: 3 } }");
    let ran = home.run(&["config", "show"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stderr.contains("session.maxTurn is not a setting; did you mean maxTurns?"));
    home.fails(&["config", "show", "--config", "/nowhere.json5"], 3, "not_found");
    let ran = with(&home, &["config", "show"], &[("ANNALS_CONFIG", "/nowhere.json5")]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
}

/// Goal: a bad variable is named with what is legal, and an empty one says nothing. Method: one of each.
#[test]
fn variables() {
    let home = Home::new();
    let ran = with(&home, &["config", "show"], &[("MESSAGE_SESSION_MAX_TURNS", "many")]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("MESSAGE_SESSION_MAX_TURNS") && ran.stderr.contains("whole number")
    );
    let args = ["config", "get", "session.maxTurns"];
    let ran = with(&home, &args, &[("MESSAGE_SESSION_MAX_TURNS", "")]);
    assert_eq!(ran.stdout, "40\n", "{ran:#?}");
}

/// Goal: a policy that changes in the file is told in the log before the next turn. Method: a push before, after and
/// again.
#[test]
fn a_policy_file_is_told() {
    let home = Home::new();
    home.push("cli", "a", "one");
    config(&home, "{ session: { sendPolicy: { default: 'deny' } }, owners: ['telegram:42'] }");
    home.push("cli", "a", "two");
    home.push("cli", "a", "three");
    let told = home.json_lines(&["export", "--type", "policy.changed"]);
    let paths: Vec<_> = told.iter().map(|event| event["data"]["path"].as_str()).collect();
    assert_eq!(paths, [Some("session.sendPolicy"), Some("owners")]);
    assert_eq!(told[0]["data"]["new"]["default"], "deny");
    assert_eq!(told[0]["data"]["sha256"].as_str().map(str::len), Some(64));
}

/// Goal: what the command line says is a setting with its origin, and the store's folder is told where nothing names it.
/// Method: the default, the environment, and `--store` over both; a folder in the file, told as the one that is used.
#[test]
fn the_store_in_force() {
    let home = Home::new();
    let told = |args: &[&str], variables: &[(&str, &str)]| {
        let args = [&["config", "get", "store", "--json"][..], args].concat();
        let one = with(&home, &args, variables);
        let one: serde_json::Value = serde_json::from_str(&one.stdout).expect("JSON");
        let shown = with(&home, &[&["config", "show", "--json"], &args[4..]].concat(), variables);
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
        let rows = shown["settings"].as_array().expect("a list").clone();
        let row = rows.into_iter().find(|row| row["path"] == "store").expect("the store");
        assert_eq!((&row["value"], &row["origin"]), (&one["value"], &one["origin"]));
        format!("{} {}", row["value"], row["origin"])
    };
    let default = home.store().display().to_string();
    assert_eq!(told(&[], &[]), format!("\"{default}\" \"default\""));
    let variables = [("ANNALS_HOME", "/elsewhere")];
    assert_eq!(told(&[], &variables), r#""/elsewhere" "environment ANNALS_HOME""#);
    assert_eq!(told(&["--store", "/here"], &variables), r#""/here" "flag""#);
    config(&home, "{ store: 'in/it' }");
    let folder = home.path().join(".config/annals/in/it").display().to_string();
    assert_eq!(told(&[], &[]), format!("\"{folder}\" \"file\""));
}

/// Goal: the store's folder can stand in the file, relative to it. Method: a push, and where it went.
#[test]
fn the_store_of_a_file() {
    let home = Home::new();
    config(&home, "{ store: 'here' }");
    home.push("cli", "a", "one");
    assert!(home.path().join(".config/annals/here/store.json").exists());
}

/// Goal: a row says how large its model's context is, as the settings of its agent say, where nothing else has told.
/// Method: an agent with a size; a session whose own word counts.
#[test]
fn the_size_of_a_context() {
    let home = Home::new();
    home.push("cli", "a", "one");
    config(&home, "{ agents: { list: [{ id: 'main', contextTokens: 200000 }] } }");
    let row = || home.json(&["session", "list", "--json"])["sessions"][0].clone();
    assert_eq!(row()["contextTokens"], 200_000);
    home.ok(&["session", "patch", "cli", "a", "contextTokens=7"]);
    assert_eq!(row()["contextTokens"], 7);
}

/// Goal: a session says whether anything may go out of it, and what says so. Method: a rule for groups of one channel; a
/// chat that it fits, one that it does not, and one with a word of its own.
#[test]
fn what_may_go_out() {
    let home = Home::new();
    let push = |channel: &str, sort: &str| {
        home.ok(&["session", "push", channel, "1", "user", "hi", "--chat-type", sort])
    };
    push("discord", "group");
    push("telegram", "group");
    config(
        &home,
        "{ session: { sendPolicy: { rules: [{ match: { channel: 'discord', chatType: 'group' }, action: 'deny' }] } } }",
    );
    let sending = |channel: &str| {
        let status = home.json(&["session", "status", channel, "1", "--json"]);
        format!("{} {}", status["sending"]["action"], status["sending"]["by"])
    };
    assert_eq!(sending("discord"), r#""deny" "rule 0""#);
    assert_eq!(sending("telegram"), r#""allow" "default""#);
    home.ok(&["session", "patch", "discord", "1", "sendPolicy=allow"]);
    assert_eq!(sending("discord"), r#""allow" "session""#);
    assert!(
        home.ok(&["session", "status", "discord", "1"]).contains("sending   allow (by session)")
    );
}
