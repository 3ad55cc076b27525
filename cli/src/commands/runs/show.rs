//! `runs show`: one run, with what became of its result.

use annals_engine::session::event::{Event, RunClaimed, run_stream};
use annals_engine::session::moment::Moment;
use annals_engine::session::outbox::{Outbox, Outgoing};
use annals_engine::session::run::announce;
use annals_engine::session::runs::{Owner, Run, Runs};
use annals_engine::store::{EventStore, Item};
use serde::Serialize;

use super::{Told, find, lasting, read, warn};
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::text::{count, grouped, one_line};
use crate::output::{Format, Output};
use crate::shown::mask::MaskArgs;
use crate::store;

/// Show one run, with its announce and its deliveries
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  annals runs show 0192f0c1-7a31-7c09-b0d8-3d6f0a5e4c11
  annals runs show 0192f0c1 --json | jq .run.end")]
pub(crate) struct Args {
    /// The run: its id, or the beginning of it, of four characters or more
    #[arg(value_name = "ID", value_hint = clap::ValueHint::Other)]
    id: String,
    #[command(flatten)]
    mask: MaskArgs,
}

/// The answer as an object.
#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    run: Told<'a>,
    /// What stood before the turn in the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    preamble: Option<&'a str>,
    /// Who claimed it, the first first.
    claims: Vec<Claim>,
    outgoing: Vec<&'a Outgoing>,
    gaps: u64,
    missing: u64,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let out = &mut context.out;
    out.only("runs show", &[Format::Table, Format::Json])?;
    args.mask.on(out)?;
    let engine = store::open_read_only(&context.global)?;
    let families = ["run.", "announce.", "delivery."];
    let (folded, losses) = read::<(Runs, Outbox)>(engine.store(), &families)?;
    let (runs, outbox) = folded.state();
    let run = find(runs, &args.id, &|_| true)?;
    let requested = announce::told(engine.store(), &run.run_id)?.requested;
    let claims = claims(engine.store(), &run.run_id)?;
    let mut outgoing = outbox.in_order();
    outgoing.retain(|outgoing| outgoing.run_id.as_ref() == Some(&run.run_id));
    let answer = Answer {
        ok: true,
        run: Told::of(run, out.now),
        preamble: requested.as_ref().and_then(|requested| requested.preamble.as_deref()),
        claims,
        outgoing,
        gaps: losses.ranges(),
        missing: losses.events(),
    };
    if out.format == Format::Json {
        out.object(&answer)?;
    } else {
        show(&answer, out)?;
    }
    warn(&losses, out)?;
    Ok(Exit::Ok)
}

fn show(answer: &Answer<'_>, out: &mut Output) -> Result<(), Failure> {
    let run = answer.run.run;
    field("run", &one_line(&run.run_id), out)?;
    let past = if run.imported { ", imported" } else { "" };
    let age = lasting(answer.run.age_ms);
    let lasting = if answer.run.open { format!("for {age}") } else { format!("after {age}") };
    field("state", &format!("{} {lasting}{past}", run.state), out)?;
    let kind = run.kind.map(|kind| kind.to_string());
    let hop = run.hop.map(|hop| hop.to_string());
    let round = run.round.map(|round| round.to_string());
    for (name, value) in [
        ("session", &run.session_key),
        ("part", &run.session_id),
        ("kind", &kind),
        ("agent", &run.agent_id),
        ("requester", &run.requester_key),
        ("chain", &run.chain_id),
        ("hop", &hop),
        ("round", &round),
        ("follows", &run.follows_run_id),
    ] {
        if let Some(value) = value {
            field(name, &one_line(value), out)?;
        }
    }
    moments(&answer.run, &answer.claims, out)?;
    end(run, out)?;
    if let Some(preamble) = answer.preamble {
        out.line("preamble")?;
        out.indented(preamble)?;
    }
    answer.outgoing.iter().try_for_each(|outgoing| passage(outgoing, out))
}

/// A claim on a run.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Claim {
    #[serde(flatten)]
    moment: Moment,
    #[serde(flatten)]
    owner: Owner,
}

fn claims(store: &dyn EventStore, run_id: &str) -> Result<Vec<Claim>, Failure> {
    let mut claims = Vec::new();
    for item in store.read_stream_of(&run_stream(run_id)?, &["run.claimed"])? {
        let Item::Record(record) = item? else { continue };
        let Ok(Event::RunClaimed(claim)) = Event::of(&record) else { continue };
        let RunClaimed { worker, host, pid, lease_until, .. } = claim;
        let owner = Owner { worker, host, pid, lease_until };
        claims.push(Claim { moment: Moment::of(&record.fields()), owner });
    }
    Ok(claims)
}

fn field(name: &str, value: &str, out: &mut Output) -> Result<(), Failure> {
    out.line(&format!("{name:<10} {value}"))
}

fn moments(told: &Told<'_>, claims: &[Claim], out: &mut Output) -> Result<(), Failure> {
    let run = told.run;
    let time = out.time_style();
    let text = |moment: Moment| format!("#{} {}", moment.seq, time.show(moment.at));
    if let Some(requested) = run.requested {
        field("requested", &text(requested), out)?;
    }
    for (number, claim) in claims.iter().enumerate() {
        let Claim { moment, owner } = claim;
        let (worker, host) = (one_line(&owner.worker), one_line(&owner.host));
        let again = if number > 0 { format!(", claim {}", number + 1) } else { String::new() };
        let by = format!("{} by {worker} on {host}, pid {}{again}", text(*moment), owner.pid);
        field("claimed", &by, out)?;
    }
    if let Some(owner) = run.owner.as_ref().filter(|_| told.open) {
        field("lease", &format!("until {}", time.show(owner.lease_until)), out)?;
    }
    if let Some(started) = run.started {
        field("started", &text(started), out)?;
    }
    if let Some(kill) = &run.kill {
        let (by, reason) = (one_line(&kill.by), one_line(&kill.reason));
        field("kill", &format!("{} by {by}: {reason}", text(kill.moment)), out)?;
    }
    if let Some(finished) = run.finished {
        field("ended", &text(finished), out)?;
    }
    Ok(())
}

fn end(run: &Run, out: &mut Output) -> Result<(), Failure> {
    let Some(end) = &run.end else { return Ok(()) };
    if let Some(reason) = &end.reason {
        field("reason", &one_line(reason), out)?;
    }
    if let Some(exit) = end.exit {
        field("exit", &exit.to_string(), out)?;
    }
    if let Some(signal) = end.signal {
        field("signal", &signal.to_string(), out)?;
    }
    if let Some(tokens) = &end.tokens {
        let (read, written) = (grouped(tokens.r#in), grouped(tokens.out));
        field("tokens", &format!("{read} in, {written} out"), out)?;
    }
    if let Some(reply) = end.reply_seq {
        field("reply", &format!("#{reply}"), out)?;
    }
    if run.late_outputs > 0 {
        let told = count(run.late_outputs, "time");
        field(
            "late",
            &format!("it said something {told} behind its end, which changes nothing"),
            out,
        )?;
    }
    if run.later_ends > 0 {
        let told = grouped(run.later_ends);
        field("note", &format!("the end was told {told} more times, which changes nothing"), out)?;
    }
    if let Some(detail) = &end.detail {
        out.line("detail")?;
        out.indented(detail)?;
    }
    Ok(())
}

fn passage(outgoing: &Outgoing, out: &mut Output) -> Result<(), Failure> {
    let time = out.time_style();
    let text = |moment: Moment| format!("#{} {}", moment.seq, time.show(moment.at));
    let reason = outgoing.reason.as_ref().map(|reason| format!(" ({})", one_line(reason)));
    let to = format!("in {}", one_line(&outgoing.session_key));
    let state = format!("{}{} {to}", outgoing.state, reason.unwrap_or_default());
    field(outgoing.cargo.as_str(), &state, out)?;
    if let Some(requested) = outgoing.requested {
        out.line(&format!("  requested  {}", text(requested)))?;
    }
    for attempt in &outgoing.attempts {
        let id = attempt.attempt_id.as_ref().map(|id| format!(" {}", one_line(id)));
        let sink = attempt.sink.as_ref().map(|sink| format!(" through {}", one_line(sink)));
        let (id, sink) = (id.unwrap_or_default(), sink.unwrap_or_default());
        let why = attempt.reason.as_ref().map(|why| format!(": {}", one_line(why)));
        let why = why.unwrap_or_default();
        out.line(&format!("  attempted  {}{id}{sink}{why}", text(attempt.moment)))?;
    }
    if let Some(ended) = outgoing.ended {
        out.line(&format!("  {:<10} {}", outgoing.state.as_str(), text(ended)))?;
    }
    Ok(())
}
