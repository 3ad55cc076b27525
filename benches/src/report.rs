//! What was measured, as Markdown: a table a section, and at the end the targets with the ratios that were found.

use std::fmt::Write as _;

use crate::rounds::{Row, Side};

/// What a figure counts, which also says whether more of it is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events a second.
    EventsPerSecond,
    /// Megabytes a second, of a million bytes.
    MegabytesPerSecond,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Mebibytes.
    Mebibytes,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::EventsPerSecond => "events/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Seconds => "s",
            Self::Millis => "ms",
            Self::Micros => "µs",
            Self::Mebibytes => "MiB",
        }
    }

    const fn more_is_better(self) -> bool {
        matches!(self, Self::EventsPerSecond | Self::MegabytesPerSecond)
    }

    /// How many times as good `ours` is.
    #[must_use]
    pub fn ratio(self, ours: f64, other: f64) -> f64 {
        if self.more_is_better() { ours / other } else { other / ours }
    }
}

/// What a target asks of a ratio.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
}

/// A target and what was found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Its name.
    pub target: &'static str,
    /// Which ratio.
    pub what: String,
    /// The ratio; `None` when a side of it could not be measured.
    pub found: Option<f64>,
    /// What is asked.
    pub limit: Limit,
}

impl Verdict {
    fn word(&self) -> &'static str {
        match (self.found, self.limit) {
            (None, _) => "not measured",
            (Some(found), Limit::AtLeast(least)) if found >= least => "met",
            (Some(found), Limit::AtMost(most)) if found <= most => "met",
            _ => "missed",
        }
    }
}

/// One comparison.
#[derive(Clone, Debug)]
pub struct Section {
    /// What is compared.
    pub title: String,
    /// How durable, how big, how often.
    pub terms: String,
    /// What the figures count.
    pub unit: Unit,
    /// Who, ours first.
    pub rows: Vec<Row>,
    /// The targets that speak of it.
    pub verdicts: Vec<Verdict>,
}

impl Section {
    /// The median of the row whose name begins so.
    #[must_use]
    pub fn median(&self, name: &str) -> Option<f64> {
        self.row(name)?.median()
    }

    /// The row whose name begins so.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name.starts_with(name))
    }

    /// How many times as good ours is as the row whose name begins so.
    #[must_use]
    pub fn ratio(&self, ours: &str, other: &str) -> Option<f64> {
        Some(self.unit.ratio(self.median(ours)?, self.median(other)?))
    }

    /// The best median of all rivals.
    #[must_use]
    pub fn best_rival(&self) -> Option<f64> {
        let medians = self.rows.iter().filter(|row| row.side == Side::Rival);
        medians
            .filter_map(Row::median)
            .reduce(|a, b| if self.unit.more_is_better() { a.max(b) } else { a.min(b) })
    }

    /// The section as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let timed = self.rows.iter().any(|row| row.percentiles().is_some());
        let mut out = format!("### {}\n\n{}\n\n", self.title, self.terms);
        let ours = self.rows.iter().find(|row| row.side == Side::Ours).and_then(Row::median);
        let _ = writeln!(
            out,
            "| | {} (median) | min – max | annals is × |{}\n|---|---|---|---|{}",
            self.unit.name(),
            if timed { " a call: p50 · p99 µs |" } else { "" },
            if timed { "---|" } else { "" },
        );
        for row in &self.rows {
            let _ = write!(out, "| {} ", label(row));
            match (row.median(), row.spread()) {
                (Some(median), Some((least, most))) => {
                    let ratio = match (row.side, ours) {
                        (Side::Ours, _) | (_, None) => "".to_owned(),
                        (_, Some(ours)) => shown(self.unit.ratio(ours, median)),
                    };
                    let (least, most) = (shown(least), shown(most));
                    let _ = write!(out, "| {} | {least} – {most} | {ratio} |", shown(median));
                }
                _ => {
                    let _ = write!(out, "| – | – | – |");
                }
            }
            if timed {
                let text =
                    row.percentiles().map(|(p50, p99)| format!("{} · {}", shown(p50), shown(p99)));
                let _ = write!(out, " {} |", text.unwrap_or_default());
            }
            out.push('\n');
        }
        for row in &self.rows {
            if let Some(failure) = &row.failure {
                let _ = write!(out, "\n{}: {failure}\n", row.name);
            }
        }
        out
    }
}

fn label(row: &Row) -> String {
    match row.side {
        Side::Ours => format!("**{}**", row.name),
        Side::Floor => format!("floor: {}", row.name),
        Side::Rival => row.name.clone(),
    }
}

/// The targets as Markdown.
#[must_use]
pub fn targets(verdicts: &[Verdict]) -> String {
    let mut out = String::from("| target | ratio | found | asked | |\n|---|---|---|---|---|\n");
    for verdict in verdicts {
        let limit = match verdict.limit {
            Limit::AtLeast(least) => format!("≥ {least}"),
            Limit::AtMost(most) => format!("≤ {most}"),
        };
        let found = verdict.found.map_or("–".to_owned(), shown);
        let (target, what, word) = (verdict.target, &verdict.what, verdict.word());
        let _ = writeln!(out, "| {target} | {what} | {found} | {limit} | {word} |");
    }
    out
}

/// Three digits that count, thousands set apart.
fn shown(value: f64) -> String {
    if value >= 1_000.0 {
        let digits = format!("{value:.0}");
        let mut out = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index) % 3 == 0 {
                out.push(',');
            }
            out.push(digit);
        }
        return out;
    }
    match value {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::Figure;

    /// Goal: the ratio says how many times as good ours is, whichever way the unit goes, and figures are legible.
    /// Method: one section in two units.
    #[test]
    fn ratios_follow_the_unit() {
        let row = |side, name: &str, value| Row {
            side,
            name: name.to_owned(),
            figures: vec![Figure::of(value)],
            failure: None,
        };
        let mut section = Section {
            title: "T".to_owned(),
            terms: "terms".to_owned(),
            unit: Unit::EventsPerSecond,
            rows: vec![row(Side::Ours, "annals", 12_345.6), row(Side::Rival, "other", 1_000.0)],
            verdicts: Vec::new(),
        };
        assert_eq!(section.ratio("annals", "other").map(shown).as_deref(), Some("12.3"));
        assert!(section.markdown().contains("| **annals** | 12,346 | 12,346 – 12,346 |  |"));
        section.unit = Unit::Seconds;
        assert_eq!(section.ratio("annals", "other").map(shown).as_deref(), Some("0.0810"));
    }
}
