//! Watch rules over real files: the program watches, somebody else changes files, and the log tells what fired. What takes
//! several calls of the system is done while nobody watches, or elsewhere: no test is about how fast a machine writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Child;

use annals_engine::engine::{Engine, Options};
use annals_engine::session::event::Event;
use annals_engine::store::{Filter, Followed, Item, NamePattern, Read};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};

use crate::support::{Home, fake_agent, remove, rename, write};

/// A home with watch rules, and a program that watches.
struct Desk {
    home: Home,
    watching: Vec<Child>,
}

impl Desk {
    /// A home with these rules, each one's files in its `files` folder, and an agent that does these steps.
    fn new(rules: &Value, steps: &[&str]) -> Self {
        let home = Home::new();
        let agent = json!({ "id": "main", "run": { "command": fake_agent(), "args": steps, "cwd": home.path() } });
        let config = json!({ "agents": { "list": [agent] }, "watch": rules });
        write(home.path().join(".config/annals/annals.json5"), config.to_string());
        fs::create_dir_all(home.path().join(".config/annals/files")).expect("a folder");
        home.push("cli", "1", "there is a store");
        Self { home, watching: Vec::new() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(".config/annals/files").canonicalize().expect("files").join(name)
    }

    /// Puts a file in its place whole: there is no moment at which it has a part of its text.
    fn write(&self, name: &str, text: &str) {
        let (beside, file) = (self.home.path().join("beside"), self.file(name));
        write(&beside, text);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        rename(&beside, &file);
    }

    /// Writes a file where it lies, in as many steps as that takes.
    fn write_in_place(&self, name: &str, text: &str) {
        write(self.file(name), text);
    }

    /// Does something while those who watch stand still: all that they learn of it is what the kernel kept.
    fn unseen(&self, act: impl FnOnce()) {
        for child in &self.watching {
            let pid = Pid::from_child(child);
            kill_process(pid, Signal::STOP).expect("a signal");
            waitpid(Some(pid), WaitOptions::UNTRACED).expect("it stands still");
        }
        act();
        self.signal(Signal::CONT);
    }

    /// Starts the program, and waits until it has recorded what is there.
    fn watch(&mut self, args: &[&str]) {
        let command = self.home.command(args);
        self.start(command);
        self.until(|told| told.iter().any(baseline));
    }

    fn start(&mut self, mut command: std::process::Command) {
        let child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
        self.watching.push(child);
    }

    fn signal(&self, signal: Signal) {
        for child in &self.watching {
            let pid = Pid::from_child(child);
            kill_process(pid, signal).expect("a signal");
        }
    }

    /// Kills what watches, with no chance to say good-bye.
    fn kill(&mut self) {
        for child in &mut self.watching {
            child.kill().expect("killed");
            child.wait().expect("its end");
        }
        self.watching.clear();
    }

    /// Follows the log until the events of the rules are as wanted, and gives them.
    fn until(&self, wanted: impl Fn(&[Event]) -> bool) -> Vec<Event> {
        let engine =
            Engine::open_read_only(self.home.store(), Options::default()).expect("a store");
        let streams = vec![NamePattern::Prefix("watch:".to_owned())];
        let filter = Filter { streams, types: Vec::new() };
        let mut follower = engine.follow(Read::default().filter(filter)).expect("a follower");
        let mut told = Vec::new();
        while !wanted(&told) {
            match follower.next(None).expect("the log") {
                Followed::Item(Item::Record(record)) => {
                    told.push(Event::of(&record).expect("an event"));
                }
                Followed::Item(Item::Gap(gap)) => panic!("{gap:?}"),
                Followed::CaughtUp(_) | Followed::Quiet => {}
            }
        }
        told
    }

    /// Waits until a file fired with the content that it has now.
    fn fired(&self, name: &str) -> Vec<Event> {
        let path = self.file(name);
        let sha256 = sha256(&path);
        let text = path.to_str().expect("a path").to_owned();
        self.until(|told| {
            told.iter().any(|event| match event {
                Event::WatchFired(fired) => fired.path == text && fired.sha256 == sha256,
                _ => false,
            })
        })
    }

    /// How often each file fired, by its name, but for one that is written for this. It settles after all others, and after
    /// those that settle with it: then nothing else is on its way.
    fn counts(&self) -> BTreeMap<String, usize> {
        self.write("zz", "x");
        let mut counts = BTreeMap::new();
        for event in self.fired("zz") {
            if let Event::WatchFired(fired) = event {
                let name = Path::new(&fired.path).file_name().expect("a name").to_owned();
                *counts.entry(name.into_string().expect("text")).or_default() += 1;
            }
        }
        assert_eq!(counts.remove("zz"), Some(1));
        counts
    }

    /// Runs another program in the folder of the files; `None` where there is none.
    fn other(&self, program: &str, args: &[&str]) -> Option<()> {
        let mut command = self.home.other(program, args);
        let Ok(output) = command.current_dir(self.file("")).output() else {
            println!("skipped: there is no {program}");
            return None;
        };
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
        Some(())
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.kill();
    }
}

fn baseline(event: &Event) -> bool {
    matches!(event, Event::WatchRescanned(state) if state.baseline == Some(true))
}

fn sha256(path: &Path) -> String {
    use sha2::{Digest, Sha256};
    match fs::read(path) {
        Ok(bytes) => Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(_) => String::new(),
    }
}

/// A rule over all files.
fn all() -> Value {
    json!([{ "name": "r", "paths": ["files"], "debounceMs": 100 }])
}

/// Files that are saved in the ways of these programs.
const SAVED: [&str; 8] =
    ["vim", "vim-in-place", "emacs", "vscode", "nano", "sed", "rsync", "append"];

/// Saves each file as its program does.
fn save_all(desk: &Desk, text: &str) {
    // vim: the old one becomes a backup, a new one is written, the backup goes; a file 4913 comes and goes.
    desk.write_in_place("4913", "");
    remove(&desk.file("4913"));
    rename(&desk.file("vim"), &desk.file("vim~"));
    desk.write_in_place("vim", text);
    remove(&desk.file("vim~"));
    for in_place in ["vim-in-place", "vscode", "nano"] {
        desk.write_in_place(in_place, "");
        desk.write_in_place(in_place, text);
    }
    desk.write_in_place("#emacs#", text);
    desk.write_in_place("emacs.tmp", text);
    rename(&desk.file("emacs.tmp"), &desk.file("emacs"));
    remove(&desk.file("#emacs#"));
    let append = || fs::OpenOptions::new().append(true).open(desk.file("append"));
    for piece in ["a", "b", "c"] {
        append().and_then(|mut file| file.write_all(piece.as_bytes())).expect("written");
    }
    desk.write_in_place(".rsync.Ab3xYz", text);
    rename(&desk.file(".rsync.Ab3xYz"), &desk.file("rsync"));
    let line = format!("1s/^.*$/{}/", text.trim());
    desk.other("sed", &["-i", &line, "sed"]).expect("sed");
}

/// Two versions of a file in a repository of git; whether there is git.
fn committed(desk: &Desk, name: &str) -> bool {
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        desk.other("git", &[&who[..], args].concat())
    };
    let begun = git(&["init", "-q"]).is_some();
    for version in ["0", "1"] {
        desk.write(name, version);
        if begun {
            git(&["add", name]);
            git(&["commit", "-q", "-m", version]);
        }
    }
    begun
}

/// Goal: however a program saves, a save is one change, and a touch is none. Method: the ways of editors and other programs,
/// each at a file of its own, three times over; the program that watches learns of all the steps of a save at once.
#[test]
fn saves_are_one_change() {
    let mut desk = Desk::new(&all(), &["echo"]);
    SAVED.iter().for_each(|name| desk.write(name, "begin"));
    let git = committed(&desk, "git");
    desk.watch(&["watch", "--no-worker"]);
    let names: Vec<&str> = SAVED.iter().copied().chain(git.then_some("git")).collect();
    for round in 1..=3 {
        desk.unseen(|| {
            save_all(&desk, &format!("round {round}\n"));
            if git {
                let version = if round % 2 == 1 { "HEAD~1" } else { "-" };
                desk.other("git", &["checkout", "-q", version]);
            }
        });
        names.iter().for_each(|name| drop(desk.fired(name)));
        // A touch changes nothing that counts.
        desk.other("touch", &["nano"]);
    }
    let expect = names.iter().map(|name| ((*name).to_owned(), 3));
    assert_eq!(desk.counts(), expect.collect());
}

/// Goal: folders that come, go and move are watched, and links lead nowhere. Method: a folder made with files in it, moved,
/// and removed; a link to a folder outside.
#[test]
fn folders_and_links() {
    let mut desk = Desk::new(&all(), &["echo"]);
    write(desk.home.path().join("outside/secret"), "x");
    desk.watch(&["watch", "--no-worker"]);
    desk.write("a/b/one", "1");
    std::os::unix::fs::symlink(desk.home.path().join("outside"), desk.file("link"))
        .expect("a link");
    desk.fired("a/b/one");
    rename(&desk.file("a"), &desk.file("c"));
    desk.fired("c/b/one");
    desk.fired("a/b/one");
    desk.write("c/b/one", "2");
    desk.fired("c/b/one");
    write(desk.home.path().join("outside/secret"), "y");
    crate::support::remove_below(&desk.file("c"));
    let told = desk.fired("c/b/one");
    let changes: Vec<String> = told
        .iter()
        .filter_map(|event| match event {
            Event::WatchFired(fired) => Some(fired.change.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(changes.iter().filter(|change| *change == "create").count(), 2, "{changes:?}");
    assert_eq!(changes.iter().filter(|change| *change == "remove").count(), 2, "{changes:?}");
    assert_eq!(desk.counts().keys().collect::<Vec<_>>(), ["one"]);
}

/// Goal: what changed while nothing watched fires at the next start, once, and nothing fires twice; of two that watch one
/// does, and the other goes on when it is killed. Method: kills between changes.
#[test]
fn restarts_and_two_processes() {
    let mut desk = Desk::new(&all(), &["echo"]);
    desk.write("a", "0");
    desk.watch(&["watch", "--no-worker"]);
    desk.write("a", "1");
    desk.fired("a");
    desk.kill();
    desk.write("a", "2");
    desk.write("b", "1");
    for _ in 0..2 {
        let command = desk.home.command(&["watch", "--no-worker"]);
        desk.start(command);
    }
    desk.fired("a");
    desk.fired("b");
    desk.write("a", "3");
    desk.fired("a");
    // Whichever of the two has the role goes; the other one finds what changes after that.
    let mut first = desk.watching.remove(0);
    first.kill().expect("killed");
    first.wait().expect("its end");
    desk.write("a", "4");
    desk.fired("a");
    let expect = [("a", 4), ("b", 1)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!(desk.counts(), BTreeMap::from(expect));
    let asked = desk.home.json(&["log", "--type", "run.requested", "--json"]);
    assert_eq!(asked["events"].as_array().map(Vec::len), Some(6), "{asked}");
}

/// Goal: a flood that the kernel gives up on loses nothing. Method: the program stands still while two files are written in
/// turn more often than the queue is long; then one more file is made.
#[test]
fn a_real_overflow() {
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap_or_default();
    let Some(most) = most.trim().parse::<usize>().ok().filter(|most| *most <= 100_000) else {
        println!("skipped: the queue of notifications is too long to be flooded");
        return;
    };
    let mut desk = Desk::new(&all(), &["echo"]);
    desk.watch(&["watch", "--no-worker"]);
    desk.unseen(|| {
        let mut files =
            ["a", "b"].map(|name| fs::File::create_new(desk.file(name)).expect("a file"));
        for _ in 0..most {
            for file in &mut files {
                file.write_all(b".").expect("written");
            }
        }
        desk.write("late", "1");
    });
    let told = desk.fired("late");
    let overflow = |event: &Event| matches!(event, Event::WatchRescanned(state) if state.reason.as_deref() == Some("overflow"));
    assert!(told.iter().any(overflow), "{told:?}");
    desk.fired("a");
    let expect = ["a", "b", "late"].map(|name| (name.to_owned(), 1));
    assert_eq!(desk.counts(), BTreeMap::from(expect));
}

/// Goal: where the kernel gives no notifications the rule looks from time to time, says so, and misses nothing. Method: a
/// user namespace of its own that has no inotify instances.
#[test]
fn no_notifications_are_left() {
    let mut desk = Desk::new(&all(), &["echo"]);
    let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
    let annals = env!("CARGO_BIN_EXE_annals");
    let inside = ["--user", "--map-root-user", "sh", "-c", script];
    let probe = desk.home.other("unshare", &[&inside[..], &["true"]].concat()).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no user namespace to be had");
        return;
    }
    let args = [&inside[..], &[annals, "watch", "--no-worker"]].concat();
    let command = desk.home.other("unshare", &args);
    desk.start(command);
    let told = desk.until(|told| told.iter().any(baseline));
    let limit = |event: &Event| matches!(event, Event::WatchDegraded(state) if state.reason.as_deref() == Some("limit"));
    assert!(told.iter().any(limit), "{told:?}");
    for (file, text) in [("a", "1"), ("a", "2"), ("b", "1")] {
        desk.write(file, text);
        desk.fired(file);
    }
    let status = desk.home.ok(&["session", "status"]);
    assert!(status.contains("r looks from time to time: limit"), "{status}");
    let stats = desk.home.json(&["stats", "--json"]);
    assert_eq!(stats["watchTrouble"][0]["degraded"], "limit", "{stats}");
}

/// Goal: a rule that polls needs no notifications, files that another rule ignores and outputs never fire, and who watches
/// without storing tells the same. Method: two rules side by side; then a dry run.
#[test]
fn polls_outputs_and_dry_runs() {
    let rules = json!([
        { "name": "polls", "paths": ["files/**/*.md"], "poll": 100, "ignore": ["draft-*"], "debounceMs": 100 },
        { "name": "told", "paths": ["files/*"], "outputs": ["files/out"], "on": ["create"], "debounceMs": 100 },
    ]);
    let mut desk = Desk::new(&rules, &["echo"]);
    desk.home.fails(&["watch", "nobody"], 3, "not_found");
    desk.home.fails(&["watch", "--reset", "polls"], 3, "not_found");
    let dry = desk.home.command(&["watch", "--dry-run", "told", "--json"]).spawn();
    let mut dry = dry.expect("it starts");
    let mut lines = BufReader::new(dry.stdout.take().expect("its output")).lines();
    let mut said = BufReader::new(dry.stderr.take().expect("its talk")).lines();
    let said = said.next().expect("a line").expect("text");
    assert_eq!(said, "watching 1 rule: told (0 files); goes on until Ctrl-C");
    desk.watch(&["watch", "--no-worker"]);
    desk.until(|told| told.iter().filter(|event| baseline(event)).count() == 2);
    for name in ["draft-a.md", "out", "a.md"] {
        desk.write(name, "1");
    }
    let path = desk.file("a.md");
    let rules_of = |told: &[Event]| {
        let mut rules = Vec::new();
        for event in told {
            if let Event::WatchFired(fired) = event
                && fired.path == path.to_str().expect("a path")
            {
                rules.push(fired.rule.clone());
            }
        }
        rules.sort();
        rules
    };
    let told = desk.until(|told| rules_of(told).len() >= 2);
    assert_eq!(rules_of(&told), ["polls", "told"]);
    // Whether it looked before the files were there is not known: a new file is told either way.
    desk.write("later", "1");
    let line = lines.by_ref().map(|line| line.expect("a line")).find(|line| line.contains("later"));
    let line: Value = serde_json::from_str(&line.expect("the file")).expect("JSON");
    assert_eq!(
        (&line["rule"], &line["change"], line.get("runId")),
        (&"told".into(), &"create".into(), None)
    );
    dry.kill().expect("killed");
    dry.wait().expect("its end");
    let counts = desk.counts();
    assert!(!counts.contains_key("out"), "{counts:?}");
}

/// Goal: who starts the server is told what is at work. Method: with a rule and without a worker, in both forms.
#[test]
fn what_serves() {
    let mut desk = Desk::new(&all(), &["echo"]);
    for form in ["table", "json"] {
        let args = ["serve", "--no-worker", "--listen", "127.0.0.1:0", "-o", form];
        desk.watching.push(desk.home.command(&args).spawn().expect("it starts"));
        let stdout = desk.watching[0].stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines().map(|line| line.expect("text"));
        let first = lines.next().expect("a line");
        if form == "table" {
            assert!(first.starts_with("serving http://"), "{first}");
            assert_eq!(lines.next().as_deref(), Some("worker off, 1 watch rule, webhook off"));
        } else {
            let told: Value = serde_json::from_str(&first).expect("JSON");
            let told = (&told["worker"], &told["rules"], &told["webhook"]);
            assert_eq!(told, (&false.into(), &1.into(), &false.into()));
        }
        desk.kill();
    }
}

/// Goal: a configuration that is named without its folder is the same one. Method: its bare name, as an option and as a
/// variable, from the folder that it is in; a file of a rule changes, and what serves tells of it.
#[test]
fn a_bare_name() {
    for by_option in [true, false] {
        let mut desk = Desk::new(&all(), &["echo"]);
        let args = ["serve", "--no-worker", "--listen", "127.0.0.1:0", "--config", "annals.json5"];
        let mut command =
            desk.home.command(args.get(..if by_option { 6 } else { 4 }).expect("some"));
        command.env("ANNALS_CONFIG", "annals.json5");
        command.current_dir(desk.home.path().join(".config/annals"));
        desk.start(command);
        desk.until(|told| told.iter().any(baseline));
        desk.write("a", "1");
        desk.fired("a");
    }
}

/// Goal: a worker runs the rules; a rule whose runs write its own file stops, says so everywhere, and goes on when it is
/// reset. Method: an agent that adds a line to the file that it is started for.
#[test]
fn a_rule_that_feeds_itself() {
    let rules =
        json!([{ "name": "r", "paths": ["files"], "debounceMs": 50, "prompt": "{rule} {path}" }]);
    let mut desk = Desk::new(&rules, &["count=.config/annals/files/a", "echo"]);
    desk.watch(&["worker"]);
    desk.write("a", "0\n");
    let stopped = |told: &[Event]| {
        told.iter().filter(|event| matches!(event, Event::WatchStopped(_))).count()
    };
    let told = desk.until(|told| stopped(told) == 1);
    let during: Vec<bool> = told
        .iter()
        .filter_map(|event| match event {
            Event::WatchFired(fired) => Some(fired.during_run_id.is_some()),
            _ => None,
        })
        .collect();
    assert_eq!(during, [false, true, true, true]);
    let stats = desk.home.ok(&["stats"]);
    assert!(stats.contains("r is stopped: loop"), "{stats}");
    let stderr = desk.watching[0].stderr.take().expect("a pipe");
    let mut said = BufReader::new(stderr).lines().map(|line| line.expect("text"));
    let remedy = "`annals watch --reset r` starts it again";
    let stops = said.find(|line| line.contains("the rule r stops: loop")).expect("a line");
    assert!(stops.ends_with(remedy), "{stops}");
    let mut dry = desk.home.command(&["watch", "--dry-run"]).spawn().expect("it starts");
    let begins = BufReader::new(dry.stderr.take().expect("a pipe")).lines().next();
    let begins = begins.expect("a line").expect("text");
    dry.kill().expect("killed");
    dry.wait().expect("its end");
    assert_eq!(begins, format!("note: the rule r is stopped: loop; {remedy}"));
    let reset = desk.home.json(&["watch", "--reset", "r", "--json"]);
    assert_eq!(reset["wasStopped"], true);
    desk.until(|told| stopped(told) == 2);
    desk.signal(Signal::TERM);
    let ended = desk.watching.remove(0).wait().expect("its end");
    assert_eq!(ended.code(), Some(143));
}

/// Goal: what is at work goes by the configuration that it began with, and says when that is another. Method: a rule more
/// while the rules are watched, and while a worker is there: both say so, and only the next start takes it.
#[test]
fn another_configuration() {
    for args in [&["watch", "--no-worker"][..], &["worker"]] {
        let mut desk = Desk::new(&all(), &["echo"]);
        desk.watch(args);
        let config = desk.home.path().join(".config/annals/annals.json5");
        let text = fs::read_to_string(&config).expect("the configuration");
        let more = json!({ "name": "more", "paths": ["files"], "initial": true }).to_string();
        let text = text.replace("\"watch\":[", &format!("\"watch\":[{more},"));
        write(desk.home.path().join("beside"), text);
        rename(&desk.home.path().join("beside"), &config);
        let stderr = desk.watching[0].stderr.take().expect("a pipe");
        let mut said = BufReader::new(stderr).lines().map(|line| line.expect("text"));
        assert!(said.any(|line| line.ends_with("holds from the next start on")), "{args:?}");
        desk.write("a", "1");
        let rules = |told: &[Event]| -> BTreeSet<String> {
            let fired = told.iter().filter_map(|event| match event {
                Event::WatchFired(fired) => Some(fired.rule.clone()),
                _ => None,
            });
            fired.collect()
        };
        assert_eq!(rules(&desk.fired("a")), BTreeSet::from(["r".to_owned()]));
        desk.kill();
        desk.start(desk.home.command(args));
        desk.until(|told| rules(told).contains("more"));
    }
}
