//! Full disks and the files that can be made again: no append that fits fails for one of them, none is left half
//! written, and they are made when there is room.

use std::sync::Arc;

use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::engine::Options;
use annals_engine::format::{Payload, is_of_a_store};
use annals_engine::id::{EventId, EventType, StreamName};
use annals_engine::log::{Log, verify};
use annals_engine::storage::Access;
use annals_engine::storage::Storage;
use annals_engine::store::{Append, EventStore, Item, NewEvent, Read};
use annals_engine::{Engine, ErrorKind, Result};
use annals_tests::disk::{Call, ENOSPC, Effect, Op, Rule, SimDisk};
use annals_tests::sessions::Sessions;

/// A machine with a store on it.
struct Machine {
    disk: SimDisk,
    clock: Arc<ManualClock>,
}

impl Machine {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_790_000_000_000)));
        Self { disk: SimDisk::new(1), clock }
    }

    fn open(&self) -> Result<Engine> {
        let options = Options {
            segment_bytes: 16 << 10,
            index_bytes: 2 << 10,
            snapshot_bytes: 1,
            ..Options::default()
        };
        let log = Log::open(self.disk.process("writer"), Arc::clone(&self.clock) as _, options)?;
        Ok(Engine::over(Arc::new(log), Arc::clone(&self.clock) as _))
    }

    /// No call about such a file finds room: neither making one nor writing to it.
    fn refuse(&self, about: fn(&str) -> bool) {
        self.disk.rule(Rule::new(
            move |call| about(&call.name) && takes_room(call),
            Effect::Fail(ENOSPC),
        ));
    }

    fn names(&self) -> Vec<String> {
        self.disk.look(|kernel| kernel.files().into_keys().collect())
    }

    /// Files that have no name of their own yet.
    fn half_made(&self) -> Vec<String> {
        let made = |name: &String| name.ends_with(".new") || name.starts_with("blobs/new/");
        self.names().into_iter().filter(made).collect()
    }

    /// The ids of what can be read, whole.
    fn ids(&self) -> Vec<EventId> {
        let storage: Arc<dyn Storage> = self.disk.process("reader");
        let report = verify(&storage, &mut |_| {}).unwrap();
        assert!(report.damages.is_empty(), "{:?}", report.damages);
        let log = Log::open_read_only(storage, Options::default()).unwrap();
        let items = log.read(Read::default()).unwrap();
        let ids = items.filter_map(|item| match item.unwrap() {
            Item::Record(record) if record.stream.as_str() == "log" => None,
            Item::Record(record) => {
                log.payload(&record).unwrap();
                Some(record.id)
            }
            Item::Gap(gap) => panic!("{gap:?}"),
        });
        ids.collect()
    }
}

fn takes_room(call: &Call) -> bool {
    let makes = [Op::Open(Access::CreateNew), Op::Open(Access::WriteOrCreate), Op::CreateDir];
    matches!(call.op, Op::WriteAt { .. }) || makes.contains(&call.op)
}

fn is_derived(name: &str) -> bool {
    name.starts_with("snapshots") || name.contains(".idx")
}

fn big(text: &str) -> NewEvent {
    let content = text.repeat((1 << 20) / text.len() + 1);
    NewEvent {
        id: EventId::derived("key", "full", text),
        stream: StreamName::new("x:big").unwrap(),
        kind: EventType::new("x.test.said").unwrap(),
        cause: None,
        flow: None,
        data: Payload::of(&serde_json::json!({ "content": content })).unwrap(),
    }
}

/// Goal: no append fails because there is no room for what is made beside the log. Method: snapshots and indexes find no
/// room at all while 120 batches are appended in segments that roll; then room is made, and they are there after as many.
#[test]
fn no_room_for_snapshots_and_indexes() {
    let machine = Machine::new();
    let engine = machine.open().unwrap();
    machine.refuse(is_derived);
    let mut events = Sessions::new(1);
    let mut told = Vec::new();
    let mut append = || {
        let batch = events.batch();
        told.extend(batch.iter().map(|event| event.id));
        engine.append(Append::new(batch)).unwrap();
    };
    (0..120).for_each(|_| append());
    assert!(machine.names().iter().filter(|name| name.ends_with(".jsonl")).count() > 2);
    assert_eq!(machine.names().into_iter().find(|name| is_derived(name)), None);
    machine.disk.clear_rules();
    (0..120).for_each(|_| append());
    assert_eq!(machine.ids(), told);
    let names = machine.names();
    assert!(names.iter().any(|name| name.ends_with(".idx")), "{names:?}");
    assert!(names.iter().all(|name| is_of_a_store(name)), "{names:?}");
    assert_eq!(machine.half_made(), [""; 0]);
}

/// Goal: one that is cut off in the middle leaves nothing. Method: the n-th write to a snapshot or an index takes some
/// bytes and the next finds no room, for every n until none is met; all appends are taken, the view is what it is when
/// folded from nothing, and no file is half made.
#[test]
fn the_nth_write_to_a_derived_file_is_cut_off() {
    let writes = |call: &Call| matches!(call.op, Op::WriteAt { .. }) && is_derived(&call.name);
    let mut hit = 0;
    for n in 0..60 {
        let machine = Machine::new();
        let engine = machine.open().unwrap();
        machine.disk.rule(Rule::new(writes, Effect::Short(50)).nth(n));
        machine.disk.rule(Rule::new(writes, Effect::Fail(ENOSPC)).nth(n + 1));
        let mut events = Sessions::new(2);
        for _ in 0..60 {
            engine.append(Append::new(events.batch())).unwrap();
        }
        hit += usize::from(
            machine.disk.trace().iter().any(|done| done.outcome.is_err() && writes(&done.call)),
        );
        assert_eq!(machine.half_made(), [""; 0], "write {n}");
        let kept = engine.sessions().unwrap();
        let fresh = machine.open().unwrap();
        let again = fresh.sessions().unwrap();
        let text = |folded: &annals_engine::projection::Folded<_>| {
            let state: &annals_engine::session::index::Sessions = folded.state();
            serde_json::to_string(state).unwrap()
        };
        assert_eq!((kept.as_of(), text(&kept)), (again.as_of(), text(&again)), "write {n}");
    }
    assert!(hit > 10, "only {hit} writes were cut off");
}

/// Goal: a content that does not fit is refused as a whole. Method: contents that lie apart find no room, from the first
/// call that needs some on or in the middle of a write: the append is refused as `Full`, nothing of it stays, smaller
/// appends are taken, and the same append goes through when there is room.
#[test]
fn no_room_for_a_content() {
    for (n, in_pieces) in (0..4).map(|n| (n, false)).chain((3..9).map(|n| (n, true))) {
        let machine = Machine::new();
        let engine = machine.open().unwrap();
        let mut events = Sessions::new(3);
        let mut told = Vec::new();
        let mut append = |batch: Vec<NewEvent>| {
            let ids: Vec<EventId> = batch.iter().map(|event| event.id).collect();
            let appended = engine.append(Append::new(batch));
            told.extend(appended.is_ok().then_some(ids).into_iter().flatten());
            appended
        };
        append(vec![big("before")]).unwrap();
        let apart = |call: &Call| call.name.starts_with("blobs") && takes_room(call);
        // The first rule that takes effect is the one that counts.
        machine.disk.rule(Rule::new(apart, Effect::Fail(ENOSPC)).from(n));
        if in_pieces {
            let writes = |call: &Call| call.writes("blobs");
            machine.disk.rule(Rule::new(writes, Effect::Short(100_000)));
        }
        let error = append(vec![big("refused")]).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Full, "{error}");
        assert_eq!(machine.half_made(), [""; 0], "call {n}");
        append(events.batch()).unwrap();
        machine.disk.clear_rules();
        append(vec![big("refused")]).unwrap();
        append(vec![big("after")]).unwrap();
        let contents = machine.names().into_iter().filter(|name| name.starts_with("blobs/"));
        assert_eq!(contents.count(), 3);
        assert_eq!(machine.ids(), told);
    }
}

/// Goal: a torn tail is not cut before its copy is safe. Method: half a line at the end of the log and no room for its
/// copy, or room for some bytes of it: opening says `Full`, the log has every byte it had, and reading goes on; with room
/// the store opens, the copy is whole and named, and appends go on.
#[test]
fn no_room_for_a_torn_copy() {
    let torn = b"{\"seq\":99,\"time\":\"2026-11-29T23:04:05.123456Z\",\"half a li";
    for room in [0, 1, 20, torn.len() - 1] {
        let machine = Machine::new();
        let mut events = Sessions::new(4);
        let engine = machine.open().unwrap();
        let batch = events.batch();
        let mut told: Vec<EventId> = batch.iter().map(|event| event.id).collect();
        engine.append(Append::new(batch)).unwrap();
        drop(engine);
        let active = "log/00000000000000000001.jsonl";
        machine.disk.meddle(|kernel| kernel.scribble(active, torn));
        let bytes = machine.disk.look(|kernel| kernel.bytes(active).unwrap().to_vec());
        machine.disk.meddle(|kernel| kernel.set_room(Some(room)));
        let error = machine.open().unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Full, "{room} bytes: {error}");
        assert_eq!(machine.disk.look(|kernel| kernel.bytes(active).unwrap().to_vec()), bytes);
        let reader: Arc<dyn Storage> = machine.disk.process("reader");
        let log = Log::open_read_only(reader, Options::default()).unwrap();
        assert!(log.read(Read::default()).unwrap().all(|item| matches!(item, Ok(Item::Record(_)))));

        machine.disk.meddle(|kernel| kernel.set_room(None));
        let engine = machine.open().unwrap();
        let batch = events.batch();
        told.extend(batch.iter().map(|event| event.id));
        engine.append(Append::new(batch)).unwrap();
        assert_eq!(machine.ids(), told);
        let copies: Vec<_> =
            machine.names().into_iter().filter(|n| n.starts_with("torn/")).collect();
        let [copy] = copies.try_into().unwrap();
        assert_eq!(machine.disk.look(|kernel| kernel.bytes(&copy).unwrap().to_vec()), torn);
        let log = machine.disk.look(|kernel| kernel.bytes(active).unwrap().to_vec());
        assert!(String::from_utf8(log).unwrap().contains(&copy), "no line names {copy}");
    }
}
