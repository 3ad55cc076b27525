//! Import: transcripts of another program as events.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use annals_engine::engine::{Engine, Options};
use annals_engine::import::{self, DiskTree, Mode, discover};

use super::verify::on_one_core;
use super::{Plan, transcripts};
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side};

/// How many bytes are imported.
const BYTES: u64 = 32_000_000;

/// One core, into a new store.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let home = plan.scratch();
    let folder = home.path().join("transcripts");
    let bytes = transcripts::write(&folder, BYTES);
    let contestants = vec![
        Contestant::new(Side::Ours, "annals, one core", || {
            on_one_core(|| ours(plan, &folder, bytes))
        }),
        Contestant::new(Side::Floor, "read, parse a line, write, fdatasync once, one core", || {
            on_one_core(|| floor(plan, &folder, bytes))
        }),
    ];
    let rows = rounds::run(contestants, plan.rounds.min(3));
    let mut section = Section {
        title: "Import of transcripts".to_owned(),
        terms: format!(
            "{} MB of sessions in files of 400 messages, in the page cache, into a new store; durable at the end.",
            bytes / 1_000_000
        ),
        unit: Unit::MegabytesPerSecond,
        rows,
        verdicts: Vec::new(),
    };
    section.verdicts = vec![Verdict {
        target: "P10",
        what: "import, MB/s on one core".to_owned(),
        found: section.median("annals"),
        limit: Limit::AtLeast(100.0),
    }];
    section
}

fn ours(plan: &Plan, folder: &Path, bytes: u64) -> Result<Figure, String> {
    let home = plan.scratch();
    let engine = Engine::open(home.path(), Options::default()).unwrap();
    let begun = Instant::now();
    let found = discover(folder).map_err(|error| error.to_string())?;
    let options = import::Options { mode: Mode::Append, only: None };
    let report =
        import::import(engine.store(), engine.clock(), &DiskTree, &found, &options, &mut |_| {})
            .map_err(|error| error.to_string())?;
    if report.totals().turns == 0 {
        return Err("nothing was imported".to_owned());
    }
    Ok(speed(bytes, begun))
}

fn floor(plan: &Plan, folder: &Path, bytes: u64) -> Result<Figure, String> {
    let home = plan.scratch();
    let begun = Instant::now();
    let mut out = std::fs::File::create(home.path().join("floor")).unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read(file.unwrap().path()).unwrap();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let value: serde_json::Value =
                serde_json::from_slice(line).map_err(|error| error.to_string())?;
            std::hint::black_box(value);
        }
        out.write_all(&text).unwrap();
    }
    out.sync_data().unwrap();
    Ok(speed(bytes, begun))
}

#[expect(clippy::cast_precision_loss, reason = "a size of some megabytes")]
fn speed(bytes: u64, begun: Instant) -> Figure {
    Figure::of(bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
}
