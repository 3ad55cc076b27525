//! Load: so many callers, each with one append at a time, for so long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use annals_engine::clock::{Clock, ManualClock, SystemClock};
use annals_engine::id::EventId;
use annals_engine::store::{Append, EventStore, Item, MemoryStore, NewEvent, Read};
use fastrand::Rng;
use uuid::Builder;

use crate::rounds::{Figure, percentile};
use crate::workload::{Events, Shape};

/// How many different events are appended over and over.
const EVENTS: usize = 4_096;

/// More appends than a machine makes in a millisecond.
const EVENTS_PER_MILLI: usize = 800;

/// Calls `append` from `callers` threads until the time is up, with the number of the caller and that of the call;
/// the figure is calls a second.
///
/// # Errors
/// The first that an append gives; nothing that failed is counted.
pub fn drive(
    callers: usize,
    time: Duration,
    append: impl Fn(usize, usize) -> Result<(), String> + Sync,
) -> Result<Figure, String> {
    let (up, start) = (AtomicBool::new(false), Barrier::new(callers + 1));
    let waiting = std::thread::current();
    let one = |caller| -> Result<Vec<f64>, String> {
        let mut micros = Vec::with_capacity(16_384);
        start.wait();
        let mut before = Instant::now();
        while !up.load(Ordering::Relaxed) {
            if let Err(failure) = append(caller, micros.len()) {
                up.store(true, Ordering::Relaxed);
                waiting.unpark();
                return Err(failure);
            }
            let now = Instant::now();
            micros.push((now - before).as_secs_f64() * 1e6);
            before = now;
        }
        Ok(micros)
    };
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..callers).map(|caller| scope.spawn(move || one(caller))).collect();
        start.wait();
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed())
            && !up.load(Ordering::Relaxed)
        {
            std::thread::park_timeout(left);
        }
        up.store(true, Ordering::Relaxed);
        let mut micros = Vec::new();
        for thread in threads {
            micros.extend(thread.join().unwrap()?);
        }
        Ok(timed(begun.elapsed(), &mut micros))
    })
}

/// The figure of calls that took so long each and together.
#[expect(clippy::cast_precision_loss, reason = "a count of calls")]
fn timed(together: Duration, micros: &mut [f64]) -> Figure {
    Figure {
        value: micros.len() as f64 / together.as_secs_f64(),
        percentiles: percentile(micros, 0.5).zip(percentile(micros, 0.99)),
    }
}

/// Events to append: the same ones over and over, under new ids.
pub struct Feed {
    events: Vec<NewEvent>,
}

impl Feed {
    /// Those of a shape.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self { events: Events::at(shape, SystemClock.now()).take(EVENTS).collect() }
    }

    /// The next event of a caller.
    #[must_use]
    pub fn event(&self, caller: usize, call: usize, random: &mut Rng) -> NewEvent {
        let mut bits = [0; 10];
        random.fill(&mut bits);
        let millis = SystemClock.now().as_millis().unsigned_abs();
        let at = (caller * 97 + call) % self.events.len();
        NewEvent {
            id: EventId(Builder::from_unix_timestamp_millis(millis, &bits).into_uuid()),
            ..self.events.get(at).unwrap().clone()
        }
    }

    /// The same events as lines, for those who write lines as they are.
    #[must_use]
    pub fn lines(&self) -> Vec<Vec<u8>> {
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let store = MemoryStore::new(clock as Arc<dyn Clock>);
        for event in &self.events {
            store.append(Append::new(vec![event.clone()])).unwrap();
        }
        store
            .read(Read::default())
            .unwrap()
            .filter_map(|item| match item.unwrap() {
                Item::Record(record) => Some(record.to_line()),
                Item::Gap(_) => None,
            })
            .collect()
    }
}

/// Events that are made before the time runs, as the lines of the floors are.
pub struct Ready<'a> {
    feed: &'a Feed,
    callers: Vec<Mutex<Vec<NewEvent>>>,
}

impl<'a> Ready<'a> {
    /// As many as callers may need in so many milliseconds.
    #[must_use]
    pub fn new(feed: &'a Feed, callers: usize, millis: u64) -> Self {
        let each = usize::try_from(millis).unwrap() * EVENTS_PER_MILLI / callers;
        let mut random = Rng::new();
        let mut of = |caller| (0..each).map(|call| feed.event(caller, call, &mut random)).collect();
        Self { feed, callers: (0..callers).map(|caller| Mutex::new(of(caller))).collect() }
    }

    /// The next event of a caller, made now when none is left.
    #[must_use]
    pub fn next(&self, caller: usize, call: usize) -> NewEvent {
        let ready = self.callers.get(caller).unwrap().lock().unwrap().pop();
        ready.unwrap_or_else(|| self.feed.event(caller, call, &mut Rng::new()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// Goal: an error is never counted as a success. Method: an append that fails after ten.
    #[test]
    fn an_error_ends_the_round() {
        let calls = AtomicU64::new(0);
        let figure = drive(2, Duration::from_secs(10), |_, call| {
            calls.fetch_add(1, Ordering::SeqCst);
            if call == 10 { Err("full".to_owned()) } else { Ok(()) }
        });
        assert_eq!(figure.unwrap_err(), "full");
    }
}
