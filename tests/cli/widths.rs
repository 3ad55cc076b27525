//! Lines and tables on terminals of 60 to 160 columns, and in pipes, where nothing is cut.

use unicode_width::UnicodeWidthStr;

use crate::support::{Home, append, on_terminal};

const WIDTHS: [u16; 4] = [60, 80, 120, 160];

fn filled() -> (Home, String) {
    let home = Home::new();
    let chat = "a-chat-with-quite-a-long-name-that-somebody-thought-up-0123456789";
    home.push("telegram", chat, &"a long text ".repeat(40));
    home.push("cli", "default", "日本語のとても長い文章".repeat(12).as_str());
    let key = format!("telegram:{chat}");
    let run = format!(
        "{{'runId':'{chat}','sessionKey':'{key}','sessionId':'s','kind':'ask','agentId':'main',\
         'requesterKey':'{key}','chainId':'c','hop':0,'timeoutSeconds':0,'deliver':false}}"
    );
    append(&home.store(), &format!("run:{chat}"), "run.requested", &run);
    let child = "agent:main:subagent:0192f0c1-7a31-7c09-b0d8-3d6f0a5e4c11";
    let opened = format!(
        "{{'sessionId':'c','kind':'other','agentId':'main','parentKey':'{key}','spawnDepth':1,'label':'{chat}'}}"
    );
    append(&home.store(), child, "session.opened", &opened);
    let task =
        format!("{{'sessionId':'c','role':'user','from':'inter_session','content':'{chat}'}}");
    append(&home.store(), child, "turn", &task);
    let used = "{'sessionId':'s','role':'assistant','from':'internal','model':'m',\
                'tokens':{'in':1234567,'out':34567,'cacheRead':987654},'costMicros':1234567890,'content':'x'}";
    append(&home.store(), &key, "turn", used);
    (home, key)
}

/// Goal: what is for eyes fits the terminal. Method: every verb with lines or tables at four widths; no line is wider.
#[test]
fn everything_fits() {
    let (home, key) = filled();
    for args in [
        &["tail", "--color", "never"][..],
        &["log", "--color", "never"],
        &["sessions", "list", "--color", "never"],
        &["stats", "--store", ".local/share/annals", "--color", "never"],
        &["replay", "--color", "never"],
        &["replay", "--tree", "cli:default", "--color", "never"],
        &["sessions", "list", "--messages", "1", "--color", "never"],
        &["sessions", "search", "text", "--color", "never"],
        &["config", "show", "--color", "never"],
        &["config", "show", "--all", "--color", "never"],
        &["usage", "--color", "never"],
        &["runs", "list", "--color", "never"],
        &["tools", "list", "--color", "never"],
        &["runs", "wait", "a-chat", "--timeout", "0", "--color", "never"],
        &["subagent", "list", "--color", "never"],
    ] {
        for width in WIDTHS {
            let (code, text) = on_terminal(home.command(args), width);
            // Whoever waits for what nobody works on waits in vain.
            let expect = if args[1] == "wait" { 4 } else { 0 };
            assert_eq!(code, Some(expect), "{args:?}: {text}");
            assert!(text.lines().count() >= 2, "{args:?}: {text}");
            for line in text.lines() {
                assert!(line.width() <= width.into(), "{args:?} at {width}: {line}");
            }
        }
    }
    assert!(!on_terminal(home.command(&["tail"]), 60).1.contains(&key), "there it is cut");
}

/// Goal: in a pipe every id and every text is whole, and times are RFC 3339. Method: the same verbs without a terminal.
#[test]
fn a_pipe_gets_everything() {
    let (home, key) = filled();
    for args in [&["tail"][..], &["log"], &["sessions", "list"], &["log", "-o", "csv"]] {
        let text = home.ok(args);
        assert!(text.contains(&key), "{args:?}: {text}");
        assert!(!text.contains('…'), "{args:?}: {text}");
        assert!(!text.contains("ago"), "{args:?}: {text}");
        let year =
            home.json_lines(&["tail", "--json"])[0]["time"].as_str().expect("text")[..5].to_owned();
        assert!(text.contains(&year), "{args:?}: {text}");
    }
    assert!(home.ok(&["tail"]).contains(&"a long text ".repeat(39)));
}

/// Goal: a terminal shows times as people say them. Method: events that were made just now.
#[test]
fn times_on_a_terminal() {
    let (home, _) = filled();
    let (_, text) = on_terminal(home.command(&["tail", "--color", "never"]), 120);
    for line in text.lines() {
        let time = line.trim_start();
        assert!(time.starts_with("now") || time.contains(" ago"), "{line}");
    }
}
