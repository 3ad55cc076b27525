//! Point reads: the last turns of one session among all.

use std::time::Instant;

use annals_engine::Engine;
use annals_engine::id::{StreamName, Version};
use annals_engine::store::Item;
use fastrand::Rng;

use super::{Plan, keeping};
use crate::floors::map;
use crate::floors::point::Places;
use crate::report::{Limit, Section, Unit, Verdict};
use crate::rounds::{self, Contestant, Figure, Side, percentile};
use crate::stored;
use crate::workload::Shape;

/// How many turns are wanted.
const TURNS: u64 = 40;

/// How many reads a round has.
const READS: usize = 1_000;

/// A session and how far its stream goes, as whoever has the session's row knows it.
type Wanted = (String, StreamName, Version);

/// The last turns of sessions that are drawn uniformly, and of the one with the most turns.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let store = plan.store();
    let segments = map::segments(&store);
    let places = Places::new(&segments);
    let wanted: Vec<Wanted> = places
        .streams()
        .into_iter()
        .map(|(name, count)| (name.clone(), StreamName::new(name).unwrap(), Version(count)))
        .collect();
    let first = Shape::default().stream(0);
    let hottest: Vec<Wanted> =
        wanted.iter().filter(|(_, stream, _)| *stream == first).cloned().collect();
    let numbers = keeping::numbers(&segments);
    let kept = keeping::all(plan);
    let engine = stored::open(&store);
    let ours = |from: &[Wanted]| round(from, |one| read_ours(&engine, one));
    let floor = |from: &[Wanted]| round(from, |(name, ..)| read_floor(&places, name));
    let mut contestants = vec![
        Contestant::new(Side::Ours, "annals, any session", || ours(&wanted)),
        Contestant::new(Side::Ours, "annals, the hottest session", || ours(&hottest)),
        Contestant::new(Side::Floor, "mmap + offset index + CRC, any session", || floor(&wanted)),
        Contestant::new(Side::Floor, "mmap + offset index + CRC, the hottest session", || {
            floor(&hottest)
        }),
    ];
    for kept in &kept {
        let store = kept.open();
        let name = format!("{}: any session", kept.rival.name);
        let (wanted, numbers) = (&wanted, &numbers);
        contestants.push(Contestant::new(Side::Rival, name, move || {
            let store = store.as_ref().map_err(Clone::clone)?;
            round(wanted, |(name, _, last)| {
                let from = last.0.saturating_sub(TURNS) + 1;
                numbers.get(name).map_or(0, |stream| store.last(*stream, from, last.0).unwrap())
            })
        }));
    }
    let rows = rounds::run(contestants, plan.rounds);
    let mut section = Section {
        title: format!("Point read: the last {TURNS} turns of one of {} sessions", wanted.len()),
        terms: format!(
            "{} {READS} reads a round; the figure is their median.",
            super::reading(plan)
        ),
        unit: Unit::Micros,
        rows,
        verdicts: Vec::new(),
    };
    let floor = section.ratio("annals, any", "mmap + offset index + CRC, any").map(f64::recip);
    let hot = section.median("annals, the hottest").zip(section.median("annals, any"));
    let verdict = |what: &str, found, most| Verdict {
        target: "P8",
        what: what.to_owned(),
        found,
        limit: Limit::AtMost(most),
    };
    section.verdicts = vec![
        verdict("last 40 turns: time of annals / of mmap + offset index", floor, 3.0),
        Verdict {
            target: "P8",
            what: "last 40 turns: annals / an indexed SQLite".to_owned(),
            found: section.ratio("annals, any", "SQLite"),
            limit: Limit::AtLeast(5.0),
        },
        verdict("last 40 turns: the hottest session / any", hot.map(|(hot, any)| hot / any), 1.2),
    ];
    section
}

/// Reads of sessions drawn from these; the figure is the median of the single reads.
pub fn round(from: &[Wanted], mut read: impl FnMut(&Wanted) -> usize) -> Result<Figure, String> {
    let mut random = Rng::with_seed(11);
    let mut micros = Vec::with_capacity(READS);
    for _ in 0..READS {
        let one = from.get(random.usize(..from.len())).unwrap();
        let begun = Instant::now();
        let found = read(one);
        micros.push(begun.elapsed().as_secs_f64() * 1e6);
        let least = usize::try_from(one.2.0.min(TURNS)).unwrap();
        if found != least {
            return Err(format!("{found} of {least} turns of {}", one.0));
        }
    }
    let (p50, p99) =
        (percentile(&mut micros, 0.5).unwrap(), percentile(&mut micros, 0.99).unwrap());
    Ok(Figure { value: p50, percentiles: Some((p50, p99)) })
}

fn read_ours(engine: &Engine, (_, stream, last): &Wanted) -> usize {
    let after = Version(last.0.saturating_sub(TURNS));
    let items = engine.read_stream(stream, after).unwrap();
    let records: Vec<_> = items
        .filter_map(|item| match item.unwrap() {
            Item::Record(record) => Some(record),
            Item::Gap(_) => None,
        })
        .collect();
    std::hint::black_box(&records).len()
}

fn read_floor(places: &Places<'_>, name: &str) -> usize {
    let lines: Vec<&[u8]> = places.last(name, usize::try_from(TURNS).unwrap()).collect();
    std::hint::black_box(&lines).len()
}
