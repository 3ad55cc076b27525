//! Assumption 4: writes that are short or find no room, reads that fail or are short; and the record of calls.

use std::io::ErrorKind;

use annals_engine::storage::{Access, File, Storage, read_full, write_full};
use annals_tests::disk::{Call, Chances, EIO, ENOSPC, Effect, Op, Rule};

use super::{machine, synced};

fn writes(call: &Call) -> bool {
    call.writes("")
}

/// A rule strikes the n-th call that it meets, or all from the n-th.
#[test]
fn nth_and_from() {
    let (disk, view) = machine();
    let file = synced(&view, "f", b"");
    let ok = |file: &dyn File| (0..4).map(|_| file.write_at(b"x", 0).is_ok()).collect::<Vec<_>>();
    disk.rule(Rule::new(writes, Effect::Fail(ENOSPC)).nth(1));
    assert_eq!(ok(&*file), [true, false, true, true]);
    disk.clear_rules();
    disk.rule(Rule::new(writes, Effect::Fail(ENOSPC)).from(2));
    assert_eq!(ok(&*file), [true, true, false, false]);
    assert_eq!(file.write_at(b"x", 0).unwrap_err().kind(), ErrorKind::StorageFull);
}

/// A full disk takes what fits, then nothing; overwriting needs no room; cutting gives room back.
#[test]
fn room() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 10]);
    disk.meddle(|kernel| kernel.set_room(Some(5)));
    assert_eq!(file.write_at(&[2; 8], 10).unwrap(), 5);
    assert_eq!(file.write_at(&[2; 8], 15).unwrap_err().raw_os_error(), Some(ENOSPC));
    assert_eq!(file.write_at(&[3; 8], 0).unwrap(), 8);
    file.truncate(10).unwrap();
    assert_eq!(file.write_at(&[2; 8], 10).unwrap(), 5);
    disk.meddle(|kernel| kernel.set_room(None));
    assert_eq!(file.write_at(&[2; 8], 15).unwrap(), 8);
}

/// Short writes leave exactly so many bytes; loops that go on finish all the same.
#[test]
fn short_writes_and_reads() {
    let (disk, view) = machine();
    let file = synced(&view, "f", b"");
    disk.rule(Rule::new(writes, Effect::Short(3)));
    assert_eq!(file.write_at(b"abcdefg", 0).unwrap(), 3);
    assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap().to_vec()), b"abc");
    write_full(&*file, b"abcdefg", 0).unwrap();
    disk.rule(Rule::new(|call| matches!(call.op, Op::ReadAt { .. }), Effect::Short(2)));
    let mut bytes = [0; 7];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 2);
    assert_eq!(read_full(&*file, &mut bytes, 0).unwrap(), 7);
    assert_eq!(&bytes, b"abcdefg");
    disk.clear_rules();
    disk.rule(Rule::new(|call| matches!(call.op, Op::ReadAt { .. }), Effect::Fail(EIO)));
    assert_eq!(file.read_at(&mut bytes, 0).unwrap_err().raw_os_error(), Some(EIO));
}

/// Short reads and writes by chance never lie about how much they did.
#[test]
fn short_by_chance() {
    let (disk, view) = machine();
    let file = synced(&view, "f", b"");
    disk.set_chances(Chances { short_read: 0.7, short_write: 0.7, ..Chances::default() });
    let bytes: Vec<u8> = (0..=255).collect();
    write_full(&*file, &bytes, 0).unwrap();
    let mut read = vec![0; 256];
    assert_eq!(read_full(&*file, &mut read, 0).unwrap(), 256);
    assert_eq!(read, bytes);
}

/// Every call is recorded in order, with its name, offset and length and the kind of its error.
#[test]
fn the_record() {
    let (disk, view) = machine();
    let file = view.open("f", Access::WriteOrCreate).unwrap();
    file.write_at(b"abc", 7).unwrap();
    view.stat("g").unwrap_err();
    let record: Vec<String> = disk.trace().iter().map(ToString::to_string).collect();
    assert_eq!(
        record,
        [
            "0 Open(WriteOrCreate) f",
            "0 WriteAt { offset: 7, len: 3 } f",
            "0 Stat g: entity not found"
        ]
    );
}

/// An image is kept before each call that changes something; a write in it can be left at any byte.
#[test]
fn images() {
    let (disk, view) = machine();
    let file = synced(&view, "f", b"abc");
    disk.keep_images();
    file.size().unwrap();
    file.write_at(b"XYZ", 1).unwrap();
    file.sync_data().unwrap();
    let images = disk.take_images();
    assert_eq!(images.len(), 2);
    assert_eq!(images[0].kernel().bytes("f").unwrap(), b"abc");
    assert_eq!(images[0].write_len(), 3);
    assert_eq!(images[0].partly(2).bytes("f").unwrap(), b"aXY");
    assert_eq!(images[1].kernel().bytes("f").unwrap(), b"aXYZ");
    assert!(images[1].kernel().is_dirty("f"));
}
