//! Segments of format 1 that were written by hand and are never written again: the codec reads them as their author
//! meant them, whole and damaged. They lie in `engine/fixtures/format1`.
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use annals_engine::format::scan::{Piece, Scan};
use annals_engine::format::{self, LineFault, segment_first};
use annals_engine::id::{Crc, Seq};

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
    let entries = fs::read_dir(folder(store).join("log")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
