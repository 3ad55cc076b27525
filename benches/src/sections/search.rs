//! Full text search over everything that was said.

use std::time::Instant;

use annals_engine::session::search::{SearchQuery, Sight, search};
use memmap2::Mmap;

use super::Plan;
use crate::floors::map;
use crate::report::{Section, Unit};
use crate::rounds::{self, Contestant, Figure, Side};
use crate::stored;

/// A word that the workload does not hold.
const NOWHERE: &str = "zyzzyva";

/// A word that many turns hold.
const FREQUENT: &str = "agent";

/// A word that nowhere occurs and one that occurs at the log's end, beside looking for the bytes of a word in the mapped
/// segments.
#[must_use]
pub fn section(plan: &Plan) -> Section {
    let store = plan.store();
    let engine = stored::open(&store);
    let segments = map::segments(&store);
    let ours = |text: &str, expect: usize| {
        let query = SearchQuery { text: text.to_owned(), limit: 10, ..SearchQuery::default() };
        let begun = Instant::now();
        let found =
            search(engine.store(), &query, Sight::whole(&|_| true)).map_err(|e| e.to_string())?;
        let took = begun.elapsed().as_secs_f64();
        if found.hits.len() == expect { Ok(Figure::of(took)) } else { Err("other hits".to_owned()) }
    };
    let contestants = vec![
        Contestant::new(Side::Ours, "annals, a word that nowhere occurs", || ours(NOWHERE, 0)),
        Contestant::new(Side::Ours, "annals, the ten newest of a frequent word", || {
            ours(FREQUENT, 10)
        }),
        Contestant::new(Side::Floor, "mmap + memmem of the bytes, one core", || {
            let begun = Instant::now();
            let found = segments.iter().any(|segment| contains(segment, NOWHERE));
            if found {
                Err("found".to_owned())
            } else {
                Ok(Figure::of(begun.elapsed().as_secs_f64()))
            }
        }),
    ];
    Section {
        title: "Search".to_owned(),
        terms: super::reading(plan),
        unit: Unit::Seconds,
        rows: rounds::run(contestants, plan.rounds),
        verdicts: Vec::new(),
    }
}

fn contains(segment: &Mmap, word: &str) -> bool {
    memchr::memmem::find(segment, word.as_bytes()).is_some()
}
