//! `quickstart`: from nothing to a store with something in it, checked and shown. What it brings in comes through the
//! same importer as ever.

pub(crate) mod places;
mod tour;

use std::io::{IsTerminal, Write};

use annals_engine::Engine;
use annals_engine::import::{
    DiskTree, Mode, Options, Report, discover, discover_sample, sample_tree,
};

use crate::commands::{Context, import};
use crate::exit::{Exit, Failure};
use crate::output::{Format, say};
use crate::store;
use places::Places;
use tour::{Brought, Tour};

/// Make a store and fill it with what is there
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks where agent programs usually keep their sessions, lists what is there, asks, imports the newest \
up to 256 MiB, checks the store and shows it. Without transcripts, without permission, or without a \
terminal to ask on and without --yes, it imports a small sample instead. Sources are only read.

Examples:
  annals quickstart
  annals quickstart --yes --json
  annals quickstart --store /tmp/try")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("quickstart", &[Format::Table, Format::Json])?;
    let folder = store::folder(&context.global)?;
    let places = Places::find();
    if context.out.format == Format::Table {
        context.out.line(&format!("store     {}", folder.display()))?;
        places.show(&mut context.out)?;
        context.out.flush()?;
    }
    let brought = match places.is_empty() {
        true => Brought::SampleForWantOfTranscripts,
        false if context.global.yes || agreed(&places) => Brought::Transcripts,
        false => Brought::SampleForWantOfPermission,
    };
    let engine = store::open(&context.global)?;
    let report = match brought {
        Brought::Transcripts => bring_in(&engine, &places)?,
        _ => bring_in_sample(&engine)?,
    };
    let verified = store::verify(&folder)?;
    // What was imported meanwhile lies in the past of whoever looks at it.
    context.out.now = engine.clock().now();
    let tour = Tour {
        engine: &engine,
        folder: &folder,
        named: context.global.store.as_deref(),
        places: &places,
        brought,
        report,
        verified,
    };
    match context.out.format {
        Format::Json => tour.tell(&mut context.out)?,
        _ => tour.show(&mut context.out)?,
    }
    Ok(if tour.verified.is_sound() { Exit::Ok } else { Exit::Damage })
}

/// Asks, where there is somebody to ask.
fn agreed(places: &Places) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    let mut stderr = std::io::stderr().lock();
    let asked = write!(stderr, "Import {}? [Y/n] ", places.newest_in_words());
    if asked.and_then(|()| stderr.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => {
            say("");
            false
        }
        Ok(_) => matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes"),
    }
}

fn bring_in(engine: &Engine, places: &Places) -> Result<Report, Failure> {
    let mut report = Report::default();
    for (root, only) in places.newest_by_root() {
        let found = discover(&root)?;
        let options = Options { mode: Mode::Append, only: Some(only) };
        import::add(&mut report, import::bring_in(engine, &DiskTree, &found, &options)?);
    }
    Ok(report)
}

fn bring_in_sample(engine: &Engine) -> Result<Report, Failure> {
    let tree = sample_tree();
    import::bring_in(engine, &tree, &discover_sample(&tree)?, &Options::default())
}
