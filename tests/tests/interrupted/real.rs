//! The worker of the product, over a store whose appends fail.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals_engine::ErrorKind;
use annals_engine::clock::SystemClock;
use annals_engine::config::{Config, Sources, load};
use annals_engine::engine::Engine;
use annals_engine::id::{EventId, StreamName};
use annals_engine::session::event::{Event, Role, RunFinished, RunKind, RunStatus};
use annals_engine::session::index::TimeRules;
use annals_engine::session::key::AgentId;
use annals_engine::session::push::{Push, Wanted};
use annals_engine::session::run::{Asked, Requester, Tried, spawn};
use annals_engine::store::{Item, MemoryStore, Read, Record};
use annals_tools::run::worker::{Carrier, Parcel, before_the_end};
use annals_tools::run::{Setup, Until, Worker};
use tokio::sync::watch;

use super::agents::child_of;
use super::check;
use super::flaky::{Fate, Flaky};
use super::world::LIMITS;

/// Keeps what it is given.
#[derive(Debug, Default)]
struct Basket(Mutex<Vec<Parcel>>);

impl Carrier for Basket {
    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Tried> + Send + '_>> {
        self.0.lock().unwrap().push(parcel);
        Box::pin(async { Tried::Delivered })
    }
}

/// Goal: an append that fails, having happened or not, loses nothing that an agent said, keeps nothing from going out once,
/// and ends no shift; one that a store without room refuses for a while is made later. Method: a run with a reply that is
/// delivered; each of its appends fails in each way, alone and with the one behind it; the worker goes home by itself.
#[test]
fn appends_fail() {
    let mut cases = Vec::new();
    for first in [Fate::Untold, Fate::Undone, Fate::Full] {
        cases.push(vec![first]);
        cases.extend([Fate::Untold, Fate::Undone, Fate::Full].map(|second| vec![first, second]));
    }
    std::thread::scope(|scope| {
        for fates in &cases {
            scope.spawn(move || {
                for n in 0..8 {
                    an_append_fails(n, fates);
                }
            });
        }
    });
}

fn an_append_fails(n: usize, fates: &[Fate]) {
    let what = format!("{fates:?}, after {n} appends");
    let (store, basket, worker) = house("");
    store.after(n, fates);
    works(&worker).unwrap_or_else(|error| panic!("{what}: {error}"));
    let records = records(&store);
    assert_eq!(check::log(&records, LIMITS), [""; 0], "{what}");
    let unknown = records.iter().any(|record| record.kind.as_str() == "delivery.unknown");
    assert_eq!((basket.0.lock().unwrap().len(), unknown), (1, false), "{what}");
    // A run is not made where it is not known whether it was claimed, or may start.
    let may_start = n > 1 || fates.iter().all(|fate| *fate == Fate::Full);
    let status = end(&records).status;
    assert!(status == RunStatus::Ok || !may_start, "{what}: what was said is lost: {status}");
}

/// Goal: what an agent says at great length is in the log once, whatever becomes of each append. Method: 450 turns, of which
/// 200 go with the end; the first batches of the others, or the end, are in the log and nobody knows, and the next append is
/// refused.
#[test]
fn very_many_turns() {
    for n in 2..5 {
        let (store, _, worker) = house("output: 'jsonl', dialect: 'native'");
        store.after(n, &[Fate::Untold, Fate::Full, Fate::Undone]);
        works(&worker).unwrap();
        let records = records(&store);
        let said = records.iter().filter(|record| {
            matches!(Event::of(record), Ok(Event::Turn(turn)) if turn.role == Role::Assistant)
        });
        assert_eq!((said.count(), end(&records).status), (450, RunStatus::Ok), "after {n}");
    }
}

/// Goal: what cannot be read is not sent, with a reason, and holds up nothing else. Method: two chats with an answer each;
/// one of the answers is damaged.
#[test]
fn an_answer_that_cannot_be_read() {
    let (store, basket, worker) = house("");
    ask(&engine_of(&store), "8");
    store.reading(|record| is_answer(record, "telegram:7").then_some(ErrorKind::Corrupt));
    works(&worker).unwrap();
    let failed: Vec<_> = records(&store)
        .iter()
        .filter_map(|record| match Event::of(record) {
            Ok(Event::DeliveryFailed(failed)) => Some((record.stream.to_string(), failed.reason)),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [("telegram:7".to_owned(), Some("unreadable".to_owned()))]);
    let given: Vec<_> = basket.0.lock().unwrap().iter().map(|p| p.session_key.clone()).collect();
    assert_eq!(given, ["telegram:8"]);
}

/// Goal: an announce whose words cannot be read has an end that says so, and the next shift finds nothing to do. Method: a
/// child, whose answer is damaged.
#[test]
fn an_announce_that_cannot_be_read() {
    let (store, _, worker) = house("");
    let engine = engine_of(&store);
    let id = || EventId::new(engine.clock().now()).to_string();
    let child_key = format!("agent:main:subagent:{}", id());
    let from = StreamName::new("telegram:7").unwrap();
    let child = StreamName::new(child_key.as_str()).unwrap();
    let asked = engine.decide(&[&from, &child], |stage, batch| {
        let requester = Requester { key: &from, run_id: None, opening: None };
        spawn(stage, batch, &child_of(requester, &child, (&id(), &id()), "main"))
    });
    assert!(matches!(asked.unwrap().0, Asked::Accepted { .. }));
    store.reading(move |record| is_answer(record, &child_key).then_some(ErrorKind::Corrupt));
    works(&worker).unwrap();
    let before = records(&store);
    let reasons = before.iter().filter_map(|record| match Event::of(record) {
        Ok(Event::AnnounceFailed(failed)) => Some(failed.reason.unwrap()),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), ["unreadable"]);
    assert_eq!(check::log(&before, LIMITS), [""; 0]);
    works(&worker).unwrap();
    assert_eq!(records(&store).len(), before.len());
}

/// Goal: a delivery that was not made because its text could not be read for a moment is made. Method: the first time that
/// the answer is read the store is not there.
#[test]
fn an_answer_that_cannot_be_read_for_a_moment() {
    let (store, basket, worker) = house("");
    let mut first = true;
    store.reading(move |record| {
        let fails = is_answer(record, "telegram:7") && std::mem::take(&mut first);
        fails.then_some(ErrorKind::Unavailable)
    });
    works(&worker).unwrap();
    let records = records(&store);
    assert!(!records.iter().any(|record| record.kind.as_str() == "delivery.unknown"));
    assert_eq!(basket.0.lock().unwrap().len(), 1);
}

/// Goal: a run whose task cannot be read any more has an end all the same, and what stands behind that is read. Method: the
/// task is damaged.
#[test]
fn a_task_that_cannot_be_read() {
    let (store, _, _) = house("");
    let engine = engine_of(&store);
    ask(&engine, "7");
    let runs: Vec<_> = engine.work().unwrap().state().runs().into_iter().cloned().collect();
    let first = runs[0].turn_seq.unwrap();
    store.reading(move |record| (record.seq.0 == first).then_some(ErrorKind::Corrupt));
    let request = |run| before_the_end(&engine, run).unwrap().0.request;
    assert_eq!(
        runs.iter().map(|run| request(run)).collect::<Vec<_>>(),
        ["[unreadable: corrupt]", "hello"]
    );
    let second = runs[1].turn_seq.unwrap();
    store.reading(move |record| (record.seq.0 == second).then_some(ErrorKind::Corrupt));
    assert_eq!(request(&runs[0]), "hello");
}

fn is_answer(record: &Record, of: &str) -> bool {
    record.stream.as_str() == of
        && matches!(Event::of(record), Ok(Event::Turn(turn)) if turn.role == Role::Assistant)
}

/// Goal: a worker that stays ends what it had claimed when the store sent it home, tells of it, and leaves as soon as it is
/// to. Method: the append after the claim is refused for a reason that nobody waits for; whoever sees the end of the run
/// stops the worker.
#[test]
fn a_shift_that_broke_off() {
    let (store, _, worker) = house("");
    store.after(1, &[Fate::Refused]);
    let told = Mutex::new(0);
    let (stop, stopped) = watch::channel(false);
    let broke_off = |error: &annals_engine::Error| {
        assert_eq!(*error.kind(), ErrorKind::ReadOnly);
        *told.lock().unwrap() += 1;
    };
    let ended = async {
        while !records(&store).iter().any(|record| record.kind.as_str() == "run.finished") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.send_replace(true);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let both = async { tokio::join!(worker.stay(stopped, broke_off), ended) };
        tokio::time::timeout(Duration::from_secs(60), both).await.unwrap()
    });
    assert_eq!(*told.lock().unwrap(), 1);
    let end = end(&records(&store));
    assert_eq!((end.status, end.reason.as_deref()), (RunStatus::Interrupted, Some("restart")));
}

/// The end of the first run that has one.
fn end(records: &[Record]) -> RunFinished {
    let end = records.iter().find_map(|record| match Event::of(record) {
        Ok(Event::RunFinished(end)) => Some(end),
        _ => None,
    });
    end.unwrap()
}

/// Another handle of the store of a house.
fn engine_of(store: &Arc<Flaky>) -> Engine {
    Engine::over(Arc::clone(store) as _, Arc::new(SystemClock))
}

fn ask(engine: &Engine, chat: &str) {
    let agent = AgentId::parse("main").unwrap();
    let mut push = Push::new("telegram", chat, Role::User, "hello", agent);
    push.run = Some(Wanted { deliver: true, ..Wanted::new(RunKind::Ask) });
    engine.push(&push, &TimeRules::none()).unwrap();
}

/// A store with a run that is asked for. With a dialect, its agent says much.
fn house(dialect: &str) -> (Arc<Flaky>, Arc<Basket>, Worker) {
    let store = Arc::new(Flaky::new(MemoryStore::new(Arc::new(SystemClock))));
    let engine = engine_of(&store);
    ask(&engine, "7");
    let folder = std::env::temp_dir();
    let file = folder.join("annals.json5");
    let script = match dialect {
        "" => "cat",
        _ => r#"for n in $(seq 450); do echo "{\"type\": \"message\", \"text\": \"$n\"}"; done"#,
    };
    let script = serde_json::to_string(script).unwrap();
    let run = format!("command: '/bin/sh', args: ['-c', {script}], {dialect}");
    let text = format!("{{agents: {{list: [{{id: 'main', run: {{{run}}}}}]}}}}");
    let sources = Sources { flags: &[], variable: &|_| None, file: Some((file.as_path(), &text)) };
    let (config, _): (Config, _) = load(&sources).unwrap();
    let mut setup = Setup::of(&config, folder).unwrap();
    setup.rules.sinks.insert("telegram".into(), "file".into());
    let basket = Arc::<Basket>::default();
    let worker = Worker::new(engine, Arc::new(setup), Arc::clone(&basket) as _).unwrap();
    (store, basket, worker)
}

/// One shift.
fn works(worker: &Worker) -> annals_engine::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_stop, stopped) = watch::channel(false);
    runtime.block_on(async {
        let shift = worker.work(Until::Idle, stopped);
        tokio::time::timeout(Duration::from_secs(60), shift).await.unwrap()
    })
}

fn records(store: &Flaky) -> Vec<Record> {
    use annals_engine::store::EventStore;
    let items = store.read(Read::default()).unwrap();
    let record = |item| match item {
        Item::Record(record) => Some(*record),
        Item::Gap(_) => None,
    };
    items.filter_map(|item| record(item.unwrap())).collect()
}
