//! `stats`: how much of what is in the log, counted by reading it.

use std::collections::BTreeMap;
use std::path::Path;

use annals_engine::Engine;
use annals_engine::clock::Timestamp;
use annals_engine::id::Seq;
use annals_engine::projection::Projection;
use annals_engine::session::event::TurnHead;
use annals_engine::session::index::{Archived, Lens, ListQuery, TimeRules};
use annals_engine::session::usage::Usage;
use annals_engine::session::watching::AllWatched;
use annals_engine::store::{EventStore, Item, Read, Record, View};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::watch::Trouble;
use crate::exit::{Exit, Failure};
use crate::output::progress::Progress;
use crate::output::table::Column;
use crate::output::text::{bytes, count, grouped};
use crate::output::{Format, Output};
use crate::store;

/// How often the bar moves, in events.
const STEP: u64 = 4_096;

/// Count what is in the log
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Sessions are counted as `annals sessions list --all` lists them; each reset begins a new part of one. \
Tokens are those of `annals usage`.

Examples:
  annals stats
  annals stats --json | jq .byType")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("stats", &[Format::Table, Format::Json])?;
    let folder = store::folder(&context.global)?;
    let engine = store::open_read_only(&context.global)?;
    let mut stats = read(engine.store(), &folder)?;
    stats.count_sessions(&engine)?;
    if context.out.format == Format::Json {
        context.out.object(&stats)?;
    } else {
        show(&stats, &mut context.out)?;
    }
    Ok(Exit::Ok)
}

/// What was counted.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    ok: bool,
    store: String,
    path: String,
    events: u64,
    bytes: u64,
    streams: usize,
    sessions: u64,
    session_parts: u64,
    turns: BTreeMap<&'static str, u64>,
    tokens_in: u64,
    tokens_out: u64,
    by_type: BTreeMap<String, u64>,
    gaps: u64,
    missing: u64,
    first: Option<Place>,
    last: Option<Place>,
    /// Watch rules that do not look as they should.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watch_trouble: Vec<Trouble>,
}

/// A place in the log and when it was written.
#[derive(Serialize)]
struct Place {
    seq: u64,
    time: String,
    #[serde(skip)]
    at: Timestamp,
}

fn read(events: &dyn EventStore, folder: &Path) -> Result<Stats, Failure> {
    let mut stats = Stats {
        ok: true,
        store: events.id().to_string(),
        path: folder.display().to_string(),
        ..Stats::default()
    };
    let mut streams = std::collections::HashSet::new();
    let mut usage = Usage::default();
    let mut watched = AllWatched::default();
    let total = events.end(View::Durable)?.map_or(0, |cursor| cursor.seq().0);
    let progress = Progress::events("counting");
    for item in events.read(Read::default())? {
        match item? {
            Item::Record(record) => {
                if record.seq.0 % STEP == 0 {
                    progress.at(record.seq.0, total);
                }
                stats.count(&record);
                usage.apply(&record.fields());
                watched.apply(&record.fields());
                streams.insert(record.stream);
            }
            Item::Gap(damage) => {
                stats.gaps += 1;
                let lost = |(first, last): (Seq, Seq)| last.0.saturating_sub(first.0) + 1;
                stats.missing += damage.seqs.map_or(0, lost);
            }
        }
    }
    stats.watch_trouble = Trouble::of(&watched);
    stats.streams = streams.len();
    stats.tokens_in = usage.total().tokens_in();
    stats.tokens_out = usage.total().tokens_out();
    Ok(stats)
}

impl Stats {
    /// Counts the sessions as the lists of sessions do: one that was reset has several parts.
    fn count_sessions(&mut self, engine: &Engine) -> Result<(), Failure> {
        let sessions = engine.sessions()?;
        let rules = TimeRules::none();
        let lens = Lens { rules: &rules, now: engine.clock().now() };
        let all = ListQuery { archived: Archived::With, ..ListQuery::default() };
        let list = sessions.state().list(&all, &lens);
        self.sessions = u64::try_from(list.rows.len()).unwrap_or(u64::MAX);
        let parts = list.rows.iter().map(|row| sessions.state().parts(&row.key).len());
        self.session_parts = parts.map(|parts| u64::try_from(parts).unwrap_or(u64::MAX)).sum();
        Ok(())
    }

    fn count(&mut self, record: &Record) {
        let kind = record.kind.as_str();
        self.events += 1;
        self.bytes += u64::try_from(record.to_line().len()).unwrap_or(0);
        *self.by_type.entry(kind.to_owned()).or_default() += 1;
        if kind == "turn"
            && let Some(head) = TurnHead::read(record.data.as_str())
        {
            *self.turns.entry(head.role.as_str()).or_default() += 1;
        }
        let place = || Place { seq: record.seq.0, time: record.time.to_string(), at: record.time };
        self.first.get_or_insert_with(place);
        self.last = Some(place());
    }
}

fn show(stats: &Stats, out: &mut Output) -> Result<(), Failure> {
    let time = out.time_style();
    out.line(&format!("store     {}", stats.path))?;
    out.line(&format!("id        {}", stats.store))?;
    out.line(&format!(
        "events    {} in {}, {}",
        grouped(stats.events),
        count(u64::try_from(stats.streams).unwrap_or(0), "stream"),
        bytes(stats.bytes)
    ))?;
    for (name, place) in [("first", &stats.first), ("last", &stats.last)] {
        if let Some(place) = place {
            out.line(&format!("{name:<9} #{} {}", place.seq, time.show(place.at)))?;
        }
    }
    let (sessions, parts) = (grouped(stats.sessions), count(stats.session_parts, "part"));
    out.line(&format!("sessions  {sessions} in {parts}"))?;
    let turns: Vec<String> =
        stats.turns.iter().map(|(role, n)| format!("{} {role}", grouped(*n))).collect();
    if !turns.is_empty() {
        out.line(&format!("turns     {}", turns.join(", ")))?;
    }
    if stats.tokens_in + stats.tokens_out > 0 {
        let (tokens_in, tokens_out) = (grouped(stats.tokens_in), grouped(stats.tokens_out));
        out.line(&format!("tokens    {tokens_in} in, {tokens_out} out"))?;
    }
    if stats.gaps > 0 {
        let missing = count(stats.missing, "event");
        out.line(&format!(
            "GAPS      {}, {missing} missing: `annals verify` says more",
            grouped(stats.gaps)
        ))?;
    }
    for trouble in &stats.watch_trouble {
        out.line(&format!("watch     {}", trouble.sentence()))?;
    }
    out.line("")?;
    let rows: Vec<_> = stats
        .by_type
        .iter()
        .map(|(kind, n)| vec![kind.as_str().into(), grouped(*n).into()])
        .collect();
    out.table(&[Column::fixed("TYPE"), Column::fixed("EVENTS").right()], &rows)
}
