//! What `tail` and `log` show: filters, pages, messages between sessions.

use annals_engine::engine::Options;
use serde_json::Value;

use crate::support::{Home, append, append_all};

const MAIN: &str = "agent:main:main";
const CHILD: &str = "agent:main:subagent:0a1b2c3d-0000-7000-8000-000000000001";

/// A store in which the main session spawns a child that fails, and a webhook is refused.
fn scene() -> Home {
    let home = Home::new();
    home.push("telegram", "42", "please count the words");
    let event = |stream: &str, kind: &str, data: &str| append(&home.store(), stream, kind, data);
    event(
        MAIN,
        "session.opened",
        "{'sessionId':'s1','kind':'main','agentId':'main','spawnDepth':0}",
    );
    event(
        CHILD,
        "session.opened",
        &format!(
            "{{'sessionId':'s2','kind':'other','agentId':'main','parentKey':'{MAIN}','spawnDepth':1}}"
        ),
    );
    event(
        CHILD,
        "turn",
        &format!(
            "{{'sessionId':'s2','role':'user','from':'inter_session','provenance':{{'sourceSessionKey':'{MAIN}','runId':'run-1','round':1}},'content':'count the words'}}"
        ),
    );
    event(
        "run:run-1",
        "run.requested",
        &format!(
            "{{'runId':'run-1','sessionKey':'{CHILD}','sessionId':'s2','kind':'spawn','agentId':'main','requesterKey':'{MAIN}','chainId':'c','hop':0,'round':1,'timeoutSeconds':60,'deliver':false}}"
        ),
    );
    event(
        MAIN,
        "spawn.accepted",
        &format!("{{'runId':'run-1','targetKey':'{CHILD}','hop':0,'round':1,'label':'counter'}}"),
    );
    event(
        "run:run-1",
        "run.finished",
        "{'runId':'run-1','status':'timeout','reason':'deadline','runtimeMs':60000}",
    );
    event(
        MAIN,
        "send.refused",
        "{'verb':'sessions_send','target':'agent:ops:main','reason':'visibility'}",
    );
    event("policy", "policy.changed", "{'path':'session.scope','old':null,'new':'global'}");
    event("x:1", "x.acme.tick", "{'note':'Größe'}");
    home
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap_or("gap")).collect()
}

/// Goal: each filter gives exactly what it names, in order. Method: one query a line on one store; what comes is
/// compared as a list of types.
#[test]
fn filters() {
    let home = scene();
    let check = |args: &[&str], expect: &[&str]| {
        let args = [&["log", "-o", "jsonl"][..], args].concat();
        assert_eq!(types(&home.json_lines(&args)), expect, "{args:?}");
    };
    let all = [
        "session.opened",
        "turn",
        "session.opened",
        "session.opened",
        "turn",
        "run.requested",
        "spawn.accepted",
        "run.finished",
        "send.refused",
        "policy.changed",
        "x.acme.tick",
    ];
    check(&[], &all);
    check(&["--type", "turn"], &["turn", "turn"]);
    check(&["--type", "spawn,run"], &["run.requested", "spawn.accepted", "run.finished"]);
    check(&["--type", "*.refused", "--type", "x.acme.*"], &["send.refused", "x.acme.tick"]);
    check(&["--type", "error"], &["run.finished", "send.refused"]);
    check(&["--type", "x.acme.other"], &[]);
    check(&["--session", MAIN], &["session.opened", "spawn.accepted", "send.refused"]);
    check(&["--session", "main"], &["session.opened", "spawn.accepted", "send.refused"]);
    let child = ["session.opened", "turn", "run.requested", "run.finished"];
    check(&["--session", "agent:*:subagent:*"], &child);
    check(&["--session", "agent:main:sub"], &child);
    check(
        &["--session", "telegram:4?", "--session", "policy"],
        &["session.opened", "turn", "policy.changed"],
    );
    check(&["--session", "nobody:*"], &[]);
    check(&["--kind", "main"], &["session.opened", "spawn.accepted", "send.refused"]);
    check(&["--kind", "other", "--type", "run.finished"], &["run.finished"]);
    check(&["--agent", "main", "--type", "turn"], &["turn", "turn"]);
    check(&["--agent", "ops"], &[]);
    check(&["--run", "run-1"], &["turn", "run.requested", "spawn.accepted", "run.finished"]);
    check(&["--from", MAIN], &["turn", "spawn.accepted", "send.refused"]);
    check(&["--to", "agent:ops:*"], &["send.refused"]);
    check(&["--to", "agent:ops:main"], &["send.refused"]);
    check(&["--to", "agent:main:subagent:0a1b"], &["turn", "spawn.accepted"]);
    check(&["--from", "agent:main:subagent:0a1b"], &["run.finished"]);
    check(&["--from", "nobody"], &[]);
    check(&["--from", "agent:*:subagent:*", "--to", MAIN], &["run.finished"]);
    check(&["-g", "w.rds"], &["turn", "turn"]);
    check(&["-g", "^Größe$"], &["x.acme.tick"]);
    check(&["-m"], &["turn", "spawn.accepted", "run.finished", "send.refused", "policy.changed"]);
    check(&["--since", "1h"], &all);
    check(&["--until", "1h"], &[]);
    check(&["--since", "yesterday", "--type", "policy"], &["policy.changed"]);
    check(
        &["--type", "spawn,error", "--since", "1h", "--session", "agent:main:*", "--limit", "50"],
        &["spawn.accepted", "run.finished", "send.refused"],
    );
    check(&["-n", "2", "--type", "session"], &["session.opened", "session.opened"]);
}

/// Goal: nobody takes one session for another without being told. Method: the beginning of a key, and the key.
#[test]
fn beginnings_are_told() {
    let home = scene();
    for args in [
        &["log", "--session", "telegram:4"][..],
        &["export", "telegram:4"],
        &["log", "-m", "--from", "telegram:4"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        assert!(ran.stderr.contains("note: telegram:4 stands for telegram:42"), "{ran:#?}");
    }
    let ran = home.run(&["log", "--session", "telegram:42"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

/// Goal: following ends when nothing more can be wanted. Method: a follower until now, which must end by itself with
/// what is there.
#[test]
fn following_until_now_ends() {
    let home = scene();
    let text = home.ok(&["tail", "-f", "--until", "now", "--type", "turn"]);
    assert_eq!(text.lines().count(), 2, "{text}");
}

/// Goal: a pipe gets every value whole, a screen the beginning of each. Method: a patch with one long value and one
/// short one behind it.
#[test]
fn long_values() {
    let home = Home::new();
    home.push("cli", "default", "hi");
    let long = "a long value ".repeat(30);
    append(
        &home.store(),
        "cli:default",
        "x.acme.note",
        &format!("{{'long':'{long}','short':'seen'}}"),
    );
    let text = home.ok(&["log", "--type", "x.acme.note"]);
    assert!(text.contains(long.trim()) && text.contains("short=seen"), "{text}");
    let (_, text) =
        crate::support::on_terminal(home.command(&["log", "--type", "x.acme.note"]), 160);
    assert!(text.contains("long=a long value") && text.contains("… short=seen"), "{text}");
}

/// Goal: times have one meaning in every form. Method: an event that happened long before it was recorded.
#[test]
fn recorded_and_happened() {
    let home = Home::new();
    let then = "2020-05-01T12:00:00.000000Z";
    let turn =
        format!("{{'at':'{then}','sessionId':'s','role':'user','from':'external','content':'x'}}");
    append(&home.store(), "pi:1", "turn", &turn);
    let event = &home.json_lines(&["log", "-o", "jsonl"])[0];
    let csv = home.ok(&["log", "-o", "csv"]);
    let mut rows = csv.lines();
    assert!(rows.next().expect("titles").starts_with("seq,time,at,"), "{csv}");
    let time = event["time"].as_str().expect("text");
    assert_eq!(event["at"], then);
    assert!(rows.next().expect("a row").contains(&format!(",{time},{then},")), "{csv}");
}

/// Goal: places in the log bound a query on both sides, both included. Method: from the position of one event to that
/// of a later one.
#[test]
fn places() {
    let home = scene();
    let all = home.json_lines(&["log", "-o", "jsonl"]);
    let (first, last) = (&all[2], &all[4]);
    let args = [
        "log",
        "-o",
        "jsonl",
        "--since",
        &format!("#{}", first["seq"]),
        "--until",
        &format!("#{}", last["seq"]),
    ];
    assert_eq!(home.json_lines(&args), all[2..=4]);
}

/// Goal: the past decides by its own time: what was imported counts when it happened. Method: a turn of 2020.
#[test]
fn time_is_when_it_happened() {
    let home = Home::new();
    home.push("cli", "default", "now");
    append(
        &home.store(),
        "pi:1",
        "turn",
        "{'at':'2020-05-01T12:00:00.000000Z','sessionId':'s','role':'user','from':'external','content':'then'}",
    );
    let said = |args: &[&str]| {
        let args = [&["log", "-o", "jsonl", "--type", "turn"][..], args].concat();
        let events = home.json_lines(&args);
        events
            .iter()
            .map(|e| e["data"]["content"].as_str().expect("text").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(said(&["--until", "2021-01-01"]), ["then"]);
    assert_eq!(
        said(&["--since", "2020-05-01T12:00:00Z", "--until", "2020-05-01T14:00:00+02:00"]),
        ["then"]
    );
    assert_eq!(said(&["--since", "2021-01-01"]), ["now"]);
}

/// Goal: a session that does not exist is not an empty answer. Method: a key, an id and a beginning that fit nothing,
/// and one that fits several.
#[test]
fn names_that_fit_nothing_or_too_much() {
    let home = scene();
    for name in ["telegram:43", "nobody:1", "0a1b2c3d"] {
        home.fails(&["log", "--session", name], 3, "not_found");
        home.fails(&["tail", "--session", name], 3, "not_found");
        home.fails(&["export", name], 3, "not_found");
        home.fails(&["sessions", "history", name], 3, "not_found");
    }
    let answer = home.fails(&["log", "--session", "agent:main"], 2, "ambiguous");
    let message = answer["error"]["message"].as_str().expect("text");
    assert!(message.contains(MAIN) && message.contains(CHILD), "{message}");
}

/// Goal: pages hold every event once, say how many more match, and go on from where they ended. Method: pages of every
/// size, with and without a filter that learns from the past.
#[test]
fn pages() {
    let home = scene();
    for filter in [&[][..], &["--kind", "other"], &["-m"], &["--type", "turn,run"]] {
        let all = home.json_lines(&[&["log", "-o", "jsonl", "-n", "0"][..], filter].concat());
        assert!(!all.is_empty());
        for size in 1..=all.len() + 1 {
            let mut seen: Vec<Value> = Vec::new();
            let mut cursor: Option<String> = None;
            loop {
                let size = size.to_string();
                let mut args = [&["log", "--json", "-n", &size][..], filter].concat();
                args.extend(cursor.iter().flat_map(|cursor| ["--after", cursor]));
                let page = home.json(&args);
                seen.extend(page["events"].as_array().expect("a list").iter().cloned());
                let more = page["more"].as_u64().expect("a number");
                assert_eq!(seen.len() as u64 + more, all.len() as u64, "{args:?}");
                cursor = page["next"].as_str().map(str::to_owned);
                if more == 0 {
                    break;
                }
            }
            assert_eq!(seen, all, "pages of {size} with {filter:?}");
            let next = cursor.expect("a cursor behind everything");
            let args = [&["log", "--json", "--after", &next][..], filter].concat();
            assert_eq!(home.json(&args)["events"], Value::Array(Vec::new()));
        }
    }
    let ran = home.run(&["log", "-n", "1"]);
    assert!(ran.stderr.contains("10 more; go on with --after "), "{ran:#?}");
}

/// Goal: a message between sessions reads as what it is: from, to, what was decided, run, round. Method: the lines of
/// the audit view.
#[test]
fn messages_between_sessions() {
    let home = scene();
    let text = home.ok(&["tail", "-m"]);
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().skip(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines,
        [
            format!("{MAIN} -> {CHILD} turn run run-1, round 1: count the words"),
            format!("{MAIN} -> {CHILD} spawn accepted run run-1, round 1: counter"),
            format!("{CHILD} -> {MAIN} spawn timeout run run-1, round 1, because deadline"),
            format!("{MAIN} -> agent:ops:main refusal refused because visibility"),
            "? -> session.scope policy changed null -> \"global\"".to_owned(),
        ]
    );
    let events = home.json_lines(&["tail", "-m", "--json", "--type", "spawn"]);
    let message = &events[0]["message"];
    assert_eq!(
        (
            &message["from"],
            &message["to"],
            &message["run"],
            &message["round"],
            &message["decision"]
        ),
        (&MAIN.into(), &CHILD.into(), &"run-1".into(), &1.into(), &"accepted".into())
    );
}

/// Goal: `tail` shows the end. Method: the last three of a store, and more than there are.
#[test]
fn the_end() {
    let home = scene();
    let last = home.json_lines(&["tail", "-n", "3", "--json"]);
    assert_eq!(types(&last), ["send.refused", "policy.changed", "x.acme.tick"]);
    assert_eq!(home.json_lines(&["tail", "-n", "500", "--json"]).len(), 11);
    assert_eq!(home.ok(&["tail", "-n", "0"]), "");
}

/// Goal: the end of a log is the same wherever reading begins to look for it. Method: a log of many small segments;
/// every length of its end, with and without filters, against the whole.
#[test]
fn the_end_of_many_segments() {
    let home = Home::new();
    let options = Options { segment_bytes: 4_096, ..Options::default() };
    let turn =
        |n: u32| format!("{{'sessionId':'s','role':'user','from':'external','content':'{n}'}}");
    for stream in ["telegram:7", "cli:default", "telegram:7"] {
        append_all(&home.store(), options.clone(), stream, "turn", (0..60).map(turn));
    }
    let segments = std::fs::read_dir(home.store().join("log")).expect("a folder").count();
    assert!(segments > 10, "{segments}");
    for filter in
        [&[][..], &["--session", "cli:default"], &["-g", "^5$"], &["--type", "log.opened"]]
    {
        let all = home.json_lines(&[&["log", "-n0", "-o", "jsonl"][..], filter].concat());
        assert!(!all.is_empty());
        for count in [1, 2, 3, 7, 59, 60, 61, 179, 180, 1_000] {
            let count_text = count.to_string();
            let end =
                home.json_lines(&[&["tail", "--json", "-n", &count_text][..], filter].concat());
            assert_eq!(end, all[all.len().saturating_sub(count)..], "{count} {filter:?}");
        }
    }
}

/// Goal: `raw` is the log byte for byte, `csv` is a table that a spreadsheet reads. Method: compare with the file;
/// read the rows back.
#[test]
fn raw_and_csv() {
    let home = scene();
    let log = home.store().join("log/00000000000000000001.jsonl");
    let bytes = std::fs::read_to_string(log).expect("the segment");
    let raw = home.ok(&["log", "-n", "0", "-o", "raw"]);
    assert!(!raw.is_empty() && bytes.contains(raw.lines().next().expect("a line")));
    assert_eq!(home.ok(&["export", "-o", "raw"]), bytes.trim_end_matches('\n').to_owned() + "\n");
    let csv = home.ok(&["log", "-o", "csv", "--type", "turn"]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    assert_eq!(reader.headers().expect("titles").get(9), Some("text"));
    let texts: Vec<String> =
        reader.records().map(|row| row.expect("a row")[9].to_owned()).collect();
    assert_eq!(texts, ["please count the words", "run run-1, round 1: count the words"]);
}

/// Goal: an export is what CloudEvents 1.0 asks for, and carries everything. Method: the fields of each event against
/// the log's own.
#[test]
fn exports_are_cloud_events() {
    let home = scene();
    let all = home.json_lines(&["export"]);
    let raw = crate::support::lines_of(&home.ok(&["export", "-o", "raw"]));
    assert_eq!(all.len(), raw.len());
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    for (event, line) in all.iter().zip(&raw) {
        assert_eq!(event["specversion"], "1.0");
        for (name, own) in [
            ("id", "id"),
            ("type", "type"),
            ("subject", "stream"),
            ("data", "data"),
            ("recordedtime", "time"),
        ] {
            assert_eq!(event[name], line[own], "{name}");
        }
        assert_eq!(
            text(&event["sequence"]),
            format!("{:020}", line["seq"].as_u64().expect("a number"))
        );
        assert_eq!(text(&event["streamversion"]), line["version"].to_string());
        assert!(text(&event["source"]).starts_with("urn:uuid:"));
        let names = event.as_object().expect("an object").keys();
        for name in names {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{name}");
        }
    }
    assert_eq!(home.json_lines(&["export", MAIN, "--type", "spawn"]).len(), 1);
}
