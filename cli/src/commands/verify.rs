//! `verify`: every line of every segment is checked, and every damage is told with its place. It changes nothing.

use std::path::Path;

use annals_engine::engine::Report;
use annals_engine::store::{Damage, DamageClass};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::dress;
use crate::output::text::{bytes, count, grouped};
use crate::output::{FailedError, Format, Output};
use crate::shown::gap::{self, DamageWire};
use crate::store;

/// Check every byte of the log
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 0: every acknowledged event is there. 6: damage was found; what each range costs is told.
A torn tail is what a writer that died left behind the last whole batch: no acknowledged event is in
it, the next append keeps it aside, and it counts as damage only with --strict.

Examples:
  annals verify
  annals verify --json | jq '.damages[] | {class, file, offset, fromSeq, toSeq}'")]
pub(crate) struct Args {
    /// Let a torn tail, and damage that was accepted, count as damage too
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("verify", &[Format::Table, Format::Json])?;
    let folder = store::folder(&context.global)?;
    let report = store::verify(&folder)?;
    let sound = if args.strict { report.damages.is_empty() } else { report.is_sound() };
    if context.out.format == Format::Json {
        context.out.object(&wire(&report, &folder, sound))?;
    } else {
        show(&report, &folder, &mut context.out)?;
    }
    Ok(if sound { Exit::Ok } else { Exit::Damage })
}

/// A report as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportWire<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailedError<'a>>,
    store: String,
    path: String,
    segments: u64,
    lines: u64,
    bytes: u64,
    streams: u64,
    last_seq: Option<u64>,
    last_time: Option<String>,
    durable: u64,
    damages: Vec<DamageWire<'a>>,
    notes: &'a [String],
}

/// The object of a report.
pub(crate) fn wire<'a>(report: &'a Report, folder: &Path, sound: bool) -> ReportWire<'a> {
    ReportWire {
        ok: sound,
        error: (!sound).then_some(FailedError {
            code: "damaged",
            message: "the log is damaged",
            hint: Some(REPAIR),
        }),
        store: report.store.to_string(),
        path: folder.display().to_string(),
        segments: report.segments,
        lines: report.lines,
        bytes: report.bytes,
        streams: report.streams,
        last_seq: report.last.map(|(seq, ..)| seq.0),
        last_time: report.last.map(|(.., time)| time.to_string()),
        durable: report.durable.0,
        damages: report.damages.iter().map(gap::damage_wire).collect(),
        notes: &report.notes,
    }
}

const REPAIR: &str = "`annals repair` says what can be done; reading goes on around the damage";

/// A report for eyes.
pub(crate) fn show(report: &Report, folder: &Path, out: &mut Output) -> Result<(), Failure> {
    let time = out.time_style();
    out.line(&format!("store    {} ({})", folder.display(), report.store))?;
    out.line(&format!(
        "checked  {}, {}, {}, {}",
        count(report.segments, "segment"),
        count(report.lines, "line"),
        bytes(report.bytes),
        count(report.streams, "stream")
    ))?;
    if let Some((seq, _, at)) = report.last {
        out.line(&format!("last     #{seq} {}", time.show(at)))?;
    }
    out.line(&format!("durable  #{}", report.durable))?;
    for note in &report.notes {
        out.line(&format!("note     {note}"))?;
    }
    for damage in &report.damages {
        show_damage(damage, out)?;
    }
    let lost = report.damages.iter().filter(|d| !d.accepted && d.class != DamageClass::Torn);
    match lost.count() {
        0 if report.damages.is_empty() => out.line("sound: every line verifies"),
        0 => out.line("sound: every acknowledged event is there, or its loss was accepted"),
        ranges => {
            let ranges = grouped(u64::try_from(ranges).unwrap_or(u64::MAX));
            let text = format!("DAMAGED: {ranges} of the ranges above cost events. {REPAIR}");
            out.line(&dress(&text, out.paint.loud()))
        }
    }
}

fn show_damage(damage: &Damage, out: &mut Output) -> Result<(), Failure> {
    let style = match damage.class {
        DamageClass::Torn => out.paint.warning(),
        _ if damage.accepted => out.paint.faint(),
        _ => out.paint.loud(),
    };
    let class = dress(&damage.class.code().to_uppercase(), style);
    let place =
        format!("{} offset {}, {}", damage.file, damage.offset, count(damage.bytes, "byte"));
    out.line("")?;
    out.line(&format!("{class}  {place}"))?;
    out.line(&format!("  seen      {}", damage.detail))?;
    if let Some((first, last)) = damage.seqs {
        let missing = count(last.0.saturating_sub(first.0) + 1, "event");
        out.line(&format!("  missing   #{first} to #{last}, {missing}"))?;
    }
    for touched in &damage.touched {
        out.line(&format!("  touched   {}", gap::touched_text(touched)))?;
    }
    if damage.accepted {
        out.line("  accepted by an operator: appends go on")?;
    }
    Ok(())
}
