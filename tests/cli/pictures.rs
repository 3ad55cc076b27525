//! `graph` and `timeline`: who did what to whom, with what outcome.

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::support::{Home, append, on_terminal};

const CHILD: &str = "agent:main:subagent:0192f0c1-7a31-7c09-b0d8-3d6f0a5e4c11";

/// A session that sent to another, which answered; a child that failed and was announced; a refusal; and words of a
/// session that nothing names.
fn story() -> Home {
    let home = Home::new();
    let store = home.store();
    home.push("cli", "a", "go");
    home.push("telegram", "7", "hi");
    let tell = |stream: &str, kind: &str, data: &str| append(&store, stream, kind, data);
    let request = |run: &str, key: &str, kind: &str| {
        let data = format!(
            "{{'runId':'{run}','sessionKey':'{key}','sessionId':'s','kind':'{kind}','agentId':'main',\
             'requesterKey':'cli:a','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
        );
        tell(&format!("run:{run}"), "run.requested", &data);
    };
    let end = |run: &str, status: &str| {
        let data = format!("{{'runId':'{run}','status':'{status}','runtimeMs':5}}");
        tell(&format!("run:{run}"), "run.finished", &data);
    };
    request("run-1", "telegram:7", "send");
    tell("cli:a", "send.accepted", "{'runId':'run-1','targetKey':'telegram:7','hop':0}");
    end("run-1", "ok");
    request("run-2", CHILD, "spawn");
    let spawned =
        format!("{{'runId':'run-2','targetKey':'{CHILD}','hop':0,'label':'say \\\"hi\\\"'}}");
    tell("cli:a", "spawn.accepted", &spawned);
    end("run-2", "error");
    let announce = format!("{{'runId':'run-2','childKey':'{CHILD}'}}");
    tell("cli:a", "announce.requested", &announce);
    tell("cli:a", "announce.failed", &announce.replace('}', ",'reason':'no_route'}"));
    tell("cli:a", "spawn.refused", "{'verb':'sessions_spawn','target':'ops','reason':'depth'}");
    tell(
        "cli:a",
        "turn",
        "{'sessionId':'s','role':'user','from':'inter_session','content':'who am I?'}",
    );
    home
}

/// Goal: each language is one that its programs take: every name is defined, edges carry their outcomes, and what is
/// known at one end alone is counted. Method: the story in each.
#[test]
fn pictures() {
    let home = story();
    let mermaid = home.run(&["graph", "--as", "mermaid"]);
    let lines: Vec<&str> = mermaid.stdout.lines().collect();
    assert_eq!(lines[0], "flowchart LR");
    assert!(lines.contains(&"  n0[\"cli:a\"]") && lines.contains(&"  n4{{\"?\"}}"), "{lines:?}");
    assert!(lines.contains(&"  n0 -->|\"send: 1 ok\"| n1"), "{lines:?}");
    assert!(lines.contains(&"  n0 -.->|\"refusal: 1 refused\"| n3"), "{lines:?}");
    assert!(mermaid.stderr.contains("1 deed known at one end alone"), "{}", mermaid.stderr);
    let dot = home.ok(&["graph", "--as", "dot"]);
    assert!(dot.starts_with("digraph annals {") && dot.trim_end().ends_with('}'));
    assert!(dot.contains("n0 -> n2 [label=\"spawn: 1 error\"];"), "{dot}");
    let edges = home.json(&["graph", "--json"]);
    assert_eq!((edges["edges"].as_array().map(Vec::len), &edges["unjoined"]), (Some(5), &1.into()));
}

/// Goal: each deed is a line with its outcome and why. Method: the story as objects and on a terminal of 80 columns.
#[test]
fn deeds_in_order() {
    let home = story();
    let told = home.json(&["timeline", "--json"]);
    let deeds = told["deeds"].as_array().expect("deeds");
    let shown: Vec<String> = deeds
        .iter()
        .map(|deed| format!("{} {} {}", deed["kind"], deed["outcome"], deed["reason"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#""send" "ok" null"#,
            r#""spawn" "error" null"#,
            r#""announce" "failed" "no_route""#,
            r#""refusal" "refused" "depth""#,
            r#""message" "said" null"#,
        ]
    );
    let (code, text) = on_terminal(home.command(&["timeline", "--color", "never"]), 80);
    assert_eq!(code, Some(0));
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    assert!(home.ok(&["timeline", "-n", "1"]).contains("said"));
}

/// Goal: a log in which nobody spoke to anybody says so and is no failure. Method: one turn.
#[test]
fn nothing() {
    let home = Home::new();
    home.push("cli", "a", "go");
    for verb in ["graph", "timeline"] {
        let ran = home.run(&[verb]);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.contains("no session has said anything"), "{}", ran.stderr);
    }
}

/// Goal: filters choose deeds and never change them: the same deed reads the same with and without each filter, and its
/// edge counts the same outcomes. Method: the story with a child of another agent, through each filter.
#[test]
fn filters_choose() {
    let home = story();
    let opened = "{'sessionId':'c','kind':'other','agentId':'ops','spawnDepth':1}";
    append(&home.store(), CHILD, "session.opened", opened);
    let all = deeds_of(&home, &[]);
    let place = |kind: &str| {
        let deed = all.iter().find(|deed| deed["kind"] == kind).expect("a deed");
        format!("#{}", deed["seq"])
    };
    let (sent, spawned, announced) = (place("send"), place("spawn"), place("announce"));
    let cases: [(&[&str], &[&str]); 16] = [
        (&["--type", "send"], &["send"]),
        (&["--type", "spawn"], &["spawn", "refusal"]),
        (&["--type", "run.finished"], &["send", "spawn"]),
        (&["--type", "announce.failed"], &["announce"]),
        (&["--type", "error"], &["spawn", "announce", "refusal"]),
        (&["--session", "telegram:7"], &["send"]),
        (&["--session", "agent:main:subagent:*"], &["spawn", "announce"]),
        (&["--agent", "ops"], &["spawn", "announce"]),
        (&["--from", "cli:a"], &["send", "spawn", "refusal"]),
        (&["--to", "cli:a"], &["announce", "message"]),
        (&["--run", "run-2"], &["spawn", "announce"]),
        (&["--grep", "no_route"], &["announce"]),
        (&["--until", &sent], &["send"]),
        (&["--since", &spawned, "--until", &announced], &["spawn", "announce"]),
        (&["--type", "send", "--agent", "ops"], &[]),
        (&["-n", "2"], &["refusal", "message"]),
    ];
    for (filter, expect) in cases {
        let kept = deeds_of(&home, filter);
        let kinds: Vec<_> = kept.iter().filter_map(|deed| deed["kind"].as_str()).collect();
        assert_eq!(kinds, expect, "{filter:?}");
        assert!(kept.iter().all(|deed| all.contains(deed)), "{filter:?}: {kept:?} of {all:?}");
    }
    let edges = home.json(&["graph", "--type", "send", "--json"]);
    assert_eq!(edges["edges"][0]["outcomes"], serde_json::json!({"ok": 1}));
    let none = home.run(&["timeline", "--type", "send", "--agent", "ops"]);
    assert!(none.stderr.contains("nothing fits: 5 deeds without the filters"), "{}", none.stderr);
}

/// Goal: deeds stand in the order in which they happened, not in that of the log, and times choose by it. Method: a
/// refusal of long ago that the log tells last.
#[test]
fn order_of_time() {
    let home = story();
    let refusal = "{'at':'2020-03-01T00:00:00.000000Z','verb':'sessions_spawn','target':'ops','reason':'old'}";
    append(&home.store(), "cli:a", "spawn.refused", refusal);
    let all = deeds_of(&home, &[]);
    assert_eq!((all.len(), &all[0]["reason"]), (6, &"old".into()));
    let times: Vec<_> = all.iter().filter_map(|deed| deed["at"].as_str()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(deeds_of(&home, &["--until", "2020-03-02"]), all[..1]);
    assert_eq!(deeds_of(&home, &["--since", "2020-03-02"]), all[1..]);
}

fn deeds_of(home: &Home, filter: &[&str]) -> Vec<Value> {
    let told = home.json(&[&["timeline", "--json"], filter].concat());
    told["deeds"].as_array().expect("deeds").clone()
}
