//! Replay: the rows of all sessions from nothing but the log.

use std::path::Path;
use std::time::Instant;

use super::Plan;
use super::keeping::{self, Parsed};
use super::verify::on_one_core;
use crate::floors::{heads, map};
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side};
use crate::stored;

/// All sessions folded, beside the same rows read from the heads of lines.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let home = plan.scratch();
    let store = home.path().join("store");
    stored::copy_without_snapshots(&plan.store(), &store);
    let sessions = heads::fold(&map::segments(&store), 1).len() - 1;
    let kept = keeping::all(plan);
    let mut contestants = vec![
        Contestant::new(Side::Ours, "annals, two cores", || ours(&store, sessions)),
        Contestant::new(Side::Ours, "annals, one core", || on_one_core(|| ours(&store, sessions))),
        Contestant::new(Side::Floor, "heads to rows, one core", || {
            on_one_core(|| floor(&store, sessions, 1))
        }),
        Contestant::new(Side::Floor, "heads to rows, two cores", || floor(&store, sessions, 2)),
    ];
    contestants.extend(kept.iter().map(|kept| {
        Contestant::new(Side::Rival, format!("{}: parse and fold", kept.rival.name), || {
            let begun = Instant::now();
            let mut parsed = Parsed::default();
            kept.open()?.each(&mut |line| parsed.take(line))?;
            checked(begun.elapsed().as_secs_f64(), parsed.sessions(), sessions)
        })
    }));
    let rows = rounds::run(contestants, plan.rounds);
    let mut section = Section {
        title: "Replay into session rows, from nothing".to_owned(),
        terms: super::reading(plan),
        unit: Unit::Seconds,
        rows,
        verdicts: Vec::new(),
    };
    section.verdicts = ["one core", "two cores"]
        .map(|cores| Verdict {
            target: "P6",
            what: format!("replay, {cores}: annals / heads to rows"),
            found: section.ratio(&format!("annals, {cores}"), &format!("heads to rows, {cores}")),
            limit: Limit::AtLeast(0.6),
        })
        .into();
    section.verdicts.push(Verdict {
        target: "P6",
        what: "replay: annals / parse and fold of SQLite's rows".to_owned(),
        found: section.ratio("annals, one core", "SQLite"),
        limit: Limit::AtLeast(5.0),
    });
    section
}

/// A round of annals.
pub(super) fn ours(store: &Path, sessions: usize) -> Result<Figure, String> {
    let begun = Instant::now();
    let engine = stored::open(store);
    let folded = engine.sessions().map_err(|error| error.to_string())?;
    let took = begun.elapsed().as_secs_f64();
    checked(took, folded.state().len(), sessions)
}

fn floor(store: &Path, sessions: usize, threads: usize) -> Result<Figure, String> {
    let begun = Instant::now();
    let segments = map::segments(store);
    let rows = heads::fold(&segments, threads);
    let took = begun.elapsed().as_secs_f64();
    checked(took, rows.len() - 1, sessions)
}

fn checked(took: f64, found: usize, sessions: usize) -> Result<Figure, String> {
    if found == sessions {
        Ok(Figure::of(took))
    } else {
        Err(format!("{found} of {sessions} sessions"))
    }
}
