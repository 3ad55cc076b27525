//! Which events are wanted: what was typed becomes a checked query before anything is read, and what the store can
//! look for by itself is handed to it.

mod belonging;
mod deeds;
mod event_type;
mod names;

use annals_engine::Engine;
use annals_engine::clock::Timestamp;
use annals_engine::session::audit::ORIGINS;
use annals_engine::session::event::SessionKind;
use annals_engine::store::{Filter, NamePattern, Record};
use clap::ValueHint;
use clap::builder::PossibleValuesParser;
use regex::Regex;

use crate::exit::Failure;
use crate::glob::Glob;
use crate::output::Output;
use crate::shown::Shown;
use crate::when::{self, Bound};
use belonging::Belonging;
pub(crate) use deeds::Marks;
use event_type::Types;
use names::Name;

/// How the streams of runs begin.
const RUNS: &str = "run:";

/// How far a query reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Over what is there.
    Past,
    /// Over what is to come.
    Future,
}

/// The shortest beginning of an id that stands for the id.
const PREFIX_LEAST: usize = 4;

/// The filters of `tail`, `log` and `export`; `timeline` and `graph` choose deeds with them.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct FilterArgs {
    /// Sessions, and the runs that work on them: a key, its beginning, or a pattern with * and ?
    #[arg(long, value_name = "KEY|GLOB", value_hint = ValueHint::Other)]
    session: Vec<String>,
    /// Types: `turn`, `run.finished`; families: `spawn`, `run`; patterns; `error` for what went wrong
    #[arg(long = "type", value_name = "TYPE", value_hint = ValueHint::Other, value_delimiter = ',')]
    types: Vec<String>,
    /// Kinds of sessions
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind_parser())]
    kind: Vec<String>,
    /// Messages between sessions that come from here
    #[arg(long, value_name = "KEY|GLOB", value_hint = ValueHint::Other)]
    from: Option<String>,
    /// Messages between sessions that go here
    #[arg(long, value_name = "KEY|GLOB", value_hint = ValueHint::Other)]
    to: Option<String>,
    /// Sessions of this agent
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    agent: Option<String>,
    /// What belongs to this run: its id, or the beginning of it
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    run: Option<String>,
    /// What follows from one outside stimulus: the flow's id, or the beginning of it
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other)]
    flow: Option<String>,
    /// Text that matches a regular expression
    #[arg(short = 'g', long, value_name = "REGEX", value_hint = ValueHint::Other)]
    grep: Option<String>,
    /// Not before: 2h, 3d, yesterday, 14:30, an ISO time, or #42 for a place in the log
    #[arg(long, value_name = "WHEN", value_hint = ValueHint::Other)]
    since: Option<String>,
    /// Not after; the same forms
    #[arg(long, value_name = "WHEN", value_hint = ValueHint::Other)]
    until: Option<String>,
    /// Whether the log's own housekeeping is wanted too.
    #[arg(skip)]
    housekeeping: bool,
}

fn kind_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(SessionKind::ALL.iter().map(|kind| kind.as_str()))
}

/// A checked query.
pub(crate) struct Wanted {
    sessions: Vec<Name>,
    types: Types,
    kinds: Vec<SessionKind>,
    from: Option<Name>,
    to: Option<Name>,
    agent: Option<String>,
    run: Option<String>,
    flow: Option<String>,
    grep: Option<Regex>,
    since: Option<Bound>,
    until: Option<Bound>,
    belonging: Belonging,
}

impl FilterArgs {
    /// The same for one session more.
    pub(crate) fn and_session(mut self, key: Option<&str>) -> Self {
        self.session.extend(key.map(str::to_owned));
        self
    }

    /// The same with the log's own housekeeping.
    pub(crate) fn everything(mut self) -> Self {
        self.housekeeping = true;
        self
    }

    /// Checks what was typed.
    ///
    /// # Errors
    /// Usage, naming the option and what it takes.
    pub(crate) fn check(&self, out: &Output) -> Result<Wanted, Failure> {
        let (since, until) =
            when::range(self.since.as_ref(), self.until.as_ref(), out.now, &out.zone)?;
        Ok(Wanted {
            sessions: self.session.iter().map(|p| Name::check(p)).collect::<Result<_, _>>()?,
            types: Types::check(&self.types, self.housekeeping)?,
            kinds: self.kind.iter().filter_map(|word| SessionKind::from_word(word)).collect(),
            from: self.from.as_deref().map(|p| Name::of("--from", p)).transpose()?,
            to: self.to.as_deref().map(|p| Name::of("--to", p)).transpose()?,
            agent: self.agent.clone(),
            run: self.run.as_deref().map(|id| beginning("--run", id)).transpose()?,
            flow: self.flow.as_deref().map(|id| beginning("--flow", id)).transpose()?,
            grep: self.grep.as_deref().map(expression).transpose()?,
            since,
            until,
            belonging: Belonging::default(),
        })
    }
}

impl Wanted {
    /// Finds the sessions that were named by less than their key.
    ///
    /// # Errors
    /// Not found, usage when several fit, damage when all that is known of it is that it was lost.
    pub(crate) fn resolve(&mut self, engine: &Engine) -> Result<(), Failure> {
        names::resolve_end(&mut self.from, engine)?;
        names::resolve_end(&mut self.to, engine)?;
        names::resolve(&mut self.sessions, engine)
    }

    /// What the store can look for by itself. Everything wanted fits it, and of what is to come also everything that
    /// tells about it; of the past that is known already.
    pub(crate) fn narrowed(&self, reach: Reach) -> Filter {
        let mut types = self.types.narrowed();
        if reach == Reach::Future {
            if !types.is_empty() {
                types.extend(ORIGINS.map(|name| NamePattern::Exact(name.to_owned())));
            }
            return Filter { streams: Vec::new(), types };
        }
        let mut streams: Vec<NamePattern> = self.sessions.iter().map(Name::narrowed).collect();
        if self.sessions.iter().any(|name| self.belonging.any_run_of(|key| name.is(key))) {
            streams.push(NamePattern::Prefix(RUNS.to_owned()));
        }
        Filter { streams, types }
    }

    /// Learns what a record says about the records to come.
    pub(crate) fn learn(&mut self, record: &Record) {
        self.belonging.learn(record);
    }

    /// Whether an event can be wanted, as far as its head tells.
    pub(crate) fn may_keep(&self, record: &Record) -> bool {
        self.types.may_keep(record.kind.as_str())
            && self.of_session(record)
            && self.flow.as_ref().is_none_or(|flow| has_flow(record, flow))
    }

    /// Whether an event is wanted that can be.
    pub(crate) fn keeps(&self, shown: &Shown) -> bool {
        self.types.keep(shown)
            && self.in_time(shown)
            && self.between_sessions(shown)
            && self.run.as_ref().is_none_or(|run| shown.belongs_to_run(run))
            && self.grep.as_ref().is_none_or(|regex| shown.has_text(regex))
    }

    /// The time after which nothing that happens is wanted.
    pub(crate) fn ends_at(&self) -> Option<Timestamp> {
        match self.until {
            Some(Bound::Time(until)) => Some(until),
            _ => None,
        }
    }

    /// Whether nothing that comes later can be wanted.
    pub(crate) fn is_over(&self, record: &Record) -> bool {
        matches!(self.until, Some(Bound::Seq(until)) if record.seq >= until)
    }

    fn of_session(&self, record: &Record) -> bool {
        let key = self.belonging.session_of(record);
        let named = self.sessions.is_empty() || self.sessions.iter().any(|name| name.is(key));
        named
            && (self.kinds.is_empty()
                || self.belonging.kind_of(key).is_some_and(|kind| self.kinds.contains(&kind)))
            && self
                .agent
                .as_ref()
                .is_none_or(|agent| self.belonging.agent_of(key).is_some_and(|of| of == agent))
    }

    fn in_time(&self, shown: &Shown) -> bool {
        let after = |bound: Bound| match bound {
            Bound::Time(since) => shown.at >= since,
            Bound::Seq(since) => shown.record.seq >= since,
        };
        let before = |bound: Bound| match bound {
            Bound::Time(until) => shown.at <= until,
            Bound::Seq(until) => shown.record.seq <= until,
        };
        self.since.is_none_or(after) && self.until.is_none_or(before)
    }

    fn between_sessions(&self, shown: &Shown) -> bool {
        if self.from.is_none() && self.to.is_none() {
            return true;
        }
        let Some(message) = &shown.message else { return false };
        let fits = |name: Option<&Name>, key: &str| name.is_none_or(|name| name.is(key));
        fits(self.from.as_ref(), &message.from) && fits(self.to.as_ref(), &message.to)
    }
}

fn has_flow(record: &Record, beginning: &str) -> bool {
    record.flow.is_some_and(|flow| flow.to_string().starts_with(beginning))
}

/// A key as it was typed, made canonical, or a pattern of keys.
fn pattern(option: &str, text: &str) -> Result<Glob, Failure> {
    let text = &names::canonical(text)?;
    let glob = Glob::new(text).filter(|_| !text.is_empty());
    glob.ok_or_else(|| bad(option, text, "is no key and no pattern of keys"))
}

fn beginning(option: &str, text: &str) -> Result<String, Failure> {
    if text.len() < PREFIX_LEAST {
        let hint = format!("give at least {PREFIX_LEAST} characters of the id");
        return Err(bad(option, text, "is too short").hint(hint));
    }
    Ok(text.to_ascii_lowercase())
}

fn expression(text: &str) -> Result<Regex, Failure> {
    Regex::new(text).map_err(|error| {
        let cause = error.to_string();
        let cause = cause.lines().last().unwrap_or_default().trim_start_matches("error: ");
        bad("--grep", text, &format!("is no regular expression: {cause}"))
    })
}

fn bad(option: &str, text: &str, what: &str) -> Failure {
    Failure::usage(format!("{option}: {text:?} {what}"))
}
