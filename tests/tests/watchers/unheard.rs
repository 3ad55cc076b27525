//! Where the kernel tells nothing: watches that run out, and folders whose changes come from elsewhere. Both are made in
//! namespaces that a test has for itself, so that nothing is changed that others have; where such are not to be had, that
//! is said.

use std::fs;
use std::process::Command;

use annals_engine::session::event::Change;

use super::*;

/// So long the watcher waits before it looks at everything although it is notified, and before it tries again whether it
/// is; in seconds.
const MINUTE: u64 = 61;

/// The variable that tells a test that it is inside.
const INSIDE: &str = "ANNALS_TEST_INSIDE";

/// Runs the calling test once more as another process in namespaces of its own, in which it is root and these words of the
/// shell were said. Whether this is that process: else there is nothing left to do.
fn inside(name: &str, words: &str) -> bool {
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == name) {
        return true;
    }
    let script = format!("{words}exec \"$0\" \"$@\"");
    let unshare = |program: &Path, args: &[&str]| {
        let flags = ["--user", "--map-root-user", "--mount", "sh", "-c", &script];
        Command::new("unshare").args(flags).arg(program).args(args).env(INSIDE, name).output()
    };
    let probe = unshare(Path::new("true"), &[]);
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: there are no namespaces to be had in which `{words}` can be said");
        return false;
    }
    let own = std::env::current_exe().unwrap();
    let output = unshare(&own, &[name, "--exact", "--nocapture"]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"));
    false
}

/// Goal: where the watches of the kernel run out, at the start or later, a rule says so, looks from time to time and
/// misses nothing; once there are more again, it is notified again. Method: a user namespace that has twelve watches.
#[test]
fn watches_that_run_out() {
    const LIMIT: &str = "/proc/sys/user/max_inotify_watches";
    if !inside("unheard::watches_that_run_out", &format!("echo 12 > {LIMIT} && ")) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for folder in 0..20 {
        write(&dir.path().join(format!("{folder}/a")), "0");
    }
    let mut desk = Desk::new(dir.path(), &["**"]);
    let mut seen = 0;
    assert_eq!(desk.degraded(), Some("limit"));
    write(&desk.file("7/a"), "1");
    desk.pass(2_600);
    assert_eq!(desk.fired(&mut seen), one("a", Change::Change));
    // More watches are noticed within a minute, and then changes are heard of at once.
    fs::write(LIMIT, "30").unwrap();
    desk.skip(MINUTE);
    desk.pass(600);
    assert_eq!(desk.degraded(), None);
    write(&desk.file("7/a"), "2");
    desk.pass(300);
    assert_eq!(desk.fired(&mut seen), one("a", Change::Change));
    // They run out again while the rule is at work, with the change of a file in a folder that has none.
    for folder in 20..40 {
        write(&desk.file(&format!("{folder}/b")), "0");
    }
    desk.pass(2_600);
    assert_eq!(desk.degraded(), Some("limit"));
    assert_eq!(desk.fired(&mut seen).len(), 20);
    write(&desk.file("39/b"), "1");
    desk.pass(2_600);
    assert_eq!(desk.fired(&mut seen), one("b", Change::Change));
    fs::write(LIMIT, "1000").unwrap();
    desk.skip(MINUTE);
    desk.pass(600);
    assert_eq!(desk.degraded(), None);
    assert_eq!(desk.fired(&mut seen), []);
    let limits =
        desk.told().iter().filter(|event| matches!(event, Event::WatchDegraded(_))).count();
    assert_eq!(limits, 2, "each time is told once");
}

/// Goal: a folder whose changes the kernel does not tell of is found out by the look that is taken now and then; from then
/// on the rule looks often, says that it is told nothing, goes on hearing what it can hear, and comes back once it hears
/// everything. Method: an overlay, whose lower layer somebody changes behind its back.
#[test]
fn a_folder_that_tells_nothing() {
    if !inside("unheard::a_folder_that_tells_nothing", "") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [lower, upper, work, merged] =
        ["lower", "upper", "work", "merged"].map(|name| dir.path().join(name));
    for folder in [&lower, &upper, &work, &merged] {
        fs::create_dir(folder).unwrap();
    }
    for file in ["a", "b", "c"] {
        write(&lower.join(file), "0");
    }
    let layers = [("lowerdir", &lower), ("upperdir", &upper), ("workdir", &work)];
    let layers = layers.map(|(name, path)| format!("{name}={}", path.display())).join(",");
    let mount = Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &layers])
        .arg(&merged)
        .output()
        .unwrap();
    if !mount.status.success() {
        println!("skipped: there are no overlays to be had: {mount:?}");
        return;
    }
    let mut desk = Desk::new(&merged, &["**"]);
    let mut seen = 0;
    write(&lower.join("a"), "1");
    desk.pass(5_000);
    assert_eq!(desk.fired(&mut seen), [], "nothing is told");
    desk.skip(MINUTE);
    desk.pass(300);
    assert_eq!(desk.fired(&mut seen), one("a", Change::Change));
    assert_eq!(desk.degraded(), Some("silent"));
    write(&lower.join("b"), "1");
    desk.pass(2_600);
    assert_eq!(desk.fired(&mut seen), one("b", Change::Change));
    // What comes by the front door is still heard, at once.
    write(&merged.join("c"), "1");
    desk.pass(300);
    assert_eq!(desk.fired(&mut seen), one("c", Change::Change));
    // It stays so as long as there is a change that is not heard of, and over a restart.
    desk.skip(MINUTE);
    write(&lower.join("b"), "2");
    desk.pass(2_600);
    assert_eq!(desk.fired(&mut seen), one("b", Change::Change));
    assert_eq!(desk.degraded(), Some("silent"));
    desk.restart(&["**"]);
    assert_eq!(desk.degraded(), Some("silent"));
    write(&lower.join("b"), "3");
    desk.pass(2_600);
    assert_eq!(desk.fired(&mut seen), one("b", Change::Change));
    // A minute of changes that were all heard of.
    write(&merged.join("b"), "4");
    desk.pass(300);
    desk.skip(MINUTE);
    desk.pass(300);
    assert_eq!(desk.fired(&mut seen), one("b", Change::Change));
    assert_eq!(desk.degraded(), None);
    Command::new("umount").arg(&merged).status().unwrap();
}
