//! Damaged stores: what `verify` says, how reading goes on, what `repair` does.

use std::fs;
use std::path::PathBuf;

use annals_engine::engine::Options;

use crate::support::{Home, append_all, snapshot, write};

fn segment(home: &Home) -> PathBuf {
    home.store().join("log/00000000000000000001.jsonl")
}

/// Flips one bit of the first place where this text stands.
fn flip(home: &Home, text: &str) {
    let mut bytes = fs::read(segment(home)).expect("the segment");
    let found = bytes.windows(text.len()).position(|window| window == text.as_bytes());
    bytes[found.expect("the text")] ^= 1;
    write(segment(home), bytes);
}

/// Twelve pushes, then one bit flipped inside the text of the sixth.
fn damaged() -> Home {
    let home = Home::new();
    for n in 0..12 {
        home.push("cli", "default", &format!("turn number {n}"));
    }
    flip(&home, "turn number 5");
    home
}

/// Goal: damage is told with its class, place, cost and sessions, with exit code 6, and verifying changes nothing.
/// Method: one flipped bit in the middle.
#[test]
fn verify_tells_every_damage() {
    let home = damaged();
    let before = snapshot(home.path());
    let ran = home.run(&["verify", "--json"]);
    assert_eq!(ran.code, Some(6), "{ran:#?}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&report["ok"], &report["error"]["code"]), (&false.into(), &"damaged".into()));
    let damages = report["damages"].as_array().expect("a list");
    assert_eq!(damages.len(), 1, "{report}");
    let damage = &damages[0];
    assert_eq!(
        (damage["class"].as_str(), damage["accepted"].as_bool()),
        (Some("corrupt"), Some(false))
    );
    assert_eq!(damage["fromSeq"], damage["toSeq"]);
    assert_eq!(damage["touched"][0]["stream"], "cli:default");
    assert!(damage["offset"].as_u64() > Some(0) && damage["bytes"].as_u64() > Some(0), "{damage}");
    let text = home.run(&["verify"]).stdout;
    for part in ["CORRUPT", "missing ", "touched ", "cli:default", "DAMAGED", "annals repair"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(snapshot(home.path()), before);
}

/// Goal: reading goes on around the damage, loud where events are missing, and `--strict` makes it a failure. Method:
/// every verb that reads, in lines and in JSON.
#[test]
fn reading_goes_on_around_damage() {
    let home = damaged();
    for verb in
        [&["tail", "-n", "100"][..], &["log"], &["tail", "-n", "100", "--session", "cli:default"]]
    {
        let text = home.ok(verb);
        assert_eq!(text.matches("GAP").count(), 1, "{text}");
        assert_eq!(text.matches("turn number").count(), 11, "{text}");
        let gap = text.lines().position(|line| line.contains("GAP")).expect("the gap");
        let next = text.lines().nth(gap + 1).expect("a line");
        assert!(next.contains("turn number 6"), "in its place: {text}");
    }
    let events = home.json_lines(&["tail", "-n", "100", "--json"]);
    let gaps: Vec<_> = events.iter().filter(|event| event["gap"].is_object()).collect();
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0]["gap"]["class"], "corrupt");
    let page = home.json(&["log", "--json"]);
    assert_eq!((page["gaps"].as_u64(), page["ok"].as_bool()), (Some(1), Some(true)));
    let exported = home.json_lines(&["export"]);
    let missing: Vec<_> = exported.iter().filter(|event| event["type"] == "annals.gap").collect();
    assert_eq!((missing.len(), &missing[0]["specversion"]), (1, &"1.0".into()));
    for verb in [
        ["tail", "--strict", "-n100"],
        ["log", "--strict", "-n0"],
        ["export", "--strict", "-ojson"],
    ] {
        assert_eq!(home.run(&verb).code, Some(6), "{verb:?}");
    }
    assert!(home.ok(&["stats"]).contains("1 event missing"));
}

/// Goal: damage and absence are two answers. Method: a session that lost one event, one of which nothing is left, and
/// one that never was.
#[test]
fn damaged_is_not_absent() {
    let home = damaged();
    let rows = home.json(&["sessions", "list", "--json"]);
    assert_eq!(rows["sessions"][0]["status"], "damaged");
    let page = home.json(&["sessions", "history", "cli:default", "--json"]);
    assert_eq!(page["damaged"], true);
    assert!(home.ok(&["sessions", "history", "cli:default"]).contains("missing"));
    home.fails(&["sessions", "history", "cli:other"], 3, "not_found");

    let home = Home::new();
    home.push("telegram", "9", "first and only");
    home.push("cli", "default", "another");
    flip(&home, "\"chatId\":\"9\"");
    flip(&home, "first and only");
    home.fails(&["sessions", "history", "telegram:9"], 6, "corrupt");
    home.fails(&["log", "--session", "telegram:9"], 6, "corrupt");
    home.fails(&["sessions", "history", "telegram:8"], 3, "not_found");
}

/// Goal: one bad line in the middle costs that line alone, whatever comes after it. Method: 7,000 turns, a bit flipped
/// in the text of the 3,100th; everything else is read, and the session's last activity is its last turn's.
#[test]
fn one_bad_line_among_thousands() {
    let home = Home::new();
    let turn = |n: u64| {
        format!(
            "{{'sessionId':'s','role':'user','from':'external','content':'turn number {n} of many'}}"
        )
    };
    append_all(&home.store(), Options::default(), "telegram:7", "turn", (1..=7_000).map(turn));
    flip(&home, "turn number 3100 of many");
    let events = home.json_lines(&["log", "-n0", "-o", "jsonl", "--session", "telegram:7"]);
    assert_eq!(events.len(), 7_000);
    let gap = &events[3_099]["gap"];
    assert_eq!(
        (gap["fromSeq"].as_u64(), gap["toSeq"].as_u64()),
        (Some(3_101), Some(3_101)),
        "{gap}"
    );
    assert_eq!(gap["touched"][0]["fromVersion"], 3_100, "{gap}");
    let bytes = fs::read(segment(&home)).expect("the segment");
    let offset = usize::try_from(gap["offset"].as_u64().expect("a number")).expect("a place");
    let length = usize::try_from(gap["bytes"].as_u64().expect("a number")).expect("a length");
    let line = String::from_utf8_lossy(&bytes[offset..offset + length]);
    assert!(line.starts_with("{\"seq\":3101,") && line.ends_with("}\n"), "{line}");
    let row = &home.json(&["sessions", "list", "--json"])["sessions"][0];
    let last: jiff::Timestamp =
        events[6_999]["time"].as_str().expect("text").parse().expect("a time");
    assert_eq!(
        (row["turns"].as_u64(), row["updatedAt"].as_i64()),
        (Some(6_999), Some(last.as_millisecond()))
    );
}

/// Goal: appends wait for the operator, `repair` alone changes nothing, `--apply` records the loss, keeps the bytes and
/// lets appends go on. Method: before, report, apply, after.
#[test]
fn repair_accepts_and_keeps() {
    let home = damaged();
    let push = ["session", "push", "cli", "default", "user", "after"];
    home.fails(&push, 6, "corrupt");
    let before = snapshot(home.path());
    let report = home.run(&["repair", "--json"]);
    assert_eq!(report.code, Some(6), "{report:#?}");
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    assert_eq!(report["plan"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(snapshot(home.path()), before, "a report changes nothing");
    let segment_before = fs::read(segment(&home)).expect("the segment");

    let applied = home.json(&["repair", "--apply", "--reason", "a test flipped a bit", "--json"]);
    assert_eq!(applied["accepted"].as_array().map(Vec::len), Some(1));
    let copy = home.store().join(applied["copies"][0].as_str().expect("a copy"));
    let kept = fs::read(copy).expect("the copy");
    assert!(segment_before.windows(kept.len()).any(|window| window == kept));
    assert!(fs::read(segment(&home)).expect("the segment").starts_with(&segment_before));
    home.ok(&push);
    home.ok(&["verify"]);
    assert_eq!(home.run(&["verify", "--strict"]).code, Some(6));
    let gaps = home.json_lines(&["log", "-o", "jsonl", "--type", "log.gap"]);
    let recorded = gaps.iter().find(|event| event["type"] == "log.gap").expect("the record");
    assert_eq!(recorded["data"]["reason"], "a test flipped a bit");
    let again = home.json(&["repair", "--apply", "--json"]);
    assert_eq!(again["accepted"], serde_json::json!([]));
}

/// Goal: what a writer left behind that died in the middle costs no event: it is told apart from other damage, reading
/// passes it, and the next append keeps it and goes on. Method: half a line at the end of the log.
#[test]
fn a_torn_tail_is_no_damage() {
    let home = Home::new();
    home.push("cli", "default", "one");
    let mut bytes = fs::read(segment(&home)).expect("the segment");
    bytes.extend_from_slice(b"{\"seq\":200,\"ty");
    write(segment(&home), bytes);
    let ran = home.run(&["verify", "--json"]);
    assert_eq!(ran.code, Some(6), "{ran:#?}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(report["error"]["code"], "torn");
    let damage = &report["damages"][0];
    assert_eq!((damage["class"].as_str(), damage["bytes"].as_u64()), (Some("torn"), Some(14)));
    assert!(home.run(&["verify"]).stdout.contains("TORN: no event is lost"));
    assert!(home.ok(&["tail"]).contains("one"));
    let ran = home.run(&["session", "push", "cli", "default", "user", "two", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stderr.contains("torn"), "the notice says what was kept: {ran:#?}");
    let kept: Vec<_> = fs::read_dir(home.store().join("torn")).expect("a folder").collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(home.json_lines(&["log", "-o", "jsonl", "--type", "turn"]).len(), 2);
    assert_eq!(home.json_lines(&["log", "-o", "jsonl", "--type", "log.recovered"]).len(), 1);
    home.ok(&["verify", "--strict"]);
}
