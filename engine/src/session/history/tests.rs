//! Pages of histories: scenes and what is on each page.

use super::*;
use crate::projection::{Folded, Projection};
use crate::session::index::Names;
use crate::session::key::AgentId;
use crate::session::scene::{Scene, gap};

/// One page as text: who said what, then what the page says about itself. Newlines stand between messages.
fn show(page: &Page) -> String {
    let mut lines: Vec<String> = page
        .messages
        .iter()
        .map(|m| {
            format!("{} {}: {}", m.seq, m.role, m.content.as_ref().map_or("-", |c| c.as_str()))
        })
        .collect();
    let part = page.session_id.as_deref().unwrap_or("all");
    let before = page.before.map_or("start".to_owned(), |v| format!("before {v}"));
    let damaged = if page.damaged { ", damaged" } else { "" };
    lines.push(format!("{part}: {} of {}, {before}{damaged}", page.messages.len(), page.total));
    lines.join("\n")
}

/// A page of the view of all sessions, which is that of the session's own stream alone.
fn page(scene: &Scene, name: &str, query: &HistoryQuery) -> Page {
    let sessions = scene.sessions();
    let found = sessions.find(name, &AgentId::parse("main").unwrap(), Names::Whole).unwrap();
    let page = history(&scene.store, &sessions, &found, query).unwrap();
    let alone = Folded::<Sessions>::of_stream(&scene.store, &found.key, 4_096).unwrap().unwrap();
    assert_eq!(history(&scene.store, alone.state(), &found, query).unwrap(), page);
    page
}

fn check(scene: &Scene, name: &str, query: &HistoryQuery, expect: &[&str]) {
    assert_eq!(show(&page(scene, name, query)), expect.join("\n"));
}

fn limit(limit: usize) -> HistoryQuery {
    HistoryQuery { limit, ..HistoryQuery::default() }
}

/// Goal: pages follow each other from the newest to the oldest without a message lost or shown twice. Method: nine
/// turns among other events of the stream, in pages of every size.
#[test]
fn pages_cover_everything_once() {
    let scene = Scene::new();
    scene.opened("cli:1", "s", "");
    for n in 0..9 {
        scene
            .turn("cli:1", "s", "user", "", &n.to_string())
            .turn("cli:2", "t", "user", "", "other");
        scene.event("cli:1", "session.patched", "{'sessionId':'s','set':{}}");
    }
    check(
        &scene,
        "cli:1",
        &limit(2),
        &["23 user: \"7\"", "26 user: \"8\"", "s: 2 of 9, before 16"],
    );
    for size in 1..=10 {
        let mut query = limit(size);
        let mut texts: Vec<String> = Vec::new();
        loop {
            let page = page(&scene, "cli:1", &query);
            assert_eq!(page.total, 9);
            assert!(page.messages.len() <= size);
            let older = page.messages.iter().map(|m| m.content.as_ref().unwrap().read().unwrap());
            texts.splice(0..0, older);
            assert_eq!(page.truncated(), page.before.is_some());
            let Some(before) = page.before else { break };
            query.before = Some(before);
        }
        assert_eq!(texts, ["0", "1", "2", "3", "4", "5", "6", "7", "8"], "size {size}");
    }
}

/// Goal: tool results show only when asked for; nothing else is ever hidden. Method: a call with its result, a system
/// turn, a silent one.
#[test]
fn tool_results() {
    let scene = Scene::new();
    scene
        .opened("cli:1", "s", "")
        .turn("cli:1", "s", "user", "", "go")
        .turn("cli:1", "s", "assistant", ",'calls':['c']", "calling")
        .turn("cli:1", "s", "toolResult", ",'callId':'c'", "r")
        .turn("cli:1", "s", "system", "", "note")
        .turn("cli:1", "s", "assistant", ",'silent':'NO_REPLY'", "NO_REPLY");
    let shown = HistoryQuery { tool_results: ToolResults::Shown, ..HistoryQuery::default() };
    let [go, calling, result, note, silent] = [
        "2 user: \"go\"",
        "3 assistant: \"calling\"",
        "4 toolResult: \"r\"",
        "5 system: \"note\"",
        "6 assistant: \"NO_REPLY\"",
    ];
    check(&scene, "cli:1", &limit(50), &[go, calling, note, silent, "s: 4 of 4, start"]);
    check(&scene, "cli:1", &shown, &[go, calling, result, note, silent, "s: 5 of 5, start"]);
    assert_eq!(page(&scene, "cli:1", &shown).messages[4].silent.as_deref(), Some("NO_REPLY"));
}

/// Goal: pieces of one message are one message, on whatever page and however far apart its reading steps fall. Method:
/// a message of 30 pieces with a result in its midst, in pages of one and two.
#[test]
fn pieces_of_a_message_are_joined() {
    let scene = Scene::new();
    scene.opened("cc:1", "s", "").turn("cc:1", "s", "user", "", "go");
    for n in 0..30 {
        if n == 7 {
            scene.turn("cc:1", "s", "toolResult", ",'callId':'c'", "r");
        }
        let more = format!(",'messageId':'m','model':'x','tokens':{{'in':9,'out':{}}}", 30 - n);
        scene.turn("cc:1", "s", "assistant", &more, &n.to_string());
    }
    scene.turn("cc:1", "s", "user", "", "thanks");
    let newest = page(&scene, "cc:1", &limit(2));
    assert_eq!((newest.messages.len(), newest.total), (2, 3));
    let joined = &newest.messages[0];
    let blocks: Vec<std::collections::BTreeMap<String, String>> =
        joined.content.as_ref().unwrap().read().unwrap();
    let texts: Vec<&str> = blocks.iter().map(|block| block["text"].as_str()).collect();
    assert_eq!(texts, (0..30).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!((joined.seq, joined.usage.as_ref().unwrap().out), (3, 30));
    let oldest = page(&scene, "cc:1", &HistoryQuery { before: newest.before, ..limit(2) });
    assert_eq!(show(&oldest), "2 user: \"go\"\ns: 1 of 3, start");
    let shown = HistoryQuery { tool_results: ToolResults::Shown, ..HistoryQuery::default() };
    let with_results = page(&scene, "cc:1", &shown);
    assert_eq!((with_results.messages.len(), with_results.total), (5, 5));
}

/// Goal: a reset leaves the key empty and loses nothing. Method: two parts, read by key, by each id, and whole.
#[test]
fn parts() {
    let scene = Scene::new();
    scene.opened("cli:1", "s1", "").turn("cli:1", "s1", "user", "", "old").event(
        "cli:1",
        "session.reset",
        "{'sessionId':'s2','previousSessionId':'s1','reason':'manual','effectiveAt':'2026-04-01T00:00:03.000000Z'}",
    );
    check(&scene, "cli:1", &limit(5), &["s2: 0 of 0, start"]);
    scene.turn("cli:1", "s2", "user", "", "new").turn("cli:1", "s1", "assistant", "", "late");
    check(&scene, "cli:1", &limit(5), &["4 user: \"new\"", "s2: 1 of 1, start"]);
    let [old, late] = ["2 user: \"old\"", "5 assistant: \"late\""];
    check(&scene, "s1", &limit(5), &[old, late, "s1: 2 of 2, start"]);
    let whole = HistoryQuery { span: Span::Whole, ..limit(5) };
    let new = "4 user: \"new\"";
    check(&scene, "cli:1", &whole, &[old, new, late, "all: 3 of 3, start"]);
}

/// Goal: a damaged session says so, whether its row or the reading finds out. Method: a gap that the fold was told of.
#[test]
fn damage_is_said() {
    let scene = Scene::new();
    scene.opened("cli:1", "s", "").turn("cli:1", "s", "user", "", "a");
    let mut sessions = scene.sessions();
    sessions.gap(&gap(&["cli:1"]));
    let found = sessions.find("cli:1", &AgentId::parse("main").unwrap(), Names::Whole).unwrap();
    let page = history(&scene.store, &sessions, &found, &limit(5)).unwrap();
    assert_eq!(show(&page), "2 user: \"a\"\ns: 1 of 1, start, damaged");
}

/// Goal: what a page is as of does not move while it is read. Method: a turn is appended after the fold looked.
#[test]
fn a_page_ends_where_its_rows_end() {
    let scene = Scene::new();
    scene.opened("cli:1", "s", "").turn("cli:1", "s", "user", "", "a");
    let sessions = scene.sessions();
    scene.turn("cli:1", "s", "user", "", "b");
    let found = sessions.find("cli:1", &AgentId::parse("main").unwrap(), Names::Whole).unwrap();
    let page = history(&scene.store, &sessions, &found, &limit(5)).unwrap();
    assert_eq!(show(&page), "2 user: \"a\"\ns: 1 of 1, start");
    let nobody = Found { key: StreamName::new("cli:9").unwrap(), part: None };
    let error = history(&scene.store, &sessions, &nobody, &limit(5)).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::NotFound);
}
