//! Secrets in what leaves the log: the audit views and exports mask them, a person's own view of a session does not.

use serde_json::json;

use crate::support::{Home, fake_agent, on_terminal, write};

const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

/// Three turns: one with a token, one with a value that the settings name, one without a secret.
fn home() -> Home {
    let home = Home::new();
    write(
        home.path().join(".config/annals/annals.json5"),
        "{ security: { maskValues: ['hush-hush'], maskEnv: ['OPS_KEY'] } }",
    );
    home.push("cli", "a", &format!("deploy with {TOKEN} now"));
    home.push("cli", "a", "say hush-hush and nothing else");
    home.push("cli", "a", "plain words");
    home
}

/// Goal: no view of the log and no export shows a secret unless it is told to. Method: every view and form, with and
/// without the flag.
#[test]
fn every_view_masks() {
    let home = home();
    let views: [&[&str]; 10] = [
        &["log"],
        &["log", "--json"],
        &["log", "-o", "csv"],
        &["log", "-o", "raw"],
        &["tail"],
        &["tail", "--json"],
        &["export"],
        &["export", "--as", "jsonl"],
        &["export", "--as", "markdown"],
        &["export", "-o", "raw"],
    ];
    for view in views {
        let masked = home.ok(view);
        assert!(!masked.contains(TOKEN) && !masked.contains("hush-hush"), "{view:?}: {masked}");
        assert!(masked.contains("masked:github-token"), "{view:?}: {masked}");
        assert!(masked.contains("masked:value") && masked.contains("plain words"), "{view:?}");
        let whole = home.ok(&[view, &["--no-mask"][..]].concat());
        assert!(whole.contains(TOKEN) || whole.contains("ghp\\_"), "{view:?}: {whole}");
        assert!(!whole.contains("masked:"), "{view:?}: {whole}");
    }
}

/// Goal: no other view of what the log holds shows a secret either, nor does the reply of who is asked from the command
/// line. Method: an agent that says a token in a chat whose name is masked; every view and form, with and without the flag.
#[test]
fn every_view_of_work_masks() {
    let home = Home::new();
    let agent = json!({ "id": "main", "run": { "command": fake_agent(), "args": [format!("say={TOKEN}")] } });
    let config =
        json!({ "agents": { "list": [agent] }, "security": { "maskValues": ["hush-hush"] } });
    write(home.path().join(".config/annals/annals.json5"), config.to_string());
    home.push("cli", "hush-hush", "hello");
    let text = format!("with {TOKEN}");
    let send = ["sessions", "send", "cli:hush-hush", &text, "--timeout", "60"];
    let check = |view: &[&str]| {
        let masked = home.ok(view);
        assert!(!masked.contains(TOKEN) && !masked.contains("hush-hush"), "{view:?}: {masked}");
        assert!(masked.contains("masked:"), "{view:?}: {masked}");
        let whole = home.ok(&[view, &["--no-mask"][..]].concat());
        assert!(whole.contains(TOKEN) || whole.contains("hush-hush"), "{view:?}: {whole}");
        assert!(!whole.contains("masked:"), "{view:?}: {whole}");
    };
    check(&send);
    check(&[&send[..], &["--json"]].concat());
    let runs = home.json(&["runs", "list", "--json"]);
    let run = runs["runs"][0]["runId"].as_str().expect("a run");
    for view in [
        &["runs", "wait", run][..],
        &["runs", "wait", run, "-o", "json"],
        &["runs", "wait", run, "-o", "jsonl"],
        &["runs", "show", run],
        &["runs", "show", run, "--json"],
        &["replay"],
        &["replay", "-o", "json"],
        &["replay", "-o", "jsonl"],
        &["replay", "-o", "csv"],
        &["replay", "--tree", "cli:hush-hush"],
        &["replay", "--tree", "cli:hush-hush", "--json"],
        &["graph"],
        &["graph", "--as", "mermaid"],
        &["graph", "--as", "dot"],
        &["graph", "--json"],
        &["timeline"],
        &["timeline", "--json"],
    ] {
        check(view);
    }
    let narrow = on_terminal(home.command(&["timeline"]), 60).1;
    assert!(!narrow.contains("ghp_") && !narrow.contains("hush"), "{narrow}");
    let narrow = on_terminal(home.command(&["replay", "--tree", "cli:hush-hush"]), 60).1;
    assert!(!narrow.contains("hush"), "{narrow}");
}

/// Goal: what is filtered by is what was said, and the operator reads a session as it is. Method: a search for the secret
/// in the log, which shows the turn masked; the session's history and context.
#[test]
fn a_mask_hides_nothing_from_its_owner() {
    let home = home();
    let found = home.ok(&["log", "-g", "hush-hush"]);
    assert!(found.contains("say [masked:value]") && found.lines().count() == 1, "{found}");
    assert!(home.ok(&["sessions", "history", "cli:a"]).contains(TOKEN));
    assert!(home.ok(&["session", "context", "cli", "a"]).contains("hush-hush"));
}

/// Goal: the value of a variable that is named is masked. Method: the log with the variable set, and without.
#[test]
fn variables() {
    let home = home();
    let mut command = home.command(&["log"]);
    command.env("OPS_KEY", "plain words");
    let ran = crate::support::Ran::of(command);
    assert!(!ran.stdout.contains("plain words"), "{ran:#?}");
    assert!(home.ok(&["log"]).contains("plain words"));
}

/// Goal: an export that was not masked is the whole history for an import, and one that was holds the masks. Method: both
/// into stores of their own.
#[test]
fn exports_and_imports() {
    for (flag, holds) in [(&["--no-mask"][..], TOKEN), (&[], "[masked:github-token]")] {
        let (home, other) = (home(), Home::new());
        let file = other.path().join("all.jsonl");
        write(&file, home.ok(&[&["export", "--as", "jsonl"], flag].concat()));
        other.ok(&["import", &file.display().to_string()]);
        let history = other.ok(&["sessions", "history", "cli:a"]);
        assert!(history.contains(holds), "{history}");
    }
}
