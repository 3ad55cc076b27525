//! When a file has settled: it was left alone for a while, or has not rested for so long that it is looked at all the same.
//! Moments are durations since any one moment, on a clock that does not jump.

use std::collections::BTreeMap;
use std::time::Duration;

/// Files that were touched and have not settled yet.
#[derive(Clone, Debug)]
pub struct Settling<K> {
    debounce: Duration,
    max_wait: Duration,
    files: BTreeMap<K, Touched>,
}

#[derive(Clone, Copy, Debug)]
struct Touched {
    first: Duration,
    last: Duration,
}

impl<K: Ord + Clone> Settling<K> {
    /// A file settles `debounce` after its last touch, at most `max_wait` after the first.
    #[must_use]
    pub const fn new(debounce: Duration, max_wait: Duration) -> Self {
        Self { debounce, max_wait, files: BTreeMap::new() }
    }

    /// A file may have changed.
    pub fn touch(&mut self, file: K, now: Duration) {
        let touched = self.files.entry(file).or_insert(Touched { first: now, last: now });
        touched.last = now;
    }

    /// Whether a file was touched and has not settled.
    #[must_use]
    pub fn holds(&self, file: &K) -> bool {
        self.files.contains_key(file)
    }

    /// Whether a file that does not rest has been waited for long enough.
    #[must_use]
    pub fn is_late(&self, file: &K, now: Duration) -> bool {
        self.files
            .get(file)
            .is_some_and(|touched| now >= touched.first.saturating_add(self.max_wait))
    }

    /// Those that have settled.
    #[must_use]
    pub fn due(&self, now: Duration) -> Vec<K> {
        let due = self.files.iter().filter(|(_, touched)| self.at(touched) <= now);
        due.map(|(file, _)| file.clone()).collect()
    }

    /// When the next one settles.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.files.values().map(|touched| self.at(touched)).min()
    }

    /// A file was looked at.
    pub fn done(&mut self, file: &K) {
        self.files.remove(file);
    }

    fn at(&self, touched: &Touched) -> Duration {
        let rested = touched.last.saturating_add(self.debounce);
        rested.min(touched.first.saturating_add(self.max_wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a burst is one, and what never rests is looked at now and then. Method: touches in steps, and what is due
    /// after each.
    #[test]
    fn bursts() {
        let ms = Duration::from_millis;
        let mut settling = Settling::new(ms(200), ms(1_000));
        settling.touch("a", ms(0));
        settling.touch("a", ms(150));
        assert_eq!((settling.due(ms(349)), settling.next()), (vec![], Some(ms(350))));
        assert_eq!(settling.due(ms(350)), ["a"]);
        for at in (150..1_000).step_by(50) {
            settling.touch("a", ms(at));
            assert!(settling.due(ms(at)).is_empty());
        }
        assert_eq!((settling.due(ms(1_000)), settling.is_late(&"a", ms(1_000))), (vec!["a"], true));
        settling.done(&"a");
        settling.touch("a", ms(1_000));
        assert_eq!(settling.next(), Some(ms(1_200)));
    }
}
