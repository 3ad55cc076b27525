//! Growth: the same work on stores of several sizes.

use std::path::Path;
use std::time::{Duration, Instant};

use annals_engine::Engine;
use annals_engine::engine::{self, Options};
use annals_engine::store::{Append, Durability};
use fastrand::Rng;

use super::Plan;
use crate::load::{Feed, drive};
use crate::program::Program;
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side};
use crate::stored;
use crate::workload::Shape;

/// What is done to a store of each size. Flat work finds the snapshots of a store that has grown, linear work none.
#[derive(Clone, Copy)]
struct Work {
    title: &'static str,
    unit: Unit,
    /// Whether the time grows as the store does.
    linear: bool,
    run: fn(&Plan, &Path) -> Result<Figure, String>,
}

const WORKS: [Work; 6] = [
    Work { title: "one synced append", unit: Unit::Micros, linear: false, run: append },
    Work { title: "`session push`", unit: Unit::Micros, linear: false, run: push },
    Work { title: "`sessions history`", unit: Unit::Micros, linear: false, run: history },
    Work { title: "`sessions list -n 200`", unit: Unit::Micros, linear: false, run: list },
    Work { title: "verify", unit: Unit::Seconds, linear: true, run: verify },
    Work { title: "replay", unit: Unit::Seconds, linear: true, run: replay },
];

/// A section for each sort of work, with a row for each size.
pub fn sections<'a>(plan: &'a Plan, sizes: &'a [usize]) -> impl Iterator<Item = Section> + 'a {
    WORKS.into_iter().map(move |work| section(plan, sizes, work))
}

fn section(plan: &Plan, sizes: &[usize], work: Work) -> Section {
    let home = plan.scratch();
    let mut contestants = Vec::new();
    for &events in sizes {
        let store = home.path().join(events.to_string());
        let made = Plan { events, ..plan.clone() }.store();
        if work.linear {
            stored::copy_without_snapshots(&made, &store);
        } else {
            stored::copy(&made, &store);
        }
        let name = format!("{events} events");
        contestants.push(Contestant::new(Side::Ours, name, move || (work.run)(plan, &store)));
    }
    let rows = rounds::run(contestants, plan.rounds.min(3));
    let mut section = Section {
        title: format!("Growth: {}", work.title),
        terms: "The same work on stores of several sizes, in the page cache.".to_owned(),
        unit: work.unit,
        rows,
        verdicts: Vec::new(),
    };
    section.verdicts = verdict(&section, sizes, work).into_iter().collect();
    section
}

/// Flat work takes as long on the greatest store as on the smallest; linear work as long for each event as on the one
/// before the greatest, since below that the start of the work counts.
#[expect(clippy::cast_precision_loss, reason = "a count of events")]
fn verdict(section: &Section, sizes: &[usize], work: Work) -> Option<Verdict> {
    let of = |size: usize| section.median(&format!("{size} events"));
    let greatest = *sizes.last()?;
    let other = if work.linear { *sizes.iter().rev().nth(1)? } else { *sizes.first()? };
    let growth = of(greatest).zip(of(other)).map(|(greatest, other)| greatest / other);
    let (what, found) = if work.linear {
        let times = greatest as f64 / other as f64;
        let what = format!("{} an event: {greatest} events / {other}", work.title);
        (what, growth.map(|growth| growth / times))
    } else {
        (format!("{}: {greatest} events / {other}", work.title), growth)
    };
    Some(Verdict { target: "P12", what, found, limit: Limit::AtMost(1.5) })
}

fn append(plan: &Plan, store: &Path) -> Result<Figure, String> {
    let (feed, random) = (Feed::new(Shape::default()), std::sync::Mutex::new(Rng::new()));
    let engine = Engine::open(store, Options::default()).unwrap();
    let figure = drive(1, Duration::from_millis(plan.millis), |caller, call| {
        let event = feed.event(caller, call, &mut random.lock().unwrap());
        let append = Append::new(vec![event]).durability(Durability::Synced);
        engine.append(append).map(drop).map_err(|error| error.to_string())
    })?;
    Ok(Figure { value: figure.percentiles.unwrap_or_default().0, ..figure })
}

fn push(plan: &Plan, store: &Path) -> Result<Figure, String> {
    program(plan, store, &["session", "push", "telegram", "700000003", "user", "a turn"])
}

fn history(plan: &Plan, store: &Path) -> Result<Figure, String> {
    program(plan, store, &["sessions", "history", Shape::default().stream(0).as_str()])
}

fn list(plan: &Plan, store: &Path) -> Result<Figure, String> {
    program(plan, store, &["sessions", "list", "-n", "200"])
}

fn program(plan: &Plan, store: &Path, arguments: &[&str]) -> Result<Figure, String> {
    let program = Program::beside_this(&plan.data)?;
    Ok(Figure::of(program.time(store, arguments)?.as_secs_f64() * 1e6))
}

fn verify(_: &Plan, store: &Path) -> Result<Figure, String> {
    let begun = Instant::now();
    let report = engine::verify(store, &mut |_| {}).map_err(|error| error.to_string())?;
    let took = begun.elapsed().as_secs_f64();
    if report.is_sound() { Ok(Figure::of(took)) } else { Err("damage".to_owned()) }
}

fn replay(_: &Plan, store: &Path) -> Result<Figure, String> {
    let begun = Instant::now();
    let engine = stored::open(store);
    let folded = engine.sessions().map_err(|error| error.to_string())?;
    let took = begun.elapsed().as_secs_f64();
    if folded.state().is_empty() { Err("no sessions".to_owned()) } else { Ok(Figure::of(took)) }
}
