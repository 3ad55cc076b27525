//! Cases that others met in the field, as they go here.

use super::*;
use crate::session::event::{
    Event, Ingress, Json, OutputStream, Role, RunFinished, RunOutput, Turn,
};
use crate::session::policy::{SendAction, SendMatch, SendRule};
use crate::store::Record;

const CRON: &str = "cron:job1";

fn ok() -> End {
    End { reason: None, ..End::without_output(RunStatus::Ok, "") }
}

/// The events of a type, with their data.
fn all(world: &World, kind: &str) -> Vec<Record> {
    let records = world.scene.records().into_iter();
    records.filter(|record| record.kind.as_str() == kind).collect()
}

fn last(world: &World) -> String {
    let record = world.scene.records().pop().unwrap();
    format!("{} {} {}", record.stream, record.kind, record.data)
}

/// Goal: an announce goes where its spawn said, whatever its requester's session says by then. Method: the session gets
/// another route between the spawn and the end.
#[test]
fn the_route_of_the_spawn() {
    let world = World::new();
    world.spawn(B, MANY);
    world.scene.turn(B, "pb", "user", ",'provenance':{'sourceChannel':'signal'}", "hello");
    world.scene.event(
        B,
        "session.patched",
        "{'sessionId':'pb','set':{'lastChannel':'signal','lastTo':'9'}}",
    );
    world.runs("done").unwrap();
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
}

/// Goal: work that is finished while its requester is busy is durable at once, waits, goes out when the requester is at
/// rest, and is told to have failed after the last try. Method: ten minutes; a sink that fails.
#[test]
fn a_busy_requester() {
    let world = World::new();
    world.scene.run("rb", B, "pb", "");
    let own = world.claim().unwrap();
    world.spawn(B, MANY);
    world.scene.clock.advance(Duration::from_secs(60));
    let (child, _) = world.runs("42 words").unwrap();
    let child = announce::told(&world.scene.store, &child.run_id).unwrap().finished.unwrap();
    assert!(child.reply_seq.is_some());
    for _ in 0..540 {
        world.scene.clock.advance(Duration::from_secs(1));
        assert!(world.deliver(&Tried::Delivered).is_empty());
    }
    world.finish(&own, &ok());
    let mut tries = 0;
    while !world.work().outgoing().is_empty() {
        tries += world.deliver(&Tried::Retry("sink_error".into())).len();
        world.scene.clock.advance(Duration::from_secs(60));
    }
    assert_eq!((tries, all(&world, "announce.deferred").len()), (5, 4));
    assert!(
        last(&world).starts_with("telegram:7 announce.failed")
            && last(&world).contains("sink_error")
    );
}

/// Goal: one announce a run, whoever tries it and how often. Method: the end told twice, the try begun by two, its outcome
/// told twice and once more as another.
#[test]
fn one_announce() {
    let world = World::new();
    world.spawn(B, MANY);
    let claimed = world.claim().unwrap();
    let end = ok().saying("done");
    assert_eq!(world.finish(&claimed, &end), Finished::Now);
    assert_eq!(world.finish(&claimed, &end), Finished::Before);
    let work = world.work();
    let (waybill, out) = work.outgoing()[0];
    let words =
        announce::wording(&world.scene.store, &claimed.run.run_id, out, &world.rules.silent)
            .unwrap();
    let begins = || {
        world.decide(|stage, batch| attempt(stage, batch, &world.rules, (waybill, &words))).unwrap()
    };
    let Trial::Send { attempt_id, .. } = begins() else { panic!("it is due") };
    assert_eq!(begins(), Trial::NotNow);
    let tells = |attempt: &str, became: &Tried| {
        world
            .decide(|stage, batch| tried(stage, batch, &world.rules, (waybill, attempt), became))
            .unwrap();
    };
    tells("another", &Tried::Refused("gone".into()));
    tells(&attempt_id, &Tried::Delivered);
    let count = world.count();
    tells(&attempt_id, &Tried::Delivered);
    tells(&attempt_id, &Tried::Refused("gone".into()));
    assert_eq!(begins(), Trial::NotNow);
    assert_eq!((world.count(), all(&world, "announce.delivered").len()), (count, 1));
}

/// Goal: the child of a job without a channel tells the job's session, and that nobody else was told. Method: a job.
#[test]
fn a_job_has_no_route() {
    let world = World::new();
    world.scene.opened(CRON, "pj", "");
    world.spawn(CRON, MANY);
    world.runs("done").unwrap();
    let from = world.count();
    assert!(world.deliver(&Tried::Delivered).is_empty());
    assert_eq!(world.kinds(from), ["cron turn", "cron announce.failed"]);
    assert!(last(&world).contains("no_route"));
}

/// Goal: a run whose worker is gone gives its place free and is announced once. Method: two places, one child that ended
/// and one that was claimed and lost; two more; the loss told twice.
#[test]
fn lost_children() {
    let world = World::new();
    let two = Limits { of_all: 2, ..MANY };
    world.spawn(B, two);
    world.spawn(B, two);
    world.runs("done").unwrap();
    let gone = world.claim().unwrap();
    let lost = End::without_output(RunStatus::Lost, "worker_gone");
    assert_eq!(world.finish(&gone, &lost), Finished::Now);
    assert_eq!(world.finish(&gone, &lost), Finished::Before);
    let asked = [world.spawn(B, two).1, world.spawn(B, two).1, world.spawn(B, two).1];
    assert_eq!(asked.each_ref().map(refused), ["accepted", "accepted", "children_total"]);
    assert_eq!(world.deliver(&Tried::Delivered).len(), 2);
    let told = all(&world, "turn");
    assert_eq!(
        told.iter()
            .filter(|turn| turn.data.as_str().contains("Status: lost (worker_gone)"))
            .count(),
        1
    );
}

/// Goal: what is said after the end changes nothing. Method: output behind the end, an end behind the end.
#[test]
fn late() {
    let world = World::new();
    world.spawn(B, MANY);
    let claimed = world.claim().unwrap();
    world.finish(&claimed, &ok().saying("done"));
    let before = world.work();
    let run_id = claimed.run.run_id.clone();
    let stream = format!("run:{run_id}");
    let output = RunOutput {
        at: None,
        run_id: run_id.clone(),
        stream: OutputStream::Stdout,
        text: "late".into(),
    };
    let end = RunFinished {
        status: RunStatus::Error,
        ..announce::told(&world.scene.store, &run_id).unwrap().finished.unwrap()
    };
    for event in [Event::RunOutput(output), Event::RunFinished(end)] {
        world.decide(|_, batch| batch.add(&stream, &event, None).map(drop)).unwrap();
    }
    assert_eq!(world.work(), before);
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
    assert!(
        all(&world, "turn").last().unwrap().data.as_str().contains("Status: ok\\nResult: done")
    );
}

/// Goal: children that end close together are announced each once, in the order of their ends, without any further input.
/// Method: three, while a person writes.
#[test]
fn three_at_once() {
    let world = World::new();
    for _ in 0..3 {
        world.spawn(B, MANY);
    }
    let mut claimed: Vec<_> = (0..3).map(|_| world.claim().unwrap()).collect();
    claimed.rotate_left(1);
    for (n, run) in claimed.iter().enumerate() {
        world.finish(run, &ok().saying(&format!("no. {n}")));
        world.scene.turn(B, "pb", "user", "", "and?");
    }
    assert_eq!(world.deliver(&Tried::Delivered).len(), 3);
    let told = all(&world, "turn").into_iter().map(|turn| turn.data.as_str().to_owned());
    let told: Vec<_> = told.filter(|data| data.contains("subagent_announce")).collect();
    assert_eq!(told.len(), 3);
    for (n, data) in told.iter().enumerate() {
        assert!(data.contains(&format!("Result: no. {n}")), "{told:?}");
    }
}

/// Goal: an announce tells of its own run, and a child begins with its task alone. Method: the child works on something
/// else before its first result was told.
#[test]
fn bound_to_its_run() {
    let world = World::new();
    let (run_id, _) = world.spawn(B, MANY);
    let child = format!("agent:main:subagent:{run_id}");
    let turns = |world: &World| {
        all(world, "turn").iter().filter(|turn| turn.stream.as_str() == child).count()
    };
    assert_eq!(turns(&world), 1);
    world.runs("the first").unwrap();
    world.send(A, &child, 0, 0);
    world.runs("the second").unwrap();
    world.deliver(&Tried::Delivered);
    let told = all(&world, "turn").pop().unwrap();
    assert!(
        told.data.as_str().contains("Result: the first") && told.data.as_str().contains(&run_id)
    );
}

/// Goal: a reply that nobody waits for is recorded where its send says, and what follows it happens however long it took.
/// Method: a send that is claimed after a long time; the step after it as well.
#[test]
fn nobody_waits() {
    let world = World::new();
    let (run_id, _) = world.send(A, B, 0, 0);
    world.scene.clock.advance(Duration::from_secs(160));
    let (run, _) = world.runs("all is well").unwrap();
    assert_eq!(run.run_id, run_id);
    world.scene.clock.advance(Duration::from_secs(3_600));
    let (step, _) = world.runs("it went well").unwrap();
    assert_eq!((step.kind, step.follows.as_deref()), (RunKind::Announce, Some(&*run_id)));
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
    // The first run of an exchange is killed while it waits: that is the end of it, and somebody is told why.
    let (run_id, _) = world.send(A, B, 3, 0);
    let wish = ("operator", "enough");
    world
        .decide(|stage, batch| kill(stage, batch, &world.rules, &run_id, wish, &Earlier::default()))
        .unwrap();
    assert!(
        last(&world).contains(r#"delivery.suppressed {"runId":"#)
            && last(&world).contains(r#""reason":"error""#)
    );
    assert_eq!(world.work(), Work::default());
}

/// Goal: a session that sends without waiting gains no turn of what the other does besides. Method: a job that sends; the
/// target works on something else.
#[test]
fn nothing_else_comes_back() {
    let world = World::new();
    world.scene.opened(CRON, "pj", "");
    world.send(CRON, A, 1, 0);
    world.scene.run("other", A, "pa", "");
    world.runs("an answer").unwrap();
    world.runs("something else").unwrap();
    world.runs("REPLY_SKIP").unwrap();
    let turns: Vec<_> =
        all(&world, "turn").into_iter().filter(|turn| turn.stream.as_str() == CRON).collect();
    assert_eq!(turns.len(), 2);
    assert!(
        turns[0].data.as_str().contains(r#""sourceTool":"sessions_send""#),
        "{}",
        turns[0].data
    );
    assert!(turns.iter().all(|turn| !turn.data.as_str().contains("something else")));
}

/// Goal: where nothing may go out nothing does, of any kind, and each says so; what comes in is stored and worked on, and a
/// session's own word wins. Method: a rule on groups of a channel: a reply, a failure, a child, an exchange; then the
/// override.
#[test]
fn nothing_goes_out() {
    let mut world = World::new();
    let group = "whatsapp:g";
    let origin =
        ",'channel':'whatsapp','chatType':'group','origin':{'channel':'whatsapp','to':'g'}";
    world.scene.opened(group, "pg", origin);
    world.rules.sinks.insert("whatsapp".into(), "exec".into());
    world.rules.policy.rules.push(SendRule {
        action: SendAction::Deny,
        fits: SendMatch {
            channel: Some("whatsapp".into()),
            chat_type: Some(crate::session::event::ChatType::Group),
            ..SendMatch::default()
        },
    });
    let asks = |world: &World, id: &str| {
        world.scene.event(
            &format!("run:{id}"),
            "run.requested",
            &format!(
                "{{'runId':'{id}','sessionKey':'{group}','sessionId':'pg','kind':'ask','agentId':'main','chainId':'c',\
                 'hop':0,'timeoutSeconds':0,'deliver':true}}"
            ),
        );
    };
    asks(&world, "r1");
    world.runs("an answer").unwrap();
    asks(&world, "r2");
    world.finish(&world.claim().unwrap(), &End::without_output(RunStatus::Killed, "kill"));
    world.spawn(group, MANY);
    world.runs("done").unwrap();
    world.send(A, group, 0, 0);
    world.runs("to the other").unwrap();
    assert!(world.deliver(&Tried::Delivered).is_empty() && world.work() == Work::default());
    let withheld =
        [all(&world, "delivery.suppressed"), all(&world, "announce.suppressed")].concat();
    assert_eq!(withheld.len(), 4);
    assert!(withheld.iter().all(|record| record.data.as_str().contains("policy (rule 0)")));
    assert_eq!(
        (all(&world, "delivery.attempted").len(), all(&world, "announce.attempted").len()),
        (0, 0)
    );
    world.scene.event(group, "session.patched", "{'sessionId':'pg','set':{'sendPolicy':'allow'}}");
    asks(&world, "r3");
    world.runs("an answer").unwrap();
    assert_eq!(world.deliver(&Tried::Delivered), ["exec g"]);
}

/// Goal: the result is what the child said last, else what its last tool gave, and never what a user said; a step that is
/// silent, fails or says nothing takes no result away. Method: ends of each sort, with and without a step.
#[test]
fn results() {
    let told = |end: &End, step: Option<&End>| {
        let mut world = World::new();
        world.rules.announce = if step.is_some() { AnnounceWay::Step } else { AnnounceWay::Result };
        world.spawn(B, MANY);
        world.finish(&world.claim().unwrap(), end);
        if let Some(step) = step {
            let claimed = world.claim().unwrap();
            assert_eq!((claimed.run.kind, claimed.run.timeout_seconds), (RunKind::Announce, 120));
            world.finish(&claimed, step);
        }
        world.deliver(&Tried::Delivered);
        all(&world, "turn").pop().unwrap().data.as_str().to_owned()
    };
    let tool = || {
        let content = Json::of("12 files").unwrap();
        let call = Turn {
            calls: vec!["t".into()],
            ..Turn::new("", Role::Assistant, Ingress::Internal, Json::of("").unwrap())
        };
        let answer = Turn {
            call_id: Some("t".into()),
            ..Turn::new("", Role::ToolResult, Ingress::Internal, content)
        };
        End { turns: vec![call, answer], ..ok() }
    };
    let timeout = End { status: RunStatus::Timeout, ..tool() };
    for (end, step, expected) in [
        (tool(), None, "Status: ok\\nResult: 12 files\\n"),
        (tool().saying("counted"), None, "Result: counted\\n"),
        (timeout, None, "Status: timeout\\nResult: 12 files\\n"),
        (ok().saying("kept"), Some(ok().saying("NO_REPLY")), "Result: kept\\n"),
        (
            ok().saying("kept"),
            Some(ok()),
            "Result: kept\\nNotes: the announce step failed: it said nothing\\n",
        ),
        (
            ok().saying("kept"),
            Some(End::without_output(RunStatus::Timeout, "run")),
            "Result: kept\\nNotes: the announce step failed: run\\n",
        ),
        (
            ok().saying("kept"),
            Some(ok().saying("Status: error\nResult: better\nNotes: a note")),
            "Status: ok\\nResult: better\\nNotes: a note\\n",
        ),
    ] {
        let told = told(&end, step.as_ref());
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

/// Goal: a killed child is announced as killed, once, with what it may have said later left out; a child announces at its
/// own end, whether or not its own children have ended, and those tell it in its session. Method: two deep; the outer ends
/// first.
#[test]
fn two_deep() {
    let world = World::new();
    let deep = Limits { depth: 2, ..MANY };
    let (outer, _) = world.spawn(B, deep);
    let outer_key = format!("agent:main:subagent:{outer}");
    let claimed = world.claim().unwrap();
    world.spawn(&outer_key, deep);
    world.finish(&claimed, &ok().saying("outer"));
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
    let inner = world.claim().unwrap();
    world.finish(&inner, &End::without_output(RunStatus::Killed, "kill"));
    assert_eq!(world.finish(&inner, &ok().saying("after all")), Finished::Before);
    let from = world.count();
    assert!(world.deliver(&Tried::Delivered).is_empty());
    assert_eq!(world.kinds(from), ["agent turn", "agent announce.failed"]);
    let turn = all(&world, "turn").pop().unwrap();
    assert_eq!(turn.stream.as_str(), outer_key);
    assert!(turn.data.as_str().contains("Status: killed (kill)"), "{}", turn.data);
}

/// Goal: one thing that waits for its next try holds up no other; a try whose end nobody told is unknown for good.
/// Method: two deliveries, the first deferred; a third whose worker dies behind the try.
#[test]
fn the_others_go_on() {
    let world = World::new();
    world.spawn(B, MANY);
    world.runs("one").unwrap();
    assert_eq!(world.deliver(&Tried::Retry("busy".into())).len(), 1);
    world.spawn(B, MANY);
    world.runs("two").unwrap();
    assert_eq!(world.deliver(&Tried::Delivered).len(), 1);
    assert_eq!(world.work().outgoing().len(), 1);
    world.scene.clock.advance(Duration::from_secs(5));
    let work = world.work();
    let (waybill, _) = work.outgoing()[0];
    let begun = world
        .decide(|stage, batch| attempt(stage, batch, &world.rules, (waybill, &Wording::default())));
    let Trial::Send { attempt_id, .. } = begun.unwrap() else { panic!("it is due") };
    let unknown = Tried::Unknown("unconfirmed".into());
    world
        .decide(|stage, batch| tried(stage, batch, &world.rules, (waybill, &attempt_id), &unknown))
        .unwrap();
    world.scene.clock.advance(Duration::from_secs(90_000));
    assert!(world.deliver(&Tried::Delivered).is_empty() && world.work() == Work::default());
}
