//! Trees from scenes.

use super::*;
use crate::clock::Timestamp;
use crate::id::StreamName;
use crate::projection::{Folded, Projection};
use crate::session::index::{Lens, Sessions, TimeRules};
use crate::session::scene::{START, Scene};
use crate::store::View;

const CHILD: &str = "agent:main:subagent:1";

fn tree_of(scene: &Scene, key: &str) -> Tree {
    let folded = Folded::<(Sessions, Stories)>::of(&scene.store, View::Durable).unwrap();
    let (sessions, stories) = folded.split();
    let rules = TimeRules::none();
    let lens = Lens { rules: &rules, now: Timestamp::from_millis(START + 3_600_000) };
    tree(&StreamName::new(key).unwrap(), sessions.state(), &stories, &lens)
}

/// The tree in short: a line a step, set in by depth.
fn lines(tree: &Tree, depth: usize, out: &mut Vec<String>) {
    let margin = "  ".repeat(depth);
    let status = tree.status.map_or("?", Status::as_str);
    out.push(format!("{margin}{} {status}{}", tree.key, if tree.left_out { " …" } else { "" }));
    for Step { moment, what } in &tree.steps {
        let text = match what {
            What::Opened { session_id } => format!("opened {session_id}"),
            What::Reset { session_id, reason, .. } => format!("reset {reason} {session_id}"),
            What::Resumed { session_id } => format!("resumed {session_id}"),
            What::Archived { reason } => format!("archived {reason}"),
            What::Turns(turns) => {
                format!("turns {}u {}a -{}", turns.user, turns.assistant, turns.last.seq)
            }
            What::Run { run } => format!("run {} {}", run.run_id, run.state),
            What::Spawn(spawn) => {
                let run = spawn.run.as_ref().map_or("-", |run| run.state.as_str());
                let told = spawn.announce.as_ref().map_or("-", |told| told.state.as_str());
                format!("spawn {} {run} {told}", spawn.run_id.as_deref().unwrap_or("-"))
            }
            What::Send(send) => {
                let run = send.run.as_ref();
                let reply = run.and_then(|run| run.end.as_ref()).and_then(|end| end.reply_seq);
                format!("send {} {reply:?}", send.target_key.as_deref().unwrap_or("-"))
            }
            What::ExchangeEnded { rounds, reason, .. } => format!("exchange {rounds} {reason}"),
            What::Refused { verb, reason, .. } => format!("refused {verb} {reason}"),
            What::Outgoing { outgoing } => format!("{} {}", outgoing.cargo, outgoing.state),
        };
        out.push(format!("{margin}  #{} {text}", moment.seq));
        if let What::Spawn(spawn) = what
            && let Some(child) = &spawn.child
        {
            lines(child, depth + 2, out);
        }
    }
}

fn check(scene: &Scene, key: &str, expect: &[&str]) {
    let mut got = Vec::new();
    lines(&tree_of(scene, key), 0, &mut got);
    assert_eq!(got, expect, "{got:#?}");
}

/// Goal: everything of a flow stands in its place. Method: a session with a reset, a spawn whose child works and is
/// announced, a send with its reply, a refusal, a run of its own with a delivery, and an archived end; then the child
/// alone, which shows the run that the spawn showed before.
#[test]
fn a_flow() {
    let scene = Scene::new();
    let reset = "{'sessionId':'s2','previousSessionId':'s1','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}";
    let announce = format!("{{'runId':'r1','childKey':'{CHILD}'}}");
    scene
        .opened("cli:1", "s1", "")
        .turn("cli:1", "s1", "user", "", "do it")
        .turn("cli:1", "s1", "assistant", "", "I shall")
        .opened(CHILD, "c1", ",'parentKey':'cli:1'")
        .turn(CHILD, "c1", "user", "", "task")
        .run("r1", CHILD, "c1", ",'requesterKey':'cli:1'")
        .event(
            "cli:1",
            "spawn.accepted",
            &format!("{{'runId':'r1','targetKey':'{CHILD}','hop':0}}"),
        )
        .event("cli:1", "session.reset", reset)
        .finished("r1", "ok", "")
        .event("cli:1", "announce.requested", &announce)
        .event("cli:1", "announce.delivered", &announce)
        .run("r2", "telegram:1", "t1", ",'requesterKey':'cli:1'")
        .event("cli:1", "send.accepted", "{'runId':'r2','targetKey':'telegram:1','hop':0}")
        .finished("r2", "ok", ",'replySeq':13")
        .event("cli:1", "exchange.ended", "{'runId':'r2','rounds':1,'reason':'reply_skip'}")
        .event("cli:1", "send.refused", "{'verb':'send','target':'x','reason':'loop'}")
        .run("r3", "cli:1", "s2", "")
        .event("cli:1", "delivery.requested", "{'runId':'r3'}")
        .event(
            "cli:1",
            "session.archived",
            "{'sessionId':'s2','reason':'manual','effectiveAt':'2026-04-01T00:00:05.000000Z'}",
        );
    let of_child = ["      #4 opened c1", "      #5 turns 1u 0a -5"];
    check(
        &scene,
        "cli:1",
        &[
            "cli:1 waiting",
            "  #1 opened s1",
            "  #2 turns 1u 1a -3",
            "  #7 spawn r1 ok delivered",
            &format!("    {CHILD} done"),
            of_child[0],
            of_child[1],
            "  #8 reset manual s2",
            "  #13 send telegram:1 Some(13)",
            "  #15 exchange 1 reply_skip",
            "  #16 refused send loop",
            "  #17 run r3 requested",
            "  #18 delivery requested",
            "  #19 archived manual",
        ],
    );
    check(
        &scene,
        CHILD,
        &[&format!("{CHILD} done"), "  #4 opened c1", "  #5 turns 1u 0a -5", "  #6 run r1 ok"],
    );
    assert_eq!(tree_of(&scene, CHILD).parents, ["cli:1"]);
}

/// Goal: a child of which only its opening tells is there, and one that nobody knows too. Method: no spawn event; a spawn
/// whose child is absent, and one whose child never opened.
#[test]
fn children_half_known() {
    let scene = Scene::new();
    scene
        .opened("cli:1", "s1", "")
        .opened(CHILD, "c1", ",'parentKey':'cli:1'")
        .event("cli:1", "spawn.accepted", "{'runId':'r1','hop':0}")
        .event("cli:1", "spawn.accepted", "{'runId':'r2','targetKey':'x:gone','hop':0}");
    check(
        &scene,
        "cli:1",
        &[
            "cli:1 idle",
            "  #1 opened s1",
            "  #2 spawn - - -",
            &format!("    {CHILD} idle"),
            "      #2 opened c1",
            "  #3 spawn r1 - -",
            "  #4 spawn r2 - -",
            "    x:gone ?",
        ],
    );
}

/// Goal: no line of spawns makes a tree without end, or one too deep. Method: two sessions that spawn each other, one
/// that spawns itself, and a line of more sessions than a tree is deep.
#[test]
fn rings_and_depths() {
    let scene = Scene::new();
    let spawn = |from: &str, to: &str| {
        let data = format!("{{'runId':'r-{from}-{to}','targetKey':'{to}','hop':0}}");
        scene.event(from, "spawn.accepted", &data);
    };
    scene.opened("cli:1", "s", "").opened("cli:2", "s", "");
    spawn("cli:1", "cli:2");
    spawn("cli:2", "cli:1");
    spawn("cli:2", "cli:2");
    check(
        &scene,
        "cli:1",
        &[
            "cli:1 idle",
            "  #1 opened s",
            "  #3 spawn r-cli:1-cli:2 - -",
            "    cli:2 idle",
            "      #2 opened s",
            "      #4 spawn r-cli:2-cli:1 - -",
            "        cli:1 idle …",
            "      #5 spawn r-cli:2-cli:2 - -",
            "        cli:2 idle …",
        ],
    );
    for n in 0..200 {
        spawn(&format!("x:{n}"), &format!("x:{}", n + 1));
    }
    let mut got = Vec::new();
    lines(&tree_of(&scene, "x:0"), 0, &mut got);
    assert_eq!(got.len(), 2 * DEPTH_MAX + 1);
    assert!(got.last().is_some_and(|line| line.ends_with('…')), "{got:#?}");
}

/// Goal: nothing that a stream may hold stops a tree. Method: payloads of no shape, and losses.
#[test]
fn of_anything() {
    let scene = Scene::new();
    scene.opened("cli:1", "s1", "");
    let mut stories = Stories::default();
    for record in scene.records() {
        for kind in crate::session::event::Event::TYPES {
            let mut fields = record.fields();
            fields.kind = kind;
            fields.data = "{\"at\":7}";
            stories.apply(&fields);
        }
        stories.gap(&crate::session::scene::gap(&["cli:1"]));
    }
    assert!(stories.deeds.is_empty());
}
