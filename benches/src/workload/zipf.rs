//! Ranks by Zipf's law: rank k (from 1) comes up in proportion to k to the power of minus the exponent.

use fastrand::Rng;

/// Draws ranks from 0.
#[derive(Debug)]
pub(super) struct Zipf {
    /// The chance of every rank up to this one.
    up_to: Vec<f64>,
}

impl Zipf {
    #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
    pub(super) fn new(ranks: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=ranks)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        for part in &mut up_to {
            *part /= sum;
        }
        Self { up_to }
    }

    pub(super) fn draw(&self, random: &mut Rng) -> usize {
        let share = random.f64();
        self.up_to.partition_point(|up_to| *up_to < share).min(self.up_to.len() - 1)
    }
}
