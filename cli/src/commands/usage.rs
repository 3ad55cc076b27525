//! `usage`: tokens and cost, by session, agent, model or day.

use annals_engine::projection::{Folded, Losses, Until};
use annals_engine::session::usage::{Amount, By, Span, Usage};
use annals_engine::store::{Filter, NamePattern, Read};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::{Cell, Column};
use crate::output::text::{count, grouped, one_line};
use crate::output::{Format, Output, say};
use crate::store;
use crate::when::{self, Bound};

/// Sum up tokens and cost, by session, agent, model or day
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The pieces of one message count once, as the largest of them says. Of a run counts what its turns have \
not told. What names no model or agent is `unknown`. Days are days in UTC. What has no price costs `-`: \
nobody told, which is not nothing. In JSON and CSV, cost is in millionths of a dollar.

--since and --until go by when it happened; #42 is a place in the log.

Examples:
  annals usage
  annals usage --by model --since 7d
  annals usage --by day -o csv > usage.csv")]
pub(crate) struct Args {
    /// What to sum up by
    #[arg(long, value_name = "WHAT", default_value = "session", value_parser = names())]
    by: By,
    /// Not before: 2h, 3d, yesterday, 14:30, an ISO time, or #42 for a place in the log
    #[arg(long, value_name = "WHEN", value_hint = clap::ValueHint::Other)]
    since: Option<String>,
    /// Not after; the same forms
    #[arg(long, value_name = "WHEN", value_hint = clap::ValueHint::Other)]
    until: Option<String>,
}

fn names() -> impl TypedValueParser<Value = By> {
    let words = PossibleValuesParser::new(By::ALL.iter().map(|by| by.as_str()));
    words.try_map(|word| By::from_word(&word).ok_or("no such sum"))
}

/// The answer as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    ok: bool,
    by: By,
    sums: Vec<Sum>,
    total: Amount,
    as_of: u64,
    gaps: u64,
    missing: u64,
}

#[derive(Serialize)]
struct Sum {
    name: String,
    #[serde(flatten)]
    amount: Amount,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("usage", &[Format::Table, Format::Json, Format::Jsonl, Format::Csv])?;
    let range = when::range(args.since.as_ref(), args.until.as_ref(), out.now, &out.zone)?;
    let engine = store::open_read_only(&context.global)?;
    let (span, end) = span(range);
    let types = Usage::TYPES.map(|name| NamePattern::Exact(name.to_owned())).to_vec();
    let read = Read::default().filter(Filter { types, ..Filter::default() });
    let state = (Usage::within(span), Losses::default());
    let (usage, losses) = Folded::until(state, engine.store(), read, end)?.split();
    let answer = Answer {
        ok: true,
        by: args.by,
        sums: sums(usage.state(), args.by),
        total: usage.state().total(),
        as_of: usage.as_of().0,
        gaps: losses.ranges(),
        missing: losses.events(),
    };
    match out.format {
        Format::Json => out.object(&answer)?,
        Format::Jsonl => answer.sums.iter().try_for_each(|sum| out.object(sum))?,
        Format::Csv => csv(&answer, out)?,
        _ => table(&answer, out)?,
    }
    if answer.gaps > 0 && !out.is_json() {
        out.flush()?;
        let (gaps, missing) = (count(answer.gaps, "gap"), count(answer.missing, "event"));
        say(&format!("{gaps} in the log, {missing} missing: `annals verify` says more"));
    }
    Ok(Exit::Ok)
}

/// What counts, and where reading ends.
fn span((since, until): (Option<Bound>, Option<Bound>)) -> (Span, Option<Until>) {
    let mut span = Span::default();
    let mut end = None;
    match since {
        Some(Bound::Seq(first)) => span.first = Some(first),
        Some(Bound::Time(since)) => span.since = Some(since),
        None => {}
    }
    match until {
        Some(Bound::Seq(last)) => end = Some(Until::Seq(last)),
        Some(Bound::Time(until)) => span.until = Some(until),
        None => {}
    }
    (span, end)
}

/// Days in their order; all else by what was used most.
fn sums(usage: &Usage, by: By) -> Vec<Sum> {
    let sums = usage.sums(by).into_iter();
    let mut sums: Vec<Sum> = sums.map(|(name, amount)| Sum { name, amount }).collect();
    if by != By::Day {
        let used = |amount: &Amount| amount.tokens_in().saturating_add(amount.tokens_out());
        sums.sort_by_key(|sum| std::cmp::Reverse((used(&sum.amount), sum.amount.cost_micros())));
    }
    sums
}

const fn columns(by: By) -> [Column; 7] {
    let title = match by {
        By::Session => "SESSION",
        By::Agent => "AGENT",
        By::Model => "MODEL",
        By::Day => "DAY",
    };
    [
        Column::shrinking(title, 12),
        Column::fixed("MESSAGES").right().rank(3),
        Column::fixed("IN").right(),
        Column::fixed("OUT").right(),
        Column::fixed("CACHE READ").right().rank(1),
        Column::fixed("CACHE WRITE").right().rank(2),
        Column::fixed("COST").right(),
    ]
}

fn table(answer: &Answer, out: &mut Output) -> Result<(), Failure> {
    if answer.sums.is_empty() {
        say("nothing was used");
        return Ok(());
    }
    let mut rows: Vec<Vec<Cell>> = answer
        .sums
        .iter()
        .map(|sum| {
            let style = match answer.by {
                By::Session => out.paint.session(&sum.name),
                _ => anstyle::Style::new(),
            };
            cells(Cell::styled(one_line(&sum.name), style), &sum.amount)
        })
        .collect();
    rows.push(cells(Cell::styled("total", out.paint.title()), &answer.total));
    out.table(&columns(answer.by), &rows)
}

fn cells(name: Cell, amount: &Amount) -> Vec<Cell> {
    vec![
        name,
        grouped(amount.messages()).into(),
        grouped(amount.tokens_in()).into(),
        grouped(amount.tokens_out()).into(),
        grouped(amount.cache_read()).into(),
        grouped(amount.cache_write()).into(),
        amount.cost_micros().map_or("-".to_owned(), dollars).into(),
    ]
}

/// `$1,234.567890`.
fn dollars(micros: u64) -> String {
    format!("${}.{:06}", grouped(micros / 1_000_000), micros % 1_000_000)
}

fn csv(answer: &Answer, out: &mut Output) -> Result<(), Failure> {
    out.csv(&[
        answer.by.as_str(),
        "messages",
        "tokensIn",
        "tokensOut",
        "cacheRead",
        "cacheWrite",
        "costMicros",
    ])?;
    for Sum { name, amount } in &answer.sums {
        out.csv(&[
            name,
            &amount.messages().to_string(),
            &amount.tokens_in().to_string(),
            &amount.tokens_out().to_string(),
            &amount.cache_read().to_string(),
            &amount.cache_write().to_string(),
            &amount.cost_micros().map_or(String::new(), |cost| cost.to_string()),
        ])?;
    }
    Ok(())
}
