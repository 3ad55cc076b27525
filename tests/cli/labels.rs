//! What names a session for people.

use crate::support::{Home, configure_agents};

/// Goal: what names a session for people says something, on one line; the reason of a refusal is told, and nothing else is
/// stored of it. Method: a patch and a spawn with labels of every sort; white space around one.
#[test]
fn labels() {
    let home = Home::new();
    configure_agents(&home, &[("main", &["say=hi"])]);
    home.push("telegram", "7", "one");
    let lines = |home: &Home| home.json_lines(&["export"]);
    let before = lines(&home).len();
    let long = "x".repeat(1_025);
    for (label, told) in [
        ("", "says nothing"),
        (" \t ", "says nothing"),
        ("a\nb", "control character U+000A"),
        ("\u{1b}[31mred", "control character U+001B"),
        (long.as_str(), "1025 bytes"),
    ] {
        let set = format!("label={label}");
        let patched = home.fails(&["session", "patch", "telegram", "7", &set], 2, "invalid_input");
        assert!(patched["error"]["message"].as_str().expect("text").contains(told), "{patched}");
        let spawn = ["subagent", "spawn", "x", "--no-worker", "--label", label];
        let spawned = home.fails(&spawn, 2, "label");
        assert!(spawned["error"]["message"].as_str().expect("text").contains(told), "{spawned}");
    }
    let after = lines(&home);
    let refused = after.iter().skip(before).filter(|event| event["data"]["reason"] == "label");
    assert_eq!(refused.count(), 5);
    assert!(!after.iter().any(|event| event["type"] == "session.patched"), "{after:?}");
    home.ok(&["subagent", "spawn", "x", "--no-worker", "--label", " night shift "]);
    let list = home.json(&["subagent", "list", "--json"]);
    assert_eq!(list["children"][0]["label"], "night shift");
    for label in ["night shift", " night shift"] {
        home.ok(&["sessions", "send", "--label", label, "x", "--timeout", "0", "--no-worker"]);
    }
}
