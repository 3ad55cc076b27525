//! Memory of the program's verbs that is not the mapped log.

use std::path::Path;

use super::{Plan, transcripts};
use crate::program::Program;
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side};
use crate::stored;
use crate::workload::Shape;

/// The most that each verb holds.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let home = plan.scratch();
    let store = home.path().join("store");
    stored::copy(&plan.store(), &store);
    let folder = home.path().join("transcripts");
    transcripts::write(&folder, 16_000_000);
    let hottest = Shape::default().stream(0);
    let folder = folder.to_str().unwrap_or_default();
    let verbs: [(&str, Vec<&str>); 5] = [
        ("list", vec!["sessions", "list"]),
        ("history", vec!["sessions", "history", hottest.as_str()]),
        ("tail", vec!["tail"]),
        ("push", vec!["session", "push", "telegram", "700000003", "user", "a turn that is pushed"]),
        ("import", vec!["import", folder]),
    ];
    let program = Program::beside_this(home.path());
    let memory = |store: &Path, arguments: &[&str]| {
        let program = program.as_ref().map_err(Clone::clone)?;
        Ok(Figure::of(mebibytes(program.memory(store, arguments)?)))
    };
    let without = home.path().join("without");
    stored::copy_without_snapshots(&plan.store(), &without);
    let mut contestants: Vec<Contestant<'_>> = verbs
        .iter()
        .map(|(name, arguments)| Contestant::new(Side::Ours, *name, || memory(&store, arguments)))
        .collect();
    contestants.push(Contestant::new(Side::Ours, "without a snapshot: list", || {
        memory(&without, &["sessions", "list"])
    }));
    let rows = rounds::run(contestants, plan.rounds.min(3));
    let mut section = Section {
        title: "Memory of the program".to_owned(),
        terms: format!(
            "The most anonymous memory (`RssAnon` and `RssShmem`) while the verb runs on a store of {} events; `import` \
             brings in 16 MB.",
            plan.events
        ),
        unit: Unit::Mebibytes,
        rows,
        verdicts: Vec::new(),
    };
    section.verdicts = verbs
        .iter()
        .map(|(name, _)| Verdict {
            target: if *name == "import" { "P10" } else { "P11" },
            what: format!("MiB of `{name}` beyond the mapped log"),
            found: section.median(name),
            limit: Limit::AtMost(64.0),
        })
        .collect();
    section
}

#[expect(clippy::cast_precision_loss, reason = "a size of a process")]
fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1_024.0
}
