//! `verify`: every line of every segment is checked, and every damage is told with its place. It changes nothing.

use std::path::Path;

use annals_engine::engine::Report;
use annals_engine::store::{Damage, DamageClass};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::dress;
use crate::output::text::{bytes, count};
use crate::output::{FailedError, Format, Output};
use crate::shown::gap::{self, DamageWire};
use crate::store;

/// Check every byte of the log
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 0: every byte is as it was written. 6: damage was found; what each range costs is told. A
torn tail is what a writer that died left behind the last whole batch: no acknowledged event is in
it, and the next append keeps it aside. Damage that was accepted counts only with --strict.

Examples:
  annals verify
  annals verify --json | jq '.damages[] | {class, file, offset, fromSeq, toSeq}'")]
pub(crate) struct Args {
    /// Let damage that was accepted count too
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("verify", &[Format::Table, Format::Json])?;
    let folder = store::folder(&context.global)?;
    let report = store::verify(&folder)?;
    if context.out.format == Format::Json {
        context.out.object(&wire(&report, &folder))?;
    } else {
        show(&report, &folder, &mut context.out)?;
    }
    let strict = args.strict && !report.damages.is_empty();
    Ok(if strict || Verdict::of(&report) != Verdict::Sound { Exit::Damage } else { Exit::Ok })
}

/// How a store is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything is there, or its loss was accepted.
    Sound,
    /// Everything that was acknowledged is there, and something that was not.
    Torn,
    /// Something that was acknowledged is not there.
    Damaged,
}

impl Verdict {
    /// The verdict on a store.
    pub(crate) fn of(report: &Report) -> Self {
        match report.damages.iter().all(|damage| damage.accepted) {
            true => Self::Sound,
            false if report.is_sound() => Self::Torn,
            false => Self::Damaged,
        }
    }

    /// What a program is told of it as a failure.
    fn error(self) -> Option<FailedError<'static>> {
        let error = |code, message, hint| Some(FailedError { code, message, hint: Some(hint) });
        match self {
            Self::Sound => None,
            Self::Torn => error("torn", "the log ends in bytes that nobody acknowledged", APPEND),
            Self::Damaged => error("damaged", "acknowledged events are damaged or lost", REPAIR),
        }
    }
}

const APPEND: &str = "no event is lost; the next append keeps the bytes aside and goes on";
const REPAIR: &str = "`annals repair` says what can be done; reading goes on around the damage";

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
pub(crate) fn wire<'a>(report: &'a Report, folder: &Path) -> ReportWire<'a> {
    let error = Verdict::of(report).error();
    ReportWire {
        ok: error.is_none(),
        error,
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
    match Verdict::of(report) {
        Verdict::Sound if report.damages.is_empty() => out.line("sound: every line verifies"),
        Verdict::Sound => out.line("sound: what is missing was accepted"),
        Verdict::Torn => out.line(&dress(&format!("TORN: {APPEND}"), out.paint.warning())),
        Verdict::Damaged => out.line(&dress(&format!("DAMAGED: {REPAIR}"), out.paint.loud())),
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
