//! `session push` from many processes at once, and after one that died.

use std::process::Child;

use serde_json::Value;

use crate::support::{Home, Ran};

/// Goal: pushes of several processes to one session are all there, each once, with versions that have no gap. Method:
/// eight processes chains of 25 pushes, all to one chat.
#[test]
fn eight_processes_push_without_a_gap() {
    const PROCESSES: usize = 8;
    const PUSHES: usize = 25;
    let home = Home::new();
    std::thread::scope(|scope| {
        for process in 0..PROCESSES {
            let home = &home;
            scope.spawn(move || {
                for push in 0..PUSHES {
                    home.push("telegram", "7", &format!("{process}/{push}"));
                }
            });
        }
    });
    let turns = home.json_lines(&["export", "telegram:7", "--type", "turn"]);
    let mut said: Vec<&str> =
        turns.iter().map(|turn| turn["data"]["content"].as_str().expect("text")).collect();
    assert_eq!(said.len(), PROCESSES * PUSHES);
    for process in 0..PROCESSES {
        let own: Vec<usize> = said
            .iter()
            .filter_map(|text| text.strip_prefix(&format!("{process}/"))?.parse().ok())
            .collect();
        assert_eq!(own, (0..PUSHES).collect::<Vec<_>>(), "process {process} in its own order");
    }
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), PROCESSES * PUSHES, "each once");
    let all = home.json_lines(&["export", "telegram:7"]);
    let versions: Vec<String> =
        all.iter().map(|e| e["streamversion"].as_str().expect("text").to_owned()).collect();
    let expect: Vec<String> = (1..=PROCESSES * PUSHES + 1).map(|v| v.to_string()).collect();
    assert_eq!(versions, expect, "the opening and every turn, contiguous");
    assert_eq!(home.json(&["verify", "--json"])["ok"], true);
}

/// Goal: every process that pushes at the same moment gets its own turn. Method: start twenty at once and only then
/// wait for any.
#[test]
fn a_crowd_at_once() {
    let home = Home::new();
    let children: Vec<Child> = (0..20)
        .map(|n| {
            let text = format!("turn {n}");
            let args = ["session", "push", "cli", "default", "user", &text, "--json"];
            home.command(&args).spawn().expect("the program starts")
        })
        .collect();
    let mut seqs = Vec::new();
    for child in children {
        let ran = Ran::end(child);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        seqs.push(answer["seq"].as_u64().expect("a position"));
    }
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), 20);
    assert_eq!(home.json_lines(&["log", "-o", "jsonl", "--type", "turn"]).len(), 20);
}
