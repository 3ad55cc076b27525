//! The file of settings, written and changed by the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{Home, Ran, write};

fn file(home: &Home) -> PathBuf {
    home.path().join(".config/annals/annals.json5")
}

fn read(home: &Home) -> String {
    fs::read_to_string(file(home)).expect("the file")
}

/// Goal: the file to begin with is one that the program takes without a word, its owner's alone, and a session has an agent
/// then. Method: a dry run, which writes nothing; the file; what is shown.
#[test]
fn a_file_to_begin_with() {
    let home = Home::new();
    let text = home.ok(&["config", "init", "--dry-run"]);
    assert!(!file(&home).exists());
    let said = home.ok(&["config", "init"]);
    assert_eq!(said, format!("wrote {}\n", file(&home).display()));
    assert_eq!(read(&home), text);
    let mode = fs::metadata(file(&home)).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ran = home.run(&["config", "get", "agents.list[0].run.command"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("cat\n", ""));
}

/// Goal: every example of the file is one that works. Method: all of them at once, their strokes taken away.
#[test]
fn every_example_works() {
    let home = Home::new();
    let text = home.ok(&["config", "init", "--dry-run"]);
    let mut examples = 0;
    let lines = text.lines().map(|line| {
        let (before, example) = line.split_once("//").unwrap_or((line, ""));
        if !before.trim().is_empty() || example.is_empty() || example.starts_with(' ') {
            return line.to_owned();
        }
        examples += 1;
        format!("{before}{example}")
    });
    let all: Vec<String> = lines.collect();
    assert!(examples > 12, "{text}");
    write(file(&home), all.join("\n"));
    let ran = home.run(&["config", "show", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:#?}");
    let dialect = home.ok(&["config", "get", "agents.list[2].run.dialect"]);
    assert_eq!(dialect, "codex-jsonl\n");
}

/// Goal: a file that is there is not written over by itself, and not lost when it is. Method: without and with `--yes`.
#[test]
fn what_is_there_is_kept() {
    let home = Home::new();
    write(file(&home), "{ session: { maxTurns: 7 } } // mine");
    home.fails(&["config", "init"], 7, "exists");
    assert_eq!(read(&home), "{ session: { maxTurns: 7 } } // mine");
    let said = home.json(&["config", "init", "--yes", "--json"]);
    let kept = PathBuf::from(said["kept"].as_str().expect("a path"));
    assert_eq!(
        fs::read_to_string(&kept).expect("the copy"),
        "{ session: { maxTurns: 7 } } // mine"
    );
    assert!(read(&home).starts_with("// Settings of annals."));
}

/// Goal: a setting changes in the file with everything else as it stands, and what was and is are told. Method: a file with
/// comments; changes of each sort; a dry run; the file's permissions.
#[test]
fn one_setting() {
    let home = Home::new();
    let text = "{\n  // few\n  session: { maxTurns: 7 }, /* the rest */\n}\n";
    write(file(&home), text);
    fs::set_permissions(file(&home), fs::Permissions::from_mode(0o644)).expect("a mode");
    let set = |path: &str, value: &str| home.ok(&["config", "set", path, value]);
    let at = format!("in {}\n", file(&home).display());
    let dry = home.ok(&["config", "set", "session.maxTurns", "9", "--dry-run"]);
    assert_eq!(dry, format!("session.maxTurns is 7, would be 9\n{at}"));
    assert_eq!(read(&home), text);
    assert_eq!(set("session.maxTurns", "9"), format!("session.maxTurns was 7, is 9\n{at}"));
    assert_eq!(read(&home), text.replace('7', "9"));
    assert_eq!(set("session.maxTurns", "9"), format!("session.maxTurns is 9 already\n{at}"));
    let told = home.json(&["config", "set", "session.maxTurns", "null", "--json"]);
    assert_eq!(
        (&told["was"], &told["is"], &told["changed"]),
        (&9.into(), &().into(), &true.into())
    );
    assert_eq!(home.ok(&["config", "get", "session.maxTurns"]), "40\n");
    assert!(read(&home).contains("// few") && read(&home).contains("/* the rest */"));
    set("owners", "telegram:42, slack:U1");
    assert_eq!(home.ok(&["config", "get", "owners"]), "[\"telegram:42\",\"slack:U1\"]\n");
    let mode = fs::metadata(file(&home)).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let left: Vec<_> = fs::read_dir(file(&home).parent().expect("a folder")).expect("it").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Goal: a setting under which the server does not begin is told as one, and can be set all the same, since another may
/// make it right. Method: a token that is too short; a webhook before its token, and after it.
#[test]
fn what_the_server_will_not_take() {
    let home = Home::new();
    let set = |path: &str, value: &str| {
        let ran = home.run(&["config", "set", path, value]);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        ran.stderr
    };
    let told = set("http.token", "short");
    assert!(told.contains("16 characters") && told.contains("http.token"), "{told}");
    assert!(!told.contains("short"), "{told}");
    assert_eq!(set("http.token", "0123456789abcdef"), "");
    assert!(set("webhook.enabled", "true").contains("webhook.token"));
    assert_eq!(set("webhook.token", "fedcba9876543210"), "");
    assert_eq!(set("session.maxTurns", "9"), "");
}

/// Goal: nothing is written that the program would not take. Method: a path that is none, a value that cannot be, a file
/// that is none; no file at all, which is made.
#[test]
fn refusals() {
    let home = Home::new();
    let args = |path: &'static str, value: &'static str| ["config", "set", path, value];
    let answer = home.fails(&args("session.maxTurn", "3"), 2, "invalid_input");
    assert_eq!(answer["error"]["hint"], "did you mean maxTurns?");
    let answer = home.fails(&args("session.reset.mode", "hourly"), 2, "invalid_input");
    let hint = answer["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains("none, idle, daily"), "{answer}");
    assert!(!file(&home).exists());
    home.ok(&args("session.reset.mode", "daily"));
    assert_eq!(home.ok(&["config", "get", "session.reset.mode"]), "daily\n");
    write(file(&home), "{ session: ");
    home.fails(&args("session.reset.mode", "idle"), 2, "invalid_input");
    assert_eq!(read(&home), "{ session: ");
}

/// Goal: a token that is set is not shown, and who sets what the environment overrides is told so. Method: both.
#[test]
fn secrets_and_the_environment() {
    let home = Home::new();
    let ran = home.run(&["config", "set", "webhook.token", "hush-hush"]);
    assert!(!ran.stdout.contains("hush") && ran.stdout.contains("(hidden)"), "{ran:#?}");
    assert!(read(&home).contains("hush-hush"));
    let mut command = home.command(&["config", "set", "session.maxTurns", "3"]);
    command.env("MESSAGE_SESSION_MAX_TURNS", "5");
    let ran = Ran::of(command);
    assert_eq!(ran.stdout.lines().next(), Some("session.maxTurns was not set, is 3"));
    assert!(ran.stderr.contains("environment MESSAGE_SESSION_MAX_TURNS is in force"), "{ran:#?}");
}

/// Goal: a file that another name leads to is changed, and the name stays one. Method: a link to a file elsewhere.
#[test]
fn through_a_link() {
    let home = Home::new();
    let real = home.path().join("dotfiles/annals.json5");
    write(&real, "{}\n");
    fs::create_dir_all(file(&home).parent().expect("a folder")).expect("a folder");
    std::os::unix::fs::symlink(&real, file(&home)).expect("a link");
    home.ok(&["config", "set", "session.maxTurns", "3"]);
    assert!(fs::read_to_string(&real).expect("the file").contains("maxTurns"));
    assert!(file(&home).is_symlink());
}
