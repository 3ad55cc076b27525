//! Snapshots on disk: whatever becomes of them, no answer changes.

use std::fs;
use std::path::Path;

use annals_engine::Engine;
use annals_engine::engine::{Options, repair};
use annals_tests::sessions::Sessions as Events;

use super::{
    append, bytes, one_by_one, open, open_read_only, overwrite, same, segments, small, snapshots,
};

/// What a process sees that opens the store now.
fn check(folder: &Path, what: &str) {
    super::check(&open_read_only(folder), what);
}

/// A store with two snapshots and events behind them.
fn store(seed: u64, folder: &Path) {
    let engine = open(folder);
    let mut events = Events::new(seed);
    let mut rounds = 0;
    while snapshots(folder).len() < 2 || rounds < 4 {
        append(&engine, &mut events, 40);
        rounds += 1;
        assert!(rounds < 100, "no snapshot is made");
    }
}

/// Two of the sessions, and two of the work at hand.
const KEPT: usize = 4;

/// Goal: a snapshot and the rest give what all gives, and processes that append once and end leave snapshots as long
/// ones do. Method: random events, half of them from processes of one append; the view compared after each few; two
/// snapshots of each view kept at the most, and nothing else left beside the lock.
#[test]
fn snapshot_and_rest() {
    for seed in 0..8 {
        let home = tempfile::tempdir().unwrap();
        let mut events = Events::new(seed);
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..60 {
            if round % 2 == 0 {
                append(&open(home.path()), &mut events, 12);
            } else {
                (0..12).for_each(|_| append(&open(home.path()), &mut events, 0));
            }
            check(home.path(), &format!("seed {seed}, round {round}"));
            let kept = snapshots(home.path());
            assert!(kept.len() <= KEPT, "seed {seed}, round {round}: {kept:?}");
            seen.extend(kept);
        }
        assert!(seen.len() > 3, "seed {seed}: only {} snapshots were made", seen.len());
        let all = fs::read_dir(home.path().join("snapshots")).unwrap().count();
        assert_eq!(all, 1 + snapshots(home.path()).len());
    }
}

/// Goal: nothing that becomes of snapshots changes an answer. Method: one after the other, on a store of two snapshots:
/// one of them or all deleted, the newest cut at each length of its header and at some of its state, replaced by the
/// other, by that of another store, by one of a position that the log has not reached, a folder under its name.
#[test]
fn whatever_becomes_of_them() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    store(1, folder);
    let [older, newer] = snapshots(folder).try_into().unwrap();
    let whole = fs::read(&newer).unwrap();
    for len in (0..whole.len()).filter(|len| *len < 120 || len % 97 == 0) {
        overwrite(&newer, &whole[..len]);
        check(folder, &format!("{len} bytes"));
    }
    overwrite(&newer, &[whole.as_slice(), b"x"].concat());
    check(folder, "a byte more");
    overwrite(&newer, &fs::read(&older).unwrap());
    check(folder, "the older under the name of the newer");
    fs::remove_file(&newer).unwrap();
    check(folder, "the newer deleted");
    overwrite(&older, b"");
    check(folder, "none is whole");
    fs::create_dir(&newer).unwrap();
    check(folder, "a folder");
    fs::remove_dir(&newer).unwrap();
    let another = tempfile::tempdir().unwrap();
    store(2, another.path());
    let foreign = snapshots(another.path()).pop().unwrap();
    fs::copy(&foreign, folder.join("snapshots").join(foreign.file_name().unwrap())).unwrap();
    check(folder, "another store's");
    fs::remove_dir_all(folder.join("snapshots")).unwrap();
    check(folder, "all deleted");
    overwrite_with_new(&folder.join("snapshots"));
    check(folder, "a file in place of the folder");
}

fn overwrite_with_new(path: &Path) {
    drop(fs::OpenOptions::new().create_new(true).write(true).open(path).unwrap());
}

/// Goal: no flipped bit is believed. Method: each bit of the newest snapshot of a store, where it is smallest.
#[test]
fn every_flipped_bit() {
    let home = tempfile::tempdir().unwrap();
    let engine = Engine::open(home.path(), Options { snapshot_bytes: 1, ..small() }).unwrap();
    let mut events = Events::new(3);
    while snapshots(home.path()).is_empty() {
        append(&engine, &mut events, 0);
    }
    drop(engine);
    let newest = snapshots(home.path()).pop().unwrap();
    let whole = fs::read(&newest).unwrap();
    let reader = open_read_only(home.path());
    let expected = one_by_one(reader.store());
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        overwrite(&newest, &flipped);
        let engine = open_read_only(home.path());
        same(&bytes(&engine.sessions().unwrap()), &expected, &format!("bit {bit}"));
    }
}

/// Goal: a snapshot of events that are not there any more is not used. Method: a store is copied, goes on, and its
/// snapshots are put into the copy, which is shorter, then into the copy after other events.
#[test]
fn of_another_history() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (home.path().join("one"), home.path().join("other"));
    store(4, &one);
    copy(&one, &other);
    let mut events = Events::new(5);
    append(&open(&one), &mut events, 200);
    for snapshot in snapshots(&one) {
        fs::copy(&snapshot, other.join("snapshots").join(snapshot.file_name().unwrap())).unwrap();
    }
    check(&other, "ahead of the log");
    append(&open(&other), &mut Events::new(6), 150);
    check(&other, "of another history");
    append(&open(&other), &mut Events::new(7), 150);
    check(&other, "after snapshots of its own");
    assert!(snapshots(&other).len() <= KEPT);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Goal: snapshots of a damaged log hold what can be read of it, and one that was made before lines were given up is not
/// used after. Method: damage in a full segment, before and between snapshots; then damage at the end of the log, which
/// is accepted, with a snapshot behind it that counted the damaged lines.
#[test]
fn damage_and_repair() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path();
    store(8, folder);
    let first = &segments(folder)[0];
    let mut bytes_of_first = fs::read(first).unwrap();
    bytes_of_first[10_000] ^= 1;
    overwrite(first, &bytes_of_first);
    fs::remove_dir_all(folder.join("snapshots")).unwrap();
    let mut events = Events::new(9);
    while snapshots(folder).len() < 2 {
        append(&open(folder), &mut events, 20);
        check(folder, "damage before the snapshots");
    }
    let ends_behind_a_snapshot = |folder: &Path| {
        let first = number(&segments(folder).pop().unwrap());
        let last = number(&snapshots(folder).pop().unwrap());
        last > first + 3
    };
    while !ends_behind_a_snapshot(folder) {
        append(&open(folder), &mut events, 0);
    }
    append(&open(folder), &mut events, 0);
    let active = segments(folder).pop().unwrap();
    let mut lines: Vec<Vec<u8>> =
        fs::read(&active).unwrap().split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    lines.remove(2);
    overwrite(&active, &lines.concat());
    repair(folder, small(), "a test", &mut |_| {}).unwrap();
    check(folder, "damage given up behind a snapshot");
}

/// The position in the name of a segment or a snapshot.
fn number(path: &Path) -> u64 {
    let name = path.file_stem().unwrap().to_str().unwrap();
    name[name.len() - 20..].parse().unwrap()
}

/// Goal: what a killed process left is removed, and nothing else. Method: a temporary file and a stranger's beside the
/// snapshots, then appends until another snapshot is made.
#[test]
fn leftovers() {
    let home = tempfile::tempdir().unwrap();
    store(10, home.path());
    let left = home.path().join("snapshots/sessions-00000000000000000009.snap.1-0.new");
    let strange = home.path().join("snapshots/notes.txt");
    overwrite_with_new(&left);
    overwrite_with_new(&strange);
    let before = snapshots(home.path());
    let mut events = Events::new(11);
    while snapshots(home.path()) == before {
        append(&open(home.path()), &mut events, 10);
    }
    assert!(!left.exists() && strange.exists());
}

/// Goal: reading makes and changes nothing. Method: a store without snapshots is listed; then one with them; the
/// folder's entries and their times before and after.
#[test]
fn readers_write_nothing() {
    let home = tempfile::tempdir().unwrap();
    store(12, home.path());
    for round in 0..2 {
        let before = tree(home.path());
        check(home.path(), "reading");
        assert_eq!(tree(home.path()), before, "round {round}");
        let _ = fs::remove_dir_all(home.path().join("snapshots"));
    }
}

fn tree(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.metadata().unwrap();
        let (len, time) = (meta.len(), meta.modified().unwrap());
        found.push(format!("{:?} {len} {time:?}", entry.path()));
        if meta.is_dir() {
            found.extend(tree(&entry.path()));
        }
    }
    found.sort();
    found
}
