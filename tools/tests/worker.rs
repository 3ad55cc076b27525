//! The worker with real processes over a store in memory.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a house that cannot be built fails the test"
)]

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use annals_engine::clock::{Clock, SystemClock};
use annals_engine::config::{Config, Sources, load};
use annals_engine::engine::Engine;
use annals_engine::id::EventId;
use annals_engine::session::event::{
    Event, Links, Role, RunClaimed, RunKind, RunStatus, run_stream,
};
use annals_engine::session::index::TimeRules;
use annals_engine::session::key::AgentId;
use annals_engine::session::push::{Push, Wanted};
use annals_engine::session::run::{Claimer, Tried, announce, claim};
use annals_engine::store::{Append, Item, Read};
use annals_tools::run::worker::{Carrier, Parcel};
use annals_tools::run::{ProcessIdentity, Setup, Until, Worker};
use tokio::sync::watch;

/// Keeps what it is given.
#[derive(Debug, Default)]
struct Basket(Mutex<Vec<Parcel>>);

impl Carrier for Basket {
    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Tried> + Send + '_>> {
        self.0.lock().unwrap().push(parcel);
        Box::pin(async { Tried::Delivered })
    }
}

/// Keeps all that it is given until no run is at work any more, and counts how much that is at a time.
#[derive(Debug)]
struct Jam {
    engine: Engine,
    carried: Mutex<Carried>,
}

#[derive(Debug, Default)]
struct Carried {
    now: Vec<String>,
    most: usize,
    all: usize,
}

impl Carrier for Jam {
    fn carry(&self, parcel: Parcel) -> Pin<Box<dyn Future<Output = Tried> + Send + '_>> {
        let session = parcel.session_key;
        {
            let mut carried = self.carried.lock().unwrap();
            assert!(!carried.now.contains(&session), "two of {session} at a time");
            carried.now.push(session.clone());
            carried.most = carried.most.max(carried.now.len());
            carried.all += 1;
        }
        Box::pin(async move {
            while !self.engine.work().unwrap().state().runs().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            self.carried.lock().unwrap().now.retain(|other| *other != session);
            Tried::Delivered
        })
    }
}

struct House {
    engine: Engine,
    setup: Arc<Setup>,
    basket: Arc<Basket>,
}

impl House {
    #[expect(clippy::disallowed_methods, reason = "the settings of a test are a file of its own")]
    fn new(folder: &Path, script: &str) -> Self {
        let text = format!(
            "{{agents: {{list: [{{id: 'main', run: {{command: '/bin/sh', args: ['-c', '{script}']}}}}]}}}}"
        );
        let file = folder.join("annals.json5");
        fs::write(&file, &text).unwrap();
        let sources =
            Sources { flags: &[], variable: &|_| None, file: Some((file.as_path(), &text)) };
        let (config, _): (Config, _) = load(&sources).unwrap();
        let mut setup = Setup::of(&config, folder.to_path_buf()).unwrap();
        setup.rules.sinks.insert("telegram".into(), "file".into());
        let setup = Arc::new(setup);
        let engine = Engine::in_memory(Arc::new(SystemClock));
        Self { engine, setup, basket: Arc::default() }
    }

    fn ask(&self, text: &str, deliver: bool) -> String {
        self.ask_in("7", text, deliver)
    }

    fn ask_in(&self, chat: &str, text: &str, deliver: bool) -> String {
        let agent = AgentId::parse("main").unwrap();
        let mut push = Push::new("telegram", chat, Role::User, text, agent);
        push.run = Some(Wanted { deliver, ..Wanted::new(RunKind::Ask) });
        self.engine.push(&push, &TimeRules::none()).unwrap().run_id.unwrap()
    }

    fn work(&self, until: Until) {
        let worker = Worker::new(
            self.engine.clone(),
            Arc::clone(&self.setup),
            Arc::clone(&self.basket) as Arc<dyn Carrier>,
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Nobody keeps the other end: a worker that cannot be stopped works all the same.
        let (_, stop) = watch::channel(false);
        let worked = async {
            let worked = worker.unwrap();
            tokio::time::timeout(Duration::from_secs(60), worked.work(until, stop)).await
        };
        runtime.block_on(worked).expect("it goes home").unwrap();
    }

    /// Whether a worker that works until nothing is left goes home within a time.
    fn goes_home(&self, within: Duration) -> bool {
        let carrier = Arc::clone(&self.basket) as Arc<dyn Carrier>;
        let worker = Worker::new(self.engine.clone(), Arc::clone(&self.setup), carrier).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_stops, stop) = watch::channel(false);
        runtime
            .block_on(async { tokio::time::timeout(within, worker.work(Until::Idle, stop)).await })
            .is_ok()
    }

    fn end(&self, run_id: &str) -> Option<(RunStatus, String)> {
        let end = announce::told(self.engine.store(), run_id).unwrap().finished?;
        let text = announce::text_at(self.engine.store(), "telegram:7", end.reply_seq).unwrap();
        Some((end.status, text))
    }

    fn kinds(&self) -> Vec<String> {
        let items = self.engine.read(Read::default()).unwrap();
        items
            .filter_map(|item| match item.unwrap() {
                Item::Record(record) => {
                    Event::of(&record).unwrap();
                    Some(record.kind.to_string())
                }
                Item::Gap(_) => None,
            })
            .collect()
    }
}

/// Goal: after an outage what waited goes out a few at a time, and of one session one after the other. Method: twenty chats
/// with two answers each, and a sink that keeps all until the last run has ended.
#[test]
fn an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::new(folder.path(), "cat");
    for turn in 0..40 {
        house.ask_in(&(turn % 20).to_string(), "hello", true);
    }
    let jam = Arc::new(Jam { engine: house.engine.clone(), carried: Mutex::default() });
    let worker =
        Worker::new(house.engine.clone(), Arc::clone(&house.setup), Arc::clone(&jam) as _).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_stops, stop) = watch::channel(false);
    runtime.block_on(worker.work(Until::Idle, stop)).unwrap();
    let carried = jam.carried.lock().unwrap();
    assert_eq!((carried.most, carried.all, carried.now.len()), (16, 40, 0));
}

/// Goal: who waits for one run makes those of the session before it, in their order, and not those behind it. Method:
/// three runs of one session; the second is waited for.
#[test]
fn the_runs_before() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::new(folder.path(), "tail -n 1");
    let runs = ["one", "two", "three"].map(|text| house.ask(text, false));
    house.work(Until::Ended(runs[1].clone()));
    assert_eq!(house.end(&runs[0]), Some((RunStatus::Ok, "one".into())));
    assert_eq!(house.end(&runs[1]), Some((RunStatus::Ok, "two".into())));
    assert_eq!(house.end(&runs[2]), None);
    house.work(Until::Idle);
    assert_eq!(house.end(&runs[2]), Some((RunStatus::Ok, "three".into())));
    assert!(house.basket.0.lock().unwrap().is_empty());
}

/// Goal: a reply that is to be delivered leaves once, with its key; a silent one is told nobody and is in the transcript;
/// a run that fails says so. Method: three runs, a sink that takes all.
#[test]
fn what_goes_out() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::new(folder.path(), "x=$(tail -n 1); echo \"$x\"; test \"$x\" != fail");
    let runs = ["hello", "NO_REPLY", "fail"].map(|text| house.ask(text, true));
    house.work(Until::Idle);
    let parcels = house.basket.0.lock().unwrap().clone();
    let told: Vec<_> = parcels.iter().map(|p| (p.kind.as_str(), p.text.as_str())).collect();
    assert_eq!(
        told,
        [("reply", "hello"), ("failure", "The run ended without an answer: error (exit).")]
    );
    assert!(parcels[0].idempotency_key.starts_with("delivery:v1:telegram:7:"), "{parcels:?}");
    assert_eq!(house.end(&runs[1]), Some((RunStatus::Ok, "NO_REPLY".into())));
    let kinds = house.kinds();
    let count = |kind: &str| kinds.iter().filter(|known| *known == kind).count();
    assert_eq!((count("delivery.suppressed"), count("delivery.delivered")), (1, 2));
    house.work(Until::Idle);
    assert_eq!(house.kinds(), kinds, "a second worker finds nothing to do");
}

/// Goal: who waits for one run does not wait for a dead worker. Method: the run that is waited for, and one before it on the
/// same session, were claimed by a process that is gone.
#[test]
fn whose_worker_is_gone() {
    for before in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let house = House::new(folder.path(), "tail -n 1");
        let first = house.ask("one", false);
        let second = before.then(|| house.ask("two", false));
        let gone = Claimer {
            worker: "gone".into(),
            process_start: "1".into(),
            ..claimer(ProcessIdentity::own().unwrap())
        };
        let claimed = house.engine.decide(&[], |stage, batch| claim(stage, batch, &gone, |_| true));
        assert_eq!(claimed.unwrap().0.unwrap().run.run_id, first);
        house.work(Until::Ended(second.clone().unwrap_or_else(|| first.clone())));
        assert_eq!(house.end(&first), Some((RunStatus::Lost, String::new())));
        if let Some(second) = second {
            assert_eq!(house.end(&second), Some((RunStatus::Ok, "two".into())));
        }
    }
}

fn claimer(process: ProcessIdentity) -> Claimer {
    let now = SystemClock.now();
    Claimer {
        worker: "w".into(),
        pid: process.pid,
        process_start: process.start,
        boot_id: process.boot_id,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        lease_until: now.plus(Duration::from_secs(600)),
        token_sha256: "t".into(),
    }
}

/// Goal: who finds the role taken leaves no run behind that nobody is at: a process that died while it started another has
/// the role for a moment longer. Method: the role is held by nobody who works, and a run is claimed by a process that is
/// gone; then the role is free.
#[test]
fn a_role_that_is_held_for_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::new(folder.path(), "echo done");
    let run_id = house.ask("one", false);
    let own = ProcessIdentity::own().unwrap();
    let claimed = Event::RunClaimed(RunClaimed {
        at: None,
        run_id: run_id.clone(),
        worker: "gone".into(),
        pid: own.pid,
        process_start: "0".into(),
        boot_id: own.boot_id,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        lease_until: house.engine.clock().now().plus(Duration::from_secs(60)),
        token_sha256: None,
    });
    let id = EventId::new(house.engine.clock().now());
    let new = claimed.to_new(run_stream(&run_id).unwrap(), id, Links::default()).unwrap();
    house.engine.append(Append::new(vec![new])).unwrap();
    let role = house.engine.take_worker_role().unwrap();
    assert!(role.is_some());
    assert!(!house.goes_home(Duration::from_secs(1)), "it leaves the run to nobody");
    assert_eq!(house.end(&run_id), None);
    drop(role);
    house.work(Until::Idle);
    assert_eq!(house.end(&run_id), Some((RunStatus::Lost, String::new())));
}
