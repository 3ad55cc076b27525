//! Random stories, each from a seed.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_engine::clock::Clock;
use annals_engine::session::work::Work;

use super::world::{LIMITS, World};
use super::{check, sinks};

/// Steps of a story.
const TURNS: usize = 250;

/// Goal: whatever dies, and whenever, every accepted run, announce, delivery and exchange has one end; nothing that may
/// have arrived is sent again; runs of a session never overlap; children keep to their limits; what is withheld or lost
/// has an event with a reason; and another start appends nothing. Method: stories in which asks, sends with rounds and
/// children, two deep and with announce steps, are worked on by three workers that die between any two of their steps and
/// do not always know whether they appended; people kill, reset and archive; the clock jumps and the machine starts anew.
#[test]
fn whatever_dies() {
    let seeds = std::env::var("ANNALS_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(240);
    let first = std::env::var("ANNALS_SEED").ok().and_then(|n| n.parse().ok());
    let range = first.map_or(0..seeds, |first: u64| first..first + 1);
    let tellers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut met: BTreeMap<String, u64> = BTreeMap::new();
    std::thread::scope(|scope| {
        let range = &range;
        let told: Vec<_> = (0..tellers)
            .map(|teller| scope.spawn(move || tell(range.clone().skip(teller).step_by(tellers))))
            .collect();
        for story in told {
            for (kind, count) in story.join().unwrap_or_else(|e| std::panic::resume_unwind(e)) {
                *met.entry(kind).or_default() += count;
            }
        }
    });
    if first.is_none() {
        // A story in which nothing happens shows nothing.
        for kind in [
            "announce.delivered",
            "announce.deferred",
            "announce.failed",
            "announce.suppressed",
            "announce.unknown",
            "delivery.delivered",
            "delivery.failed",
            "delivery.suppressed",
            "delivery.unknown",
            "exchange.ended",
            "run.kill_requested",
            "send.refused",
            "spawn.refused",
        ] {
            assert!(met.contains_key(kind), "{kind} never happened: {met:?}");
        }
    }
}

/// Tells stories; gives how often each type of event was met.
fn tell(seeds: impl Iterator<Item = u64>) -> BTreeMap<String, u64> {
    let mut met: BTreeMap<String, u64> = BTreeMap::new();
    for seed in seeds {
        let again = format!("ANNALS_SEED={seed} cargo test -p annals-tests --test interrupted");
        let story = match std::panic::catch_unwind(|| Story::told(seed)) {
            Ok(story) => story,
            Err(panic) => {
                eprintln!("seed {seed}: {again}");
                std::panic::resume_unwind(panic);
            }
        };
        if !story.wrong.is_empty() {
            println!("{}", story.lines().join("\n"));
        }
        assert!(story.wrong.is_empty(), "{:#?}\nseed {seed}: {again}", story.wrong);
        for record in story.world.records() {
            *met.entry(record.kind.to_string()).or_default() += 1;
        }
    }
    met
}

/// Goal: a seed is a story. Method: one is told twice; ids, which are made at random, are counted instead.
#[test]
fn a_seed_repeats() {
    for seed in [3, 11] {
        assert_eq!(Story::told(seed).lines(), Story::told(seed).lines());
    }
}

struct Story {
    world: World,
    wrong: Vec<String>,
}

impl Story {
    fn told(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.workers = (0..3).map(|_| world.hire()).collect();
        (0..TURNS).for_each(|_| world.turn());
        world.calm = true;
        let mut wrong = Vec::new();
        if !rests(&mut world) {
            wrong.push(format!("it never comes to rest: {:?}", world.work()));
        }
        let records = world.records();
        wrong.append(&mut world.wrong);
        wrong.extend(check::log(&records, LIMITS));
        wrong.extend(sinks::given(&world.sinks, &records));
        let cuts: Vec<usize> = (0..4).map(|_| world.rng.usize(0..records.len())).collect();
        wrong.extend(check::view(&records, &cuts));
        // Whoever starts after that finds nothing to do.
        (0..world.workers.len()).for_each(|at| world.die(at));
        rests(&mut world);
        if world.records().len() > records.len() {
            wrong.push("another start appends something".to_owned());
        }
        Self { world, wrong }
    }

    /// The events, with ids counted in the order in which they come.
    fn lines(&self) -> Vec<String> {
        let mut ids: BTreeMap<String, usize> = BTreeMap::new();
        let records = self.world.records();
        let line = |text: String| counted(&text, &mut ids);
        let texts = records.iter().map(|r| format!("{} {} {} {}", r.seq, r.stream, r.kind, r.data));
        texts.map(line).collect()
    }
}

/// Goes on until nothing is left to do. Whether it came to that.
fn rests(world: &mut World) -> bool {
    for _ in 0..20_000 {
        let mut did = false;
        for at in 0..world.workers.len() {
            did |= world.worker_acts(at);
        }
        if did {
            continue;
        }
        let work = world.work();
        if work == Work::default() {
            return true;
        }
        let tries = work.outgoing().into_iter().filter_map(|(_, out)| work.next_try(out));
        let Some(next) = tries.min() else { return false };
        let now = world.clock.now();
        world.clock.set(next.max(now.plus(Duration::from_secs(1))));
    }
    false
}

/// A text in which every id is a number.
fn counted(text: &str, ids: &mut BTreeMap<String, usize>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_id = rest.get(..36).is_some_and(|id| {
            let fits = |(at, b): (usize, u8)| match at {
                8 | 13 | 18 | 23 => b == b'-',
                _ => b.is_ascii_hexdigit(),
            };
            id.bytes().enumerate().all(fits)
        });
        let end = if is_id { 36 } else { rest.chars().next().map_or(1, char::len_utf8) };
        let (one, after) = rest.split_at(end);
        if is_id {
            let next = ids.len();
            out.push_str(&format!("<{}>", ids.entry(one.to_owned()).or_insert(next)));
        } else {
            out.push_str(one);
        }
        rest = after;
    }
    out
}
