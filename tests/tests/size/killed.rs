//! What killed processes leave in the folder of a store: nothing that stays.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use annals_engine::clock::SystemClock;
use annals_engine::log::{Log, Options, Report, verify};
use annals_engine::storage::{Disk, Storage};
use fastrand::Rng;

use super::chat::files;
use super::layout::strays;

const SEED: u64 = 128;

/// The latest call at which a process is killed: of all that it makes, and of those about files that have no name of
/// their own yet.
const CALLS_MAX: [(&str, usize); 2] = [("all", 450), ("new", 80)];

/// Starts a process that appends sessions, big contents among them, until it makes its so-manieth call of a sort to the
/// disk, and kills it there; a write is half done then. Returns the call.
fn killed_at(store: &Path, seed: u64, which: &str, call: usize) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_scribe"))
        .args(["until", store.to_str().unwrap(), &seed.to_string(), which, &call.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.starts_with("at "), "{said}");
    said.trim_end().to_owned()
}

fn verified(store: &Path) -> Report {
    let storage: Arc<dyn Storage> = Arc::new(Disk::new(store));
    verify(&storage, &mut |_| {}).unwrap()
}

/// The names of the files in the folder of torn tails that some line names.
fn torn_named(store: &Path) -> Vec<String> {
    let mut named = Vec::new();
    for (name, _) in files(store).into_iter().filter(|(name, _)| name.ends_with(".jsonl")) {
        for line in std::fs::read_to_string(store.join(name)).unwrap().lines() {
            if line.contains(r#""type":"log.recovered""#) {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                named.push(line["data"]["torn"].as_str().unwrap().to_owned());
            }
        }
    }
    named.sort();
    named
}

/// Goal: after any kill and the next start a store has the documented files and no others, and a second verification
/// finds what the first did: nothing. Method: fifty processes on one store, each killed at a call to the disk that a
/// seed draws, in the middle of it when it is a write; after each the store is opened and verified twice. Torn copies
/// are those that lines name. A content whose line was never written may stay, one a kill at the most.
#[test]
fn fifty_kills_leave_nothing_behind() {
    println!("seed {SEED}");
    let mut random = Rng::with_seed(SEED);
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let mut left = 0;
    for round in 0..50 {
        let (which, most) = CALLS_MAX[round % 2];
        let call = random.usize(1..most);
        let place = format!("round {round}, {}", killed_at(&store, round as u64, which, call));
        left += usize::from(!strays(&store).is_empty());
        drop(
            Log::open(Arc::new(Disk::new(&store)), Arc::new(SystemClock), Options::default())
                .unwrap(),
        );
        assert_eq!(strays(&store), [""; 0], "{place}");
        let torn =
            files(&store).into_iter().map(|(name, _)| name).filter(|n| n.starts_with("torn/"));
        assert_eq!(torn.collect::<Vec<_>>(), torn_named(&store), "{place}");
        let first = verified(&store);
        assert!(first.damages.is_empty(), "{place}: {:?}", first.damages);
        assert!(first.notes.iter().all(|note| note.contains("in torn/")), "{place}: {first:?}");
        assert_eq!(verified(&store), first, "{place}");
    }
    assert!(left > 5, "only {left} processes left something to remove");
    let contents = files(&store).into_iter().filter(|(name, _)| name.starts_with("blobs/"));
    let lines = files(&store)
        .into_iter()
        .filter(|(name, _)| name.ends_with(".jsonl"))
        .map(|(name, _)| std::fs::read_to_string(store.join(name)).unwrap())
        .collect::<String>();
    let unnamed = contents.filter(|(name, _)| !lines.contains(name.rsplit('/').next().unwrap()));
    assert!(unnamed.count() <= 50);
    assert!(lines.contains(r#""blob":{"#), "no content lies apart");
}

/// Goal: opening takes nothing from a process that is alive. Method: a process is held at each of its calls around the
/// making of a content, of a snapshot and of an index, while another opens the store; it goes on, and what it appended
/// can be read whole.
#[test]
fn opening_takes_nothing_from_the_living() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let mut child = Command::new(env!("CARGO_BIN_EXE_scribe"))
        .args(["beside", store.to_str().unwrap(), "5", "6"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut held = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with("at ") {
            let storage = Arc::new(Disk::new(&store));
            drop(Log::open(storage, Arc::new(SystemClock), Options::default()).unwrap());
            held += 1;
            std::io::Write::write_all(&mut to, b"go on\n").unwrap();
        } else {
            assert_eq!(line, "done", "after {held} openings");
        }
    }
    assert!(child.wait().unwrap().success());
    assert!(held > 10, "held {held} times");
    let report = verified(&store);
    assert_eq!((report.damages, report.notes), (vec![], vec![]));
    assert_eq!(strays(&store), [""; 0]);
}
