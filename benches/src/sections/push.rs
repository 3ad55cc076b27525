//! `session push` of the program: a process that starts, appends one turn, and ends.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{Plan, SMALL};
use crate::program::Program;
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side, percentile};
use crate::stored;

/// How many times a round does it.
const TIMES: usize = 20;

/// The cost of one push to a store of the plan's size and to a small one.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let home = plan.scratch();
    let copied = |plan: &Plan, name: &str| -> PathBuf {
        let copy = home.path().join(name);
        stored::copy(&plan.store(), &copy);
        copy
    };
    let small = Plan { events: SMALL, ..plan.clone() };
    let (many, few) = (copied(plan, "many"), copied(&small, "few"));
    let program = Program::beside_this(home.path());
    let ours = |store: &Path| {
        let program = program.as_ref().map_err(Clone::clone)?;
        let push = ["session", "push", "telegram", "700000003", "user", "a turn that is pushed"];
        medians(|| program.time(store, &push))
    };
    let contestants = vec![
        Contestant::new(Side::Ours, format!("annals, {} events", plan.events), || ours(&many)),
        Contestant::new(Side::Ours, format!("annals, {SMALL} events"), || ours(&few)),
        Contestant::new(Side::Floor, "empty process + fdatasync", || {
            medians(|| empty(home.path()))
        }),
    ];
    let rows = rounds::run(contestants, plan.rounds);
    let mut section = Section {
        title: "One-shot `session push` of the program".to_owned(),
        terms: format!(
            "A process each, durable when it ends; the page cache is warm. The floor starts `true` and then writes and \
             syncs a line. {} rounds of {TIMES}.",
            plan.rounds
        ),
        unit: Unit::Micros,
        rows,
        verdicts: Vec::new(),
    };
    let many = format!("annals, {} events", plan.events);
    let few = format!("annals, {SMALL} events");
    section.verdicts = vec![
        Verdict {
            target: "P8",
            what: "one-shot push: time of annals / of an empty process + fdatasync".to_owned(),
            found: section.ratio(&many, "empty").map(f64::recip),
            limit: Limit::AtMost(3.0),
        },
        Verdict {
            target: "P12",
            what: format!("one-shot push: {} events / {SMALL}", plan.events),
            found: section.ratio(&many, &few).map(f64::recip),
            limit: Limit::AtMost(1.5),
        },
    ];
    section
}

fn empty(folder: &Path) -> Result<Duration, String> {
    let begun = Instant::now();
    Command::new("true").status().map_err(|error| error.to_string())?;
    let mut file = OpenOptions::new().create(true).append(true).open(folder.join("floor")).unwrap();
    file.write_all(&[b'x'; 700]).unwrap();
    file.sync_data().unwrap();
    Ok(begun.elapsed())
}

fn medians(mut once: impl FnMut() -> Result<Duration, String>) -> Result<Figure, String> {
    let times: Result<Vec<f64>, String> =
        (0..TIMES).map(|_| Ok(once()?.as_secs_f64() * 1e6)).collect();
    let mut times = times?;
    let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    Ok(Figure { value: p50.unwrap(), percentiles: p50.zip(p99) })
}
