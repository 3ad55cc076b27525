//! `quickstart`: from nothing to something to see.

use std::process::Stdio;

use crate::support::{Home, Ran, on_terminal, snapshot};
use crate::transcripts::{claude_code, openclaw};

/// Goal: with nothing to import a person still sees the product work: a sample, checked, with sessions that speak to
/// each other, and what to type next. Method: an empty home.
#[test]
fn without_transcripts() {
    let home = Home::new();
    let text = home.ok(&["quickstart"]);
    for part in [
        "no transcripts",
        "a small sample",
        ": sound",
        "Sessions",
        "Last events",
        "Between sessions",
        " -> ",
        "What to type next",
        "annals tail -f -m",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(home.store().join("store.json").exists());
    assert!(!home.json_lines(&["tail", "-m", "--json"]).is_empty());
    home.ok(&["verify", "--strict"]);
}

/// Goal: with transcripts and permission they are imported, and the sources are untouched. Method: a home with an
/// OpenClaw folder, `--yes`, twice; the second time adds nothing.
#[test]
fn with_transcripts_and_permission() {
    let home = Home::new();
    openclaw(&home.path().join(".openclaw"));
    let before = snapshot(&home.path().join(".openclaw"));
    let answer = home.json(&["quickstart", "--yes", "--json"]);
    assert_eq!((answer["ok"].as_bool(), answer["sample"].as_bool()), (Some(true), Some(false)));
    assert_eq!(answer["found"][0]["transcripts"], 2, "{answer}");
    assert_eq!(answer["imported"]["sessions"], 2, "{answer}");
    assert!(answer["messages"].as_array().is_some_and(|messages| !messages.is_empty()), "{answer}");
    assert_eq!(snapshot(&home.path().join(".openclaw")), before);
    let again = home.json(&["quickstart", "--yes", "--json"]);
    assert_eq!(again["imported"]["new"], 0, "{again}");
}

/// Goal: sessions of Claude Code are found where it keeps them, also where its own variable says so. Method: one in the
/// usual folder and one in another, which the variable names.
#[test]
fn with_sessions_of_claude_code() {
    let home = Home::new();
    claude_code(&home.path().join(".claude"));
    let elsewhere = home.path().join("elsewhere");
    claude_code(&elsewhere);
    for variable in [None, Some(&elsewhere)] {
        let mut command = home.command(&["quickstart", "--yes", "--json"]);
        if let Some(folder) = variable {
            command.env("CLAUDE_CONFIG_DIR", folder);
        }
        let ran = Ran::of(command);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(answer["found"][0]["program"], "Claude Code", "{answer}");
        let root = answer["found"][0]["root"].as_str().expect("a folder");
        assert_eq!(root.contains("elsewhere"), variable.is_some(), "{answer}");
        assert_eq!(answer["imported"]["sessions"], 1, "{answer}");
    }
}

/// Goal: nothing of a person's is imported without a yes. Method: no terminal and no `--yes`; it imports the sample and
/// says how to import what it found.
#[test]
fn without_permission() {
    let home = Home::new();
    openclaw(&home.path().join(".openclaw"));
    let text = home.ok(&["quickstart"]);
    for part in ["OpenClaw", "2 transcripts", "a small sample", "annals quickstart --yes"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let sessions = home.ok(&["sessions", "list"]);
    assert!(!sessions.contains("agent:main:"), "{sessions}");
}

/// Goal: the sample never becomes a part of a person's own sessions. Method: the sample, then the person's folder; the
/// sessions of each are there, none of them has parts of both, and each imported again adds nothing.
#[test]
fn the_sample_stands_apart() {
    let home = Home::new();
    let folder = home.path().join(".openclaw");
    openclaw(&folder);
    home.ok(&["quickstart"]);
    let sample = home.ok(&["sessions", "list", "--json", "--all"]);
    home.ok(&["import", folder.to_str().expect("a path")]);
    let both = home.ok(&["sessions", "list", "--json", "--all"]);
    let rows = |text: &str| -> Vec<serde_json::Value> {
        let list: serde_json::Value = serde_json::from_str(text).expect("one object");
        list["sessions"].as_array().expect("rows").clone()
    };
    let both = rows(&both);
    assert!(rows(&sample).iter().all(|row| both.contains(row)), "{sample}");
    let own = |row: &serde_json::Value| row["agentId"] == "main";
    assert!(both.len() > rows(&sample).len() && both.iter().any(own), "{both:#?}");
    let events = |home: &Home| home.json(&["stats", "--json"])["events"].clone();
    let before = events(&home);
    home.ok(&["quickstart"]);
    home.ok(&["import", folder.to_str().expect("a path")]);
    assert_eq!(events(&home), before);
}

/// Goal: on a terminal it asks, and takes no for an answer. Method: a terminal with `n` and with `y` typed ahead.
#[test]
fn it_asks_on_a_terminal() {
    for (typed, sample) in [("n\n", true), ("y\n", false), ("\n", false)] {
        let home = Home::new();
        openclaw(&home.path().join(".openclaw"));
        let (code, text) = crate::support::typing(home.command(&["quickstart"]), typed);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("Import 2 transcripts"), "{text}");
        assert_eq!(text.contains("a small sample"), sample, "{typed:?}: {text}");
    }
}

/// Goal: what is for eyes fits the terminal. Method: quickstart at three widths; nothing but paths and ids of one word
/// is wider.
#[test]
fn it_fits_a_terminal() {
    for width in [80, 120, 160] {
        let home = Home::new();
        let mut command = home.command(&["quickstart", "--store", "s", "--color", "never"]);
        command.stderr(Stdio::null());
        let (code, text) = on_terminal(command, width);
        assert_eq!(code, Some(0), "{text}");
        for line in text.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= width.into(), "{width}: {line}");
        }
    }
}

/// Goal: a home that cannot be written to is a clear failure. Method: the store's place is a file.
#[test]
fn nowhere_to_put_the_store() {
    let home = Home::new();
    crate::support::write(home.path().join("taken"), "");
    let ran = Ran::of(home.command(&["quickstart", "--store", "taken"]));
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:#?}");
    assert!(ran.stderr.contains("taken"), "{ran:#?}");
}
