//! Syncs that fail in every way they can, seen by one process or by all, once or twice: nobody is told that something is
//! durable that is not, a first failure is settled in place, a second one stops the store until it is opened again.

use annals_engine::ErrorKind;
use annals_tests::disk::{Call, Chances, Effect, Loss, Pid, Rule, Stop, SyncFault};
use annals_tests::history::{Found, Wrong};
use fastrand::Rng;

use super::machine::{Machine, event};

fn log_syncs(call: &Call) -> bool {
    call.syncs("log/")
}

/// Two processes and a third that opens later; the n-th sync of the log fails, for every n and every way, the process
/// that saw it lives on or is killed at its next call. Then the power fails.
#[test]
fn one_failure_anywhere() {
    for fault in SyncFault::all() {
        for killed in [false, true] {
            for n in 0.. {
                let m = Machine::new(1).rolling_at(1_500);
                m.disk.rule(Rule::new(log_syncs, Effect::Sync(fault)).nth(n));
                let names = ["a", "b"];
                let pids = names.map(|name| {
                    let batch = |i| vec![event(name, &format!("{name}{i}"), 400)];
                    m.writer(name, (0..3).map(batch).collect())
                });
                let struck = play(&m, &pids, killed, n);
                let late = m.writer("late", vec![vec![event("late", "late", 5)]]);
                m.disk.finish(late);
                let place = format!("sync {n}, {fault:?}, killed: {killed}");
                let (told, least) = (m.told(), if killed { 4 } else { 7 });
                assert!(told.synced.len() >= least, "{place}: {:?}", told.errors);
                drop(told);
                m.power_loss(&Loss::Everything);
                assert_eq!(m.check_recovery(None, &[]), Wrong::new(), "{place}");
                if !struck {
                    break;
                }
            }
        }
    }
}

/// Runs the processes in an order that the number decides; kills the first that meets an error if wanted. Tells whether
/// one did.
fn play(m: &Machine, pids: &[Pid], kill: bool, seed: u64) -> bool {
    let mut rng = Rng::with_seed(seed);
    let mut struck = false;
    while let Some(pid) = m.disk.draw(&mut rng) {
        let before = m.disk.calls();
        m.disk.step(pid);
        let failed =
            m.disk.trace_from(before).iter().any(|d| log_syncs(&d.call) && d.outcome.is_err());
        if failed && kill && !struck {
            m.disk.kill(pid, 0);
            m.told().died(pid);
        }
        struck |= failed;
    }
    assert!(pids.iter().all(|pid| m.disk.call_waiting(*pid).is_none()));
    struck
}

/// An error of the kernel's own write-back reaches each process at its own next sync, one after the other.
#[test]
fn told_late_and_to_each() {
    let m = Machine::new(1);
    let batches =
        |name: &str| (0..3).map(|i| vec![event(name, &format!("{name}{i}"), 900)]).collect();
    let a = m.writer("a", batches("a"));
    let b = m.writer("b", batches("b"));
    m.until_it_has_written(a, "a1");
    m.until_it_has_written(b, "b0");
    for _ in 0..50 {
        m.disk.meddle(|kernel| kernel.write_back(1.0));
    }
    let mut rng = Rng::with_seed(1);
    m.disk.finish_all(&mut rng, 5_000);
    let failed = m.disk.trace().iter().filter(|d| log_syncs(&d.call) && d.outcome.is_err()).count();
    assert!(failed >= 1, "the error was told");
    assert_eq!(m.told().synced.len(), 6);
    m.power_loss(&Loss::Everything);
    assert_eq!(m.check_recovery(None, &[]), Wrong::new());
}

/// Every sync of the log fails from some time on: the append is not acknowledged, and all processes that have the store
/// open get `ReadOnly`, also when syncs work again. Opened again, the log takes appends, and a repeat finds out.
#[test]
fn a_second_failure_stops_the_store_until_it_is_opened_again() {
    for fault in SyncFault::all() {
        let m = Machine::new(1);
        let (a, b) = (m.open().unwrap(), m.open().unwrap());
        a.append(vec![event("s1", "first", 700)]).unwrap();
        b.append(vec![event("s1", "second", 700)]).unwrap();
        m.disk.rule(Rule::new(log_syncs, Effect::Sync(fault)));
        let error = a.append(vec![event("s1", "third", 700)]).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Indeterminate, "{fault:?}: {error}");
        m.disk.clear_rules();
        for client in [&a, &b] {
            let error = client.append(vec![event("s2", "fourth", 5)]).unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::ReadOnly, "{fault:?}: {error}");
        }
        assert_eq!(m.disk.look(Found::read).lines.iter().filter(|l| !l.is_control()).count(), {
            let third = m.disk.look(|kernel| super::machine::log_contains(kernel, "third"));
            2 + usize::from(third)
        });
        let again = m.open().unwrap();
        again.append(vec![event("s1", "third", 700)]).unwrap();
        again.append(vec![event("s2", "fourth", 5)]).unwrap();
        assert_eq!(m.check(&again.log, None, &[]), Wrong::new(), "{fault:?}");
        let error = b.append(vec![event("s2", "fifth", 5)]).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::ReadOnly, "{fault:?}: {error}");
        drop((a, b, again));
        m.power_loss(&Loss::Everything);
        assert_eq!(m.check_recovery(None, &[]), Wrong::new(), "{fault:?}");
    }
}

/// A segment is sealed and the next one cannot be made, which the append that filled it does not notice. With indexes of
/// all of it on the disk, the next process still sees the seal, makes the successor, and appends there.
#[test]
fn a_roll_that_stopped_half_way_is_finished() {
    let m = Machine::new(1).rolling_at(6_000);
    m.disk.rule(Rule::new(
        |call| call.syncs("log/00000000000000000009"),
        Effect::Sync(SyncFault::all()[0]),
    ));
    let client = m.open().unwrap();
    for n in 0..6 {
        client.append(vec![event("s1", &n.to_string(), 900)]).unwrap();
    }
    drop(client);
    m.disk.clear_rules();
    assert_eq!(
        m.disk.look(annals_tests::history::segments).len(),
        1,
        "the next segment was not made"
    );
    for text in ["next", "and next"] {
        let client = m.open().unwrap();
        client.append(vec![event("s1", text, 5)]).unwrap();
        assert_eq!(m.check(&client.log, None, &[]), Wrong::new());
    }
    assert_eq!(m.disk.look(annals_tests::history::segments).len(), 2);
}

/// A sync fails once more while the first failure is being settled by another process than the one that saw it.
#[test]
fn the_settler_is_another_process() {
    for fault in SyncFault::all() {
        let m = Machine::new(1);
        let a = m.writer("a", vec![vec![event("s1", "a0", 700)], vec![event("s1", "a1", 700)]]);
        let b = m.writer("b", vec![vec![event("s2", "b0", 700)]]);
        m.until_it_syncs(a, "a1");
        m.disk.rule(Rule::new(log_syncs, Effect::Sync(fault)).nth(0));
        m.disk.step(a);
        m.disk.clear_rules();
        let stop = m.disk.run_until(a, |_, call| call.locks("lock.append"));
        assert_eq!(stop, Stop::Reached);
        m.disk.finish(b);
        m.disk.finish(a);
        assert_eq!(m.told().synced.len(), 3, "{fault:?}");
        m.disk.set_chances(Chances::default());
        m.power_loss(&Loss::Everything);
        assert_eq!(m.check_recovery(None, &[]), Wrong::new(), "{fault:?}");
    }
}
