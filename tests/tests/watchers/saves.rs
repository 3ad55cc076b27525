//! How programs save: whatever they do with the file and beside it, a save is one change of the one file.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use annals_engine::session::event::Change;

use super::*;

/// What programs do to save the file `a`, each in its own way. The steps are those of [`Desk::act`].
const SAVES: [(&str, &str); 18] = [
    ("vim", "empty 4913; remove 4913; rename a a~; empty a; fill a; chmod a; remove a~"),
    ("vim with backupcopy", "copy a a~; empty a; fill a; remove a~"),
    (
        "vim with a swap file",
        "empty .a.swp; fill .a.swp; rename a a~; empty a; fill a; remove a~; remove .a.swp",
    ),
    (
        "emacs",
        "symlink .#a; empty #a#; fill #a#; rename a a~; empty a; fill a; remove #a#; remove .#a",
    ),
    ("emacs again", "symlink .#a; empty a; fill a; remove .#a"),
    ("VS Code", "empty a; fill a"),
    ("VS Code, atomic", "empty a.vsctmp; fill a.vsctmp; rename a.vsctmp a"),
    (
        "JetBrains",
        "empty a___jb_tmp___; fill a___jb_tmp___; rename a a___jb_old___; rename a___jb_tmp___ a; remove a___jb_old___",
    ),
    (
        "gedit",
        "empty .goutputstream-X; fill .goutputstream-X; link a a~; rename .goutputstream-X a",
    ),
    ("kate", "empty a.XuPqzT; fill a.XuPqzT; chmod a.XuPqzT; rename a.XuPqzT a"),
    ("nano", "touch a; empty a; fill a"),
    ("sed -i", "empty sedX; fill sedX; chmod sedX; rename sedX a"),
    ("perl -i", "remove a; empty a; fill a; chmod a"),
    ("rsync", "empty .a.Ab3xYz; fill .a.Ab3xYz; touch .a.Ab3xYz; rename .a.Ab3xYz a"),
    ("git checkout", "remove a; empty a; fill a"),
    ("cp --backup", "rename a a~; empty a; fill a; remove a~"),
    ("tee -a", "append a; append a; append a"),
    ("truncate, then write", "truncate a; fill a; touch a"),
];

impl Desk {
    /// Takes the steps of a save one after the other, each of which the watcher hears by itself.
    fn act(&mut self, steps: &str, text: &str) {
        for step in steps.split("; ") {
            let words: Vec<&str> = step.split(' ').collect();
            let path = self.file(words[1]);
            let open = || fs::OpenOptions::new().write(true).open(&path).unwrap();
            match words[0] {
                "empty" => drop(fs::File::create(&path).unwrap()),
                "fill" => open().write_all(text.as_bytes()).unwrap(),
                "append" => {
                    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
                    file.write_all(text.as_bytes()).unwrap();
                }
                "truncate" => open().set_len(0).unwrap(),
                "rename" => fs::rename(&path, self.file(words[2])).unwrap(),
                "link" => {
                    let _ = fs::remove_file(self.file(words[2]));
                    fs::hard_link(&path, self.file(words[2])).unwrap();
                }
                "symlink" => std::os::unix::fs::symlink("someone@host.1", &path).unwrap(),
                "copy" => drop(fs::copy(&path, self.file(words[2])).unwrap()),
                "remove" => fs::remove_file(&path).unwrap(),
                "chmod" => fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap(),
                "touch" => open().set_modified(std::time::UNIX_EPOCH).unwrap(),
                other => panic!("no step is called {other}"),
            }
            self.pass(50);
        }
    }
}

/// Goal: a save is one change, whoever saves and however the rule names the file; a touch is none. Method: every program
/// saves three times, a step every 50 ms, under a rule over the folder and under one that names the file alone.
#[test]
fn a_save_is_one_change() {
    for patterns in [["**"], ["a"]] {
        for (program, steps) in SAVES {
            let dir = tempfile::tempdir().unwrap();
            write(&dir.path().join("a"), "begin");
            let mut desk = Desk::new(dir.path(), &patterns);
            let mut seen = 0;
            for round in 1..=3 {
                desk.act(steps, &format!("round {round}"));
                assert_eq!(desk.fired(&mut seen), [], "{program}: before it has settled");
                desk.pass(600);
                assert_eq!(
                    desk.fired(&mut seen),
                    one("a", Change::Change),
                    "{program} {patterns:?}"
                );
            }
            desk.act("touch a; chmod a", "");
            desk.pass(600);
            assert_eq!(desk.fired(&mut seen), [], "{program}: a touch");
        }
    }
}

/// Goal: a file is the same one to a rule whichever inode it has. Method: a file put over the watched one three times, one
/// deleted and made anew, one grown: five changes. Then the file is made anew in the same inode, with other text of the
/// same length, where the file system gives the number out again, before and after it has settled.
#[test]
fn replaced_made_anew_and_grown() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a"), "begin");
    let mut desk = Desk::new(dir.path(), &["a"]);
    let mut seen = 0;
    let replace = "empty b; fill b; rename b a";
    for (round, steps) in
        [replace, replace, replace, "remove a; empty a; fill a", "append a"].iter().enumerate()
    {
        desk.act(steps, &format!("{round}"));
        desk.pass(600);
        assert_eq!(desk.fired(&mut seen), one("a", Change::Change), "round {round}");
    }
    for text in ["one", "two", "six", "ten"] {
        let before = fs::metadata(desk.file("a")).unwrap().ino();
        desk.act("remove a; empty a; fill a", text);
        let after = fs::metadata(desk.file("a")).unwrap().ino();
        println!("inode {}", if before == after { "reused" } else { "not reused" });
        desk.pass(600);
        assert_eq!(desk.fired(&mut seen), one("a", Change::Change), "{text}");
    }
    desk.act("remove a", "");
    desk.pass(600);
    assert_eq!(desk.fired(&mut seen), one("a", Change::Remove));
    desk.act("empty a; fill a", "ten");
    desk.pass(600);
    assert_eq!(desk.fired(&mut seen), one("a", Change::Create));
}

/// Goal: who writes for longer than a rule waits is looked at on the way, and at the end. Method: a file that grows every
/// 50 ms for three seconds.
#[test]
fn a_writer_that_does_not_rest() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::new(dir.path(), &["**"]);
    let mut seen = 0;
    desk.act("empty a", "");
    for _ in 0..60 {
        desk.act("append a", "x");
    }
    let on_the_way = desk.fired(&mut seen);
    assert!((1..=3).contains(&on_the_way.len()), "{on_the_way:?}");
    desk.pass(600);
    assert_eq!(desk.fired(&mut seen), one("a", Change::Change));
    let last = desk.told().pop().unwrap();
    let Event::WatchFired(last) = last else { panic!("{last:?}") };
    let text = "x".repeat(60);
    let sha256 = sha2::Digest::finalize(sha2::Digest::chain_update(
        <sha2::Sha256 as sha2::Digest>::new(),
        text,
    ));
    assert_eq!(last.sha256, sha256.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
}

/// Goal: what changed while no watcher was there is found by the next one, once. Method: restarts with changes between.
#[test]
fn changes_between_two_watchers() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("a"), "0");
    let mut desk = Desk::new(dir.path(), &["**"]);
    let mut seen = 0;
    write(&desk.file("a"), "1");
    write(&desk.file("b"), "1");
    desk.restart(&["**"]);
    desk.pass(600);
    let mut fired = desk.fired(&mut seen);
    fired.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(fired, [one("a", Change::Change), one("b", Change::Create)].concat());
    fs::remove_file(desk.file("b")).unwrap();
    desk.restart(&["**"]);
    desk.pass(600);
    desk.restart(&["**"]);
    desk.pass(600);
    assert_eq!(desk.fired(&mut seen), one("b", Change::Remove));
}

/// Goal: what the program writes itself starts nothing, wherever the store lies. Method: a rule over a folder in which the
/// store is; files written there, and one beside it.
#[test]
fn the_store_in_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("store/log/1"), "0");
    let mut desk = Desk::new(dir.path(), &["**"]);
    let mut seen = 0;
    for round in 1..=3 {
        write(&desk.file("store/log/1"), &round.to_string());
        write(&desk.file(&format!("store/snapshots/{round}")), "new");
        write(&desk.file("a"), &round.to_string());
        desk.pass(600);
        assert_eq!(desk.fired(&mut seen).len(), 1);
    }
    desk.skip(61);
    desk.pass(600);
    assert_eq!(desk.fired(&mut seen), []);
}
