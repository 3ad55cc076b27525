//! Verbs that read change no byte, and read where nothing can be written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Home, snapshot};

const READERS: [&[&str]; 13] = [
    &["tail"],
    &["log", "-n", "0"],
    &["export"],
    &["stats"],
    &["verify"],
    &["repair"],
    &["sessions", "list"],
    &["sessions", "history", "cli:default"],
    &["replay"],
    &["replay", "--check"],
    &["replay", "--tree", "cli:default"],
    &["usage", "--json"],
    &["runs", "list", "--json"],
];

fn read_only(dir: &Path) {
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_only(&path);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("permissions");
        }
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(0o500)).expect("permissions");
}

fn writable(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).expect("permissions");
    for entry in fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            writable(&path);
        }
    }
}

/// Goal: reading changes nothing. Method: every byte and every name of the home before and after each reader.
#[test]
fn readers_change_no_byte() {
    let home = Home::new();
    home.push("cli", "default", "hi");
    let before = snapshot(home.path());
    for args in READERS {
        home.ok(args);
        assert_eq!(snapshot(home.path()), before, "{args:?}");
    }
}

/// Goal: a store in a folder that takes no writes can be read. Method: take the permissions away, read with every
/// verb.
#[test]
fn readers_need_no_permission_to_write() {
    let home = Home::new();
    home.push("cli", "default", "hi");
    read_only(&home.store());
    for args in READERS {
        assert!(!home.ok(args).is_empty(), "{args:?}");
    }
    writable(&home.store());
}
