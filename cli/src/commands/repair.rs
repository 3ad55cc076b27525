//! `repair`: what a damaged store needs, and with `--apply` the operator's word that the losses are accepted. No byte of
//! a damaged segment is changed by it.

use annals_engine::engine::{Accepted, Remedy, Report, remedies};
use annals_engine::store::{Damage, DamageClass};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::verify::{self, Asked, ReportWire};
use crate::exit::{Exit, Failure};
use crate::output::text::count;
use crate::output::{Format, Output};
use crate::shown::gap::{self, DamageWire};
use crate::store;

/// Say what damage needs; with --apply, accept it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --apply nothing is changed. With it, lines in the log say which events are missing and why \
that was accepted, the damaged bytes of the log are copied to torn/, and the store takes appends \
again. What is missing stays missing: restore the segment from a backup first if there is one. A \
content that lies apart (blobs/) is left as it is: put back from a backup, it is whole again.

Examples:
  annals repair
  annals repair --apply --reason 'disk failed on 3 May, no backup'")]
pub(crate) struct Args {
    /// Accept the damage
    #[arg(long)]
    apply: bool,
    /// Why it is accepted, for whoever reads the log later
    #[arg(long, value_name = "TEXT", value_hint = clap::ValueHint::Other, default_value = "accepted by the operator")]
    reason: String,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("repair", &[Format::Table, Format::Json])?;
    let folder = store::folder(&context.global)?;
    if args.apply {
        let accepted = store::repair(&folder, &args.reason)?;
        return applied(&accepted, &mut context.out);
    }
    let report = store::verify(&folder)?;
    if context.out.format == Format::Json {
        let report_wire = verify::wire(&report, &folder, Asked::Repair);
        context.out.object(&Planned { report: report_wire, plan: plan(&report) })?;
    } else {
        verify::show(&report, &folder, Asked::Repair, &mut context.out)?;
        for step in plan(&report) {
            context.out.line(&format!("would    {step}"))?;
        }
    }
    Ok(verify::exit(&report, Asked::Repair))
}

/// What would be done, as an object.
#[derive(Serialize)]
struct Planned<'a> {
    #[serde(flatten)]
    report: ReportWire<'a>,
    plan: Vec<String>,
}

/// What `--apply` does with a store in this state.
fn plan(report: &Report) -> Vec<String> {
    remedies(report).into_iter().map(|(damage, remedy)| step(damage, remedy)).collect()
}

fn step(damage: &Damage, remedy: Remedy) -> String {
    let Damage { file, offset, .. } = damage;
    let size = count(damage.bytes, "byte");
    let cost = gap::missing(damage).unwrap_or_else(|| "no event is missing".to_owned());
    match remedy {
        Remedy::NextAppend => {
            format!("keep {size} of {file} offset {offset} in torn/ and cut them off")
        }
        Remedy::TakeAway => {
            format!("keep a copy of {file}, {size}, in torn/ and take the file away")
        }
        Remedy::CopyAndRecord => {
            format!("keep a copy of {size} of {file} offset {offset} in torn/ and record: {cost}")
        }
        Remedy::Record if damage.class == DamageClass::Blob => {
            format!("leave {file} as it is and record: {cost}")
        }
        Remedy::Record => format!("record: {cost}"),
    }
}

/// What was done, as an object.
#[derive(Serialize)]
struct Applied<'a> {
    ok: bool,
    accepted: Vec<DamageWire<'a>>,
    copies: &'a [String],
}

fn applied(accepted: &Accepted, out: &mut Output) -> Result<Exit, Failure> {
    if out.format == Format::Json {
        let ranges = accepted.accepted.iter().map(gap::damage_wire).collect();
        out.object(&Applied { ok: true, accepted: ranges, copies: &accepted.copies })?;
        return Ok(Exit::Ok);
    }
    if accepted.accepted.is_empty() {
        out.line("nothing to accept: every acknowledged event is there")?;
    }
    for damage in &accepted.accepted {
        out.line(&format!("accepted  {}", gap::sentence(damage)))?;
    }
    for copy in &accepted.copies {
        out.line(&format!("kept      {copy}"))?;
    }
    Ok(Exit::Ok)
}
