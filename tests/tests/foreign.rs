//! The log needs none of our code to be checked: a program of a few lines in another language, which knows what
//! `annals_engine::format` says and nothing else, accepts what we write and finds what is damaged.
#![expect(clippy::unwrap_used, reason = "what cannot be set up fails the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "a foreign program is started, and its input is damaged"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use annals_engine::clock::SystemClock;
use annals_engine::format::Payload;
use annals_engine::id::EventId;
use annals_engine::log::{Log, Options, repair, verify};
use annals_engine::storage::{Disk, Storage};
use annals_engine::store::{Append, EventStore};
use annals_tests::conformance::event;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Runs the checker over the fixtures: whole stores pass with the number of their lines, damaged ones fail at the
/// segment and offset where the first line that does not fit begins. The unfinished batch passes because the checker
/// does not look at batches, and the later format because it does not read headers.
#[test]
fn fixtures() {
    for (store, expected) in [
        ("whole/one-segment", Ok("9 lines, last checksum c6bfa650")),
        ("whole/two-segments", Ok("10 lines, last checksum d1ffa252")),
        ("damaged/bit-flip", Err("00000000000000000001.jsonl: offset 574")),
        ("damaged/bit-flip-at-the-end", Err("00000000000000000001.jsonl: offset 1219")),
        ("damaged/bytes-after-a-seal", Err("00000000000000000001.jsonl: offset 1332")),
        ("damaged/deleted-line", Err("00000000000000000001.jsonl: offset 574")),
        ("damaged/duplicated-line", Err("00000000000000000001.jsonl: offset 789")),
        ("damaged/foreign-line", Err("00000000000000000001.jsonl: offset 1434")),
        ("damaged/foreign-spelling", Err("00000000000000000001.jsonl: offset 1219")),
        ("damaged/later-format", Ok("1 lines, last checksum 8878dc5d")),
        ("damaged/line-of-another-log", Err("00000000000000000001.jsonl: offset 789")),
        ("damaged/no-first-segment", Err("00000000000000000006.jsonl: offset 0")),
        ("damaged/nul-run-at-the-end", Err("00000000000000000001.jsonl: offset 1434")),
        ("damaged/nul-run-inside", Err("00000000000000000001.jsonl: offset 789")),
        ("damaged/shell-line", Err("00000000000000000001.jsonl: offset 1434")),
        ("damaged/swapped-lines", Err("00000000000000000001.jsonl: offset 574")),
        ("damaged/torn-in-a-character", Err("00000000000000000001.jsonl: offset 1219")),
        ("damaged/torn-tail", Err("00000000000000000001.jsonl: offset 1219")),
        ("damaged/unfinished-batch", Ok("4 lines, last checksum f5bfc984")),
    ] {
        let folder = Path::new(HERE).join("../engine/fixtures/format1").join(store);
        let Some(found) = check(&folder) else { return };
        match (&found, expected) {
            (Ok(said), Ok(expected)) => assert_eq!(said.trim(), expected, "{store}"),
            (Err(said), Err(expected)) => assert!(said.contains(expected), "{store}: {said}"),
            _ => panic!("{store}: {found:?}"),
        }
    }
}

/// A store that the program wrote, over many segments, passes with as many lines as we count ourselves; with one bit
/// of it flipped it does not.
#[test]
fn a_real_store() {
    let home = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Storage> = Arc::new(Disk::new(home.path()));
    let options = Options { segment_bytes: 8_000, ..Options::default() };
    let log = Log::open(Arc::clone(&disk), Arc::new(SystemClock), options).unwrap();
    for n in 0..40 {
        let id = |i: u64| EventId::derived("key", "test", &format!("{n}.{i}"));
        let batch = (0..=n % 5).map(|i| event(id(i), &format!("Räume/{i} %"), n)).collect();
        log.append(Append::new(batch)).unwrap();
    }
    drop(log);
    let report = verify(&disk, &mut |_| {}).unwrap();
    assert!(report.segments > 3 && report.is_sound());
    let Some(found) = check(home.path()) else { return };
    let (_, crc, _) = report.last.unwrap();
    assert_eq!(found.unwrap().trim(), format!("{} lines, last checksum {crc}", report.lines));

    let segment = home.path().join("log/00000000000000000001.jsonl");
    let whole = fs::read(&segment).unwrap();
    fs::remove_file(&segment).unwrap();
    for bit in (0..whole.len() * 8).step_by(whole.len() / 3 * 8 + 1) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&segment, flipped).unwrap();
        assert!(check(home.path()).unwrap().is_err(), "bit {bit}");
    }
}

/// What an operator has accepted is passed over and counted, whatever it is, and files of another name are no segments.
/// Damage that nobody has accepted, to a line or to a content that lies apart, is found.
#[test]
fn a_repaired_store() {
    let accept = |home: &Path| {
        let disk: Arc<dyn Storage> = Arc::new(Disk::new(home));
        let clock = Arc::new(SystemClock);
        repair(disk, clock, Options::default(), "a test", &mut |_| {}).unwrap();
    };
    let filled = |segment_bytes: u64| {
        let home = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Storage> = Arc::new(Disk::new(home.path()));
        let options = Options { segment_bytes, ..Options::default() };
        let log = Log::open(disk, Arc::new(SystemClock), options).unwrap();
        for n in 0..40 {
            let id = EventId::derived("key", "test", &format!("{n}"));
            log.append(Append::new(vec![event(id, "a", n)])).unwrap();
        }
        let mut big = event(EventId::derived("key", "test", "big"), "a", 40);
        let text = "x".repeat(2 << 20);
        big.data = Payload::from_json(&format!("{{\"content\":\"{text}\"}}")).unwrap();
        log.append(Append::new(vec![big])).unwrap();
        home
    };
    let segments = |home: &Path| {
        let entries = fs::read_dir(home.join("log")).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> =
            entries.filter(|path| path.extension().unwrap() == "jsonl").collect();
        paths.sort();
        paths
    };
    type Damage<'a> = (&'a str, u64, &'a dyn Fn(&Path));
    let damage: [Damage<'_>; 5] = [
        ("a line of a full segment", 3_000, &|home| flip(&segments(home)[1], 3)),
        ("a line of the active segment", 1 << 20, &|home| flip(&segments(home)[0], 3)),
        ("the last line", 1 << 20, &|home| flip(&segments(home)[0], 41)),
        ("a segment", 3_000, &|home| fs::remove_file(&segments(home)[1]).unwrap()),
        ("a content", 3_000, &|home| {
            let folder = fs::read_dir(home.join("blobs")).unwrap().next().unwrap().unwrap();
            let content = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
            fs::write(content.path(), "other").unwrap();
        }),
    ];
    for (what, segment_bytes, damage) in damage {
        let home = filled(segment_bytes);
        fs::write(home.path().join("log/backup.jsonl"), "{}\n").unwrap();
        let Some(before) = check(home.path()) else { return };
        assert!(!before.unwrap().contains("accepted"), "{what}");
        damage(home.path());
        assert!(check(home.path()).unwrap().is_err(), "{what}");
        accept(home.path());
        let said = check(home.path()).unwrap().unwrap_or_else(|said| panic!("{what}: {said}"));
        assert!(said.contains(", 1 accepted gaps"), "{what}: {said}");
    }
}

/// Flips a bit of a line.
fn flip(segment: &Path, line: usize) {
    let mut bytes = fs::read(segment).unwrap();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let at = lines.take(line).map(<[u8]>::len).sum::<usize>();
    bytes[at + 40] ^= 1;
    fs::remove_file(segment).unwrap();
    fs::write(segment, bytes).unwrap();
}

/// What the checker says of a store, and whether it passed; `None` where there is no Python.
fn check(store: &Path) -> Option<Result<String, String>> {
    let script = Path::new(HERE).join("foreign/verify.py");
    let Ok(output) = Command::new("python3").arg(script).arg(store).output() else {
        // Not by a macro: what those write is not shown of a test that passes.
        let said = b"skipped: there is no python3 to run a foreign checker with\n";
        std::io::stderr().write_all(said).unwrap();
        return None;
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
}
