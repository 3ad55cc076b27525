//! Each class of damage in a session: where it is, and what comes out all the same.

use std::io::Read as _;

use super::*;

/// The damages and the turns of a session of pi with these bytes, at offsets from the end of its header.
fn check(bytes: impl AsRef<[u8]>, expect: &[&str], turns: &[&str]) {
    let mut text = header("s", "09:00:00").into_bytes();
    let base = text.len() as u64;
    text.extend_from_slice(bytes.as_ref());
    let world = World::new();
    let tree = MemoryTree::new([("p/s.jsonl", text)]);
    let report = world.import(&tree, "p");
    let told = |d: &Damage| {
        format!("{} {}+{}/{}", d.class, d.offset.saturating_sub(base), d.bytes, d.recovered)
    };
    let got: Vec<String> = report.sources[0].damages.iter().map(told).collect();
    assert_eq!(got, expect);
    let said: Vec<String> =
        world.stream("pi:s").into_iter().filter(|t| !t.starts_with("opened")).collect();
    assert_eq!(said, turns);
    let events = world.records().iter().filter(|r| r.kind.as_str() == "import.damage").count();
    assert_eq!(events, expect.len(), "each damage is an event once");
    assert_eq!(world.import(&tree, "p").totals().new, 0);
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Goal: torn records are told from glued ones and from those that come again whole, which are there once. Method: the
/// beginning of a record at the end of the file, of a line, and glued to others; a whole record that comes twice.
#[test]
fn torn_and_repeated() {
    let (a, b) = (said("a", 1, "one"), said("b", 2, "two"));
    let torn = &b[..60];
    let len = a.len();
    let one = r#"user external "one""#;
    let two = r#"user external "two""#;
    check(joined(&[&a, torn]), &[&format!("torn_tail {}+60/0", len + 1)], &[one]);
    check(format!("{a}\n{torn}"), &[&format!("torn_tail {}+60/0", len + 1)], &[one]);
    check(joined(&[&a, torn, &b]), &[&format!("torn_line {}+60/0", len + 1)], &[one, two]);
    check(joined(&[torn, &a]), &["torn_line 0+60/0"], &[one]);
    check(joined(&[&format!("{torn}{a}")]), &["torn_glued 0+60/0"], &[one]);
    let both = format!("{a}{b}");
    check(joined(&[&both]), &[&format!("glued 0+{}/2", both.len())], &[one, two]);
    check(joined(&[&a, &b, &a]), &[&format!("duplicate {}+{len}/0", 2 * len + 2)], &[one, two]);
    let again = joined(&[&a, &b, &a, &b]);
    check(&again, &[&format!("duplicate {}+{}/0", 2 * len + 2, 2 * len + 1)], &[one, two]);
}

/// Goal: bytes that no JSON reader takes do not cost a record that can be read. Method: one record with each fault.
#[test]
fn mended() {
    let line = said("a", 1, "x@y");
    let len = line.len();
    let at = line.find('@').unwrap();
    let with = |text: &[u8]| {
        let mut bytes = line.as_bytes().to_vec();
        bytes.splice(at..=at, text.iter().copied());
        bytes.push(b'\n');
        bytes
    };
    let said = |text: &str| format!("user external {text}");
    let told = |class: &str, bytes: usize| format!("{class} {at}+{bytes}/1");
    check(with(b"\\ud83d"), &[&told("lone_surrogate", 6)], &[&said("\"x\u{fffd}y\"")]);
    check(with(b"\\ud83d\\ude00"), &[], &[&said("\"x\u{1f600}y\"")]);
    check(with(b"\xff"), &[&told("invalid_utf8", 1)], &[&said("\"x\u{fffd}y\"")]);
    check(with(b"\t"), &[&told("raw_control", 1)], &[&said(r#""x\ty""#)]);
    check(with(b"\0"), &[&told("nul_run", 1)], &[&said(r#""x\u0000y""#)]);
    check(with(b"\n"), &[&format!("raw_newline 0+{len}/1")], &[&said(r#""x\ny""#)]);
    check(
        with(b"\",\"n\":1e999,\"m\":\""),
        &[&format!("number_out_of_range {}+5/1", at + 6)],
        &[&said("\"x\"")],
    );
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let nested = with(format!("\",\"n\":{deep},\"m\":\"").as_bytes());
    check(nested, &[&format!("too_deep {}+84/1", at + 6 + 58)], &[&said("\"x\"")]);
    check(
        with(b"\",\"content\":\"z"),
        &[&format!("duplicate_key {}+9/1", at + 2)],
        &[&said("\"zy\"")],
    );
}

/// Goal: lines that hold no record are told and cost nothing else. Method: one of each between two records.
#[test]
fn no_records() {
    let (a, b) = (said("a", 1, "one"), said("b", 2, "two"));
    let at = a.len() + 1;
    let turns = [r#"user external "one""#, r#"user external "two""#];
    for (line, class) in [
        ("{this is no json}", "invalid_json"),
        ("plain words", "invalid_json"),
        ("42", "wrong_type"),
        ("\"text\"", "wrong_type"),
        ("[1]", "wrong_type"),
        ("\0\0\0", "nul_run"),
    ] {
        let told = format!("{class} {at}+{}/0", line.len());
        check(joined(&[&a, line, &b]), &[&told], &turns);
    }
}

/// Goal: odd stories are told and every record of them is kept. Method: a clock that goes back, a parent that is not
/// there, an id for two records, calls without results and results without calls.
#[test]
fn odd_stories() {
    let (late, early) = (said("a", 9, "late"), said("b", 1, "early"));
    let turns = [r#"user external "late""#, r#"user external "early""#];
    let told = format!("clock_back {}+{}/1", late.len() + 1, early.len());
    check(joined(&[&late, &early]), &[&told], &turns);
    let orphan = said("a", 1, "late").replace("\"parentId\":null", "\"parentId\":\"gone\"");
    check(joined(&[&orphan]), &[&format!("orphan_parent 0+{}/1", orphan.len())], &turns[..1]);
    let (first, other) = (said("a", 1, "late"), said("a", 2, "early"));
    let told = format!("id_reused {}+{}/1", first.len() + 1, other.len());
    check(joined(&[&first, &other]), &[&told], &turns);
    let call = r#"{"type":"message","id":"c","timestamp":"2026-03-01T09:00:01Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"x"},{"type":"toolCall","id":"y"}]}}"#;
    let result = r#"{"type":"message","id":"d","timestamp":"2026-03-01T09:00:02Z","message":{"role":"toolResult","toolCallId":"z","content":"r"}}"#;
    check(
        joined(&[call, result]),
        &[
            &format!("orphan_result {}+{}/1", call.len() + 1, result.len()),
            &format!("unanswered_call 0+{}/1", call.len()),
        ],
        &[
            r#"assistant internal [{"id":"x","type":"toolCall"},{"id":"y","type":"toolCall"}]"#,
            r#"toolResult internal "r""#,
        ],
    );
}

/// Goal: what is wrong with a whole file is told. Method: a header alone, entries alone, a file of another program under
/// the name, an empty file, a byte order mark.
#[test]
fn whole_files() {
    let world = World::new();
    let tree = MemoryTree::new([
        ("o/agents/main/sessions/alone.jsonl", header("alone", "09:00:00")),
        (
            "o/agents/main/sessions/bom.jsonl",
            format!("\u{feff}{}", session("bom", &[&said("a", 1, "x")])),
        ),
        ("o/agents/main/sessions/empty.jsonl", String::new()),
        ("o/agents/main/sessions/headless.jsonl", said("a", 1, "x")),
        (
            "o/agents/main/sessions/other.jsonl",
            "{\"parentUuid\":null,\"sessionId\":\"other\",\"type\":\"user\",\"message\":{}}\n"
                .to_owned(),
        ),
    ]);
    let report = world.import(&tree, "o");
    let mut got = damages(&report);
    got.sort();
    let folder = "agents/main/sessions";
    let alone = header("alone", "09:00:00").len();
    assert_eq!(
        got,
        [
            format!("byte_order_mark {folder}/bom.jsonl 0+3/1"),
            format!("empty_file {folder}/empty.jsonl 0+0/0"),
            format!("header_only {folder}/alone.jsonl 0+{alone}/1"),
            format!("missing_header {folder}/headless.jsonl 0+0/0"),
            format!("wrong_format {folder}/other.jsonl 0+67/0"),
        ]
    );
    assert_eq!(world.stream("openclaw:headless"), ["opened headless", r#"user external "x""#]);
    assert_eq!(world.stream("openclaw:bom"), ["opened bom", r#"user external "x""#]);
    assert_eq!(world.stream("openclaw:other"), [""; 0], "nothing of another program's file");
}

/// Goal: the structure of any program's files can be examined. Method: a file with what no program means.
#[test]
fn examined() {
    let text = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}{\"type\":\"x\"}\n[1]\n{\"type\":1}\n{\"type\":\"us";
    let tree = MemoryTree::new([("f.jsonl", text)]);
    let found = examine(&tree, Path::new("f.jsonl")).unwrap();
    assert_eq!((found.records, found.bytes), (3, text.len() as u64));
    let told = |d: &Damage| format!("{} {}+{}/{}", d.class, d.offset, d.bytes, d.recovered);
    assert_eq!(
        found.damages.iter().map(told).collect::<Vec<_>>(),
        ["glued 0+67/2", "wrong_type 68+3/0", "wrong_type 72+10/1", "torn_tail 83+11/0",]
    );
}

/// Numbers that are the same for the same seed (Knuth, "The Art of Computer Programming", volume 2, MMIX).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

fn spoil(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    const PIECES: [&[u8]; 10] = [
        b"\n",
        b"\0\0",
        b"\"",
        b"{\"",
        b"}",
        b"\\ud800",
        b"\xff",
        b"1e999",
        b"{\"type\":\"message\"}",
        b"\r\n",
    ];
    let at = numbers.below(bytes.len());
    match numbers.below(6) {
        0 => bytes[at] ^= 1 << numbers.below(8),
        1 => bytes.truncate(at),
        2 => drop(bytes.drain(at..(at + numbers.below(200)).min(bytes.len()))),
        3 => drop(bytes.splice(at..at, PIECES[numbers.below(PIECES.len())].iter().copied())),
        4 => {
            let copy = bytes[at..(at + numbers.below(900)).min(bytes.len())].to_vec();
            bytes.extend_from_slice(&copy);
        }
        _ => {
            if let Some(feed) = bytes[at..].iter().position(|b| *b == b'\n') {
                bytes.remove(at + feed);
            }
        }
    }
}

/// Goal: whatever is done to a transcript, importing it ends well, accounts for every byte, and adds nothing the second
/// time. Method: the sample's longest transcript under one to four random edits, six hundred times; the bytes that no
/// event was made from and no damage names are white space.
#[test]
fn every_byte_is_accounted_for() {
    let path = "sample/agents/demo/sessions/6b0f3a52-1c84-4d7e-9a51-0c2d7e1f4a01.jsonl";
    let mut whole = Vec::new();
    sample_tree().open(Path::new(path)).unwrap().read_to_end(&mut whole).unwrap();
    for seed in 0..600 {
        let mut numbers = Numbers(seed);
        let mut bytes = whole.clone();
        for _ in 0..=numbers.below(4) {
            if !bytes.is_empty() {
                spoil(&mut bytes, &mut numbers);
            }
        }
        let world = World::new();
        let tree = MemoryTree::new([("o/agents/main/sessions/s.jsonl", bytes.clone())]);
        let report = world.import(&tree, "o");
        let mut told = vec![false; bytes.len()];
        let mut cover = |offset: u64, len: u64| {
            let offset = usize::try_from(offset).unwrap();
            told[offset..offset + usize::try_from(len).unwrap()].fill(true);
        };
        for damage in &report.sources[0].damages {
            cover(damage.offset, damage.bytes);
        }
        for record in world.records() {
            let data: Value = serde_json::from_str(record.data.as_str()).unwrap();
            if let Some(offset) = data["source"]["offset"].as_u64() {
                cover(offset, data["source"]["bytes"].as_u64().unwrap());
            }
        }
        let lost = bytes.iter().zip(&told).position(|(b, told)| !told && !b.is_ascii_whitespace());
        assert_eq!(lost, None, "seed {seed}");
        assert_eq!(world.import(&tree, "o").totals().new, 0, "seed {seed}");
    }
}

/// A pipe under the name of a file that is looked for is refused at once: nobody waits for somebody to write to it.
#[test]
fn a_pipe_is_no_file() {
    use crate::import::{DiskTree, SourceTree};
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("sessions.json");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let error = DiskTree.open(&pipe).err().unwrap();
    assert_eq!(error.to_string(), "this is no ordinary file");
}
