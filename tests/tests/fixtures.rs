//! Segments of format 1 that were written by hand and are never written again: the codec reads them as their author
//! meant them, whole and damaged. They lie in `engine/fixtures/format1`.
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read fails the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annals_engine::ErrorKind;
use annals_engine::clock::SystemClock;
use annals_engine::format::scan::{Piece, Scan};
use annals_engine::format::{self, LineFault, segment_first};
use annals_engine::id::{Crc, Seq};
use annals_engine::log::{Log, Options, repair, verify};
use annals_engine::storage::{Disk, Storage};
use annals_engine::store::{Append, Damage, EventStore, Followed, Item, Read, View};
use annals_tests::conformance::event;

/// Every line of the whole stores decodes and is written again byte for byte; positions and checksums form one chain
/// from segment to segment, and each file is named by its first position.
#[test]
fn whole_ones_are_ours_byte_for_byte() {
    for (store, segments, lines) in [("one-segment", 1, 9), ("two-segments", 2, 10)] {
        let files = segment_files(&format!("whole/{store}"));
        assert_eq!(files.len(), segments);
        let (mut seq, mut prev) = (Seq::ZERO, Crc::NONE);
        for file in &files {
            let bytes = fs::read(file).unwrap();
            assert_eq!(
                segment_first(file.file_name().unwrap().to_str().unwrap()),
                Some(seq.next())
            );
            let mut again = Vec::new();
            for (offset, _, piece) in Scan::new(&bytes) {
                let Piece::Line(line) = piece else {
                    panic!("{store}, offset {offset}: {piece:?}")
                };
                assert_eq!((line.fields.seq, line.fields.prev), (seq.next(), prev), "{store}");
                (seq, prev) = (line.fields.seq, line.crc);
                format::encode(&line.fields, &mut again);
            }
            assert_eq!(again, bytes, "{store}");
        }
        assert_eq!(seq, Seq(lines), "{store}");
    }
}

/// What stands in the fields of the whole stores that a chain does not show.
#[test]
fn whole_ones_say_what_their_author_meant() {
    let files = segment_files("whole/one-segment");
    let bytes = fs::read(&files[0]).unwrap();
    let lines: Vec<_> = Scan::new(&bytes)
        .map(|(_, _, piece)| match piece {
            Piece::Line(line) => line.fields,
            other => panic!("{other:?}"),
        })
        .collect();
    let [_, opened, user, answer, first, second, third, blob, mark] = lines.as_slice() else {
        panic!("{} lines", lines.len())
    };
    assert_eq!((opened.kind, opened.time.as_micros()), ("session.opened", 1_773_480_413_589_793));
    assert_eq!(user.stream, "agent:main:main");
    assert!(user.data.contains("Grüße, 世界 \\u2028 \\\"quoted\\\" \\\\ 🎛️"));
    assert_eq!(answer.stream, "telegram:!Room 1/é%");
    assert_eq!((answer.cause, answer.flow), (Some(user.id), None));
    assert_eq!(
        (first.batch, second.batch, third.batch),
        (Some((1, 3)), Some((2, 3)), Some((3, 3)))
    );
    assert_eq!((first.cause, first.flow, first.data), (Some(user.id), user.flow, "{}"));
    assert_eq!(first.id.0.get_version_num(), 8);
    assert_eq!((first.version.0, third.version.0, second.version.0), (3, 4, 1));
    let of = blob.blob.unwrap();
    assert_eq!((blob.stream.as_ref(), of.bytes), ("agent:main:subagent:雲", 15));
    let content = fs::read(folder("whole/one-segment").join(format::blob_path(&of.sha256_hex())));
    assert_eq!(content.unwrap(), br#""a long answer""#);
    assert_eq!((mark.kind, mark.durable), ("log.mark", blob.seq));
}

/// The pieces of each damaged segment, one word each: the position of a line that verifies, `(i/n)` behind it in a
/// batch, and of anything else what it is. Order, chain and watermark are not judged here.
#[test]
fn damaged_ones_in_pieces() {
    for (store, expected) in [
        ("bit-flip", "1 2 checksum 4 5 6"),
        ("bit-flip-at-the-end", "1 2 3 4 5 checksum"),
        ("bytes-after-a-seal", "1 2 3 4 5 checksum | 6 7 8 9(1/2) 10(2/2)"),
        ("deleted-line", "1 2 4 5 6"),
        ("duplicated-line", "1 2 3 3 4 5 6"),
        ("foreign-line", "1 2 3 4 5 6 foreign:seq"),
        ("foreign-spelling", "1 2 3 4 5 foreign:seq"),
        ("later-format", "1"),
        ("line-of-another-log", "1 2 3 4 5 6"),
        ("no-first-segment", "6 7 8 9(1/2) 10(2/2)"),
        ("nul-run-at-the-end", "1 2 3 4 5 6 rest:512"),
        ("nul-run-inside", "1 2 3 checksum 6"),
        ("shell-line", "1 2 3 4 5 6 checksum"),
        ("swapped-lines", "1 2 4 3 5 6"),
        ("torn-in-a-character", "1 2 3 4 5 rest:61"),
        ("torn-tail", "1 2 3 4 5 rest:175"),
        ("unfinished-batch", "1 2 3(1/3) 4(2/3)"),
    ] {
        let files = segment_files(&format!("damaged/{store}"));
        let pieces: Vec<String> =
            files.iter().map(|file| pieces(&fs::read(file).unwrap())).collect();
        assert_eq!(pieces.join(" | "), expected, "{store}");
    }
}

/// What verifying says of each store, which it does not change: class, file, offset, bytes, and the positions that are
/// missing.
#[test]
fn verdicts() {
    for (store, expected) in [
        ("whole/one-segment", ""),
        ("whole/two-segments", ""),
        ("damaged/bit-flip", "corrupt 1 574+215 3..3"),
        ("damaged/bit-flip-at-the-end", "torn 1 1219+215"),
        ("damaged/bytes-after-a-seal", "foreign 1 1332+33"),
        ("damaged/deleted-line", "lost 1 574+0 3..3"),
        ("damaged/duplicated-line", "misplaced 1 789+215"),
        ("damaged/foreign-line", "torn 1 1434+66"),
        ("damaged/foreign-spelling", "torn 1 1219+216"),
        ("damaged/line-of-another-log", "misplaced 1 789+220 4..4"),
        ("damaged/no-first-segment", "lost log 0+0 1..5"),
        ("damaged/nul-run-at-the-end", "torn 1 1434+512"),
        ("damaged/nul-run-inside", "corrupt 1 789+645 4..5"),
        ("damaged/shell-line", "torn 1 1434+14"),
        ("damaged/swapped-lines", "misplaced 1 574+215, lost 1 1004+0 4..4"),
        ("damaged/torn-in-a-character", "torn 1 1219+61"),
        ("damaged/torn-tail", "torn 1 1219+175"),
        ("damaged/unfinished-batch", "torn 1 573+475"),
    ] {
        let report = verify(&disk(&folder(store)), &mut |_| {}).unwrap();
        let found: Vec<String> = report.damages.iter().map(verdict).collect();
        assert_eq!(found.join(", "), expected, "{store}");
        assert_eq!(report.is_sound(), expected.is_empty() || expected.starts_with("torn"));
        // They are logs without lock files, and that is all there is to note.
        let [note] = report.notes.as_slice() else { panic!("{store}: {:?}", report.notes) };
        assert!(note.starts_with("lock.sync"), "{store}: {note}");
    }
    let later = verify(&disk(&folder("damaged/later-format")), &mut |_| {}).unwrap_err();
    assert_eq!(*later.kind(), ErrorKind::Unsupported);
}

/// Without lock files, the stamps in the lines alone say what is durable: reading ends there, following says so, and
/// the written view shows the rest.
#[test]
fn stamps_are_believed() {
    for (store, durable, written) in [("one-segment", 8, 9), ("two-segments", 7, 10)] {
        let disk = disk(&folder(&format!("whole/{store}")));
        let log = Log::open_read_only(disk, Options::default()).unwrap();
        for (view, expected) in [(View::Durable, durable), (View::Written, written)] {
            let read = Read::default().view(view);
            assert_eq!(
                log.read(read.clone()).unwrap().count() as u64,
                expected,
                "{store} {view:?}"
            );
            let end = log.end(view).unwrap().unwrap();
            assert_eq!(end.seq(), Seq(expected), "{store} {view:?}");
            let mut follower = log.follow(read).unwrap();
            let mut given = 0;
            let told = loop {
                match follower.next(None).unwrap() {
                    Followed::Item(_) => given += 1,
                    other => break other,
                }
            };
            assert_eq!(
                (given, told),
                (expected, Followed::CaughtUp(Some(end))),
                "{store} {view:?}"
            );
        }
    }
}

/// Opens a copy of each store with a torn tail: the tail lies in `torn/` byte for byte, what was whole is still in its
/// place, and appending goes on.
#[test]
fn torn_tails_are_set_aside() {
    for (store, whole, torn) in [
        ("bit-flip-at-the-end", 1_219, 215),
        ("foreign-line", 1_434, 66),
        ("foreign-spelling", 1_219, 216),
        ("nul-run-at-the-end", 1_434, 512),
        ("shell-line", 1_434, 14),
        ("torn-in-a-character", 1_219, 61),
        ("torn-tail", 1_219, 175),
        ("unfinished-batch", 573, 475),
    ] {
        let home = tempfile::tempdir().unwrap();
        copy(&folder(&format!("damaged/{store}")), home.path());
        let segment = home.path().join("log/00000000000000000001.jsonl");
        let before = fs::read(&segment).unwrap();
        assert_eq!(before.len(), whole + torn);

        let log = open(home.path());
        append(&log).unwrap();
        let after = fs::read(&segment).unwrap();
        assert_eq!(after[..whole], before[..whole], "{store}");
        let kept: Vec<PathBuf> = entries(&home.path().join("torn"));
        assert_eq!(fs::read(&kept[0]).unwrap(), before[whole..], "{store}");
        let recovered = String::from_utf8_lossy(&after[whole..]).into_owned();
        let named = format!("torn/{}", kept[0].file_name().unwrap().to_str().unwrap());
        assert!(recovered.contains("log.recovered") && recovered.contains(&named), "{store}");
        assert!(verify(&disk(home.path()), &mut |_| {}).unwrap().damages.is_empty(), "{store}");
    }
}

/// Opens a copy of each damaged store: appends are refused and no byte of the log is touched, reading gives a gap and
/// goes on behind it. After the damage was accepted, appends go ahead and the damaged bytes are still there.
#[test]
fn damage_is_left_alone_until_it_is_accepted() {
    for (store, readable) in [
        ("bit-flip", "1 2 gap 4 5 6"),
        ("deleted-line", "1 2 gap 4 5 6"),
        ("duplicated-line", "1 2 3 gap 4 5 6"),
        ("line-of-another-log", "1 2 3 gap 5 6"),
        ("nul-run-inside", "1 2 3 gap"),
        ("swapped-lines", "1 2 gap 3 gap 5 6"),
    ] {
        let home = tempfile::tempdir().unwrap();
        copy(&folder(&format!("damaged/{store}")), home.path());
        let segment = home.path().join("log/00000000000000000001.jsonl");
        let before = fs::read(&segment).unwrap();
        let log = open(home.path());
        assert_eq!(*append(&log).unwrap_err().kind(), ErrorKind::Corrupt, "{store}");
        assert_eq!(fs::read(&segment).unwrap(), before, "{store}");
        let read = log.read(Read::default().view(View::Written)).unwrap();
        let steps: Vec<String> = read
            .map(|item| match item.unwrap() {
                Item::Record(record) => record.seq.to_string(),
                Item::Gap(_) => "gap".to_owned(),
            })
            .collect();
        assert_eq!(steps.join(" "), readable, "{store}");
        drop(log);

        repair(disk(home.path()), Arc::new(SystemClock), Options::default(), "seen", &mut |_| {})
            .unwrap();
        append(&open(home.path())).unwrap();
        assert!(verify(&disk(home.path()), &mut |_| {}).unwrap().is_sound(), "{store}");
        assert!(fs::read(&segment).unwrap().starts_with(&before), "{store}");
    }
}

/// Class, file and place of a damage, and what it costs.
fn verdict(damage: &Damage) -> String {
    let file = damage.file.trim_start_matches("log/0000000000000000000").trim_end_matches(".jsonl");
    let seqs = damage.seqs.map_or(String::new(), |(first, last)| format!(" {first}..{last}"));
    format!("{} {file} {}+{}{seqs}", damage.class.code(), damage.offset, damage.bytes)
}

fn disk(folder: &Path) -> Arc<dyn Storage> {
    Arc::new(Disk::new(folder))
}

fn open(folder: &Path) -> Log {
    Log::open(disk(folder), Arc::new(SystemClock), Options::default()).unwrap()
}

fn append(log: &Log) -> annals_engine::Result<()> {
    let id = annals_engine::id::EventId::derived("key", "test", "1");
    log.append(Append::new(vec![event(id, "after", 1)])).map(drop)
}

#[expect(clippy::disallowed_methods, reason = "a fixture is copied before it is opened")]
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("log")).unwrap();
    fs::write(to.join("store.json"), fs::read(from.join("store.json")).unwrap()).unwrap();
    for file in entries(&from.join("log")) {
        let name = file.file_name().unwrap();
        fs::write(to.join("log").join(name), fs::read(&file).unwrap()).unwrap();
    }
}

fn pieces(bytes: &[u8]) -> String {
    let word = |(_, len, piece): (usize, usize, Piece<'_>)| match piece {
        Piece::Line(line) => match line.fields.batch {
            Some((index, count)) => format!("{}({index}/{count})", line.fields.seq),
            None => line.fields.seq.to_string(),
        },
        Piece::Bad(LineFault::Checksum) => "checksum".to_owned(),
        Piece::Bad(LineFault::Foreign(field)) => format!("foreign:{field}"),
        Piece::Bad(LineFault::TooLong) => "too-long".to_owned(),
        Piece::Rest => format!("rest:{len}"),
    };
    Scan::new(bytes).map(word).collect::<Vec<_>>().join(" ")
}

fn folder(store: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/fixtures/format1")).join(store)
}

fn segment_files(store: &str) -> Vec<PathBuf> {
    entries(&folder(store).join("log"))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
