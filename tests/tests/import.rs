//! Imports into a store on disk.
#![expect(clippy::unwrap_used, reason = "a store that cannot be used fails the test")]

use std::fs;
use std::path::Path;

use annals_engine::Engine;
use annals_engine::engine::verify;
use annals_engine::import::{
    MemoryTree, Options, Report, discover_in, discover_sample, import, sample_tree,
};
use annals_engine::store::{Item, Read, View};

fn import_into(engine: &Engine, tree: &MemoryTree, path: &str) -> Report {
    let found = discover_in(tree, Path::new(path)).unwrap();
    let how = Options::default();
    import(engine.store(), engine.clock(), tree, &found, &how, &mut |_| {}).unwrap()
}

/// Goal: an import is on stable storage when it returns, the store verifies, and the same import adds nothing, also when
/// the store was opened again. Method: the sample, read back at the durable view, and the bytes of the log compared.
#[test]
fn the_sample_on_disk() {
    let home = tempfile::tempdir().unwrap();
    let tree = sample_tree();
    let engine = Engine::open(home.path(), Default::default()).unwrap();
    let found = discover_sample(&tree).unwrap();
    let how = Options::default();
    let report = import(engine.store(), engine.clock(), &tree, &found, &how, &mut |_| {}).unwrap();
    let durable = engine.read(Read::default().view(View::Durable)).unwrap();
    let durable = durable.filter(|item| matches!(item, Ok(Item::Record(_)))).count();
    assert!(durable as u64 >= report.totals().new);
    drop(engine);
    let segment = home.path().join("log/00000000000000000001.jsonl");
    let before = fs::read(&segment).unwrap();
    let engine = Engine::open(home.path(), Default::default()).unwrap();
    assert_eq!(import_into(&engine, &tree, "sample").totals().new, 0);
    drop(engine);
    assert_eq!(fs::read(&segment).unwrap(), before);
    let report = verify(home.path(), &mut |_| {}).unwrap();
    assert!(report.damages.is_empty(), "{:?}", report.damages);
}

/// Goal: content of any size is kept. Method: a session with a turn of three megabytes between two short ones.
#[test]
fn content_too_long_for_a_line() {
    let home = tempfile::tempdir().unwrap();
    let long = "x".repeat(3 << 20);
    let said = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"timestamp\":\"2026-03-01T09:00:00Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
        )
    };
    let header = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-03-01T09:00:00Z\"}\n";
    let text = [header, &said("a", "one"), &said("b", &long), &said("c", "three")].concat();
    let tree = MemoryTree::new([("p/s.jsonl", text)]);
    let engine = Engine::open(home.path(), Default::default()).unwrap();
    let report = import_into(&engine, &tree, "p");
    assert!(report.sources[0].damages.is_empty(), "{:?}", report.sources[0].damages);
    assert_eq!(report.totals().turns, 3);
    let mut lengths = Vec::new();
    for item in engine.read(Read::default()).unwrap() {
        let Item::Record(record) = item.unwrap() else { panic!("a gap") };
        if record.kind.as_str() == "turn" {
            let payload = engine.payload(&record).unwrap();
            let turn: serde_json::Value = serde_json::from_str(payload.as_str()).unwrap();
            lengths.push(turn["content"].as_str().unwrap().len());
        }
    }
    assert_eq!(lengths, [3, 3 << 20, 5]);
    assert_eq!(import_into(&engine, &tree, "p").totals().new, 0);
}

/// Goal: two processes that import the same at once bring everything once. Method: four threads with a handle of their
/// own each on one store.
#[test]
fn at_once() {
    let home = tempfile::tempdir().unwrap();
    drop(Engine::open(home.path(), Default::default()).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let engine = Engine::open(home.path(), Default::default()).unwrap();
                import_into(&engine, &sample_tree(), "sample");
            });
        }
    });
    let engine = Engine::open(home.path(), Default::default()).unwrap();
    let mut turns = 0;
    for item in engine.read(Read::default()).unwrap() {
        let Item::Record(record) = item.unwrap() else { panic!("a gap") };
        turns += usize::from(record.kind.as_str() == "turn");
    }
    let alone = Engine::in_memory(std::sync::Arc::new(annals_engine::clock::SystemClock));
    let report = import_into(&alone, &sample_tree(), "sample");
    assert_eq!(turns as u64, report.totals().turns);
    assert_eq!(import_into(&engine, &sample_tree(), "sample").totals().new, 0);
}
