//! `timeline`: what sessions did to each other, in the order in which it happened, with what came of it.

use annals_engine::session::deeds::{Deed, DeedKind, Deeds, unjoined};
use annals_engine::store::{Item, Read, View};
use serde::Serialize;

use crate::args::Global;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::filter::{FilterArgs, Marks};
use crate::output::table::{Cell, Column};
use crate::output::text::{count, one_line};
use crate::output::{Format, Output, say};
use crate::shown::mask::MaskArgs;
use crate::sieve::Sieve;
use crate::store;

/// List who sent, spawned and announced to whom, when, with what outcome
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A send, a spawn, an announce, a delivery and a refusal are one line each, with what came of them and \
how long that took. `open` is what has not come to its end.

Filters choose deeds and change none: --session, --kind and --agent look at either end, --since and \
--until at when it began, and the others at all its events.

Examples:
  annals timeline --since yesterday
  annals timeline --session 'agent:*:subagent:*' -n 0
  annals timeline --json | jq '.deeds[] | select(.outcome == \"failed\")'")]
pub(crate) struct Args {
    /// How many at most, the last ones; 0 for all
    #[arg(short = 'n', long, value_name = "N", value_hint = clap::ValueHint::Other, default_value_t = 50)]
    lines: usize,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    mask: MaskArgs,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    ok: bool,
    deeds: &'a [Deed],
    more: usize,
    unjoined: usize,
    gaps: u64,
    as_of: u64,
}

/// What was read.
pub(crate) struct Told {
    /// The deeds that are wanted, in the order in which they happened.
    pub(crate) deeds: Vec<Deed>,
    /// How many others there are.
    others: usize,
    pub(crate) gaps: u64,
    pub(crate) as_of: u64,
}

impl Told {
    /// Reads all deeds, and keeps those that are wanted.
    ///
    /// # Errors
    /// Usage, for a filter that cannot be; whatever reading meets.
    pub(crate) fn read(
        filter: &FilterArgs,
        global: &Global,
        out: &Output,
    ) -> Result<Self, Failure> {
        let mut wanted = filter.check(out)?;
        let engine = store::open_read_only(global)?;
        let events = engine.store();
        wanted.resolve(&engine)?;
        let mut sieve = Sieve::new(wanted, true, None, events.id());
        sieve.learn_all(events)?;
        let (mut deeds, mut marks, mut gaps) = (Deeds::default(), Vec::<Marks>::new(), 0);
        for item in events.read(Read::default().view(View::Durable))? {
            let record = match item? {
                Item::Record(record) => record,
                Item::Gap(_) => {
                    gaps += 1;
                    continue;
                }
            };
            let Some(shown) = sieve.message(record, events)? else { continue };
            let Some(place) = shown.message.as_ref().and_then(|m| deeds.take(m)) else { continue };
            marks.resize(deeds.all().len(), Marks::default());
            if let Some(marks) = marks.get_mut(place) {
                sieve.wanted().mark(marks, &shown);
            }
        }
        let all = deeds.into_all();
        let total = all.len();
        let kept = all.into_iter().zip(marks);
        let kept = kept.filter(|(deed, marks)| sieve.wanted().keeps_deed(deed, *marks));
        let mut deeds: Vec<Deed> = kept.map(|(deed, _)| deed).collect();
        deeds.sort_by_key(|deed| (deed.at, deed.seq));
        let as_of = events.end(View::Durable)?.map_or(0, |cursor| cursor.seq().0);
        Ok(Self { others: total - deeds.len(), deeds, gaps, as_of })
    }

    /// Says why nothing is shown.
    pub(crate) fn nothing(&self) {
        if self.others == 0 {
            return say("no session has said anything to another");
        }
        let others = count(self.others as u64, "deed");
        say(&format!("nothing fits: {others} without the filters"));
    }
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("timeline", &[Format::Table, Format::Json])?;
    args.mask.on(out)?;
    let told = Told::read(&args.filter, &context.global, out)?;
    let all = &told.deeds;
    let room = if args.lines == 0 { all.len() } else { args.lines };
    let more = all.len().saturating_sub(room);
    let deeds = all.get(more..).unwrap_or_default();
    if out.format == Format::Json {
        let (unjoined, gaps, as_of) = (unjoined(all), told.gaps, told.as_of);
        out.object(&Answer { ok: true, deeds, more, unjoined, gaps, as_of })?;
        return Ok(Exit::Ok);
    }
    table(deeds, out)?;
    out.flush()?;
    if deeds.is_empty() {
        told.nothing();
    }
    if more > 0 {
        say(&format!("{} before these; -n 0 shows all", count(more as u64, "deed")));
    }
    told.notes();
    Ok(Exit::Ok)
}

fn table(deeds: &[Deed], out: &mut Output) -> Result<(), Failure> {
    if deeds.is_empty() {
        return Ok(());
    }
    let columns = [
        Column::fixed("WHEN"),
        Column::shrinking("FROM", 10),
        Column::fixed("WHAT"),
        Column::shrinking("TO", 10),
        Column::shrinking("OUTCOME", 9),
        Column::fixed("TOOK"),
        Column::shrinking("TEXT", 6),
    ];
    let style = out.time_style();
    let row = |deed: &Deed| -> Vec<Cell> {
        let outcome = match (&deed.reason, deed.rounds) {
            (Some(why), _) if deed.kind != DeedKind::Delivery || deed.outcome != "delivered" => {
                format!("{} ({why})", deed.outcome)
            }
            (_, Some(rounds)) if rounds > 1 => format!("{}, {rounds} rounds", deed.outcome),
            _ => deed.outcome.clone(),
        };
        vec![
            style.show(deed.at).into(),
            one_line(&deed.from).into(),
            deed.kind.as_str().into(),
            one_line(&deed.to).into(),
            one_line(&outcome).into(),
            took(deed).into(),
            deed.text.as_deref().map(one_line).unwrap_or_default().into(),
        ]
    };
    out.table(&columns, &deeds.iter().map(row).collect::<Vec<_>>())
}

fn took(deed: &Deed) -> String {
    let Some(ended) = deed.ended_at else { return String::new() };
    let ms = ended.as_millis().saturating_sub(deed.at.as_millis()).max(0);
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        10_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}
