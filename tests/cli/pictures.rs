//! `graph` and `timeline`: who did what to whom, with what outcome.

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
    request("r1", "telegram:7", "send");
    tell("cli:a", "send.accepted", "{'runId':'r1','targetKey':'telegram:7','hop':0}");
    end("r1", "ok");
    request("r2", CHILD, "spawn");
    let spawned =
        format!("{{'runId':'r2','targetKey':'{CHILD}','hop':0,'label':'say \\\"hi\\\"'}}");
    tell("cli:a", "spawn.accepted", &spawned);
    end("r2", "error");
    let announce = format!("{{'runId':'r2','childKey':'{CHILD}'}}");
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
