//! Usage from scenes.

use super::*;
use crate::id::StreamName;
use crate::projection::Folded;
use crate::session::index::{Part, Sessions};
use crate::session::scene::{START, Scene};
use crate::store::Read;

fn usage(scene: &Scene, span: Span) -> Usage {
    let folded = Folded::until(Usage::within(span), &scene.store, Read::default(), None).unwrap();
    folded.state().clone()
}

/// Compares sums with lines of `name messages in out cacheRead cacheWrite cost`.
fn check(usage: &Usage, by: By, expect: &[&str]) {
    let line = |(name, sum): (String, Amount)| {
        let cost = sum.cost_micros().map_or("-".to_owned(), |cost| cost.to_string());
        let (m, i, o) = (sum.messages(), sum.tokens_in(), sum.tokens_out());
        format!("{name} {m} {i} {o} {} {} {cost}", sum.cache_read(), sum.cache_write())
    };
    let got: Vec<String> = usage.sums(by).into_iter().map(line).collect();
    assert_eq!(got, expect, "{by}");
}

fn answer(scene: &Scene, key: &str, more: &str) {
    scene.turn(key, "s1", "assistant", more, "x");
}

/// Goal: sums are made by session, agent, model and day, and what nobody names is unknown. Method: two sessions of two
/// agents, a session that never opened, two models, and a turn that happened on another day.
#[test]
fn by_everything() {
    let scene = Scene::new();
    let other = "{'sessionId':'s1','kind':'other','agentId':'helper','spawnDepth':0}";
    scene.opened("cli:1", "s1", "").event("cli:2", "session.opened", other);
    answer(
        &scene,
        "cli:1",
        ",'model':'m1','tokens':{'in':10,'out':1,'cacheRead':5},'costMicros':7",
    );
    answer(&scene, "cli:2", ",'model':'m2','tokens':{'in':20,'out':2,'cacheWrite':6}");
    answer(&scene, "cli:3", ",'tokens':{'in':30,'out':3}");
    answer(&scene, "cli:3", "");
    scene.event(
        "cli:1",
        "turn",
        "{'at':'2026-03-31T23:59:59.999999Z','sessionId':'s1','role':'assistant','from':'internal','model':'m1',\
         'tokens':{'in':40,'out':4},'content':'x'}",
    );
    let usage = usage(&scene, Span::default());
    check(&usage, By::Session, &["cli:1 2 50 5 5 0 7", "cli:2 1 20 2 0 6 -", "cli:3 1 30 3 0 0 -"]);
    check(&usage, By::Agent, &["helper 1 20 2 0 6 -", "main 2 50 5 5 0 7", "unknown 1 30 3 0 0 -"]);
    check(&usage, By::Model, &["m1 2 50 5 5 0 7", "m2 1 20 2 0 6 -", "unknown 1 30 3 0 0 -"]);
    check(&usage, By::Day, &["2026-03-31 1 40 4 0 0 -", "2026-04-01 3 60 6 5 6 7"]);
    assert_eq!(usage.total().tokens_in(), 100);
}

/// Goal: pieces of one message count once, as the largest says, as in the sessions view. Method: pieces that grow, that
/// shrink and that name no tokens, with another message between; the row's total is the same.
#[test]
fn pieces_of_a_message() {
    let scene = Scene::new();
    scene.opened("cli:1", "s1", "");
    for (message, tokens) in
        [("a", "10,'out':1"), ("b", "5,'out':5"), ("a", "12,'out':9"), ("a", "20,'out':0")]
    {
        let more = format!(
            ",'messageId':'{message}','model':'m','tokens':{{'in':{tokens}}},'costMicros':3"
        );
        answer(&scene, "cli:1", &more);
    }
    answer(&scene, "cli:1", ",'messageId':'c'");
    let usage = usage(&scene, Span::default());
    check(&usage, By::Model, &["m 2 17 14 0 0 6"]);
    let row = scene.sessions().row(&StreamName::new("cli:1").unwrap()).unwrap().clone();
    assert_eq!(row.total_tokens, 31);
}

/// Goal: of a run counts what its turns have not told. Method: one whose end tells more than its turns, one whose end
/// tells the same, one that tells everything at its end; the row's total is the same.
#[test]
fn runs() {
    let scene = Scene::new();
    scene.opened("cli:1", "s1", "").run("r1", "cli:1", "s1", "").run("r2", "cli:1", "s1", "");
    answer(&scene, "cli:1", ",'runId':'r1','model':'m','tokens':{'in':10,'out':2},'costMicros':1");
    scene.finished("r1", "ok", ",'tokens':{'in':15,'out':1},'costMicros':4");
    answer(&scene, "cli:1", ",'runId':'r2','model':'m','tokens':{'in':1,'out':1}");
    scene.finished("r2", "ok", ",'tokens':{'in':1,'out':1}").run("r3", "cli:1", "s1", "");
    scene.finished("r3", "error", ",'tokens':{'in':100,'out':0}").finished(
        "r3",
        "ok",
        ",'tokens':{'in':9,'out':9}",
    );
    let usage = usage(&scene, Span::default());
    check(&usage, By::Model, &["m 2 15 3 0 0 4", "unknown 1 100 0 0 0 -"]);
    let row = scene.sessions().row(&StreamName::new("cli:1").unwrap()).unwrap().clone();
    assert_eq!(row.total_tokens, usage.total().tokens_in() + usage.total().tokens_out());
}

/// Goal: only what lies in the span counts, and names are known all the same. Method: each bound alone, on turns of one
/// second after the other.
#[test]
fn within_a_span() {
    let scene = Scene::new();
    scene.opened("cli:1", "s1", "");
    for tokens in [1, 10, 100] {
        answer(&scene, "cli:1", &format!(",'tokens':{{'in':{tokens},'out':0}}"));
    }
    let check_in = |span: Span, tokens: u64| {
        check(
            &usage(&scene, span),
            By::Agent,
            &[&format!("main {} {tokens} 0 0 0 -", tokens.to_string().len().min(2))],
        );
    };
    let at = |second: i64| Some(Timestamp::from_millis(START + second * 1_000));
    check_in(Span { first: Some(Seq(3)), ..Span::default() }, 110);
    check_in(Span { since: at(3), ..Span::default() }, 110);
    check_in(Span { until: at(3), ..Span::default() }, 11);
    let nothing = usage(&scene, Span { since: at(9), ..Span::default() });
    assert!(nothing.sums(By::Day).is_empty());
}

/// Goal: no number is too large. Method: the largest that can be told, several times.
#[test]
fn the_largest_numbers() {
    let scene = Scene::new();
    let most = u64::MAX;
    for message in ["a", "b", "a"] {
        let tokens = format!("{{'in':{most},'out':{most},'cacheRead':{most},'cacheWrite':{most}}}");
        answer(
            &scene,
            "cli:1",
            &format!(",'messageId':'{message}','tokens':{tokens},'costMicros':{most}"),
        );
    }
    let total = usage(&scene, Span::default()).total();
    assert_eq!((total.messages(), total.tokens_in(), total.cost_micros()), (2, most, Some(most)));
}

/// Goal: whatever pieces and runs come in whatever order, the tokens are those of the sessions view. Method: random turns
/// of few messages, parts and runs, and runs that are asked for and end among them; the sums of each session, after every
/// event.
#[test]
fn the_tokens_of_the_sessions_view() {
    for seed in 1..40_u64 {
        println!("seed {seed}");
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        let scene = Scene::new();
        for key in ["cli:1", "cli:2"] {
            for part in ["s1", "s2"] {
                scene.opened(key, part, "");
            }
        }
        for _ in 0..60 {
            let (key, part) = (format!("cli:{}", 1 + below(2)), format!("s{}", 1 + below(2)));
            let (run, tokens) = (below(3), format!("{{'in':{},'out':{}}}", below(9), below(9)));
            match below(8) {
                0 => drop(scene.run(&format!("r{run}"), &key, &part, "")),
                1 => drop(scene.finished(&format!("r{run}"), "ok", &format!(",'tokens':{tokens}"))),
                kind => {
                    let message = format!(",'messageId':'m{}'", below(20));
                    let message = if kind == 2 { String::new() } else { message };
                    let of_run =
                        if kind < 5 { format!(",'runId':'r{run}'") } else { String::new() };
                    let more = format!("{of_run}{message},'tokens':{tokens}");
                    scene.turn(&key, &part, "assistant", &more, "x");
                }
            }
        }
        let (mut sessions, mut usage) = (Sessions::default(), Usage::default());
        for record in scene.records() {
            sessions.apply(&record.fields());
            usage.apply(&record.fields());
            let sums = usage.sums(By::Session);
            for row in sessions.rows() {
                let parts = sessions.entry(&row.key).unwrap().parts.iter();
                let expected: u64 = parts.map(Part::tokens).sum();
                let sum = sums.get(row.key.as_str()).copied().unwrap_or_default();
                assert_eq!(
                    sum.tokens_in() + sum.tokens_out(),
                    expected,
                    "{} at {}",
                    row.key,
                    record.seq
                );
            }
        }
    }
}
