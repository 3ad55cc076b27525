//! What lists and pages of history read: what they show, and not what is stored.

use std::path::Path;

use annals_engine::Engine;
use annals_engine::config::Config;
use annals_engine::engine::Options;
use annals_engine::id::StreamName;
use annals_engine::session::event::Role;
use annals_engine::session::history::{HistoryQuery, history};
use annals_engine::session::index::{Found, Lens, Sessions, TimeRules};
use annals_engine::session::key::AgentId;
use annals_engine::session::push::Push;
use annals_engine::store::Append;
use annals_tools::list::sessions_list;
use annals_tools::wire::{ListArgs, ListReply};
use annals_tools::{Caller, View};
use serde_json::Value;

use super::chat::{MARK, bytes, files, fill, key, text, turn};
use super::meter::{Meter, resident};

/// Every field of a row.
const FIELDS: [&str; 31] = [
    "abortedLastRun",
    "agentId",
    "channel",
    "chatType",
    "contextTokens",
    "createdAt",
    "deliveryContext",
    "displayName",
    "key",
    "kind",
    "label",
    "lastChannel",
    "lastHumanAt",
    "lastTo",
    "model",
    "openRuns",
    "parentKey",
    "parts",
    "pendingAnnounces",
    "sendPolicy",
    "sessionId",
    "spawnDepth",
    "startedAt",
    "status",
    "systemSent",
    "thinkingLevel",
    "totalTokens",
    "transcriptPath",
    "turns",
    "updatedAt",
    "verboseLevel",
];

/// Segments of which a store of a few megabytes has some, and a snapshot whenever one may be made.
fn options() -> Options {
    Options {
        segment_bytes: 2 << 20,
        index_bytes: 128 << 10,
        snapshot_bytes: 1,
        ..Options::default()
    }
}

/// The store with a snapshot that is as new as its end, or nearly.
fn with_snapshot(store: &Path) {
    let newest = |store: &Path| files(store).into_iter().rfind(|(name, _)| name.ends_with(".snap"));
    let mut rounds = 0;
    let before = newest(store);
    // A process makes one at its first append after it has written an index.
    while newest(store).is_none() || newest(store) == before {
        let engine = Engine::open(store, options()).unwrap();
        let batch = (0..50).map(|_| turn(0, &text(3_000))).collect();
        engine.append(Append::new(batch)).unwrap();
        rounds += 1;
        assert!(rounds < 50, "no snapshot is made");
    }
}

fn list(engine: &Engine, args: &ListArgs) -> ListReply {
    let sessions = engine.sessions().unwrap();
    let caller = Caller::operator(AgentId::parse("main").unwrap());
    let rules = TimeRules::none();
    let lens = Lens { rules: &rules, now: engine.clock().now() };
    let config = Config::defaults();
    let view =
        View { store: engine.store(), sessions: &sessions, lens, config: &config, desk: None };
    sessions_list(&caller, &view, args).unwrap()
}

fn all() -> ListArgs {
    ListArgs { limit: Some(200), ..ListArgs::default() }
}

/// Goal: a list costs what it shows, and not what was said. Method: two stores of 300 chats and equally many turns, one
/// with texts of 100 bytes and one with texts of 8,000, each with a snapshot; a process that lists the first 200, and
/// those that were active in the last hour, reads the snapshot and the stretch at the end that has no index yet;
/// it maps no segment that has a successor, and makes as many calls in one store as in the other.
#[test]
fn a_list_does_not_read_what_was_said() {
    let home = tempfile::tempdir().unwrap();
    let mut read = Vec::new();
    for (name, size) in [("short", 100), ("long", 8_000)] {
        let store = home.path().join(name);
        fill(&store, &options(), 0..300, 8, size);
        with_snapshot(&store);
        let meter = Meter::default();
        let engine = meter.open(&store, &options());
        let reply = list(&engine, &all());
        assert_eq!((reply.sessions.len(), reply.total), (200, 300));
        let hour = ListArgs { active_minutes: Some(60), ..all() };
        assert_eq!(list(&engine, &hour).total, 300);
        let calls = meter.take();
        let active = files(&store).into_iter().rfind(|(name, _)| name.ends_with(".jsonl")).unwrap();
        let snapshot = bytes(&store, "snapshots/");
        let most = usize::try_from(options().index_bytes + snapshot).unwrap() + (64 << 10);
        assert!(calls.bytes() < most, "{} bytes read, not {most}", calls.bytes());
        let sealed = |name: &&str| name.ends_with(".jsonl") && **name != active.0;
        assert_eq!(calls.mapped().into_iter().find(sealed), None);
        read.push((bytes(&store, "log/"), calls.bytes(), calls.count()));
    }
    println!("bytes stored, bytes read, calls: {read:?}");
    let [short, long] = read.try_into().unwrap();
    assert!(long.0 > 10 * short.0);
    assert!(long.2 < short.2 + 100, "{long:?} beside {short:?}");
}

/// Goal: a poll costs what is new. Method: a process lists every time after one more turn of 500 bytes was appended to a
/// store of 12 megabytes by another; it reads less than 8 KiB each time, and less than 6 when
/// nothing is new.
#[test]
fn a_poll_reads_what_is_new() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    fill(&store, &options(), 0..300, 10, 4_000);
    let meter = Meter::default();
    let reader = meter.open(&store, &options());
    let writer = Engine::open(&store, options()).unwrap();
    list(&reader, &all());
    for round in 0..20 {
        meter.take();
        writer.append(Append::new(vec![turn(7, &text(500))])).unwrap();
        let reply = list(&reader, &all());
        assert_eq!(reply.sessions.first().unwrap().row.turns, 11 + round);
        let calls = meter.take();
        assert!(calls.bytes() < 8 << 10, "round {round}: {} bytes", calls.bytes());
        assert!(calls.count() < 40, "round {round}: {calls:?}");
    }
    meter.take();
    list(&reader, &all());
    assert!(meter.take().bytes() < 6 << 10);
}

/// Goal: rows, snapshots and indexes hold nothing that was said. Method: the names of a row's fields against the
/// documented ones; the mark of all texts is in no row, no snapshot and no index; a row is less than a kilobyte.
#[test]
fn rows_hold_heads_and_no_text() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    fill(&store, &options(), 0..200, 10, 2_000);
    with_snapshot(&store);
    let reply = list(&Meter::default().open(&store, &options()), &all());
    let shown = serde_json::to_string(&reply).unwrap();
    assert!(!shown.contains(MARK));
    assert!(shown.len() < 200 << 10, "{} bytes", shown.len());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    for row in shown["sessions"].as_array().unwrap() {
        let mut names: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, FIELDS);
    }
    let derived = files(&store).into_iter().filter(|(name, _)| !name.ends_with(".jsonl"));
    let mut count = 0;
    for (name, _) in derived {
        let bytes = std::fs::read(store.join(&name)).unwrap();
        assert!(!bytes.windows(MARK.len()).any(|found| found == MARK.as_bytes()), "{name}");
        count += 1;
    }
    assert!(count > 5, "only {count} derived files");
}

/// Goal: the last messages of a chat are read from its end, and a huge chat slows no other. Method: a store with a chat
/// of 24 megabytes between ten small ones; a process shows the last 20 messages of each, and the last 3 of all in a list;
/// the bytes that it reads and those of the mapped segments in its memory are bounded by what it shows.
#[test]
fn the_last_messages_are_read_from_the_end() {
    const SHOWN: u64 = 20 * 4_000;
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    fill(&store, &options(), 1..6, 40, 1_000);
    fill(&store, &options(), 0..1, 6_000, 4_000);
    fill(&store, &options(), 6..11, 40, 1_000);
    with_snapshot(&store);
    assert!(bytes(&store, "log/") > 24 << 20);
    let query = HistoryQuery { limit: 20, ..HistoryQuery::default() };
    for chat in [0, 1, 10] {
        let meter = Meter::default();
        let engine = meter.open(&store, &options());
        let sessions = engine.sessions().unwrap();
        let before = resident(&store);
        meter.take();
        let found = Found { key: StreamName::new(key(chat)).unwrap(), part: None };
        let page = history(engine.store(), sessions.state(), &found, &query).unwrap();
        assert_eq!(page.messages.len(), 20);
        let calls = meter.take();
        let touched = resident(&store).saturating_sub(before);
        println!("chat {chat}: {} bytes read, {touched} of maps", calls.bytes());
        assert!(calls.bytes() < 1 << 20, "chat {chat}: {} bytes", calls.bytes());
        assert!(touched < 8 * SHOWN, "chat {chat}: {touched} bytes of maps");
    }
    let meter = Meter::default();
    let engine = meter.open(&store, &options());
    let args = ListArgs { message_limit: Some(3), ..all() };
    let reply = list(&engine, &args);
    let messages = reply.sessions.iter().map(|listed| listed.messages.as_ref().unwrap().len());
    assert_eq!(messages.collect::<Vec<_>>(), [3; 11]);
    let (read, touched) = (meter.take().bytes(), resident(&store));
    println!("list: {read} bytes read, {touched} of maps");
    assert!(read < 2 << 20, "{read} bytes");
    assert!(touched < 4 << 20, "{touched} bytes of maps");
}

/// Goal: a push by a new process costs the same in a long chat as in a short one. Method: a store with a chat of 6,000
/// turns and one of 60; a process that pushes into one of them reads at most the stretch that has no index, twice, maps no
/// segment that has a successor, and makes nearly as many calls for one as for the other.
#[test]
fn a_push_reads_no_turns() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    fill(&store, &options(), 1..2, 60, 1_000);
    fill(&store, &options(), 0..1, 6_000, 1_000);
    with_snapshot(&store);
    let mut counts = Vec::new();
    // The first process finds a snapshot to make.
    for chat in ["1", "0", "1"] {
        let meter = Meter::default();
        let engine = meter.open_to_append(&store, &options());
        let main = AgentId::parse("main").unwrap();
        let said = Push::new("telegram", chat, Role::User, "hello", main);
        let pushed = engine.push(&said, &TimeRules::none()).unwrap();
        assert_eq!(
            (pushed.opened, pushed.session_id.as_str()),
            (false, &*format!("part-of-{chat}"))
        );
        let calls = meter.take();
        let most = 2 * usize::try_from(options().index_bytes).unwrap() + (128 << 10);
        assert!(calls.bytes() < most, "chat {chat}: {} bytes read, not {most}", calls.bytes());
        let mapped = calls.mapped();
        let sealed = mapped.iter().find(|name| name.ends_with(".jsonl"));
        assert_eq!(sealed, None, "chat {chat}");
        counts.push(calls.count());
    }
    println!("calls: {counts:?}");
    assert!(counts[1] < counts[2] + 20, "{counts:?}");
}

/// Goal: the history of a short chat costs what the chat has, however many there are beside it. Method: stores of 20 and
/// of 600 chats; a process shows the last messages of one chat, as it shows them by the view of all; it reads no snapshot
/// and, beside its own lines, no more than the stretch that has no index, with calls for the indexes of one segment.
#[test]
fn the_history_of_a_short_chat_reads_no_other() {
    let home = tempfile::tempdir().unwrap();
    for chats in [20, 600] {
        let store = home.path().join(chats.to_string());
        fill(&store, &options(), 0..chats, 10, 1_000);
        with_snapshot(&store);
        let meter = Meter::default();
        let engine = meter.open(&store, &options());
        let found = Found { key: StreamName::new(key(7)).unwrap(), part: None };
        let query = HistoryQuery::default();
        let show = |sessions: &Sessions| history(engine.store(), sessions, &found, &query).unwrap();
        let alone = engine.sessions_for_history(&found.key).unwrap();
        let page = show(alone.state());
        let calls = meter.take();
        assert_eq!((page.messages.len(), page.total), (10, 10));
        assert_eq!(page, show(engine.sessions().unwrap().state()));
        assert_eq!(alone.as_of(), engine.sessions().unwrap().as_of());
        assert_eq!(calls.named("snapshots/"), 0);
        assert!(calls.bytes() < 512 << 10, "{chats} chats: {} bytes", calls.bytes());
        assert!(calls.count() < 500, "{chats} chats: {} calls", calls.count());
    }
}
