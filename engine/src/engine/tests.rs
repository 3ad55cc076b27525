//! What a policy file that is in force does to whatever is appended.

use std::time::Duration;

use super::*;
use crate::clock::{ManualClock, Timestamp};
use crate::format::Payload;
use crate::id::{EventId, EventType, Seq, Version};
use crate::session::event::{Event, Json, Role, RunKind};
use crate::session::index::Names;
use crate::session::key::AgentId;
use crate::session::policy::PolicyState;
use crate::session::push::{Door, Wanted, Who};
use crate::store::{Append, Cursor, Decider, Durability, Item, NewEvent, Read, Record};

struct Stage {
    engine: Engine,
    clock: Arc<ManualClock>,
}

impl Stage {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_775_001_600_000)));
        Self { engine: Engine::in_memory(clock.clone()), clock }
    }

    fn push(&self, text: &str) -> Pushed {
        let turn = Push::new("telegram", "a", Role::User, text, agent());
        self.engine.push(&turn, &TimeRules::none()).unwrap()
    }

    fn records(&self) -> Vec<Record> {
        let items = self.engine.read(Read::default()).unwrap();
        items
            .map(|item| match item.unwrap() {
                Item::Record(record) => *record,
                Item::Gap(gap) => panic!("a gap in memory: {gap:?}"),
            })
            .collect()
    }

    /// The events of policy: batch and data.
    fn told(&self) -> Vec<String> {
        let records = self.records().into_iter().filter(|r| r.stream.as_str() == "policy");
        records.map(|r| format!("{} {:?} {}", r.kind, r.batch, r.data)).collect()
    }

    fn kinds(&self, from: usize) -> Vec<String> {
        self.records().into_iter().skip(from).map(|r| r.kind.to_string()).collect()
    }

    fn change(&self, what: &Change) -> Changed {
        let sessions = self.engine.sessions().unwrap();
        let found = sessions.state().find("telegram:a", &agent(), Names::Whole).unwrap();
        self.engine.change(&found, what).unwrap()
    }
}

fn agent() -> AgentId {
    AgentId::parse("main").unwrap()
}

fn file(settings: &[(&str, &str)]) -> PolicyFile {
    let value = |(name, json): &(&str, &str)| ((*name).to_owned(), Json::from_text(*json).unwrap());
    PolicyFile {
        settings: settings.iter().map(value).collect(),
        path: Some("/c/annals.json5".into()),
        sha256: Some("ab".into()),
    }
}

const OWNERS: (&str, &str) = ("owners", r#"["telegram:42"]"#);

/// Goal: a policy file that says something new is told ahead of the turn, in the same batch, once. Method: a file that
/// comes, stays, changes, and says less.
#[test]
fn a_changed_policy_file_is_told_first() {
    let stage = Stage::new();
    let push = |file: Option<PolicyFile>| {
        file.into_iter().for_each(|file| stage.engine.govern(file));
        stage.push("x");
        stage.told().len()
    };
    assert_eq!(push(None), 0);
    assert_eq!(push(Some(file(&[]))), 0);
    let deny = || file(&[("session.sendPolicy", r#"{"default":"deny","rules":[]}"#), OWNERS]);
    assert_eq!(push(Some(deny())), 2);
    assert_eq!(push(Some(deny())), 2);
    assert_eq!(push(Some(file(&[OWNERS]))), 3);
    let told = stage.told();
    assert_eq!(
        told[2],
        r#"policy.changed Some((1, 2)) {"path":"session.sendPolicy","old":{"default":"deny","rules":[]},"new":null,"file":"/c/annals.json5","sha256":"ab"}"#
    );
    assert!(told[0].starts_with("policy.changed Some((1, 3))"), "{told:?}");
    let gone = PolicyFile { path: None, sha256: None, ..file(&[]) };
    assert_eq!(push(Some(gone)), 4);
    assert_eq!(
        stage.told()[3],
        r#"policy.changed Some((1, 2)) {"path":"owners","old":["telegram:42"],"new":null}"#
    );
    assert!(stage.records().iter().all(|record| record.flow.is_some()));
}

/// Goal: whatever is decided stands behind the policy in its batch; a decision to append nothing tells nothing. Method: a
/// patch, the same again under another file, a reset, an archive, and what the limits archive.
#[test]
fn every_decision_stands_behind_it() {
    let stage = Stage::new();
    stage.push("x");
    let patch = || Change::Patch(vec![("label".to_owned(), Json::of("desk").unwrap())]);
    let files = [file(&[OWNERS]), file(&[]), file(&[OWNERS]), file(&[])];
    let [first, second, third, fourth] = files;
    stage.engine.govern(first);
    let changed = stage.change(&patch());
    assert_eq!(stage.kinds(2), ["policy.changed", "session.patched"]);
    assert_eq!(changed.seq, Some(Seq(4)));
    stage.engine.govern(second);
    assert_eq!(stage.change(&patch()).seq, None);
    assert_eq!(stage.kinds(4), [""; 0]);
    stage.change(&Change::Reset);
    stage.engine.govern(third);
    stage.change(&Change::Archive);
    stage.push("again");
    stage.engine.govern(fourth);
    stage.clock.advance(Duration::from_secs(120));
    let limits =
        Limits { enforce: true, entries_max: None, age_max: Some(Duration::from_secs(60)) };
    assert_eq!(stage.engine.keep_up(&TimeRules::none(), limits).unwrap().archived, 1);
    assert_eq!(
        stage.kinds(4),
        [
            "policy.changed",
            "session.reset",
            "policy.changed",
            "session.archived",
            "turn",
            "policy.changed",
            "session.archived"
        ]
    );
}

/// Goal: positions that events of a batch name are right behind the policy too, and a repeat is one although the policy
/// has changed since. Method: a turn with a run, and the same call under another file.
#[test]
fn positions_and_repeats() {
    let stage = Stage::new();
    let ask = |file: PolicyFile| {
        stage.engine.govern(file);
        let mut turn = Push::new("telegram", "a", Role::User, "x", agent());
        turn.run = Some(Wanted::new(RunKind::Webhook));
        turn.idempotency_key = Some("k".into());
        stage.engine.push(&turn, &TimeRules::none()).unwrap()
    };
    let first = ask(file(&[OWNERS]));
    let records = stage.records();
    let Event::RunRequested(request) = Event::of(&records[3]).unwrap() else {
        panic!("no request")
    };
    assert_eq!((request.turn_seq, first.position.seq), (Some(3), Seq(3)));
    assert_eq!(records[2].kind.as_str(), "turn");
    let again = ask(file(&[]));
    assert!(again.repeated);
    assert_eq!((again.position, again.run_id), (first.position, first.run_id));
    assert_eq!(stage.records().len(), 4);
    stage.push("next");
    assert_eq!(stage.kinds(4), ["policy.changed", "turn"]);
}

/// Goal: the owners of the file in force may command, and of no other. Method: an owner for whom the door vouches, before
/// and after he is taken off the list.
#[test]
fn owners_are_those_of_the_file() {
    let stage = Stage::new();
    stage.push("x");
    let obeyed = |file: Option<PolicyFile>| {
        file.into_iter().for_each(|file| stage.engine.govern(file));
        let who = Who::Person { sender: Some("42".into()), vouched: true };
        let mut turn = Push::new("telegram", "a", Role::User, "/send off", agent());
        turn.door = Door { name: "webhook".into(), who };
        stage.engine.push(&turn, &TimeRules::none()).unwrap().command.is_some()
    };
    assert!(!obeyed(None));
    assert!(obeyed(Some(file(&[OWNERS]))));
    assert!(!obeyed(Some(file(&[("owners", r#"["telegram:43"]"#)]))));
}

/// A decision to append so many notes.
struct Notes(usize);

impl Decider for Notes {
    fn seen(&self) -> Option<Cursor> {
        None
    }

    fn apply(&mut self, _: &Item, _: &Cursor) {}

    fn restart(&mut self) {}

    fn decide(&mut self, now: Timestamp) -> Result<Append> {
        let note = |_| NewEvent {
            id: EventId::new(now),
            stream: StreamName::new("x").unwrap(),
            kind: EventType::new("x.acme.note").unwrap(),
            cause: None,
            flow: None,
            data: Payload::from_json("{}").unwrap(),
        };
        Ok(Append::new((0..self.0).map(note).collect()))
    }
}

/// Goal: whoever decides gets the positions of his own events, as many as he decided, and a batch that has no room for
/// more goes ahead without the policy, which the next one tells. Method: a batch of three, and one of the most events.
#[test]
fn a_batch_without_room() {
    let stage = Stage::new();
    stage.engine.govern(file(&[OWNERS]));
    let append = |count| {
        let appended = stage.engine.append_deciding(&mut Notes(count), Durability::Synced);
        appended.unwrap().positions
    };
    let most = append(Append::EVENTS_MAX);
    assert_eq!((most.len(), most[0].seq), (Append::EVENTS_MAX, Seq(1)));
    assert!(stage.told().is_empty());
    let three = append(3);
    assert_eq!(stage.told().len(), 1);
    assert_eq!((three.len(), three[0].version), (3, Version(1_001)));
    assert_eq!(three[0].seq, Seq(1_002));
}

/// Goal: what another process has told is not told again, and what it told otherwise is. Method: a second handle on the
/// same store, under the same file and under another.
#[test]
fn two_processes() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_775_001_600_000)));
    let store: Arc<dyn EventStore> = Arc::new(MemoryStore::new(clock.clone()));
    let engines = [0; 2].map(|_| Engine::over(Arc::clone(&store), clock.clone()));
    let push = |index: usize, file: PolicyFile| {
        engines[index].govern(file);
        let turn = Push::new("telegram", "a", Role::User, "x", agent());
        engines[index].push(&turn, &TimeRules::none()).unwrap();
        store.head(&StreamName::new("policy").unwrap()).unwrap()
    };
    assert_eq!(push(0, file(&[OWNERS])), Version(1));
    assert_eq!(push(1, file(&[OWNERS])), Version(1));
    assert_eq!(push(1, file(&[])), Version(2));
    assert_eq!(push(0, file(&[OWNERS])), Version(3));
    assert_eq!(push(1, file(&[OWNERS])), Version(3));
    let folded = Folded::<PolicyState>::of(&*store, crate::store::View::Durable).unwrap();
    assert_eq!(folded.state().get("owners"), file(&[OWNERS]).settings.get("owners"));
}

/// Goal: the same call gives the same run, at once from two handles and again after a restart, and appends once. Method: a
/// store in a folder, opened twice; threads with one key, started together; the store opened anew.
#[test]
fn the_same_call_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Engine::open(folder.path(), Options::default()).unwrap();
    let call = |engine: &Engine| {
        engine.govern(file(&[OWNERS]));
        let mut turn = Push::new("telegram", "a", Role::User, "x", agent());
        turn.run = Some(Wanted::new(RunKind::Webhook));
        turn.idempotency_key = Some("k".into());
        let pushed = engine.push(&turn, &TimeRules::none()).unwrap();
        (pushed.run_id, pushed.position, pushed.repeated)
    };
    let barrier = std::sync::Barrier::new(2);
    let called = std::thread::scope(|scope| {
        let both = [0; 2].map(|_| {
            scope.spawn(|| {
                let engine = open();
                barrier.wait();
                call(&engine)
            })
        });
        both.map(|thread| thread.join().unwrap())
    });
    assert_eq!(called.iter().filter(|(.., repeated)| !repeated).count(), 1);
    let (run_id, position, _) = called[0].clone();
    assert_eq!((&called[1].0, &called[1].1), (&run_id, &position));
    let engine = open();
    assert_eq!(call(&engine), (run_id, position, true));
    let key = StreamName::new("telegram:a").unwrap();
    assert_eq!(engine.head(&key).unwrap(), Version(2));
}
