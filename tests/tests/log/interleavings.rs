//! Interleavings that broke earlier drafts of the protocol, each as it was: who is held where, who dies, what the
//! power loss takes. The right outcome is always the same: nothing acknowledged is lost, nothing is called corrupt that
//! is not, and what is taken away is kept and named.

use annals_engine::ErrorKind;
use annals_engine::store::{EventStore, Health};
use annals_tests::disk::{Cache, Call, EIO, Effect, Loss, Op, Persisted, Rule, Stop, SyncFault};
use annals_tests::history::{Found, Wrong, segments, torn};

use super::machine::{Machine, active, event, is_write_to_log, log_contains};

const CLEAN: Wrong = Wrong::new();

fn fail_next_sync(m: &Machine, fault: SyncFault) {
    m.disk.clear_rules();
    m.disk.rule(Rule::new(|call: &Call| call.syncs("log/"), Effect::Sync(fault)).nth(0));
}

/// The data is taken for written and is not: the worst of the failures.
const LOST: SyncFault =
    SyncFault { persisted: Persisted::Nothing, cache: Cache::Clean, recorded: true, errno: EIO };

/// A and B have both written; A's sync fails; A settles and appends more, beyond B's position; then B goes on to its
/// acknowledgement. Nobody may take a later durable position for a proof of his own line.
#[test]
fn acknowledgement_by_position_across_a_failed_sync() {
    for fault in SyncFault::all() {
        let m = Machine::new(1);
        let batches = ["e0", "a", "a1", "a2"].map(|text| vec![event("s1", text, 700)]);
        let a = m.writer("a", batches.into());
        let b = m.writer("b", vec![vec![event("s2", "b", 700)]]);
        m.until_it_has_opened(b);
        m.until_it_has_written(a, "a");
        m.until_it_has_written(b, "b");
        fail_next_sync(&m, fault);
        m.disk.finish(a);
        m.disk.finish(b);
        assert_eq!(m.told().synced.len(), 5, "{fault:?}");
        m.power_loss(&Loss::Everything);
        assert_eq!(m.check_recovery(None, &[]), CLEAN, "{fault:?}");
    }
}

/// A alone sees the error and is killed before it can act; B opens the segment afterwards, and the kernel tells it
/// nothing. The intent in `lock.sync` does; without the file, B knows no floor and settles everything.
#[test]
fn a_sync_error_that_died_with_its_only_witness() {
    for intent in [true, false] {
        let m = Machine::new(1).rolling_at(900);
        let b = m.writer("b", vec![vec![event("s2", "b", 5)]]);
        m.until_it_has_opened(b);
        let a = m.writer("a", vec![vec![event("s1", "e0", 700)], vec![event("s1", "a", 100)]]);
        m.until_it_syncs(a, "a");
        fail_next_sync(&m, LOST);
        assert_eq!(m.disk.step(a), Stop::Reached);
        m.disk.kill(a, 0);
        if !intent {
            m.disk.meddle(|kernel| kernel.take("lock.sync"));
        }
        m.disk.finish(b);
        assert!(m.told().synced.len() >= 2, "b got its answer");
        m.power_loss(&Loss::Everything);
        assert_eq!(m.check_recovery(None, &[]), CLEAN, "intent: {intent}");
    }
}

/// A makes the next segment and is killed between its renaming and the sync of the folder; B appends to that segment
/// and syncs it. The folder entry has to be durable before B's answer.
#[test]
fn roller_killed_between_rename_and_folder_sync() {
    let m = Machine::new(1).rolling_at(900);
    let b = m.writer("b", vec![vec![event("s2", "b", 5)]]);
    m.until_it_has_opened(b);
    let a = m.writer("a", vec![vec![event("s1", "e0", 700)]]);
    let stop = m.disk.run_until(a, |kernel, _| segments(kernel).len() == 2);
    assert_eq!(stop, Stop::Reached);
    m.disk.kill(a, 0);
    m.disk.finish(b);
    assert_eq!(m.told().synced.len(), 1);
    m.power_loss(&Loss::Everything);
    assert_eq!(m.check_recovery(None, &[]), CLEAN);
}

/// The same for the store itself: A makes it and is killed before the sync of its folder. B makes the first segment and
/// appends.
#[test]
fn maker_killed_between_rename_and_folder_sync() {
    for loss in [Loss::Everything].into_iter().chain((0..20).map(Loss::Seed)) {
        let m = Machine::new(1);
        let a = m.writer("a", Vec::new());
        let stop = m.disk.run_until(a, |kernel, _| kernel.bytes("store.json").is_some());
        assert_eq!(stop, Stop::Reached);
        m.disk.kill(a, 0);
        let b = m.writer("b", vec![vec![event("s2", "b", 5)]]);
        m.disk.finish(b);
        assert_eq!(m.told().synced.len(), 1);
        m.power_loss(&loss);
        assert_eq!(m.check_recovery(None, &[]), CLEAN, "{loss:?}");
    }
}

/// One sync fails, the batch is settled and acknowledged, the power fails. That is no corruption.
#[test]
fn one_failed_sync_is_no_corruption() {
    for fault in SyncFault::all() {
        let m = Machine::new(1);
        let a = m.writer("a", vec![vec![event("s1", "e0", 700)], vec![event("s1", "a", 700)]]);
        m.until_it_syncs(a, "a");
        fail_next_sync(&m, fault);
        m.disk.finish(a);
        assert_eq!(m.told().synced.len(), 2, "{fault:?}");
        m.power_loss(&Loss::Everything);
        assert_eq!(m.check_recovery(None, &[]), CLEAN, "{fault:?}");
    }
}

/// Goal: who is covered by another process's sync needs neither the lock of syncing nor a sync of its own. Method: all
/// three have written when A syncs; A is held before it gives the lock back, and C gets its answer meanwhile.
#[test]
fn one_sync_is_for_all_that_have_written() {
    let m = Machine::new(1);
    let all = ["first", "second", "third"];
    let pids = all.map(|text| m.writer(text, vec![vec![event(text, text, 700)]]));
    pids.iter().for_each(|pid| m.until_it_has_opened(*pid));
    pids.iter().zip(all).for_each(|(pid, text)| m.until_it_has_written(*pid, text));
    let [a, b, c] = pids;
    let gives_back = |call: &Call| call.op == Op::Unlock && &*call.name == "lock.sync";
    let syncs = || m.disk.trace().iter().filter(|done| done.call.syncs("log/")).count();
    let before = syncs();
    assert_eq!(m.disk.run_until(a, |_, call| gives_back(call)), Stop::Reached);
    m.disk.finish(c);
    assert_eq!(m.told().synced.len(), 1, "c has its answer");
    m.disk.finish(a);
    m.disk.finish(b);
    assert_eq!((m.told().synced.len(), syncs()), (3, before + 1));
    m.power_loss(&Loss::Everything);
    assert_eq!(m.check_recovery(None, &[]), CLEAN);
}

/// A is killed between its write and its sync; B repeats A's batch. B's answer is the first position, and only after a
/// sync that covers it.
#[test]
fn a_repeat_is_durable_before_it_is_answered() {
    let m = Machine::new(1);
    let b = m.writer("b", vec![vec![event("s1", "a", 700)]]);
    m.until_it_has_opened(b);
    let a = m.writer("a", vec![vec![event("s1", "a", 700)]]);
    m.until_it_has_written(a, "a");
    m.disk.kill(a, 0);
    m.told().all_died();
    m.disk.finish(b);
    assert_eq!(m.told().synced.len(), 1);
    m.power_loss(&Loss::Everything);
    assert_eq!(m.check_recovery(None, &[]), CLEAN);
}

/// The power fails between the cut of a torn tail and the line that names it. The next opening names it.
#[test]
fn crash_between_the_cut_and_its_line() {
    let m = Machine::new(1);
    let client = m.open().unwrap();
    client.append(vec![event("s1", "e0", 700)]).unwrap();
    drop(client);
    let end = m.disk.look(|kernel| kernel.bytes(&active(kernel)).unwrap().len());
    m.disk.meddle(|kernel| {
        let name = active(kernel);
        let mut bytes = kernel.bytes(&name).unwrap().to_vec();
        bytes.extend_from_slice(b"{\"seq\":3,\"torn");
        kernel.put(&name, bytes);
    });
    m.power_loss(&Loss::Everything);
    let before = m.disk.look(|kernel| (Found::read(kernel), kernel.clone()));
    let opener = m.opener();
    let a = m.disk.spawn("a", move |view| {
        let _ = opener.open(view);
    });
    let stop = m.disk.run_until(a, |kernel, call| {
        let name = active(kernel);
        let cut = kernel.bytes(&name).unwrap().len() == end && !kernel.is_dirty(&name);
        cut && is_write_to_log(call)
    });
    assert_eq!(stop, Stop::Reached);
    assert_eq!(m.disk.look(|kernel| torn(kernel).len()), 1);
    m.power_loss(&Loss::Everything);
    assert_eq!(m.check_recovery(Some(&before.0), &[&before.1]), CLEAN);
    let found = m.disk.look(Found::read);
    let [said] = &found.recovered()[..] else { panic!("{:?}", found.recovered()) };
    assert_eq!((usize::try_from(said.offset).unwrap(), said.bytes), (end, 14));
}

/// The last acknowledged line is damaged on the platter and the machine boots anew. The floor in `lock.sync` says that
/// the line was durable: nothing is cut, the damage is reported, and appends are refused.
#[test]
fn the_floor_holds_across_boots() {
    let m = Machine::new(1);
    let client = m.open().unwrap();
    for text in ["e0", "e1"] {
        client.append(vec![event("s1", text, 700)]).unwrap();
    }
    drop(client);
    m.power_loss(&Loss::Nothing);
    let name = m.disk.look(active);
    let bytes = m.disk.look(|kernel| kernel.bytes(&name).unwrap().to_vec());
    let at = bytes.len() - 300;
    m.disk.meddle(|kernel| kernel.damage(&name, at, &[bytes[at] ^ 1]));
    let damaged = m.disk.look(annals_tests::disk::Kernel::files);
    let refused = match m.open() {
        Ok(client) => {
            assert!(matches!(client.log.health().unwrap(), Health::Damaged(_)));
            client.append(vec![event("s1", "e2", 5)]).unwrap_err()
        }
        Err(error) => error,
    };
    assert_eq!(*refused.kind(), ErrorKind::Corrupt, "{refused}");
    let now = m.disk.look(annals_tests::disk::Kernel::files);
    let log_of = |files: &std::collections::BTreeMap<String, Vec<u8>>| files.get(&name).cloned();
    assert_eq!(log_of(&now), log_of(&damaged), "not a byte of the segment changed");
    assert!(m.disk.look(|kernel| torn(kernel).is_empty() && log_contains(kernel, "e0")));
}
