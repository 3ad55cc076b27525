//! Contexts of short conversations, written as one line each.

use super::*;
use crate::session::index::Names;
use crate::session::key::AgentId;
use crate::session::scene::Scene;

const KEY: &str = "telegram:1";

/// Pushes turns: `u1` and `a2` say their own name; `a3>t1,t2` opens calls, `t1` answers one.
fn talk(turns: &str) -> Scene {
    let scene = Scene::new();
    scene.opened(KEY, "p", "");
    for turn in turns.split(' ').filter(|turn| !turn.is_empty()) {
        say(&scene, "p", turn);
    }
    scene
}

fn say(scene: &Scene, part: &str, turn: &str) {
    let (name, calls) = turn.split_once('>').unwrap_or((turn, ""));
    let role = match name.as_bytes()[0] {
        b'u' => "user",
        b'a' => "assistant",
        b's' => "system",
        _ => "toolResult",
    };
    let calls: Vec<_> =
        calls.split(',').filter(|c| !c.is_empty()).map(|c| format!("'{c}'")).collect();
    let mut more = String::new();
    if !calls.is_empty() {
        more = format!(",'calls':[{}]", calls.join(","));
    }
    if role == "toolResult" {
        more = format!(",'callId':'{name}'");
    }
    scene.turn(KEY, part, role, &more, name);
}

fn of(scene: &Scene, turns: usize) -> Context {
    within(scene, &ContextLimits { turns, chars: None })
}

fn within(scene: &Scene, limits: &ContextLimits) -> Context {
    let sessions = scene.sessions();
    let found = sessions.find(KEY, &AgentId::parse("main").unwrap(), Names::Whole).unwrap();
    context(&scene.store, &sessions, &found, limits).unwrap()
}

fn shown(context: &Context) -> String {
    let one = |message: &ContextMessage| match message.synthetic {
        true => format!("{}!", message.call_id.as_deref().unwrap_or_default()),
        false => message.content.as_ref().and_then(Json::read::<String>).unwrap_or_default(),
    };
    context.messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn check(turns: &str, max_turns: usize, expect: &str) {
    assert_eq!(shown(&of(&talk(turns), max_turns)), expect, "{turns}, at most {max_turns}");
}

/// Goal: the window holds exactly so many turns, of users and of the assistant alike. Method: one turn below, at and
/// over the limit of 40.
#[test]
fn exactly_so_many() {
    for (pushed, kept, out) in
        [(39, 39, None), (40, 40, None), (41, 40, Some(1)), (100, 40, Some(60))]
    {
        let turns: Vec<_> =
            (1..=pushed).map(|n| format!("{}{n}", if n % 2 == 1 { "u" } else { "a" })).collect();
        let context = of(&talk(&turns.join(" ")), 40);
        assert_eq!(context.turns, kept);
        assert_eq!(context.trimmed.map(|trimmed| trimmed.turns), out);
        let users =
            of(&talk(&(1..=pushed).map(|n| format!("u{n}")).collect::<Vec<_>>().join(" ")), 40);
        assert_eq!(users.turns, kept);
    }
}

/// Goal: what was left out is named by its positions. Method: the opening stands at 1, turns from 2 on.
#[test]
fn what_was_left_out() {
    let trimmed = of(&talk("u1 a1>t1 t1 a2 u2 a3"), 2).trimmed;
    assert_eq!(trimmed, Some(Trimmed { turns: 3, from: Seq(2), to: Seq(5) }));
}

/// Goal: call and result stay or go together, whatever the limit. Method: every limit over one conversation.
#[test]
fn calls_keep_their_results() {
    let turns = "u1 a1>t1 t1 a2 u2 a3>t2 t2 a4";
    check(turns, 4, "a2 u2 a3 t2 a4");
    check(turns, 5, "a1 t1 a2 u2 a3 t2 a4");
    check(turns, 6, "u1 a1 t1 a2 u2 a3 t2 a4");
    check(turns, 2, "a3 t2 a4");
    check(turns, 1, "a4");
    check(turns, 0, "a4");
}

/// Goal: the question that a run is at work on is never cut away. Method: a run with more calls than the window has
/// turns; afterwards the answer.
#[test]
fn the_question_is_kept() {
    check("u1 a1 u7 a2>t1 t1 a3>t2 t2 a4>t3", 2, "u7 a4 t3!");
    check("u1 a1 u7 a2>t1 t1 a3>t2 t2 a4>t3", 1, "u7");
    check("u1 a1 u7 a2>t1 t1 a3>t2 t2 a4", 2, "a3 t2 a4");
    check("u7 s1 a2>t1 t1 s2 a3>t2 t2 s3", 2, "u7 a3 t2 s3");
}

/// Goal: results stand behind their calls in the order of these, once each; an open call is shown as interrupted.
/// Method: late, doubled, strange and missing results.
#[test]
fn results_in_disorder() {
    check("u1 a1>t1,t2 t2 u2 t1 a2", 9, "u1 a1 t1 t2 u2 a2");
    check("u1 a1>t1 t1 t1 a2 t1", 9, "u1 a1 t1 a2");
    check("t9 u1 a1", 9, "u1 a1");
    check("u1 a1>t1,t2 t2 a2", 9, "u1 a1 t1! t2 a2");
}

/// Goal: a context is of the current part alone, and of another one when that is named. Method: a reset in the middle.
#[test]
fn of_one_part() {
    let scene = talk("u1 a1");
    scene.event(
        KEY,
        "session.reset",
        "{'sessionId':'q','previousSessionId':'p','reason':'manual','effectiveAt':'2026-04-01T00:00:00.000000Z'}",
    );
    assert_eq!(shown(&of(&scene, 9)), "");
    say(&scene, "q", "u2");
    assert_eq!(shown(&of(&scene, 9)), "u2");
    let sessions = scene.sessions();
    let found = sessions.find("p", &AgentId::parse("main").unwrap(), Names::Whole).unwrap();
    let limits = ContextLimits { turns: 9, chars: None };
    assert_eq!(shown(&context(&scene.store, &sessions, &found, &limits).unwrap()), "u1 a1");
}

/// Goal: nothing that happens to be said in which order breaks the rules. Method: random conversations; no orphan
/// result, no call without one, at most so many turns, the last unanswered question there.
#[test]
fn laws_over_random_conversations() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for _ in 0..200 {
        let turns: Vec<String> = (0..next(30))
            .map(|n| match next(6) {
                0 | 1 => format!("u{n}"),
                2 => format!("a{n}"),
                3 => format!("a{n}>t{n},t{}", n + 100),
                4 => format!("s{n}"),
                _ => format!("t{}", next(30) + if next(2) == 0 { 0 } else { 100 }),
            })
            .collect();
        let scene = talk(&turns.join(" "));
        for max_turns in [1, 2, 3, 7] {
            let context = of(&scene, max_turns);
            let mut open: Vec<String> = Vec::new();
            for (index, message) in context.messages.iter().enumerate() {
                if message.role == Role::ToolResult {
                    let call = message.call_id.clone().unwrap();
                    assert_eq!(open.first(), Some(&call), "{turns:?} at {index}");
                    open.remove(0);
                } else {
                    assert!(open.is_empty(), "{turns:?} at {index}");
                    let said: String = message.content.as_ref().and_then(Json::read).unwrap();
                    let turn =
                        turns.iter().find(|turn| turn.split('>').next() == Some(&said)).unwrap();
                    let calls = turn.split_once('>').map_or("", |(_, calls)| calls);
                    open = calls.split(',').filter(|c| !c.is_empty()).map(str::to_owned).collect();
                }
            }
            assert!(open.is_empty() && context.turns <= max_turns as u64, "{turns:?}");
            let question = turns.iter().rposition(|turn| turn.starts_with('u'));
            let answered =
                |at: usize| turns[at..].iter().any(|t| t.starts_with('a') && !t.contains('>'));
            if let Some(at) = question.filter(|at| !answered(*at)) {
                assert!(shown(&context).split(' ').any(|said| said == turns[at]), "{turns:?}");
            }
        }
    }
}

fn check_chars(turns: &str, chars: usize, expect: &str) -> Context {
    let context = within(&talk(turns), &ContextLimits { turns: 40, chars: Some(chars) });
    assert_eq!(shown(&context), expect, "{turns}, {chars} characters");
    context
}

/// Goal: a limit of characters leaves out calls together with their results, and what is left is counted anew. Method:
/// every message's size is known: `user: u1` has 8 characters, `assistant: a1` 13, `toolResult: t1` 14, and 2 more stand
/// between two.
#[test]
fn characters_leave_out_whole_units() {
    let turns = "u1 a1>t1 t1 a2 u2 a3";
    let all = 8 + 13 + 14 + 13 + 8 + 13 + 2 * 5;
    let context = check_chars(turns, all, "u1 a1 t1 a2 u2 a3");
    assert_eq!((context.turns, context.left_out, context.shortened), (5, 0, 0));
    assert_eq!(check_chars(turns, usize::MAX, "u1 a1 t1 a2 u2 a3").left_out, 0);
    let context = check_chars(turns, all - 1, "a1 t1 a2 u2 a3");
    assert_eq!((context.turns, context.left_out), (4, 1));
    let context = check_chars(turns, all - 8 - 2 - 1, "a2 u2 a3");
    assert_eq!((context.turns, context.left_out, context.trimmed), (3, 3, None));
}

/// Goal: the question that nobody has answered stays, and so does the last message. Method: limits that hold one of
/// several calls, and none.
#[test]
fn characters_leave_the_question() {
    let turns = "u1 a1 u7 a2>t1 t1 a3>t2 t2";
    let context = check_chars(turns, 8 + 2 + 13 + 2 + 14, "u7 a3 t2");
    assert_eq!((context.turns, context.left_out), (2, 4));
    check_chars(turns, 8 + 2 + 13 + 2 + 14 + 28, "u7 a3 t2");
    check_chars(turns, 1, "u7 a3 t2");
    assert_eq!(check_chars("", 1, "").left_out, 0);
}

/// Goal: a message that alone is too long is there, shortened from its beginning, and says so; calls of tools stay in
/// it. Method: a text, a text in blocks beside a call, and a question with a huge result.
#[test]
fn a_message_that_is_too_long() {
    let context = check_chars("u1 a1 u234567890", 6 + 7, "[…]7890");
    assert_eq!((context.turns, context.left_out, context.shortened), (1, 2, 3));
    check_chars("u1 a1 u234567890", 0, "[…]");

    let scene = Scene::new();
    scene.opened(KEY, "p", "");
    scene.turn(KEY, "p", "user", "", "ask");
    let blocks =
        "[{'type':'text','text':'日本語日本語日本語'},{'type':'toolCall','id':'c','name':'exec'}]";
    let data = "{'sessionId':'p','role':'assistant','from':'internal','calls':['c'],'content':";
    scene.event(KEY, "turn", &format!("{data}{blocks}}}"));
    scene.turn(KEY, "p", "toolResult", ",'callId':'c'", &"x".repeat(1_000));
    let context = within(&scene, &ContextLimits { turns: 40, chars: Some(100) });
    let texts: Vec<String> = context.messages.iter().map(ContextMessage::text).collect();
    assert_eq!(texts.first().unwrap(), "user: ask");
    assert_eq!(texts.get(1).unwrap(), "assistant: […]\n[toolCall exec]");
    assert!(texts.get(2).unwrap().starts_with("toolResult: […]xx"), "{texts:?}");
    let said: usize = texts.iter().map(|text| text.chars().count()).sum();
    assert_eq!((said + 4, context.turns, context.left_out), (100, 2, 0));
}

/// Goal: what a context leaves out is told when its window has moved, and not again while it stands. Method: a part under
/// its limit, at 41 turns, the same again, one turn more, and another part; the event that was told last, found behind more
/// turns than are looked at first.
#[test]
fn what_was_left_out_is_told_once() {
    let turns: Vec<String> = (1..=40).map(|n| format!("u{n}")).collect();
    let scene = talk(&turns.join(" "));
    let tell = |limit| {
        let context = of(&scene, limit);
        let last = last_trimmed(&scene.store, &context.key, &context.session_id).unwrap();
        let event = trimming(&context, last.as_ref().map(|last| &last.event))?;
        let data = event.payload().unwrap().to_string();
        scene.event(KEY, event.type_name(), &data);
        Some(data)
    };
    assert_eq!(tell(40), None);
    say(&scene, "p", "a41");
    let told = r#"{"sessionId":"p","kept":40,"fromSeq":2,"toSeq":2}"#;
    assert_eq!(tell(40).as_deref(), Some(told));
    assert_eq!(tell(40), None);
    say(&scene, "p", "u42");
    let told = r#"{"sessionId":"p","kept":40,"fromSeq":2,"toSeq":3}"#;
    assert_eq!(tell(40).as_deref(), Some(told));
    (0..100).for_each(|_| say(&scene, "p", "s1"));
    assert_eq!(tell(40), None);
    let key = StreamName::new(KEY).unwrap();
    let last = last_trimmed(&scene.store, &key, "p").unwrap().unwrap();
    assert_eq!((last.seq, last.event.to_seq), (Seq(45), 3));
    assert_eq!(last_trimmed(&scene.store, &key, "q").unwrap(), None);
    assert!(tell(39).is_some() && tell(39).is_none());
}
