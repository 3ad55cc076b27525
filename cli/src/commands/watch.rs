//! `watch`: runs the watch rules of the configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use annals_engine::clock::SystemClock;
use annals_engine::engine::Engine;
use annals_engine::projection::Projection;
use annals_engine::session::watching::{AllWatched, Watched};
use annals_engine::store::{EventStore, Filter, Item, NamePattern, Read};
use annals_engine::watcher;
use annals_tools::watchers::{Mode, Tidings, Watchers};
use serde::Serialize;

use crate::args::Global;
use crate::commands::Context;
use crate::exit::{Exit, Failure};
use crate::office::{Office, Workers};
use crate::output::text::{count, one_line};
use crate::output::{Format, Output, say};
use crate::{settings, signal, store};

/// Start runs when files change, by the watch rules
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A rule stands in the configuration: watch: [{ name: \"notes\", paths: [\"notes/**/*.md\"], agent: \
\"clerk\", prompt: \"{path} has changed\" }]. A file that has settled with other content than \
recorded last starts one run, also when it changed while nobody watched. The first look only \
records. A rule whose runs change its own files stops after three in a row.

Keys of a rule, and what holds without them:
  name              must be said; no other rule has it
  paths             must be said; globs, from the configuration's folder on
  ignore            []       globs of files that it does not see
  outputs           []       globs of what its runs write; they never fire
  on                [\"create\", \"change\", \"remove\"]; others are only noted
  agent             the session's own; one that has a command
  session           \"hook:watch:{rule}\", so all firings of a rule share it
  prompt            \"{path}: {change}\"
  debounceMs        200      a file has settled when it rested so long
  maxWaitMs         1000     a file that does not rest is taken after this
  maxRunsPerMinute  any number
  poll              0        look every so many ms; 0 is to be notified
  initial           false    whether what the first look finds fires
{path}, {change} and {rule} are filled in in session and prompt.

Runs are a worker's; where none is, one is started. `annals worker` runs the rules too. The configuration \
is read once: a change of it is told, and holds from the next start on.

Examples:
  annals watch                   run all rules
  annals watch --dry-run notes   tell what would fire, and go on telling
  annals watch --reset notes     start a stopped rule again")]
pub(crate) struct Args {
    /// Only these rules
    #[arg(value_name = "RULE", value_hint = clap::ValueHint::Other)]
    rules: Vec<String>,
    /// Store nothing; tell what would fire
    #[arg(long, conflicts_with = "reset")]
    dry_run: bool,
    /// Start this stopped rule again, and nothing else
    #[arg(long, value_name = "RULE", conflicts_with = "rules")]
    reset: Option<String>,
    /// Start no worker
    #[arg(long)]
    no_worker: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("watch", &[Format::Table, Format::Json, Format::Jsonl])?;
    match (&args.reset, args.dry_run) {
        (Some(rule), _) => reset(rule, context),
        (None, true) => dry_run(args, context),
        (None, false) => at_work(args, context),
    }
}

/// A rule that was started again, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WasReset<'a> {
    ok: bool,
    rule: &'a str,
    was_stopped: bool,
}

fn reset(rule: &str, context: &mut Context) -> Result<Exit, Failure> {
    let engine = store::open(&context.global)?;
    let was_stopped = watcher::reset(&engine, rule)?;
    if context.out.is_json() {
        context.out.object(&WasReset { ok: true, rule, was_stopped })?;
    } else {
        let what = if was_stopped { "starts again" } else { "was not stopped" };
        context.out.line(&format!("{} {what}", one_line(rule)))?;
    }
    Ok(Exit::Ok)
}

fn dry_run(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let engine = store::open_read_only_if_there(&context.global)?;
    let engine = match &engine {
        Some(engine) => Engine::clone(engine),
        None => Engine::in_memory(Arc::new(SystemClock)),
    };
    watch(&engine, args, Mode::DryRun, None, context)
}

fn at_work(args: &Args, context: &mut Context) -> Result<Exit, Failure> {
    let engine = store::open(&context.global)?;
    let workers = if args.no_worker { Workers::Never } else { Workers::OnCall };
    let office = Office::of(&engine, &context.global, workers)?;
    watch(&engine, args, Mode::AtWork, Some(&office), context)
}

fn watch(
    engine: &Engine,
    args: &Args,
    mode: Mode,
    office: Option<&Office>,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let (config, folder) = (settings::get()?, store::folder(&context.global)?);
    let mut watchers = Watchers::of(engine, config, &folder, &args.rules, mode)?;
    if watchers.is_empty() {
        return Err(Failure::not_found("the configuration has no watch rules")
            .hint("watch: [{ name: \"notes\", paths: [\"notes/**/*.md\"] }] is one"));
    }
    let ends = Arc::new(AtomicBool::new(false));
    let wish = Arc::clone(&ends);
    signal::instead(move || wish.store(true, Ordering::SeqCst));
    signal::end_when_unread()?;
    settings::tell_when_changed();
    let mut failed = None;
    let watched = watchers.watch(&ends, &mut |tidings| {
        if let Err(failure) = tell(&tidings, &mut context.out) {
            // Whoever reads is gone: that ends it, and is no error of the store.
            ends.store(true, Ordering::SeqCst);
            failed = Some(failure);
        }
        match (tidings, office) {
            (Tidings::Fired(_, fire), Some(office)) => {
                fire.run_id.as_deref().map_or(Ok(()), |run| office.call(run))
            }
            _ => Ok(()),
        }
    });
    watched?;
    match failed {
        Some(failure) => Err(failure),
        None => Ok(signal::came().map_or(Exit::Ok, Exit::Signal)),
    }
}

/// A file that fired, as an object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FiredLine<'a> {
    rule: &'a str,
    change: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
}

fn tell(tidings: &Tidings, out: &mut Output) -> Result<(), Failure> {
    let (rule, fire) = match tidings {
        Tidings::Said(said) => {
            say(&format!("note: {}", one_line(said)));
            return Ok(());
        }
        Tidings::Watching(rules) => {
            if !rules.is_empty() {
                say(&watching(rules));
            }
            return Ok(());
        }
        Tidings::Fired(rule, fire) => (rule, fire),
    };
    let (change, run_id) = (fire.change.as_str(), fire.run_id.as_deref());
    if out.is_json() {
        out.object(&FiredLine { rule, change, path: &fire.path, run_id })?;
    } else {
        let run = run_id.map(|run| format!("  run {run}")).unwrap_or_default();
        out.line(&format!("{}  {change}  {}{run}", one_line(rule), one_line(&fire.path)))?;
    }
    out.flush()
}

/// What is watched, in words.
fn watching(rules: &[(String, usize)]) -> String {
    let rule = |(name, files): &(String, usize)| {
        format!("{} ({})", one_line(name), count(*files as u64, "file"))
    };
    let names: Vec<String> = rules.iter().map(rule).collect();
    let number = count(rules.len() as u64, "rule");
    format!("watching {number}: {}; goes on until Ctrl-C", names.join(", "))
}

/// So long the rules of a worker rest when the store refused something.
const BEGINS_ANEW: Duration = Duration::from_secs(1);

/// A rule that does not look at its files as it should.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trouble {
    pub(crate) rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) degraded: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<String>,
}

impl Trouble {
    /// The rules that are stopped, or look from time to time although they are to be notified.
    pub(crate) fn of(all: &AllWatched) -> Vec<Self> {
        let of = |(rule, watched): (&str, &Watched)| Self {
            rule: rule.to_owned(),
            degraded: watched.degraded().map(str::to_owned),
            stopped: watched.stopped().map(str::to_owned),
        };
        let all = all.iter().map(of);
        all.filter(|rule| rule.degraded.is_some() || rule.stopped.is_some()).collect()
    }

    /// The same, read from a store.
    ///
    /// # Errors
    /// Whatever reading meets.
    pub(crate) fn read(events: &dyn EventStore) -> Result<Vec<Self>, Failure> {
        let mut all = AllWatched::default();
        let streams = vec![NamePattern::Prefix(AllWatched::STREAMS.to_owned())];
        let filter = Filter { streams, types: Vec::new() };
        for item in events.read(Read::default().filter(filter))? {
            if let Item::Record(record) = item? {
                all.apply(&record.fields());
            }
        }
        Ok(Self::of(&all))
    }

    /// It in words.
    pub(crate) fn sentence(&self) -> String {
        let rule = one_line(&self.rule);
        match (&self.stopped, &self.degraded) {
            (Some(why), _) => {
                let why = one_line(why);
                format!("{rule} is stopped: {why} (`annals watch --reset {rule}`)")
            }
            (None, why) => {
                let why = why.as_deref().map(one_line).unwrap_or_default();
                format!("{rule} looks from time to time: {why}")
            }
        }
    }
}

/// The watch rules at work on a thread of their own, until it is dropped.
pub(crate) struct Watching {
    /// How many rules there are.
    pub(crate) rules: usize,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watching {
    /// Starts the rules of the configuration, if there are any.
    ///
    /// # Errors
    /// Usage, for rules that cannot be.
    pub(crate) fn start(engine: &Engine, global: &Global) -> Result<Self, Failure> {
        let (config, folder) = (settings::get()?, store::folder(global)?);
        let ends = Arc::new(AtomicBool::new(false));
        let rules = config.watch_rules()?.len();
        if rules == 0 {
            return Ok(Self { rules, ends, thread: None });
        }
        let (engine, wish) = (engine.clone(), Arc::clone(&ends));
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
            let mut tell = |tidings| {
                if let Tidings::Said(said) = tidings {
                    say(&format!("note: {}", one_line(&said)));
                }
                Ok(())
            };
            // What the store refused for a while is found again when it takes it.
            while !wish.load(Ordering::SeqCst) {
                let watched = Watchers::of(&engine, config, &folder, &[], Mode::AtWork)
                    .and_then(|mut watchers| watchers.watch(&wish, &mut tell));
                if let Err(error) = watched {
                    say(&format!(
                        "note: the watch rules begin anew: {}",
                        one_line(&error.to_string())
                    ));
                    std::thread::park_timeout(BEGINS_ANEW);
                }
            }
        });
        let thread = thread
            .map_err(|e| annals_engine::Error::io("cannot start a thread for the rules", e))?;
        Ok(Self { rules, ends, thread: Some(thread) })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // A thread that broke off has said so.
            drop(thread.join());
        }
    }
}
