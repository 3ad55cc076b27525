//! Following across processes: what one process appends, another shows. No test here waits for a time: it reads until
//! the line is there.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command};

use serde_json::Value;

use crate::support::{Home, append_buffered, rename, write};

/// A follower in a process of its own.
struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Follower {
    fn start(home: &Home, args: &[&str]) -> Self {
        Self::of(home.command(args))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line before the end").expect("UTF-8")
    }

    fn object(&mut self) -> Value {
        serde_json::from_str(&self.line()).expect("JSON")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn text(event: &Value) -> &str {
    event["data"]["content"].as_str().unwrap_or_default()
}

/// Goal: a follower shows what other processes append, in order and once. Method: a push before it starts, then more
/// pushes by other processes while it runs.
#[test]
fn shows_what_others_append() {
    let home = Home::new();
    home.push("cli", "default", "zero");
    let mut follower = Follower::start(&home, &["tail", "-f", "--json", "--type", "turn"]);
    assert_eq!(text(&follower.object()), "zero");
    for n in 1..=5 {
        home.push("cli", "default", &n.to_string());
        assert_eq!(text(&follower.object()), n.to_string());
    }
}

/// Goal: filters hold while following. Method: two sessions speak in turns, the follower is asked for one of them.
#[test]
fn filters_while_following() {
    let home = Home::new();
    home.push("telegram", "7", "before");
    let args = ["tail", "-f", "--json", "--session", "tele*", "--type", "turn", "-g", "^[a-y]"];
    let mut follower = Follower::start(&home, &args);
    assert_eq!(text(&follower.object()), "before");
    home.push("cli", "default", "elsewhere");
    home.push("telegram", "7", "zzz");
    home.push("telegram", "8", "after");
    assert_eq!(text(&follower.object()), "after");
}

/// Goal: a cursor from any line goes on exactly behind that line. Method: stop a follower, append, follow again from
/// its last cursor.
#[test]
fn goes_on_from_a_cursor() {
    let home = Home::new();
    home.push("cli", "default", "one");
    let args = ["tail", "-f", "--json", "--type", "turn"];
    let cursor = Follower::start(&home, &args).object()["cursor"].clone();
    home.push("cli", "default", "two");
    home.push("cli", "default", "three");
    let after = [&args[..], &["--after", cursor.as_str().expect("text")]].concat();
    let mut follower = Follower::start(&home, &after);
    assert_eq!(text(&follower.object()), "two");
    assert_eq!(text(&follower.object()), "three");
}

/// Goal: a cursor of another history is refused and nothing is made up. Method: the cursor of one store given to
/// another.
#[test]
fn a_foreign_cursor_is_refused() {
    let (home, other) = (Home::new(), Home::new());
    home.push("cli", "default", "one");
    other.push("cli", "default", "one");
    let events = home.json_lines(&["tail", "--json"]);
    let cursor = events.last().expect("an event")["cursor"].as_str().expect("text").to_owned();
    other.fails(&["log", "--after", &cursor], 7, "history_changed");
    other.fails(&["log", "--kind", "other", "--after", &cursor], 7, "history_changed");
    other.fails(&["tail", "-f", "--after", &cursor], 7, "history_changed");
}

/// Goal: what a screen was shown before it was durable can be taken back by a crash; the follower says so and goes on
/// with what became of the log. Method: an event that was written and not synced is shown, then cut off as a power loss
/// would, then another is appended in its place.
#[test]
fn what_was_not_durable_can_be_taken_back() {
    let home = Home::new();
    home.push("cli", "default", "durable");
    let log = home.store().join("log/00000000000000000001.jsonl");
    let durable = fs::metadata(&log).expect("the segment").len();
    append_buffered(&home.store(), "x:1", "x.acme.tick", "{'note':'soon gone'}");
    let mut follower = Follower::start(&home, &["tail", "-f", "-n", "1"]);
    assert!(follower.line().contains("soon gone"));
    let segment = fs::OpenOptions::new().write(true).open(&log).expect("the segment");
    segment.set_len(durable).expect("cut");
    home.push("cli", "default", "in its place");
    let mut told = String::new();
    let mut stderr = BufReader::new(follower.child.stderr.take().expect("a pipe"));
    stderr.read_line(&mut told).expect("a line");
    assert!(told.contains("was not yet durable and was taken back"), "{told}");
    assert!(follower.line().contains("in its place"));
}

/// Goal: transcripts come in as they grow, each record once, across a restart, and the program ends on a signal with
/// everything said. Method: a session of pi that grows between reports of one follower, and before another.
#[test]
fn transcripts_that_grow() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::Write;
    let home = Home::new();
    let file = home.path().join("sessions/s.jsonl");
    fs::create_dir_all(home.path().join("sessions")).expect("a folder");
    let append = |text: &str| {
        let mut file =
            fs::OpenOptions::new().create(true).append(true).open(&file).expect("the transcript");
        file.write_all(text.as_bytes()).expect("it grows");
    };
    let said = |id: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"timestamp\":\"2026-03-01T09:00:00Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{id}\"}}}}\n"
        )
    };
    append(
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"2026-03-01T09:00:00Z\"}\n",
    );
    let follow = || Follower::start(&home, &["import", "--follow", "--json", "sessions"]);
    let end = |mut follower: Follower| {
        let pid = i32::try_from(follower.child.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::TERM).expect("told to stop");
        assert_eq!(follower.child.wait().expect("it ends").code(), Some(143));
    };
    let mut follower = follow();
    assert_eq!(follower.object()["totals"]["new"], 1);
    let (half, rest) = ("{\"type\":\"message\"", said("b"));
    append(&said("a"));
    append(half);
    assert_eq!(follower.object()["totals"]["new"], 1);
    append(rest.strip_prefix(half).expect("the other half"));
    let report = follower.object();
    assert_eq!((&report["totals"]["new"], &report["totals"]["damages"]), (&1.into(), &0.into()));
    end(follower);
    append(&said("c"));
    let mut follower = follow();
    let report = follower.object();
    assert_eq!((&report["totals"]["new"], &report["totals"]["known"]), (&1.into(), &3.into()));
    end(follower);
    let turns = home.json_lines(&["export", "--type", "turn"]);
    let said: Vec<&str> = turns.iter().map(text).collect();
    assert_eq!(said, ["a", "b", "c"]);
    let ended = home.json_lines(&["export", "--type", "import.finished"]);
    assert_eq!(ended.len(), 2);
}

/// Goal: where the kernel gives no notifications of changes that is said, and what is written comes in all the same; a folder
/// that is named by a link is followed, and what cannot be imported is told. Method: a user namespace that has no inotify
/// instances, in which a link to a folder is followed while a session grows and a packed file comes.
#[test]
fn transcripts_that_nobody_tells_of() {
    let home = Home::new();
    let folder = home.path().join("sessions");
    write(folder.join("s.jsonl"), "{\"type\":\"session\",\"version\":3,\"id\":\"s\"}\n");
    std::os::unix::fs::symlink(&folder, home.path().join("link")).expect("a link");
    let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
    let inside = ["--user", "--map-root-user", "sh", "-c", script];
    let probe = home.other("unshare", &[&inside[..], &["true"]].concat()).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no user namespace to be had");
        return;
    }
    let annals = env!("CARGO_BIN_EXE_annals");
    let args = [&inside[..], &[annals, "import", "--follow", "--json", "link"]].concat();
    let mut follower = Follower::of(home.other("unshare", &args));
    assert_eq!(follower.object()["totals"]["new"], 1);
    let mut told = BufReader::new(follower.child.stderr.take().expect("a pipe")).lines();
    let mut told = || told.next().expect("a line").expect("text");
    assert_eq!(told(), "changes are not told here (limit): looking every 1 s");
    write(folder.join("t.jsonl"), "{\"type\":\"session\",\"version\":3,\"id\":\"t\"}\n");
    assert_eq!(follower.object()["totals"]["new"], 1);
    write(folder.join("u.jsonl.zst"), b"\x28\xb5\x2f\xfd\n");
    let refused = &follower.object()["refused"];
    assert!(refused[0]["path"].as_str().is_some_and(|path| path.ends_with("u.jsonl.zst")));
    assert!(told().starts_with("not imported: "));
}

/// Goal: a follower of a log in whose place an older copy is put says what is missing and shows nothing twice. Method: the
/// live segment as it was before the last event, in its place; the rest of what the follower says when it is stopped.
#[test]
fn a_log_that_is_rewritten() {
    let home = Home::new();
    home.push("cli", "default", "one");
    let log = home.store().join("log/00000000000000000001.jsonl");
    let older = fs::read(&log).expect("the segment");
    home.push("cli", "default", "two");
    let mut follower = Follower::start(&home, &["tail", "-f", "--json", "--type", "turn"]);
    for expect in ["one", "two"] {
        assert_eq!(text(&follower.object()), expect);
    }
    write(home.path().join("older"), older);
    rename(&home.path().join("older"), &log);
    let last = follower.object();
    assert_eq!((&last["gap"]["fromSeq"], &last["gap"]["toSeq"]), (&4.into(), &4.into()), "{last}");
    follower.child.kill().expect("killed");
    assert_eq!(follower.lines.by_ref().count(), 0);
}
