//! Searches over a few turns.

use super::*;
use crate::session::scene::Scene;

fn scene() -> Scene {
    let scene = Scene::new();
    scene
        .opened("telegram:1", "p", "")
        .opened("cli:x", "q", "")
        .turn("telegram:1", "p", "user", "", "Where is the Ontology of birds?")
        .turn("telegram:1", "p", "assistant", "", "the ontology lies in docs/birds")
        .turn("cli:x", "q", "user", "", "今天的天气怎么样")
        .turn("cli:x", "q", "assistant", "", "one\\nline and \\\"quoted birds\\\" here")
        .turn("cli:x", "q", "user", "", "Stra\\u00dfe \\u5929\\u6c14");
    scene
}

fn query(text: &str) -> SearchQuery {
    SearchQuery { text: text.to_owned(), limit: 10, ..SearchQuery::default() }
}

/// The positions that a query finds; the first turn stands at 3.
fn check(query: &SearchQuery, expect: &[u64]) {
    let found = search(&scene().store, query, Sight::whole(&|_| true)).unwrap();
    let seqs: Vec<_> = found.hits.iter().map(|hit| hit.seq).collect();
    assert_eq!(seqs, expect, "{query:?}");
}

/// Goal: all words, in any order, whatever their case, in any script, however the line spells them. Method: one query of
/// each sort.
#[test]
fn words_are_found() {
    check(&query("ontology"), &[4, 3]);
    check(&query("BIRDS ontology"), &[4, 3]);
    check(&query("where ontology"), &[3]);
    check(&query("天气"), &[7, 5]);
    check(&query("straße"), &[7]);
    check(&query("\"quoted birds\""), &[6]);
    check(&query("\"the ontology lies\""), &[4]);
    check(&query("\"birds quoted\""), &[]);
    check(&query("docs/birds"), &[4]);
    check(&query("sessionId"), &[]);
    check(&query("quoted \"\" line"), &[6]);
}

/// Goal: what narrows a search narrows it. Method: each filter by itself.
#[test]
fn filters() {
    check(&SearchQuery { role: Some(Role::User), ..query("birds") }, &[3]);
    check(&SearchQuery { key: Some(StreamName::new("cli:x").unwrap()), ..query("birds") }, &[6]);
    check(&SearchQuery { limit: 1, ..query("birds") }, &[6]);
    let at =
        |second: i64| Some(Timestamp::from_millis(crate::session::scene::START + 1_000 * second));
    check(&SearchQuery { since: at(4), ..query("birds") }, &[6, 4]);
    check(&SearchQuery { since: at(4), until: at(6), ..query("birds") }, &[4]);
    let none =
        search(&scene().store, &query("birds"), Sight::whole(&|key| key == "cli:x")).unwrap();
    assert_eq!(none.hits.len(), 1);
    for text in ["", "  ", "\"\"", &"a ".repeat(WORDS_MAX + 1), &"x".repeat(QUERY_MAX + 1)] {
        assert!(search(&scene().store, &query(text), Sight::whole(&|_| true)).is_err(), "{text:?}");
    }
}

/// Goal: a hit says where it is and shows the word in its surroundings on one line. Method: a word in the middle of a
/// long text with line ends.
#[test]
fn snippets() {
    let scene = Scene::new();
    let text = format!("{}\\nthe needle\\n{}", "before ".repeat(40), "behind ".repeat(40));
    scene.opened("telegram:1", "p", "").turn("telegram:1", "p", "user", "", &text);
    let found = search(&scene.store, &query("needle"), Sight::whole(&|_| true)).unwrap();
    let [hit] = found.hits.as_slice() else { panic!("{found:?}") };
    assert!(hit.snippet.contains("before the needle behind"), "{}", hit.snippet);
    assert!(hit.snippet.starts_with('…') && hit.snippet.ends_with('…'), "{}", hit.snippet);
    assert_eq!((hit.key.as_str(), hit.session_id.as_str(), hit.seq), ("telegram:1", "p", 2));
    assert_eq!((found.as_of, found.truncated, found.damaged), (Seq(2), false, false));
}
