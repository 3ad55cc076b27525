//! Digests of stretches against events one by one.

use std::fs;
use std::sync::Arc;

use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::id::Seq;
use annals_engine::projection::{Digestible, Projection};
use annals_engine::session::index::{Digest, Sessions};
use annals_engine::store::{
    Append, Damage, DamageClass, EventStore, Item, MemoryStore, Read, Record, Touched,
};
use annals_tests::sessions::Sessions as Events;
use fastrand::Rng;

use super::{append, check, open, open_read_only, overwrite, same, segments};

/// Goal: taking digests is taking their events and gaps, wherever the log is cut into stretches, and a view that was
/// given out does not change. Method: random events, some of them lost, cut at random; the same seed gives the same run.
#[test]
fn wherever_the_log_is_cut() {
    for seed in 0..150 {
        let mut random = Rng::with_seed(seed);
        let (mut expected, mut got) = (Sessions::default(), Sessions::default());
        let mut given_out = Vec::new();
        let mut digest = Digest::default();
        for record in records(seed, 150) {
            if random.u8(..15) == 0 {
                let gap = gap(&record, &mut random);
                expected.gap(&gap);
                digest.gap(&gap);
                continue;
            }
            expected.apply(&record.fields());
            digest.apply(&record.fields());
            if random.u8(..20) == 0 {
                got.take(std::mem::take(&mut digest));
                same(&json(&got), &json(&expected), &format!("seed {seed}, up to {}", record.seq));
                given_out.push((got.clone(), json(&got)));
            }
        }
        got.take(digest);
        same(&json(&got), &json(&expected), &format!("seed {seed}"));
        for (view, then) in given_out {
            same(&json(&view), &then, &format!("seed {seed}, given out"));
        }
    }
}

/// Goal: a store is folded in stretches to the same state as one by one, whatever has become of its bytes. Method: small
/// stores, each damaged at random in several ways, folded in both; what the stretches begin with is the start or a
/// cursor in the middle.
#[test]
fn whatever_the_bytes_are() {
    for seed in 0..25 {
        let mut random = Rng::with_seed(seed);
        let home = tempfile::tempdir().unwrap();
        let engine = open(home.path());
        let mut events = Events::new(seed);
        append(&engine, &mut events, 150);
        let reader = open_read_only(home.path());
        reader.sessions().unwrap();
        append(&engine, &mut events, 150);
        drop(engine);
        check(&reader, &format!("seed {seed}"));
        fs::remove_dir_all(home.path().join("snapshots")).unwrap();
        for change in 0..4 {
            damage(&segments(home.path()), &mut random);
            check(&open_read_only(home.path()), &format!("seed {seed}, change {change}"));
        }
    }
}

fn damage(segments: &[std::path::PathBuf], random: &mut Rng) {
    let path = &segments[random.usize(..segments.len())];
    let mut bytes = fs::read(path).unwrap();
    if bytes.is_empty() {
        return;
    }
    let at = random.usize(..bytes.len());
    let line = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let next = bytes[at..].iter().position(|byte| *byte == b'\n');
    let next = next.map_or(bytes.len(), |end| at + end + 1);
    match random.u8(..7) {
        0 => bytes[at] ^= 1 << random.u8(..8),
        1 => bytes[at] = b'\n',
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(line..next)),
        4 => {
            let copy = bytes[line..next].to_vec();
            bytes.splice(next..next, copy);
        }
        5 => bytes[line..next].fill(0),
        _ => bytes.extend(b"{\"from\":\"another program\"}\n"),
    }
    overwrite(path, &bytes);
}

fn records(seed: u64, count: usize) -> Vec<Record> {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_775_001_600_000)));
    let store = MemoryStore::new(clock);
    for event in Events::new(seed).take(count) {
        store.append(Append::new(vec![event])).unwrap();
    }
    let items = store.read(Read::default()).unwrap();
    items
        .map(|item| match item.unwrap() {
            Item::Record(record) => *record,
            Item::Gap(gap) => panic!("a gap in memory: {gap:?}"),
        })
        .collect()
}

/// The gap that a record leaves, its stream legible or not.
fn gap(record: &Record, random: &mut Rng) -> Damage {
    let touched = Touched { stream: record.stream.to_string(), versions: None };
    Damage {
        class: DamageClass::Corrupt,
        file: "log/00000000000000000001.jsonl".into(),
        offset: 0,
        bytes: 1,
        seqs: Some((record.seq, Seq(record.seq.0 + u64::from(random.bool())))),
        touched: if random.bool() { vec![touched] } else { Vec::new() },
        accepted: false,
        detail: String::new(),
    }
}

fn json(sessions: &Sessions) -> String {
    serde_json::to_string(sessions).unwrap()
}
