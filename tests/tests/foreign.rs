//! The log needs none of our code to be checked: a program of a few lines in another language, which knows what
//! `annals_engine::format` says and nothing else, accepts what we write and finds what is damaged.
#![expect(clippy::unwrap_used, reason = "what cannot be set up fails the test")]
#![expect(clippy::disallowed_methods, reason = "a foreign program is started")]

use std::path::Path;
use std::process::Command;

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

/// What the checker says of a store, and whether it passed; `None` where there is no Python.
fn check(store: &Path) -> Option<Result<String, String>> {
    let script = Path::new(HERE).join("foreign/verify.py");
    let Ok(output) = Command::new("python3").arg(script).arg(store).output() else {
        eprintln!("skipped: there is no python3 to run a foreign checker with");
        return None;
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Some(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
}
