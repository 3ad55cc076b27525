//! Appends to one store from several processes at once.

use std::path::Path;
use std::time::Duration;

use annals_engine::engine::{Engine, Options};
use annals_engine::store::{Append, Durability};
use fastrand::Rng;

use super::Plan;
use super::append;
use crate::children::{self, Child};
use crate::floors::commit::{Alone, Appender};
use crate::load::{Feed, drive};
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side, median};
use crate::workload::Shape;

/// Who appends in a child.
const OURS: &str = "annals";
const FLOOR: &str = "floor";
const SQLITE: &str = "sqlite";

/// So many processes, each with one caller; every append returns when it is on stable storage.
#[must_use]
pub fn section(plan: &Plan, processes: usize) -> Section {
    let of = |who: &'static str| move || round(plan, who, processes);
    let mut contestants = vec![
        Contestant::new(Side::Ours, "annals", of(OURS)),
        Contestant::new(Side::Floor, "write + fdatasync", of(FLOOR)),
    ];
    if cfg!(feature = "rivals") {
        contestants.push(Contestant::new(
            Side::Rival,
            "SQLite, WAL, FULL, busy timeout",
            of(SQLITE),
        ));
    }
    let rows = rounds::run(contestants, plan.rounds);
    let word = if processes == 1 { "process" } else { "processes" };
    let mut section = Section {
        title: format!("Append, synced, {processes} {word}, one store"),
        terms: append::terms(plan),
        unit: Unit::EventsPerSecond,
        rows,
        verdicts: Vec::new(),
    };
    if processes > 1 {
        section.verdicts = vec![Verdict {
            target: "P3",
            what: format!("{processes} processes, synced: annals / SQLite"),
            found: section.ratio("annals", "SQLite"),
            limit: Limit::AtLeast(2.5),
        }];
    }
    section
}

/// Starts the processes, lets them begin together, and adds up what they did.
fn round(plan: &Plan, who: &str, processes: usize) -> Result<Figure, String> {
    let home = plan.scratch();
    let millis = plan.millis.to_string();
    let arguments = ["child-append", who, &millis];
    let mut children: Vec<Child> = Vec::new();
    for _ in 0..processes {
        let mut child = Child::start(&arguments, home.path());
        child.hear()?;
        children.push(child);
    }
    for child in &mut children {
        child.say("go");
    }
    let mut figures = Vec::new();
    for child in &mut children {
        let answer = child.hear()?;
        let numbers: Vec<f64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [value, p50, p99] = numbers[..] else { return Err(answer) };
        figures.push((value, p50, p99));
    }
    let percentiles = median(figures.iter().map(|f| f.1)).zip(median(figures.iter().map(|f| f.2)));
    Ok(Figure { value: figures.iter().map(|figure| figure.0).sum(), percentiles })
}

/// What a child does: it opens the store, waits for the start, and appends for a while.
pub fn child(who: &str, millis: u64, folder: &Path) {
    let feed = Feed::new(Shape { seed: u64::from(std::process::id()), ..Shape::default() });
    let time = Duration::from_millis(millis);
    let figure = match who {
        OURS => {
            let engine = Engine::open(folder, Options::default()).unwrap();
            begin();
            let random = std::sync::Mutex::new(Rng::new());
            drive(1, time, |caller, call| {
                let event = feed.event(caller, call, &mut random.lock().unwrap());
                let append = Append::new(vec![event]).durability(Durability::Synced);
                engine.append(append).map(drop).map_err(|error| error.to_string())
            })
        }
        FLOOR => {
            let floor = Alone::new(folder);
            begin();
            lines(&feed, time, &floor)
        }
        #[cfg(feature = "rivals")]
        SQLITE => crate::rivals::sqlite::Alone::open(folder).and_then(|store| {
            begin();
            lines(&feed, time, &store)
        }),
        other => Err(format!("nobody is called {other}")),
    };
    match figure {
        Ok(Figure { value, percentiles }) => {
            let (p50, p99) = percentiles.unwrap_or_default();
            children::tell(&format!("{value} {p50} {p99}"));
        }
        Err(failure) => children::tell(&failure.replace('\n', " ")),
    }
}

fn begin() {
    children::tell("ready");
    children::wait();
}

fn lines(feed: &Feed, time: Duration, to: &dyn Appender) -> Result<Figure, String> {
    let lines = feed.lines();
    drive(1, time, |_, call| to.append(lines.get(call % lines.len()).unwrap()))
}
