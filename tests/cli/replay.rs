//! `replay`, `usage` and `runs`: what the past was, and what it came to.

use std::fs;
use std::path::Path;

use annals_engine::engine::Options;
use serde_json::Value;

use crate::support::{Home, append, append_all, lines_of, on_terminal, remove, snapshot, write};

const CHILD: &str = "agent:main:subagent:0192f0c1-7a31-7c09-b0d8-3d6f0a5e4c11";
const RUN: &str = "0192f0c1-7a31-7c09-b0d8-3d6f0a5e4c12";

/// A session that spawned a child, which answered and was announced; two runs more, one open under a lease that is over.
fn flow() -> Home {
    let home = Home::new();
    let store = home.store();
    let tell = |stream: &str, kind: &str, data: &str| append(&store, stream, kind, data);
    let opened = |key: &str, more: &str| {
        let data = format!(
            "{{'sessionId':'s-{key}','kind':'other','agentId':'main'{more},'spawnDepth':0}}"
        );
        tell(key, "session.opened", &data);
    };
    let requested = |run: &str, key: &str, kind: &str| {
        let data = format!(
            "{{'runId':'{run}','sessionKey':'{key}','sessionId':'s-{key}','kind':'{kind}','agentId':'main',\
             'requesterKey':'cli:default','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
        );
        tell(&format!("run:{run}"), "run.requested", &data);
    };
    let claimed = |run: &str| {
        let data = format!(
            "{{'runId':'{run}','worker':'w1','pid':7,'processStart':'1','bootId':'b','host':'box',\
             'leaseUntil':'2026-04-01T00:00:00.000000Z'}}"
        );
        tell(&format!("run:{run}"), "run.claimed", &data);
    };
    opened("cli:default", "");
    tell(
        "cli:default",
        "turn",
        "{'sessionId':'s-cli:default','role':'user','from':'external','content':'go'}",
    );
    opened(CHILD, ",'parentKey':'cli:default'");
    requested(RUN, CHILD, "spawn");
    let spawned = format!("{{'runId':'{RUN}','targetKey':'{CHILD}','hop':0,'label':'scout'}}");
    tell("cli:default", "spawn.accepted", &spawned);
    claimed(RUN);
    let answer = format!(
        "{{'sessionId':'s-{CHILD}','role':'assistant','from':'internal','runId':'{RUN}','model':'m1',\
         'tokens':{{'in':1200,'out':34,'cacheRead':5}},'costMicros':1234567,'content':'done'}}"
    );
    tell(CHILD, "turn", &answer);
    let finished = format!("{{'runId':'{RUN}','status':'ok','runtimeMs':5,'replySeq':8}}");
    tell(&format!("run:{RUN}"), "run.finished", &finished);
    let announce =
        format!("{{'runId':'{RUN}','childKey':'{CHILD}','attemptId':'a1','sink':'log'}}");
    for step in ["requested", "attempted", "delivered"] {
        tell("cli:default", &format!("announce.{step}"), &announce);
    }
    requested("r-waiting", "telegram:7", "send");
    let sent = "{'runId':'r-waiting','targetKey':'telegram:7','hop':0}";
    tell("cli:default", "send.accepted", sent);
    requested("r-claimed", "cli:default", "ask");
    claimed("r-claimed");
    tell(
        "cli:default",
        "session.reset",
        "{'sessionId':'s2','previousSessionId':'s-cli:default','reason':'manual','effectiveAt':'2026-04-01T00:00:00.000000Z'}",
    );
    home
}

/// Everything under the store that can be built again.
fn derived(store: &Path) -> Vec<std::path::PathBuf> {
    let files = snapshot(store).into_iter().map(|(path, _)| path).filter(|path| path.is_file());
    files
        .filter(|path| {
            let ends = |end: &str| path.extension().is_some_and(|ext| ext == end);
            ends("idx") || ends("snap")
        })
        .collect()
}

fn has_snapshot(store: &Path) -> bool {
    derived(store).iter().any(|path| path.extension().is_some_and(|ext| ext == "snap"))
}

/// Small in what makes a process write indexes and snapshots.
fn small() -> Options {
    Options {
        snapshot_bytes: 1,
        index_bytes: 1_000,
        stretch_bytes: 1_000,
        segment_bytes: 8 << 10,
        ..Options::default()
    }
}

/// Goal: the sessions are built again from events alone, say from how many, and are those of the list; without any
/// derived file they are the same bytes. Method: a flow in a store that keeps many snapshots and indexes, before and
/// after these are deleted.
#[test]
fn from_nothing() {
    let home = flow();
    let store = home.store();
    let note = "{'sessionId':'s2','role':'user','from':'external','content':'more and more'}";
    append_all(&store, small(), "cli:default", "turn", (0..80).map(|_| note.to_owned()));
    let text = home.ok(&["replay", "--until", "#60"]);
    assert!(text.lines().any(|line| line == "rebuilt 2 sessions from 60 events"), "{text}");
    let answer = home.json(&["replay", "--json"]);
    let listed = home.json(&["sessions", "list", "--all", "--json"]);
    assert_eq!(answer["sessions"], listed["sessions"]);
    assert_eq!((&answer["rebuilt"], &answer["gaps"]), (&2.into(), &0.into()));
    assert_eq!(answer["asOf"], listed["asOf"]);
    let as_of = format!("#{}", answer["asOf"]);
    let ways: [&[&str]; 4] = [
        &["replay", "--until", &as_of, "--json"],
        &["replay", "--until", &as_of],
        &["replay", "--until", &as_of, "-o", "csv"],
        &["replay", "--until", &as_of, "--tree", "cli:default", "--json"],
    ];
    let before = ways.map(|args| home.ok(args));
    let files = derived(&store);
    assert!(files.len() > 3 && has_snapshot(&store), "{files:?}");
    files.iter().for_each(|path| remove(path));
    assert_eq!(ways.map(|args| home.ok(args)), before);
    assert!(derived(&store).is_empty(), "a replay writes nothing");
}

/// Goal: as of every position there are the sessions of then, and the same bytes each time; a time ends before the first
/// event that was recorded after it. Method: the flow, cut at each of its positions and at the time of each event.
#[test]
fn as_of_then() {
    let home = flow();
    let segment = home.store().join("log/00000000000000000001.jsonl");
    let events = lines_of(&fs::read_to_string(segment).expect("a segment"));
    for event in &events {
        let (seq, time) =
            (event["seq"].as_u64().expect("seq"), event["time"].as_str().expect("time"));
        let by_seq = home.ok(&["replay", "--until", &format!("#{seq}"), "--json"]);
        assert_eq!(by_seq, home.ok(&["replay", "--until", &format!("#{seq}"), "--json"]));
        let by_time: Value = home.json(&["replay", "--until", time, "--json"]);
        let by_seq: Value = serde_json::from_str(&by_seq).expect("JSON");
        assert_eq!((&by_seq["asOf"], &by_seq["events"]), (&seq.into(), &seq.into()));
        assert_eq!(by_seq["now"], time);
        let stands = events.iter().filter(|other| other["time"].as_str() <= Some(time)).count();
        assert_eq!(by_time["events"], stands, "{time}");
        assert_eq!(by_time["now"], time);
    }
    let rows = |until: &str| home.json(&["replay", "--until", until, "--json"])["rebuilt"].clone();
    assert_eq!((rows("#1"), rows("#999999"), rows("2001-01-01")), (0.into(), 2.into(), 0.into()));
    home.fails(&["replay", "--until", "soon"], 2, "usage");
    home.fails(&["replay", "--check", "--until", "#3"], 2, "usage");
    home.fails(&["replay", "--tree", "nobody:1"], 3, "not_found");
    home.fails(&["replay", "--tree", "cli:default", "--until", "#1"], 3, "not_found");
}

/// Goal: a past before all that was recorded, and a place behind the end, say so; what lies between says nothing. Method:
/// one event of long ago that was recorded now, as of before and after it.
#[test]
fn notes_on_an_empty_past() {
    let home = Home::new();
    let turn = "{'at':'2020-03-01T00:00:00.000000Z','sessionId':'s','role':'user','from':'external','content':'go'}";
    append(&home.store(), "cli:a", "turn", turn);
    let said = |until: &str| home.run(&["replay", "--until", until]).stderr;
    let segment = home.store().join("log/00000000000000000001.jsonl");
    let events = lines_of(&fs::read_to_string(segment).expect("a segment"));
    let last = events.iter().find(|event| event["type"] == "turn").expect("the turn");
    let (seq, time) = (last["seq"].as_u64().expect("seq"), last["time"].as_str().expect("time"));
    let past = said("2020-03-02");
    assert!(past.contains("nothing was recorded before then") && past.contains(time), "{past}");
    assert_eq!(said(time), "");
    assert_eq!(said(&format!("#{seq}")), "");
    assert!(said("#99999").contains("note: the log ends at #"), "{}", said("#99999"));
}

/// Goal: a flow is a tree in which everything stands in its place, whole in a pipe and within the screen on a terminal.
/// Method: the flow; its lines without their times; 80 columns.
#[test]
fn a_tree() {
    let home = flow();
    let text = home.ok(&["replay", "--tree", "cli:default"]);
    let without_times: Vec<String> = text
        .lines()
        .map(|line| {
            let words =
                line.split(' ').filter(|word| !(word.starts_with("20") && word.ends_with('Z')));
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let expected = format!(
        "\
cli:default  running
├─ #2  opened, part s-cli:default
├─ #3  1 turn: 1 user
├─ #6  spawn scout
│  ├─ run {RUN}  ok
│  │  ├─ #5  requested
│  │  ├─ #7  claimed by w1 on box
│  │  └─ #9  ok, reply #8
│  ├─ announce  delivered
│  │  ├─ #10  requested
│  │  ├─ #11  attempted through log
│  │  └─ #12  delivered
│  └─ {CHILD}  done
│     ├─ #4  opened, part s-{CHILD}
│     └─ #8  1 turn: 1 assistant
├─ #14  send to telegram:7
│  └─ run r-waiting  requested
│     └─ #13  requested
├─ #15  run r-claimed  claimed (ask)
│  └─ #16  claimed by w1 on box
└─ #17  reset (manual), part s2"
    );
    assert_eq!(without_times.join("\n"), expected);
    let (code, screen) = on_terminal(home.command(&["replay", "--tree", "cli:default"]), 80);
    assert_eq!(code, Some(0));
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    let tree = &home.json(&["replay", "--tree", "cli:d", "--json"])["tree"];
    let spawn = &tree["steps"][2];
    assert_eq!(
        (
            &spawn["step"],
            &spawn["child"]["key"],
            &spawn["run"]["state"],
            &spawn["announce"]["state"]
        ),
        (&"spawn".into(), &CHILD.into(), &"ok".into(), &"delivered".into())
    );
    let child = home.ok(&["replay", "--tree", CHILD]);
    assert!(child.starts_with(&format!("{CHILD}  done, spawned by cli:default\n")), "{child}");
    let then = home.ok(&["replay", "--tree", "cli:default", "--until", "#7"]);
    assert!(then.contains("claimed") && !then.contains("announce"), "{then}");
}

/// Goal: the proof holds where it should, fails where state and log differ, and never changes a byte. Method: a store
/// with a snapshot, then a line under the snapshot that can be read no more; the same line before the snapshot.
#[test]
fn the_proof() {
    let home = flow();
    let store = home.store();
    assert!(home.ok(&["replay", "--check"]).starts_with("same: no snapshot fits"));
    let note = "{'sessionId':'s2','role':'user','from':'external','content':'the snapshot'}";
    append_all(&store, small(), "cli:default", "turn", (0..40).map(|_| note.to_owned()));
    assert!(has_snapshot(&store));
    let before = snapshot(home.path());
    let answer = home.json(&["replay", "--check", "--json"]);
    assert!(answer["snapshot"].as_u64() > Some(0), "{answer}");
    assert_eq!((&answer["ok"], &answer["asOf"]), (&true.into(), &answer["events"]));
    assert!(home.ok(&["replay", "--check"]).starts_with("same: the snapshot at #"));
    assert_eq!(snapshot(home.path()), before);
    let segment = store.join("log/00000000000000000001.jsonl");
    let text = fs::read_to_string(&segment).expect("a segment");
    write(&segment, text.replace("\"content\":\"go\"", "\"content\":\"no\""));
    let answer = home.fails(&["replay", "--check"], 1, "different");
    let message = answer["error"]["message"].as_str().expect("text");
    assert!(message.contains("what differs: cli:default"), "{message}");
}

/// Goal: a damaged store is replayed as far as it can be read, and says so everywhere. Method: one line that is
/// overwritten.
#[test]
fn of_a_damaged_store() {
    let home = flow();
    let segment = home.store().join("log/00000000000000000001.jsonl");
    let text = fs::read_to_string(&segment).expect("a segment");
    write(&segment, text.replace("\"content\":\"go\"", "\"content\":\"no\""));
    let answer = home.json(&["replay", "--json"]);
    assert_eq!((&answer["gaps"], &answer["missing"]), (&1.into(), &1.into()), "{answer}");
    for args in
        [&["replay"][..], &["replay", "--until", "#9"], &["replay", "--tree", "cli:default"]]
    {
        let text = home.ok(args);
        assert!(text.contains("!!!!!!!! 1 gap in the log, 1 event missing"), "{args:?}: {text}");
    }
    assert!(!home.ok(&["replay", "--until", "#2"]).contains("gap"), "the loss lies behind");
    for args in [&["usage"][..], &["runs", "list"], &["runs", "show", RUN]] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:#?}");
        assert!(ran.stderr.contains("1 gap in the log"), "{args:?}: {ran:#?}");
    }
    assert_eq!(home.json(&["runs", "list", "--json"])["gaps"], 1);
}

/// Goal: what never ended is listed with its age and its owner, for people and for programs. Method: the flow, with one
/// run that ended, one that nobody has, one whose worker is silent.
#[test]
fn open_runs() {
    let home = flow();
    let answer = home.json(&["runs", "list", "--open", "--json"]);
    let runs = answer["runs"].as_array().expect("runs");
    let told: Vec<(&str, &str)> = runs
        .iter()
        .map(|run| (run["runId"].as_str().expect("id"), run["state"].as_str().expect("state")))
        .collect();
    assert_eq!(told, [("r-claimed", "claimed"), ("r-waiting", "requested")]);
    assert_eq!((&answer["total"], &answer["open"]), (&2.into(), &2.into()));
    assert_eq!(runs[0]["owner"]["worker"], "w1");
    assert!(runs[0]["ageMs"].is_u64() && runs[0]["open"] == true);
    assert_eq!(runs[1]["requesterKey"], "cli:default");
    let text = home.ok(&["runs", "list", "--open"]);
    assert!(text.contains("w1@box (lease over)") && !text.contains(RUN), "{text}");
    assert_eq!(home.json(&["runs", "list", "--json"])["total"], 3);
    assert_eq!(home.json_lines(&["runs", "list", "-o", "jsonl"]).len(), 3);
    let csv = home.ok(&["runs", "list", "-o", "csv", "-n", "1"]);
    assert!(csv.starts_with("runId,state,ageMs,") && csv.contains("\nr-claimed,claimed,"), "{csv}");
    assert_eq!(csv.lines().count(), 2);
    let empty = Home::new();
    empty.push("cli", "default", "hi");
    let ran = empty.run(&["runs", "list", "--open"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
}

/// Goal: one run is shown with everything that is known of it, by its id or the beginning. Method: the run of the child;
/// beginnings that fit two, none, and are too short.
#[test]
fn one_run() {
    let home = flow();
    let text = home.ok(&["runs", "show", &RUN[..13]]);
    for part in [
        &format!("run        {RUN}\n")[..],
        "state      ok after 0s\n",
        CHILD,
        "w1 on box",
        "reply      #8",
        "announce   delivered in cli:default",
        "a1 through log",
        "  delivered  #12 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let answer = home.json(&["runs", "show", RUN, "--json"]);
    assert_eq!(
        (&answer["run"]["end"]["replySeq"], &answer["outgoing"][0]["state"]),
        (&8.into(), &"delivered".into())
    );
    append(
        &home.store(),
        "run:x",
        "run.finished",
        "{'runId':'r-claimed-too','status':'error','runtimeMs':1,'detail':'line one\\nline two'}",
    );
    home.fails(&["runs", "show", "r-claimed-x"], 3, "not_found");
    home.fails(&["runs", "show", "r-cl"], 2, "ambiguous");
    home.fails(&["runs", "show", "r-c"], 3, "not_found");
    assert!(home.ok(&["runs", "show", "r-claimed-too"]).contains("  line one\n  line two\n"));
}

/// Goal: usage is summed up by each of four names, in each form, and within bounds. Method: the flow's one answer, and
/// one more of another model.
#[test]
fn usage() {
    let home = flow();
    append(
        &home.store(),
        "cli:default",
        "turn",
        "{'at':'2026-03-31T10:00:00.000000Z','sessionId':'s2','role':'assistant','from':'internal','model':'m2',\
         'tokens':{'in':2000,'out':1},'content':'x'}",
    );
    let sums = |by: &str, more: &[&str]| {
        let answer = home.json(&[&["usage", "--by", by, "--json"], more].concat());
        let sums = answer["sums"].as_array().expect("sums").iter();
        sums.map(|sum| {
            (
                sum["name"].as_str().expect("name").to_owned(),
                sum["tokensIn"].as_u64().expect("a number"),
            )
        })
        .collect::<Vec<_>>()
    };
    let pair = |name: &str, number: u64| (name.to_owned(), number);
    assert_eq!(sums("session", &[]), [pair("cli:default", 2_000), pair(CHILD, 1_200)]);
    assert_eq!(sums("agent", &[]), [pair("main", 3_200)]);
    assert_eq!(sums("model", &[]), [pair("m2", 2_000), pair("m1", 1_200)]);
    assert_eq!(sums("day", &[])[0], pair("2026-03-31", 2_000));
    assert_eq!(sums("model", &["--until", "2026-04-01T00:00:00Z"]), [pair("m2", 2_000)]);
    assert_eq!(sums("model", &["--since", "1d"]), [pair("m1", 1_200)]);
    assert_eq!(sums("model", &["--until", "#8"]), [pair("m1", 1_200)]);
    assert_eq!(sums("model", &["--since", "#9"]), [pair("m2", 2_000)]);
    let text = home.ok(&["usage", "--by", "model"]);
    for part in ["MODEL", "$1.234567", "1,200", "total"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let csv = home.ok(&["usage", "--by", "model", "-o", "csv"]);
    assert_eq!(
        csv,
        "model,messages,tokensIn,tokensOut,cacheRead,cacheWrite,costMicros\nm2,1,2000,1,0,0,\nm1,1,1200,34,5,0,1234567\n"
    );
    for _ in 0..2 {
        append(
            &home.store(),
            "cli:default",
            "turn",
            "{'sessionId':'s2','role':'assistant','from':'internal','messageId':'m','tokens':{'in':50,'out':1},\
             'content':'a piece'}",
        );
    }
    let (stats, total) = (home.json(&["stats", "--json"]), home.json(&["usage", "--json"]));
    assert_eq!(
        (&stats["tokensIn"], &stats["tokensOut"]),
        (&total["total"]["tokensIn"], &total["total"]["tokensOut"])
    );
    assert_eq!(stats["tokensIn"], 3_250);
    home.fails(&["usage", "--by", "colour"], 2, "usage");
    home.fails(&["usage", "--since", "#9", "--until", "#3"], 2, "usage");
}

/// Goal: every table and tree fits the screen, and in a pipe no name is cut. Method: terminals of four widths, and a
/// pipe, which has every key and id whole.
#[test]
fn widths() {
    let home = flow();
    let ways: [&[&str]; 5] = [
        &["replay"],
        &["replay", "--tree", "cli:default"],
        &["runs", "list"],
        &["runs", "list", "--open"],
        &["usage"],
    ];
    for args in ways {
        for width in [60, 80, 120, 160] {
            let plain = [args, &["--color", "never"]].concat();
            let (code, text) = on_terminal(home.command(&plain), width);
            assert_eq!(code, Some(0), "{args:?}: {text}");
            for line in text.lines() {
                assert!(line.chars().count() <= usize::from(width), "{args:?} at {width}: {line}");
            }
        }
        let text = home.ok(args);
        assert!(!text.contains('…') && !text.contains(" ago"), "{args:?}: {text}");
        assert!(args.contains(&"--open") || text.contains(CHILD), "{args:?}: {text}");
    }
}
