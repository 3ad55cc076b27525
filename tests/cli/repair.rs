//! Damaged stores: what `verify` says, how reading goes on, what `repair` does.

use std::fs;
use std::path::PathBuf;

use annals_engine::engine::Options;

use crate::support::{Home, append_all, remove, snapshot, write};

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
    for part in
        ["CORRUPT", "event #8 is missing", "touched ", "cli:default", "DAMAGED", "annals repair"]
    {
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
    assert!(home.ok(&["verify"]).contains("sound: what is missing was accepted"));
    home.fails(&["verify", "--strict"], 6, "accepted");
    let strict = home.run(&["verify", "--strict"]);
    assert_eq!(strict.code, Some(6), "{strict:#?}");
    assert!(
        strict.stdout.contains("INCOMPLETE") && !strict.stdout.contains("sound"),
        "{strict:#?}"
    );
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
    let report = home.json(&["verify", "--json"]);
    assert_eq!((&report["ok"], &report["verdict"]), (&true.into(), &"torn".into()), "{report}");
    let damage = &report["damages"][0];
    assert_eq!((damage["class"].as_str(), damage["bytes"].as_u64()), (Some("torn"), Some(14)));
    assert!(home.ok(&["verify"]).contains("TORN: no event is lost"));
    home.fails(&["verify", "--strict"], 6, "torn");
    assert!(home.ok(&["repair"]).contains("would    keep 14 bytes"));
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

/// Goal: where nothing says what was acknowledged, nobody claims to know it. Method: the lock files are removed and the
/// last line is cut short; a torn tail then fails also without `--strict`.
#[test]
fn a_torn_tail_without_a_floor_is_no_certainty() {
    let home = Home::new();
    home.push("cli", "default", "one");
    home.push("cli", "default", "two");
    for name in ["lock.append", "lock.sync"] {
        remove(&home.store().join(name));
    }
    let mut bytes = fs::read(segment(&home)).expect("the segment");
    bytes.truncate(bytes.len() - 10);
    write(segment(&home), bytes);
    let answer = home.fails(&["verify"], 6, "unsure");
    assert_eq!(
        (&answer["verdict"], &answer["damages"][0]["class"]),
        (&"unsure".into(), &"torn".into())
    );
    let text = home.run(&["verify"]).stdout;
    assert!(text.contains("UNSURE") && !text.contains("never acknowledged"), "{text}");
    assert!(!text.contains("no event is lost"), "{text}");
}

/// Goal: damage at the end of the log tells every version that it took, not only the last. Method: the last 19 of 40
/// lines of three sessions are changed; then the whole segment is; a name inside a payload is no session.
#[test]
fn damage_to_the_end_tells_every_version() {
    let home = Home::new();
    let output = "{'runId':'r','stream':'stdout','text':'out'}".to_owned();
    append_all(&home.store(), Options::default(), "run:r", "run.output", std::iter::once(output));
    for n in 0..39 {
        let turn = format!("{{'sessionId':'s','role':'user','from':'external','content':'n{n}'}}");
        let stream = format!("cli:w{}", n % 3);
        append_all(&home.store(), Options::default(), &stream, "turn", std::iter::once(turn));
    }
    let whole = fs::read_to_string(segment(&home)).expect("the segment");
    let touched = |changed: usize| {
        let keep = whole.lines().count() - changed;
        let change = |(n, line): (usize, &str)| match n < keep {
            true => format!("{line}\n"),
            false => {
                line.replace("\"content\":\"n", "\"content\":\"N").replace("out\"}", "OUT\"}")
                    + "\n"
            }
        };
        write(segment(&home), whole.lines().enumerate().map(change).collect::<String>());
        let answer = home.fails(&["verify"], 6, "damaged");
        let damage =
            answer["damages"].as_array().and_then(|all| all.last()).expect("damage").clone();
        let mut touched: Vec<String> = damage["touched"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|t| {
                format!(
                    "{} {}-{}",
                    t["stream"].as_str().expect("a name"),
                    t["fromVersion"],
                    t["toVersion"]
                )
            })
            .collect();
        touched.sort();
        touched
    };
    assert_eq!(touched(19), ["cli:w0 8-13", "cli:w1 8-13", "cli:w2 7-13"]);
    assert_eq!(touched(40), ["cli:w0 1-13", "cli:w1 1-13", "cli:w2 1-13", "run:r 1-1"]);
}

/// Goal: a plan promises what `--apply` does, and says how to go on. Method: damage of each kind; each copy that is
/// promised is made, and no other.
#[test]
fn a_plan_is_what_is_done() {
    let check = |home: &Home, promise: &str, copies: usize| {
        let ran = home.run(&["repair"]);
        assert_eq!(ran.code, Some(6), "{ran:#?}");
        assert!(ran.stdout.contains(promise), "{promise}: {}", ran.stdout);
        assert!(ran.stdout.contains("annals repair --apply"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("0 bytes of"), "{}", ran.stdout);
        let promised = ran.stdout.matches("keep a copy").count();
        let applied = home.json(&["repair", "--apply", "--json"]);
        assert_eq!(applied["copies"].as_array().map(Vec::len), Some(copies), "{applied}");
        assert_eq!(promised, copies);
        home.ok(&["verify"]);
    };
    check(&damaged(), "in torn/ and record: event #8 is missing", 1);

    let home = Home::new();
    let long = "far too long for a line ".repeat(50_000);
    let turn = format!("{{'sessionId':'s','role':'user','from':'external','content':'{long}'}}");
    home.push("cli", "default", "one");
    append_all(&home.store(), Options::default(), "cli:default", "turn", std::iter::once(turn));
    let mut blobs = snapshot(&home.store().join("blobs"));
    blobs.retain(|(path, _)| path.is_file());
    write(&blobs[0].0, "another content");
    home.push("cli", "default", "a damaged content endangers no other event: appends go on");
    check(&home, "as it is and record: the content of event #4 is missing", 0);

    let home = Home::new();
    home.push("cli", "default", "one");
    home.push("cli", "default", "two");
    let text = fs::read_to_string(segment(&home)).expect("the segment");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    write(segment(&home), lines[..3].concat());
    check(&home, "record: event #4 is missing", 0);
}

/// Goal: a refusal says what is known and nothing more, and each place once. Method: a push and an import after one
/// line of twelve was damaged.
#[test]
fn a_refusal_names_one_place_once() {
    let home = damaged();
    let ran = home.run(&["session", "push", "cli", "default", "user", "hi"]);
    assert_eq!(ran.code, Some(6), "{ran:#?}");
    assert!(
        ran.stderr.contains("the log is corrupt at position 8; nothing is appended"),
        "{ran:#?}"
    );
    let line = "{\"type\":\"session\",\"version\":3,\"id\":\"0b1f6a52-5d0e-4a57-9a55-0f1f6f1f6f01\",\"timestamp\":\"2026-03-14T09:26:53.000Z\",\"cwd\":\"/\"}\n";
    write(home.path().join("s.jsonl"), line);
    let ran = home.run(&["import", "s.jsonl"]);
    assert_eq!(ran.code, Some(6), "{ran:#?}");
    assert_eq!(ran.stderr.matches("offset").count(), 1, "{ran:#?}");
}

/// Goal: what lies in a full segment endangers no event to come. Method: many small segments, a bit flipped in the
/// first; a push goes through, and `verify` still tells the damage.
#[test]
fn damage_to_a_full_segment_refuses_no_append() {
    let home = Home::new();
    let options = Options { segment_bytes: 4_000, ..Options::default() };
    let turn = |n: u64| {
        format!("{{'sessionId':'s','role':'user','from':'external','content':'turn {n}'}}")
    };
    append_all(&home.store(), options, "cli:default", "turn", (0..60).map(turn));
    flip(&home, "turn 3");
    home.push("cli", "default", "and on it goes");
    home.fails(&["verify"], 6, "damaged");
}

/// Goal: a folder in the place of a segment is damage, and says what to do. Method: every verb that looks at it.
#[test]
fn a_folder_in_the_place_of_a_segment() {
    let home = Home::new();
    home.push("cli", "default", "one");
    remove(&segment(&home));
    write(segment(&home).join("inside"), "");
    for args in [&["verify"][..], &["log"], &["session", "push", "cli", "default", "user", "hi"]] {
        let answer = home.fails(args, 6, "corrupt");
        let hint = answer["error"]["hint"].as_str().expect("a hint");
        assert!(hint.contains("put back what was there"), "{answer}");
    }
}
