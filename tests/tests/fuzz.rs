//! The fuzz targets over their committed corpus and over mutations of it, on any toolchain and in a moment. How many
//! mutations of each file are tried is taken from `ANNALS_FUZZ_ROUNDS`, and which target alone from `ANNALS_FUZZ_TARGET`.
#![expect(clippy::unwrap_used, reason = "a corpus that cannot be read fails the test")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use annals_tests::fuzz::{TARGETS, Target};
use fastrand::Rng;

const ROUNDS: u64 = 300;

/// What small edits put in: what ends, escapes or separates, and second spellings of what a line may hold.
const PIECES: [&[u8]; 17] = [
    b"\n",
    b"\"",
    b"\\",
    b"%",
    b",",
    b"0",
    b"-",
    b"1",
    b"18446744073709551615",
    b"\0",
    b" ",
    b"{}",
    b"\xc3\xa9",
    b"\\ud800",
    b"1/2",
    b"%41",
    b"%c3%A9",
];

/// Files up to this many bytes are edited at every place.
const SMALL: usize = 512;

/// The same for targets that have a store of their own each time.
const SMALL_STORED: usize = 96;
const STORED: [&str; 8] =
    ["import", "codex", "gemini", "hermes", "arka", "follow", "mcp", "webhook"];

/// Feeds every file of a target's corpus as it is, cut at every length, with every small edit at every place, and with
/// several edits from a seed that is printed with the bytes when a promise breaks.
#[test]
fn corpus_and_mutations() {
    let rounds =
        std::env::var("ANNALS_FUZZ_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let only = std::env::var("ANNALS_FUZZ_TARGET").ok();
    for (name, target) in TARGETS {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let corpus = corpus(name);
        assert!(corpus.len() > 2, "the corpus of {name} is not there");
        let small = if STORED.contains(&name) { SMALL_STORED } else { SMALL };
        // Each of its inputs is a dozen imports: of mutations a third, and no small edits.
        let (rounds, small) = match name {
            "follow" => (rounds.div_ceil(3), 0),
            _ => (rounds, small),
        };
        for (at, file) in corpus.iter().enumerate() {
            for end in 0..=file.len() {
                run(name, target, &file[..end], end as u64);
            }
            if file.len() <= small {
                (0..=file.len()).for_each(|at| edit_at(name, target, file, at));
            }
            for round in 0..rounds {
                let seed = (at as u64) << 32 | round;
                run(name, target, &mutated(file, &corpus, seed), seed);
            }
        }
    }
}

/// Every bit flipped, the byte left out, and every piece put in.
fn edit_at(name: &str, target: Target, file: &[u8], at: usize) {
    let (before, after) = file.split_at(at);
    if let Some((byte, after)) = after.split_first() {
        (0..8)
            .for_each(|bit| run(name, target, &[before, &[byte ^ 1 << bit], after].concat(), bit));
        run(name, target, &[before, after].concat(), 8);
    }
    for (piece, number) in PIECES.iter().zip(9..) {
        run(name, target, &[before, piece, after].concat(), number);
    }
}

/// The same seed gives the same bytes, and different seeds do not give one edit over and over.
#[test]
fn mutations_repeat() {
    let corpus = corpus("line");
    let all: Vec<_> = (0..200).map(|seed| mutated(&corpus[0], &corpus, seed)).collect();
    let again: Vec<_> = (0..200).map(|seed| mutated(&corpus[0], &corpus, seed)).collect();
    assert_eq!(all, again);
    let distinct: std::collections::BTreeSet<_> = all.into_iter().collect();
    assert!(distinct.len() > 150, "{} of 200", distinct.len());
}

fn run(name: &str, target: Target, bytes: &[u8], seed: u64) {
    if catch_unwind(AssertUnwindSafe(|| target(bytes))).is_err() {
        panic!("{name}, seed {seed}: {:?}", String::from_utf8_lossy(bytes));
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus")).join(name);
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// One to four small edits.
fn mutated(file: &[u8], corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(seed);
    let mut bytes = file.to_vec();
    for _ in 0..=random.usize(..4) {
        edit(&mut bytes, corpus, &mut random);
    }
    bytes
}

fn edit(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Rng) {
    let at = random.usize(..=bytes.len());
    let end = (at + random.usize(..12)).min(bytes.len());
    match random.usize(..6) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.usize(..8),
        1 if at < bytes.len() => bytes[at] = random.u8(..),
        2 => drop(bytes.drain(at..end)),
        3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
        4 => {
            let piece = PIECES[random.usize(..PIECES.len())];
            drop(bytes.splice(at..end, piece.iter().copied()));
        }
        _ => {
            let other = &corpus[random.usize(..corpus.len())];
            let from = random.usize(..=other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}
