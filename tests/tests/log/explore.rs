//! Random runs: three processes append, repeat, roll and are killed; syncs and write-back fail; the power fails, also
//! inside recovery; the clock jumps; other programs write into the log. After each recovery every invariant is checked.

use std::sync::Arc;
use std::time::Duration;

use annals_engine::ErrorKind;
use annals_engine::clock::Clock;
use annals_engine::store::{Durability, NewEvent};
use annals_tests::disk::{Chances, Kernel, Loss, Pid, View};
use annals_tests::history::{Found, Wrong};
use fastrand::Rng;

use super::counter;
use super::machine::{Machine, Opener, active, event, read_durable};

/// What may happen in a run.
#[derive(Clone, Copy, Debug)]
struct Weather {
    /// The chance, at each turn, that a process is killed instead of making its next call.
    kill: f64,
    chances: Chances,
    /// The chance, at each turn, that another program appends to the log.
    foreign: f64,
    /// Whether the power may fail; else all processes are killed.
    power: bool,
    /// Whether a power loss takes the lock files along.
    locks_lost: bool,
}

const FAIR: Weather = Weather {
    kill: 0.006,
    chances: Chances {
        sync_fails: 0.0,
        write_back: 0.05,
        write_back_fails: 0.0,
        read_fails: 0.0,
        short_read: 0.02,
        short_write: 0.02,
    },
    foreign: 0.0,
    power: true,
    locks_lost: false,
};

/// Power losses and some kills.
#[test]
fn power_losses() {
    explore("power_losses", FAIR);
}

/// Kills alone: then even what was only written outlives them.
#[test]
fn kills() {
    explore("kills", Weather { power: false, kill: 0.03, ..FAIR });
}

/// The lock files, and with them the floor, are gone after a power loss.
#[test]
fn lost_lock_files() {
    explore("lost_lock_files", Weather { locks_lost: true, ..FAIR });
}

/// One sync in ten fails, in any of the ways in which a sync fails.
#[test]
fn failed_syncs() {
    let chances = Chances { sync_fails: 0.1, ..FAIR.chances };
    explore("failed_syncs", Weather { chances, ..FAIR });
}

/// Failed syncs, and processes that die with what they know of them.
#[test]
fn failed_syncs_and_kills() {
    let chances = Chances { sync_fails: 0.1, ..FAIR.chances };
    explore("failed_syncs_and_kills", Weather { kill: 0.03, chances, ..FAIR });
}

/// Errors of background write-back, told to whoever syncs next.
#[test]
fn write_back_errors() {
    let chances = Chances { write_back: 0.1, write_back_fails: 0.1, ..FAIR.chances };
    explore("write_back_errors", Weather { kill: 0.024, chances, ..FAIR });
}

/// Reads fail now and then: an error, never the end of the log and never corruption.
#[test]
fn failed_reads() {
    let chances = Chances { read_fails: 0.003, ..FAIR.chances };
    explore("failed_reads", Weather { chances, ..FAIR });
}

/// Another program appends to the log now and then.
#[test]
fn foreign_bytes() {
    explore("foreign_bytes", Weather { foreign: 0.003, ..FAIR });
}

/// The same seed gives the same calls and the same answers.
#[test]
fn a_seed_repeats() {
    let trace = || {
        let mut run = Run::new(11, FAIR);
        run.round();
        let calls: Vec<String> = run.m.disk.trace().iter().map(ToString::to_string).collect();
        let told = format!("{:?}", run.m.told().synced);
        (calls, told)
    };
    assert_eq!(trace(), trace());
}

fn explore(name: &str, weather: Weather) {
    let seeds = std::env::var("ANNALS_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let first = std::env::var("ANNALS_SEED").ok().and_then(|n| n.parse().ok());
    let range = first.map_or(0..seeds, |first: u64| first..first + 1);
    let mut told = 0;
    for seed in range {
        let mut run = Run::new(seed, weather);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..3).map(|_| run.round()).find(|wrong| !wrong.is_empty()).unwrap_or_default()
        }));
        told += run.m.told().synced.len();
        let again = format!("ANNALS_SEED={seed} cargo test -p annals-tests --test log {name}");
        match result {
            Ok(wrong) => {
                if !wrong.is_empty() {
                    run.print_calls();
                }
                assert!(wrong.is_empty(), "{wrong:#?}\nseed {seed}: {again}");
            }
            Err(panic) => {
                run.print_calls();
                eprintln!("seed {seed}: {again}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    assert!(told > 0, "nothing was ever acknowledged");
}

struct Run {
    m: Machine,
    rng: Rng,
    weather: Weather,
    processes: Vec<Pid>,
    reader: Pid,
    /// The disk after each power loss since the last check: what is on it then goes only where recovery puts it.
    stable: Vec<Kernel>,
    /// The machine after kills alone; another power loss may take from it what was not synced.
    volatile: Option<Kernel>,
}

impl Run {
    fn new(seed: u64, weather: Weather) -> Self {
        let m = Machine::new(seed).rolling_at(6_000);
        Self {
            m,
            rng: Rng::with_seed(seed),
            weather,
            processes: Vec::new(),
            reader: Pid(0),
            stable: Vec::new(),
            volatile: None,
        }
    }

    /// Processes at work, a crash, a recovery that may crash itself, and the checks.
    fn round(&mut self) -> Wrong {
        let chances = self.weather.chances;
        self.m.disk.set_chances(chances);
        self.m.told().syncs_fail = chances.sync_fails + chances.write_back_fails > 0.0;
        self.processes = (0..3).map(|_| self.start()).collect();
        self.reader = self.start_reader();
        let end = self.m.disk.calls() + self.rng.usize(50..1_500);
        while self.m.disk.calls() < end {
            self.step();
        }
        self.m.disk.end_all();
        self.m.told().all_died();
        let before = self.m.disk.look(Found::read);
        self.crash(0.8);
        self.recoveries();
        self.m.disk.set_chances(Chances::default());
        let mut wrong = std::mem::take(&mut self.m.told().wrong);
        let (stable, volatile) = (std::mem::take(&mut self.stable), self.volatile.take());
        let images: Vec<&Kernel> = stable.iter().chain(&volatile).collect();
        wrong.extend(self.m.check_recovery(Some(&before), &images));
        wrong.extend(self.opening_again_changes_nothing());
        wrong.extend(self.derived_files_change_no_answer());
        if self.weather.foreign > 0.0 {
            // Bytes behind a seal are left where they are, and reported.
            wrong.retain(|text| !text.contains("stand behind the seal"));
        }
        wrong
    }

    fn step(&mut self) {
        let n = self.rng.usize(0..self.processes.len());
        self.m.clock.advance(Duration::from_micros(self.rng.u64(1..500)));
        if self.happens(0.002) {
            let by = Duration::from_millis(self.rng.u64(0..10_000_000));
            let now = self.m.clock.now();
            self.m.clock.set(if self.rng.bool() { now.minus(by) } else { now.plus(by) });
        }
        if self.happens(self.weather.kill) {
            self.kill(n);
        } else if self.happens(self.weather.foreign) {
            self.m.disk.meddle(|kernel| {
                if kernel.names("log").iter().any(|name| name.ends_with(".jsonl")) {
                    kernel.scribble(&active(kernel), b"oops\n");
                }
            });
        } else if let Some(pid) = self.m.disk.draw(&mut self.rng) {
            // Often one call, sometimes several in a row.
            let calls = [1, 1, 1, 2, 3, 5, 8][self.rng.usize(0..7)];
            self.m.disk.run(pid, calls);
        }
        for n in 0..self.processes.len() {
            if self.m.disk.call_waiting(self.processes[n]).is_none() {
                self.processes[n] = self.start();
            }
        }
        if self.m.disk.call_waiting(self.reader).is_none() {
            self.reader = self.start_reader();
        }
    }

    /// A process that reads the log again and again, from where it stood.
    fn start_reader(&mut self) -> Pid {
        let opener = self.m.opener();
        self.m.disk.spawn("reader", move |view| {
            let mut cursor = None;
            for _ in 0..20 {
                match read_durable(&opener, Arc::clone(&view), cursor) {
                    Ok(now) => cursor = now,
                    Err(error) if *error.kind() == ErrorKind::HistoryChanged => {
                        let wrong = format!("durable history changed for a reader: {error}");
                        return opener.told.lock().unwrap().wrong.push(wrong);
                    }
                    Err(_) => return,
                }
            }
        })
    }

    fn start(&mut self) -> Pid {
        let (opener, seed) = (self.m.opener(), self.rng.u64(..));
        self.m.disk.spawn("worker", move |view| work(&opener, view, seed))
    }

    fn kill(&mut self, n: usize) {
        let bytes = self.m.disk.write_waiting(self.processes[n]);
        let left = if self.rng.f64() < 0.7 { self.rng.usize(0..=bytes) } else { 0 };
        self.m.disk.kill(self.processes[n], left);
        self.m.told().died(self.processes[n]);
        self.processes[n] = self.start();
    }

    fn crash(&mut self, chance: f64) {
        self.m.disk.end_all();
        if !self.weather.power || !self.happens(chance) {
            self.volatile = Some(self.m.disk.look(Kernel::clone));
            return;
        }
        self.volatile = None;
        self.m.power_loss(&Loss::Seed(self.rng.u64(..)));
        if self.weather.locks_lost && self.rng.bool() {
            self.m.disk.meddle(|kernel| {
                kernel.take("lock.append");
                kernel.take("lock.sync");
            });
        }
        self.stable.push(self.m.disk.look(Kernel::clone));
    }

    /// Recoveries that crash at some call, or fail as the weather has it.
    fn recoveries(&mut self) {
        for _ in 0..6 {
            let opener = self.m.opener();
            let pid = self.m.disk.spawn("recovery", move |view| {
                if let Err(error) = opener.open(view)
                    && *error.kind() == ErrorKind::Corrupt
                {
                    opener.told.lock().unwrap().wrong.push(format!("false corruption: {error}"));
                }
            });
            if self.rng.f64() >= 0.4 {
                self.m.disk.finish(pid);
                continue;
            }
            for _ in 0..self.rng.usize(1..60) {
                self.m.disk.step(pid);
            }
            let left = self.rng.usize(0..=self.m.disk.write_waiting(pid));
            self.m.disk.kill(pid, left);
            self.crash(0.5);
        }
    }

    fn opening_again_changes_nothing(&self) -> Wrong {
        let log_and_torn = || {
            let mut files = self.m.disk.look(Kernel::files);
            files.retain(|name, _| name.starts_with("log/") || name.starts_with("torn/"));
            files
        };
        let before = log_and_torn();
        if let Err(error) = self.m.open() {
            return vec![format!("I4: the second opening fails: {error}")];
        }
        let changed = log_and_torn() != before;
        changed.then(|| "I4: the second opening changes files".to_owned()).into_iter().collect()
    }

    /// I7: without the indexes and the hint about the end, the answers are the same.
    fn derived_files_change_no_answer(&self) -> Wrong {
        let bare = self.m.on(self.m.disk.fork());
        bare.disk.meddle(|kernel| {
            for name in kernel.names("log").iter().filter(|name| name.contains(".idx")) {
                kernel.take(&format!("log/{name}"));
            }
            kernel.take("lock.append");
        });
        let before = bare.disk.look(Found::read);
        let mut wrong = bare.check_recovery(None, &[]);
        let now = bare.disk.look(Found::read);
        let same = before.lines.iter().zip(&now.lines).take_while(|(a, b)| a == b).count();
        if same < before.lines.len().max(now.lines.len()) {
            wrong.push(format!("{:?} became {:?}", before.lines.get(same), now.lines.get(same)));
        }
        wrong.iter().map(|text| format!("I7: without derived files: {text}")).collect()
    }

    /// Prints the last calls, as many as the environment asks for.
    fn print_calls(&self) {
        let count = std::env::var("ANNALS_CALLS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
        let trace = self.m.disk.trace();
        for (n, done) in trace.iter().enumerate().skip(trace.len().saturating_sub(count)) {
            println!("{n} {done}");
        }
    }

    fn happens(&mut self, chance: f64) -> bool {
        self.rng.f64() < chance
    }
}

/// Opens the log and appends until it is killed or refused.
fn work(opener: &Opener, view: Arc<View>, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let wrong = |what: String| opener.told.lock().unwrap().wrong.push(what);
    let client = match opener.open(view) {
        Ok(client) => client,
        Err(error) if *error.kind() == ErrorKind::Corrupt => {
            return wrong(format!("false corruption: {error}"));
        }
        Err(_) => return,
    };
    let mut counter = client.counter();
    for _ in 0..1_000 {
        let durability = if rng.f64() < 0.2 { Durability::Buffered } else { Durability::Synced };
        let answer = if rng.f64() < 0.1 {
            client.count(&mut counter, durability)
        } else {
            client.append_with(draw_batch(&mut rng, opener), durability)
        };
        match answer {
            Err(error) if *error.kind() == ErrorKind::Corrupt => {
                return wrong(format!("false corruption: {error}"));
            }
            Err(error) if *error.kind() == ErrorKind::ReadOnly => return,
            _ => {}
        }
    }
}

/// A batch that was sent before, unless it was decided on, or a new one of one to three events.
fn draw_batch(rng: &mut Rng, opener: &Opener) -> Vec<NewEvent> {
    let told = opener.told.lock().unwrap();
    let number = told.sent.len();
    if number > 0 && rng.f64() < 0.15 {
        let again = &told.sent[rng.usize(0..number)];
        if !counter::is_number(again) {
            return again.clone();
        }
    }
    let stream = format!("s{}", rng.u8(1..4));
    let count = [1, 1, 1, 2, 3][rng.usize(0..5)];
    let bytes = |rng: &mut Rng| [5, 60, 300, 700][rng.usize(0..4)];
    (0..count).map(|n| event(&stream, &format!("{number}.{n}"), bytes(rng))).collect()
}
