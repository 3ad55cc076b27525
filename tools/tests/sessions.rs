//! The tools over a store in memory: pages, names, bounds.
#![expect(clippy::expect_used, reason = "a scene that cannot be set fails the test")]

use std::sync::Arc;
use std::time::Duration;

use annals_engine::clock::{Clock, ManualClock, Timestamp};
use annals_engine::format::Payload;
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::projection::Folded;
use annals_engine::session::event::{Event, Links};
use annals_engine::session::history::Span;
use annals_engine::session::index::Sessions;
use annals_engine::session::key::AgentId;
use annals_engine::store::{Append, EventStore, MemoryStore, View};
use annals_engine::{ErrorKind, Result};
use annals_tools::Caller;
use annals_tools::history::sessions_history;
use annals_tools::list::sessions_list;
use annals_tools::wire::{ArchivedArg, HistoryArgs, HistoryReply, ListArgs, ListReply};

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
        Folded::of(&self.store, View::Durable).expect("folded")
    }

    fn list(&self, args: &ListArgs) -> Result<ListReply> {
        sessions_list(&tool(), &self.store, &self.folded(), args, self.clock.now())
    }

    fn history(&self, caller: &Caller, args: &HistoryArgs) -> Result<HistoryReply> {
        sessions_history(caller, &self.store, &self.folded(), args, Span::Part)
    }
}

fn main_agent() -> AgentId {
    AgentId::parse("main").expect("an agent")
}

fn tool() -> Caller {
    Caller::tool(main_agent())
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
