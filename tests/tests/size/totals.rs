//! Totals of turns and tokens: kept, not counted again, and equal to what counting gives.

use std::collections::BTreeMap;
use std::path::Path;

use annals_engine::Engine;
use annals_engine::clock::Timestamp;
use annals_engine::engine::Options;
use annals_engine::session::index::{Lens, ListQuery, TimeRules};
use annals_engine::store::{Append, Durability};
use serde_json::Value;

use super::chat::{files, fill, text, turn};
use super::meter::Meter;

/// Turns and tokens of each session.
type Totals = BTreeMap<String, (u64, u64)>;

fn options() -> Options {
    Options {
        segment_bytes: 256 << 10,
        index_bytes: 32 << 10,
        snapshot_bytes: 1,
        ..Options::default()
    }
}

/// The totals that the rows show, and the position up to which they are true.
fn shown(engine: &Engine) -> (Totals, u64) {
    let sessions = engine.sessions().unwrap();
    let rules = TimeRules::none();
    let lens = Lens { rules: &rules, now: Timestamp::MAX };
    let list = sessions.state().list(&ListQuery::default(), &lens);
    let totals =
        list.rows.iter().map(|row| (row.key.to_string(), (row.turns, row.total_tokens))).collect();
    (totals, sessions.as_of().0)
}

/// The totals counted from the lines as any program would read them, up to a position.
fn counted(store: &Path, last: u64) -> Totals {
    let mut totals = Totals::new();
    for (name, _) in files(store).into_iter().filter(|(name, _)| name.ends_with(".jsonl")) {
        let bytes = std::fs::read(store.join(name)).unwrap();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // The last line may be half written at this moment.
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            if line["seq"].as_u64().unwrap() > last || line["stream"] == "log" {
                continue;
            }
            let total = totals.entry(line["stream"].as_str().unwrap().to_owned()).or_default();
            if line["type"] == "turn" {
                let tokens = &line["data"]["tokens"];
                total.0 += 1;
                total.1 += tokens["in"].as_u64().unwrap() + tokens["out"].as_u64().unwrap();
            }
        }
    }
    totals
}

/// Goal: totals that somebody asks for all the time cost what is new, and are right all the time. Method: one thread
/// appends 600 turns to a store of several megabytes with snapshots and rolling segments; meanwhile another process's
/// view is asked for its totals again and again, and each answer is held against a count of the lines up to its
/// position. Together the answers read little more than the lines that came, which are read once.
#[test]
fn kept_totals_are_counted_totals() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    fill(&store, &options(), 0..40, 50, 2_000);
    let writer = Engine::open(&store, options()).unwrap();
    let meter = Meter::default();
    let reader = meter.open(&store, &options());
    let (_, before) = shown(&reader);
    meter.take();
    let mut polls = 0;
    let mut read = 0;
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| {
            for i in 0..600 {
                let append = Append::new(vec![turn(i % 40, &text(400))]);
                writer.append(append.durability(Durability::Synced)).unwrap();
            }
        });
        loop {
            let ended = appending.is_finished();
            let (totals, as_of) = shown(&reader);
            read += meter.take().bytes();
            polls += 1;
            assert_eq!(totals, counted(&store, as_of), "as of {as_of}");
            if ended {
                break;
            }
        }
    });
    let (_, after) = shown(&reader);
    assert!(after - before >= 600);
    println!("{polls} polls, {read} bytes read");
    let lines = 600 * 1_000;
    assert!(read < 2 * lines + polls * (8 << 10), "{read} bytes in {polls} polls");
}

/// Goal: what totals are kept in can be thrown away. Method: the totals of a process that begins with a snapshot, of one
/// after the snapshots are gone, of one after the indexes are gone too, and a count of the lines.
#[test]
fn totals_without_what_is_derived() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    fill(&store, &options(), 0..40, 60, 1_000);
    let totals = || shown(&Engine::open_read_only(&store, options()).unwrap());
    let (kept, as_of) = totals();
    assert_eq!(kept, counted(&store, as_of));
    let mut removed = Vec::new();
    for end in [".snap", ".idx"] {
        for (name, _) in files(&store).into_iter().filter(|(name, _)| name.ends_with(end)) {
            std::fs::remove_file(store.join(name)).unwrap();
            removed.push(end);
        }
        assert_eq!(totals(), (kept.clone(), as_of), "without {end}");
    }
    assert!(removed.contains(&".snap") && removed.contains(&".idx"), "{removed:?}");
}
