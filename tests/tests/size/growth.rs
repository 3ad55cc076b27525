//! What a store grows by: what was said, and a bounded share of it for what can be made again.

use annals_engine::Engine;
use annals_engine::engine::Options;
use annals_engine::session::event::Role;
use annals_engine::session::index::TimeRules;
use annals_engine::session::key::AgentId;
use annals_engine::session::push::Push;

use super::chat::{bytes, files, fill};

/// Goal: going on with a long session writes what is new and nothing again. Method: a chat of ten megabytes; fifty times
/// the store is opened anew, a turn is pushed, and the store is closed. `log/*.jsonl` grows by fifty lines of less than
/// a kilobyte each; with all that is derived the folder grows by less than half a megabyte more, the size of the index of
/// the last stretch, which the first of them writes.
#[test]
fn fifty_times_a_turn_more() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    fill(&store, &Options::default(), 0..1, 2_500, 4_000);
    let segments = |store: &std::path::Path| -> u64 {
        files(store).iter().filter(|(name, _)| name.ends_with(".jsonl")).map(|(_, len)| len).sum()
    };
    let (lines_before, all_before) = (segments(&store), bytes(&store, ""));
    assert!(lines_before > 10_000_000);
    let agent = AgentId::parse("main").unwrap();
    for round in 0..50 {
        let engine = Engine::open(&store, Options::default()).unwrap();
        let said = format!("and another thing, number {round}");
        let turn = Push::new("telegram", "0", Role::User, &said, agent.clone());
        let pushed = engine.push(&turn, &TimeRules::none()).unwrap();
        assert!(!pushed.opened && !pushed.repeated);
    }
    let lines = segments(&store) - lines_before;
    let all = bytes(&store, "") - all_before;
    println!("{lines} bytes of lines, {all} bytes in all");
    assert!((50 * 200..50 * 1_000).contains(&lines), "{lines} bytes of lines");
    assert!(all < lines + (512 << 10), "{all} bytes in all");
}

/// Goal: snapshots and indexes cost a bounded share, however long a store grows. Method: a store of 20 megabytes with many
/// chats and a snapshot whenever one may be made; all that is not a line is less than a third of the lines, and no more
/// than two snapshots of each view are kept.
#[test]
fn what_is_derived_is_a_share() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    let options = Options {
        segment_bytes: 2 << 20,
        index_bytes: 128 << 10,
        snapshot_bytes: 1,
        ..Options::default()
    };
    fill(&store, &options, 0..500, 40, 700);
    let all = files(&store);
    let sum = |end: &str| -> u64 {
        all.iter().filter(|(name, _)| name.ends_with(end)).map(|(_, len)| len).sum()
    };
    let snapshots = all.iter().filter(|(name, _)| name.ends_with(".snap")).count();
    let (lines, rest) = (sum(".jsonl"), bytes(&store, "") - sum(".jsonl"));
    println!("{lines} bytes of lines, {rest} of the rest, {snapshots} snapshots");
    assert!(lines > 20_000_000);
    assert!(rest < lines / 3, "{rest} of {lines}");
    assert!((1..=4).contains(&snapshots));
}
