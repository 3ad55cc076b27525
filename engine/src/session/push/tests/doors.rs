//! Which sessions turns open, through which doors, and who may command there.

use super::*;
use crate::session::event::SessionKind;
use crate::session::index::Row;
use crate::session::key::MainBucket;
use crate::session::scene::START;

fn main_agent() -> AgentId {
    AgentId::parse("main").unwrap()
}

fn to(target: Target, text: &str) -> Push {
    Push::to(target, Door::cli(), Role::User, text, main_agent())
}

fn named(key: &str) -> Result<Target> {
    Target::named(key, &main_agent(), MainBucket::OfAgent)
}

fn row(scene: &Scene, key: &str) -> Row {
    scene.sessions().row(&StreamName::new(key).unwrap()).unwrap().clone()
}

/// Goal: keys given whole open with their first turn, as what they are, and go on with the next. Method: one of each
/// shape; what its row says.
#[test]
fn keys_given_whole_open() {
    let scene = Scene::new();
    for (typed, key, kind, agent, channel) in [
        ("main", "agent:main:main", SessionKind::Main, "main", "cli"),
        ("agent:ops:main", "agent:ops:main", SessionKind::Main, "ops", "cli"),
        ("cron:nightly", "cron:nightly", SessionKind::Cron, "main", "internal"),
        ("hook:9f3d", "hook:9f3d", SessionKind::Hook, "main", "internal"),
        ("node-7", "node-7", SessionKind::Node, "main", "internal"),
        ("Telegram:42", "telegram:42", SessionKind::Other, "main", "telegram"),
        (
            "agent:ops:Discord:group:Room 1",
            "agent:ops:discord:group:Room 1",
            SessionKind::Group,
            "ops",
            "discord",
        ),
        (
            "agent:ops:slack:direct:U1",
            "agent:ops:slack:direct:U1",
            SessionKind::Other,
            "ops",
            "slack",
        ),
    ] {
        let first = run(&scene, &to(named(typed).unwrap(), "hello")).unwrap();
        let next = run(&scene, &to(named(typed).unwrap(), "again")).unwrap();
        assert_eq!((first.opened, next.opened), (true, false), "{typed}");
        assert_eq!(first.session_id, next.session_id);
        let row = row(&scene, key);
        assert_eq!((first.key.as_str(), row.kind), (key, kind));
        assert_eq!((row.agent_id.as_str(), row.channel.as_str()), (agent, channel), "{typed}");
        assert_eq!(row.turns, 2);
    }
    let group = row(&scene, "agent:ops:discord:group:Room 1");
    assert_eq!(
        (group.chat_type, group.last_to.as_deref()),
        (Some(ChatType::Group), Some("Room 1"))
    );
    assert_eq!(
        log(&scene, "agent:main:main")[0].split_once(' ').unwrap().1,
        format!(
            r#"Some((1, 2)) {{"sessionId":"{}","kind":"main","agentId":"main","spawnDepth":0}}"#,
            row(&scene, "agent:main:main").session_id
        )
    );
}

/// Goal: what nobody opens by a turn stays shut and takes turns once it is there; reserved names are refused. Method: a
/// child's key before and after it was spawned; reserved keys, and chats of reserved channels.
#[test]
fn what_a_turn_does_not_open() {
    let scene = Scene::new();
    for key in ["agent:main:subagent:1", "agent:main:cron:job", "agent:main:notes"] {
        let error = run(&scene, &to(named(key).unwrap(), "x")).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::NotFound, "{key}");
    }
    for key in ["global", "unknown"] {
        assert_eq!(*named(key).unwrap_err().kind(), ErrorKind::InvalidInput, "{key}");
        let key = SessionKey::parse(key, &main_agent()).unwrap();
        let error = run(&scene, &to(Target::Key(key), "x")).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::InvalidInput);
    }
    for key in ["run:1", "agent:main:watch:group:1"] {
        assert_eq!(*named(key).unwrap_err().kind(), ErrorKind::ReservedChannel, "{key}");
    }
    assert!(scene.records().is_empty());
    scene.opened("agent:main:subagent:1", "p", "");
    let pushed = run(&scene, &to(named("agent:main:subagent:1").unwrap(), "x")).unwrap();
    assert_eq!((pushed.session_id.as_str(), pushed.opened), ("p", false));
}

/// Goal: where all share one main bucket, `main` and `global` are that one. Method: both names; the session's kind.
#[test]
fn a_shared_main_bucket() {
    let scene = Scene::new();
    for name in ["main", "GLOBAL"] {
        let target = Target::named(name, &main_agent(), MainBucket::Shared).unwrap();
        assert_eq!(run(&scene, &to(target, "x")).unwrap().key.as_str(), "global");
    }
    let other = Target::named("agent:ops:main", &main_agent(), MainBucket::Shared).unwrap();
    assert_eq!(run(&scene, &to(other, "x")).unwrap().key.as_str(), "agent:ops:main");
    assert_eq!((row(&scene, "global").kind, row(&scene, "global").turns), (SessionKind::Main, 2));
}

/// Goal: jobs and programs are no people: their turns are the session's own, put no reset off, and a job's session whose
/// time is over begins anew all the same. Method: a person, a job and a program under an idle rule.
#[test]
fn programs_are_no_people() {
    let scene = Scene::new();
    let mut rules = TimeRules::none();
    rules.resets.general.idle_minutes = Some(60);
    let push = |key: &str, door: Door| {
        let turn = Push { door, ..to(named(key).unwrap(), "x") };
        run_under(&scene, &turn, &rules).unwrap()
    };
    let program = || Door { name: "watch".into(), who: Who::Program };
    push("main", Door::cli());
    push("cron:a", Door::cli());
    minutes(&scene, 59);
    push("main", program());
    push("cron:a", Door::cli());
    let [main, job] = ["agent:main:main", "cron:a"].map(|key| row(&scene, key));
    assert_eq!(main.last_human_at.map(crate::clock::Timestamp::as_millis), Some(START));
    assert_eq!((main.last_channel.as_deref(), job.last_human_at), (Some("cli"), None));
    assert!(log(&scene, "cron:a")[2].contains(
        r#""role":"user","from":"internal","provenance":{"sourceChannel":"cron"},"content":"x""#
    ));
    assert!(log(&scene, "agent:main:main")[2].contains(r#""sourceChannel":"watch"}"#));
    minutes(&scene, 2);
    assert_eq!(push("cron:a", Door::cli()).reset, Some(ResetReason::Idle));
    assert_eq!(push("main", Door::cli()).reset, Some(ResetReason::Idle));
}

/// Goal: a turn that came over a chat into another session is told with that chat, and answers go there from now on.
/// Method: two chats into one main bucket; the row after each.
#[test]
fn over_another_chat() {
    let scene = Scene::new();
    let push = |channel: &str, id: &str, account: Option<&str>| {
        let over = Chat { channel: channel.into(), id: id.into() };
        let account = account.map(str::to_owned);
        let turn = Push { over: Some(over), account, ..to(named("main").unwrap(), "x") };
        run(&scene, &turn).unwrap();
        let row = row(&scene, "agent:main:main");
        let to = row.delivery_context.clone().unwrap();
        assert_eq!(to.to, row.last_to);
        assert_eq!(row.channel, to.channel.clone().unwrap());
        (row.last_channel.unwrap(), to.to.unwrap(), to.account_id)
    };
    assert_eq!(
        push("telegram", "42", Some("bot")),
        ("telegram".into(), "42".into(), Some("bot".into()))
    );
    assert_eq!(push("slack", "C1", None), ("slack".into(), "C1".into(), None));
    let before = scene.records().len();
    push("slack", "C1", None);
    assert_eq!(scene.records().len(), before + 1);
}

/// Goal: a command is obeyed from an owner whom the door vouches for, and from nobody else. Method: everybody who may
/// stand at a door, with and without being listed.
#[test]
fn who_may_command() {
    let owners = ["Telegram:42".to_owned(), "cli".to_owned(), "slack:U1:x".to_owned()];
    let obeyed = |channel: &str, who: Who, owners: &[String]| {
        let scene = Scene::new();
        let rules = TimeRules::none();
        let sessions = || Folded::of(&scene.store, View::Durable).map(Arc::new);
        let terms = Terms { rules: &rules, owners, sessions: &sessions };
        let said = |text: &str| {
            let door = Door { name: "webhook".into(), who: who.clone() };
            let turn = Push { door, ..user(channel, "c", text) };
            push(&scene.store, &turn, &terms, scene.clock.now()).unwrap()
        };
        said("hello");
        let pushed = said("/send off");
        let policy = row(&scene, &format!("{channel}:c")).send_policy;
        assert_eq!(pushed.command.is_some(), policy.is_some());
        assert_eq!(pushed.command.is_none(), row(&scene, &format!("{channel}:c")).turns == 2);
        pushed.command.is_some()
    };
    let person = |sender: &str, vouched| Who::Person { sender: Some(sender.into()), vouched };
    assert!(obeyed("telegram", person("42", true), &owners));
    assert!(obeyed("slack", person("U1:x", true), &owners));
    assert!(obeyed("telegram", Who::Operator, &[]));
    for (channel, who) in [
        ("telegram", person("42", false)),
        ("telegram", person("43", true)),
        ("telegram", person("", true)),
        ("slack", person("42", true)),
        ("slack", person("u1:x", true)),
        ("telegram", Who::Person { sender: None, vouched: true }),
        ("telegram", Who::Program),
    ] {
        assert!(!obeyed(channel, who.clone(), &owners), "{channel} {who:?}");
    }
    assert!(!obeyed("telegram", person("42", true), &[]));
}

/// Goal: who sent a turn stands in it as the channel names him. Method: a sender with a colon in his name.
#[test]
fn the_sender_is_told() {
    let scene = Scene::new();
    let who = Who::Person { sender: Some("U1:x".into()), vouched: false };
    let turn = Push { door: Door { name: "webhook".into(), who }, ..user("slack", "c", "hi") };
    run(&scene, &turn).unwrap();
    let told = r#""provenance":{"sourceChannel":"slack","sender":"U1:x"},"content":"hi""#;
    assert!(log(&scene, "slack:c")[1].contains(told));
}
