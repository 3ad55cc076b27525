//! Several real processes on one store, on the real disk: nobody coordinates them but the kernel's locks.

#![expect(clippy::unwrap_used, reason = "what cannot be set up fails the test")]
#![expect(clippy::disallowed_methods, reason = "the test starts the processes that it is about")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Arc;

use annals_engine::clock::SystemClock;
use annals_engine::id::{StreamName, Version};
use annals_engine::log::{Log, Options, verify};
use annals_engine::storage::{Disk, Storage};
use annals_engine::store::{EventStore, Followed, Item, Read, View};

fn scribe(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribe"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn start(words: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = scribe(words).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    (child, BufReader::new(out))
}

fn open(dir: &Path) -> Log {
    Log::open(Arc::new(Disk::new(dir)), Arc::new(SystemClock), Options::default()).unwrap()
}

/// Every event of a stream as `(version, id)`, and the proof that no gap and no damage is in the log.
fn stream(dir: &Path, name: &str) -> Vec<(u64, String)> {
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(dir));
    let report = verify(&storage, &mut |_| {}).unwrap();
    assert!(report.damages.is_empty(), "{:?}", report.damages);
    let log = Log::open_read_only(storage, Options::default()).unwrap();
    log.read(Read::default().view(View::Written))
        .unwrap()
        .filter_map(|item| match item.unwrap() {
            Item::Record(r) if r.stream.as_str() == name => Some((r.version.0, r.id.to_string())),
            Item::Record(_) => None,
            Item::Gap(gap) => panic!("{gap:?}"),
        })
        .collect()
}

/// Eight processes append 25 events each to one stream while segments roll: 200 events, versions 1 to 200, each where
/// its writer was told.
#[test]
fn eight_processes_on_one_stream() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    let writers: Vec<Child> = (0..8)
        .map(|_| scribe(&["append", path, "agent:main:main", "25", "8000"]).spawn().unwrap())
        .collect();
    let mut acknowledged = HashMap::new();
    for writer in writers {
        let Output { status, stdout, .. } = writer.wait_with_output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stdout));
        for line in String::from_utf8(stdout).unwrap().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            acknowledged.insert(words[2].to_owned(), words[1].parse::<u64>().unwrap());
        }
    }
    let events = stream(&store, "agent:main:main");
    assert_eq!(events.len(), 200);
    for (i, (version, id)) in events.iter().enumerate() {
        assert_eq!(*version, i as u64 + 1);
        assert_eq!(acknowledged.get(id), Some(version), "{id}");
    }
}

/// A process takes the append lock and is killed with it: the next append goes through at once, for the lock was the
/// kernel's and not the file's.
#[test]
fn a_killed_holder_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    drop(open(&store));
    let (mut holder, mut said) = start(&["hold", store.to_str().unwrap()]);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    let waiter = scribe(&["append", store.to_str().unwrap(), "a", "1", "8000"]).spawn().unwrap();
    holder.kill().unwrap();
    holder.wait().unwrap();
    let Output { status, stdout, .. } = waiter.wait_with_output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stdout));
    assert_eq!(stream(&store, "a").len(), 1);
    assert!(store.join("lock.append").exists(), "a lock file that is left over is harmless");
}

/// Two processes append with the same expected version, twenty times over: each time exactly one wins and the other is
/// told of a conflict.
#[test]
fn one_winner_for_one_version() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    drop(open(&store));
    for version in 0..20 {
        let expected = version.to_string();
        let both: Vec<Child> =
            (0..2).map(|_| scribe(&["expect", path, "a", &expected]).spawn().unwrap()).collect();
        let mut said: Vec<String> = both
            .into_iter()
            .map(|child| String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap())
            .collect();
        said.sort();
        assert_eq!(said[1], "error conflict\n", "{said:?}");
        assert_eq!(said[0].split(' ').nth(1), Some((version + 1).to_string().as_str()), "{said:?}");
    }
    assert_eq!(open(&store).head(&StreamName::new("a").unwrap()).unwrap(), Version(20));
}

/// Writers are killed in the middle of their work, one after the other, wherever they happen to be, while others go on:
/// what any of them said to be appended is there, once, at the version it named, and nothing else disturbs the log.
#[test]
fn killed_writers_lose_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..12 {
        let steady = scribe(&["append", path, "steady", "20", "4000"]).spawn().unwrap();
        let (mut victim, mut said) = start(&["append", path, "victim", "1000000", "4000"]);
        let mut line = String::new();
        for _ in 0..=round * 3 {
            line.clear();
            said.read_line(&mut line).unwrap();
            acknowledged.push(("victim", line.clone()));
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        // What it had said before it died counts as well; half a line does not.
        for rest in said.lines().map_while(Result::ok) {
            if rest.split(' ').nth(2).is_some_and(|id| id.len() == 36) {
                acknowledged.push(("victim", rest));
            }
        }
        let Output { status, stdout, .. } = steady.wait_with_output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stdout));
        let lines = String::from_utf8(stdout).unwrap();
        acknowledged.extend(lines.lines().map(|line| ("steady", line.to_owned())));
    }
    drop(open(&store));
    let found: HashMap<&str, HashMap<String, u64>> = ["victim", "steady"]
        .into_iter()
        .map(|name| {
            let events = stream(&store, name);
            for (i, (version, _)) in events.iter().enumerate() {
                assert_eq!(*version, i as u64 + 1, "{name}");
            }
            (name, events.into_iter().map(|(version, id)| (id, version)).collect())
        })
        .collect();
    for (name, line) in acknowledged {
        let words: Vec<&str> = line.trim_end().split(' ').collect();
        assert_eq!(
            found[name].get(words[2]).map(u64::to_string).as_deref(),
            Some(words[1]),
            "{name}"
        );
    }
}

/// Readers and verifiers run all the while that writers append, roll and one of them is killed: they see no damage and
/// no gap, every position once and in order, and they change no byte.
#[test]
fn readers_disturb_nobody_and_see_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    drop(open(&store));
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(&store));
    let steady: Vec<Child> = (0..2)
        .map(|_| scribe(&["append", path, "steady", "300", "6000"]).spawn().unwrap())
        .collect();
    let (mut victim, mut said) = start(&["append", path, "victim", "1000000", "6000"]);
    let log = Log::open_read_only(Arc::clone(&storage), Options::default()).unwrap();
    let mut line = String::new();
    for _ in 0..20 {
        for view in [View::Durable, View::Written] {
            let mut last = 0;
            for item in log.read(Read::default().view(view)).unwrap() {
                match item.unwrap() {
                    Item::Record(r) => {
                        assert_eq!(r.seq.0, std::mem::replace(&mut last, r.seq.0) + 1);
                    }
                    Item::Gap(gap) => panic!("{view:?}: {gap:?}"),
                }
            }
        }
        let report = verify(&storage, &mut |_| {}).unwrap();
        assert_eq!((report.damages, report.notes), (vec![], vec![]));
        said.read_line(&mut line).unwrap();
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    for writer in steady {
        assert!(writer.wait_with_output().unwrap().status.success());
    }
    drop(open(&store));
    assert_eq!(stream(&store, "steady").len(), 600);
}

/// A follower in one process sees what others append, each position once and in order, from before their first event
/// to after their last, while segments roll under it; started again from its cursor it goes on where it stopped.
#[test]
fn a_follower_sees_every_event_of_other_processes_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    drop(open(&store));
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(&store));
    let log = Log::open_read_only(storage, Options::default()).unwrap();
    let writers: Vec<Child> =
        (0..3).map(|_| scribe(&["append", path, "a", "100", "3000"]).spawn().unwrap()).collect();
    let (mut events, mut last, mut cursor) = (0, 0, None);
    while events < 300 {
        let mut follower = log.follow(Read::after(cursor)).unwrap();
        for _ in 0..77 {
            match follower.next(None).unwrap() {
                Followed::Item(Item::Record(record)) => {
                    assert_eq!(record.seq.0, last + 1);
                    last = record.seq.0;
                    events += u32::from(record.stream.as_str() == "a");
                }
                Followed::Item(Item::Gap(gap)) => panic!("{gap:?}"),
                Followed::CaughtUp(_) | Followed::Quiet => {}
            }
            if events == 300 {
                break;
            }
        }
        cursor = follower.cursor();
        assert_eq!(cursor.map_or(0, |cursor| cursor.seq().0), last);
    }
    for writer in writers {
        assert!(writer.wait_with_output().unwrap().status.success());
    }
}
