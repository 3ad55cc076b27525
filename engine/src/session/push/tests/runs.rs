//! Turns with the runs that are to answer them.

use super::*;
use crate::format::Payload;
use crate::id::{EventId, EventType};
use crate::session::event::{Event, RunKind, RunRequested, firing_id};
use crate::store::{NewEvent, Record};

fn ask(channel: &str, chat: &str, text: &str, key: Option<&str>) -> Push {
    let wanted = Wanted { timeout_seconds: 60, deliver: true, ..Wanted::new(RunKind::Ask) };
    let door = Door::cli();
    let idempotency_key = key.map(str::to_owned);
    Push { door, idempotency_key, run: Some(wanted), ..user(channel, chat, text) }
}

fn requests(scene: &Scene) -> Vec<(Record, RunRequested)> {
    let records = scene.records().into_iter();
    records
        .filter_map(|record| match Event::of(&record).unwrap() {
            Event::RunRequested(request) => Some((record, request)),
            _ => None,
        })
        .collect()
}

/// Goal: the turn and the request of its run are one batch, in order, and each names the other. Method: a first push, one
/// into a session that is open, and one whose part is over.
#[test]
fn one_batch() {
    let scene = Scene::new();
    let rules = idle(60);
    for (expect, pause) in [
        (&["session.opened", "turn", "run.requested"][..], 0),
        (&["turn", "run.requested"], 1),
        (&["session.reset", "session.patched", "turn", "run.requested"], 90),
    ] {
        minutes(&scene, pause);
        let before = scene.records().len();
        let mut turn = ask("telegram", "1", "hello", None);
        turn.thread = (pause == 90).then(|| "7".to_owned());
        let pushed = run_under(&scene, &turn, &rules).unwrap();
        let records = scene.records().split_off(before);
        let kinds: Vec<&str> = records.iter().map(|record| record.kind.as_str()).collect();
        assert_eq!(kinds, expect);
        let count = u32::try_from(expect.len()).unwrap();
        let batches = records.iter().map(|record| record.batch.unwrap());
        assert!(batches.zip(1..).all(|(batch, index)| batch == (index, count)));
        let (record, request) = requests(&scene).pop().unwrap();
        let said = &records[records.len() - 2];
        assert_eq!(request.turn_seq, Some(said.seq.0));
        assert_eq!((pushed.position.seq, pushed.position.id), (said.seq, said.id));
        assert_eq!((record.cause, record.flow), (Some(said.id), said.flow));
        assert_eq!(pushed.run_id.as_deref(), Some(request.run_id.as_str()));
        assert_eq!(record.stream.as_str(), format!("run:{}", request.run_id));
        assert_eq!((&request.chain_id, request.hop), (&request.run_id, 0));
        assert_eq!(request.session_id, pushed.session_id);
        assert_eq!((request.timeout_seconds, request.deliver), (60, true));
        assert_eq!((request.kind, request.agent_id.as_str()), (RunKind::Ask, "main"));
        scene.finished(&request.run_id, "ok", "");
    }
}

/// Goal: a repeat under a key is the same run and appends nothing, whatever came in between; another body is refused;
/// without a key nothing is ever taken for a repeat. Method: the same call before and after a reset, with other limits,
/// from a decision that knows nothing; other bodies; the same text twice.
#[test]
fn a_repeat_is_the_same_run() {
    let scene = Scene::new();
    run(&scene, &user("cli", "a", "before")).unwrap();
    let first = run(&scene, &ask("cli", "a", "hello", Some("k"))).unwrap();
    scene.event("cli:a", "session.reset", "{'sessionId':'s2','previousSessionId':'x','reason':'manual','effectiveAt':'2026-04-01T00:00:03.000000Z'}");
    let before = scene.records().len();
    let mut again = ask("cli", "a", "hello", Some("k"));
    let wanted = Wanted { timeout_seconds: 5, deliver: false, ..Wanted::new(RunKind::Ask) };
    again.run = Some(wanted);
    let again = run(&scene, &again).unwrap();
    assert!(again.repeated && !first.repeated);
    assert_eq!((&again.run_id, &again.position), (&first.run_id, &first.position));
    assert_eq!((&again.session_id, again.reset), (&first.session_id, None));
    let other_model = {
        let mut turn = ask("cli", "a", "hello", Some("k"));
        turn.run.as_mut().unwrap().model = Some("opus".into());
        turn
    };
    for other in
        [ask("cli", "a", "other", Some("k")), ask("cli", "b", "hello", Some("k")), other_model]
    {
        let error = run(&scene, &other).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::IdReused, "{other:?}");
    }
    assert_eq!(scene.records().len(), before);
    let [one, two] = [0; 2].map(|_| run(&scene, &ask("cli", "a", "hello", None)).unwrap().run_id);
    assert_ne!(one, two);
    assert_eq!(requests(&scene).len(), 3);
    let elsewhere = Door::anonymous("webhook");
    let other_door = Push { door: elsewhere, ..ask("cli", "a", "hello", Some("k")) };
    assert!(!run(&scene, &other_door).unwrap().repeated);
}

/// Goal: two who make the same call at once get one run. Method: threads with one key and chats that nobody has opened,
/// all started together, many times.
#[test]
fn calls_at_once() {
    const THREADS: usize = 4;
    let scene = Scene::new();
    for round in 0..50 {
        let barrier = std::sync::Barrier::new(THREADS);
        let key = format!("k{round}");
        let runs = std::thread::scope(|scope| {
            let call = || {
                barrier.wait();
                run(&scene, &ask("cli", &key, "hello", Some(&key))).unwrap()
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(call)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(runs.iter().filter(|pushed| !pushed.repeated).count(), 1);
        assert!(runs.iter().all(|pushed| pushed.run_id == runs[0].run_id));
        assert!(runs.iter().all(|pushed| pushed.position == runs[0].position));
    }
    assert_eq!(requests(&scene).len(), 50);
    assert_eq!(scene.records().len(), 150);
}

/// Goal: a decision that has looked before the same call was carried out finds it. Method: a decision that has looked,
/// then the call by another, then the decision.
#[test]
fn a_call_that_came_in_between() {
    let scene = Scene::new();
    let call = ask("cli", "a", "hello", Some("k"));
    let rules = TimeRules::none();
    let sessions = || Folded::of(&scene.store, View::Durable).map(Arc::new);
    let terms = Terms { rules: &rules, owners: &[], sessions: &sessions };
    let mut pusher = Pusher::new(&call, &terms, scene.clock.now()).unwrap();
    pusher.load(&scene.store, scene.clock.now()).unwrap();
    run(&scene, &call).unwrap();
    let appended = scene.store.append_deciding(&mut pusher, Durability::Synced).unwrap();
    assert!(appended.repeated);
    assert_eq!(appended.positions.len(), 2);
}

/// Goal: a session's own agent answers where no other is named. Method: a session of another agent; a key that names one;
/// one that is named.
#[test]
fn whose_run_it_is() {
    let scene = Scene::new();
    scene.event(
        "cli:a",
        "session.opened",
        "{'sessionId':'p','kind':'other','agentId':'ops','spawnDepth':0}",
    );
    let key = SessionKey::parse("agent:dev:main", &AgentId::parse("main").unwrap()).unwrap();
    let of_key = Push { target: Target::Key(key), ..ask("cli", "a", "x", None) };
    let mut named = ask("cli", "a", "x", None);
    named.run.as_mut().unwrap().agent = AgentId::parse("qa").ok();
    for turn in [ask("cli", "a", "x", None), of_key, named, ask("cli", "b", "x", None)] {
        run(&scene, &turn).unwrap();
    }
    let agents: Vec<String> =
        requests(&scene).into_iter().map(|(_, request)| request.agent_id).collect();
    assert_eq!(agents, ["ops", "dev", "qa", "main"]);
}

/// Goal: a command asks for no run, and no run answers what is no user's turn. Method: both.
#[test]
fn no_run() {
    let scene = Scene::new();
    run(&scene, &user("cli", "a", "x")).unwrap();
    let pushed = run(&scene, &ask("cli", "a", "/new", None)).unwrap();
    assert_eq!((pushed.command, pushed.run_id), (Some(Command::Reset), None));
    assert!(requests(&scene).is_empty());
    let assistant = Push { role: Role::Assistant, ..ask("cli", "a", "x", None) };
    assert_eq!(*run(&scene, &assistant).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// Goal: what a watch rule has seen stands ahead of its turn and causes it; the run's id is known before; a restart that
/// fires again finds both. Method: a firing, and the same once more.
#[test]
fn a_firing_stands_ahead() {
    let scene = Scene::new();
    let firing = firing_id("notes", "a.md", "aa", None);
    let mut turn = Push {
        door: Door { name: "watch".into(), who: Who::Program },
        idempotency_key: Some(firing.to_string()),
        run: Some(Wanted::new(RunKind::Watch)),
        ..user("cli", "a", "a.md changed")
    };
    let run_id = turn.keyed_run_id().unwrap().unwrap();
    let data = format!(
        r#"{{"rule":"notes","path":"a.md","change":"change","sha256":"aa","runId":"{run_id}"}}"#
    );
    turn.ahead = Some(NewEvent {
        id: firing,
        stream: StreamName::new("watch:notes").unwrap(),
        kind: EventType::new("watch.fired").unwrap(),
        cause: None,
        flow: Some(firing),
        data: Payload::from_json(&data).unwrap(),
    });
    let first = run(&scene, &turn).unwrap();
    let records = scene.records();
    let links: Vec<(&str, Option<EventId>, Option<EventId>)> =
        records.iter().map(|r| (r.kind.as_str(), r.cause, r.flow)).collect();
    let flow = Some(firing);
    assert_eq!(
        links,
        [
            ("session.opened", None, flow),
            ("watch.fired", None, flow),
            ("turn", Some(firing), flow),
            ("run.requested", Some(first.position.id), flow),
        ]
    );
    assert_eq!(requests(&scene)[0].1.turn_seq, Some(3));
    assert_eq!(first.run_id, Some(run_id.to_string()));
    let again = run(&scene, &turn).unwrap();
    assert!(again.repeated && again.run_id == first.run_id && again.position == first.position);
    assert_eq!(scene.records().len(), 4);
}

/// Goal: a webhook's session of its own is the same for the same call. Method: hooks with and without a key.
#[test]
fn sessions_of_hooks() {
    let now = Scene::new().clock.now();
    let hook = |key: Option<&str>| Target::hook("webhook", key, now).unwrap().key().unwrap();
    assert_eq!(hook(Some("k")), hook(Some("k")));
    assert_ne!(hook(Some("k")), hook(Some("l")));
    assert_ne!(hook(None), hook(None));
    assert!(hook(None).as_str().starts_with("hook:"));
}
