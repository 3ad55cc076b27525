//! Pushes against a store in memory.

use super::*;
use crate::ErrorKind;
use crate::clock::Clock;
use crate::id::{StreamName, Version};
use crate::session::reset::{Override, SessionType};
use crate::session::scene::Scene;
use crate::store::{Decider, View};

mod agreement;
mod doors;
mod runs;

fn user(channel: &str, chat: &str, text: &str) -> Push {
    Push::new(channel, chat, Role::User, text, AgentId::parse("main").unwrap())
}

fn run(scene: &Scene, what: &Push) -> Result<Pushed> {
    run_under(scene, what, &TimeRules::none())
}

fn run_under(scene: &Scene, what: &Push, rules: &TimeRules) -> Result<Pushed> {
    let sessions = || Folded::of(&scene.store, View::Durable).map(Arc::new);
    let terms = Terms { rules, owners: &[], sessions: &sessions };
    push(&scene.store, what, &terms, scene.clock.now())
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
    let rules = TimeRules::none();
    let sessions = || Folded::of(&scene.store, View::Durable).map(Arc::new);
    let terms = Terms { rules: &rules, owners: &[], sessions: &sessions };
    let mut pusher = Pusher::new(&late, &terms, scene.clock.now()).unwrap();
    pusher.load(&scene.store, scene.clock.now()).unwrap();
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
        user("", "1", "x"),
        user("cli", "", "x"),
        user("cli", "1", ""),
        Push { idempotency_key: Some(String::new()), ..user("cli", "1", "x") },
        user("cli", &"é".repeat(600), "x"),
    ] {
        assert_eq!(*run(&scene, &bad).unwrap_err().kind(), ErrorKind::InvalidInput, "{bad:?}");
    }
    for (channel, chat) in [("run", "1"), ("agent", "main:main"), ("node-7", "1"), ("import", "1")]
    {
        let error = run(&scene, &user(channel, chat, "x")).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::ReservedChannel, "{channel}");
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

/// Rules that end a chat's part after so many minutes without a person.
fn idle(minutes: u64) -> TimeRules {
    let mut rules = TimeRules::none();
    rules.resets.channel_chats_idle_minutes = Some(minutes);
    rules
}

fn minutes(scene: &Scene, minutes: u64) {
    scene.clock.advance(std::time::Duration::from_secs(60 * minutes));
}

/// Goal: a turn from outside after the idle time begins another part, in one batch and ahead of the turn, with the
/// moment at which the time was over; nothing else does. Method: turns of each sort around the limit.
#[test]
fn an_idle_part_ends_with_the_next_human_turn() {
    let scene = Scene::new();
    let push = |text: &str, role: Role| {
        let turn = Push { role, ..user("cli", "a", text) };
        run_under(&scene, &turn, &idle(60)).unwrap()
    };
    let first = push("one", Role::User);
    minutes(&scene, 50);
    push("an answer", Role::Assistant);
    minutes(&scene, 10);
    let second = push("two", Role::User);
    assert_eq!((second.session_id.as_str(), second.reset), (first.session_id.as_str(), None));
    minutes(&scene, 61);
    let silent = push("nobody", Role::Assistant);
    assert_eq!((silent.session_id.as_str(), silent.reset), (first.session_id.as_str(), None));
    let third = push("three", Role::User);
    assert_eq!(third.reset, Some(ResetReason::Idle));
    assert_ne!(third.session_id, first.session_id);
    let log = log(&scene, "cli:a");
    let expect = format!(
        r#"session.reset Some((1, 2)) {{"sessionId":"{}","previousSessionId":"{}","reason":"idle","effectiveAt":"2026-04-01T02:00:00.000000Z","rule":{{"mode":"idle","idleMinutes":60}}}}"#,
        third.session_id, first.session_id
    );
    assert_eq!(log[log.len() - 2], expect);
    assert!(log[log.len() - 1].starts_with("turn Some((2, 2))"), "{log:?}");
    assert_eq!(push("four", Role::User).reset, None);
}

/// Goal: the last human turn is found however far back it lies, and no further than the part goes. Method: a hundred
/// answers behind it; then a part in which nobody has written yet.
#[test]
fn the_last_human_turn_is_found() {
    let scene = Scene::new();
    let push = |text: &str, role: Role| {
        let turn = Push { role, ..user("cli", "a", text) };
        run_under(&scene, &turn, &idle(60)).unwrap()
    };
    push("one", Role::User);
    minutes(&scene, 59);
    push("two", Role::User);
    for _ in 0..100 {
        push("an answer", Role::Assistant);
    }
    minutes(&scene, 2);
    assert_eq!(push("three", Role::User).reset, None);
    run(&scene, &Push { door: Door::cli(), ..user("cli", "a", "/new") }).unwrap();
    minutes(&scene, 59);
    assert_eq!(push("four", Role::User).reset, None);
}

/// Goal: a run at work puts the reset off, at most for the time that is set, and the event names it. Method: a run that
/// never ends.
#[test]
fn a_run_puts_the_reset_off() {
    let scene = Scene::new();
    let turn = user("cli", "a", "hello");
    let first = run_under(&scene, &turn, &idle(60)).unwrap();
    scene.run("r", "cli:a", &first.session_id, "");
    minutes(&scene, 89);
    assert_eq!(run_under(&scene, &user("cli", "a", "x"), &idle(30)).unwrap().reset, None);
    minutes(&scene, 91);
    let late = run_under(&scene, &user("cli", "a", "y"), &idle(30)).unwrap();
    assert_eq!(late.reset, Some(ResetReason::Idle));
    assert!(log(&scene, "cli:a").iter().any(|line| line.contains(r#""deferredBy":"r""#)));
}

/// Goal: a repeat under the same key is the same turn although the part has ended since. Method: the same push on both
/// sides of the boundary, then a new one.
#[test]
fn a_repeat_resets_nothing() {
    let scene = Scene::new();
    let turn = Push { idempotency_key: Some("k".into()), ..user("cli", "a", "hello") };
    let first = run_under(&scene, &turn, &idle(60)).unwrap();
    minutes(&scene, 120);
    let again = run_under(&scene, &turn, &idle(60)).unwrap();
    assert!(again.repeated && again.reset.is_none());
    assert_eq!((again.session_id, again.position.seq), (first.session_id, first.position.seq));
    assert!(run_under(&scene, &user("cli", "a", "x"), &idle(60)).unwrap().reset.is_some());
}

/// Goal: an owner's command is obeyed and not stored; from anyone else it is a turn. Method: every command, both ways.
#[test]
fn commands_of_owners() {
    let scene = Scene::new();
    let owner = |text: &str| run(&scene, &Push { door: Door::cli(), ..user("cli", "a", text) });
    assert_eq!(*owner("/new").unwrap_err().kind(), ErrorKind::NotFound);
    let first = owner("hello").unwrap();
    let policy = || {
        let key = StreamName::new("cli:a").unwrap();
        let row = scene.sessions().row(&key).unwrap().clone();
        (row.send_policy, row.turns, row.parts)
    };
    assert_eq!(owner("/send off").unwrap().command, Some(Command::Send(Some(SendSwitch::Off))));
    assert_eq!(policy(), (Some("deny".into()), 1, 1));
    owner("/SEND on").unwrap();
    assert_eq!(policy(), (Some("allow".into()), 1, 1));
    owner("/send inherit").unwrap();
    assert_eq!(policy(), (None, 1, 1));
    let new = owner(" /Reset ").unwrap();
    assert_eq!((new.command, new.reset), (Some(Command::Reset), Some(ResetReason::Manual)));
    assert_ne!(new.session_id, first.session_id);
    assert_eq!(policy(), (None, 0, 2));
    let other = run(&scene, &user("cli", "a", "/new")).unwrap();
    assert_eq!((other.command, other.session_id), (None, new.session_id));
    assert_eq!(policy(), (None, 1, 2));
}

/// Goal: a command under a key is obeyed once, whatever is said in between, and the key is not taken for anything else.
/// Method: each command repeated behind a turn; the key used for a text and for another command.
#[test]
fn a_repeated_command_is_obeyed_once() {
    let scene = Scene::new();
    run(&scene, &user("cli", "a", "hello")).unwrap();
    let keyed = |text: &str, key: &str| Push {
        door: Door::cli(),
        idempotency_key: Some(key.into()),
        ..user("cli", "a", text)
    };
    for (text, key) in [("/new", "n"), ("/send off", "s")] {
        let first = run(&scene, &keyed(text, key)).unwrap();
        assert!(!first.repeated);
        run(&scene, &user("cli", "a", "in between")).unwrap();
        let before = scene.records().len();
        let again = run(&scene, &keyed(text, key)).unwrap();
        assert!(again.repeated && again.reset.is_none(), "{text}");
        assert_eq!((again.position.seq, again.session_id), (first.position.seq, first.session_id));
        assert_eq!(scene.records().len(), before);
    }
    for other in ["/send off", "some text"] {
        let error = run(&scene, &keyed(other, "n")).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::IdReused, "{other}");
    }
    let error = run(&scene, &keyed("/send on", "s")).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::IdReused);
}

/// Goal: a reset by command waits for no run and refuses to cut one off, as the verb does. Method: a run at work, then
/// its end.
#[test]
fn a_command_does_not_reset_under_a_run() {
    let scene = Scene::new();
    let first = run(&scene, &user("cli", "a", "hello")).unwrap();
    scene.run("r", "cli:a", &first.session_id, "");
    let new = Push { door: Door::cli(), ..user("cli", "a", "/new") };
    assert_eq!(*run(&scene, &new).unwrap_err().kind(), ErrorKind::Busy);
    scene.finished("r", "ok", "");
    assert_eq!(run(&scene, &new).unwrap().reset, Some(ResetReason::Manual));
}

/// Goal: two that push at the boundary begin one part between them. Method: a decision that was made, and another append
/// before it is carried out, which the store shows it.
#[test]
fn one_reset_for_two_who_push() {
    let scene = Scene::new();
    let rules = idle(60);
    run_under(&scene, &user("cli", "a", "one"), &rules).unwrap();
    minutes(&scene, 61);
    let sessions = || Folded::of(&scene.store, View::Durable).map(Arc::new);
    let terms = Terms { rules: &rules, owners: &[], sessions: &sessions };
    let late = user("cli", "a", "late");
    let mut pusher = Pusher::new(&late, &terms, scene.clock.now()).unwrap();
    pusher.load(&scene.store, scene.clock.now()).unwrap();
    assert!(run_under(&scene, &user("cli", "a", "first"), &rules).unwrap().reset.is_some());
    scene.store.append_deciding(&mut pusher, Durability::Synced).unwrap();
    let resets =
        log(&scene, "cli:a").iter().filter(|line| line.starts_with("session.reset")).count();
    assert_eq!(resets, 1);
}

/// Goal: duplicates are known by ids and never by text. Method: one turn three times under its key, and the same word
/// twice under two.
#[test]
fn a_repeat_is_known_by_its_id() {
    let scene = Scene::new();
    let keyed = |key: &str, text: &str| {
        let turn = Push { idempotency_key: Some(key.into()), ..user("cli", "a", text) };
        run(&scene, &turn).unwrap()
    };
    let repeated: Vec<bool> = (0..3).map(|_| keyed("k1", "hello").repeated).collect();
    assert_eq!(repeated, [false, true, true]);
    assert_ne!(keyed("k2", "ok").position.id, keyed("k3", "ok").position.id);
    run(&scene, &user("cli", "a", "ok")).unwrap();
    let turns = log(&scene, "cli:a").iter().filter(|line| line.starts_with("turn")).count();
    assert_eq!(turns, 4);
}

/// Goal: what was set on a session outlives midnight, other processes and another part. Method: a policy, a model, an
/// account and a thread a minute before midnight; a turn two minutes later under a daily rule.
#[test]
fn what_was_set_outlives_the_day() {
    let scene = Scene::new();
    minutes(&scene, 23 * 60 + 58);
    let mut turn = user("telegram", "1", "a");
    (turn.account, turn.thread) = (Some("bot".into()), Some("9".into()));
    let first = run(&scene, &turn).unwrap();
    scene.event(
        "telegram:1",
        "session.patched",
        "{'sessionId':'x','set':{'sendPolicy':'deny','model':'m','thinkingLevel':'high','label':'desk'}}",
    );
    minutes(&scene, 2);
    let same = run(&scene, &user("telegram", "1", "b")).unwrap();
    assert_eq!(same.session_id, first.session_id);
    let mut rules = TimeRules::none();
    rules.resets.general.at_hour = Some(0);
    let next = run_under(&scene, &user("telegram", "1", "c"), &rules).unwrap();
    assert_eq!(next.reset, Some(ResetReason::Daily));
    let sessions = scene.sessions();
    let row = sessions.row(next.key.stream()).unwrap();
    assert_eq!((row.session_id.as_str(), row.turns), (next.session_id.as_str(), 1));
    let set = [&row.send_policy, &row.model, &row.thinking_level, &row.label];
    assert_eq!(set.map(|text| text.as_deref().unwrap()), ["deny", "m", "high", "desk"]);
    let to = row.delivery_context.clone().unwrap();
    assert_eq!((to.account_id.as_deref(), to.thread_id.as_deref()), (Some("bot"), Some("9")));
}

/// Goal: a chat opened in a thread goes by the rule for threads, and one that is opened without by its own. Method: two
/// hours of silence under a general rule of half an hour and one of three hours for threads.
#[test]
fn threads_go_by_their_own_rule() {
    let scene = Scene::new();
    let mut rules = TimeRules::none();
    rules.resets.general.idle_minutes = Some(30);
    let of_threads = Override { idle_minutes: Some(180), ..Override::default() };
    rules.resets.by_type.insert(SessionType::Thread, of_threads);
    let push = |chat: &str, thread: Option<&str>| {
        let turn = Push { thread: thread.map(str::to_owned), ..user("slack", chat, "x") };
        run_under(&scene, &turn, &rules).unwrap().reset
    };
    for (chat, thread) in [("in", Some("1699.0001")), ("out", None)] {
        push(chat, thread);
    }
    minutes(&scene, 120);
    assert_eq!((push("in", None), push("out", Some("7"))), (None, Some(ResetReason::Idle)));
    minutes(&scene, 181);
    assert_eq!(push("in", None), Some(ResetReason::Idle));
}
