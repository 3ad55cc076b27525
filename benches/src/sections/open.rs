//! Opening a store whose writer was killed.

use std::path::Path;
use std::time::{Duration, Instant};

use annals_engine::engine::{Engine, Options};

use super::{Plan, SMALL, keeping};
use crate::children::Child;
use crate::program::Program;
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side};
use crate::stored;

/// How long the writer lives.
const ALIVE: Duration = Duration::from_millis(200);

/// A store of the plan's size and a small one, opened for appending after the kill, and read by the program.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let small = Plan { events: SMALL, ..plan.clone() };
    let kept = keeping::all(plan);
    let mut contestants = Vec::new();
    for plan in [plan, &small] {
        let name = format!("annals, open, {} events", plan.events);
        contestants.push(Contestant::new(Side::Ours, name, || after_a_kill(plan, open)));
    }
    for plan in [plan, &small] {
        let name = format!("annals, open and sessions, {} events", plan.events);
        contestants.push(Contestant::new(Side::Ours, name, || after_a_kill(plan, sessions)));
    }
    contestants.push(Contestant::new(
        Side::Ours,
        format!("annals, open and sessions without a snapshot, {} events", plan.events),
        || after_a_kill(plan, without_snapshot),
    ));
    for plan in [plan, &small] {
        let name = format!("annals, `sessions list`, {} events", plan.events);
        contestants.push(Contestant::new(Side::Ours, name, || after_a_kill(plan, list)));
    }
    for kept in &kept {
        let name = format!("{}, open, {} events", kept.rival.name, plan.events);
        contestants.push(Contestant::new(Side::Rival, name, || {
            let begun = Instant::now();
            let store = kept.open()?;
            let took = begun.elapsed();
            drop(store);
            Ok(millis(took))
        }));
    }
    let rows = rounds::run(contestants, plan.rounds);
    let mut section = Section {
        title: "Open after a kill".to_owned(),
        terms: format!(
            "A process appends durably for {} ms and is killed with SIGKILL; then the store is opened for appending, or \
             `sessions list` is run, its process included. The others are opened as their last writer left them; \
             raft-engine reads its whole log whichever way that was.",
            ALIVE.as_millis()
        ),
        unit: Unit::Millis,
        rows,
        verdicts: Vec::new(),
    };
    let growth = |what: &str| {
        let of = |events: usize| format!("annals, {what}, {events} events");
        section.ratio(&of(plan.events), &of(SMALL)).map(f64::recip)
    };
    let verdict = |what: String, found, limit| Verdict { target: "P7", what, found, limit };
    let ratio = format!("{} events / {SMALL}", plan.events);
    section.verdicts = vec![
        verdict(format!("open after a kill: {ratio}"), growth("open"), Limit::AtMost(1.5)),
        verdict(
            format!("open and sessions after a kill: {ratio}"),
            growth("open and sessions"),
            Limit::AtMost(1.5),
        ),
        verdict(
            format!("`sessions list` after a kill: {ratio}"),
            growth("`sessions list`"),
            Limit::AtMost(1.5),
        ),
        verdict(
            "open and sessions after a kill: annals / open of raft-engine".to_owned(),
            section.ratio("annals, open and sessions", "raft-engine"),
            Limit::AtLeast(10.0),
        ),
    ];
    section
}

/// Copies the store, kills a process that appends to it, and measures.
fn after_a_kill(
    plan: &Plan,
    measure: fn(&Path, &Program) -> Result<Duration, String>,
) -> Result<Figure, String> {
    let home = plan.scratch();
    let store = home.path().join("store");
    stored::copy(&plan.store(), &store);
    let program = Program::beside_this(home.path())?;
    let mut writer = Child::start(&["child-append", "annals", "60000"], &store);
    writer.hear()?;
    writer.say("go");
    let begun = Instant::now();
    while let Some(left) = ALIVE.checked_sub(begun.elapsed()) {
        std::thread::park_timeout(left);
    }
    writer.kill();
    measure(&store, &program).map(millis)
}

fn open(store: &Path, _: &Program) -> Result<Duration, String> {
    let begun = Instant::now();
    let engine = Engine::open(store, Options::default()).map_err(|error| error.to_string())?;
    let took = begun.elapsed();
    drop(engine);
    Ok(took)
}

fn sessions(store: &Path, _: &Program) -> Result<Duration, String> {
    let begun = Instant::now();
    let engine = Engine::open(store, Options::default()).map_err(|error| error.to_string())?;
    let sessions = engine.sessions().map_err(|error| error.to_string())?;
    let took = begun.elapsed();
    if sessions.state().is_empty() { Err("no sessions".to_owned()) } else { Ok(took) }
}

fn without_snapshot(store: &Path, program: &Program) -> Result<Duration, String> {
    let _ = std::fs::remove_dir_all(store.join("snapshots"));
    sessions(store, program)
}

fn list(store: &Path, program: &Program) -> Result<Duration, String> {
    program.time(store, &["sessions", "list"])
}

fn millis(took: Duration) -> Figure {
    Figure::of(took.as_secs_f64() * 1e3)
}
