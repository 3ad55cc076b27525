//! Verifying everything that a store holds.

use std::time::Instant;

use annals_engine::engine;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::Plan;
use crate::floors::{heads, map};
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side};

/// `verify` with one core and with all, beside mapping, cutting and summing the same bytes.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let store = plan.store();
    let lines = engine::verify(&store, &mut |_| {}).unwrap().lines;
    let ours = || {
        let begun = Instant::now();
        let report = engine::verify(&store, &mut |_| {}).map_err(|error| error.to_string())?;
        let took = begun.elapsed().as_secs_f64();
        if report.is_sound() && report.lines == lines {
            Ok(Figure::of(took))
        } else {
            Err("damage".to_owned())
        }
    };
    let floor = |threads| {
        let begun = Instant::now();
        let found = map::verify(&map::segments(&store), threads);
        timed(begun, found, lines)
    };
    // What else a verification must do besides the checksums: every byte is text, every head is read, and every stream
    // is followed.
    let text = || {
        let begun = Instant::now();
        let found = map::verify_text(&map::segments(&store), 1);
        timed(begun, found, lines)
    };
    let rows = || {
        let begun = Instant::now();
        let segments = map::segments(&store);
        let found = heads::fold(&segments, 1).values().map(|row| row.events).sum();
        timed(begun, found, lines)
    };
    let contestants = vec![
        Contestant::new(Side::Ours, "annals, one core", || on_one_core(ours)),
        Contestant::new(Side::Ours, "annals, two cores", ours),
        Contestant::new(Side::Floor, "mmap + newline + CRC, one core", || on_one_core(|| floor(1))),
        Contestant::new(Side::Floor, "mmap + newline + CRC, two cores", || floor(2)),
        Contestant::new(Side::Floor, "the same and UTF-8, one core", || on_one_core(text)),
        Contestant::new(Side::Floor, "the same and heads to rows, no UTF-8, one core", || {
            on_one_core(rows)
        }),
    ];
    let rows = rounds::run(contestants, plan.rounds);
    let mut section = Section {
        title: "Verify".to_owned(),
        terms: super::reading(plan),
        unit: Unit::Seconds,
        rows,
        verdicts: Vec::new(),
    };
    let verdict = |what: &str, found, least| Verdict {
        target: "P5",
        what: what.to_owned(),
        found,
        limit: Limit::AtLeast(least),
    };
    let mine = "annals, one core";
    section.verdicts = vec![
        verdict(
            "verify, one core: annals / mmap + newline + CRC",
            section.ratio(mine, "mmap + newline + CRC, one"),
            0.7,
        ),
        verdict(
            "verify, two cores: annals / mmap + newline + CRC",
            section.ratio("annals, two cores", "mmap + newline + CRC, two"),
            0.7,
        ),
        verdict("verify: two cores / one", section.ratio("annals, two cores", mine), 1.7),
    ];
    section
}

fn timed(begun: Instant, found: u64, lines: u64) -> Result<Figure, String> {
    let took = begun.elapsed().as_secs_f64();
    if found == lines { Ok(Figure::of(took)) } else { Err(format!("{found} of {lines} lines")) }
}

/// Runs on a thread of its own that may use the first core alone, and so may every thread that it starts.
///
/// # Errors
/// What `run` says.
pub fn on_one_core(
    run: impl Fn() -> Result<Figure, String> + Send + Sync,
) -> Result<Figure, String> {
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            let mut first = CpuSet::new();
            first.set(0);
            sched_setaffinity(None, &first).unwrap();
            run()
        });
        pinned.join().unwrap()
    })
}
