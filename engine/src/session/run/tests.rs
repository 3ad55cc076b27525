//! The steps of runs, with a worker that does at once what they say.

mod cases;

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::id::{EventId, StreamName};
use crate::projection::Folded;
use crate::session::event::{Cleanup, RunKind, RunStatus, Sandbox, SpawnMode};
use crate::session::index::Sessions;
use crate::session::policy::SendPolicy;
use crate::session::scene::Scene;
use crate::session::silent::{Background, Tokens};
use crate::session::work::Work;
use crate::store::{EventStore, View};

pub(super) const A: &str = "agent:main:main";
pub(super) const B: &str = "telegram:7";

/// A scene with two sessions, agents that answer what they are told, and sinks that take everything.
pub(super) struct World {
    pub(super) scene: Scene,
    pub(super) rules: Rules,
}

impl World {
    pub(super) fn new() -> Self {
        let scene = Scene::new();
        scene.opened(A, "pa", "").opened(
            B,
            "pb",
            ",'channel':'telegram','origin':{'channel':'telegram','to':'7'}",
        );
        let rules = Rules {
            policy: SendPolicy::default(),
            silent: Tokens::new([], Background::Exact),
            announce: AnnounceWay::Auto,
            announce_timeout: 120,
            announce_wakes: false,
            runs_max: 100,
            agents: BTreeMap::from([("main".to_owned(), false)]),
            sinks: BTreeMap::from([("telegram".to_owned(), "exec".to_owned())]),
        };
        Self { scene, rules }
    }

    pub(super) fn work(&self) -> Work {
        Folded::<Work>::of(&self.scene.store, View::Durable).unwrap().state().clone()
    }

    pub(super) fn decide<T: std::marker::Send>(
        &self,
        rule: impl FnMut(&Stage<'_>, &mut Batch<'_>) -> crate::Result<T> + std::marker::Send,
    ) -> crate::Result<T> {
        let sessions = Folded::<Sessions>::of(&self.scene.store, View::Durable)?;
        let work = Folded::<Work>::of(&self.scene.store, View::Durable)?;
        let keys: Vec<StreamName> = sessions.state().rows().map(|row| row.key.clone()).collect();
        let keys: Vec<&StreamName> = keys.iter().collect();
        let views = Views { sessions: &sessions, work: &work };
        decide(&self.scene.store, views, &keys, rule).map(|(found, _)| found)
    }

    pub(super) fn send(&self, from: &str, to: &str, rounds: u32, wait: u64) -> (String, Asked) {
        let run_id = EventId::new(self.scene.clock.now()).to_string();
        let (from, to) = (StreamName::new(from).unwrap(), StreamName::new(to).unwrap());
        let asked = self.decide(|stage, batch| {
            let wish = Send {
                verb: "sessions_send",
                from: Requester { key: &from, run_id: None, opening: None },
                to: &to,
                named: to.as_str(),
                label: None,
                message: "how are you?",
                wait_seconds: wait,
                run_id: &run_id,
                idempotency_key: None,
                rounds_max: rounds,
                hops_max: 10,
                runs_max: 100,
                can_run: &|agent| agent == "main",
                blocked: None,
            };
            send(stage, batch, &wish)
        });
        (run_id, asked.unwrap())
    }

    pub(super) fn spawn(&self, from: &str, limits: Limits) -> (String, Asked) {
        let run_id = EventId::new(self.scene.clock.now()).to_string();
        let child = StreamName::new(format!("agent:main:subagent:{run_id}")).unwrap();
        let from = StreamName::new(from).unwrap();
        let asked = self.decide(|stage, batch| {
            let wish = Spawn {
                from: Requester { key: &from, run_id: None, opening: None },
                agent: "main",
                child: &child,
                session_id: "pc",
                run_id: &run_id,
                task: "count the words",
                preamble: None,
                label: None,
                model: None,
                thinking: None,
                timeout_seconds: 0,
                thread: false,
                mode: SpawnMode::Run,
                cleanup: Cleanup::Keep,
                sandbox: Sandbox::Inherit,
                confined: false,
                attachments: &[],
                mount_path: None,
                idempotency_key: None,
                origin: None,
                limits,
                refused: [None, None],
            };
            spawn(stage, batch, &wish)
        });
        (run_id, asked.unwrap())
    }

    pub(super) fn claim(&self) -> Option<Claimed> {
        let now = self.scene.clock.now();
        let who = Claimer {
            worker: "w".into(),
            pid: 1,
            process_start: "1".into(),
            boot_id: "b".into(),
            host: "h".into(),
            lease_until: now.plus(Duration::from_secs(60)),
            token_sha256: "t".into(),
        };
        self.decide(|stage, batch| claim(stage, batch, &who, |_| true)).unwrap()
    }

    pub(super) fn finish(&self, claimed: &Claimed, end: &End) -> Finished {
        let work = self.work();
        let run = &claimed.run;
        let first = run.follows.as_deref().unwrap_or(&run.run_id);
        let exchange = work.exchange(first).map(|exchange| &**exchange);
        let earlier = announce::earlier(&self.scene.store, run, exchange).unwrap();
        let at = (run.run_id.as_str(), Some(claimed.claim));
        self.decide(|stage, batch| finish(stage, batch, &self.rules, at, (end, &earlier))).unwrap()
    }

    /// Claims the next run and lets it say something; returns the run and what it was told.
    pub(super) fn runs(
        &self,
        says: &str,
    ) -> Option<(std::sync::Arc<crate::session::work::Job>, String)> {
        let claimed = self.claim()?;
        let ok = End { reason: None, ..End::without_output(RunStatus::Ok, "") };
        assert_eq!(self.finish(&claimed, &ok.saying(says)), Finished::Now);
        let told = announce::told(&self.scene.store, &claimed.run.run_id).unwrap();
        let preamble = told.requested.and_then(|e| e.preamble).unwrap_or_default();
        Some((claimed.run, preamble))
    }

    /// Tries everything that is on its way; `result` is what becomes of what is sent.
    pub(super) fn deliver(&self, result: &Tried) -> Vec<String> {
        let mut sent = Vec::new();
        for (waybill, outgoing) in self.work().outgoing() {
            let words = match waybill.run_id() {
                Some(run) if outgoing.child_key.is_some() => {
                    announce::wording(&self.scene.store, run, outgoing, &self.rules.silent).unwrap()
                }
                _ => Wording::default(),
            };
            let trial = self
                .decide(|stage, batch| attempt(stage, batch, &self.rules, (waybill, &words)))
                .unwrap();
            if let Trial::Send { attempt_id, sink, target, .. } = trial {
                sent.push(format!("{sink} {}", target.to.unwrap_or_default()));
                let of = (waybill, attempt_id.as_str());
                self.decide(|stage, batch| tried(stage, batch, &self.rules, of, result)).unwrap();
            }
        }
        sent
    }

    /// The events from a position on, without the ids that differ from run to run.
    pub(super) fn kinds(&self, from: usize) -> Vec<String> {
        let records = self.scene.records();
        records
            .iter()
            .skip(from)
            .map(|record| {
                let stream = record.stream.as_str().split(':').next().unwrap_or_default();
                format!("{stream} {}", record.kind)
            })
            .collect()
    }

    pub(super) fn count(&self) -> usize {
        self.scene.records().len()
    }
}

pub(super) const MANY: Limits = Limits { depth: 1, of_one: 5, of_all: 3, chain: (10, 100) };

fn accepted(asked: &Asked) -> bool {
    matches!(asked, Asked::Accepted { .. })
}

fn refused(asked: &Asked) -> &'static str {
    match asked {
        Asked::Refused(reason) => reason.code,
        Asked::Accepted { .. } => "accepted",
    }
}

/// Goal: a send is one batch whose events name each other; the reply-back rounds alternate, the requester first, never
/// more than agreed; then the target announces to its own channel. Method: two rounds that never stop.
#[test]
fn an_exchange() {
    let world = World::new();
    let from = world.count();
    let (run_id, asked) = world.send(A, B, 2, 30);
    assert!(accepted(&asked));
    assert_eq!(world.kinds(from), ["telegram turn", "run run.requested", "agent send.accepted"]);
    let (run, block) = world.runs("first").unwrap();
    assert_eq!((run.run_id.as_str(), run.kind, run.turn_seq), (&*run_id, RunKind::Send, Some(3)));
    assert!(block.contains("session agent:main:main of agent main") && block.contains("1 of 3"));
    let (run, block) = world.runs("second").unwrap();
    assert_eq!((run.session_key.as_str(), run.kind, run.round), (A, RunKind::Reply, Some(2)));
    assert!(
        block.contains("telegram:7") && block.contains("2 of 3") && block.contains("REPLY_SKIP")
    );
    let (run, _) = world.runs("third").unwrap();
    assert_eq!((run.session_key.as_str(), run.round), (B, Some(3)));
    let last =
        world.scene.records().into_iter().rev().find(|r| r.kind.as_str() == "exchange.ended");
    assert!(last.unwrap().data.as_str().contains(r#""rounds":3,"reason":"max_turns""#));
    let (run, block) = world.runs("all is well").unwrap();
    assert_eq!((run.session_key.as_str(), run.kind), (B, RunKind::Announce));
    for said in ["how are you?", "first", "third", "posted to telegram", "ANNOUNCE_SKIP"] {
        assert!(block.contains(said), "{said}: {block}");
    }
    assert!(world.runs("no more").is_none());
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
    assert!(world.work().is_empty());
}

/// Goal: an exchange stops at the exact word, at silence, at nothing and at a failure, and text around a word is an
/// ordinary reply; what stops the first reply leaves nothing to announce. Method: replies of each sort.
#[test]
fn stops() {
    for (says, reason, more) in [
        (" REPLY_SKIP\n", "reply_skip", false),
        ("NO_REPLY", "silent", false),
        ("  ", "empty", false),
        ("REPLY_SKIP.", "", true),
        ("I say REPLY_SKIP", "", true),
    ] {
        let world = World::new();
        world.send(A, B, 5, 0);
        world.runs(says).unwrap();
        let ended = world.scene.records().into_iter().any(|record| {
            record.kind.as_str() == "exchange.ended"
                && record.data.as_str().contains(&format!("\"reason\":\"{reason}\""))
        });
        assert_eq!((ended, world.runs("x").is_some()), (!more, more), "{says:?}");
    }
    let world = World::new();
    world.send(A, B, 0, 0);
    world.runs("once").unwrap();
    assert_eq!(world.runs("ANNOUNCE_SKIP").unwrap().0.kind, RunKind::Announce);
    assert!(world.runs("x").is_none() && world.deliver(&Tried::Delivered).is_empty());
    let last = world.scene.records().pop().unwrap();
    assert_eq!(last.kind.as_str(), "delivery.suppressed");
    assert!(last.data.as_str().contains("announce_skip"), "{}", last.data);
}

/// Goal: a child is one batch; its end, the announce, the turn in the requester and the delivery are each there once.
/// Method: a child that ends well; a sink that takes it; everything asked twice.
#[test]
fn a_child() {
    let world = World::new();
    let from = world.count();
    let (run_id, asked) = world.spawn(B, MANY);
    assert!(accepted(&asked));
    let batch =
        ["agent session.opened", "agent turn", "run run.requested", "telegram spawn.accepted"];
    assert_eq!(world.kinds(from), batch);
    let claimed = world.claim().unwrap();
    assert!(world.claim().is_none() && world.deliver(&Tried::Delivered).is_empty());
    let ok = End { reason: None, runtime_ms: 312_000, ..End::without_output(RunStatus::Ok, "") };
    let end = ok.saying("42 words");
    assert_eq!(world.finish(&claimed, &end), Finished::Now);
    assert_eq!(world.finish(&claimed, &end), Finished::Before);
    let from = world.count();
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
    assert!(world.deliver(&Tried::Delivered).is_empty());
    assert_eq!(
        world.kinds(from),
        ["telegram turn", "telegram announce.attempted", "telegram announce.delivered"]
    );
    let turn = &world.scene.records()[from];
    for said in [
        "Status: ok\\nResult: 42 words\\nStats: runtime 5m12s · sessionKey agent:main:subagent:",
        r#""from":"inter_session""#,
        r#""sourceTool":"subagent_announce""#,
        &format!(r#""runId":"{run_id}""#),
    ] {
        assert!(turn.data.as_str().contains(said), "{said}: {}", turn.data);
    }
    assert!(world.work().is_empty());
}

/// Goal: children are counted, waiting ones too, over all requesters; a refusal leaves no session, only its event; a
/// place is free again after an end. Method: five spawns against three, then one end.
#[test]
fn limits() {
    let world = World::new();
    let asked: Vec<_> = (0..5).map(|_| world.spawn(A, MANY).1).collect();
    assert_eq!(
        asked.iter().map(refused).collect::<Vec<_>>(),
        ["accepted", "accepted", "accepted", "children_total", "children_total"]
    );
    assert_eq!(world.scene.sessions().len(), 5);
    assert_eq!(world.kinds(world.count() - 1), ["agent spawn.refused"]);
    world.runs("done").unwrap();
    assert!(accepted(&world.spawn(A, MANY).1));
    let one = Limits { of_one: 1, of_all: 9, ..MANY };
    assert_eq!(refused(&world.spawn(A, one).1), "children");
    assert_eq!(refused(&world.spawn(A, Limits { depth: 0, ..MANY }).1), "depth");
}

/// Goal: who waits for us is not waited for, directly or over others; without waiting there is no knot. Method: A sends
/// B and waits, and B's run sends back; the same over three.
#[test]
fn knots() {
    let world = World::new();
    let c = "cli:c";
    world.scene.opened(c, "pc", "");
    world.scene.run("ra", A, "pa", "");
    world.claim().unwrap();
    assert!(accepted(&world.send(A, B, 0, 30).1));
    world.claim().unwrap();
    assert_eq!(refused(&world.send(B, A, 0, 30).1), "would_deadlock");
    assert!(accepted(&world.send(B, A, 0, 0).1));
    assert!(accepted(&world.send(B, c, 0, 30).1));
    world.claim().unwrap();
    assert_eq!(refused(&world.send(c, A, 0, 30).1), "would_deadlock");
    world.scene.clock.advance(Duration::from_secs(60));
    assert!(accepted(&world.send(c, A, 0, 30).1), "nobody waits any more");
    assert_eq!(refused(&world.send(A, A, 0, 0).1), "self");
}

/// Goal: a chain of sends ends. Method: two sessions that answer each message with another message.
#[test]
fn chains() {
    let world = World::new();
    world.send(A, B, 0, 0);
    let mut hops = Vec::new();
    for _ in 0..20 {
        let Some(claimed) = world.claim() else { break };
        hops.push(claimed.run.hop);
        let other = if claimed.run.session_key == A { B } else { A };
        let from = claimed.run.session_key.clone();
        let asked = world.send(&from, other, 0, 0).1;
        world.finish(&claimed, &End::without_output(RunStatus::Ok, ""));
        if refused(&asked) == "loop" {
            break;
        }
    }
    assert_eq!(hops, (0..=10).collect::<Vec<_>>());
}

/// Goal: what follows from one request is bounded in its breadth too, and a request of another chain begins anew. Method:
/// two sessions with rounds, each run of which sends to the other; then one that nothing caused.
#[test]
fn wide_chains() {
    let world = World::new();
    world.send(A, B, 5, 0);
    let mut runs = 0;
    while let Some(claimed) = world.claim() {
        runs += 1;
        assert!(runs < 300, "no end");
        let from = claimed.run.session_key.clone();
        let other = if from == A { B } else { A };
        world.send(&from, other, 5, 0);
        let ok = End { reason: None, ..End::without_output(RunStatus::Ok, "") };
        world.finish(&claimed, &ok.saying("and you?"));
    }
    assert!(runs >= 100, "{runs} runs");
    assert!(accepted(&world.send(A, B, 0, 0).1), "another chain");
    assert_eq!(world.work().runs_in("no such chain"), 0);
}

/// Goal: tries come at their times, a permanent refusal ends at once, the last try that fails ends it, and what nobody
/// can confirm is never sent again. Method: the clock.
#[test]
fn tries() {
    let spawned = || {
        let world = World::new();
        world.spawn(B, MANY);
        world.runs("done").unwrap();
        world
    };
    let world = spawned();
    let retry = Tried::Retry("sink_error".into());
    let mut at = Vec::new();
    for second in 0..=900_u64 {
        if !world.deliver(&retry).is_empty() {
            at.push(second);
        }
        world.scene.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(at, [0, 5, 30, 150, 750]);
    assert_eq!(world.kinds(world.count() - 1), ["telegram announce.failed"]);
    for (result, ended) in [
        (Tried::Refused("gone".into()), "telegram announce.failed"),
        (Tried::Unknown("unconfirmed".into()), "telegram announce.unknown"),
    ] {
        let world = spawned();
        assert_eq!(world.deliver(&result).len(), 1);
        assert_eq!(world.kinds(world.count() - 1), [ended]);
        world.scene.clock.advance(Duration::from_secs(90_000));
        assert!(world.deliver(&Tried::Delivered).is_empty() && world.work().is_empty());
    }
    let world = spawned();
    world.scene.clock.advance(EXPIRES);
    assert!(world.deliver(&Tried::Delivered).is_empty());
    assert_eq!(world.kinds(world.count() - 1), ["telegram announce.failed"]);
}

/// Goal: an announce to a requester that is never at rest comes to its end too, and for that reason. Method: a requester
/// at work for a day.
#[test]
fn a_requester_that_never_rests() {
    let world = World::new();
    world.spawn(B, MANY);
    let child = world.claim().unwrap();
    world.scene.run("rb", B, "pb", "");
    world.claim().unwrap();
    world.finish(&child, &End::without_output(RunStatus::Ok, "").saying("done"));
    assert!(world.deliver(&Tried::Delivered).is_empty());
    world.scene.clock.advance(EXPIRES);
    let from = world.count();
    assert!(world.deliver(&Tried::Delivered).is_empty());
    assert_eq!(world.kinds(from), ["telegram announce.failed"]);
    assert!(world.scene.records().pop().unwrap().data.as_str().contains("requester_busy"));
}

/// Goal: an announce waits until its requester is at rest; without a route it is told in the session and ends as failed,
/// a denied one as suppressed. Method: a busy requester; one without a channel; a policy.
#[test]
fn where_announces_go() {
    let world = World::new();
    world.spawn(B, MANY);
    let child = world.claim().unwrap();
    world.scene.run("rb", B, "pb", "");
    let own = world.claim().unwrap();
    let ok = End::without_output(RunStatus::Ok, "");
    world.finish(&child, &ok.clone().saying("done"));
    assert!(world.deliver(&Tried::Delivered).is_empty());
    world.finish(&own, &ok);
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
    world.spawn(A, MANY);
    world.runs("done").unwrap();
    let from = world.count();
    assert!(world.deliver(&Tried::Delivered).is_empty());
    assert_eq!(world.kinds(from), ["agent turn", "agent announce.failed"]);
    assert!(world.scene.records().pop().unwrap().data.as_str().contains("no_route"));
    world.scene.event(B, "session.patched", "{'sessionId':'pb','set':{'sendPolicy':'deny'}}");
    world.spawn(B, MANY);
    world.runs("done").unwrap();
    let from = world.count();
    assert!(world.deliver(&Tried::Delivered).is_empty());
    assert_eq!(world.kinds(from), ["telegram turn", "telegram announce.suppressed"]);
    assert!(world.scene.records().pop().unwrap().data.as_str().contains("policy (session)"));
}

/// Goal: runs of one session are serial in the order of their requests, those of others side by side; a run that nobody
/// has ends with the wish. Method: three runs on two sessions, claimed and killed.
#[test]
fn serial() {
    let world = World::new();
    for (id, key, part) in [("r1", A, "pa"), ("r2", A, "pa"), ("r3", B, "pb")] {
        world.scene.run(id, key, part, "");
    }
    let first = world.claim().unwrap();
    assert_eq!(first.run.run_id, "r1");
    assert_eq!(world.claim().unwrap().run.run_id, "r3");
    assert!(world.claim().is_none());
    let kill = |id: &str| {
        let wish = ("operator", "enough");
        world
            .decide(|stage, batch| kill(stage, batch, &world.rules, id, wish, &Earlier::default()))
            .unwrap()
    };
    assert_eq!(kill("r2"), Killed::Ended);
    assert_eq!(
        (kill("r1"), kill("r1"), kill("r9")),
        (Killed::Asked, Killed::AskedBefore, Killed::NotOpen)
    );
    let starting = Starting { command: vec!["x".into()], cwd: String::new(), trimmed: None };
    let started = world.decide(|stage, batch| start(stage, batch, ("r1", first.claim), &starting));
    assert!(!started.unwrap(), "it is not started any more");
    world.finish(&first, &End::without_output(RunStatus::Killed, "killed"));
    assert!(world.claim().is_none());
}

/// Goal: the view of the work at hand is the same from a snapshot, and holds nothing that has ended. Method: after each
/// event of a story the state is saved, read back and gone on with; the whole story as one digest.
#[test]
fn the_view_is_the_same_from_a_snapshot() {
    use crate::projection::Projection;
    let world = World::new();
    world.send(A, B, 1, 30);
    world.spawn(B, MANY);
    world.runs("one").unwrap();
    world.runs("two").unwrap();
    world.deliver(&Tried::Retry("busy".into()));
    world.runs("three").unwrap();
    let records = world.scene.records();
    for cut in 0..records.len() {
        let mut work = Work::default();
        records.iter().take(cut).for_each(|record| work.apply(&record.fields()));
        let text = serde_json::to_string(&work).unwrap();
        let mut read: Work = serde_json::from_str(&text).unwrap();
        assert_eq!(read, work, "after {cut} events");
        for record in records.iter().skip(cut) {
            read.apply(&record.fields());
        }
        assert_eq!(read, world.work(), "saved after {cut} events");
    }
    let mut digest = crate::session::work::Digest::default();
    records.iter().for_each(|record| digest.apply(&record.fields()));
    let mut taken = Work::default();
    crate::projection::Digestible::take(&mut taken, digest);
    assert_eq!(taken, world.work(), "by a digest");
    assert!(world.scene.store.end(View::Durable).unwrap().is_some());
}

/// Goal: a requester that an announce wakes answers to its channel, whatever becomes of the announce meanwhile. Method: a
/// sink that fails at first, so that the announce is still on its way when the woken run ends; and one that was put away.
#[test]
fn woken() {
    let mut world = World::new();
    world.rules.announce_wakes = true;
    world.spawn(B, MANY);
    world.runs("done").unwrap();
    assert_eq!(world.deliver(&Tried::Retry("busy".into())), ["exec 7"]);
    let (run, _) = world.runs("I tell the user").unwrap();
    assert_eq!((run.session_key.as_str(), run.kind), (B, RunKind::Announce));
    assert_eq!(world.kinds(world.count() - 1), ["telegram delivery.requested"]);
    world.scene.clock.advance(Duration::from_secs(5));
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7", "exec 7"]);
    world.scene.event(
        B,
        "session.archived",
        "{'sessionId':'pb','reason':'manual','effectiveAt':'2026-04-01T00:00:00.000000Z'}",
    );
    world.spawn(A, MANY);
    world.scene.event(
        A,
        "session.archived",
        "{'sessionId':'pa','reason':'manual','effectiveAt':'2026-04-01T00:00:00.000000Z'}",
    );
    world.runs("done").unwrap();
    world.deliver(&Tried::Delivered);
    assert!(world.claim().is_none() && world.work().is_empty());
}

/// Goal: an exchange with a session that was put away, or begun anew, meanwhile comes to its end. Method: each side, each of
/// both, while the first run is at work.
#[test]
fn put_away_meanwhile() {
    for (key, part, archived) in
        [(A, "pa", true), (B, "pb", true), (A, "pa", false), (B, "pb", false)]
    {
        let world = World::new();
        world.send(A, B, 1, 0);
        let claimed = world.claim().unwrap();
        let effective = "'effectiveAt':'2026-04-01T00:00:00.000000Z'";
        if archived {
            world.scene.event(
                key,
                "session.archived",
                &format!("{{'sessionId':'{part}','reason':'manual',{effective}}}"),
            );
        } else {
            world.scene.event(key, "session.reset", &format!("{{'sessionId':'new','previousSessionId':'{part}','reason':'manual',{effective}}}"));
        }
        let ok = End { reason: None, ..End::without_output(RunStatus::Ok, "") };
        assert_eq!(world.finish(&claimed, &ok.saying("fine")), Finished::Now);
        let mut kinds = Vec::new();
        while let Some((run, _)) = world.runs("more") {
            kinds.push((run.kind, run.session_id.clone()));
        }
        let expected: &[(RunKind, &str)] = match (key, archived) {
            // Who asked does not answer; who was asked still tells its channel.
            (A, true) => &[(RunKind::Announce, "pb")],
            (B, true) => &[(RunKind::Reply, "pa")],
            (A, false) => &[(RunKind::Reply, "new"), (RunKind::Announce, "pb")],
            _ => &[(RunKind::Reply, "pa"), (RunKind::Announce, "new")],
        };
        let told: Vec<_> = kinds.iter().map(|(kind, part)| (*kind, part.as_str())).collect();
        assert_eq!(told, expected, "{key} {archived}");
        world.deliver(&Tried::Delivered);
        assert_eq!(world.work(), Work::default(), "{key} {archived}");
    }
}

/// Goal: what is told again is told shortened, so that no end is too large to be recorded. Method: a request and replies
/// that together are more than a line, with each step that tells them again.
#[test]
fn told_again() {
    let huge = "x".repeat(5 << 20);
    let mut world = World::new();
    world.send(A, B, 1, 0);
    world.runs(&huge).unwrap();
    world.runs(&huge).unwrap();
    let (run, block) = world.runs("all is well").unwrap();
    assert_eq!(run.kind, RunKind::Announce);
    assert!(block.contains("more bytes stand in the session") && block.len() < 1 << 20);
    world.rules.announce = AnnounceWay::Step;
    world.spawn(B, MANY);
    world.runs(&huge).unwrap();
    let (_, block) = world.runs("Result: much").unwrap();
    assert!(block.contains("more bytes stand in the session") && block.len() < 1 << 20);
}

/// Goal: a clock that is set back holds nothing up. Method: an hour back after an announce was asked for, and again after a
/// try failed.
#[test]
fn set_back() {
    let world = World::new();
    world.spawn(B, MANY);
    world.runs("done").unwrap();
    let back = || world.scene.clock.set(world.scene.clock.now().minus(Duration::from_secs(3_600)));
    back();
    assert_eq!(world.deliver(&Tried::Retry("busy".into())), ["exec 7"]);
    assert!(world.deliver(&Tried::Delivered).is_empty());
    back();
    assert_eq!(world.deliver(&Tried::Delivered), ["exec 7"]);
    assert!(world.work().is_empty());
}
