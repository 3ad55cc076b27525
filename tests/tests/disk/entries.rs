//! Assumption 3: folder entries.

use std::collections::BTreeSet;

use annals_engine::storage::{Access, FileId, Storage, write_full};
use annals_tests::disk::{Loss, SimDisk};

use super::{machine, synced};

fn names_after(disk: &SimDisk) -> BTreeSet<Vec<String>> {
    let after = |seed| disk.look(|kernel| kernel.after_power_loss(&Loss::Seed(seed)).files());
    (0..200).map(|seed| after(seed).into_keys().collect()).collect()
}

fn sets(names: &[&[&str]]) -> BTreeSet<Vec<String>> {
    names.iter().map(|names| names.iter().map(|name| (*name).to_owned()).collect()).collect()
}

/// Creations that were not synced survive in any subset, also when the files' data was synced.
#[test]
fn creations_survive_in_any_subset() {
    let (disk, view) = machine();
    for name in ["a", "b"] {
        view.open(name, Access::CreateNew).unwrap().sync_data().unwrap();
    }
    assert_eq!(names_after(&disk), sets(&[&[], &["a"], &["b"], &["a", "b"]]));
    view.sync_dir("").unwrap();
    assert_eq!(names_after(&disk), sets(&[&["a", "b"]]));
}

/// A renaming leaves the old name, the new one, both or neither until the folder is synced.
#[test]
fn rename_leaves_either_both_or_neither() {
    let (disk, view) = machine();
    synced(&view, "old", b"x");
    view.rename("old", "new").unwrap();
    assert_eq!(names_after(&disk), sets(&[&["old"], &["new"], &["new", "old"], &[]]));
    view.sync_dir("").unwrap();
    assert_eq!(names_after(&disk), sets(&[&["new"]]));
}

/// A renaming over a name leaves the old file or the new one under it, never none; who has the old one open keeps it
/// and sees by the identity that it was replaced.
#[test]
fn rename_over_a_name() {
    let (disk, view) = machine();
    let old = synced(&view, "f", b"old");
    synced(&view, "f.tmp", b"new");
    view.rename("f.tmp", "f").unwrap();
    let after = |seed| {
        let after = disk.look(|kernel| kernel.after_power_loss(&Loss::Seed(seed)));
        after.bytes("f").map(<[u8]>::to_vec)
    };
    let contents: BTreeSet<_> = (0..200).map(after).collect();
    assert_eq!(contents, [Some(b"old".to_vec()), Some(b"new".to_vec())].into());
    let ids: [FileId; 2] = [old.id().unwrap(), view.stat("f").unwrap().id];
    assert_ne!(ids[0], ids[1]);
    let mut byte = [0; 3];
    assert_eq!(old.read_at(&mut byte, 0).unwrap(), 3);
    assert_eq!(&byte, b"old");
}

/// A removal that was not synced may be undone.
#[test]
fn removal_may_be_undone() {
    let (disk, view) = machine();
    synced(&view, "f", b"x");
    view.remove("f").unwrap();
    assert_eq!(names_after(&disk), sets(&[&["f"], &[]]));
}

/// A folder whose own entry was not synced takes everything in it along.
#[test]
fn a_lost_folder_takes_its_files_along() {
    let (disk, view) = machine();
    view.create_dir("log").unwrap();
    let file = view.open("log/1", Access::CreateNew).unwrap();
    write_full(&*file, b"x", 0).unwrap();
    file.sync_data().unwrap();
    view.sync_dir("log").unwrap();
    assert_eq!(names_after(&disk), sets(&[&["log/1"], &[]]));
    view.sync_dir("").unwrap();
    assert_eq!(names_after(&disk), sets(&[&["log/1"]]));
}

/// The errors of names are the system's: absent, there already, not writable.
#[test]
fn errors_of_names() {
    use std::io::ErrorKind;
    let (_disk, view) = machine();
    let kind = |access| view.open("f", access).map(|_| ()).map_err(|error| error.kind());
    assert_eq!(kind(Access::Read), Err(ErrorKind::NotFound));
    assert_eq!(kind(Access::Write), Err(ErrorKind::NotFound));
    assert_eq!(kind(Access::WriteOrCreate), Ok(()));
    assert_eq!(kind(Access::CreateNew), Err(ErrorKind::AlreadyExists));
    view.make_read_only("f").unwrap();
    assert_eq!(kind(Access::Write), Err(ErrorKind::PermissionDenied));
    assert_eq!(kind(Access::Read), Ok(()));
    assert_eq!(view.list("none").unwrap_err().kind(), ErrorKind::NotFound);
    view.create_dir("a/b").unwrap();
    view.create_dir("a/b").unwrap();
    assert_eq!(view.list("a").unwrap(), ["b"]);
    assert_eq!(view.list("").unwrap(), ["a", "f"]);
    let reader = view.open("f", Access::Read).unwrap();
    assert!(reader.write_at(b"x", 0).is_err());
}
