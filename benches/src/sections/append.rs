//! Appends, one event a call, from one process.

use std::path::Path;
use std::time::Duration;

use annals_engine::engine::{Engine, Options};
use annals_engine::store::{Append, Durability};
use fastrand::Rng;

use super::Plan;
use crate::floors::commit::{Alone, Appender, Unsynced, one_lock, two_buffers};
use crate::floors::shared::{Shared, Until};
use crate::load::{Feed, Ready, drive};
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rivals;
use crate::rounds::{self, Contestant, Figure, Side};
use crate::workload::Shape;

/// The floor that makes the calls which several processes without a daemon need.
const SHARED: &str = "the same under the locks of several processes";

/// So many callers in one process; every append returns when it is on stable storage.
#[must_use]
pub fn synced(plan: &Plan, callers: usize) -> Section {
    let feed = Feed::new(Shape::default());
    let lines = feed.lines();
    let mut contestants = vec![Contestant::new(Side::Ours, "annals", || {
        ours(plan, &feed, callers, Durability::Synced)
    })];
    contestants.push(floor(plan, &lines, callers, "write + fdatasync", |folder| {
        Box::new(Alone::new(folder))
    }));
    if callers == 1 {
        contestants.push(floor(plan, &lines, callers, SHARED, |folder| {
            Box::new(Shared::new(folder, Until::Synced))
        }));
    }
    if callers > 1 {
        contestants.push(floor(plan, &lines, callers, "one-lock group commit", |folder| {
            Box::new(one_lock(folder))
        }));
        contestants.push(floor(plan, &lines, callers, "two-buffer group commit", |folder| {
            Box::new(two_buffers(folder))
        }));
    }
    for rival in rivals::all() {
        contestants.push(Contestant::new(Side::Rival, rival.name, || {
            let home = plan.scratch();
            let store = (rival.appender)(home.path(), callers)?;
            lines_of(plan, &lines, callers, &*store)
        }));
    }
    let rows = rounds::run(contestants, plan.rounds);
    let callers_word = if callers == 1 { "caller" } else { "callers" };
    let mut section = Section {
        title: format!("Append, synced, {callers} {callers_word}, one process"),
        terms: terms(plan),
        unit: Unit::EventsPerSecond,
        rows,
        verdicts: Vec::new(),
    };
    section.verdicts = if callers == 1 { alone(&section) } else { together(&section, callers) };
    section
}

/// What the figures of synced appends have in common.
pub(super) fn terms(plan: &Plan) -> String {
    format!(
        "Every acknowledgement after `fdatasync`; one event of 700 B a call; {} rounds of {} ms.",
        plan.rounds, plan.millis
    )
}

fn alone(section: &Section) -> Vec<Verdict> {
    let p99 = |name| section.row(name).and_then(|row| row.percentiles()).map(|p| p.1);
    let p99s = p99("annals").zip(p99("write + fdatasync"));
    vec![
        Verdict {
            target: "P1",
            what: "1 caller, synced: annals / write + fdatasync".to_owned(),
            found: section.ratio("annals", "write + fdatasync"),
            limit: Limit::AtLeast(0.9),
        },
        Verdict {
            target: "P1",
            what: "1 caller, synced: p99 of annals / p99 of write + fdatasync".to_owned(),
            found: p99s.map(|(ours, floor)| ours / floor),
            limit: Limit::AtMost(1.5),
        },
    ]
}

fn together(section: &Section, callers: usize) -> Vec<Verdict> {
    let best = section.median("annals").zip(section.best_rival());
    let mut verdicts = vec![Verdict {
        target: "P2",
        what: format!("{callers} callers, synced: annals / two-buffer group commit"),
        found: section.ratio("annals", "two-buffer"),
        limit: Limit::AtLeast(0.8),
    }];
    if callers >= 64 {
        verdicts.push(Verdict {
            target: "P2",
            what: format!("{callers} callers, synced: annals / the best peer"),
            found: best.map(|(ours, best)| ours / best),
            limit: Limit::AtLeast(2.0),
        });
    }
    verdicts
}

/// One caller; the operating system writes back when it likes.
#[must_use]
pub fn buffered(plan: &Plan) -> Section {
    let feed = Feed::new(Shape::default());
    let lines = feed.lines();
    let contestants = vec![
        Contestant::new(Side::Ours, "annals", || ours(plan, &feed, 1, Durability::Buffered)),
        floor(plan, &lines, 1, "one write a line", |folder| Box::new(Unsynced::new(folder))),
        floor(plan, &lines, 1, SHARED, |folder| Box::new(Shared::new(folder, Until::Written))),
    ];
    let rows = rounds::run(contestants, plan.rounds);
    let mut section = Section {
        title: "Append, buffered, 1 caller".to_owned(),
        terms: format!(
            "Every acknowledgement after `write`: a crash of the process loses nothing, a power loss may; one event of \
             700 B a call; {} rounds of {} ms.",
            plan.rounds, plan.millis
        ),
        unit: Unit::EventsPerSecond,
        rows,
        verdicts: Vec::new(),
    };
    section.verdicts = vec![Verdict {
        target: "P4",
        what: "1 caller, buffered: annals / one write a line".to_owned(),
        found: section.ratio("annals", "one write a line"),
        limit: Limit::AtLeast(0.7),
    }];
    section
}

/// A round of annals on a new store.
fn ours(
    plan: &Plan,
    feed: &Feed,
    callers: usize,
    durability: Durability,
) -> Result<Figure, String> {
    let home = plan.scratch();
    let engine = Engine::open(home.path(), Options::default()).unwrap();
    engine.append(Append::new(vec![feed.event(0, 0, &mut Rng::new())])).unwrap();
    let ready = Ready::new(feed, callers, plan.millis);
    drive(callers, Duration::from_millis(plan.millis), |caller, call| {
        let append = Append::new(vec![ready.next(caller, call)]).durability(durability);
        engine.append(append).map(drop).map_err(|error| error.to_string())
    })
}

/// A floor, each round on a new file.
fn floor<'a>(
    plan: &'a Plan,
    lines: &'a [Vec<u8>],
    callers: usize,
    name: &'static str,
    make: fn(&Path) -> Box<dyn Appender>,
) -> Contestant<'a> {
    Contestant::new(Side::Floor, name, move || {
        let home = plan.scratch();
        let floor = make(home.path());
        lines_of(plan, lines, callers, &*floor)
    })
}

fn lines_of(
    plan: &Plan,
    lines: &[Vec<u8>],
    callers: usize,
    to: &dyn Appender,
) -> Result<Figure, String> {
    drive(callers, Duration::from_millis(plan.millis), |caller, call| {
        to.append(lines.get((caller * 97 + call) % lines.len()).unwrap())
    })
}
