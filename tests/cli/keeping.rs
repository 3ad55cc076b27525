//! What a store keeps, whatever happens around it: bytes once written, sessions whose views are gone, a folder that
//! moves, files with wrong times, and chats with any name.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use annals_engine::engine::Options;
use serde_json::Value;

use crate::support::{Home, append, append_all, remove, snapshot, write};

fn config(home: &Home, text: &str) {
    write(home.path().join(".config/annals/annals.json5"), text);
}

/// The segments with their bytes, in order.
fn segments(home: &Home) -> Vec<(String, Vec<u8>)> {
    let files = snapshot(&home.store().join("log")).into_iter();
    let mut segments: Vec<_> = files
        .map(|(path, bytes)| (path.file_name().expect("a name").display().to_string(), bytes))
        .filter(|(name, _)| name.ends_with(".jsonl"))
        .collect();
    segments.sort();
    segments
}

fn rows(home: &Home) -> Vec<Value> {
    let list = home.json(&["sessions", "list", "--all", "-n0", "--json"]);
    list["sessions"].as_array().expect("rows").clone()
}

fn said(home: &Home, name: &str) -> Vec<String> {
    let page = home.json(&["sessions", "history", name, "-n0", "--all-parts", "--json"]);
    let messages = page["messages"].as_array().expect("messages").iter();
    messages.map(|message| message["content"].as_str().expect("text").to_owned()).collect()
}

/// Goal: no byte of a segment changes once it is written, whatever is done to sessions. Method: processes that push,
/// patch, reset, archive, import and record a changed policy, over segments of many sizes; after each of them every
/// segment begins with what it held before.
#[test]
fn what_is_written_stays() {
    let home = Home::new();
    let small = Options { segment_bytes: 2_000, ..Options::default() };
    let note = |n: u32| format!("{{'n':{n}}}");
    append_all(&home.store(), small, "x.acme:1", "x.acme.note", (0..40).map(note));
    crate::transcripts::openclaw(&home.path().join("backup"));
    let mut before = segments(&home);
    assert!(before.len() > 3, "{}", before.len());
    let mut turns = 0;
    let mut run = |args: &[&str]| {
        home.ok(args);
        let after = segments(&home);
        for ((name, old), (same, new)) in before.iter().zip(&after) {
            assert_eq!(name, same);
            assert!(new.starts_with(old), "{args:?} changed {name}");
        }
        assert!(after.len() >= before.len());
        before = after;
    };
    for n in 0..5 {
        run(&["session", "push", "telegram", "42", "user", &format!("turn {n}")]);
        turns += 1;
    }
    config(&home, "{ session: { sendPolicy: { default: 'deny', rules: [] } } }");
    run(&["session", "push", "telegram", "42", "user", "under another policy"]);
    run(&["session", "patch", "telegram", "42", "label=desk"]);
    run(&["import", "backup"]);
    run(&["session", "archive", "telegram", "42"]);
    run(&["session", "push", "telegram", "42", "user", "back again"]);
    run(&["session", "reset", "telegram", "42"]);
    run(&["session", "push", "telegram", "42", "user", "a new part"]);
    assert_eq!(said(&home, "telegram:42").len(), turns + 3);
    home.ok(&["verify", "--strict"]);
}

/// Goal: sessions are in the list for what the log says of them, and for nothing else. Method: sessions that are done,
/// failed and at work; everything derived is removed, and what was there once is put back over the newer log.
#[test]
fn views_are_made_from_the_log() {
    let home = Home::new();
    for (n, status) in ["ok", "error", ""].into_iter().enumerate() {
        let chat = n.to_string();
        let id = home.push("cli", &chat, "hello")["sessionId"].as_str().expect("an id").to_owned();
        let run = format!(
            "{{'runId':'{n}','sessionKey':'cli:{n}','sessionId':'{id}','kind':'ask','agentId':'main','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
        );
        append(&home.store(), &format!("run:{n}"), "run.requested", &run);
        let end = format!("{{'runId':'{n}','status':'{status}','runtimeMs':1}}");
        if !status.is_empty() {
            append(&home.store(), &format!("run:{n}"), "run.finished", &end);
        }
    }
    let small = Options { segment_bytes: 4_000, snapshot_bytes: 1, ..Options::default() };
    let note = |n: u32| format!("{{'n':{n}}}");
    append_all(&home.store(), small, "x.acme:1", "x.acme.note", (0..100).map(note));
    let before = rows(&home);
    let states: Vec<&str> = before.iter().filter_map(|row| row["status"].as_str()).collect();
    assert_eq!(states.len(), 3);
    assert!(["done", "failed", "waiting"].iter().all(|state| states.contains(state)), "{states:?}");
    let derived = |home: &Home| -> Vec<_> {
        let files = snapshot(&home.store()).into_iter();
        let ends = |path: &Path| path.extension().is_some_and(|e| e == "idx" || e == "snap");
        files.filter(|(path, _)| ends(path)).collect()
    };
    let old = derived(&home);
    let ends = |end: &str| old.iter().any(|(path, _)| path.extension().is_some_and(|e| e == end));
    assert!(ends("idx") && ends("snap"), "{:?}", old.iter().map(|(path, _)| path));
    old.iter().for_each(|(path, _)| remove(path));
    assert_eq!(rows(&home), before);
    home.push("cli", "3", "one more");
    let after = rows(&home);
    assert_eq!(after.len(), 4);
    old.iter().for_each(|(path, bytes)| write(path, bytes));
    assert_eq!(rows(&home), after);
    home.ok(&["verify"]);
}

/// Goal: a session that was at rest goes on in its part when processes come and go: another part comes with an event that
/// says so, and in no other way. Method: twelve turns by as many processes; parts and events counted.
#[test]
fn a_part_ends_by_an_event_alone() {
    let home = Home::new();
    let ids: Vec<Value> =
        (0..12).map(|n| home.push("cli", "a", &n.to_string())["sessionId"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(rows(&home)[0]["parts"], 1);
    home.ok(&["session", "reset", "cli", "a"]);
    assert_ne!(home.push("cli", "a", "12")["sessionId"], ids[0]);
    let kinds = |kind: &str| home.json_lines(&["export", "--type", kind]).len();
    assert_eq!((kinds("session.opened"), kinds("session.reset")), (1, 1));
}

/// Goal: a store is whole wherever its folder lies, and a part that has just begun is empty. Method: move it, read,
/// reset, read.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test moves the folder as its owner would")]
fn a_store_that_moves() {
    let home = Home::new();
    for n in 0..3 {
        home.push("cli", "k", &format!("turn {n}"));
    }
    let place = home.path().join("elsewhere/annals");
    fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
    fs::rename(home.store(), &place).expect("moved");
    let store = place.to_str().expect("a path of text");
    let page = home.json(&["--store", store, "sessions", "history", "cli:k", "--json"]);
    assert_eq!(page["total"], 3);
    let list = home.json(&["--store", store, "sessions", "list", "--json"]);
    let file = list["sessions"][0]["transcriptPath"].as_str().expect("a path");
    assert!(Path::new(file).starts_with(&place) && Path::new(file).is_file(), "{file}");
    assert!(fs::read_to_string(file).expect("a file").contains("turn 2"), "{file}");
    let status = home.json(&["--store", store, "session", "status", "cli", "k", "--json"]);
    assert_eq!(status["transcriptPath"], file);
    home.ok(&["--store", store, "session", "reset", "cli", "k"]);
    let page = home.json(&["--store", store, "sessions", "history", "cli:k", "--json"]);
    assert_eq!((&page["total"], page["otherParts"].as_array().map(Vec::len)), (&0.into(), Some(1)));
    home.ok(&["--store", store, "verify", "--strict"]);
    assert!(!home.store().exists());
}

/// Goal: the times of files decide nothing. Method: files of tomorrow and of 1970 under rules on idle time and hours;
/// the list, and a push.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test sets times as a copy or a backup would")]
fn times_of_files_say_nothing() {
    let home = Home::new();
    config(&home, "{ session: { reset: { mode: 'idle', idleMinutes: 600 } } }");
    let first = home.push("cli", "a", "one")["sessionId"].clone();
    let tomorrow = SystemTime::now() + Duration::from_secs(86_400);
    for time in [tomorrow, SystemTime::UNIX_EPOCH] {
        for (path, _) in snapshot(&home.store()).into_iter().filter(|(path, _)| path.is_file()) {
            let file = fs::File::options().write(true).open(&path).expect("a file");
            file.set_modified(time).expect("a time");
        }
        assert_eq!(rows(&home)[0]["status"], "idle");
        let next = home.push("cli", "a", "more");
        assert_eq!((&next["sessionId"], &next["reset"]), (&first, &Value::Null));
    }
    assert_eq!(said(&home, "cli:a").len(), 3);
}

/// Goal: any chat is one session of its own, again and again, and no name becomes a path. Method: names that are paths,
/// devices, ids and marks, two turns each; all files of the home afterwards.
#[test]
fn chats_of_any_name() {
    let home = Home::new();
    let chats = [
        ("google_chat", "spaces/AAAAE/threads/hr_4"),
        ("dingtalk", "cidNc/9w/E+z8="),
        ("x", "../../etc/x"),
        ("x", ".."),
        ("x", "."),
        ("x", "/abs"),
        ("x", "%2e%2e/"),
        ("x", "C:foo"),
        ("x", "a\u{1}b\n"),
        ("x", "CON"),
        ("x", "a."),
        ("x", "a "),
        ("x", "a"),
        ("x", "A"),
        ("x", "\u{e9}"),
        ("x", "e\u{301}"),
        ("x", "subagent:y"),
        ("x", "run:1"),
        ("x", "main"),
        ("http", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        ("x", "0198c0de-0000-7000-8000-000000000000"),
        ("a", "b_c"),
        ("a_b", "c"),
        ("a-b", "c"),
        ("x", "परिवार"),
    ];
    for (channel, chat) in chats {
        let first = home.push(channel, chat, "one");
        let second = home.push(&channel.to_uppercase(), chat, "two");
        assert_eq!(first["sessionKey"], format!("{channel}:{chat}"));
        assert_eq!(
            (&second["sessionKey"], &second["sessionId"]),
            (&first["sessionKey"], &first["sessionId"])
        );
    }
    let listed = rows(&home);
    assert_eq!(listed.len(), chats.len());
    for row in &listed {
        assert_eq!((&row["kind"], &row["turns"]), (&"other".into(), &2.into()), "{row}");
        assert_eq!(said(&home, row["key"].as_str().expect("text")), ["one", "two"]);
        assert_eq!(said(&home, row["sessionId"].as_str().expect("text")), ["one", "two"]);
    }
    for args in [&["--as", "markdown"][..], &["--as", "text"], &["--as", "jsonl"], &[]] {
        home.ok(&[&["export", "x:../../etc/x"][..], args].concat());
    }
    let mut names = std::collections::BTreeSet::new();
    for (path, _) in snapshot(home.path()) {
        assert!(path.starts_with(home.path().join(".local")), "{}", path.display());
        let name = path.strip_prefix(home.path()).expect("inside").to_str().expect("ASCII");
        let safe = |c: char| c.is_ascii_alphanumeric() || "._-/@".contains(c);
        assert!(name.chars().all(safe), "{name}");
        assert!(names.insert(name.to_lowercase()), "{name} differs from another in case alone");
    }
    for bad in ["x".repeat(5_000), String::new()] {
        home.fails(&["session", "push", "x", &bad, "user", "hi"], 2, "invalid_input");
    }
    for channel in ["..", "a/b", "../x", "é", "a:b", "a\u{1}"] {
        home.fails(&["session", "push", channel, "1", "user", "hi"], 2, "invalid_input");
    }
    assert_eq!(rows(&home).len(), chats.len());
}

/// Goal: pushes to several chats at once share nothing. Method: processes for four chats side by side, each with an
/// account and a thread of its own.
#[test]
fn chats_side_by_side() {
    let home = Home::new();
    let children: Vec<_> = (0..16)
        .map(|n| {
            let (chat, text) = ((n % 4).to_string(), n.to_string());
            let args = [
                "session",
                "push",
                "x",
                &chat,
                "user",
                &text,
                "--account",
                &chat,
                "--thread",
                &chat,
            ];
            home.command(&args).spawn().expect("the program starts")
        })
        .collect();
    for child in children {
        assert_eq!(crate::support::Ran::end(child).code, Some(0));
    }
    for row in rows(&home) {
        let chat = row["key"].as_str().and_then(|key| key.strip_prefix("x:")).expect("a key");
        let context = &row["deliveryContext"];
        for field in ["to", "accountId", "threadId"] {
            assert_eq!(context[field], chat, "{row}");
        }
        let mut said = said(&home, &format!("x:{chat}"));
        said.sort_by_key(|text| text.parse::<u32>().expect("a number"));
        let of = chat.parse::<u32>().expect("a number");
        assert_eq!(said, (0..4).map(|n| (4 * n + of).to_string()).collect::<Vec<_>>());
    }
}

/// Goal: with a half of a segment gone the rest is still there, and a push takes nothing of it away. Method: the middle
/// of the only segment is cut out; a push, which waits for the operator; the repair, and a push.
#[test]
fn half_a_segment_is_lost() {
    let home = Home::new();
    for n in 0..20 {
        home.push("cli", "a", &format!("turn {n}"));
    }
    let path = home.store().join("log/00000000000000000001.jsonl");
    let bytes = fs::read(&path).expect("the segment");
    let (from, to) = (bytes.len() / 4, bytes.len() * 3 / 4);
    write(&path, [&bytes[..from], &bytes[to..]].concat());
    let left = said(&home, "cli:a");
    assert!((8..12).contains(&left.len()), "{left:?}");
    assert!(left.contains(&"turn 0".into()) && left.contains(&"turn 19".into()), "{left:?}");
    assert_eq!(rows(&home)[0]["status"], "damaged");
    assert_eq!(home.run(&["session", "push", "cli", "a", "user", "more"]).code, Some(6));
    assert_eq!(said(&home, "cli:a"), left);
    home.ok(&["repair", "--apply", "--yes"]);
    home.push("cli", "a", "more");
    assert_eq!(said(&home, "cli:a"), [&left[..], &["more".to_owned()]].concat());
}

/// Goal: nothing is removed and nothing renamed because time goes by. Method: a session of 2020 and one of today, with no
/// limits and with limits that only warn; processes that append.
#[test]
fn nothing_goes_by_itself() {
    let home = Home::new();
    append(
        &home.store(),
        "cli:old",
        "session.opened",
        "{'at':'2020-05-01T00:00:00.000000Z','sessionId':'old','kind':'other','agentId':'main','spawnDepth':0}",
    );
    home.push("cli", "new", "hello");
    for settings in
        ["{}", "{ session: { maintenance: { mode: 'warn', pruneAfterDays: 30, maxEntries: 1 } } }"]
    {
        config(&home, settings);
        for n in 0..2 {
            home.push("cli", "new", &format!("{n}"));
            home.push("cli", &format!("{}{n}", settings.len()), "opened");
        }
        let list = home.json(&["sessions", "list", "-n0", "--json"]);
        assert!(
            list["sessions"].as_array().expect("rows").iter().any(|row| row["key"] == "cli:old")
        );
    }
    assert_eq!(home.json_lines(&["export", "--type", "session.archived"]).len(), 0);
    let status = home.ok(&["session", "status"]);
    assert!(status.contains("over the limits, which are not enforced"), "{status}");
    let enforced = "{ session: { maintenance: { mode: 'enforce', pruneAfterDays: 30 } } }";
    config(&home, enforced);
    home.push("cli", "last", "hello");
    let archived = home.json_lines(&["export", "--type", "session.archived"]);
    assert_eq!(archived.len(), 1, "{archived:?}");
    assert_eq!(archived[0]["data"]["rule"]["value"], 30);
    assert_eq!(home.json(&["sessions", "history", "cli:old", "--json"])["total"], 0);
}
