//! Assumptions 1 and 2: data and size.

use annals_engine::storage::{Access, Storage, write_full};
use annals_tests::disk::Loss;

use super::{losses, machine, synced};

/// Synced bytes come back as they were, whatever is lost; so does the size.
#[test]
fn synced_is_kept() {
    let (disk, view) = machine();
    synced(&view, "f", &[7; 1_300]);
    assert_eq!(losses(&disk, "f"), [Some(vec![7; 1_300])].into());
}

/// Two pieces appended to a synced one: each is there, zero, or cut off by the size, each for itself; the synced bytes
/// never change.
#[test]
fn unsynced_pieces_for_themselves() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 512]);
    write_full(&*file, &[2; 1_024], 512).unwrap();
    let seen = losses(&disk, "f");
    let piece = |byte| vec![byte; 512];
    for pieces in [[1, 2, 2], [1, 0, 0], [1, 0, 2], [1, 2, 0]] {
        assert!(seen.contains(&Some(pieces.map(piece).concat())), "{pieces:?}");
    }
    assert!(seen.contains(&Some(piece(1))), "size behind the data");
    assert!(seen.contains(&Some([piece(1), piece(2)].concat())), "a size in between");
    for bytes in seen.into_iter().map(|bytes| bytes.expect("the entry was synced")) {
        assert_eq!(bytes[..512], piece(1));
        for (n, piece) in bytes.chunks(512).enumerate().skip(1) {
            assert!(piece.iter().all(|b| *b == piece[0] && [0, 2].contains(b)), "piece {n}");
        }
    }
}

/// A piece that holds synced bytes and is appended to comes back old or new, never zero in its synced part.
#[test]
fn shared_piece_is_old_or_new() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 100]);
    write_full(&*file, &[2; 100], 100).unwrap();
    let seen = losses(&disk, "f");
    assert!(seen.contains(&Some([[1; 100], [2; 100]].concat())));
    assert!(seen.contains(&Some([[1; 100], [0; 100]].concat())), "size ahead of the data");
    assert!(seen.contains(&Some(vec![1; 100])));
    assert!(seen.iter().flatten().all(|bytes| bytes[..100] == [1; 100]));
}

/// A piece that was written twice may come back as it was in between: write-back runs at any time.
#[test]
fn every_version_may_come_back() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 512]);
    write_full(&*file, &[2; 512], 0).unwrap();
    write_full(&*file, &[3; 512], 0).unwrap();
    let expected = [1, 2, 3].map(|byte| Some(vec![byte; 512]));
    assert_eq!(losses(&disk, "f"), expected.into());
}

/// What was cut off without a sync may come back, with the old size; after a sync it may not, also when the file grows
/// again.
#[test]
fn cut_bytes_come_back_until_the_cut_is_synced() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 1_024]);
    file.truncate(300).unwrap();
    let seen = losses(&disk, "f");
    assert!(seen.contains(&Some(vec![1; 1_024])) && seen.contains(&Some(vec![1; 300])));
    file.sync_data().unwrap();
    file.truncate(1_024).unwrap();
    let seen = losses(&disk, "f");
    assert!(seen.iter().flatten().all(|bytes| bytes[300..].iter().all(|b| *b == 0)));
}

/// The two extremes: everything that was not synced is gone, or there.
#[test]
fn everything_and_nothing() {
    let (disk, view) = machine();
    let file = synced(&view, "f", b"old");
    write_full(&*file, b"newer", 0).unwrap();
    view.open("g", Access::CreateNew).unwrap();
    let after = |loss| disk.look(|kernel| kernel.after_power_loss(&loss).files());
    assert_eq!(after(Loss::Everything), [("f".to_owned(), b"old".to_vec())].into());
    let nothing = [("f".to_owned(), b"newer".to_vec()), ("g".to_owned(), Vec::new())];
    assert_eq!(after(Loss::Nothing), nothing.into());
}

/// Every image of a small state, counted by hand: the size is old, in between or new, the piece old or new.
#[test]
fn every_image_is_enumerated() {
    let (disk, view) = machine();
    let file = synced(&view, "f", &[1; 100]);
    write_full(&*file, &[2; 100], 100).unwrap();
    let images = disk.look(|kernel| kernel.every_power_loss(100)).unwrap();
    let mut bytes: Vec<_> = images.iter().map(|image| image.bytes("f").unwrap().to_vec()).collect();
    bytes.sort();
    bytes.dedup();
    assert_eq!(bytes.len(), 5, "three sizes, two contents, and the old size hides the new content");
    assert!(disk.look(|kernel| kernel.every_power_loss(3)).is_none(), "more than the limit");
}

/// The same seed twice gives the same bytes; different seeds give different ones.
#[test]
fn a_seed_decides() {
    let image = |seed| {
        let (disk, view) = machine();
        let file = synced(&view, "f", &[1; 3_000]);
        write_full(&*file, &[2; 4_000], 1_000).unwrap();
        disk.look(|kernel| kernel.after_power_loss(&Loss::Seed(seed)).files())
    };
    assert_eq!(image(5), image(5));
    assert!((0..20).any(|seed| image(seed) != image(5)));
}
