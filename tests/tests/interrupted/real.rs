//! The worker of the product, over a store whose appends fail.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals_engine::ErrorKind;
use annals_engine::clock::SystemClock;
use annals_engine::config::{Config, Sources, load};
use annals_engine::engine::Engine;
use annals_engine::session::event::{Event, Role, RunKind, RunStatus};
use annals_engine::session::index::TimeRules;
use annals_engine::session::key::AgentId;
use annals_engine::session::push::{Push, Wanted};
use annals_engine::session::run::Tried;
use annals_engine::store::{Item, MemoryStore, Read, Record};
use annals_tools::run::worker::{Carrier, Parcel};
use annals_tools::run::{Setup, Until, Worker};
use tokio::sync::watch;

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

/// Goal: an append that fails, having happened or not, loses nothing that an agent said or a sink confirmed, and ends no
/// shift; one that a store without room refuses for a while is made later. Method: a run with a reply that is delivered;
/// each of its appends fails in each way; the worker goes home by itself.
#[test]
fn appends_fail() {
    for fate in [Fate::Untold, Fate::Undone, Fate::Full] {
        for n in 0..8 {
            let what = format!("{fate:?}, after {n} appends");
            let (store, basket, worker) = house();
            store.after(n, fate);
            works(&worker).unwrap_or_else(|error| panic!("{what}: {error}"));
            let records = records(&store);
            assert_eq!(check::log(&records, LIMITS), [""; 0], "{what}");
            // A try that may have been recorded and was not made is one that nobody can confirm.
            let given = basket.0.lock().unwrap().len();
            let unknown = records.iter().any(|record| record.kind.as_str() == "delivery.unknown");
            let shown = given == 1 && !unknown || given == 0 && unknown && fate == Fate::Untold;
            assert!(shown, "{what}: {given} given, unknown: {unknown}");
            let said = records.iter().any(|record| {
                matches!(
                    Event::of(record),
                    Ok(Event::RunFinished(end)) if end.status == RunStatus::Ok
                )
            });
            // A run is not made where it is not known whether it may start, or is told that it may not.
            assert!(said || n < 2, "{what}: what was said is lost");
        }
    }
}

/// Goal: a worker that stays ends what it had claimed when the store sent it home, tells of it, and leaves as soon as it is
/// to. Method: the append after the claim is refused for a reason that nobody waits for; whoever sees the end of the run
/// stops the worker.
#[test]
fn a_shift_that_broke_off() {
    let (store, _, worker) = house();
    store.after(1, Fate::Refused);
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
    let end = records(&store).iter().find_map(|record| match Event::of(record) {
        Ok(Event::RunFinished(end)) => Some(end),
        _ => None,
    });
    let end = end.unwrap();
    assert_eq!((end.status, end.reason.as_deref()), (RunStatus::Interrupted, Some("restart")));
}

fn house() -> (Arc<Flaky>, Arc<Basket>, Worker) {
    let clock = Arc::new(SystemClock);
    let store = Arc::new(Flaky::new(MemoryStore::new(Arc::clone(&clock) as _)));
    let engine = Engine::over(Arc::clone(&store) as _, clock);
    let agent = AgentId::parse("main").unwrap();
    let mut push = Push::new("telegram", "7", Role::User, "hello", agent);
    push.run = Some(Wanted { deliver: true, ..Wanted::new(RunKind::Ask) });
    engine.push(&push, &TimeRules::none()).unwrap();
    let folder = std::env::temp_dir();
    let file = folder.join("annals.json5");
    let text = "{agents: {list: [{id: 'main', run: {command: '/bin/sh', args: ['-c', 'cat']}}]}}";
    let sources = Sources { flags: &[], variable: &|_| None, file: Some((file.as_path(), text)) };
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
