//! A home with a store, agents, a sink and sessions, and workers on it.

use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use annals_engine::engine::{Engine, Options};
use annals_engine::session::event::{Event, Role, RunKind, RunStatus};
use annals_engine::session::index::TimeRules;
use annals_engine::session::key::AgentId;
use annals_engine::session::push::{Push, Wanted};
use annals_engine::session::run::Limits;
use annals_engine::store::{Filter, Followed, Item, NamePattern, Read, Record, View};
use annals_tools::run::reaper;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::check;
use crate::support::{Home, Ran, fake_agent, write};

/// How many children there may be.
pub(crate) const LIMITS: Limits = Limits { depth: 1, of_one: 5, of_all: 10, chain: (10, 1_000) };

/// What takes this long has not happened.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct House {
    pub(crate) home: Home,
    pub(crate) engine: Engine,
}

impl House {
    /// A house whose agents do these steps.
    pub(crate) fn new(agents: &[(&str, &[&str])]) -> Self {
        let home = Home::new();
        let (starts, outbox) = (home.path().join("starts"), home.path().join("outbox"));
        let of = |(id, steps): &(&str, &[&str])| {
            let mut args = vec![format!("count={}", starts.display())];
            args.extend(steps.iter().map(|step| (*step).to_owned()));
            json!({ "id": id, "run": { "command": fake_agent(), "args": args, "cwd": home.path(),
                "timeouts": { "killGrace": 1 } } })
        };
        let list: Vec<Value> = agents.iter().map(of).collect();
        let put = format!("cat >> {0}; echo >> {0}", outbox.display());
        let config = json!({
            "agents": { "list": list, "defaults": { "subagents": { "announce": "step" } } },
            "subagents": { "max": LIMITS.of_all },
            "session": { "agentToAgent": { "maxPingPongTurns": 2 } },
            "tools": { "sessions": { "visibility": "all" }, "agentToAgent": { "enabled": true } },
            "sinks": { "telegram": { "type": "exec", "command": "/bin/sh", "args": ["-c", put] } },
        });
        write(home.path().join(".config/annals/annals.json5"), config.to_string());
        home.push("telegram", "7", "hello");
        home.push("telegram", "8", "hello");
        let engine = Engine::open(home.store(), Options::default()).expect("a store");
        Self { home, engine }
    }

    /// Calls a tool as a session, while no worker may be started; gives the status that it answers.
    pub(crate) fn calls(&self, tool: &str, args: &Value, from: Option<&str>) -> String {
        let role = self.engine.take_worker_role().expect("a lock").expect("nobody works");
        let args = args.to_string();
        let mut words = vec!["tools", "call", tool, &args];
        words.extend(from.into_iter().flat_map(|from| ["--as", from]));
        let answer = self.home.json(&words);
        drop(role);
        answer["status"].as_str().expect("a status").to_owned()
    }

    /// Asks for a run of a chat.
    pub(crate) fn ask(&self, chat: &str) -> String {
        let agent = AgentId::parse("main").unwrap();
        let mut push = Push::new("telegram", chat, Role::User, "how are you?", agent);
        push.run = Some(Wanted { deliver: true, ..Wanted::new(RunKind::Ask) });
        self.engine.push(&push, &TimeRules::none()).unwrap().run_id.unwrap()
    }

    /// Starts a worker.
    pub(crate) fn worker(&self, args: &[&str]) -> Worker {
        let mut all = vec!["worker"];
        all.extend(args);
        Worker(Some(self.home.command(&all).spawn().expect("a worker starts")))
    }

    /// Works until nothing is left to do.
    pub(crate) fn works(&self) {
        let ran = self.worker(&["--until-idle"]).ends();
        assert_eq!(ran.code, Some(0), "{ran:#?}");
    }

    /// Waits until so many events have come behind the first `after`; false when all work is done before.
    pub(crate) fn until_event(&self, after: usize, count: usize) -> bool {
        let begin = self.records().get(after.wrapping_sub(1)).map(|record| record.seq);
        let mut follower = self.engine.follow(Read::default().view(View::Durable)).expect("a log");
        let until = Instant::now() + PATIENCE;
        let mut seen = 0;
        while seen < count {
            assert!(Instant::now() < until, "event {count} does not come");
            match follower.next(Some(Duration::from_millis(200))).expect("a log") {
                Followed::Item(Item::Record(record)) if begin.is_none_or(|b| record.seq > b) => {
                    seen += 1;
                }
                Followed::Item(_) => {}
                _ if self.engine.work().unwrap().state().is_empty() => return false,
                _ => {}
            }
        }
        true
    }

    /// Waits until an event of a type has come so often.
    pub(crate) fn until(&self, kind: &str, count: usize) {
        let types = vec![NamePattern::Exact(kind.to_owned())];
        let filter = Filter { streams: Vec::new(), types };
        let mut follower = self.engine.follow(Read::default().filter(filter)).expect("a log");
        let until = Instant::now() + PATIENCE;
        let mut seen = 0;
        while seen < count {
            assert!(Instant::now() < until, "{kind} does not come {count} times");
            if let Followed::Item(Item::Record(_)) =
                follower.next(Some(Duration::from_millis(200))).expect("a log")
            {
                seen += 1;
            }
        }
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let items = self.engine.read(Read::default()).unwrap();
        items
            .map(|item| match item.unwrap() {
                Item::Record(record) => *record,
                Item::Gap(gap) => panic!("damage: {gap:?}"),
            })
            .collect()
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.records().iter().filter(|record| record.kind.as_str() == kind).count()
    }

    /// The ends of runs, in their order.
    pub(crate) fn ends(&self) -> Vec<(RunStatus, Option<String>)> {
        let ends =
            self.records().into_iter().filter_map(|record| match Event::of(&record).unwrap() {
                Event::RunFinished(end) => Some((end.status, end.reason)),
                _ => None,
            });
        ends.collect()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let path: PathBuf = self.home.path().join(name);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// How often an agent was started.
    pub(crate) fn starts(&self) -> usize {
        self.lines("starts").len()
    }

    /// What the sink was given.
    pub(crate) fn given(&self) -> Vec<Value> {
        let lines = self.lines("outbox");
        lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// What must hold when all is done.
    #[track_caller]
    pub(crate) fn at_rest(&self, what: &str) {
        let records = self.records();
        let wrong = check::log(&records, LIMITS);
        assert!(wrong.is_empty(), "{what}: {wrong:#?}\n{}", told(&records));
        assert_eq!(check::view(&records, &[records.len() / 2]), [""; 0], "{what}");
        let claims = self.count("run.claimed");
        assert!(self.starts() <= claims, "{what}: {} starts of {claims} claims", self.starts());
        let mut keys: Vec<String> =
            self.given().iter().map(|parcel| parcel["idempotencyKey"].to_string()).collect();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all, "{what}: something was sent twice\n{}", told(&records));
        for record in records.iter().filter(|record| record.kind.as_str() == "run.requested") {
            let run_id = record.stream.as_str().trim_start_matches("run:");
            let left = reaper::count(run_id, &self.home.store());
            assert_eq!(left, 0, "{what}: {run_id} has processes");
        }
        let verified = self.home.run(&["verify"]);
        assert_eq!(verified.code, Some(0), "{what}: {verified:#?}");
    }
}

/// The events as lines, for whoever has to find out what happened.
fn told(records: &[Record]) -> String {
    let line = |r: &Record| format!("{} {} {} {}\n", r.seq, r.stream, r.kind, r.data);
    records.iter().map(line).collect()
}

/// A worker that ends with the test.
pub(crate) struct Worker(Option<Child>);

impl Worker {
    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.0.as_ref().expect("it was not waited for").id();
        let pid = Pid::from_raw(id.try_into().expect("a pid")).expect("a pid");
        kill_process(pid, signal).expect("it runs");
    }

    /// Waits for its end.
    pub(crate) fn ends(mut self) -> Ran {
        Ran::end(self.0.take().expect("it was not waited for"))
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        let mut child = self.0.take().expect("it was not waited for");
        child.kill().expect("killed");
        child.wait().expect("it ended");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // A test that failed: what has ended already need not be ended.
            drop(child.kill());
            drop(child.wait());
        }
    }
}
