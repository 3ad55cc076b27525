//! `doctor`: what would keep annals from doing its work here, and what to do about it. It reads, and changes nothing.

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use annals_engine::clock::Timestamp;
use annals_engine::engine::Engine;
use annals_engine::session::watching::Rule;
use annals_engine::session::work::{Claim, Work};
use annals_engine::store::Health;
use annals_tools::http::HttpSettings;
use annals_tools::run::deliver::Needs;
use annals_tools::run::{AgentSpec, Machine, Sinks};
use serde::Serialize;

use crate::commands::Context;
use crate::commands::quickstart::places::Places;
use crate::commands::watch::Trouble;
use crate::exit::{Exit, Failure};
use crate::output::Format;
use crate::output::table::{Cell, Column};
use crate::output::text::{count, many_lines};
use crate::{settings, store};

/// Look for what keeps annals from working here
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks at the settings, the store, the work at hand, the watch rules, the agents' commands, the sinks, what \
`annals serve` begins with and the transcripts of other programs, and says what to do. Changes nothing. Exit code 1 when something is wrong; what is only \
worth knowing is a note.

Examples:
  annals doctor
  annals doctor --json | jq '.checks[] | select(.result == \"wrong\")'")]
pub(crate) struct Args {}

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Well,
    Note,
    Wrong,
}

/// What was looked at.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    result: Verdict,
    what: &'static str,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    ok: bool,
    checks: &'a [Check],
}

impl Check {
    fn well(what: &'static str, found: impl Into<String>) -> Self {
        Self { result: Verdict::Well, what, found: found.into(), hint: None }
    }

    fn note(what: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { result: Verdict::Note, what, found: found.into(), hint: Some(hint.into()) }
    }

    fn wrong(what: &'static str, found: impl Into<String>, hint: Option<String>) -> Self {
        Self { result: Verdict::Wrong, what, found: found.into(), hint }
    }

    fn failed(what: &'static str, failure: Failure) -> Self {
        match failure {
            Failure::Told(told) => Self::wrong(what, many_lines(&told.message), told.hint.clone()),
            Failure::Closed => Self::wrong(what, "it could not be looked at", None),
        }
    }
}

pub(crate) fn run(_: &Args, context: &mut Context) -> Result<Exit, Failure> {
    context.out.only("doctor", &[Format::Table, Format::Json])?;
    let mut checks = vec![the_settings()];
    let settings_are_well = checks.iter().all(|check| check.result != Verdict::Wrong);
    if settings_are_well {
        checks.extend(the_store(context));
        checks.extend(the_agents());
        checks.extend(the_sinks());
        checks.push(the_server());
    }
    checks.push(the_transcripts());
    let ok = checks.iter().all(|check| check.result != Verdict::Wrong);
    let out = &mut context.out;
    if out.format == Format::Json {
        out.object(&Answer { ok, checks: &checks })?;
    } else {
        let columns =
            [Column::fixed("RESULT"), Column::fixed("WHAT"), Column::shrinking("FOUND", 20)];
        let row = |check: &Check| -> Vec<Cell> {
            let word = match check.result {
                Verdict::Well => "well",
                Verdict::Note => "note",
                Verdict::Wrong => "WRONG",
            };
            vec![word.into(), check.what.into(), check.found.as_str().into()]
        };
        out.table(&columns, &checks.iter().map(row).collect::<Vec<_>>())?;
        for check in &checks {
            if let Some(hint) = &check.hint {
                out.line(&format!("{}: {}", check.what, hint))?;
            }
        }
    }
    Ok(if ok { Exit::Ok } else { Exit::Failed })
}

fn the_settings() -> Check {
    let (place, _) = settings::place();
    match (settings::get(), place) {
        (Err(failure), _) => Check::failed("settings", failure),
        (Ok(config), _) if config.file().is_some() => {
            let file = config.file().map(|file| file.path.display().to_string());
            Check::well("settings", file.unwrap_or_default())
        }
        (Ok(_), place) => {
            let place = place.unwrap_or_else(|| PathBuf::from("annals.json5"));
            let found = format!("there is no {}", place.display());
            Check::note("settings", found, "`annals config init` writes one to begin with")
        }
    }
}

fn the_store(context: &Context) -> Vec<Check> {
    let folder = match store::folder(&context.global) {
        Ok(folder) => folder,
        Err(failure) => return vec![Check::failed("store", failure)],
    };
    let engine = match store::open_read_only_if_there(&context.global) {
        Ok(Some(engine)) => engine,
        Ok(None) => {
            let found = format!("there is no store in {}", folder.display());
            let hint = "`annals quickstart` makes one and fills it";
            let store = Check::note("store", found, hint);
            return [vec![store], the_rules(None)].concat();
        }
        Err(failure) => return vec![Check::failed("store", failure)],
    };
    let mut checks = vec![match engine.store().health() {
        Ok(Health::Ok) => Check::well("store", folder.display().to_string()),
        Ok(Health::Damaged(ranges)) => {
            let open = ranges.iter().filter(|range| !range.accepted).count() as u64;
            match open {
                0 => Check::well("store", format!("{}, with accepted damage", folder.display())),
                open => Check::wrong(
                    "store",
                    format!("{} in {}", count(open, "damaged range"), folder.display()),
                    Some("`annals verify` says where, `annals repair` accepts it".to_owned()),
                ),
            }
        }
        Ok(Health::Unsafe(why)) => Check::wrong("store", why, None),
        Ok(_) => Check::well("store", folder.display().to_string()),
        Err(error) => Check::failed("store", error.into()),
    }];
    match engine.work() {
        Ok(work) => checks.extend(the_work(work.state(), context.out.now)),
        Err(error) => checks.push(Check::failed("runs", error.into())),
    }
    checks.extend(the_rules(Some(&engine)));
    checks
}

/// The watch rules, and what the log tells of them.
fn the_rules(engine: Option<&Engine>) -> Vec<Check> {
    let rules = settings::get().and_then(|config| Ok(config.watch_rules()?));
    let read = |engine: &Engine| Trouble::read(engine.store());
    let both = rules.and_then(|rules| match rules.is_empty() {
        true => Ok((rules, Vec::new())),
        false => Ok((rules, engine.map_or(Ok(Vec::new()), read)?)),
    });
    let (rules, troubles) = match both {
        Ok(both) => both,
        Err(failure) => return vec![Check::failed("rule", failure)],
    };
    let check = |rule: &Rule| {
        let name = &rule.name;
        let trouble = troubles.iter().find(|trouble| trouble.rule == *name);
        let stopped = trouble.and_then(|trouble| trouble.stopped.as_ref());
        let degraded = trouble.and_then(|trouble| trouble.degraded.as_ref());
        match (stopped, degraded) {
            (Some(why), _) => Check::wrong(
                "rule",
                format!("{name} is stopped: {why}"),
                Some(format!("`annals watch --reset {name}` starts it again")),
            ),
            (None, Some(why)) if rule.poll.is_none() => Check::note(
                "rule",
                format!("{name} looks from time to time: {why}"),
                format!("nothing is missed; {}", more_notice(why)),
            ),
            _ => Check::well("rule", format!("{name}: {}", rule.paths.join(", "))),
        }
    };
    rules.iter().map(check).collect()
}

/// What makes a rule learn of changes sooner.
fn more_notice(why: &str) -> &'static str {
    match why {
        "limit" => "raise fs.inotify.max_user_watches and max_user_instances with sysctl",
        _ => "poll, in the rule, says in milliseconds how often it looks",
    }
}

/// What `serve` would not begin with.
fn the_server() -> Check {
    let (config, http) = match settings::get().and_then(|c| Ok((c, HttpSettings::of(c)?))) {
        Ok(both) => both,
        Err(failure) => return Check::failed("http", failure),
    };
    let address = &http.address;
    if let Err(why) = address.to_socket_addrs() {
        let hint = "http.address is a host and a port, such as 127.0.0.1:8767";
        return Check::wrong("http", format!("no address {address}: {why}"), Some(hint.to_owned()));
    }
    let lets_in = if http.lets_somebody_in() { "lets callers in" } else { "lets only runs in" };
    let webhook = if config.is_on("webhook.enabled") { "on" } else { "off" };
    Check::well("http", format!("{address} {lets_in}, webhook {webhook}"))
}

/// Runs that nobody is at, and what waits to go out.
fn the_work(work: &Work, now: Timestamp) -> Vec<Check> {
    let runs = work.runs();
    // Where the system does not tell which process this is no worker of it has claimed anything.
    let machine = Machine::here().ok();
    let gone = |claim: &Claim| machine.as_ref().and_then(|machine| machine.fate(claim, now));
    let dead = runs.iter().filter(|run| run.claim.as_ref().and_then(&gone).is_some());
    let dead = dead.count() as u64;
    let waiting = runs.iter().filter(|run| !run.is_claimed()).count() as u64;
    let mut checks = Vec::new();
    match (dead, waiting) {
        (0, 0) => checks.push(Check::well("runs", format!("{} at work", runs.len()))),
        (0, waiting) => checks.push(Check::note(
            "runs",
            format!("{} for a worker", count(waiting, "run")) + " waiting",
            "`annals worker` works on them",
        )),
        (dead, _) => checks.push(Check::wrong(
            "runs",
            format!("{} of workers that are gone", count(dead, "run")),
            Some("`annals worker --until-idle` ends them and tells who waits".to_owned()),
        )),
    }
    let outgoing = work.outgoing();
    if !outgoing.is_empty() {
        let tried = outgoing.iter().filter(|(_, out)| out.tries > 0).count();
        checks.push(Check::note(
            "outbox",
            format!("{} on the way, {tried} tried before", outgoing.len()),
            "`annals worker` sends what is due",
        ));
    }
    checks
}

fn the_agents() -> Vec<Check> {
    let specs = settings::get().and_then(|config| Ok(AgentSpec::all(config)?));
    let specs = match specs {
        Ok(specs) => specs,
        Err(failure) => return vec![Check::failed("agents", failure)],
    };
    if specs.is_empty() {
        let hint = "name one in the configuration, such as run: { preset: \"claude\" }";
        return vec![Check::note("agents", "no agent has a command", hint)];
    }
    let check = |spec: &AgentSpec| match found(&spec.command, &spec.cwd) {
        Some(path) => Check::well("agent", format!("{}: {}", spec.id, path.display())),
        None => Check::wrong(
            "agent",
            format!("{}: there is no {}", spec.id, spec.command.display()),
            Some("install the program, or name it by its path".to_owned()),
        ),
    };
    specs.iter().map(check).collect()
}

/// Sinks whose messages could not go out from here.
fn the_sinks() -> Vec<Check> {
    let sinks = match settings::get().and_then(|config| Ok(Sinks::of(config)?)) {
        Ok(sinks) => sinks,
        Err(failure) => return vec![Check::failed("sinks", failure)],
    };
    let check = |(channel, needs): (&str, Needs<'_>)| match needs {
        Needs::Program(program, cwd) => {
            match found(Path::new(program), cwd.unwrap_or(Path::new(""))) {
                Some(path) => Check::well("sink", format!("{channel}: {}", path.display())),
                None => Check::wrong(
                    "sink",
                    format!("{channel}: there is no {program}"),
                    Some(format!("install the program, or name it in sinks.{channel}.command")),
                ),
            }
        }
        Needs::File(path) => match writable(path) {
            Ok(()) => Check::well("sink", format!("{channel}: {}", path.display())),
            Err(why) => Check::wrong(
                "sink",
                format!("{channel}: {why}"),
                Some(format!("name a file in sinks.{channel}.path that can be written to")),
            ),
        },
        Needs::Nothing => Check::well("sink", format!("{channel}: it needs nothing here")),
    };
    sinks.iter().map(|(channel, sink)| check((channel, sink.needs()))).collect()
}

/// Whether a file can be appended to, or made where it is not there.
///
/// # Errors
/// Why not.
fn writable(path: &Path) -> Result<(), String> {
    use rustix::fs::{Access, access};
    if path.is_dir() {
        return Err(format!("{} is a folder", path.display()));
    }
    if path.exists() {
        let may = access(path, Access::READ_OK | Access::WRITE_OK);
        return may.map_err(|e| format!("{} cannot be written to: {e}", path.display()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(format!("there is no folder {}", folder.display()));
    }
    let may = access(folder, Access::WRITE_OK | Access::EXEC_OK);
    may.map_err(|e| format!("nothing can be made in {}: {e}", folder.display()))
}

/// Where a command is, looked for as a shell would.
fn found(command: &Path, cwd: &Path) -> Option<PathBuf> {
    let runs = |path: &Path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    if command.components().count() > 1 {
        return Some(cwd.join(command)).filter(|path| runs(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(|path| runs(path))
}

fn the_transcripts() -> Check {
    let places = Places::find();
    if places.is_empty() {
        return Check::well("transcripts", "none of other programs where they usually are");
    }
    let roots: Vec<String> =
        places.list().iter().map(|place| place.root.display().to_string()).collect();
    let hint = format!("annals import {}", roots.join(" "));
    Check::note("transcripts", places.newest_in_words(), hint)
}
