//! Rounds: everything that is compared runs once in each, in turn, and every round begins with another one, so that a
//! machine that is slow for a while is slow for all of them.

use std::fmt::Write as _;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// annals.
    Ours,
    /// The least that the machine must do for the same effect, written by hand.
    Floor,
    /// Another program or library.
    Rival,
}

/// What one round says.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// The figure, in the unit of its section.
    pub value: f64,
    /// The 50th and 99th percentile of the single calls in microseconds, where calls are timed one by one.
    pub percentiles: Option<(f64, f64)>,
}

impl Figure {
    /// A figure with no percentiles.
    #[must_use]
    pub const fn of(value: f64) -> Self {
        Self { value, percentiles: None }
    }
}

/// One round of a contestant.
pub type Run<'a> = Box<dyn FnMut() -> Result<Figure, String> + 'a>;

/// One of those that are compared.
pub struct Contestant<'a> {
    side: Side,
    name: String,
    run: Run<'a>,
}

impl<'a> Contestant<'a> {
    /// One that is measured by `run`.
    pub fn new(
        side: Side,
        name: impl Into<String>,
        run: impl FnMut() -> Result<Figure, String> + 'a,
    ) -> Self {
        Self { side, name: name.into(), run: Box::new(run) }
    }
}

/// What the rounds of one contestant say.
#[derive(Clone, Debug)]
pub struct Row {
    /// Who.
    pub side: Side,
    /// By what name, its durability included where that is not the section's.
    pub name: String,
    /// A figure a round.
    pub figures: Vec<Figure>,
    /// Why there is no figure, or not of all rounds.
    pub failure: Option<String>,
}

impl Row {
    /// The median of the rounds.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        median(self.figures.iter().map(|figure| figure.value))
    }

    /// The medians over the rounds of the 50th and the 99th percentile.
    #[must_use]
    pub fn percentiles(&self) -> Option<(f64, f64)> {
        let each = || self.figures.iter().filter_map(|figure| figure.percentiles);
        Some((median(each().map(|p| p.0))?, median(each().map(|p| p.1))?))
    }

    /// The least and the greatest figure.
    #[must_use]
    pub fn spread(&self) -> Option<(f64, f64)> {
        let values = || self.figures.iter().map(|figure| figure.value);
        Some((values().reduce(f64::min)?, values().reduce(f64::max)?))
    }
}

/// Runs the contestants in turn, `rounds` times each. One that fails is left out from then on.
pub fn run(mut contestants: Vec<Contestant<'_>>, rounds: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = contestants
        .iter()
        .map(|one| Row {
            side: one.side,
            name: one.name.clone(),
            figures: Vec::new(),
            failure: None,
        })
        .collect();
    for round in 0..rounds {
        let count = contestants.len();
        for turn in 0..count {
            let at = (turn + round) % count;
            let (Some(one), Some(row)) = (contestants.get_mut(at), rows.get_mut(at)) else {
                continue;
            };
            if row.failure.is_some() {
                continue;
            }
            match (one.run)() {
                Ok(figure) => row.figures.push(figure),
                Err(failure) => row.failure = Some(failure),
            }
        }
        tell(&rows, round + 1);
    }
    rows
}

/// Tells on standard error how far the rounds have come.
fn tell(rows: &[Row], round: usize) {
    let mut line = format!("round {round}:");
    for row in rows {
        if let Some(last) = row.figures.last() {
            let _ = write!(line, " {:.1}", last.value);
        }
    }
    eprintln!("{line}");
}

/// The median; `None` of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    percentile(&mut values.collect::<Vec<_>>(), 0.5)
}

/// The value that this share of all values does not exceed; `None` of nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a count"
)]
pub fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * share).ceil() as usize;
    values.get(at.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a percentile is a value that occurred. Method: small lists with the answer beside them.
    #[test]
    fn percentiles() {
        let of = |values: &[f64], share| percentile(&mut values.to_vec(), share);
        assert_eq!(of(&[], 0.5), None);
        assert_eq!(of(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.0));
        assert_eq!(of(&[1.0, 2.0], 0.99), Some(2.0));
    }

    /// Goal: nobody always runs first, and a failure ends one contestant and no other. Method: three that write down
    /// when they ran, one of which fails in its second round.
    #[test]
    fn rounds_rotate() {
        let order = std::cell::RefCell::new(String::new());
        let of = |name: char, fails_at: usize| {
            let (order, mut round) = (&order, 0);
            Contestant::new(Side::Floor, name, move || {
                order.borrow_mut().push(name);
                round += 1;
                if round == fails_at { Err("no more".to_owned()) } else { Ok(Figure::of(1.0)) }
            })
        };
        let rows = run(vec![of('a', 0), of('b', 2), of('c', 0)], 3);
        assert_eq!(*order.borrow(), "abcbcaca");
        assert_eq!(rows.iter().map(|row| row.figures.len()).collect::<Vec<_>>(), [3, 1, 3]);
    }
}
