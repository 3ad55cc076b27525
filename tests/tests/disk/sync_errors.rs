//! Assumption 1, its second half: a sync that failed promises nothing, and who is told of it.

use annals_engine::storage::{Access, Storage, read_full, write_full};
use annals_tests::disk::{
    Cache, Call, Chances, EIO, Effect, Loss, Persisted, Rule, SimDisk, SyncFault, View,
};

use super::{machine, synced};

const LOST: SyncFault =
    SyncFault { persisted: Persisted::Nothing, cache: Cache::Clean, recorded: true, errno: EIO };

fn fail_next_sync(disk: &SimDisk, fault: SyncFault) {
    disk.clear_rules();
    disk.rule(Rule::new(|call: &Call| call.syncs(""), Effect::Sync(fault)).nth(0));
}

fn content(view: &View) -> Vec<u8> {
    let file = view.open("f", Access::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    read_full(&*file, &mut bytes, 0).unwrap();
    bytes
}

/// The kernel took the lost data for written: the next sync succeeds, reads give the data, and a power loss takes it.
/// Written once more and synced, it stays.
#[test]
fn a_second_sync_succeeds_without_the_data() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 512]);
    write_full(&*file, &[2; 512], 512).unwrap();
    fail_next_sync(&disk, LOST);
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(EIO));
    file.sync_data().unwrap();
    assert_eq!(content(&view)[512..], [2; 512]);
    let lost = disk.fork();
    lost.power_loss(&Loss::Nothing);
    assert_ne!(lost.look(|kernel| kernel.bytes("f").unwrap()[512..].to_vec()), vec![2; 512]);
    write_full(&*file, &[2; 512], 512).unwrap();
    file.sync_data().unwrap();
    disk.power_loss(&Loss::Everything);
    assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap()[512..].to_vec()), vec![2; 512]);
}

/// Some file systems put back what the platter holds.
#[test]
fn reverted_data() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 600]);
    write_full(&*file, &[2; 700], 500).unwrap();
    fail_next_sync(&disk, SyncFault { cache: Cache::Reverted, ..LOST });
    file.sync_data().unwrap_err();
    assert_eq!(content(&view), [1; 600]);
}

/// Some keep it dirty, so that a later sync would put it on the platter; some had written it before they failed.
#[test]
fn kept_and_written_data() {
    for fault in [
        SyncFault { cache: Cache::Dirty, ..LOST },
        SyncFault { persisted: Persisted::Everything, ..LOST },
    ] {
        let (disk, view) = machine();
        let file = synced(&view, "f", &[1; 512]);
        write_full(&*file, &[2; 512], 0).unwrap();
        fail_next_sync(&disk, fault);
        file.sync_data().unwrap_err();
        file.sync_data().unwrap();
        disk.power_loss(&Loss::Everything);
        assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap().to_vec()), [2; 512], "{fault:?}");
    }
}

/// An error is told to every description that was open, each once; to one that is opened later only when nobody was
/// told before.
#[test]
fn who_is_told() {
    let (disk, a) = machine();
    let b = disk.process("b");
    let mine = synced(&a, "f", &[1; 512]);
    let peers = b.open("f", Access::Write).unwrap();
    write_full(&*mine, &[2; 512], 0).unwrap();
    fail_next_sync(&disk, LOST);
    mine.sync_data().unwrap_err();
    let later = b.open("f", Access::Write).unwrap();
    later.sync_data().unwrap();
    peers.sync_data().unwrap_err();
    for file in [&mine, &peers, &later] {
        file.sync_data().unwrap();
    }
}

/// An error of background write-back is told at the next sync, also to a description that is opened after it when
/// nobody was told.
#[test]
fn write_back_errors_are_told_late() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 512]);
    write_full(&*file, &[2; 512], 0).unwrap();
    while disk.look(|kernel| kernel.is_dirty("f")) {
        disk.meddle(|kernel| kernel.write_back(1.0));
    }
    let opened = view.open("f", Access::Write).unwrap();
    opened.sync_data().unwrap_err();
    file.sync_data().unwrap_err();
    view.open("f", Access::Write).unwrap().sync_data().unwrap();
    disk.power_loss(&Loss::Nothing);
    assert_eq!(disk.look(|kernel| kernel.bytes("f").unwrap().to_vec()), [1; 512]);
}

/// A flush that the device refuses is told to the caller and to nobody else.
#[test]
fn unrecorded_errors_are_the_callers_alone() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 512]);
    let other = view.open("f", Access::Write).unwrap();
    write_full(&*file, &[2; 512], 0).unwrap();
    fail_next_sync(&disk, SyncFault { recorded: false, ..LOST });
    file.sync_data().unwrap_err();
    other.sync_data().unwrap();
}

/// By chance, syncs of clean files never fail, and those of dirty ones do.
#[test]
fn chance_strikes_dirty_files_only() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 512]);
    disk.set_chances(Chances { sync_fails: 1.0, ..Chances::default() });
    file.sync_data().unwrap();
    write_full(&*file, &[2; 512], 0).unwrap();
    file.sync_data().unwrap_err();
}
