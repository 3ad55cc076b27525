//! Where a power loss takes its decisions from: a seed, a fixed rule, or every possibility in turn.

use fastrand::Rng;

/// Takes one of several options. Option 0 is what the disk held before, the last one what was written last.
pub(super) trait Choose {
    /// One of `0..options`; `options` is at least 1.
    fn pick(&mut self, options: usize) -> usize;
}

/// What a power loss does with what was not synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All of it is gone.
    Everything,
    /// All of it is there.
    Nothing,
    /// Each piece, size and entry for itself, as this seed says.
    Seed(u64),
    /// Each piece, size and entry for itself, by number; see [`every_loss`].
    Exactly(Vec<usize>),
}

impl Loss {
    pub(super) fn chooser(&self) -> Box<dyn Choose> {
        match self {
            Self::Everything => Box::new(Ends { newest: false }),
            Self::Nothing => Box::new(Ends { newest: true }),
            Self::Seed(seed) => Box::new(Seeded::new(*seed)),
            Self::Exactly(picks) => Box::new(Listed { picks: picks.clone(), at: 0 }),
        }
    }
}

struct Ends {
    newest: bool,
}

impl Choose for Ends {
    fn pick(&mut self, options: usize) -> usize {
        if self.newest { options.saturating_sub(1) } else { 0 }
    }
}

/// Independent choices with a leaning that the seed draws once, so that some losses keep nearly all and some nearly
/// nothing.
struct Seeded {
    rng: Rng,
    newest: f64,
}

impl Seeded {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let newest = [0.1, 0.5, 0.9][rng.usize(0..3)];
        Self { rng, newest }
    }
}

impl Choose for Seeded {
    fn pick(&mut self, options: usize) -> usize {
        if options < 2 || self.rng.f64() < self.newest {
            options.saturating_sub(1)
        } else {
            self.rng.usize(0..options - 1)
        }
    }
}

struct Listed {
    picks: Vec<usize>,
    at: usize,
}

impl Choose for Listed {
    fn pick(&mut self, options: usize) -> usize {
        let pick = self.picks.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        pick.min(options.saturating_sub(1))
    }
}

/// Every loss that a disk in this state may suffer, or `None` when they are more than `limit`. `options` are the
/// numbers of options in the order in which they are asked for.
#[must_use]
pub fn every_loss(options: &[usize], limit: usize) -> Option<Vec<Loss>> {
    let count = options.iter().try_fold(1_usize, |n, options| n.checked_mul((*options).max(1)))?;
    if count > limit {
        return None;
    }
    let nth = |mut n: usize| {
        options
            .iter()
            .map(|options| {
                let options = (*options).max(1);
                let pick = n % options;
                n /= options;
                pick
            })
            .collect()
    };
    Some((0..count).map(|n| Loss::Exactly(nth(n))).collect())
}

/// Counts the options and takes the oldest each time.
#[derive(Default)]
pub(super) struct Counting {
    pub(super) options: Vec<usize>,
}

impl Choose for Counting {
    fn pick(&mut self, options: usize) -> usize {
        self.options.push(options);
        0
    }
}
