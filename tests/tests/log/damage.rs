//! Bytes that change at rest: every flip of a bit, and whole lines that are taken away, doubled, exchanged or brought
//! from elsewhere. What is damaged is named with its place and class, and everything else is read.

use std::sync::Arc;

use annals_engine::ErrorKind;
use annals_engine::id::Seq;
use annals_engine::log::{Report, verify};
use annals_engine::storage::Storage;
use annals_engine::store::{Damage, DamageClass, EventStore, Item, Read, View};
use annals_tests::disk::Kernel;
use annals_tests::history::{Found, FoundLine, path, segments};

use super::machine::{Machine, event};

/// A store of a sealed segment, one more, and an active one with some events, at rest; no batch.
fn store() -> (Machine, Found) {
    let m = Machine::new(1).rolling_at(1_200);
    let client = m.open().unwrap();
    for n in 0..11 {
        client.append(vec![event(["s1", "s2"][n % 2], &n.to_string(), 40)]).unwrap();
    }
    drop(client);
    let found = m.disk.look(Found::read);
    assert_eq!(m.disk.look(segments).len(), 3);
    (m, found)
}

fn report(m: &Machine) -> Report {
    let storage: Arc<dyn Storage> = m.disk.process("verify");
    verify(&storage, &mut |_| {}).unwrap()
}

fn lines_of<'a>(found: &'a Found, segment: &str) -> Vec<&'a FoundLine> {
    found.lines.iter().filter(|line| line.segment == segment).collect()
}

fn end(line: &FoundLine) -> usize {
    line.offset + line.record.to_line().len()
}

/// The bits of a byte to flip: all when more runs are asked for, else one that moves on from byte to byte.
fn bits(at: usize) -> Vec<usize> {
    if std::env::var_os("ANNALS_SEEDS").is_some() { (0..8).collect() } else { vec![at % 8] }
}

/// Flips bits of a sealed and of the active segment. Verification names exactly the line, or the two lines that a
/// damaged line feed joins, as corrupt, with the positions that are missing; and nothing else.
#[test]
fn every_flip_in_a_segment_is_placed() {
    let (m, found) = store();
    let all = m.disk.look(segments);
    for segment in [&all[1], &all[2]] {
        let lines = lines_of(&found, segment);
        let name = path(segment);
        let bytes = m.disk.look(|kernel| kernel.bytes(&name).unwrap().to_vec());
        for at in 0..bytes.len() {
            let first = lines.iter().position(|line| at < end(line)).unwrap();
            let joins = at + 1 == end(lines[first]) && first + 1 < lines.len();
            let last = first + usize::from(joins);
            for bit in bits(at) {
                m.disk.meddle(|kernel| kernel.damage(&name, at, &[bytes[at] ^ 1 << bit]));
                let damages = report(&m).damages;
                let place = |d: &Damage| (d.class, d.file.clone(), d.offset, d.bytes, d.seqs);
                let expected = (
                    DamageClass::Corrupt,
                    name.clone(),
                    lines[first].offset as u64,
                    (end(lines[last]) - lines[first].offset) as u64,
                    Some((lines[first].record.seq, lines[last].record.seq)),
                );
                let found: Vec<_> = damages.iter().map(place).collect();
                assert_eq!(found, [expected], "bit {bit} of byte {at} of {segment}");
                m.disk.meddle(|kernel| kernel.damage(&name, at, &bytes[at..=at]));
            }
        }
    }
}

/// Flips bits of the slots of both lock files. The answers are the same: all events, no damage, and the next append goes
/// where it belongs.
#[test]
fn every_flip_in_a_slot_changes_no_answer() {
    let (m, found) = store();
    let next = found.lines.last().unwrap().record.seq.next();
    for name in ["lock.append", "lock.sync"] {
        let bytes = m.disk.look(|kernel| kernel.bytes(name).unwrap().to_vec());
        for (at, byte) in bytes.iter().enumerate() {
            for bit in bits(at) {
                let flipped = m.on(m.disk.fork());
                flipped.disk.meddle(|kernel| kernel.damage(name, at, &[byte ^ 1 << bit]));
                let client = flipped.open().unwrap();
                assert_eq!(flipped.disk.look(Found::read).lines, found.lines);
                let appended = client.append(vec![event("s1", "next", 5)]).unwrap();
                assert_eq!(appended.positions[0].seq, next, "bit {bit} of byte {at} of {name}");
                let wrong = flipped.check(&client.log, Some(&flipped.disk.look(Found::read)), &[]);
                assert!(wrong.is_empty(), "bit {bit} of byte {at} of {name}: {wrong:?}");
            }
        }
    }
}

/// Damage in a sealed segment refuses nothing but itself: the events around it are read, with a gap in its place, and
/// appends go on. Damage in the active segment refuses appends, with a report, and changes not a byte.
#[test]
fn reading_goes_on_around_damage() {
    let (m, found) = store();
    for (n, line) in found.lines.iter().enumerate().filter(|(_, line)| !line.is_control()) {
        let damaged = m.on(m.disk.fork());
        let name = path(&line.segment);
        let at = line.offset + 100;
        damaged.disk.meddle(|kernel| {
            let byte = kernel.bytes(&name).unwrap()[at];
            kernel.damage(&name, at, &[byte ^ 4]);
        });
        let before = damaged.disk.look(Kernel::files);
        let client = damaged.open().unwrap();
        let items = client.log.read(Read::default().view(View::Written)).unwrap();
        let seen: Vec<Result<Seq, (Seq, Seq)>> = items
            .map(|item| match item.unwrap() {
                Item::Record(record) => Ok(record.seq),
                Item::Gap(damage) => Err(damage.seqs.unwrap()),
            })
            .collect();
        let mut expected: Vec<_> = found.lines.iter().map(|line| Ok(line.record.seq)).collect();
        expected[n] = Err((line.record.seq, line.record.seq));
        assert_eq!(seen, expected);
        let appended = client.append(vec![event("s1", "new", 5)]);
        if name == path(segments_last(&damaged).as_str()) {
            let error = appended.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Corrupt, "{error}");
            assert_eq!(error.place().offset, Some(line.offset as u64), "{error}");
            assert_eq!(error.place().seq, Some(line.record.seq), "{error}");
            let now = damaged.disk.look(Kernel::files);
            assert_eq!(now.get(&name), before.get(&name));
        } else {
            appended.unwrap();
        }
    }
}

fn segments_last(m: &Machine) -> String {
    m.disk.look(segments).pop().unwrap()
}

/// What is done to the lines of a segment, and what verification says of it: class, index of the line at whose old
/// place it begins, and how many positions are missing.
type Edit = (&'static str, fn(&mut Vec<Vec<u8>>), &'static [(DamageClass, usize, u64)]);

const EDITS: &[Edit] = &[
    ("a line is deleted", |l| drop(l.remove(2)), &[(DamageClass::Lost, 2, 1)]),
    ("two lines are deleted", |l| drop(l.drain(1..3)), &[(DamageClass::Lost, 1, 2)]),
    ("a line stands twice", |l| l.insert(3, l[2].clone()), &[(DamageClass::Misplaced, 3, 0)]),
    (
        "two lines are exchanged",
        |l| l.swap(1, 2),
        &[(DamageClass::Misplaced, 1, 0), (DamageClass::Lost, 3, 1)],
    ),
    (
        "a line of another place is inserted",
        |l| l.insert(3, l[1].clone()),
        &[(DamageClass::Misplaced, 3, 0)],
    ),
    (
        "foreign text is inserted",
        |l| l.insert(2, b"{\"seq\":9,\"hello\":true}\n".to_vec()),
        &[(DamageClass::Corrupt, 2, 0)],
    ),
    (
        "a line of another program with a good checksum is inserted",
        |l| l.insert(2, another_programs_line()),
        &[(DamageClass::Foreign, 2, 0)],
    ),
    ("a line is zeroed", |l| l[2].fill(0), &[(DamageClass::Corrupt, 2, 2)]),
];

/// A line whose trailer is right and whose head is not in our form.
fn another_programs_line() -> Vec<u8> {
    let mut line = b"{\"hello\":\"world\"".to_vec();
    let crc = annals_engine::format::crc32(&line);
    line.extend_from_slice(&annals_engine::format::trailer(crc));
    line
}

/// Whole lines edited in a sealed segment and in the active one.
#[test]
fn edits_are_classed() {
    let (m, found) = store();
    let all = m.disk.look(segments);
    for segment in [&all[0], &all[1], &all[2]] {
        let lines = lines_of(&found, segment);
        for (what, edit, expected) in EDITS {
            let mut text: Vec<Vec<u8>> = lines.iter().map(|line| line.record.to_line()).collect();
            edit(&mut text);
            let edited = m.on(m.disk.fork());
            edited.disk.meddle(|kernel| kernel.put(&path(segment), text.concat()));
            let told: Vec<_> = report(&edited)
                .damages
                .iter()
                .map(|d| {
                    let line = lines.iter().position(|line| line.offset as u64 == d.offset);
                    let missing = d.seqs.map_or(0, |(first, last)| last.0 - first.0 + 1);
                    (d.class, line.unwrap_or(usize::MAX), missing)
                })
                .collect();
            assert_eq!(told, *expected, "{what} in {segment}");
        }
    }
}

/// A line, and a whole segment, of another log with the very same events in the same places; and segments that are gone.
#[test]
fn segments_of_another_log_and_none() {
    let ((m, found), (other, other_found)) = (store(), store());
    let all = m.disk.look(segments);
    let theirs = other.disk.look(|kernel| kernel.bytes(&path(&all[1])).unwrap().to_vec());
    let lines = lines_of(&found, &all[1]);
    let mut text: Vec<Vec<u8>> = lines.iter().map(|line| line.record.to_line()).collect();
    text[2] = lines_of(&other_found, &all[1])[2].record.to_line();
    let seqs = (lines[0].record.seq, lines.last().unwrap().record.seq);
    let (one, whole) = ((lines[2].record.seq, lines[2].record.seq), seqs);
    let last = lines_of(&found, &all[2]);
    let active = (last[0].record.seq, last.last().unwrap().record.seq);
    type Change<'a> = Box<dyn Fn(&mut Kernel) + 'a>;
    let changes: [(&str, Change<'_>, DamageClass, (Seq, Seq)); 4] = [
        (
            "a line of another log",
            Box::new(|kernel| kernel.put(&path(&all[1]), text.concat())),
            DamageClass::Misplaced,
            one,
        ),
        (
            "a segment of another log",
            Box::new(|kernel| kernel.put(&path(&all[1]), theirs.clone())),
            DamageClass::Misplaced,
            whole,
        ),
        (
            "a segment is gone",
            Box::new(|kernel| kernel.take(&path(&all[1]))),
            DamageClass::Lost,
            whole,
        ),
        (
            "the active segment is gone",
            Box::new(|kernel| kernel.take(&path(&all[2]))),
            DamageClass::Lost,
            active,
        ),
    ];
    for (what, change, class, seqs) in changes {
        let changed = m.on(m.disk.fork());
        changed.disk.meddle(change);
        let damages = report(&changed).damages;
        assert!(damages.iter().all(|d| d.class == class), "{what}: {damages:#?}");
        let told: Vec<_> = damages.iter().filter_map(|d| d.seqs).collect();
        assert_eq!(told, [seqs], "{what}: {damages:#?}");
    }
}
