//! The past: folds that end before the log does.

use std::collections::BTreeSet;
use std::sync::Arc;

use annals_engine::clock::{ManualClock, Timestamp};
use annals_engine::id::Seq;
use annals_engine::projection::{Folded, Projection, Until};
use annals_engine::session::event::Event;
use annals_engine::session::index::Sessions;
use annals_engine::session::outbox::Outbox;
use annals_engine::session::policy::PolicyState;
use annals_engine::session::runs::Runs;
use annals_engine::session::tree::Stories;
use annals_engine::session::usage::{Amount, By, Usage};
use annals_engine::store::{Append, EventStore, Item, MemoryStore, Read, Record, View};
use annals_tests::sessions::Sessions as Events;
use fastrand::Rng;

use super::{bytes, same};

const START: i64 = 1_775_001_600_000;

/// A store of random events whose clock jumps, mostly forward.
fn store(seed: u64, count: usize) -> MemoryStore {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(START)));
    let store = MemoryStore::new(clock.clone());
    let mut random = Rng::with_seed(seed);
    for event in Events::new(seed).take(count) {
        store.append(Append::new(vec![event])).unwrap();
        clock.set(Timestamp::from_millis(START + random.i64(0..3) * 500 + random.i64(0..9) * 700));
    }
    store
}

fn records(store: &dyn EventStore) -> Vec<Record> {
    let items = store.read(Read::default()).unwrap();
    items
        .filter_map(|item| match item.unwrap() {
            Item::Record(record) => Some(*record),
            Item::Gap(_) => None,
        })
        .collect()
}

/// Goal: the view as of a position, and as of a time, is the fold of what stands before, and nothing else of the log
/// is in it. Method: random logs under a clock that goes back now and then; after every position, and at the time of
/// every event, against the events taken one by one; twice, the same bytes.
#[test]
fn as_of_every_position() {
    for seed in 0..12 {
        println!("seed {seed}");
        let store = store(seed, 80);
        let records = records(&store);
        let as_of = |until: Until| {
            let state = Sessions::default();
            bytes(&Folded::until(state, &store, Read::default(), Some(until)).unwrap())
        };
        let mut expected = Sessions::default();
        let whole = |state: &Sessions, count: usize| {
            format!("{count} {count} {}", serde_json::to_string(state).unwrap())
        };
        let mut states = vec![whole(&expected, 0)];
        for record in &records {
            expected.apply(&record.fields());
            states.push(whole(&expected, states.len()));
        }
        for (count, state) in states.iter().enumerate() {
            let seq = Seq(u64::try_from(count).unwrap());
            same(&as_of(Until::Seq(seq)), state, &format!("seed {seed}, up to {seq}"));
        }
        for record in &records {
            let count = records.iter().take_while(|other| other.time <= record.time).count();
            let got = as_of(Until::Time(record.time));
            same(&got, &states[count], &format!("seed {seed}, as of {}", record.time));
            assert_eq!(got, as_of(Until::Time(record.time)));
        }
    }
}

/// Goal: logs at random hold every type of event that there is, so that what is shown with them is shown for all.
/// Method: the types of one log, against the schema.
#[test]
fn every_type_occurs() {
    let store = store(0, 3_000);
    let seen: BTreeSet<String> =
        records(&store).iter().map(|record| record.kind.to_string()).collect();
    let missing: Vec<&&str> = Event::TYPES.iter().filter(|kind| !seen.contains(**kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let parsed = |record: &Record| Event::of(record).is_ok();
    let understood: BTreeSet<String> = records(&store)
        .iter()
        .filter(|record| parsed(record))
        .map(|record| record.kind.to_string())
        .collect();
    assert!(Event::TYPES.iter().all(|kind| understood.contains(*kind)), "{understood:?}");
}

/// Goal: every fold takes any log, gives the same twice, and keeps what holds of it: a run and an announce have one end,
/// sums by any name are the same sum, and the tokens are those of the sessions view. Method: random logs.
#[test]
fn folds_of_anything() {
    for seed in 0..12 {
        println!("seed {seed}");
        let store = store(seed, 400);
        type All = ((Runs, Outbox), ((Usage, PolicyState), Stories));
        let fold = || Folded::<All>::of(&store, View::Durable).unwrap();
        let (one, again) = (fold(), fold());
        let ((runs, outbox), ((usage, policy), _)) = one.state();
        let ((runs_again, outbox_again), ((usage_again, policy_again), _)) = again.state();
        assert_eq!((runs, outbox, policy), (runs_again, outbox_again, policy_again));
        for run in runs.in_order() {
            assert_eq!(run.state.is_open(), run.finished.is_none(), "{run:?}");
            assert_eq!(run.end.is_some(), run.finished.is_some(), "{run:?}");
        }
        for outgoing in outbox.in_order() {
            assert_eq!(outgoing.state.is_open(), outgoing.ended.is_none(), "{outgoing:?}");
        }
        for by in By::ALL {
            assert_eq!(usage.sums(*by), usage_again.sums(*by));
            let messages: u64 = usage.sums(*by).values().map(Amount::messages).sum();
            assert_eq!(messages, usage.total().messages(), "{by}");
        }
    }
}
