//! The simulated disk against the assumptions that `annals_engine::storage` states: what a power loss, a failed sync
//! and a killed process may leave, and what they must not.

#![expect(clippy::unwrap_used, reason = "a test that is set up wrongly is to stop")]

mod data;
mod entries;
mod faults;
mod processes;
mod sync_errors;

use std::collections::BTreeSet;
use std::sync::Arc;

use annals_engine::storage::{Access, File, Storage, write_full};
use annals_tests::disk::{Loss, SimDisk, View};

/// A machine with an empty folder, and a process on it.
fn machine() -> (SimDisk, Arc<View>) {
    let disk = SimDisk::new(1);
    let view = disk.process("a");
    (disk, view)
}

/// A file that exists for good and holds `bytes`, all of them synced.
fn synced(view: &View, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = view.open(name, Access::CreateNew).unwrap();
    write_full(&*file, bytes, 0).unwrap();
    file.sync_data().unwrap();
    view.sync_dir("").unwrap();
    file
}

/// What the file is after each of the losses of many seeds.
fn losses(disk: &SimDisk, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    let after =
        |loss| disk.look(|kernel| kernel.after_power_loss(&loss).bytes(name).map(<[u8]>::to_vec));
    (0..400).map(Loss::Seed).chain([Loss::Everything, Loss::Nothing]).map(after).collect()
}
