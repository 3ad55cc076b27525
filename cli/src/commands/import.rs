//! `import`: other programs' transcripts into the log. The source is only read, and a second run adds what is new.

mod follow;

use std::path::PathBuf;
use std::sync::Arc;

use annals_engine::clock::SystemClock;
use annals_engine::import::{
    Counts, DamageClass, Discovery, DiskTree, Mode, Options, Report, Skipped, SourceReport,
    SourceTree, discover, import,
};
use annals_engine::{Engine, ErrorKind};
use serde::Serialize;

use crate::args::Global;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::output::progress::Progress;
use crate::output::table::dress;
use crate::output::text::{bytes, count, grouped, one_line};
use crate::output::{Format, Output};
use crate::store::{self, Opened};

/// How many damages are told one by one for eyes; JSON has more.
const DAMAGES_SHOWN: usize = 20;

/// Bring in transcripts of other programs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A PATH is a file or a folder: what is in it is found out by looking at it. Known are state folders of \
OpenClaw from before its sessions moved to SQLite, session files of pi, sessions of Claude Code and of \
Codex with their sub-agents, of Gemini CLI, of Hermes and of Arka, and what `annals export --as jsonl` \
wrote. Sources are only read. A second run adds what is new and nothing twice, so an import that was \
stopped is simply repeated.

With --follow it goes on: what is appended to the files, and what new files bring, comes in as it is \
written, each record once, until SIGINT or SIGTERM. It says so on stderr, and with --json as one report \
a line. A line that is not whole yet is waited for, and a run that has not ended is left to a later import.

Examples:
  annals import ~/.openclaw
  annals import ~/.claude ~/.codex/sessions
  annals import --dry-run ~/.pi/agent/sessions
  annals import --follow ~/.claude ~/.codex/sessions
  annals import backup.jsonl --json | jq .totals")]
pub(crate) struct Args {
    /// Files or folders
    #[arg(required = true, value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Look and report, and append nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on as the files grow, until it is stopped
    #[arg(long, conflicts_with_all = ["dry_run", "strict"])]
    follow: bool,
    /// Fail with exit code 6 when a source is damaged; sessions left alone for a broken index always do
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("import", &[Format::Table, Format::Json])?;
    if args.follow {
        return follow::run(&args.paths, context);
    }
    let (found, foreign) = find(&args.paths)?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Append };
    let engine = open(&context.global, mode)?;
    let options = Options { mode, only: None };
    let mut report = Report { dry_run: args.dry_run, refused: foreign, ..Report::default() };
    for discovery in &found {
        add(&mut report, bring_in(&engine, &DiskTree, discovery, &options)?);
    }
    if context.out.format == Format::Json {
        context.out.object(&Answer { ok: true, totals: report.totals(), report: &report })?;
    } else {
        show(&report, &mut context.out)?;
    }
    let left_alone =
        report.sources.iter().any(|source| source.damage_count(DamageClass::BrokenIndex) > 0);
    let damaged = left_alone || (args.strict && report.totals().damages > 0);
    Ok(if damaged { Exit::Damage } else { Exit::Ok })
}

/// What lies under the paths, and those of them under which nothing can be imported. That is an error only when it
/// is so of all.
fn find(paths: &[PathBuf]) -> Result<(Vec<Discovery>, Vec<Skipped>), Failure> {
    let (mut found, mut foreign, mut first) = (Vec::new(), Vec::new(), None);
    for path in paths {
        match discover(path) {
            Ok(discovery) => found.push(discovery),
            Err(e) if matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
                let place = e.place().path.clone().unwrap_or_else(|| path.clone());
                let reason = e.message().to_owned();
                foreign.push(Skipped { path: place.display().to_string(), reason });
                first.get_or_insert(e);
            }
            Err(e) => return Err(e.into()),
        }
    }
    match first {
        Some(e) if found.is_empty() => Err(e.into()),
        _ => Ok((found, foreign)),
    }
}

/// The store to import into; a dry run makes none.
fn open(global: &Global, mode: Mode) -> Result<Opened, Failure> {
    if mode == Mode::Append {
        return store::open(global);
    }
    let existing = store::open_read_only_if_there(global)?;
    Ok(existing.unwrap_or_else(|| Opened::new(Engine::in_memory(Arc::new(SystemClock)))))
}

/// Imports what was found, with a bar on a terminal.
///
/// # Errors
/// Whatever reading the source and appending to the store meet.
pub(crate) fn bring_in(
    engine: &Engine,
    tree: &dyn SourceTree,
    found: &Discovery,
    options: &Options,
) -> Result<Report, Failure> {
    let bar = Progress::bytes("importing");
    let mut progress = |at: annals_engine::import::Progress| bar.at(at.bytes_done, at.bytes_total);
    Ok(import(engine.store(), engine.clock(), tree, found, options, &mut progress)?)
}

/// Adds a report to another.
pub(crate) fn add(report: &mut Report, more: Report) {
    report.sources.extend(more.sources);
    report.refused.extend(more.refused);
    report.unknown.extend(more.unknown);
}

/// A report as an object.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    pub(super) ok: bool,
    pub(super) totals: Counts,
    #[serde(flatten)]
    pub(super) report: &'a Report,
}

/// A report for eyes.
pub(crate) fn show(report: &Report, out: &mut Output) -> Result<(), Failure> {
    for source in &report.sources {
        show_source(source, report.dry_run, out)?;
    }
    for skipped in &report.refused {
        let text = one_line(&format!("not imported: {}: {}", skipped.path, skipped.reason));
        out.line(&dress(&text, out.paint.warning()))?;
    }
    if !report.unknown.is_empty() {
        let files = count(number(report.unknown.len()), "file");
        out.line(&format!("passed over: {files} of no program known here"))?;
    }
    Ok(())
}

fn show_source(source: &SourceReport, dry_run: bool, out: &mut Output) -> Result<(), Failure> {
    let counts = &source.counts;
    let SourceReport { program, path, .. } = source;
    out.line(&dress(&format!("{program}  {}", one_line(path)), out.paint.title()))?;
    out.line(&format!(
        "  read      {}, {}, {}",
        count(counts.transcripts, "transcript"),
        count(counts.records, "record"),
        bytes(counts.bytes)
    ))?;
    let would = if dry_run { "would add" } else { "added    " };
    out.line(&format!(
        "  {would} {} ({} known before)",
        count(counts.new, "event"),
        grouped(counts.known)
    ))?;
    out.line(&format!(
        "  sessions  {}, {}, {}",
        grouped(counts.sessions),
        count(counts.turns, "turn"),
        count(counts.runs, "run")
    ))?;
    if counts.passed > 0 {
        let types = source.passed.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count)));
        let types = types.collect::<Vec<_>>().join(", ");
        let records = count(counts.passed, "record");
        out.line(&format!("  no event  {records}, told elsewhere: {}", one_line(&types)))?;
    }
    if counts.unresolved > 0 {
        out.line(&format!("  unjoined  {}", count(counts.unresolved, "message")))?;
    }
    if counts.undelivered > 0 {
        let messages = count(counts.undelivered, "message");
        out.line(&format!("  waiting   {messages} to be delivered: reported, never sent"))?;
    }
    show_damages(source, out)
}

fn show_damages(source: &SourceReport, out: &mut Output) -> Result<(), Failure> {
    for damage in source.damages.iter().take(DAMAGES_SHOWN) {
        let class = dress(damage.class.code(), out.paint.warning());
        let place =
            format!("{} offset {}, {}", damage.file, damage.offset, count(damage.bytes, "byte"));
        out.line(&format!("  {class}  {}", one_line(&format!("{place}: {}", damage.detail))))?;
    }
    let more = source.counts.damages.saturating_sub(number(DAMAGES_SHOWN));
    if more > 0 {
        out.line(&format!("  {}: --json tells more", count(more, "more damage")))?;
    }
    Ok(())
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
