//! Pushes against a store in memory.

use super::*;
use crate::ErrorKind;
use crate::clock::Clock;
use crate::id::StreamName;
use crate::session::scene::Scene;

fn user(channel: &str, chat: &str, text: &str) -> Push {
    Push::new(channel, chat, Role::User, text, AgentId::parse("main").unwrap())
}

fn run(scene: &Scene, what: &Push) -> Result<Pushed> {
    push(&scene.store, what, scene.clock.now())
}

/// The stream's events: type, batch and data.
fn log(scene: &Scene, stream: &str) -> Vec<String> {
    let records = scene.records().into_iter().filter(|record| record.stream.as_str() == stream);
    records.map(|r| format!("{} {:?} {}", r.kind, r.batch, r.data)).collect()
}

/// Goal: the first turn opens the session in its batch, and the next goes into it, however the channel is spelled.
/// Method: two pushes, the log's text.
#[test]
fn the_first_turn_opens() {
    let scene = Scene::new();
    let mut first = user("Telegram", "-100:A", "hello");
    first.chat_type = Some(ChatType::Group);
    first.account = Some("acct".into());
    first.display_name = Some("परिवार".into());
    let first = run(&scene, &first).unwrap();
    assert!(first.opened && !first.repeated);
    let mut reply = user("telegram", "-100:A", "hi");
    reply.role = Role::Assistant;
    let second = run(&scene, &reply).unwrap();
    assert!(!second.opened);
    assert_eq!(first.key, second.key);
    assert_eq!(first.session_id, second.session_id);
    let id = &first.session_id;
    assert_eq!(
        log(&scene, "telegram:-100:A"),
        [
            format!(
                r#"session.opened Some((1, 2)) {{"sessionId":"{id}","kind":"group","agentId":"main","channel":"telegram","chatType":"group","chatId":"-100:A","accountId":"acct","spawnDepth":0,"displayName":"परिवार","origin":{{"channel":"telegram","to":"-100:A","accountId":"acct"}}}}"#
            ),
            format!(
                r#"turn Some((2, 2)) {{"sessionId":"{id}","role":"user","from":"external","provenance":{{"sourceChannel":"telegram"}},"content":"hello"}}"#
            ),
            format!(
                r#"turn None {{"sessionId":"{id}","role":"assistant","from":"internal","content":"hi"}}"#
            ),
        ]
    );
    let sessions = scene.sessions();
    let row = sessions.row(first.key.stream()).unwrap();
    assert_eq!((row.turns, row.last_to.as_deref()), (2, Some("-100:A")));
    assert!(scene.records().iter().all(|record| record.flow.is_some()));
}

/// Goal: a repeat under a key pushes once, also after a reset in between, and tells the first place; another text under
/// the key is refused. Method: three pushes of one key and a fourth with another text.
#[test]
fn repeats_push_once() {
    let scene = Scene::new();
    let mut once = user("cli", "default", "hello");
    once.idempotency_key = Some("k1".into());
    let first = run(&scene, &once).unwrap();
    let again = run(&scene, &once).unwrap();
    assert!(first.opened && again.repeated && !again.opened);
    assert_eq!((&again.position, &again.session_id), (&first.position, &first.session_id));
    scene.event("cli:default", "session.reset", "{'sessionId':'s2','previousSessionId':'x','reason':'manual','effectiveAt':'2026-04-01T00:00:03.000000Z'}");
    once.display_name = Some("desk".into());
    let later = run(&scene, &once).unwrap();
    assert!(later.repeated);
    assert_eq!((&later.position, &later.session_id), (&first.position, &first.session_id));
    once.text = "other".into();
    let error = run(&scene, &once).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::IdReused);
    let told = error.to_string();
    assert!(told.contains("\"k1\" was used for another turn of cli:default"), "{told}");
    assert_eq!(log(&scene, "cli:default").len(), 3);
    once.idempotency_key = Some("k2".into());
    assert_eq!(run(&scene, &once).unwrap().session_id, "s2");
}

/// Goal: a session of which only turns are left goes on in their part, and a reset that is left counts. Method: a turn
/// without an opening, a push, a reset, a push.
#[test]
fn the_part_is_known_without_its_opening() {
    let scene = Scene::new();
    scene.turn("cli:1", "s1", "user", "", "hello").turn("cli:1", "s0", "user", "", "late");
    let next = run(&scene, &user("cli", "1", "again")).unwrap();
    assert_eq!((next.session_id.as_str(), next.opened), ("s1", false));
    scene.event("cli:1", "session.reset", "{'sessionId':'s2','previousSessionId':'s1','reason':'manual','effectiveAt':'2026-04-01T00:00:03.000000Z'}");
    assert_eq!(run(&scene, &user("cli", "1", "more")).unwrap().session_id, "s2");
}

/// Goal: a name that the channel shows now is not lost on a session that is open. Method: the same name twice, then
/// another one.
#[test]
fn a_new_display_name_is_patched() {
    let scene = Scene::new();
    let mut named = user("cli", "1", "a");
    named.display_name = Some("desk".into());
    run(&scene, &named).unwrap();
    run(&scene, &named).unwrap();
    named.display_name = Some("शाला".into());
    run(&scene, &named).unwrap();
    run(&scene, &named).unwrap();
    let log = log(&scene, "cli:1");
    let types: Vec<&str> = log.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(types, ["session.opened", "turn", "turn", "session.patched", "turn", "turn"]);
    assert!(log[3].ends_with(r#""set":{"displayName":"शाला"}}"#), "{}", log[3]);
}

/// Goal: what a push says of the chat is not lost on a session that is open, and what it does not say stays. Method: an
/// account, then a thread, then another sort of chat; each is one patch, and none the second time.
#[test]
fn what_is_new_of_a_chat_is_patched() {
    let scene = Scene::new();
    let mut turn = user("telegram", "1", "a");
    turn.account = Some("bot".into());
    run(&scene, &turn).unwrap();
    turn.account = None;
    turn.thread = Some("9".into());
    run(&scene, &turn).unwrap();
    run(&scene, &turn).unwrap();
    turn.chat_type = Some(ChatType::Direct);
    run(&scene, &turn).unwrap();
    let log = log(&scene, "telegram:1");
    let patches: Vec<&String> = log.iter().filter(|l| l.starts_with("session.patched")).collect();
    assert_eq!(patches.len(), 2, "{log:#?}");
    assert!(patches[0].ends_with(r#""set":{"deliveryContext":{"channel":"telegram","to":"1","accountId":"bot","threadId":"9"}}}"#), "{}", patches[0]);
    assert!(patches[1].ends_with(r#""set":{"chatType":"direct"}}"#), "{}", patches[1]);
    let sessions = scene.sessions();
    let row = sessions.row(&StreamName::new("telegram:1").unwrap()).unwrap();
    assert_eq!(row.delivery_context.as_ref().unwrap().thread_id.as_deref(), Some("9"));
}

/// Goal: many who push first open once. Method: threads with one chat and no key, all started together.
#[test]
fn concurrent_first_pushes_open_once() {
    const THREADS: usize = 8;
    let scene = Scene::new();
    let barrier = std::sync::Barrier::new(THREADS);
    let opened = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|n| {
                let (scene, barrier) = (&scene, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    run(scene, &user("cli", "default", &n.to_string())).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(opened.iter().filter(|pushed| pushed.opened).count(), 1);
    let log = log(&scene, "cli:default");
    assert_eq!(log.iter().filter(|line| line.starts_with("session.opened")).count(), 1);
    assert_eq!(log.len(), THREADS + 1);
    assert!(opened.iter().all(|pushed| pushed.session_id == opened[0].session_id));
}

/// Goal: the decision sees what was appended after it looked, and begins again where the log did. Method: a decision
/// that has looked, then a first push by another, then a restart.
#[test]
fn the_decision_is_made_on_what_is_there() {
    let scene = Scene::new();
    scene.event("x:1", "x.acme.note", "{}");
    let late = user("cli", "default", "late");
    let mut pusher = Pusher::new(&late, scene.clock.now()).unwrap();
    pusher.load(&scene.store).unwrap();
    run(&scene, &user("cli", "default", "early")).unwrap();
    let appended = scene.store.append_deciding(&mut pusher, Durability::Synced).unwrap();
    assert_eq!(appended.positions.len(), 1);
    assert_eq!(log(&scene, "cli:default").len(), 3);
    pusher.restart();
    assert_eq!(pusher.seen(), None);
    assert_eq!(pusher.decide(scene.clock.now()).unwrap().events.len(), 2);
}

/// Goal: what cannot be pushed is refused and nothing is written. Method: one bad push each.
#[test]
fn refused() {
    let scene = Scene::new();
    let mut result = user("cli", "1", "x");
    result.role = Role::ToolResult;
    for bad in [
        result,
        user("run", "1", "x"),
        user("agent", "main:main", "x"),
        user("node-7", "1", "x"),
        user("", "1", "x"),
        user("cli", "", "x"),
        user("import", "1", "x"),
        user("cli", "1", ""),
        Push { idempotency_key: Some(String::new()), ..user("cli", "1", "x") },
        user("cli", &"é".repeat(600), "x"),
    ] {
        assert_eq!(*run(&scene, &bad).unwrap_err().kind(), ErrorKind::InvalidInput, "{bad:?}");
    }
    let error = run(&scene, &user("cli", "1", &"x".repeat(64 << 20))).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::TooLarge);
    assert!(
        error.message().starts_with("the text has 67108864 bytes and 67108866 as JSON; "),
        "{error}"
    );
    assert!(scene.records().is_empty());
    assert_eq!(scene.store.head(&StreamName::new("cli:1").unwrap()).unwrap(), Version::ZERO);
}
