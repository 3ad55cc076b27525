//! Several workers on one store, and workers that are stopped or held up.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;

use annals_engine::session::event::RunStatus;
use rustix::process::Signal;

use crate::house::House;

/// Goal: no run is made twice, however many workers there are. Method: two workers, twelve runs of two chats and a child;
/// starts are counted by the agents.
#[test]
fn no_run_twice() {
    let house = House::new(&[("main", &["read", "say=fine"])]);
    for n in 0..12 {
        house.ask(if n % 2 == 0 { "7" } else { "8" });
    }
    let workers = [house.worker(&[]), house.worker(&[])];
    house.until("run.finished", 12);
    house.until("delivery.attempted", 12);
    for worker in workers {
        worker.signal(Signal::TERM);
        let ran = worker.ends();
        assert_eq!(ran.code, Some(143), "{ran:#?}");
    }
    house.works();
    house.at_rest("two workers");
    assert_eq!((house.starts(), house.count("run.claimed")), (12, 12));
    assert!(house.ends().iter().all(|(status, _)| *status == RunStatus::Ok));
}

/// Goal: a worker that is asked to stop ends its runs as interrupted, with their processes, and leaves the others alone.
/// Method: two runs of one chat whose agent never ends.
#[test]
fn stopped() {
    let house = House::new(&[("main", &["child=pid", "forever"])]);
    (0..2).for_each(|_| drop(house.ask("7")));
    let worker = house.worker(&[]);
    house.until("run.started", 1);
    worker.signal(Signal::TERM);
    let ran = worker.ends();
    assert_eq!(ran.code, Some(143), "{ran:#?}");
    assert_eq!(house.ends(), [(RunStatus::Interrupted, Some("shutdown".to_owned()))]);
    assert_eq!((house.starts() <= 1, house.count("run.claimed")), (true, 1));
}

/// Goal: a worker that is held up loses nothing: nobody takes its run for lost, and it goes on. Method: a stopped process
/// whose agent waits; another worker that finds nothing to do; then both go on.
#[test]
fn held_up() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, 0o600.into()).expect("a pipe");
    assert!(fs::metadata(&gate).unwrap().file_type().is_fifo());
    let wait = format!("wait={}", gate.display());
    let house = House::new(&[("main", &["read", &wait, "say=fine"])]);
    house.ask("7");
    let worker = house.worker(&[]);
    // The agent is there, and the worker has nothing to record: stopped before, it could hold a lock of the log, and then
    // others wait for it, as they have to.
    let mut agent = fs::OpenOptions::new().write(true).open(&gate).expect("the agent");
    worker.signal(Signal::STOP);
    let before = house.records().len();
    house.works();
    assert_eq!(house.records().len(), before, "the run is not touched");
    worker.signal(Signal::CONT);
    agent.write_all(b"go on").expect("it listens");
    drop(agent);
    house.until("run.finished", 1);
    worker.signal(Signal::TERM);
    worker.ends();
    house.works();
    house.at_rest("held up");
    assert_eq!(house.ends(), [(RunStatus::Ok, None)]);
}
