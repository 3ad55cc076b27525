//! `verify`: every line of every segment is checked, and every damage is told with its place. It changes nothing.

use std::path::Path;

use annals_engine::engine::Report;
use annals_engine::store::{Damage, DamageClass};
use serde::Serialize;

use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::table::dress;
use crate::output::text::{bytes, count, one_line};
use crate::output::{FailedError, Format, Output};
use crate::shown::gap::{self, DamageWire};
use crate::store;

/// Check every byte of the log
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 0: every acknowledged event is there. 6: damage was found; what each range costs is told. \
A torn tail is what a writer that died left behind the last whole batch: no acknowledged event is in \
it, and the next append keeps it aside. It counts only with --strict, and so does damage that was \
accepted. Where nothing says what was acknowledged (lock.sync is gone), a torn tail counts always. \
With --json, `verdict` is sound, accepted, torn, unsure or damaged.

Examples:
  annals verify
  annals verify --json | jq '.damages[] | {class, file, offset, fromSeq, toSeq}'")]
pub(crate) struct Args {
    /// Let a torn tail and damage that was accepted count too
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("verify", &[Format::Table, Format::Json])?;
    let folder = store::folder(&context.global)?;
    let report = store::verify(&folder)?;
    let asked = if args.strict { Asked::VerifyStrictly } else { Asked::Verify };
    if context.out.format == Format::Json {
        context.out.object(&wire(&report, &folder, asked))?;
    } else {
        show(&report, &folder, asked, &mut context.out)?;
    }
    Ok(exit(&report, asked))
}

/// Who asks for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Somebody who wants to know whether acknowledged events are lost that nobody has accepted to lose.
    Verify,
    /// Somebody who wants every byte.
    VerifyStrictly,
    /// Somebody who is about to accept what is lost.
    Repair,
}

/// How a store is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Everything is there.
    Sound,
    /// Something is missing, and that was accepted.
    Accepted,
    /// Everything that was acknowledged is there, and something that was not.
    Torn,
    /// Something lies at the end of which nothing says whether it was acknowledged.
    Unsure,
    /// Something that was acknowledged is not there.
    Damaged,
}

impl Verdict {
    fn of(report: &Report) -> Self {
        match report.damages.iter().all(|damage| damage.accepted) {
            true if report.damages.is_empty() => Self::Sound,
            true => Self::Accepted,
            false if !report.is_sound() => Self::Damaged,
            false if report.floor_known => Self::Torn,
            false => Self::Unsure,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Accepted => "accepted",
            Self::Torn => "torn",
            Self::Unsure => "unsure",
            Self::Damaged => "damaged",
        }
    }

    /// What a program is told of it as a failure.
    fn error(self, asked: Asked) -> Option<FailedError<'static>> {
        let strict = asked == Asked::VerifyStrictly;
        let (message, hint) = match self {
            Self::Accepted if strict => ("events are missing, and that was accepted", ACCEPTED),
            Self::Torn if strict => ("the log ends in bytes that nobody acknowledged", APPEND),
            Self::Sound | Self::Accepted | Self::Torn => return None,
            Self::Unsure => ("the log may have lost its last acknowledged events", UNSURE),
            Self::Damaged if asked == Asked::Repair => (DAMAGED, APPLY),
            Self::Damaged => (DAMAGED, REPAIR),
        };
        Some(FailedError { code: self.word(), message, hint: Some(hint) })
    }
}

/// The exit code that a report means to whoever asked.
pub(crate) fn exit(report: &Report, asked: Asked) -> Exit {
    if Verdict::of(report).error(asked).is_some() { Exit::Damage } else { Exit::Ok }
}

const ACCEPTED: &str = "what is missing stays missing; without --strict it does not count";
const APPEND: &str = "no event is lost; the next append keeps the bytes aside and goes on";
const UNSURE: &str = "nothing says whether the last bytes were acknowledged: compare with a backup before the next \
                      append keeps them aside";
const DAMAGED: &str = "acknowledged events are damaged or lost";
const REPAIR: &str = "`annals repair` says what can be done; reading goes on around the damage";
const APPLY: &str =
    "`annals repair --apply --reason TEXT` does what stands below; reading goes on without it";

/// A report as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportWire<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<FailedError<'a>>,
    verdict: &'static str,
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
pub(crate) fn wire<'a>(report: &'a Report, folder: &Path, asked: Asked) -> ReportWire<'a> {
    let verdict = Verdict::of(report);
    let error = verdict.error(asked);
    ReportWire {
        ok: error.is_none(),
        error,
        verdict: verdict.word(),
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
pub(crate) fn show(
    report: &Report,
    folder: &Path,
    asked: Asked,
    out: &mut Output,
) -> Result<(), Failure> {
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
        out.line(&format!("note     {}", one_line(note)))?;
    }
    for damage in &report.damages {
        show_damage(damage, out)?;
    }
    let strict = asked == Asked::VerifyStrictly;
    let (style, words) = match Verdict::of(report) {
        Verdict::Sound => return out.line("sound: every line verifies"),
        Verdict::Accepted if !strict => return out.line("sound: what is missing was accepted"),
        Verdict::Accepted => (out.paint.warning(), format!("INCOMPLETE: {ACCEPTED}")),
        Verdict::Torn => (out.paint.warning(), format!("TORN: {APPEND}")),
        Verdict::Unsure => (out.paint.loud(), format!("UNSURE: {UNSURE}")),
        Verdict::Damaged if asked == Asked::Repair => {
            (out.paint.loud(), format!("DAMAGED: {APPLY}"))
        }
        Verdict::Damaged => (out.paint.loud(), format!("DAMAGED: {REPAIR}")),
    };
    out.line(&dress(&words, style))
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
    out.line(&format!("  seen      {}", one_line(&damage.detail)))?;
    if let Some(missing) = gap::missing(damage) {
        out.line(&format!("  cost      {missing}"))?;
    }
    for touched in &damage.touched {
        out.line(&format!("  touched   {}", gap::touched_text(touched)))?;
    }
    if damage.accepted {
        out.line("  accepted by an operator: appends go on")?;
    }
    Ok(())
}
