//! Damage that an operator accepts: before, appends are refused with a report; after, a new segment says what is
//! missing, and nobody is asked again.

use std::sync::Arc;

use annals_engine::format::control::{self, Gap};
use annals_engine::log::{Accepted, Options, repair, verify};
use annals_engine::store::{EventStore, Item, Read, View};
use annals_engine::{ErrorKind, Result};
use annals_tests::disk::{Kernel, Loss, SimDisk};
use annals_tests::history::{Found, path, segments};

use super::machine::{Machine, event};

/// A store whose active segment has a flipped bit in one of its lines, with the place of that line.
fn damaged() -> (Machine, Found, usize) {
    let m = Machine::new(1);
    let client = m.open().unwrap();
    for n in 0..8 {
        client.append(vec![event("s1", &n.to_string(), 40)]).unwrap();
    }
    drop(client);
    let found = m.disk.look(Found::read);
    let index = 4;
    let at = found.lines[index].offset + 150;
    m.disk.meddle(|kernel| {
        let name = path(&segments(kernel)[0]);
        let byte = kernel.bytes(&name).unwrap()[at];
        kernel.damage(&name, at, &[byte ^ 1]);
    });
    m.power_loss(&Loss::Nothing);
    (m, found, index)
}

fn accept(m: &Machine) -> Result<Accepted> {
    let storage = m.disk.process("repair");
    let clock = Arc::clone(&m.clock);
    repair(storage, clock, Options::default(), "the disk was replaced", &mut |_| {})
}

/// Every event but the one that is damaged, and one gap in its place, accepted or not.
fn check_reading(m: &Machine, found: &Found, index: usize, accepted: bool) {
    let client = m.open().unwrap();
    let items = client.log.read(Read::default().view(View::Written)).unwrap();
    let (mut seen, mut gaps) = (Vec::new(), Vec::new());
    for item in items {
        match item.unwrap() {
            Item::Record(record) => seen.push(*record),
            Item::Gap(damage) => gaps.push(damage),
        }
    }
    let mut expected: Vec<_> = found.lines.iter().map(|line| line.record.clone()).collect();
    let lost = expected.remove(index);
    assert_eq!(seen[..expected.len()], expected);
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!((gaps[0].seqs, gaps[0].accepted), (Some((lost.seq, lost.seq)), accepted));
}

/// Refused with the place, then accepted, then as if nothing had been: a new segment with `log.gap`, the damaged bytes
/// where they were and copied, appends at positions that were never used, and later openings that do not ask.
#[test]
fn accepted_once_and_for_all() {
    let (m, found, index) = damaged();
    let segment = m.disk.look(segments).remove(0);
    let bytes = m.disk.look(|kernel| kernel.bytes(&path(&segment)).unwrap().to_vec());
    let error = m.open().unwrap().append(vec![event("s1", "new", 5)]).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.place().seq, Some(found.lines[index].record.seq), "{error}");
    assert_eq!(error.place().offset, Some(found.lines[index].offset as u64), "{error}");
    check_reading(&m, &found, index, false);

    let accepted = accept(&m).unwrap();
    assert_eq!(accepted.accepted.len(), 1);
    let all = m.disk.look(segments);
    assert_eq!(all.len(), 2, "a new segment");
    assert_eq!(m.disk.look(|kernel| kernel.bytes(&path(&segment)).unwrap().to_vec()), bytes);
    let line = &found.lines[index];
    let damaged = &bytes[line.offset..line.offset + line.record.to_line().len()];
    let copy = m.disk.look(|kernel| kernel.bytes(&accepted.copies[0]).unwrap().to_vec());
    assert_eq!(copy, damaged);

    check_reading(&m, &found, index, true);
    let last = found.lines.last().unwrap().record.seq;
    for text in ["new", "newer"] {
        let client = m.open().unwrap();
        let position = client.append(vec![event("s1", text, 5)]).unwrap().positions.remove(0);
        assert!(position.seq > last, "a position of its own");
        assert_eq!(position.version.0, if text == "new" { 9 } else { 10 });
    }
    let storage = m.disk.process("verify");
    let report = verify(&(storage as _), &mut |_| {}).unwrap();
    assert!(report.is_sound(), "{report:?}");
    let again = accept(&m).unwrap();
    assert!(again.accepted.is_empty() && m.disk.look(segments) == all, "nothing left to accept");
    let gaps = gap_lines(&m);
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!((gaps[0].from_seq, gaps[0].to_seq), (line.record.seq.0, line.record.seq.0));
    assert_eq!(gaps[0].reason, "the disk was replaced");
}

/// The power fails at any call of a repair. The next repair brings the store to the same answers.
#[test]
fn power_loss_at_every_call_of_a_repair() {
    let (m, found, index) = damaged();
    let repairing = m.on(m.disk.fork());
    repairing.disk.keep_images();
    accept(&repairing).unwrap();
    for image in repairing.disk.take_images() {
        for loss in (0..4).map(Loss::Seed).chain([Loss::Everything, Loss::Nothing]) {
            let after = m.on(SimDisk::booted(image.kernel().after_power_loss(&loss)));
            let place = format!("{loss:?} before call {}: {:?}", image.number, image.call);
            accept(&after).unwrap_or_else(|error| panic!("{place}: {error}"));
            check_reading(&after, &found, index, true);
            let client = after.open().unwrap();
            client.append(vec![event("s1", "new", 5)]).unwrap();
            let gaps = gap_lines(&after);
            assert_eq!(gaps.len(), 1, "{place}: {gaps:?}");
        }
    }
}

/// Whatever the segment and the line: after a repair every other event is read, and appends go on.
#[test]
fn any_line_of_any_segment() {
    let m = Machine::new(1).rolling_at(1_200);
    let client = m.open().unwrap();
    for n in 0..11 {
        client.append(vec![event(["s1", "s2"][n % 2], &n.to_string(), 40)]).unwrap();
    }
    drop(client);
    let found = m.disk.look(Found::read);
    for (index, line) in found.lines.iter().enumerate() {
        let damaged = m.on(m.disk.fork());
        let at = line.offset + 120;
        damaged.disk.meddle(|kernel| {
            let name = path(&line.segment);
            let byte = kernel.bytes(&name).unwrap()[at];
            kernel.damage(&name, at, &[byte ^ 1]);
        });
        accept(&damaged).unwrap_or_else(|error| panic!("line {index}: {error}"));
        check_reading(&damaged, &found, index, true);
        let client = damaged.open().unwrap();
        client.append(vec![event("s1", "new", 5)]).unwrap_or_else(|e| panic!("line {index}: {e}"));
        assert_eq!(gap_lines(&damaged).len(), 1);
    }
}

/// Every `log.gap` in the files, wherever it stands.
fn gap_lines(m: &Machine) -> Vec<Gap> {
    use annals_engine::format::scan::{Piece, Scan};
    let gaps = |kernel: &Kernel| {
        let mut gaps = Vec::new();
        for segment in segments(kernel) {
            for (_, _, piece) in Scan::new(kernel.bytes(&path(&segment)).unwrap()) {
                if let Piece::Line(line) = piece
                    && line.fields.kind == control::GAP
                {
                    gaps.push(serde_json::from_str(line.fields.data).unwrap());
                }
            }
        }
        gaps
    };
    m.disk.look(gaps)
}
