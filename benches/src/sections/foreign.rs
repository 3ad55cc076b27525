//! Replay by programs of other languages that parse every line, beside annals as a process of its own.

use std::path::Path;
use std::process::Command;

use super::{Plan, replay};
use crate::floors::{heads, map};
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side};
use crate::stored;

/// The scripts, beside the sources of this package.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/foreign");

/// Node, Python and DuckDB. Whichever is absent is told so and left out; nothing is installed.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let home = plan.scratch();
    let store = home.path().join("store");
    stored::copy_without_snapshots(&plan.store(), &store);
    let sessions = heads::fold(&map::segments(&store), 1).len() - 1;
    let log = store.join("log");
    let python = std::env::var("ANNALS_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = |program: &str, name: &str, more: &[&str]| {
        run(program, Path::new(SCRIPTS).join(name).as_path(), &log, more, sessions)
    };
    let contestants = vec![
        Contestant::new(Side::Ours, "annals", || replay::ours(&store, sessions)),
        Contestant::new(Side::Rival, "Node, JSON.parse a line", || {
            script("node", "replay.mjs", &[])
        }),
        Contestant::new(Side::Rival, "Python, json.loads a line", || {
            script(&python, "replay.py", &[])
        }),
        Contestant::new(Side::Rival, "DuckDB, one aggregate, one thread", || {
            script(&python, "aggregate.py", &["1"])
        }),
        Contestant::new(Side::Rival, "DuckDB, one aggregate, two threads", || {
            script(&python, "aggregate.py", &["2"])
        }),
    ];
    let rows = rounds::run(contestants, plan.rounds.min(3));
    let mut section = Section {
        title: "Replay by others".to_owned(),
        terms: format!(
            "{} The start of an interpreter does not count. `ANNALS_BENCH_PYTHON` names the Python that has DuckDB.",
            super::reading(plan)
        ),
        unit: Unit::Seconds,
        rows,
        verdicts: Vec::new(),
    };
    let verdict = |what: &str, other: &str, least| Verdict {
        target: "P6",
        what: what.to_owned(),
        found: section.ratio("annals", other),
        limit: Limit::AtLeast(least),
    };
    section.verdicts = vec![
        verdict("replay: annals / Node", "Node", 20.0),
        verdict(
            "replay: annals / DuckDB's aggregate, two threads",
            "DuckDB, one aggregate, two",
            1.0,
        ),
    ];
    section
}

/// Runs a script over the log; it prints its seconds and how many sessions it found.
fn run(
    program: &str,
    script: &Path,
    log: &Path,
    more: &[&str],
    sessions: usize,
) -> Result<Figure, String> {
    let output = Command::new(program).arg(script).arg(log).args(more).output();
    let output = output.map_err(|error| format!("{program} is absent: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("absent: {}", said.lines().last().unwrap_or_default()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let mut words = said.split_whitespace();
    let (seconds, found) = (words.next(), words.next());
    let seconds = seconds.and_then(|word| word.parse().ok()).ok_or("it printed no figure")?;
    if found != Some(sessions.to_string().as_str()) {
        return Err(format!("it found {found:?} of {sessions} sessions"));
    }
    Ok(Figure::of(seconds))
}
