//! `export`: the log for other programs, as CloudEvents 1.0 in structured JSON, one event a line.

use annals_engine::id::{EventId, StoreId};
use annals_engine::store::{Cursor, Damage, View};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::filter::{FilterArgs, Reach};
use crate::output::text::count;
use crate::output::{Format, Output, say};
use crate::shown::gap::{self, DamageWire};
use crate::shown::{Shown, wire};
use crate::sieve::{Sieve, Step};
use crate::store;

/// Write events for other programs: CloudEvents 1.0, one JSON object a line
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line is a CloudEvent in structured JSON: `stream` is its subject, `seq` its sequence (20 digits,
so that it sorts as text), `flow` its correlationid, `cause` its causationid. `time` says when it
happened, `recordedtime` when it was appended. Missing events are events of the type annals.gap.
`-o raw` writes the lines of the log byte for byte instead.

Examples:
  annals export > events.jsonl
  annals export agent:main:main --since 7d
  annals export --type turn -o raw | jq -r .stream | sort | uniq -c")]
pub(crate) struct Args {
    /// Only this session, and the runs that work on it: a key, or a pattern with * and ?
    #[arg(value_name = "KEY|GLOB")]
    key: Option<String>,
    /// Begin after this cursor
    #[arg(long, value_name = "CURSOR")]
    after: Option<Cursor>,
    /// Fail with exit code 6 when events are missing
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    if out.format == Format::Table {
        out.format = Format::Jsonl;
    }
    out.only("export", &[Format::Json, Format::Jsonl, Format::Raw])?;
    let mut wanted =
        args.filter.clone().and_session(args.key.as_deref()).everything().check(out)?;
    let engine = store::open_read_only(&context.global)?;
    let events = engine.store();
    wanted.resolve(events)?;
    let mut sieve = Sieve::new(wanted, false, args.after, events.id());
    sieve.learn_all(events)?;
    let read = sieve.read(View::Durable, Reach::Past);
    let mut gaps = 0;
    for item in events.read(read)? {
        if let Some(step) = sieve.pass(item?, events)? {
            gaps += u64::from(step.misses_something());
            one(&step, events.id(), out)?;
        }
        if sieve.over {
            break;
        }
    }
    if gaps > 0 {
        out.flush()?;
        say(&format!("the export has {}: `annals verify` says more", count(gaps, "gap")));
    }
    Ok(if args.strict && gaps > 0 { Exit::Damage } else { Exit::Ok })
}

fn one(step: &Step, store: StoreId, out: &mut Output) -> Result<(), Failure> {
    match step {
        Step::Event(shown) => event(shown, store, out),
        Step::Gap(damage) => missing(damage, store, out),
    }
}

/// A CloudEvent (<https://github.com/cloudevents/spec>, version 1.0, JSON format) with the extensions `sequence`,
/// `correlationid`, `causationid` and `recordedtime`.
#[derive(Serialize)]
struct CloudEvent<'a, T> {
    specversion: &'static str,
    id: String,
    source: String,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recordedtime: Option<String>,
    sequence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    streamversion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlationid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causationid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    datalost: Option<&'a str>,
    datacontenttype: &'static str,
    data: T,
}

fn event(shown: &Shown, store: StoreId, out: &mut Output) -> Result<(), Failure> {
    let record = &*shown.record;
    if out.format == Format::Raw {
        return out.bytes(&record.to_line());
    }
    let data: &RawValue = wire::raw(shown.payload().as_str());
    out.object(&CloudEvent {
        specversion: "1.0",
        id: record.id.to_string(),
        source: source(store),
        kind: record.kind.as_str(),
        subject: Some(record.stream.as_str()),
        time: Some(shown.at.to_string()),
        recordedtime: Some(record.time.to_string()),
        sequence: sequence(record.seq.0),
        streamversion: Some(record.version.to_string()),
        batch: record.batch.map(|(index, count)| format!("{index}/{count}")),
        correlationid: record.flow.map(|id| id.to_string()),
        causationid: record.cause.map(|id| id.to_string()),
        datalost: wire::lost(shown),
        datacontenttype: "application/json",
        data,
    })
}

fn missing(damage: &Damage, store: StoreId, out: &mut Output) -> Result<(), Failure> {
    if out.format == Format::Raw {
        out.flush()?;
        say(&format!("GAP: {}", gap::sentence(damage)));
        return Ok(());
    }
    let place = format!("{}@{}", damage.file, damage.offset);
    let data: DamageWire<'_> = gap::damage_wire(damage);
    out.object(&CloudEvent {
        specversion: "1.0",
        id: EventId::derived("gap", &store.to_string(), &place).to_string(),
        source: source(store),
        kind: "annals.gap",
        subject: None,
        time: None,
        recordedtime: None,
        sequence: sequence(damage.seqs.map_or(0, |(first, _)| first.0)),
        streamversion: None,
        batch: None,
        correlationid: None,
        causationid: None,
        datalost: None,
        datacontenttype: "application/json",
        data,
    })
}

fn source(store: StoreId) -> String {
    format!("urn:uuid:{store}")
}

/// A position as text that sorts as the positions do, which is what the extension `sequence` asks for.
fn sequence(seq: u64) -> String {
    format!("{seq:020}")
}
