//! Watchers on files that are not real, at a time that is not real, over a log in memory.

use std::sync::{Arc, Mutex};

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::session::event::{Links, RunClaimed, RunFinished, RunStatus};
use crate::session::watching::AllWatched;
use crate::store::{Append, Read, Record};
use crate::watch::{Hints, Look, NoNotice, Scan};

/// Files that are not real.
#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<PathBuf, (String, Stamp)>,
    hints: Hints,
    /// Why there are no notifications.
    broken: Option<NoNotice>,
    /// Whether changes are hinted at.
    mute: bool,
    writes: u64,
}

#[derive(Clone, Debug)]
struct Fake(Arc<Mutex<Disk>>);

impl Files for Fake {
    fn notify(&mut self) -> Result<(), NoNotice> {
        self.0.lock().unwrap().broken.map_or(Ok(()), Err)
    }

    fn hints(&mut self, _: Duration) -> Result<Hints, NoNotice> {
        let mut disk = self.0.lock().unwrap();
        match disk.broken {
            Some(reason) => Err(reason),
            None => Ok(std::mem::take(&mut disk.hints)),
        }
    }

    fn scan(&mut self) -> Scan {
        let disk = self.0.lock().unwrap();
        let files = disk.files.iter().map(|(path, (_, stamp))| (path.clone(), *stamp));
        Scan { files: files.collect(), unread: Vec::new() }
    }

    fn look(&self, path: &Path) -> Look {
        match self.0.lock().unwrap().files.get(path) {
            Some((sha256, stamp)) => Look::Content { sha256: sha256.clone(), stamp: *stamp },
            None => Look::Gone,
        }
    }

    fn selects(&self, _: &Path) -> bool {
        true
    }
}

/// A store, a clock, files, and watchers of one rule, each with its own view of the same files.
struct Stage {
    engine: Engine,
    clock: Arc<ManualClock>,
    begin: Timestamp,
    rule: Rule,
    disks: Vec<Arc<Mutex<Disk>>>,
    watchers: Vec<Watcher<Fake>>,
}

impl Stage {
    fn new(count: usize) -> Self {
        let begin = Timestamp::from_millis(1_775_001_600_000);
        let clock = Arc::new(ManualClock::new(begin));
        let engine = Engine::in_memory(clock.clone());
        let disks = (0..count).map(|_| Arc::default()).collect();
        let rule = Rule::new("r", &["**"]);
        let mut stage = Self { engine, clock, begin, rule, disks, watchers: Vec::new() };
        stage.restart();
        stage
    }

    /// All watchers end, whatever they were at, and begin anew.
    fn restart(&mut self) {
        let new = |disk: &Arc<Mutex<Disk>>| {
            disk.lock().unwrap().hints = Hints::default();
            let agent = AgentId::parse("main").unwrap();
            let terms = Terms { rules: TimeRules::none(), agent, stores: true };
            Watcher::new(self.engine.clone(), self.rule.clone(), terms, Fake(Arc::clone(disk)))
        };
        self.watchers = self.disks.iter().map(new).collect();
    }

    fn write(&self, path: &str, content: Option<&str>) {
        for disk in &self.disks {
            let mut disk = disk.lock().unwrap();
            disk.writes += 1;
            let changed = self.clock.now();
            let stamp = Stamp { inode: disk.writes, len: 1, modified: 0, changed };
            match content {
                Some(content) => drop(disk.files.insert(path.into(), (content.into(), stamp))),
                None => drop(disk.files.remove(Path::new(path))),
            }
            if !disk.mute {
                disk.hints.paths.insert(path.into());
            }
        }
    }

    fn each_disk(&self, change: impl Fn(&mut Disk)) {
        self.disks.iter().for_each(|disk| change(&mut disk.lock().unwrap()));
    }

    fn now(&self) -> Duration {
        let micros = self.clock.now().as_micros() - self.begin.as_micros();
        Duration::from_micros(micros.unsigned_abs())
    }

    fn step(&mut self) {
        let now = self.now();
        for watcher in &mut self.watchers {
            watcher.step(now).unwrap();
        }
    }

    /// Lets so much time pass, in steps.
    fn pass(&mut self, millis: u64) {
        for _ in 0..millis.div_ceil(50) {
            self.step();
            self.clock.advance(Duration::from_millis(50));
        }
        self.step();
    }

    fn records(&self) -> Vec<Record> {
        let items = self.engine.read(Read::default()).unwrap();
        items
            .map(|item| match item.unwrap() {
                Item::Record(record) => *record,
                Item::Gap(gap) => panic!("a gap in memory: {gap:?}"),
            })
            .collect()
    }

    fn told(&self) -> Vec<Event> {
        let records = self.records();
        let of_rule = records.iter().filter(|record| record.stream.as_str() == "watch:r");
        of_rule.map(|record| Event::of(record).unwrap()).collect()
    }

    /// Path and content of each firing, in order.
    fn fired(&self) -> Vec<(String, String)> {
        let fired = self.told().into_iter().filter_map(|event| match event {
            Event::WatchFired(fired) => Some((fired.path, fired.sha256)),
            _ => None,
        });
        fired.collect()
    }

    fn append(&self, event: &Event, run_id: &str) {
        let id = crate::id::EventId::new(self.clock.now());
        let new = event.to_new(run_stream(run_id).unwrap(), id, Links::default()).unwrap();
        self.engine.append(Append::new(vec![new])).unwrap();
    }

    fn last_run(&self) -> String {
        self.watchers[0].watched().fired().next_back().unwrap().run_id.clone()
    }

    fn claim(&self, run_id: &str) {
        let event = Event::RunClaimed(RunClaimed {
            at: None,
            run_id: run_id.to_owned(),
            worker: "w".into(),
            pid: 1,
            process_start: "1".into(),
            boot_id: "b".into(),
            host: "h".into(),
            lease_until: self.clock.now().plus(Duration::from_secs(600)),
            token_sha256: None,
        });
        self.append(&event, run_id);
    }

    fn finish(&self, run_id: &str) {
        let event = Event::RunFinished(RunFinished {
            at: None,
            run_id: run_id.to_owned(),
            status: RunStatus::Ok,
            reason: None,
            exit: Some(0),
            signal: None,
            runtime_ms: 1,
            tokens: None,
            cost_micros: None,
            reply_seq: None,
            agent_session_id: None,
            detail: None,
            stderr_tail: None,
        });
        self.append(&event, run_id);
    }
}

/// Numbers that follow from a seed (Marsaglia's xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Goal: each content that has settled and differs from what is recorded fires exactly once, whatever happens on the way.
/// Method: scripts of changes, restarts, lost and broken notifications from seeds, at one watcher or two on the same log;
/// after each settling the firings are held against a model that knows only the contents.
#[test]
fn each_settled_content_fires_once() {
    for seed in 1..=150_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut stage = Stage::new(if seed % 3 == 0 { 2 } else { 1 });
        stage.write("/0", Some("first"));
        stage.step();
        let mut recorded = BTreeMap::from([("/0".to_owned(), "first".to_owned())]);
        let mut disk = recorded.clone();
        let mut expect = Vec::new();
        for _ in 0..25 {
            let mut silent = false;
            for _ in 0..=dice.below(8) {
                let path = format!("/{}", dice.below(3));
                match dice.below(12) {
                    0 => stage.restart(),
                    1 => stage.each_disk(|disk| {
                        disk.hints = Hints { paths: BTreeSet::new(), lost: true };
                    }),
                    2 => {
                        let broken = [None, Some(NoNotice::Limit), Some(NoNotice::Failed)];
                        let broken = broken[usize::try_from(dice.below(3)).unwrap()];
                        stage.each_disk(|disk| disk.broken = broken);
                    }
                    3 => {
                        silent = true;
                        stage.each_disk(|disk| disk.mute = true);
                    }
                    4 | 5 => {
                        disk.remove(&path);
                        stage.write(&path, None);
                    }
                    _ => {
                        let content = ["x", "y", "z"][usize::try_from(dice.below(3)).unwrap()];
                        disk.insert(path.clone(), content.to_owned());
                        stage.write(&path, Some(content));
                    }
                }
                if dice.below(2) == 0 {
                    stage.step();
                }
                stage.clock.advance(Duration::from_millis(10));
            }
            if silent {
                stage.pass(1_200);
                stage.clock.advance(SAFETY_EVERY);
            }
            stage.pass(2_600);
            stage.each_disk(|disk| disk.mute = false);
            for path in ["/0", "/1", "/2"] {
                let is = disk.get(path);
                if recorded.get(path) != is {
                    expect.push((path.to_owned(), is.cloned().unwrap_or_default()));
                    match is {
                        Some(content) => drop(recorded.insert(path.to_owned(), content.clone())),
                        None => drop(recorded.remove(path)),
                    }
                }
            }
            // Files of one settling may fire in any order.
            let mut fired = stage.fired();
            let begin = expect.iter().zip(&fired).take_while(|(a, b)| a == b).count();
            fired[begin..].sort();
            expect[begin..].sort();
            assert_eq!(fired, expect, "seed {seed}");
        }
        let requests =
            stage.records().iter().filter(|r| r.kind.as_str() == "run.requested").count();
        assert_eq!(requests, expect.len(), "seed {seed}");
    }
}

/// Goal: a run that changes its own file fires once after it, three times at most; then the rule stops, and goes on when it
/// is reset. Method: runs claimed and ended by hand, a file written during each.
#[test]
fn a_rule_that_fires_itself_stops() {
    let mut stage = Stage::new(1);
    stage.step();
    stage.write("/a", Some("0"));
    stage.pass(300);
    for turn in 1..=4_u32 {
        let run = stage.last_run();
        stage.claim(&run);
        stage.clock.advance(Duration::from_millis(10));
        for half in ["", "'"] {
            stage.write("/a", Some(&format!("{turn}{half}")));
            stage.pass(1_500);
        }
        let before = stage.fired().len();
        stage.finish(&run);
        stage.pass(600);
        let more = usize::from(turn <= 3);
        assert_eq!(stage.fired().len(), before + more, "turn {turn}");
    }
    assert_eq!(stage.fired().len(), 4);
    assert_eq!(stage.watchers[0].watched().stopped(), Some(REASON_LOOP));
    stage.write("/b", Some("while it is stopped"));
    stage.step();
    assert_eq!(stage.disks[0].lock().unwrap().hints, Hints::default(), "nothing wakes for ever");
    stage.write("/b", None);
    stage.restart();
    stage.pass(1_000);
    assert_eq!(stage.fired().len(), 4);
    reset(&stage.engine, &stage.rule.name).unwrap();
    stage.pass(1_500);
    assert_eq!(stage.fired().last().unwrap().1, "4'");
    let mut all = AllWatched::default();
    stage.records().iter().for_each(|record| all.apply(&record.fields()));
    assert_eq!(all.iter().map(|(name, rule)| (name, rule.stopped())).next(), Some(("r", None)));
}

/// Goal: files that change without a word are found, and the rule says that it looks from time to time. Method: a file
/// written while nothing is hinted at.
#[test]
fn silence_is_noticed() {
    let mut stage = Stage::new(1);
    stage.step();
    stage.each_disk(|disk| disk.mute = true);
    stage.write("/a", Some("1"));
    stage.clock.advance(SAFETY_EVERY);
    stage.pass(300);
    assert_eq!(stage.fired().len(), 1);
    assert_eq!(stage.watchers[0].watched().degraded(), Some(SILENT));
    stage.write("/a", Some("2"));
    stage.pass(2_500);
    assert_eq!(stage.fired().len(), 2);
}

/// Goal: broken notifications are said, and so is that they are back. Method: they break and mend.
#[test]
fn degraded_and_back() {
    let mut stage = Stage::new(1);
    stage.step();
    stage.each_disk(|disk| disk.broken = Some(NoNotice::Limit));
    stage.pass(100);
    assert_eq!(stage.watchers[0].watched().degraded(), Some("limit"));
    stage.each_disk(|disk| disk.broken = None);
    stage.clock.advance(TRY_EVERY);
    stage.pass(100);
    assert_eq!(stage.watchers[0].watched().degraded(), None);
}

/// Goal: a rule over its limit delays and puts together, and loses nothing. Method: five files at two runs a minute, one of
/// them changed again while it waits.
#[test]
fn a_storm_is_delayed() {
    let mut stage = Stage::new(1);
    stage.rule.runs_per_minute = Some(2);
    stage.restart();
    stage.step();
    for path in ["/a", "/b", "/c", "/d", "/e"] {
        stage.write(path, Some("1"));
    }
    stage.pass(300);
    assert_eq!(stage.fired().len(), 2);
    stage.write("/e", Some("2"));
    for count in [4, 5] {
        stage.clock.advance(Duration::from_secs(60));
        stage.pass(300);
        assert_eq!(stage.fired().len(), count);
    }
    let fired = stage.fired();
    assert_eq!(fired.len(), 5);
    assert_eq!(fired[4], ("/e".to_owned(), "2".to_owned()));
}

/// Goal: with `initial` what is there fires, once; a rule that cannot start its runs stops and says why; who stores nothing
/// tells the same. Method: a file that is there before, a restart, a session that no turn opens.
#[test]
fn first_looks() {
    let mut stage = Stage::new(1);
    stage.rule.initial = true;
    stage.write("/a", Some("1"));
    stage.restart();
    stage.watchers[0].terms.stores = false;
    stage.pass(300);
    assert!(stage.records().is_empty());
    stage.restart();
    stage.pass(300);
    stage.restart();
    stage.pass(300);
    assert_eq!(stage.fired().len(), 1);
    stage.rule.session = Some("agent:main:subagent:{rule}".into());
    stage.write("/b", Some("1"));
    stage.restart();
    stage.pass(300);
    let why = stage.watchers[0].watched().stopped().unwrap().to_owned();
    assert!(why.starts_with("refused: "), "{why}");
    assert_eq!(stage.fired().len(), 1);
}
