//! Assumption 5: processes that are held, killed and interleaved, and their locks.

use std::sync::{Arc, Mutex};

use annals_engine::storage::{Access, Storage, write_full};
use annals_tests::disk::{Call, Effect, Loss, Pid, Rule, SimDisk, Stop, View};
use fastrand::Rng;

use super::{machine, synced};

/// Adds its letter to the end of a file, under a lock, some times.
fn append_under_lock(view: &View, letter: u8, times: usize) {
    let door = view.open("lock", Access::WriteOrCreate).unwrap();
    let file = view.open("f", Access::WriteOrCreate).unwrap();
    for _ in 0..times {
        door.lock().unwrap();
        let end = file.size().unwrap();
        write_full(&*file, &[letter], end).unwrap();
        door.unlock().unwrap();
    }
}

fn three_writers(seed: u64) -> (Vec<u8>, Vec<String>) {
    let disk = SimDisk::new(seed);
    for letter in *b"abc" {
        disk.spawn("writer", move |view| append_under_lock(&view, letter, 10));
    }
    disk.finish_all(&mut Rng::with_seed(seed), 10_000);
    let bytes = disk.look(|kernel| kernel.bytes("f").unwrap().to_vec());
    (bytes, disk.trace().iter().map(ToString::to_string).collect())
}

/// Three processes that take turns under a lock lose nothing, the same seed gives the same bytes and the same calls,
/// and other seeds give other orders.
#[test]
fn a_seed_decides_the_order() {
    let (bytes, trace) = three_writers(7);
    for letter in *b"abc" {
        assert_eq!(bytes.iter().filter(|b| **b == letter).count(), 10);
    }
    assert_eq!(three_writers(7), (bytes.clone(), trace));
    assert!((0..10).any(|seed| three_writers(seed).0 != bytes));
}

/// A turn may be of several calls; it ends before a call that would wait.
#[test]
fn turns_of_several_calls() {
    let disk = SimDisk::new(1);
    let [a, b] = [b'a', b'b']
        .map(|letter| disk.spawn("writer", move |view| append_under_lock(&view, letter, 2)));
    assert_eq!(disk.run(a, 4), Stop::Reached);
    assert_eq!(disk.calls(), 4);
    assert!(disk.call_waiting(a).is_some_and(|call| call.writes("f")));
    assert_eq!(disk.run(b, 100), Stop::Blocked(a));
    assert_eq!(disk.calls(), 6);
    assert_eq!(disk.run(a, 100), Stop::Ended);
    assert_eq!(disk.run(b, 100), Stop::Ended);
    assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap().to_vec()), b"aabb");
}

/// Without the lock the same writers do overwrite each other: the interleaving is real.
#[test]
fn races_are_found() {
    let racy = |seed| {
        let disk = SimDisk::new(seed);
        for letter in *b"ab" {
            disk.spawn("writer", move |view| {
                let file = view.open("f", Access::WriteOrCreate).unwrap();
                for _ in 0..5 {
                    let end = file.size().unwrap();
                    write_full(&*file, &[letter], end).unwrap();
                }
            });
        }
        disk.finish_all(&mut Rng::with_seed(seed), 10_000);
        disk.look(|kernel| kernel.bytes("f").unwrap().len())
    };
    assert!((0..10).any(|seed| racy(seed) < 10));
}

/// A process that waits for a lock is not runnable; it goes on when the holder is killed.
#[test]
fn a_killed_holder_gives_its_lock_back() {
    let disk = SimDisk::new(1);
    let a = disk.spawn("a", |view| append_under_lock(&view, b'a', 1));
    let b = disk.spawn("b", |view| append_under_lock(&view, b'b', 1));
    assert_eq!(disk.run_until(a, |_, call| call.writes("f")), Stop::Reached);
    assert_eq!(disk.run_until(b, |_, call| call.writes("f")), Stop::Blocked(a));
    assert_eq!(disk.look(|kernel| kernel.lock_holder("lock")), Some(a));
    disk.kill(a, 0);
    disk.finish(b);
    assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap().to_vec()), b"b");
}

/// A killed process leaves as much of its write as the test says, and nothing that its destructors do.
#[test]
fn a_killed_process_has_no_further_effect() {
    struct Mourner(Arc<View>);
    impl Drop for Mourner {
        fn drop(&mut self) {
            assert!(self.0.remove("f").is_err());
            assert!(self.0.open("g", Access::WriteOrCreate).is_err());
        }
    }
    let disk = SimDisk::new(1);
    let a = disk.spawn("a", |view| {
        let file = view.open("f", Access::WriteOrCreate).unwrap();
        let _mourner = Mourner(view.clone());
        write_full(&*file, b"abcdef", 0).unwrap();
        unreachable!("it was killed");
    });
    disk.run_until(a, |_, call| call.writes("f"));
    assert_eq!(disk.write_waiting(a), 6);
    disk.kill(a, 4);
    assert_eq!(disk.step(a), Stop::Ended);
    assert_eq!(disk.look(|kernel| kernel.names("")), ["f"]);
    assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap().to_vec()), b"abcd");
}

/// On one thread, a rule kills the process at its n-th write; the next process finds the lock free.
#[test]
fn killed_by_a_rule() {
    let (disk, view) = machine();
    disk.rule(Rule::new(|call: &Call| call.writes("f"), Effect::Kill(0)).nth(2));
    assert!(disk.unless_killed(|| append_under_lock(&view, b'a', 5)).is_none());
    disk.clear_rules();
    let next = disk.process("b");
    assert!(disk.unless_killed(|| append_under_lock(&next, b'b', 1)).is_some());
    assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap().to_vec()), b"aab");
    assert!(disk.unless_killed(|| view.stat("f")).is_none(), "the dead make no calls");
}

/// Two opens of one file exclude each other, also in one process, which on one thread is an error and not a wait.
#[test]
fn locks_belong_to_descriptions() {
    let (_disk, view) = machine();
    let first = synced(&view, "f", b"");
    let second = view.open("f", Access::Read).unwrap();
    first.lock().unwrap();
    first.lock().unwrap();
    assert_eq!(second.try_lock().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(second.lock().unwrap_err().kind(), std::io::ErrorKind::Deadlock);
    assert_eq!(second.lock_holder().unwrap(), "process 0 (a)");
    second.unlock().unwrap();
    second.try_lock().unwrap_err();
    drop(first);
    second.try_lock().unwrap();
}

/// A deadlock is a failure that says so.
#[test]
fn deadlock_is_seen() {
    fn take(disk: &SimDisk, first: &'static str, second: &'static str) -> Pid {
        disk.spawn(first, move |view| {
            let files = [first, second].map(|name| view.open(name, Access::WriteOrCreate).unwrap());
            files[0].lock().unwrap();
            files[1].lock().unwrap();
        })
    }
    let deadlocked = |seed| {
        let run = move || {
            let disk = SimDisk::new(1);
            take(&disk, "a", "b");
            take(&disk, "b", "a");
            disk.finish_all(&mut Rng::with_seed(seed), 100);
        };
        let failure = std::panic::catch_unwind(run).err();
        failure.is_some_and(|text| {
            text.downcast_ref::<String>().is_some_and(|t| t.contains("deadlock"))
        })
    };
    let found: Vec<bool> = (0..20).map(deadlocked).collect();
    assert!(found.contains(&true) && found.contains(&false));
}

/// A panic in a process fails the test with its text.
#[test]
fn panics_come_through() {
    let run = || {
        let disk = SimDisk::new(1);
        let pid = disk.spawn("a", |view| {
            view.stat("f").unwrap_err();
            panic!("broken invariant");
        });
        disk.finish(pid);
    };
    let failure = std::panic::catch_unwind(run).unwrap_err();
    assert!(failure.downcast_ref::<String>().unwrap().contains("broken invariant"));
}

/// A power loss ends every process; the run goes on with a new boot.
#[test]
fn life_after_a_power_loss() {
    let disk = SimDisk::new(1);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let a = disk.spawn("a", |view| append_under_lock(&view, b'a', 3));
    disk.run_until(a, |kernel, _| kernel.bytes("f").is_some_and(|bytes| bytes.len() == 2));
    disk.power_loss(&Loss::Nothing);
    assert_eq!(disk.step(a), Stop::Ended);
    let seen_by = seen.clone();
    let b = disk.spawn("b", move |view| {
        append_under_lock(&view, b'b', 1);
        seen_by.lock().unwrap().push(view.stat("f").unwrap().len);
    });
    disk.finish(b);
    assert_eq!(*seen.lock().unwrap(), [3]);
    assert_eq!(disk.look(annals_tests::disk::Kernel::boot), 2);
}
