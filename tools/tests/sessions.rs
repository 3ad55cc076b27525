//! The tools over a store in memory: pages, names, bounds.
#![expect(clippy::expect_used, reason = "a scene that cannot be set fails the test")]

use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::{Clock, ManualClock, Timestamp};
use annals_engine::config::Config;
use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::projection::Folded;
use annals_engine::session::event::{Event, Links};
use annals_engine::session::history::Span;
use annals_engine::session::index::{Lens, Names, Sessions, TimeRules};
use annals_engine::session::key::AgentId;
use annals_engine::store::{self, Append, EventStore, MemoryStore};
use annals_engine::{ErrorKind, Result};
use annals_tools::caller::{Bounds, MainBucket};
use annals_tools::history::sessions_history;
use annals_tools::list::sessions_list;
use annals_tools::registry::Tool;
use annals_tools::search::sessions_search;
use annals_tools::visibility::{Mode, Visibility};
use annals_tools::wire::{
    ArchivedArg, HistoryArgs, HistoryReply, ListArgs, ListReply, SearchArgs, SearchReply,
};
use annals_tools::{Caller, View};

struct Scene {
    store: MemoryStore,
    clock: Arc<ManualClock>,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_775_001_600_000)));
        Self { store: MemoryStore::new(clock.clone()), clock }
    }

    fn event(&self, stream: &str, kind: &str, data: &str) {
        let data = Payload::from_json(&data.replace('\'', "\"")).expect("a payload");
        let event = Event::parse(&EventType::new(kind).expect("a type"), &data).expect("an event");
        let stream = StreamName::new(stream).expect("a stream");
        let id = EventId::new(self.clock.now());
        let new = event.to_new(stream, id, Links::default()).expect("an event");
        self.store.append(Append::new(vec![new])).expect("appended");
    }

    fn opened(&self, key: &str, id: &str) {
        let data = format!("{{'sessionId':'{id}','kind':'other','agentId':'main','spawnDepth':0}}");
        self.event(key, "session.opened", &data);
    }

    fn turn(&self, key: &str, id: &str, role: &str, text: &str) {
        let from = if role == "user" { "external" } else { "internal" };
        let data =
            format!("{{'sessionId':'{id}','role':'{role}','from':'{from}','content':'{text}'}}");
        self.event(key, "turn", &data);
    }

    fn folded(&self) -> Folded<Sessions> {
        Folded::of(&self.store, store::View::Durable).expect("folded")
    }

    fn list(&self, args: &ListArgs) -> Result<ListReply> {
        self.list_as(&tool(), args)
    }

    fn history(&self, caller: &Caller, args: &HistoryArgs) -> Result<HistoryReply> {
        self.view(|view| sessions_history(caller, view, args, Span::Part))
    }

    fn list_as(&self, caller: &Caller, args: &ListArgs) -> Result<ListReply> {
        self.view(|view| sessions_list(caller, view, args))
    }

    fn search(&self, caller: &Caller, args: &SearchArgs) -> Result<SearchReply> {
        self.view(|view| sessions_search(caller, view, args))
    }

    fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let rules = TimeRules::none();
        let lens = Lens { rules: &rules, now: self.clock.now() };
        let config = Config::defaults();
        look(&View {
            store: &self.store,
            sessions: &self.folded(),
            lens,
            config: &config,
            desk: None,
        })
    }
}

fn main_agent() -> AgentId {
    AgentId::parse("main").expect("an agent")
}

/// A caller with the bounds of a tool, who sees everything.
fn tool() -> Caller {
    Caller { bounds: Bounds::TOOL, names: Names::Whole, ..Caller::operator(main_agent()) }
}

/// A session that calls.
fn session(key: &str, mode: Mode) -> Caller {
    let visibility = Visibility { mode, confined_to_tree: true, ..Visibility::default() };
    let key = StreamName::new(key).expect("a key");
    Caller::session(main_agent(), key, visibility)
}

fn keys(reply: &ListReply) -> Vec<&str> {
    reply.sessions.iter().map(|listed| listed.row.key.as_str()).collect()
}

/// Goal: pages of a list hold every session once, whatever the size of a page, also where many changed in the same
/// moment. Method: nine sessions in three moments, walked with every page size.
#[test]
fn pages_of_a_list() {
    let scene = Scene::new();
    for n in 0..9 {
        if n % 3 == 0 {
            scene.clock.advance(Duration::from_secs(1));
        }
        scene.opened(&format!("chat:{n}"), &format!("id-{n}"));
    }
    let all =
        ["chat:6", "chat:7", "chat:8", "chat:3", "chat:4", "chat:5", "chat:0", "chat:1", "chat:2"];
    for limit in 1..=10 {
        let mut args = ListArgs { limit: Some(limit), ..ListArgs::default() };
        let mut seen = Vec::new();
        loop {
            let reply = scene.list(&args).expect("a list");
            assert_eq!((reply.total, reply.as_of), (9, 9));
            assert_eq!(reply.truncated, reply.cursor.is_some());
            seen.extend(keys(&reply).into_iter().map(str::to_owned));
            args.cursor = reply.cursor;
            if args.cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all, "pages of {limit}");
    }
}

/// Goal: no session is lost between pages. Method: two that changed within one millisecond, the later with the greater
/// key, and one page each.
#[test]
fn pages_within_a_millisecond() {
    let scene = Scene::new();
    scene.opened("chat:a", "id-a");
    scene.clock.advance(Duration::from_micros(300));
    scene.opened("chat:b", "id-b");
    let first = ListArgs { limit: Some(1), ..ListArgs::default() };
    let reply = scene.list(&first).expect("a list");
    assert_eq!(keys(&reply), ["chat:b"]);
    let next = ListArgs { cursor: reply.cursor, ..first };
    assert_eq!(keys(&scene.list(&next).expect("a list")), ["chat:a"]);
}

/// Goal: a list with messages is no larger than an answer may be, and says when messages are missing. Method: 20 sessions
/// with 20 messages of 1 KiB; the rows stay and the newest messages of all do.
#[test]
fn messages_of_a_list_are_bounded() {
    let scene = Scene::new();
    for chat in 0..20 {
        let (key, id) = (format!("chat:{chat}"), format!("id-{chat}"));
        scene.opened(&key, &id);
        (0..20).for_each(|n| scene.turn(&key, &id, "user", &format!("{n} {}", "x".repeat(1_024))));
        scene.clock.advance(Duration::from_secs(1));
    }
    let args = ListArgs { message_limit: Some(20), ..ListArgs::default() };
    let reply = scene.list(&args).expect("a list");
    assert_eq!(
        (reply.sessions.len(), reply.truncated, reply.messages_truncated),
        (20, false, true)
    );
    let of = |row: usize| reply.sessions[row].messages.as_ref().expect("messages");
    assert_eq!((of(0).len(), of(1).len(), of(19).len()), (20, 20, 0));
    let sizes = reply.sessions.iter().flat_map(|row| row.messages.iter().flatten());
    let sizes = sizes.map(|message| serde_json::to_string(message).expect("JSON").len());
    let bytes: usize = sizes.sum();
    let max = Bounds::TOOL.bytes;
    assert!(bytes <= max && bytes > max - 2_048, "{bytes}");
    let json = serde_json::to_value(&reply).expect("JSON");
    assert_eq!(json["messagesTruncated"], true);
    let few = scene.list(&ListArgs { message_limit: Some(1), ..args }).expect("a list");
    assert!(
        !few.messages_truncated && few.sessions[19].messages.as_ref().expect("some").len() == 1
    );
    let operator = Caller::operator(main_agent());
    let all =
        scene.list_as(&operator, &ListArgs { message_limit: Some(20), ..ListArgs::default() });
    assert!(!all.expect("a list").messages_truncated);
}

/// Goal: what a list is asked for is checked and kept to. Method: kinds, times, messages and caps.
#[test]
fn arguments_of_a_list() {
    let scene = Scene::new();
    scene.opened("chat:1", "id-1");
    for n in 0..30 {
        scene.turn("chat:1", "id-1", "user", &format!("{n}"));
    }
    scene.event(
        "cron:job",
        "session.opened",
        "{'sessionId':'id-2','kind':'cron','agentId':'main','spawnDepth':0}",
    );
    let list = |args: ListArgs| scene.list(&args);
    let cron =
        list(ListArgs { kinds: vec!["cron".into()], ..ListArgs::default() }).expect("a list");
    assert_eq!(keys(&cron), ["cron:job"]);
    let error =
        list(ListArgs { kinds: vec!["corn".into()], ..ListArgs::default() }).expect_err("none");
    assert_eq!(error.hint_text(), Some("kinds are main, group, cron, hook, node, other"));
    let error =
        list(ListArgs { cursor: Some("x".into()), ..ListArgs::default() }).expect_err("none");
    assert_eq!(*error.kind(), ErrorKind::InvalidInput);
    let many = list(ListArgs { message_limit: Some(99), ..ListArgs::default() }).expect("a list");
    let messages = |key: &str| {
        let listed = many.sessions.iter().find(|listed| listed.row.key.as_str() == key);
        listed.and_then(|listed| listed.messages.as_ref()).map(Vec::len)
    };
    assert_eq!((messages("chat:1"), messages("cron:job")), (Some(20), Some(0)), "capped at 20");
    scene.clock.advance(Duration::from_secs(600));
    let recent = list(ListArgs { active_minutes: Some(5), ..ListArgs::default() }).expect("a list");
    assert_eq!(recent.total, 0);
}

/// Goal: arguments are read as the wire spells them and nothing else is taken. Method: JSON that fits and JSON that
/// does not.
#[test]
fn arguments_on_the_wire() {
    let read = serde_json::from_str::<ListArgs>;
    let args = read(r#"{"kinds":["main"],"activeMinutes":5,"messageLimit":1,"archived":"all"}"#);
    assert_eq!(args.expect("read").archived, ArchivedArg::All);
    assert_eq!(read(r#"{"archived":true}"#).expect("read").archived, ArchivedArg::Only);
    assert_eq!(read("{}").expect("read"), ListArgs::default());
    for text in [r#"{"archived":"some"}"#, r#"{"nonsense":1}"#, r#"{"limit":-1}"#] {
        assert!(read(text).is_err(), "{text}");
    }
}

/// Goal: pages of a history hold every message once. Method: walk from the newest page to the oldest with every size.
#[test]
fn pages_of_a_history() {
    let scene = Scene::new();
    scene.opened("chat:1", "id-1");
    for n in 0..7 {
        scene.turn("chat:1", "id-1", "user", &format!("{n}"));
    }
    for limit in 1..=8 {
        let mut args = HistoryArgs {
            session_key: "chat:1".into(),
            limit: Some(limit),
            ..HistoryArgs::default()
        };
        let mut seen = Vec::new();
        loop {
            let reply = scene.history(&tool(), &args).expect("a page");
            assert_eq!((reply.total, reply.truncated), (7, reply.cursor.is_some()));
            let texts = reply.messages.iter().filter_map(|m| m.content.as_ref()?.read::<String>());
            seen.splice(0..0, texts.collect::<Vec<_>>());
            args.cursor = reply.cursor;
            if args.cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"], "pages of {limit}");
    }
}

/// Goal: the first message is reached, page by page, while others come behind the last. Method: 72 turns, half of them
/// answers of tools; pages of the usual size; a turn after each.
#[test]
fn a_history_that_grows() {
    let scene = Scene::new();
    scene.opened("chat:1", "id-1");
    for n in 0..72 {
        let role = if n % 2 == 0 { "user" } else { "toolResult" };
        scene.turn("chat:1", "id-1", role, &format!("{n}"));
    }
    let mut args = HistoryArgs {
        session_key: "chat:1".into(),
        limit: Some(500),
        include_tools: true,
        ..HistoryArgs::default()
    };
    assert_eq!(scene.history(&tool(), &args).expect("a page").messages.len(), 72);
    args.limit = None;
    let mut seen = Vec::new();
    loop {
        let reply = scene.history(&tool(), &args).expect("a page");
        let texts = reply.messages.iter().filter_map(|m| m.content.as_ref()?.read::<String>());
        seen.splice(0..0, texts.collect::<Vec<_>>());
        args.cursor = reply.cursor;
        if args.cursor.is_none() {
            break;
        }
        scene.turn("chat:1", "id-1", "user", "late");
    }
    assert_eq!(seen, (0..72).map(|n| n.to_string()).collect::<Vec<_>>());
    for _ in 0..200 {
        scene.turn("chat:1", "id-1", "user", "more");
    }
    let capped = HistoryArgs { limit: Some(500), cursor: None, ..args };
    let reply = scene.history(&tool(), &capped).expect("a page");
    assert_eq!((reply.messages.len(), reply.truncated), (200, true));
    assert!(reply.total > 200 && reply.cursor.is_some());
}

/// Goal: an answer to a tool stays below its bound and says that more is there. Method: messages of 10 KB; the same
/// history for the operator is whole.
#[test]
fn a_history_has_a_bound() {
    let scene = Scene::new();
    scene.opened("chat:1", "id-1");
    for _ in 0..20 {
        scene.turn("chat:1", "id-1", "assistant", &"x".repeat(10_000));
    }
    let args = HistoryArgs { session_key: "chat:1".into(), ..HistoryArgs::default() };
    let reply = scene.history(&tool(), &args).expect("a page");
    assert_eq!((reply.messages.len(), reply.truncated), (8, true));
    assert!(serde_json::to_string(&reply).expect("JSON").len() < 81 << 10);
    let before = HistoryArgs { cursor: reply.cursor, ..args.clone() };
    assert_eq!(scene.history(&tool(), &before).expect("a page").messages.len(), 8);
    let whole = scene.history(&Caller::operator(main_agent()), &args).expect("a page");
    assert_eq!((whole.messages.len(), whole.truncated), (20, false));
}

/// Goal: parts that ended are named and can be read by their ids; tools take whole names, the operator beginnings too.
/// Method: a session that was reset twice.
#[test]
fn names_and_parts() {
    let scene = Scene::new();
    scene.opened("chat:1", "first-part");
    scene.turn("chat:1", "first-part", "user", "one");
    for (old, new) in [("first-part", "second-part"), ("second-part", "third-part")] {
        scene.event(
            "chat:1",
            "session.reset",
            &format!(
                "{{'sessionId':'{new}','previousSessionId':'{old}','reason':'manual','effectiveAt':'2026-04-01T00:00:00.000000Z'}}"
            ),
        );
        scene.turn("chat:1", new, "user", new);
    }
    let history = |caller: &Caller, name: &str| {
        scene.history(caller, &HistoryArgs { session_key: name.into(), ..HistoryArgs::default() })
    };
    let reply = history(&tool(), "chat:1").expect("a page");
    assert_eq!(reply.session_id.as_deref(), Some("third-part"));
    assert_eq!(reply.other_parts, ["first-part", "second-part"]);
    let old = history(&tool(), "first-part").expect("a page");
    assert_eq!((old.total, old.session_id.as_deref()), (1, Some("first-part")));
    let operator = Caller::operator(main_agent());
    assert_eq!(
        history(&operator, "seco").expect("a page").session_id.as_deref(),
        Some("second-part")
    );
    let kind =
        |caller: &Caller, name: &str| history(caller, name).expect_err("none").kind().clone();
    assert_eq!(kind(&tool(), "seco"), ErrorKind::NotFound);
    assert_eq!(kind(&operator, "nobody"), ErrorKind::NotFound);
}

/// A parent with a child and a grandchild, another session of its agent, and one of another agent.
fn family() -> Scene {
    let scene = Scene::new();
    let opened = |key: &str, id: &str, agent: &str, more: &str| {
        let data = format!(
            "{{'sessionId':'{id}','kind':'other','agentId':'{agent}'{more},'spawnDepth':0}}"
        );
        scene.event(key, "session.opened", &data);
        scene.turn(key, id, "user", "the same word everywhere");
    };
    opened("agent:main:main", "p", "main", "");
    opened("agent:main:subagent:c", "c", "main", ",'parentKey':'agent:main:main'");
    opened("agent:main:subagent:g", "g", "main", ",'parentKey':'agent:main:subagent:c'");
    opened("telegram:1", "t", "main", "");
    opened("agent:ops:main", "o", "ops", "");
    scene
}

/// Goal: list, history and search see the same sessions, in every mode and however a session is named, and what is not
/// seen answers like what is not there. Method: every mode from the parent and from the child; every session by key
/// and by id.
#[test]
fn one_guard_for_every_tool() {
    let scene = family();
    let all = [
        ("agent:main:main", "p"),
        ("agent:main:subagent:c", "c"),
        ("agent:main:subagent:g", "g"),
        ("telegram:1", "t"),
        ("agent:ops:main", "o"),
    ];
    for (seat, mode, sees) in [
        ("agent:main:main", Mode::Own, "p"),
        ("agent:main:main", Mode::Tree, "p c g"),
        ("agent:main:main", Mode::Agent, "p c g t"),
        ("agent:main:main", Mode::All, "p c g t"),
        ("agent:main:subagent:c", Mode::Tree, "c g"),
        ("agent:main:subagent:g", Mode::Tree, "g"),
    ] {
        let caller = session(seat, mode);
        let sees: Vec<&str> = sees.split(' ').collect();
        let listed = scene.list_as(&caller, &ListArgs::default()).expect("a list");
        let mut ids: Vec<&str> =
            listed.sessions.iter().map(|l| l.row.session_id.as_str()).collect();
        ids.sort_by_key(|id| all.iter().position(|(_, known)| known == id));
        assert_eq!(ids, sees, "{seat} {mode:?}");
        assert_eq!(listed.total, sees.len());
        let told = listed.visibility.expect("a session is told how far it sees");
        assert_eq!((told.mode, told.restricted), (mode, true), "agents do not see each other");
        let query = SearchArgs { query: "same word".into(), ..SearchArgs::default() };
        let found = scene.search(&caller, &query).expect("a search");
        assert_eq!(found.results.len(), sees.len(), "{seat} {mode:?}");
        for (key, id) in all {
            for name in [key, id] {
                let args = HistoryArgs { session_key: name.into(), ..HistoryArgs::default() };
                let answer = scene.history(&caller, &args).map(|reply| reply.messages.len());
                let within = SearchArgs { session_key: Some(name.into()), ..query.clone() };
                let search = scene.search(&caller, &within).map(|reply| reply.results.len());
                if sees.contains(&id) {
                    assert_eq!((answer.expect("seen"), search.expect("seen")), (1, 1));
                    continue;
                }
                let nothing = HistoryArgs { session_key: "cli:none".into(), ..args };
                let unknown = scene.history(&caller, &nothing).expect_err("unknown").to_string();
                let hidden = answer.expect_err("hidden").to_string();
                assert_eq!(
                    hidden.replace(&format!("{name:?}"), "\"cli:none\""),
                    unknown,
                    "{seat} {mode:?} {name}"
                );
                assert_eq!(*search.expect_err("hidden").kind(), ErrorKind::NotFound);
            }
        }
    }
}

/// Goal: agents see each other only when both are allowed to, and a confined session sees no further than its tree.
/// Method: the same list under settings.
#[test]
fn agents_and_confined_sessions() {
    let scene = family();
    let count = |caller: &Caller| {
        scene.list_as(caller, &ListArgs::default()).expect("a list").sessions.len()
    };
    let with = |visibility: Visibility| {
        let key = StreamName::new("agent:main:main").expect("a key");
        Caller::session(main_agent(), key, visibility)
    };
    let open = Visibility {
        mode: Mode::All,
        agents_see_each_other: true,
        agents: vec!["main".into(), "o*".into()],
        confined_to_tree: true,
    };
    assert_eq!(count(&with(open.clone())), 5);
    let restricted = |visibility: Visibility| {
        let list = scene.list_as(&with(visibility), &ListArgs::default()).expect("a list");
        list.visibility.expect("told").restricted
    };
    assert!(restricted(open.clone()), "there may be agents of other names");
    assert!(!restricted(Visibility { agents: vec!["*".into()], ..open }));
    assert_eq!(count(&with(Visibility { agents: vec!["main".into()], ..open })), 4);
    assert_eq!(count(&with(Visibility { mode: Mode::Agent, ..open.clone() })), 4);
    scene.event(
        "telegram:9",
        "session.opened",
        "{'sessionId':'s','kind':'other','agentId':'main','spawnDepth':0,'sandboxed':true}",
    );
    let key = || StreamName::new("telegram:9").expect("a key");
    let confined = Caller::session(main_agent(), key(), open.clone());
    assert_eq!(count(&confined), 1);
    let free = Visibility { confined_to_tree: false, ..open };
    assert_eq!(count(&Caller::session(main_agent(), key(), free)), 6);
}

/// Goal: `current` is the caller's own session. Method: its history by that word, from a session and from the operator.
#[test]
fn current() {
    let scene = family();
    let args = HistoryArgs { session_key: "current".into(), ..HistoryArgs::default() };
    let reply = scene.history(&session("telegram:1", Mode::Own), &args).expect("a history");
    assert_eq!(reply.session_key, "telegram:1");
    assert!(scene.history(&tool(), &args).is_err());
}

/// Goal: a session that names one that it does not see, or that is not there, leaves that in its own stream; the operator
/// leaves nothing. Method: the same call from both; what the log holds.
#[test]
fn refusals_are_recorded() {
    let scene = family();
    let call = |caller: &Caller, key: &str| {
        let tool = Tool::of("sessions_history").expect("a tool");
        scene.view(|view| tool.call(caller, view, serde_json::json!({ "sessionKey": key })))
    };
    let child = session("agent:main:subagent:c", Mode::Tree);
    assert_eq!(call(&child, "current").expect("seen")["total"], 1);
    for key in ["agent:main:main", "cli:none"] {
        assert_eq!(*call(&child, key).expect_err("hidden").kind(), ErrorKind::NotFound);
    }
    assert!(call(&tool(), "cli:none").is_err());
    let items = scene.store.read(store::Read::default()).expect("read");
    let denied: Vec<String> = items
        .filter_map(|item| match item.expect("an item") {
            store::Item::Record(record) if record.kind.as_str() == "access.denied" => {
                Some(format!("{} {}", record.stream, record.data))
            }
            _ => None,
        })
        .collect();
    let told = |target: &str| {
        format!(
            r#"agent:main:subagent:c {{"verb":"sessions_history","target":"{target}","reason":"not_visible"}}"#
        )
    };
    assert_eq!(denied, [told("agent:main:main"), told("cli:none")]);
}

/// Goal: a refusal is recorded in a bounded size, whatever the caller names. Method: a name of a megabyte in letters of
/// three bytes.
#[test]
fn a_huge_name_is_recorded_short() {
    let scene = family();
    let caller = session("agent:main:subagent:c", Mode::Tree);
    let tool = Tool::of("sessions_history").expect("a tool");
    let name = "語".repeat(350_000);
    let args = serde_json::json!({ "sessionKey": name });
    assert!(scene.view(|view| tool.call(&caller, view, args)).is_err());
    let items = scene.store.read(store::Read::default()).expect("read");
    let denied: Vec<serde_json::Value> = items
        .filter_map(|item| match item.expect("an item") {
            store::Item::Record(record) if record.kind.as_str() == "access.denied" => {
                serde_json::from_str(&record.data.to_string()).ok()
            }
            _ => None,
        })
        .collect();
    let [denied] = denied.as_slice() else { panic!("one: {denied:?}") };
    assert_eq!(denied["target"].as_str().map(str::len), Some(1_023));
    assert!(denied["detail"].as_str().expect("text").contains("1050000"), "{denied}");
}

/// Goal: wrong arguments are told with what is wrong. Method: an unknown name, a wrong type, a missing one.
#[test]
fn wrong_arguments() {
    let scene = family();
    let call = |name: &str, args: serde_json::Value| {
        let tool = Tool::of(name).expect("a tool");
        scene.view(|view| tool.call(&self::tool(), view, args)).expect_err("wrong").to_string()
    };
    let wrong = call("sessions_list", serde_json::json!({ "limits": 3 }));
    assert!(wrong.contains("limits") && wrong.contains("activeMinutes"), "{wrong}");
    let wrong = call("sessions_history", serde_json::json!({}));
    assert!(wrong.contains("sessionKey"), "{wrong}");
    let wrong = call("sessions_list", serde_json::json!({ "limit": "many" }));
    assert!(wrong.contains("many"), "{wrong}");
}

/// Goal: to a session its own agent's main bucket is `main`, and where all share one that bucket is; nothing else is
/// renamed, and what is shown can be used to ask. Method: lists and histories of both sorts of callers.
#[test]
fn main_is_shown_as_main() {
    let scene = family();
    let keys_of = |caller: &Caller| {
        let reply = scene.list_as(caller, &ListArgs::default()).expect("a list");
        let mut keys: Vec<String> = keys(&reply).into_iter().map(str::to_owned).collect();
        keys.sort();
        keys
    };
    let read = |caller: &Caller| {
        let args = HistoryArgs { session_key: "main".into(), ..HistoryArgs::default() };
        let reply = scene.history(caller, &args).expect("a history");
        (reply.session_key, reply.session_id.expect("a part"))
    };
    let own = session("agent:main:main", Mode::Tree);
    assert_eq!(keys_of(&own), ["agent:main:subagent:c", "agent:main:subagent:g", "main"]);
    assert_eq!(read(&own), ("main".into(), "p".into()));
    assert!(keys_of(&tool()).contains(&"agent:main:main".to_owned()));
    scene.event(
        "global",
        "session.opened",
        "{'sessionId':'w','kind':'main','agentId':'main','spawnDepth':0}",
    );
    assert_eq!(keys_of(&tool()).len(), 5);
    let shared = Caller { main: MainBucket::Shared, ..tool() };
    let listed = keys_of(&shared);
    assert!(listed.contains(&"main".to_owned()) && listed.len() == 6, "{listed:?}");
    assert!(
        listed.contains(&"agent:main:main".to_owned()) && !listed.contains(&"global".to_owned())
    );
    assert_eq!(read(&shared), ("main".into(), "w".into()));
}

/// Goal: an answer for a tool has at most so many bytes, also when one message alone has more; the operator gets all.
/// Method: a message of 200,000 characters after a short one.
#[test]
fn a_message_that_is_too_large_for_an_answer() {
    let scene = Scene::new();
    scene.opened("chat:1", "id-1");
    scene.turn("chat:1", "id-1", "user", "short");
    scene.turn("chat:1", "id-1", "assistant", &"x".repeat(200_000));
    let args = HistoryArgs { session_key: "chat:1".into(), ..HistoryArgs::default() };
    let reply = scene.history(&tool(), &args).expect("a history");
    let json = serde_json::to_string(&reply).expect("JSON");
    assert!(json.len() < Bounds::TOOL.bytes, "{} bytes", json.len());
    assert_eq!(reply.messages.len(), 2);
    assert_eq!(reply.messages[1].omitted_bytes, Some(200_002));
    assert!(json.contains("[sessions_history omitted: message too large]"), "{json}");
    let operator = Caller::operator(main_agent());
    let whole = scene.history(&operator, &args).expect("a history");
    assert_eq!((whole.messages.len(), whole.messages[1].omitted_bytes), (2, None));
    let args = ListArgs { message_limit: Some(1), ..ListArgs::default() };
    let listed = scene.list(&args).expect("a list");
    assert!(serde_json::to_string(&listed).expect("JSON").len() < Bounds::TOOL.bytes);
}

/// Goal: a session reads secrets of its own and none of another's, in any tool, not even by looking for them; the operator
/// reads all. Method: the same secret in a parent and its child, a few words before it.
#[test]
fn secrets_of_other_sessions_are_masked() {
    let scene = family();
    for (key, id) in [("agent:main:main", "p"), ("agent:main:subagent:c", "c")] {
        scene.turn(key, id, "assistant", "remember password: hunter2, please");
    }
    let parent = session("agent:main:main", Mode::Tree);
    let read = |caller: &Caller, key: &str| {
        let args = HistoryArgs { session_key: key.to_owned(), ..HistoryArgs::default() };
        let reply = scene.history(caller, &args).expect("a history");
        reply
            .messages
            .last()
            .and_then(|m| m.content.clone())
            .expect("a message")
            .as_str()
            .to_owned()
    };
    let said = "\"remember password: hunter2, please\"";
    let masked = "\"remember password: [masked:assignment], please\"";
    assert_eq!(read(&parent, "agent:main:main"), said);
    assert_eq!(read(&parent, "agent:main:subagent:c"), masked);
    assert_eq!(read(&tool(), "agent:main:subagent:c"), said);
    let list = ListArgs { message_limit: Some(1), ..ListArgs::default() };
    let list = scene.list_as(&parent, &list).expect("a list");
    for listed in &list.sessions {
        let content = listed.messages.as_ref().and_then(|all| all.last()?.content.clone());
        let content = content.map(|content| content.as_str().to_owned()).unwrap_or_default();
        let own = listed.row.key.as_str() == "main";
        assert!(!content.contains("hunter2") || own, "{}: {content}", listed.row.key.as_str());
    }
    let found = |caller: &Caller, query: &str| {
        let args = SearchArgs { query: query.to_owned(), ..SearchArgs::default() };
        let reply = scene.search(caller, &args).expect("a search");
        let shown = reply.results.into_iter().map(|hit| format!("{} {}", hit.key, hit.snippet));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(
        found(&parent, "remember"),
        [
            "agent:main:subagent:c remember password: [masked:assignment], please",
            "main remember password: hunter2, please",
        ]
    );
    assert_eq!(found(&parent, "hunter2"), ["main remember password: hunter2, please"]);
    assert_eq!(found(&tool(), "hunter2").len(), 2);
}
